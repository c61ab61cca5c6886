//! Lion (Chen et al. 2023): steps of one size, in the direction of a running mean.

use tonnage_core::{Result, TensorType};

use super::rule::{ByRows, Next, Now, Rule, Slot, mean, share};
use crate::ops::Elementwise;

/// `w <- w - rate * sign(beta1 * m + (1 - beta1) * g)`, `m <- beta2 * m + (1 - beta2) * g`: half of Adam's memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lion {
    /// The share of the mean in the step's direction.
    pub beta1: f64,
    /// The share of the old that stays in the mean.
    pub beta2: f64,
}

impl Default for Lion {
    fn default() -> Lion {
        Lion { beta1: 0.9, beta2: 0.99 }
    }
}

impl Rule for Lion {
    fn name(&self) -> &'static str {
        "lion"
    }

    fn slots(&self, ty: &TensorType) -> Vec<Slot> {
        vec![Slot::like("m", ty)]
    }

    fn by_rows(&self) -> ByRows {
        ByRows::Sums
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn check(&self) -> Result<()> {
        share("lion", "beta1", self.beta1)?;
        share("lion", "beta2", self.beta2)
    }

    fn step(&self, now: &Now<'_>) -> Result<Next> {
        let m = &now.slots[0];
        let direction = mean(m, now.gradient, self.beta1)?.sign()?;
        let value = now.value.sub(direction.mul(now.rate)?)?;
        Ok(Next { value, slots: vec![mean(m, now.gradient, self.beta2)?] })
    }
}
