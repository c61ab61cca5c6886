//! Data to learn from: rows of tensors, in batches and in any order; and pipelines of elements as they come.

mod batch;
mod count;
mod device;
mod feed;
mod keep;
mod merge;
mod parts;
mod pass;
mod pick;
mod pipeline;
mod rows;
mod shuffle;
mod threads;
mod transform;

pub use batch::{PAD_TO_SHAPE, Padding};
pub use count::Count;
pub use feed::{Feed, Pairs, Share};
pub use pass::Holds;
pub(crate) use pass::total;
pub use pipeline::{Elements, Pipeline};
pub use shuffle::{Draws, Shuffle};

use tonnage_core::error::bad_argument;
use tonnage_core::{Dim, Result, Source};

use crate::make;
use crate::random::RandomKey;
use crate::tensor::Tensor;
use crate::tree::{Tree, values};

/// Tensors whose rows belong together: images and their labels, say.
///
/// ```
/// use tonnage::data::Dataset;
/// use tonnage::{Tensor, tensor};
/// let data = Dataset::of((tensor([[1.0f32], [2.0], [3.0]])?, tensor([10, 20, 30])?))?;
/// let batches: Vec<(Tensor, Tensor)> = data.batches(2).collect::<Result<_, _>>()?;
/// assert_eq!(batches[1].1.to_vec::<i32>()?, [30]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Dataset<T> {
    data: T,
    rows: usize,
}

impl<T: Tree> Dataset<T> {
    /// One of tensors with as many rows each.
    #[track_caller]
    pub fn of(data: T) -> Result<Dataset<T>> {
        let source = Source::here();
        let mut rows = None;
        let mut wrong: Option<String> = None;
        for value in values(&data) {
            let own = value.shape().first().and_then(Dim::known);
            match (own, rows) {
                (Some(own), None) => rows = Some(own),
                (Some(own), Some(rows)) if own == rows => {}
                _ if wrong.is_none() => wrong = Some(value.type_text()),
                _ => {}
            }
        }
        match (rows, wrong) {
            (Some(rows), None) => Ok(Dataset { data, rows }),
            (_, wrong) => {
                let what = match (wrong, rows) {
                    (Some(ty), Some(rows)) => format!("{ty} among tensors of {rows} rows"),
                    (Some(ty), None) => format!("{ty} has no rows"),
                    _ => "there is no tensor".into(),
                };
                let help = "give tensors of one first length";
                Err(bad_argument("dataset", what, help).at(source))
            }
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The rows of these numbers, in bytes of their own.
    pub fn rows(&self, numbers: &Tensor) -> Result<T> {
        self.data.share().map_values(&mut |value| value.each(|tensor| tensor.gather(numbers, 0)))
    }

    /// Everything.
    pub fn whole(&self) -> &T {
        &self.data
    }

    /// Two of it: every `n`th row is in the second, the others in the first.
    ///
    /// # Errors
    /// Where `n` is 0.
    #[track_caller]
    pub fn hold_out(&self, n: usize) -> Result<(Dataset<T>, Dataset<T>)> {
        if n == 0 {
            let what = "every 0th row is to be held out".to_string();
            return Err(bad_argument("hold_out", what, "use at least 1").at(Source::here()));
        }
        let part = |held: bool| -> Result<Dataset<T>> {
            let rows = (0..self.rows).filter(|i| (i % n == n - 1) == held);
            let numbers: Vec<i64> = rows.map(|i| i as i64).collect();
            let rows = numbers.len();
            Ok(Dataset { data: self.rows(&make::tensor(numbers)?)?, rows })
        };
        Ok((part(false)?, part(true)?))
    }

    /// Batches of `size` rows, in order; the last has what is left.
    pub fn batches(&self, size: usize) -> Batches<'_, T> {
        Batches { data: self, size, order: None, at: 0, whole: false }
    }
}

/// Batches of rows, one after another.
#[derive(Debug)]
pub struct Batches<'d, T> {
    data: &'d Dataset<T>,
    size: usize,
    order: Option<Tensor>,
    at: usize,
    whole: bool,
}

impl<T: Tree> Batches<'_, T> {
    /// Rows in the random order of a key; the same key gives the same order.
    pub fn shuffled(mut self, key: RandomKey) -> Result<Self> {
        self.order = Some(key.permutation(self.data.rows)?);
        Ok(self)
    }

    /// Leaves out a last batch that is smaller than the others.
    #[must_use]
    pub fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// Goes on behind `batches` batches.
    #[must_use]
    pub fn after(mut self, batches: usize) -> Self {
        self.at = batches.saturating_mul(self.size);
        self
    }

    /// The batch of that number, and none behind the last.
    fn nth_of_all(&mut self, number: usize) -> Option<Result<T>> {
        self.at = number.saturating_mul(self.size);
        self.next()
    }

    fn batch(&self, start: usize, stop: usize) -> Result<T> {
        let numbers = match &self.order {
            Some(order) => order.slice(&[(start as i64..stop as i64).into()])?,
            None => make::range(start as i64, stop as i64, 1)?,
        };
        self.data.rows(&numbers)
    }
}

impl<T: Tree> Iterator for Batches<'_, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let start = self.at;
        let stop = start.saturating_add(self.size).min(self.data.rows);
        if start >= stop || (self.whole && stop - start < self.size) {
            return None;
        }
        self.at = stop;
        Some(self.batch(start, stop))
    }
}
