//! RMSprop (Tieleman and Hinton 2012): the gradient over the root of the mean of its square.

use tonnage_core::{Result, TensorType};

use super::rule::{ByRows, Next, Now, Rule, Slot, mean, positive, share};
use crate::ops::Elementwise;

/// `v <- rho * v + (1 - rho) * g^2`, `w <- w - rate * g / (sqrt(v) + epsilon)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RmsProp {
    /// The share of the old that stays in the means.
    pub rho: f64,
    /// The share of the last step that is added to this one.
    pub momentum: f64,
    /// Whether the square of the mean is taken off the mean of the square: the variance is left.
    pub centered: bool,
    /// Added to the root, so that nothing is divided by 0.
    pub epsilon: f64,
    /// Whether it is added under the root instead.
    pub within: bool,
}

impl Default for RmsProp {
    fn default() -> RmsProp {
        RmsProp { rho: 0.9, momentum: 0.0, centered: false, epsilon: 1e-7, within: false }
    }
}

impl Rule for RmsProp {
    fn name(&self) -> &'static str {
        "rmsprop"
    }

    fn slots(&self, ty: &TensorType) -> Vec<Slot> {
        let mut slots = vec![Slot::like("squares", ty)];
        slots.extend(self.centered.then(|| Slot::like("mean", ty)));
        slots.extend((self.momentum != 0.0).then(|| Slot::like("momentum", ty)));
        slots
    }

    fn by_rows(&self) -> ByRows {
        ByRows::Sums
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn check(&self) -> Result<()> {
        share("rmsprop", "rho", self.rho)?;
        share("rmsprop", "momentum", self.momentum)?;
        positive("rmsprop", "epsilon", self.epsilon)
    }

    fn step(&self, now: &Now<'_>) -> Result<Next> {
        let squares = mean(&now.slots[0], &now.gradient.square()?, self.rho)?;
        let mut slots = vec![squares.clone()];
        let mut spread = squares;
        if self.centered {
            let center = mean(&now.slots[1], now.gradient, self.rho)?;
            spread = spread.sub((&center).square()?)?;
            slots.push(center);
        }
        let root = match self.within {
            true => spread.add(self.epsilon)?.sqrt()?,
            false => spread.sqrt()?.add(self.epsilon)?,
        };
        let mut step = now.gradient.div(root)?;
        if self.momentum != 0.0 {
            step = now.slots[slots.len()].fma(self.momentum, &step)?;
            slots.push(step.clone());
        }
        Ok(Next { value: now.value.sub(step.mul(now.rate)?)?, slots })
    }
}
