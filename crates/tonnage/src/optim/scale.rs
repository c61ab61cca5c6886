//! Loss scaling: keeps gradients of 16 bits from underflowing to 0.

use tonnage_core::error::bad_argument;
use tonnage_core::{DType, Result, Source};

use super::Optimizer;
use crate::control::cond;
use crate::make;
use crate::ops::Elementwise;
use crate::tape::Gradient;
use crate::tensor::Tensor;
use crate::variable::{Role, Variable};

/// A factor on the loss that finds its size by itself: it doubles after a number of good steps, and halves where a gradient is not
/// finite, in which case the step is left out.
///
/// ```
/// use tonnage::optim::{LossScale, Optimizer};
/// use tonnage::{Elementwise, GradientTape, Variable, tensor};
/// let w = Variable::new("w", tensor([1.0f32])?)?;
/// let (optimizer, scale) = (Optimizer::sgd(0.1), LossScale::new()?);
/// let mut tape = GradientTape::new();
/// let loss = w.read()?.square()?.sum_all()?;
/// let gradient = tape.gradient(&scale.scale(&loss)?, &w)?;
/// let made = scale.apply(&optimizer, [&w], &[gradient])?;
/// assert!(made.scalar::<bool>()?);
/// assert_eq!(w.read()?.to_vec::<f32>()?, [0.8]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LossScale {
    factor: Variable,
    good: Variable,
    every: i64,
}

impl LossScale {
    /// One that starts at 2^15 and doubles after 2,000 good steps.
    #[track_caller]
    pub fn new() -> Result<LossScale> {
        LossScale::made(32768.0, 2000, Source::here())
    }

    /// One that starts at `factor` and doubles after `every` good steps.
    #[track_caller]
    pub fn starting_at(factor: f64, every: u64) -> Result<LossScale> {
        LossScale::made(factor, every, Source::here())
    }

    fn made(factor: f64, every: u64, source: Source) -> Result<LossScale> {
        if !(factor >= 1.0 && factor.is_finite()) || every == 0 {
            let what = format!("a factor of {factor}, doubled after {every} steps");
            let help = "use a factor of at least 1 and at least 1 step";
            return Err(bad_argument("loss_scale", what, help).at(source));
        }
        let variable = |name, value| Variable::new_at(name, value, Role::Optimizer, source);
        Ok(LossScale {
            factor: variable("loss_scale/factor", make::tensor(factor as f32)?)?,
            good: variable("loss_scale/good", make::tensor(0i64)?)?,
            every: every.min(i64::MAX as u64) as i64,
        })
    }

    /// The factor and the number of good steps since it last changed, for checkpoints.
    pub fn variables(&self) -> [Variable; 2] {
        [self.factor.clone(), self.good.clone()]
    }

    /// The loss times the factor: what gradients are to be taken of.
    #[track_caller]
    pub fn scale(&self, loss: &Tensor) -> Result<Tensor> {
        loss.mul(self.factor.read()?.cast(loss.dtype())?)
    }

    /// Makes a step with gradients of a scaled loss, if all of them are finite; whether it was made, as a scalar.
    #[track_caller]
    pub fn apply<'v>(
        &self,
        optimizer: &Optimizer,
        variables: impl IntoIterator<Item = &'v Variable>,
        gradients: &[Gradient],
    ) -> Result<Tensor> {
        let source = Source::here();
        let variables: Vec<&Variable> = variables.into_iter().collect();
        // State is made out here: what is made in a branch is the branch's.
        optimizer.build(variables.iter().copied())?;
        let factor = self.factor.read()?;
        let gradients =
            gradients.iter().map(|g| unscaled(g, &factor)).collect::<Result<Vec<_>>>()?;
        let mut finite = make::full(true, DType::Bool, ())?;
        for gradient in &gradients {
            finite = finite.logical_and(all_finite(gradient)?)?;
        }
        cond(
            &finite,
            || {
                optimizer.apply(variables.iter().copied(), &gradients)?;
                let good = self.good.read()?.add(1i64)?;
                let full = good.greater_equal(self.every)?;
                self.good.assign(&full.where_(&good.zeros_like()?, &good)?)?;
                let doubled = factor.mul(2.0)?.minimum(2f64.powi(24))?;
                self.factor.assign(&full.where_(&doubled, &factor)?)
            },
            || {
                self.good.assign(&make::full(0, DType::I64, ())?)?;
                self.factor.assign(&factor.mul(0.5)?.maximum(1.0)?)
            },
        )
        .map_err(|e| e.at(source))?;
        Ok(finite)
    }
}

/// A gradient of the loss itself, in f32 where it has 16 bits: there the division could lose what the factor saved.
fn unscaled(gradient: &Gradient, factor: &Tensor) -> Result<Gradient> {
    match gradient {
        Gradient::Dense(tensor) => {
            let dtype = super::computed_in(tensor.dtype());
            Ok(Gradient::Dense(tensor.cast(dtype)?.div(factor.cast(dtype)?)?))
        }
        Gradient::Rows(rows) => {
            let one_over = factor.reciprocal()?.cast(rows.ty().dtype)?;
            Ok(Gradient::Rows(rows.scale(&one_over)?))
        }
        Gradient::Unconnected => Ok(Gradient::Unconnected),
    }
}

fn all_finite(gradient: &Gradient) -> Result<Tensor> {
    match gradient {
        Gradient::Dense(tensor) => tensor.is_finite()?.all(crate::Axes::ALL),
        Gradient::Rows(rows) => {
            let mut all = make::full(true, DType::Bool, ())?;
            for (_, values) in rows.parts() {
                all = all.logical_and(values.is_finite()?.all(crate::Axes::ALL)?)?;
            }
            Ok(all)
        }
        Gradient::Unconnected => make::full(true, DType::Bool, ()),
    }
}
