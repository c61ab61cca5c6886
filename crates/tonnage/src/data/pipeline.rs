//! Data as they come: elements one after another, through steps that each hold a bounded number of them.
//!
//! A pipeline is a way to make an iterator, so that it can be gone through again; nothing runs before somebody asks. What a step holds back
//! is tensors, which the ledger counts as it counts all others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tonnage_core::attrs::PadMode;
use tonnage_core::error::bad_argument;
use tonnage_core::{Dim, Result, Scalar, Source};
use tonnage_runtime::random;

use super::Dataset;
use crate::io::FileTensor;
use crate::make;
use crate::ops::stack;
use crate::random::RandomKey;
use crate::tensor::Tensor;
use crate::tree::{Tree, leaves};

/// Elements, one after another.
pub type Elements<T> = Box<dyn Iterator<Item = Result<T>> + Send>;

/// Steps from a source of elements to batches.
///
/// ```
/// use tonnage::data::{Dataset, Pipeline};
/// use tonnage::{Elementwise, RandomKey, Tensor, range};
/// let data = Dataset::of(range(0i64, 10, 1)?)?;
/// let batches = Pipeline::rows(&data)
///     .skip(1)
///     .shuffle(4, RandomKey::new(1))
///     .map(|x: Tensor| x.mul(2i64))
///     .batch(3)
///     .prefetch(2);
/// let mut all = Vec::new();
/// for batch in batches.iter() {
///     all.extend(batch?.to_vec::<i64>()?);
/// }
/// all.sort();
/// assert_eq!(all, [2, 4, 6, 8, 10, 12, 14, 16, 18]);
/// # Ok::<(), tonnage::Error>(())
/// ```
pub struct Pipeline<T> {
    make: Arc<dyn Fn() -> Elements<T> + Send + Sync>,
}

impl<T> Clone for Pipeline<T> {
    fn clone(&self) -> Pipeline<T> {
        Pipeline { make: self.make.clone() }
    }
}

impl<T: Send + 'static> Pipeline<T> {
    /// Of a generator: a closure that gives an iterator each time the pipeline is gone through.
    pub fn from_fn<I: Iterator<Item = Result<T>> + Send + 'static>(
        make: impl Fn() -> I + Send + Sync + 'static,
    ) -> Pipeline<T> {
        Pipeline { make: Arc::new(move || Box::new(make())) }
    }

    /// Goes through it, from the start.
    pub fn iter(&self) -> Elements<T> {
        (self.make)()
    }

    /// The first `n`.
    #[must_use]
    pub fn take(self, n: usize) -> Pipeline<T> {
        Pipeline::from_fn(move || self.iter().take(n))
    }

    /// All but the first `n`.
    #[must_use]
    pub fn skip(self, n: usize) -> Pipeline<T> {
        Pipeline::from_fn(move || self.iter().skip(n))
    }

    /// All of it so many times; a shuffle before this gives another order each time.
    #[must_use]
    pub fn repeat(self, times: usize) -> Pipeline<T> {
        Pipeline::from_fn(move || {
            let own = self.clone();
            (0..times).flat_map(move |_| own.iter())
        })
    }

    /// Each as `f` makes it.
    #[must_use]
    pub fn map<U: Send + 'static>(
        self,
        f: impl Fn(T) -> Result<U> + Send + Sync + 'static,
    ) -> Pipeline<U> {
        let f = Arc::new(f);
        Pipeline::from_fn(move || {
            let f = f.clone();
            self.iter().map(move |element| f(element?))
        })
    }

    /// Those that `f` says yes to.
    #[must_use]
    pub fn filter(self, f: impl Fn(&T) -> Result<bool> + Send + Sync + 'static) -> Pipeline<T> {
        let f = Arc::new(f);
        Pipeline::from_fn(move || {
            let f = f.clone();
            self.iter().filter_map(move |element| {
                let kept = element.and_then(|element| Ok(f(&element)?.then_some(element)));
                kept.transpose()
            })
        })
    }

    /// One of each in turn, until all are at their end.
    pub fn interleave(pipelines: Vec<Pipeline<T>>) -> Pipeline<T> {
        Pipeline::from_fn(move || {
            let mut open: Vec<Elements<T>> = pipelines.iter().map(Pipeline::iter).collect();
            let mut at = 0;
            std::iter::from_fn(move || {
                while !open.is_empty() {
                    at %= open.len();
                    if let Some(element) = open[at].next() {
                        at += 1;
                        return Some(element);
                    }
                    // The next one moves to this place.
                    drop(open.remove(at));
                }
                None
            })
        })
    }

    /// In a random order: each time one of the next `buffer` comes, which are held. The same key gives the same orders.
    #[must_use]
    pub fn shuffle(self, buffer: usize, key: RandomKey) -> Pipeline<T> {
        let passes = AtomicU64::new(0);
        Pipeline::from_fn(move || {
            let pass = key.numbered(passes.fetch_add(1, Ordering::Relaxed));
            let (mut rest, mut drawn) = (self.iter(), 0);
            let mut held: Vec<Result<T>> = Vec::with_capacity(buffer.min(1 << 16));
            std::iter::from_fn(move || {
                while held.len() < buffer.max(1) {
                    match rest.next() {
                        Some(element) => held.push(element),
                        None => break,
                    }
                }
                if held.is_empty() {
                    return None;
                }
                let number = random::derived(pass.words(), drawn)[0];
                drawn = drawn.wrapping_add(1);
                Some(held.swap_remove(((u64::from(number) * held.len() as u64) >> 32) as usize))
            })
        })
    }
}

