//! Adam (Kingma and Ba 2015), and with decay of its own AdamW (Loshchilov and Hutter 2019).

use tonnage_core::error::bad_argument;
use tonnage_core::{Result, TensorType};

use super::rule::{ByRows, Next, Now, Rule, Slot, correction, mean, positive, share};
use crate::ops::Elementwise;
use crate::tensor::Tensor;

/// Running means of the gradient and of its square, each freed of its start at 0; the step is one over the root of the
/// other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adam {
    /// The share of the old that stays in the mean of gradients.
    pub beta1: f64,
    /// The share of the old that stays in the mean of squares.
    pub beta2: f64,
    /// Added to the root, so that nothing is divided by 0.
    pub epsilon: f64,
    /// Whether `epsilon` is added to the root of the mean of squares before that mean is freed of its start at 0, and not
    /// after: the `epsilon hat` of section 2 of the paper, which Keras has. The first steps are smaller then.
    pub epsilon_hat: bool,
    /// Whether the largest mean of squares so far is what counts (Reddi and others 2018).
    pub amsgrad: bool,
}

impl Default for Adam {
    fn default() -> Adam {
        Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, epsilon_hat: false, amsgrad: false }
    }
}

impl Adam {
    pub(super) fn check_as(&self, rule: &'static str) -> Result<()> {
        let has_mean_of_squares = rule == "adam" || rule == "adam8bit";
        for (name, set) in [
            ("amsgrad", self.amsgrad && rule != "adam"),
            ("epsilon_hat", self.epsilon_hat && !has_mean_of_squares),
        ] {
            if set {
                return Err(bad_argument(
                    rule,
                    format!("{name} with {rule}"),
                    "it is Adam's alone",
                ));
            }
        }
        share(rule, "beta1", self.beta1)?;
        share(rule, "beta2", self.beta2)?;
        positive(rule, "epsilon", self.epsilon)
    }

    /// The new value, from means that are up to date.
    pub(super) fn moved(&self, now: &Now<'_>, m: &Tensor, v: &Tensor) -> Result<Tensor> {
        let squares = correction(now.step, self.beta2)?;
        let rate = now.rate.div(correction(now.step, self.beta1)?)?;
        let (v, rate) = match self.epsilon_hat {
            true => (v.clone(), rate.mul(squares.sqrt()?)?),
            false => (v.div(squares)?, rate),
        };
        let root = v.sqrt()?.add(self.epsilon)?;
        now.value.sub(m.mul(rate)?.div(root)?)
    }
}

impl Rule for Adam {
    fn name(&self) -> &'static str {
        "adam"
    }

    fn slots(&self, ty: &TensorType) -> Vec<Slot> {
        let mut slots = vec![Slot::like("m", ty), Slot::like("v", ty)];
        slots.extend(self.amsgrad.then(|| Slot::like("largest", ty)));
        slots
    }

    fn by_rows(&self) -> ByRows {
        ByRows::Sums
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn check(&self) -> Result<()> {
        self.check_as("adam")
    }

    fn step(&self, now: &Now<'_>) -> Result<Next> {
        let m = mean(&now.slots[0], now.gradient, self.beta1)?;
        let v = mean(&now.slots[1], &now.gradient.square()?, self.beta2)?;
        let [_, _, largest] = now.slots else {
            return Ok(Next { value: self.moved(now, &m, &v)?, slots: vec![m, v] });
        };
        let largest = largest.maximum(&v)?;
        Ok(Next { value: self.moved(now, &m, &largest)?, slots: vec![m, v, largest] })
    }
}
