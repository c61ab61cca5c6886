//! Adagrad (Duchi, Hazan and Singer 2011): steps shrink by all that was ever seen.

use tonnage_core::{Result, TensorType};

use super::rule::{ByRows, Next, Now, Rule, Slot, positive};
use crate::ops::Elementwise;

/// `s <- s + g^2`, `w <- w - rate * g / (sqrt(s) + epsilon)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adagrad {
    /// Added to the root, so that nothing is divided by 0.
    pub epsilon: f64,
    /// Whether it is added under the root instead.
    pub within: bool,
    /// What the sum of squares starts at. The slot holds what came since, which starts at 0 as slots do.
    pub start: f64,
}

impl Default for Adagrad {
    fn default() -> Adagrad {
        Adagrad { epsilon: 1e-10, within: false, start: 0.0 }
    }
}

impl Rule for Adagrad {
    fn name(&self) -> &'static str {
        "adagrad"
    }

    fn slots(&self, ty: &TensorType) -> Vec<Slot> {
        vec![Slot::like("sum", ty)]
    }

    fn by_rows(&self) -> ByRows {
        ByRows::Sums
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn check(&self) -> Result<()> {
        positive("adagrad", "start", self.start)?;
        positive("adagrad", "epsilon", self.epsilon)
    }

    fn step(&self, now: &Now<'_>) -> Result<Next> {
        let sum = now.slots[0].add(now.gradient.square()?)?;
        let whole = if self.start == 0.0 { sum.clone() } else { sum.add(self.start)? };
        let root = match self.within {
            true => whole.add(self.epsilon)?.sqrt()?,
            false => whole.sqrt()?.add(self.epsilon)?,
        };
        let value = now.value.sub(now.gradient.mul(now.rate)?.div(root)?)?;
        Ok(Next { value, slots: vec![sum] })
    }
}