impl<T: Tree + Send + Sync + 'static> Pipeline<T> {
    /// The rows of tensors, one after another.
    pub fn rows(data: &Dataset<T>) -> Pipeline<T> {
        let (whole, rows) = (Arc::new(data.whole().share()), data.len());
        Pipeline::from_fn(move || {
            let whole = whole.clone();
            (0..rows as i64).map(move |row| {
                let row = make::full(row, tonnage_core::DType::I64, ())?;
                whole.share().map(&mut |tensor| tensor.gather(&row, 0))
            })
        })
    }

    /// So many at once, each tensor with one more axis in front; the last may have fewer. All must be of one shape.
    #[must_use]
    pub fn batch(self, size: usize) -> Pipeline<T> {
        self.joined(size, |parts| stack(parts, 0))
    }

    /// So many at once, where lengths may differ: each axis is as long as the longest, filled up at its end.
    #[must_use]
    pub fn padded_batch(self, size: usize, filling: impl Into<Scalar>) -> Pipeline<T> {
        let filling = filling.into();
        self.joined(size, move |parts| padded(parts, filling))
    }

    fn joined(
        self,
        size: usize,
        join: impl Fn(&[&Tensor]) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Pipeline<T> {
        let join = Arc::new(join);
        Pipeline::from_fn(move || {
            let (mut rest, join) = (self.iter(), join.clone());
            std::iter::from_fn(move || {
                let mut held = Vec::new();
                for element in rest.by_ref().take(size) {
                    match element {
                        Ok(element) => held.push(element),
                        Err(error) => return Some(Err(error)),
                    }
                }
                let all: Vec<Vec<Tensor>> = held.iter().map(leaves).collect();
                let first = held.into_iter().next()?;
                let mut number = 0;
                Some(first.map(&mut |_| {
                    let parts: Vec<&Tensor> = all.iter().filter_map(|e| e.get(number)).collect();
                    number += 1;
                    join(&parts)
                }))
            })
        })
    }
}

impl Pipeline<Tensor> {
    /// The rows of a tensor in a file, read so many at a time: a file of any size goes through the memory of one piece.
    pub fn file(file: FileTensor, piece: usize) -> Pipeline<Tensor> {
        Pipeline::from_fn(move || {
            let file = file.clone();
            let rows = file.ty().shape.first().and_then(Dim::known).unwrap_or(0);
            let piece = piece.max(1);
            (0..rows.div_ceil(piece)).flat_map(move |number| {
                let (start, end) = (number * piece, ((number + 1) * piece).min(rows));
                let read = file.rows(start..end);
                (0..(end - start) as i64).map(move |row| {
                    let read = read.as_ref().map_err(Clone::clone)?;
                    read.gather(&make::full(row, tonnage_core::DType::I64, ())?, 0)
                })
            })
        })
    }
}

/// Tensors of different lengths as one, filled up at the ends.
fn padded(parts: &[&Tensor], filling: Scalar) -> Result<Tensor> {
    let rank = parts.first().map_or(0, |part| part.rank());
    let sizes = |part: &Tensor| part.shape().sizes().filter(|sizes| sizes.len() == rank);
    let mut most = vec![0; rank];
    for part in parts {
        let Some(own) = sizes(part) else {
            let what = format!("{} among tensors of rank {rank}", part.ty());
            let help = "give elements of one rank";
            return Err(bad_argument("padded_batch", what, help).at(Source::here()));
        };
        most.iter_mut().zip(own).for_each(|(most, own)| *most = own.max(*most));
    }
    let filled = parts
        .iter()
        .map(|part| {
            let own = sizes(part).unwrap_or_default();
            let widths: Vec<[usize; 2]> =
                own.iter().zip(&most).map(|(own, most)| [0, most - own]).collect();
            part.pad(&widths, PadMode::Constant(filling))
        })
        .collect::<Result<Vec<_>>>()?;
    stack(&filled.iter().collect::<Vec<_>>(), 0)
}
