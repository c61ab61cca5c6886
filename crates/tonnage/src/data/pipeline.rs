//! Data as they come: elements one after another, through steps that each hold a bounded number of them.
//!
//! A pipeline is a way to make an iterator, so that it can be iterated any number of times; nothing runs before an element is
//! asked for. What a step holds back is tensors, which the ledger counts as it counts all others; and how much that can be is known before,
//! since every step says how many elements it holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tonnage_core::attrs::PadMode;
use tonnage_core::error::bad_argument;
use tonnage_core::{Dim, Result, Scalar, Source};
use tonnage_runtime::random;

use super::Dataset;
use super::pass::{Holds, PipelinePass};
use crate::io::FileTensor;
use crate::make;
use crate::ops::stack;
use crate::random::RandomKey;
use crate::tensor::Tensor;
use crate::tree::{Tree, leaves};

/// Elements, one after another.
pub type Elements<T> = Box<dyn Iterator<Item = Result<T>> + Send>;

/// One time through it.
type Make<T> = dyn Fn(&PipelinePass) -> Elements<T> + Send + Sync;

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
    make: Arc<Make<T>>,
    /// How often it was iterated.
    passes: Arc<AtomicU64>,
}

impl<T> Clone for Pipeline<T> {
    fn clone(&self) -> Pipeline<T> {
        Pipeline { make: self.make.clone(), passes: self.passes.clone() }
    }
}

