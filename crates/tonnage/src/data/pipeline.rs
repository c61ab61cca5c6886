//! Data as they come: elements one after another, through steps that each hold a bounded number of them.
//!
//! A pipeline is a way to make an iterator, so that it can be iterated any number of times; nothing runs before an element is
//! asked for. What a step holds back is tensors, which the ledger counts as it counts all others; and how much that can be is known before,
//! since every step says how many elements it holds.
//!
//! Here is what a pipeline is, and where elements come from. Its steps: `pick` (which elements, and how often), `rows` (rows by their numbers),
//! `shuffle`, `transform` (closures of elements), `batch`, `merge` (several pipelines), `keep` (caches), `threads`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tonnage_core::{DType, Dim, Result};

use super::Count;
use super::pass::{Holds, PipelinePass};
use super::pick::{Pick, asking, boxed};
use super::rows::Rows;
use crate::io::FileTensor;
use crate::make;
use crate::tensor::Tensor;
use crate::tree::Tree;

/// Elements, one after another.
pub type Elements<T> = Box<dyn Iterator<Item = Result<T>> + Send>;

/// One time through it.
pub(super) type Make<T> = Arc<dyn Fn(&PipelinePass) -> Elements<T> + Send + Sync>;

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
    form: Form<T>,
    count: Count,
    /// How often it was iterated.
    passes: Arc<AtomicU64>,
}

/// What its elements are so far.
pub(super) enum Form<T> {
    Elements(Make<T>),
    /// Numbers of rows: nothing was made of them yet.
    Rows(Rows<T>),
}

impl<T> Clone for Pipeline<T> {
    fn clone(&self) -> Pipeline<T> {
        let form = match &self.form {
            Form::Elements(make) => Form::Elements(make.clone()),
            Form::Rows(rows) => Form::Rows(rows.clone()),
        };
        Pipeline { form, count: self.count, passes: self.passes.clone() }
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
        Pipeline::of(Count::Unknown, move |pass| Box::new(make(pass.number)))
    }

    pub(super) fn of(
        count: Count,
        make: impl Fn(&PipelinePass) -> Elements<T> + Send + Sync + 'static,
    ) -> Pipeline<T> {
        Pipeline::new(Form::Elements(Arc::new(make)), count)
    }

    pub(super) fn new(form: Form<T>, count: Count) -> Pipeline<T> {
        Pipeline { form, count, passes: Arc::default() }
    }

    pub(super) fn form(&self) -> &Form<T> {
        &self.form
    }

    pub(super) fn picked(self, pick: Pick) -> Pipeline<T> {
        let form = match self.form {
            Form::Elements(make) => Form::Elements(pick.of(make)),
            Form::Rows(rows) => Form::Rows(rows.picked(pick)),
        };
        Pipeline::new(form, pick.count(self.count))
    }

    /// How many elements it has, where that is known before they come.
    ///
    /// ```
    /// use tonnage::data::{Count, Pipeline};
    /// let numbers = Pipeline::range(0, Some(10), 1);
    /// assert_eq!(numbers.clone().skip(3).batch(2).count(), Count::Known(4));
    /// assert_eq!(numbers.filter(|_| Ok(true)).count(), Count::Unknown);
    /// ```
    pub fn count(&self) -> Count {
        self.count
    }

    /// The same with a number of elements that whoever made it knows.
    #[must_use]
    pub fn with_count(mut self, count: Count) -> Pipeline<T> {
        self.count = count;
        self
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
        match &self.form {
            Form::Elements(make) => make(pass),
            Form::Rows(rows) => rows.elements(pass),
        }
    }

    /// What its steps hold at most beside the element that they gave last, known before any of them holds it: by the types of the first
    /// elements, for which its closures are called. Nothing is shuffled or made ahead for it. Elements that are larger than
    /// the first ones take more than it says.
    ///
    /// ```
    /// use tonnage::data::{Dataset, Pipeline};
    /// use tonnage::{RandomKey, tensor};
    /// let rows = Pipeline::rows(&Dataset::of(tensor(vec![0f32; 25_600])?.reshape([100, 256])?)?);
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
}

impl<T: Tree + Send + Sync + 'static> Pipeline<T> {
    /// Elements that are there already, and are shared with whoever goes through them.
    pub fn from_elements(elements: Vec<T>) -> Pipeline<T> {
        let (count, elements) = (elements.len(), Arc::new(elements));
        Pipeline::of(Count::Known(count as u64), move |_| {
            let elements = elements.clone();
            boxed((0..count).filter_map(move |i| elements.get(i).map(|one| Ok(one.share()))))
        })
    }
}

impl Pipeline<Tensor> {
    /// The numbers from `start` in steps, before `stop`; without an end for none. They are `i64` without axes.
    ///
    /// ```
    /// use tonnage::data::Pipeline;
    /// let numbers = Pipeline::range(5, Some(0), -2);
    /// let all: Vec<i64> = numbers.iter().map(|x| x?.scalar()).collect::<Result<_, _>>()?;
    /// assert_eq!(all, [5, 3, 1]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    pub fn range(start: i64, stop: Option<i64>, step: i64) -> Pipeline<Tensor> {
        Pipeline::range_of(DType::I64, start, stop, step)
    }

    /// [`Pipeline::range`] in another dtype.
    pub fn range_of(dtype: DType, start: i64, stop: Option<i64>, step: i64) -> Pipeline<Tensor> {
        let apart = stop.map(|stop| match step {
            0.. => stop.saturating_sub(start),
            _ => start.saturating_sub(stop),
        });
        let count = apart.map(|apart| match apart > 0 {
            // A step of 0 never arrives.
            true => (apart as u64).div_ceil(step.unsigned_abs().max(1)),
            false => 0,
        });
        let many = count.map_or(Count::Infinite, Count::Known);
        Pipeline::of(many, move |_| {
            let mut number = start;
            let numbers = (0..count.unwrap_or(u64::MAX)).map(move |_| {
                let made = make::full(number, dtype, ());
                number = number.wrapping_add(step);
                made
            });
            boxed(asking(numbers))
        })
    }

    /// The rows of a tensor in a file, read `piece` at a time: a file of any size goes through the memory of one piece.
    pub fn file(file: FileTensor, piece: usize) -> Pipeline<Tensor> {
        let piece = piece.max(1);
        let rows = file.ty().shape.first().and_then(Dim::known).unwrap_or(0);
        Pipeline::of(Count::Known(rows as u64), move |pass| {
            let file = file.clone();
            let read = (0..rows.div_ceil(piece)).flat_map(move |number| {
                let (start, end) = (number * piece, ((number + 1) * piece).min(rows));
                let read = file.rows(start..end);
                (0..(end - start) as i64).map(move |row| {
                    let read = read.as_ref().map_err(Clone::clone)?;
                    read.gather(&make::full(row, DType::I64, ())?, 0)
                })
            });
            pass.noted("file", piece.min(rows), Box::new(read))
        })
    }
}
