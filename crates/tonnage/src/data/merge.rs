//! Several pipelines as one.

use std::sync::Arc;

use tonnage_core::Result;
use tonnage_core::error::bad_argument;

use super::Count;
use super::pick::boxed;
use super::pipeline::{Elements, Pipeline};
use super::threads::parallel;
use crate::ops::Elementwise;
use crate::tensor::Tensor;
use crate::tree::Tree;

impl<T: Tree + Send + 'static> Pipeline<T> {
    /// The elements of another after its own.
    #[must_use]
    pub fn concatenate(self, other: Pipeline<T>) -> Pipeline<T> {
        Pipeline::of(self.count().plus(other.count()), move |pass| {
            let (own, other, pass) = (self.elements(pass), other.clone(), pass.clone());
            // The other one begins when its turn comes.
            let later = std::iter::once_with(move || other.elements(&pass)).flatten();
            boxed(own.chain(later))
        })
    }

    /// One of each in turn, until all are at their end.
    pub fn interleave(pipelines: Vec<Pipeline<T>>) -> Pipeline<T> {
        let count = pipelines.iter().map(Pipeline::count).fold(Count::Known(0), Count::plus);
        Pipeline::of(count, move |pass| {
            let mut open: Vec<Elements<T>> =
                pipelines.iter().map(|own| own.elements(pass)).collect();
            // Whoever looks sees all of them, however few elements he takes.
            let firsts: Vec<Result<T>> = match pass.is_looking() {
                true => open.iter_mut().filter_map(Iterator::next).collect(),
                false => Vec::new(),
            };
            let cycle = open.len();
            let rest = in_turn(boxed(open.into_iter().map(Ok)), cycle, 1);
            boxed(firsts.into_iter().chain(rest))
        })
    }

    /// The elements of the pipelines that `f` makes of each element, one pipeline after another.
    ///
    /// ```
    /// use tonnage::{Tensor, data::Pipeline};
    /// let counts = Pipeline::range(0, Some(4), 1).flat_map(|n: Tensor| Ok(Pipeline::range(0, Some(n.scalar()?), 1)));
    /// let all: Vec<i64> = counts.iter().map(|x| x?.scalar()).collect::<Result<_, _>>()?;
    /// assert_eq!(all, [0, 0, 1, 0, 1, 2]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[must_use]
    pub fn flat_map<U: Tree + Send + 'static>(
        self,
        f: impl Fn(T) -> Result<Pipeline<U>> + Send + Sync + 'static,
    ) -> Pipeline<U> {
        self.interleave_map(1, 1, 1, f)
    }

    /// The elements of the pipelines that `f` makes of each element: of `cycle` of them in turn, `block` of each. One that has ended leaves its place
    /// to the next. With several `threads` pipelines are opened ahead of their turn, their first blocks made.
    #[must_use]
    pub fn interleave_map<U: Tree + Send + 'static>(
        self,
        cycle: usize,
        block: usize,
        threads: usize,
        f: impl Fn(T) -> Result<Pipeline<U>> + Send + Sync + 'static,
    ) -> Pipeline<U> {
        let (f, cycle, block) = (Arc::new(f), cycle.max(1), block.max(1));
        Pipeline::of(self.count().unless_empty(), move |pass| {
            let (f, own) = (f.clone(), pass.clone());
            let open = move |element: T| Ok(f(element)?.elements(&own));
            let elements = self.elements(pass);
            let opened: Elements<Elements<U>> = match threads > 1 && cycle > 1 && !pass.is_looking()
            {
                true => {
                    let ahead = move |element: T| {
                        let mut elements = open(element)?;
                        let first: Vec<Result<U>> = elements.by_ref().take(block).collect();
                        Ok(boxed(first.into_iter().chain(elements)))
                    };
                    boxed(parallel(elements, threads, true, Arc::new(ahead)))
                }
                false => boxed(elements.map(move |element| open(element?))),
            };
            boxed(in_turn(opened, cycle, block))
        })
    }

    /// Elements of several pipelines, by a pipeline of their numbers. At the end of one of them all ends where `stop` says so; otherwise it is
    /// passed over.
    ///
    /// ```
    /// use tonnage::{data::Pipeline, tensor};
    /// let numbers = |start| Pipeline::range(start, None, 1);
    /// let choices = Pipeline::from_elements(vec![tensor(0i64)?, tensor(1i64)?, tensor(1i64)?]);
    /// let chosen = Pipeline::choose(vec![numbers(0), numbers(10)], choices, true);
    /// let all: Vec<i64> = chosen.iter().map(|x| x?.scalar()).collect::<Result<_, _>>()?;
    /// assert_eq!(all, [0, 10, 11]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    pub fn choose(
        pipelines: Vec<Pipeline<T>>,
        choices: Pipeline<Tensor>,
        stop: bool,
    ) -> Pipeline<T> {
        Pipeline::of(Count::Unknown, move |pass| {
            let mut choices = choices.elements(pass);
            let mut open: Vec<Option<Elements<T>>> =
                pipelines.iter().map(|own| Some(own.elements(pass))).collect();
            let mut ended = false;
            boxed(std::iter::from_fn(move || {
                while !ended && open.iter().any(Option::is_some) {
                    let number = match choices.next()?.and_then(|n| number(&n, open.len())) {
                        Ok(number) => number,
                        Err(error) => return Some(Err(error)),
                    };
                    let Some(elements) = &mut open[number] else { continue };
                    if let Some(element) = elements.next() {
                        return Some(element);
                    }
                    open[number] = None;
                    ended = stop;
                }
                None
            }))
        })
    }
}

/// The number of one of so many.
fn number(choice: &Tensor, of: usize) -> Result<usize> {
    let number: i64 = choice.cast(tonnage_core::DType::I64)?.scalar()?;
    usize::try_from(number).ok().filter(|number| *number < of).ok_or_else(|| {
        let what = format!("the selected pipeline {number} is out of range");
        bad_argument("choose", what, format!("use 0 to {}", of.saturating_sub(1)))
    })
}

/// So many at a time, a block of each in turn. One that has ended leaves its place to the next, which is opened when the turn comes to it.
fn in_turn<U: Send + 'static>(
    mut waiting: Elements<Elements<U>>,
    cycle: usize,
    block: usize,
) -> impl Iterator<Item = Result<U>> + Send {
    let mut places: Vec<Option<Elements<U>>> = Vec::new();
    places.resize_with(cycle, || None);
    let (mut at, mut given) = (0, 0);
    std::iter::from_fn(move || {
        while !places.is_empty() {
            if at >= places.len() {
                at = 0;
            }
            if places[at].is_none() {
                match waiting.next() {
                    Some(Ok(opened)) => places[at] = Some(opened),
                    Some(Err(error)) => return Some(Err(error)),
                    None => {
                        places.remove(at);
                        continue;
                    }
                }
            }
            match places[at].as_mut().and_then(Iterator::next) {
                Some(element) => {
                    given += 1;
                    if given == block {
                        (at, given) = (at + 1, 0);
                    }
                    return Some(element);
                }
                None => {
                    places[at] = None;
                    (at, given) = (at + 1, 0);
                }
            }
        }
        None
    })
}
