//! Nadam (Dozat 2016): Adam whose mean of gradients looks a step ahead, with a momentum that grows from half of itself.

use tonnage_core::{Result, Shape, TensorType};

use super::adam::Adam;
use super::rule::{ByRows, Next, Now, Rule, Slot, correction, mean};
use crate::ops::Elementwise;
use crate::tensor::Tensor;

/// The base of how momentum nears its last value, as Dozat has it.
const NEARING: f64 = 0.96;

/// Adam with Nesterov's momentum.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Nadam(
    /// The shares that stay, and what is added to the root so that nothing is divided by 0.
    pub Adam,
);

impl Nadam {
    /// The momentum of a step, counted from 1.
    fn momentum(&self, step: &Tensor) -> Result<Tensor> {
        step.mul(NEARING.ln())?.exp()?.mul(-0.5 * self.0.beta1)?.add(self.0.beta1)
    }
}

impl Rule for Nadam {
    fn name(&self) -> &'static str {
        "nadam"
    }

    /// The product of all momenta so far is stored as its logarithm, which starts at 0 as slots do.
    fn slots(&self, ty: &TensorType) -> Vec<Slot> {
        let product = Slot::shaped("log_product", ty, Shape::scalar());
        vec![Slot::like("m", ty), Slot::like("v", ty), product]
    }

    fn by_rows(&self) -> ByRows {
        ByRows::Never
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn check(&self) -> Result<()> {
        self.0.check_as("nadam")
    }

    fn step(&self, now: &Now<'_>) -> Result<Next> {
        let m = mean(&now.slots[0], now.gradient, self.0.beta1)?;
        let v = mean(&now.slots[1], &now.gradient.square()?, self.0.beta2)?;
        let (current, next) = (self.momentum(now.step)?, self.momentum(&now.step.add(1.0)?)?);
        let product = now.slots[2].add((&current).log()?)?;
        let ahead = product.add((&next).log()?)?.expm1()?.neg()?;
        let behind = (&product).expm1()?.neg()?;
        let ahead = next.div(ahead)?;
        let fresh = current.neg()?.add(1.0)?.div(behind)?;
        let root = v.div(correction(now.step, self.0.beta2)?)?.sqrt()?.add(self.0.epsilon)?;
        let step = m.mul(ahead)?.add(now.gradient.mul(fresh)?)?;
        let value = now.value.sub(step.mul(now.rate)?.div(root)?)?;
        Ok(Next { value, slots: vec![m, v, product] })
    }
}
