//! What makes other elements of elements, and which of them a closure lets through.

use std::collections::HashSet;
use std::sync::Arc;

use tonnage_core::{Error, ErrorKind, Result};

use super::Count;
use super::pick::boxed;
use super::pipeline::Pipeline;
use crate::strings::Value;
use crate::tree::{Tree, values};

impl<T: Tree + Send + 'static> Pipeline<T> {
    /// Each as `f` makes it. What `f` draws should be drawn from a key of its own: the state of all random numbers is that of whoever draws
    /// first.
    #[must_use]
    pub fn map<U: Tree + Send + 'static>(
        self,
        f: impl Fn(T) -> Result<U> + Send + Sync + 'static,
    ) -> Pipeline<U> {
        let f = Arc::new(f);
        Pipeline::of(self.count(), move |pass| {
            let f = f.clone();
            let elements = pass.noted("map", 1, self.elements(pass));
            boxed(elements.map(move |element| f(element?)))
        })
    }

    /// Those that `f` says yes to.
    #[must_use]
    pub fn filter(self, f: impl Fn(&T) -> Result<bool> + Send + Sync + 'static) -> Pipeline<T> {
        let f = Arc::new(f);
        Pipeline::of(self.count().unless_empty(), move |pass| {
            let f = f.clone();
            boxed(self.elements(pass).filter_map(move |element| {
                let kept = element.and_then(|element| Ok(f(&element)?.then_some(element)));
                kept.transpose()
            }))
        })
    }

    /// Those before the first that `f` says no to.
    ///
    /// ```
    /// use tonnage::data::Pipeline;
    /// let small = Pipeline::range(0, None, 2).take_while(|x| Ok(x.scalar::<i64>()? < 5));
    /// let all: Vec<i64> = small.iter().map(|x| x?.scalar()).collect::<Result<_, _>>()?;
    /// assert_eq!(all, [0, 2, 4]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[must_use]
    pub fn take_while(self, f: impl Fn(&T) -> Result<bool> + Send + Sync + 'static) -> Pipeline<T> {
        let f = Arc::new(f);
        Pipeline::of(self.count().unless_empty(), move |pass| {
            let f = f.clone();
            boxed(self.elements(pass).map_while(move |element| {
                let kept = element.and_then(|element| Ok(f(&element)?.then_some(element)));
                kept.transpose()
            }))
        })
    }

    /// What `f` makes of a state and each element, with the next state. Where it fails, that is the last that comes.
    ///
    /// ```
    /// use tonnage::{Elementwise, Tensor, data::Pipeline, tensor};
    /// let sums = Pipeline::range(1, Some(5), 1).scan(tensor(0i64)?, |sum, x: Tensor| {
    ///     let sum = sum.add(&x)?;
    ///     Ok((sum.clone(), sum))
    /// });
    /// let all: Vec<i64> = sums.iter().map(|x| x?.scalar()).collect::<Result<_, _>>()?;
    /// assert_eq!(all, [1, 3, 6, 10]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[must_use]
    pub fn scan<S: Tree + Send + Sync + 'static, U: Tree + Send + 'static>(
        self,
        first: S,
        f: impl Fn(S, T) -> Result<(S, U)> + Send + Sync + 'static,
    ) -> Pipeline<U> {
        let f = Arc::new(f);
        Pipeline::of(self.count(), move |pass| {
            let (f, mut elements) = (f.clone(), pass.noted("scan", 1, self.elements(pass)));
            let mut state = Some(first.share());
            boxed(std::iter::from_fn(move || {
                state.as_ref()?;
                let element = match elements.next()? {
                    Ok(element) => element,
                    Err(error) => return Some(Err(error)),
                };
                Some(f(std::mem::take(&mut state)?, element).map(|(next, made)| {
                    state = Some(next);
                    made
                }))
            }))
        })
    }

    /// Elements of two side by side, up to the end of the shorter.
    ///
    /// ```
    /// use tonnage::data::Pipeline;
    /// let pairs = Pipeline::range(0, Some(3), 1).zip(Pipeline::range(10, None, 1));
    /// let (a, b) = pairs.iter().last().unwrap()?;
    /// assert_eq!((a.scalar::<i64>()?, b.scalar::<i64>()?), (2, 12));
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[must_use]
    pub fn zip<U: Tree + Send + 'static>(self, other: Pipeline<U>) -> Pipeline<(T, U)> {
        Pipeline::of(self.count().least(other.count()), move |pass| {
            let both = self.elements(pass).zip(other.elements(pass));
            boxed(both.map(|(own, other)| Ok((own?, other?))))
        })
    }

    /// Each once: the first of those whose tensors have the same bits, and whose plain values are the same.
    ///
    /// ```
    /// use tonnage::data::Pipeline;
    /// assert_eq!(Pipeline::range(0, Some(3), 1).repeat(2).unique().iter().count(), 3);
    /// ```
    #[must_use]
    pub fn unique(self) -> Pipeline<T> {
        Pipeline::of(self.count().unless_empty(), move |pass| {
            let mut seen = HashSet::new();
            boxed(self.elements(pass).filter_map(move |element| {
                let element = match element {
                    Ok(element) => element,
                    Err(error) => return Some(Err(error)),
                };
                match bits(&element) {
                    Ok(bits) => seen.insert(bits).then_some(Ok(element)),
                    Err(error) => Some(Err(error)),
                }
            }))
        })
    }

    /// Without the elements that fail with an error that is to be ignored. That the host says to stop is none.
    #[must_use]
    pub fn ignore_errors(
        self,
        ignored: impl Fn(&Error) -> bool + Send + Sync + 'static,
    ) -> Pipeline<T> {
        let ignored = Arc::new(ignored);
        let count = match self.count() {
            Count::Infinite => Count::Infinite,
            count => count.unless_empty(),
        };
        Pipeline::of(count, move |pass| {
            let ignored = ignored.clone();
            boxed(self.elements(pass).filter(move |element| match element {
                Ok(_) => true,
                Err(error) => matches!(error.kind(), ErrorKind::Interrupted) || !ignored(error),
            }))
        })
    }
}

/// All that two elements differ in.
fn bits<T: Tree>(element: &T) -> Result<(String, Vec<u8>)> {
    let (mut text, mut bits) = (String::new(), Vec::new());
    element.describe(&mut text);
    for value in values(element) {
        text.push_str(&value.type_text());
        match value {
            Value::Numbers(tensor) => {
                let start = bits.len();
                bits.resize(start + tensor.ty().bytes("unique")?.get() as usize, 0);
                tensor.array("an element")?.copy_to(&mut bits[start..])?;
            }
            Value::Strings(strings) => strings.visit(&mut |one| {
                bits.extend(one.len().to_le_bytes());
                bits.extend(one);
            })?,
        }
    }
    Ok((text, bits))
}
