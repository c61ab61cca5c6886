//! Adamax (Kingma and Ba 2015): Adam with the largest of past gradients in place of the root of their mean square.

use tonnage_core::{Result, TensorType};

use super::adam::Adam;
use super::rule::{ByRows, Next, Now, Rule, Slot, correction, mean};
use crate::ops::Elementwise;

/// A running mean of the gradient over the largest of past ones, which fades.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Adamax(
    /// The shares that stay, and what is added to the largest so that nothing is divided by 0.
    pub Adam,
);

impl Rule for Adamax {
    fn name(&self) -> &'static str {
        "adamax"
    }

    fn slots(&self, ty: &TensorType) -> Vec<Slot> {
        vec![Slot::like("m", ty), Slot::like("largest", ty)]
    }

    fn by_rows(&self) -> ByRows {
        ByRows::Sums
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn check(&self) -> Result<()> {
        self.0.check_as("adamax")
    }

    fn step(&self, now: &Now<'_>) -> Result<Next> {
        let m = mean(&now.slots[0], now.gradient, self.0.beta1)?;
        let largest = now.slots[1].mul(self.0.beta2)?.maximum(now.gradient.abs()?)?;
        let rate = now.rate.div(correction(now.step, self.0.beta1)?)?;
        let step = m.mul(rate)?.div(largest.add(self.0.epsilon)?)?;
        Ok(Next { value: now.value.sub(step)?, slots: vec![m, largest] })
    }
}
