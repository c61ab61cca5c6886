//! Gradients of all ranks, added up to one: in the bits of one process that goes through their batches one after another.

use std::sync::PoisonError;

use tonnage_core::{Dim, Result};

use super::sharding::Shards;
use super::sums::{GradientSum, GradientSums, touch, touched_rows};
use crate::optim::SummedGradient;
use crate::tape::{Gradient, IndexedSlices};
use crate::tensor::Tensor;
use crate::variable::Variable;

impl GradientSums {
    /// The sums over all ranks of what each has. The last variable comes first, as the backward pass comes to its gradient first: each sum is made,
    /// and applied, as soon as it can be.
    pub fn over_ranks(
        &self,
        variables: &[Variable],
        own: Vec<Gradient>,
        shards: &Shards,
    ) -> Result<Vec<SummedGradient>> {
        if self.world.size() == 1 {
            return Ok(own.into_iter().map(SummedGradient::Whole).collect());
        }
        let mut sums = Vec::with_capacity(own.len());
        for (i, (variable, own)) in variables.iter().zip(own).enumerate().rev() {
            sums.push(match own {
                Gradient::Dense(own) if shards.cuts_gradient(i) => {
                    SummedGradient::Block(own.reduce_blocks(&self.world)?, variable.ty().shape)
                }
                Gradient::Unconnected => SummedGradient::Whole(Gradient::Unconnected),
                Gradient::Dense(own) => {
                    SummedGradient::Whole(Gradient::Dense(own.all_reduce(&self.world)?))
                }
                Gradient::Rows(rows) => {
                    SummedGradient::Whole(self.rows_of_ranks(i, variable, &rows)?)
                }
            });
        }
        sums.reverse();
        Ok(sums)
    }

    /// Rows of all ranks, which stay rows: as they are where they are few, otherwise added up in a table; the rules of a step in parts.
    fn rows_of_ranks(
        &self,
        number: usize,
        variable: &Variable,
        rows: &IndexedSlices,
    ) -> Result<Gradient> {
        let Some((indices, values)) = rows.flat()? else { return Ok(Gradient::Unconnected) };
        let Some(count) = indices.shape().first().and_then(Dim::known) else {
            return Err(self.changed(variable));
        };
        let all = [indices.all_gather(&self.world)?, values.all_gather(&self.world)?];
        let of = |rank: usize| -> Result<(Tensor, Tensor)> {
            let part = [((rank * count) as i64..((rank + 1) * count) as i64).into()];
            Ok((all[0].slice(&part)?, all[1].slice(&part)?))
        };
        let ranks = self.world.size();
        let mut tables = self.of_ranks.lock().unwrap_or_else(PoisonError::into_inner);
        if let std::collections::btree_map::Entry::Vacant(empty) = tables.entry(number) {
            empty.insert(self.begun(variable, Some(&(indices, values)))?);
        }
        match tables.get(&number) {
            Some(GradientSum::Touched { sum, touched }) => {
                for rank in 0..ranks {
                    let (indices, values) = of(rank)?;
                    touch(sum, touched, &indices, &values)?;
                }
                Ok(Gradient::Rows(touched_rows(sum, touched)?))
            }
            Some(GradientSum::Rows(_)) => {
                // The last part of a step comes first, with the earlier ones behind it.
                let order = std::iter::once(ranks - 1).chain(0..ranks - 1);
                let parts = order.map(of).collect::<Result<Vec<_>>>()?;
                Ok(Gradient::Rows(IndexedSlices::from_parts(variable.ty(), parts)))
            }
            Some(GradientSum::Whole(_)) | None => Err(self.changed(variable)),
        }
    }
}
