//! Batches of all ranks, split by rows: no row is on two ranks, and none is lost.

use tonnage_core::error::bad_argument;
use tonnage_core::{Dim, Result};

use super::pick::boxed;
use super::pipeline::Pipeline;
use crate::strings::Value;
use crate::tree::{Tree, values};
use crate::world::part_of;

impl<T: Tree + Send + Sync + 'static> Pipeline<T> {
    /// Of each batch the rows of one of several ranks. All ranks have as many batches; where a batch has fewer rows than there are ranks, that of some has no row.
    ///
    /// ```
    /// use tonnage::data::Pipeline;
    /// let batches = Pipeline::range(0, Some(5), 1).batch(4);
    /// let second = batches.part_of_batches(1, 2).iter();
    /// let rows: Vec<Vec<i64>> = second.map(|batch| batch?.to_vec()).collect::<Result<_, _>>()?;
    /// assert_eq!(rows, [vec![2, 3], vec![]]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// An element whose tensors have no rows, or different numbers of them, is an error.
    #[must_use]
    pub fn part_of_batches(self, rank: usize, ranks: usize) -> Pipeline<T> {
        Pipeline::of(self.count(), move |pass| {
            boxed(self.elements(pass).map(move |batch| part(batch?, rank, ranks)))
        })
    }

    /// The parts of all ranks, one after another: each batch is cut into as many.
    #[must_use]
    pub fn parts_of_batches(self, ranks: usize) -> Pipeline<T> {
        let count = self.count().map(|count| count.saturating_mul(ranks as u64));
        Pipeline::of(count, move |pass| {
            boxed(self.elements(pass).flat_map(move |batch| {
                let batch = batch.map(std::sync::Arc::new);
                (0..ranks).map(move |rank| match &batch {
                    Ok(batch) => part(batch.share(), rank, ranks),
                    Err(error) => Err(error.clone()),
                })
            }))
        })
    }
}

fn part<T: Tree>(batch: T, rank: usize, ranks: usize) -> Result<T> {
    let all = values(&batch);
    let rows = |value: &Value| value.shape().first().and_then(Dim::known);
    let first = all.first().and_then(rows);
    let Some(first) = first.filter(|first| all.iter().all(|t| rows(t) == Some(*first))) else {
        let types: Vec<String> = all.iter().map(Value::type_text).collect();
        let what = format!("an element of {}", types.join(", "));
        return Err(bad_argument(
            "part_of_batches",
            what,
            "give batches: one first length for all",
        ));
    };
    let own = part_of(first, rank, ranks);
    let own = [(own.start as i64..own.end as i64).into()];
    batch.map_values(&mut |value| value.each(|tensor| tensor.slice(&own)))
}
