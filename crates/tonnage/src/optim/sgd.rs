//! Steps against the gradient, with or without momentum.

use tonnage_core::{Result, TensorType};

use super::rule::{ByRows, Next, Now, Rule, Slot, share};

/// `v <- momentum * v + g`, `w <- w - rate * v`; with `nesterov`, `w <- w - rate * (g + momentum * v)`. Without momentum
/// there is no state.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sgd {
    /// The share of the last step that is added to this one.
    pub momentum: f64,
    /// Whether the gradient is taken as if that share had been made already.
    pub nesterov: bool,
}

impl Rule for Sgd {
    fn name(&self) -> &'static str {
        "sgd"
    }

    fn slots(&self, ty: &TensorType) -> Vec<Slot> {
        if self.momentum == 0.0 { Vec::new() } else { vec![Slot::like("momentum", ty)] }
    }

    fn by_rows(&self) -> ByRows {
        if self.momentum == 0.0 { ByRows::Terms } else { ByRows::Sums }
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn check(&self) -> Result<()> {
        share("sgd", "momentum", self.momentum)
    }

    fn step(&self, now: &Now<'_>) -> Result<Next> {
        let [slot] = now.slots else {
            let value = now.value.sub(now.gradient.mul(now.rate)?)?;
            return Ok(Next { value, slots: Vec::new() });
        };
        let speed = slot.fma(self.momentum, now.gradient)?;
        let step = match self.nesterov {
            true => speed.fma(self.momentum, now.gradient)?,
            false => speed.clone(),
        };
        Ok(Next { value: now.value.sub(step.mul(now.rate)?)?, slots: vec![speed] })
    }
}