impl<T: Tree + Send + 'static> Pipeline<T> {
    /// Of a generator: a closure that gives an iterator each time the pipeline is iterated.
    pub fn from_fn<I: Iterator<Item = Result<T>> + Send + 'static>(
        make: impl Fn() -> I + Send + Sync + 'static,
    ) -> Pipeline<T> {
        Pipeline::from_passes(move |_| make())
    }

    /// Of a generator that is told which time it is, counted from 0. One that gives the same elements for the same number lets training
    /// be gone on with from its middle.
    pub fn from_passes<I: Iterator<Item = Result<T>> + Send + 'static>(
        make: impl Fn(u64) -> I + Send + Sync + 'static,
    ) -> Pipeline<T> {
        Pipeline::of(move |pass| Box::new(make(pass.number)))
    }

    pub(super) fn of(
        make: impl Fn(&PipelinePass) -> Elements<T> + Send + Sync + 'static,
    ) -> Pipeline<T> {
        Pipeline { make: Arc::new(make), passes: Arc::default() }
    }

    /// Goes through it, from the start: the first time, then the second, and so on.
    pub fn iter(&self) -> Elements<T> {
        self.pass(self.passes.fetch_add(1, Ordering::Relaxed))
    }

    /// Goes through it as it is the time of that number, counted from 0: what is shuffled comes in the order of that time.
    pub fn pass(&self, number: u64) -> Elements<T> {
        self.elements(&PipelinePass::new(number))
    }

    pub(super) fn elements(&self, pass: &PipelinePass) -> Elements<T> {
        (self.make)(pass)
    }

    /// What its steps hold at most beside the element that they gave last, known before any of them holds it: by the types of the first
    /// elements, for which its closures are called. Nothing is shuffled or made ahead for it. Elements that are larger than
    /// the first ones take more than it says.
    ///
    /// ```
    /// use tonnage::data::{Dataset, Pipeline};
    /// use tonnage::{RandomKey, ones};
    /// let rows = Pipeline::rows(&Dataset::of(ones([100, 256])?)?);
    /// let batches = rows.shuffle(50, RandomKey::new(1)).batch(10).prefetch(2);
    /// let holds = batches.holds()?;
    /// assert_eq!(holds[0].to_string(), "shuffle: 50 elements, 50.00 KiB");
    /// assert_eq!(holds[2].to_string(), "prefetch: 2 elements, 20.00 KiB");
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where the first element cannot be made.
    pub fn holds(&self) -> Result<Vec<Holds>> {
        self.look().map(|(_, holds)| holds)
    }

    /// Its first element, if it has one, and what its steps hold.
    pub(super) fn look(&self) -> Result<(Option<T>, Vec<Holds>)> {
        let (pass, look) = PipelinePass::looking();
        let first = self.elements(&pass).next().transpose()?;
        Ok((first, look.found()))
    }

    /// The first `n`.
    #[must_use]
    pub fn take(self, n: usize) -> Pipeline<T> {
        Pipeline::of(move |pass| Box::new(self.elements(pass).take(n)))
    }

    /// All but the first `n`.
    #[must_use]
    pub fn skip(self, n: usize) -> Pipeline<T> {
        Pipeline::of(move |pass| Box::new(self.elements(pass).skip(n)))
    }

    /// All of it `times` times; a shuffle before this gives another order each time.
    #[must_use]
    pub fn repeat(self, times: usize) -> Pipeline<T> {
        Pipeline::of(move |pass| {
            let (own, pass) = (self.clone(), pass.clone());
            let passes = (0..times as u64).map(move |i| pass.part(i, times as u64));
            Box::new(passes.flat_map(move |pass| own.elements(&pass)))
        })
    }

    /// Each as `f` makes it. What `f` draws should be drawn from a key of its own: the state of all random numbers is that of whoever draws
    /// first.
    #[must_use]
    pub fn map<U: Tree + Send + 'static>(
        self,
        f: impl Fn(T) -> Result<U> + Send + Sync + 'static,
    ) -> Pipeline<U> {
        let f = Arc::new(f);
        Pipeline::of(move |pass| {
            let f = f.clone();
            let elements = pass.noted("map", 1, self.elements(pass));
            Box::new(elements.map(move |element| f(element?)))
        })
    }

    /// Those that `f` says yes to.
    #[must_use]
    pub fn filter(self, f: impl Fn(&T) -> Result<bool> + Send + Sync + 'static) -> Pipeline<T> {
        let f = Arc::new(f);
        Pipeline::of(move |pass| {
            let f = f.clone();
            Box::new(self.elements(pass).filter_map(move |element| {
                let kept = element.and_then(|element| Ok(f(&element)?.then_some(element)));
                kept.transpose()
            }))
        })
    }

    /// One of each in turn, until all are at their end.
    pub fn interleave(pipelines: Vec<Pipeline<T>>) -> Pipeline<T> {
        Pipeline::of(move |pass| {
            let mut open: Vec<Elements<T>> =
                pipelines.iter().map(|own| own.elements(pass)).collect();
            // Whoever looks sees all of them, however few elements he takes.
            let firsts: Vec<Result<T>> = match pass.is_looking() {
                true => open.iter_mut().filter_map(Iterator::next).collect(),
                false => Vec::new(),
            };
            let mut at = 0;
            let rest = std::iter::from_fn(move || {
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
            });
            Box::new(firsts.into_iter().chain(rest))
        })
    }

    /// In a random order: each time one of the next `buffer` comes, which are held. The same key gives the same orders.
    #[must_use]
    pub fn shuffle(self, buffer: usize, key: RandomKey) -> Pipeline<T> {
        let buffer = buffer.max(1);
        Pipeline::of(move |pass| {
            let mut rest = pass.noted("shuffle", buffer, self.elements(pass));
            if pass.is_looking() {
                return rest;
            }
            let (key, mut drawn) = (key.of_pass(pass.number), 0);
            let mut held: Vec<Result<T>> = Vec::with_capacity(buffer.min(1 << 16));
            Box::new(std::iter::from_fn(move || {
                while held.len() < buffer {
                    match rest.next() {
                        Some(element) => held.push(element),
                        None => break,
                    }
                }
                if held.is_empty() {
                    return None;
                }
                let number = random::derived(key.words(), drawn)[0];
                drawn = drawn.wrapping_add(1);
                Some(held.swap_remove(((u64::from(number) * held.len() as u64) >> 32) as usize))
            }))
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

    /// Batches of `size` elements, each tensor with one more axis in front; the last may have fewer. All must be of one shape.
    #[must_use]
    pub fn batch(self, size: usize) -> Pipeline<T> {
        self.joined("batch", size, |parts| stack(parts, 0))
    }

    /// Batches of `size` elements, where lengths may differ: each axis is as long as the longest, filled up at its end.
    #[must_use]
    pub fn padded_batch(self, size: usize, filling: impl Into<Scalar>) -> Pipeline<T> {
        let filling = filling.into();
        self.joined("padded_batch", size, move |parts| padded(parts, filling))
    }

    fn joined(
        self,
        step: &'static str,
        size: usize,
        join: impl Fn(&[&Tensor]) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Pipeline<T> {
        let join = Arc::new(join);
        Pipeline::of(move |pass| {
            // Of those that are filled up a copy is made before they are joined.
            let held = if step == "padded_batch" { 2 * size } else { size };
            let (mut rest, join) = (pass.noted(step, held, self.elements(pass)), join.clone());
            Box::new(std::iter::from_fn(move || {
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
            }))
        })
    }
}

impl Pipeline<Tensor> {
    /// The rows of a tensor in a file, read `piece` at a time: a file of any size goes through the memory of one piece.
    pub fn file(file: FileTensor, piece: usize) -> Pipeline<Tensor> {
        let piece = piece.max(1);
        Pipeline::of(move |pass| {
            let file = file.clone();
            let rows = file.ty().shape.first().and_then(Dim::known).unwrap_or(0);
            let read = (0..rows.div_ceil(piece)).flat_map(move |number| {
                let (start, end) = (number * piece, ((number + 1) * piece).min(rows));
                let read = file.rows(start..end);
                (0..(end - start) as i64).map(move |row| {
                    let read = read.as_ref().map_err(Clone::clone)?;
                    read.gather(&make::full(row, tonnage_core::DType::I64, ())?, 0)
                })
            });
            pass.noted("file", piece.min(rows), Box::new(read))
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
            // One that is as long as the longest need not be of a dtype that the filling fits, as labels beside lines.
            match own.as_slice() == most.as_slice() {
                true => Ok((*part).clone()),
                false => part.pad(&widths, PadMode::Constant(filling)),
            }
        })
        .collect::<Result<Vec<_>>>()?;
    stack(&filled.iter().collect::<Vec<_>>(), 0)
}
