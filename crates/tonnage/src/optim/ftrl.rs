//! FTRL-Proximal (McMahan and others 2013): follows the regularized leader; with an l1 weights become exactly 0.

use tonnage_core::error::bad_argument;
use tonnage_core::{Result, TensorType};

use super::rule::{ByRows, Next, Now, Rule, Slot, positive};
use crate::ops::Elementwise;
use crate::tensor::Tensor;

/// The value that would have been best for all gradients so far, under penalties.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ftrl {
    /// The power of the sum of squares that the rate falls by; not positive.
    pub power: f64,
    /// What the sum of squares starts at. The slot holds what came since, which starts at 0 as slots do.
    pub start: f64,
    /// The penalty on sizes.
    pub l1: f64,
    /// The penalty on squares.
    pub l2: f64,
    /// A penalty on squares that acts on gradients alone.
    pub shrinkage: f64,
    /// Added to the root of the sum of squares.
    pub beta: f64,
}

impl Default for Ftrl {
    fn default() -> Ftrl {
        Ftrl { power: -0.5, start: 0.1, l1: 0.0, l2: 0.0, shrinkage: 0.0, beta: 0.0 }
    }
}

impl Rule for Ftrl {
    fn name(&self) -> &'static str {
        "ftrl"
    }

    fn slots(&self, ty: &TensorType) -> Vec<Slot> {
        vec![Slot::like("squares", ty), Slot::like("linear", ty)]
    }

    fn by_rows(&self) -> ByRows {
        ByRows::Sums
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn check(&self) -> Result<()> {
        if self.power > 0.0 || !self.power.is_finite() {
            let what = format!("the power of the rate is {}", self.power);
            return Err(bad_argument("ftrl", what, "it is not positive"));
        }
        let all = [
            ("start", self.start),
            ("l1", self.l1),
            ("l2", self.l2),
            ("shrinkage", self.shrinkage),
            ("beta", self.beta),
        ];
        all.into_iter().try_for_each(|(what, value)| positive("ftrl", what, value))
    }

    fn step(&self, now: &Now<'_>) -> Result<Next> {
        let risen = |squares: &Tensor| -> Result<Tensor> {
            let whole = squares.add(self.start)?;
            match self.power == -0.5 {
                true => whole.sqrt(),
                false => whole.pow(-self.power),
            }
        };
        let squares = now.slots[0].add(now.gradient.square()?)?;
        let (before, after) = (risen(&now.slots[0])?, risen(&squares)?);
        let mut gradient = now.gradient.clone();
        if self.shrinkage != 0.0 {
            gradient = now.value.fma(2.0 * self.shrinkage, &gradient)?;
        }
        let pull = after.sub(before)?.div(now.rate)?.mul(now.value)?;
        let linear = now.slots[1].add(gradient)?.sub(pull)?;
        let quadratic = after.add(self.beta)?.div(now.rate)?.add(2.0 * self.l2)?;
        let near = linear.clip(-self.l1, self.l1)?;
        let value = near.sub(&linear)?.div(quadratic)?;
        Ok(Next { value, slots: vec![squares, linear] })
    }
}
