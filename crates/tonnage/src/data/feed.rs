//! What training takes its batches from: a [`Dataset`], whose rows it cuts and shuffles itself, or a [`Pipeline`] of batches.

use tonnage_core::error::bad_argument;
use tonnage_core::{Bytes, Dim, Result};

use super::{Dataset, Holds, Pipeline};
use crate::random::RandomKey;
use crate::tensor::Tensor;

/// A batch: what goes in, and what should come out.
type Batch = (Tensor, Tensor);

/// Batches, one after another.
pub type Pairs<'d> = Box<dyn Iterator<Item = Result<Batch>> + 'd>;

/// Batches for [`Fit`](crate::train::Fit), the same ones for the same seed and epoch: that is what lets training go on from a checkpoint to the same bits.
///
/// ```
/// use tonnage::data::{Dataset, Pipeline};
/// use tonnage::nn::Dense;
/// use tonnage::optim::Optimizer;
/// use tonnage::train::{Fit, Go};
/// use tonnage::{DType, Elementwise, RandomKey, Tensor, random_normal};
/// let x = random_normal([256, 4], DType::F32)?;
/// let data = Dataset::of((x.clone(), x.sum(1)?.reshape([256, 1])?))?;
/// let batches = Pipeline::rows(&data).shuffle(64, RandomKey::new(1)).batch(32).prefetch(2);
/// let (model, optimizer) = (Dense::new(1), Optimizer::adam(0.05));
/// let loss = |said: &Tensor, truth: &Tensor| said.squared_difference(truth);
/// let history = Fit::new(10, 32).run(&model, &optimizer, &batches, loss, |_| Go::On)?;
/// assert_eq!(history.predicted, history.measured);
/// assert!(history.losses[9] < history.losses[0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
pub trait Feed {
    /// Whole batches of `size` rows in one time through the data, where that is known before.
    fn batch_count(&self, size: usize) -> Option<u64>;

    /// A first batch of `size` rows, if there is one, to plan with; and what is held at most beside the batch that is
    /// learned from.
    fn look(&self, size: usize) -> Result<(Option<Batch>, Vec<Holds>)>;

    /// The batches of one time through the data, behind the first `after`. One at the end that is smaller is left out.
    fn epoch(&self, size: usize, seed: u64, epoch: u64, after: u64) -> Result<Pairs<'_>>;

    /// Those of them that are in a share, behind the first `after` of all. Unless it is written otherwise, all are made, and those of others dropped.
    fn epoch_of(
        &self,
        share: Share,
        size: usize,
        seed: u64,
        epoch: u64,
        after: u64,
    ) -> Result<Pairs<'_>> {
        let all = self.epoch(size, seed, epoch, after)?;
        Ok(Box::new((after..).zip(all).filter(move |(i, _)| share.has(*i)).map(|(_, batch)| batch)))
    }
}

/// Which batches are one rank's: of every step its own few, in a row. No batch is in two shares, and every batch is in one.
///
/// ```
/// use tonnage::data::Share;
/// let second_of_three = Share { rank: 1, ranks: 3, batches: 2 };
/// let own: Vec<u64> = (0..12).filter(|i| second_of_three.has(*i)).collect();
/// assert_eq!(own, [2, 3, 8, 9]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Whose.
    pub rank: u64,
    /// How many ranks there are.
    pub ranks: u64,
    /// Batches of a step on each rank.
    pub batches: u64,
}

impl Share {
    /// Everything: there is one rank.
    pub const ALL: Share = Share { rank: 0, ranks: 1, batches: 1 };

    /// Whether the batch of that number is in it.
    pub fn has(&self, batch: u64) -> bool {
        batch / self.batches.max(1) % self.ranks.max(1) == self.rank
    }
}

/// Rows in an order that is drawn anew for each time through them.
impl Feed for Dataset<Batch> {
    fn batch_count(&self, size: usize) -> Option<u64> {
        Some(self.len().checked_div(size).unwrap_or(0) as u64)
    }

    fn look(&self, size: usize) -> Result<(Option<Batch>, Vec<Holds>)> {
        // The order: a number for each row.
        let bytes = Bytes::of(self.len().saturating_mul(8)).rounded();
        let holds = Holds { step: "order", elements: self.len(), bytes };
        let first = Dataset::batches(self, size).whole().next().transpose()?;
        Ok((first, vec![holds]))
    }

    fn epoch(&self, size: usize, seed: u64, epoch: u64, after: u64) -> Result<Pairs<'_>> {
        self.epoch_of(Share::ALL, size, seed, epoch, after)
    }

    /// Rows of other ranks are not gathered.
    fn epoch_of(
        &self,
        share: Share,
        size: usize,
        seed: u64,
        epoch: u64,
        after: u64,
    ) -> Result<Pairs<'_>> {
        let key = RandomKey::new(seed ^ epoch.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut batches = Dataset::batches(self, size).whole().shuffled(key)?;
        let own = (after..self.batch_count(size).unwrap_or(0)).filter(move |i| share.has(*i));
        Ok(Box::new(own.filter_map(move |i| batches.nth_of_all(usize::try_from(i).ok()?))))
    }
}

/// Batches as they come. Their order is the pipeline's own, whatever the seed: each epoch is the [`Pipeline::pass`] of its number. Those before the point where
/// training goes on are made again and dropped.
impl Feed for Pipeline<Batch> {
    fn batch_count(&self, _: usize) -> Option<u64> {
        None
    }

    fn look(&self, size: usize) -> Result<(Option<Batch>, Vec<Holds>)> {
        let (first, holds) = Pipeline::look(self)?;
        if let Some(batch) = &first
            && rows(batch) != Some(size)
        {
            return Err(uneven(batch, size));
        }
        Ok((first, holds))
    }

    fn epoch(&self, size: usize, _: u64, epoch: u64, after: u64) -> Result<Pairs<'_>> {
        let mut all = self.pass(epoch);
        for _ in 0..after {
            if all.next().transpose()?.is_none() {
                break;
            }
        }
        Ok(Box::new(std::iter::from_fn(move || match all.next()? {
            Ok(batch) if rows(&batch) == Some(size) => Some(Ok(batch)),
            Ok(batch) if rows(&batch).is_some_and(|rows| rows < size) => {
                // At the end it is what is left.
                all.next().map(|_| Err(uneven(&batch, size)))
            }
            Ok(batch) => Some(Err(uneven(&batch, size))),
            Err(error) => Some(Err(error)),
        })))
    }
}

fn rows((x, y): &Batch) -> Option<usize> {
    let rows = |tensor: &Tensor| tensor.shape().first().and_then(Dim::known);
    rows(x).filter(|n| rows(y) == Some(*n))
}

fn uneven((x, y): &Batch, size: usize) -> tonnage_core::Error {
    let what =
        format!("a batch of {} and {} comes where {size} rows are learned from", x.ty(), y.ty());
    let help = "let the pipeline give batches of as many rows as `Fit::new` was told: only the last may have fewer";
    bad_argument("fit", what, help)
}
