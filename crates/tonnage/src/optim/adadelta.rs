//! Adadelta (Zeiler 2012): steps whose size follows that of past steps, so that the rate has no unit.

use tonnage_core::{Result, TensorType};

use super::rule::{ByRows, Next, Now, Rule, Slot, mean, positive, share};
use crate::ops::Elementwise;
use crate::tensor::Tensor;

/// The root of the mean square of past steps over that of gradients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adadelta {
    /// The share of the old that stays in the means.
    pub rho: f64,
    /// Added under both roots; it also sets the size of the first steps.
    pub epsilon: f64,
}

impl Default for Adadelta {
    fn default() -> Adadelta {
        Adadelta { rho: 0.95, epsilon: 1e-7 }
    }
}

impl Rule for Adadelta {
    fn name(&self) -> &'static str {
        "adadelta"
    }

    fn slots(&self, ty: &TensorType) -> Vec<Slot> {
        vec![Slot::like("squares", ty), Slot::like("steps", ty)]
    }

    fn by_rows(&self) -> ByRows {
        ByRows::Sums
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn check(&self) -> Result<()> {
        share("adadelta", "rho", self.rho)?;
        positive("adadelta", "epsilon", self.epsilon)
    }

    fn step(&self, now: &Now<'_>) -> Result<Next> {
        let root = |squares: &Tensor| squares.add(self.epsilon)?.sqrt();
        let squares = mean(&now.slots[0], &now.gradient.square()?, self.rho)?;
        let step = now.gradient.mul(root(&now.slots[1])?)?.div(root(&squares)?)?;
        let steps = mean(&now.slots[1], &(&step).square()?, self.rho)?;
        Ok(Next { value: now.value.sub(step.mul(now.rate)?)?, slots: vec![squares, steps] })
    }
}
