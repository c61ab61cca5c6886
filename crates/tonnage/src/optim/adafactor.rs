//! Adafactor (Shazeer and Stern 2018): the mean of squares of a matrix as a column times a row.

use tonnage_core::{Result, Shape, TensorType};

use super::rule::{ByRows, Next, Now, Rule, Slot, positive, share};
use crate::ops::Elementwise;
use crate::tensor::Tensor;

/// Remembers `rows + columns` numbers of a matrix instead of `rows * columns`; the last two axes of more, all of a
/// vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adafactor {
    /// At step t, a share of `1 - t^decay` of the old stays in the mean of squares; negative.
    pub decay: f64,
    /// The root of the mean square of a step is at most this.
    pub clip: f64,
    /// Whether the rate is at most one over the root of the step's number, times the root of the variable's mean square.
    pub relative: bool,
    /// The least root of the variable's mean square that a relative rate is taken of.
    pub least: f64,
}

impl Default for Adafactor {
    fn default() -> Adafactor {
        Adafactor { decay: -0.8, clip: 1.0, relative: true, least: 1e-3 }
    }
}

/// Added to squares, so that no mean of them is 0.
const TINY: f64 = 1e-30;

impl Rule for Adafactor {
    fn name(&self) -> &'static str {
        "adafactor"
    }

    fn slots(&self, ty: &TensorType) -> Vec<Slot> {
        let rank = ty.shape.rank();
        if rank < 2 {
            return vec![Slot::like("squares", ty)];
        }
        let with_one = |axis: usize| {
            let dims = ty.shape.iter().enumerate();
            let dims = dims.map(|(i, dim)| if i == axis { 1usize.into() } else { dim.clone() });
            dims.collect::<Shape>()
        };
        vec![
            Slot::shaped("rows", ty, with_one(rank - 1)),
            Slot::shaped("columns", ty, with_one(rank - 2)),
        ]
    }

    fn by_rows(&self) -> ByRows {
        ByRows::Never
    }

    fn check(&self) -> Result<()> {
        share("adafactor", "1 + decay", 1.0 + self.decay)?;
        positive("adafactor", "clip", self.clip)?;
        positive("adafactor", "least", self.least)
    }

    fn step(&self, now: &Now<'_>) -> Result<Next> {
        let new_share = now.step.pow(self.decay)?;
        let blend = |old: &Tensor, new: Tensor| new.sub(old)?.fma(&new_share, old);
        let squares = now.gradient.square()?;
        let (scaled, slots) = match now.slots {
            [rows, columns] => {
                let rows = blend(rows, squares.mean_keep([-1])?)?;
                let columns = blend(columns, squares.mean_keep([-2])?)?;
                let total = rows.mean_keep([-2])?.maximum(TINY)?;
                let guess = rows.div(total)?.mul(&columns)?;
                (guess, vec![rows, columns])
            }
            _ => {
                let whole = blend(&now.slots[0], squares)?;
                (whole.clone(), vec![whole])
            }
        };
        let step = now.gradient.mul(scaled.maximum(TINY)?.rsqrt()?)?;
        let step = step.div(root_mean_square(&step)?.div(self.clip)?.maximum(1.0)?)?;
        let mut rate = now.rate.clone();
        if self.relative {
            let size = root_mean_square(now.value)?.maximum(self.least)?;
            rate = rate.minimum(now.step.rsqrt()?)?.mul(size)?;
        }
        Ok(Next { value: now.value.sub(step.mul(rate)?)?, slots })
    }
}

fn root_mean_square(x: &Tensor) -> Result<Tensor> {
    x.square()?.mean_all()?.sqrt()
}
