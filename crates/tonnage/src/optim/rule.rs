//! What tells optimizers apart: the state that each has for a variable, and what it makes of a gradient. All that they
//! share (schedules, decay, clipping, rows, precision) is [`Optimizer`](super::Optimizer)'s.

use tonnage_core::error::bad_argument;
use tonnage_core::{Result, Shape, TensorType};

use crate::tensor::Tensor;

/// How an optimizer makes a step. A user's own takes a dozen lines:
///
/// ```
/// use tonnage::optim::{ByRows, Next, Now, Optimizer, Rule, Slot};
/// use tonnage::{Elementwise, Gradient, Result, TensorType, Variable, tensor};
/// /// Steps of one size, whatever the gradient's.
/// struct Signs;
/// impl Rule for Signs {
///     fn name(&self) -> &'static str { "signs" }
///     fn slots(&self, _: &TensorType) -> Vec<Slot> { Vec::new() }
///     fn by_rows(&self) -> ByRows { ByRows::Sums }
///     fn check(&self) -> Result<()> { Ok(()) }
///     fn step(&self, now: &Now) -> Result<Next> {
///         let value = now.value.sub(now.gradient.sign()?.mul(now.rate)?)?;
///         Ok(Next { value, slots: Vec::new() })
///     }
/// }
/// let w = Variable::new("w", tensor([1.0f32, 1.0])?)?;
/// let optimizer = Optimizer::new(Signs, 0.25);
/// optimizer.apply([&w], &[Gradient::Dense(tensor([3.0f32, -0.1])?)])?;
/// assert_eq!(w.read()?.to_vec::<f32>()?, [0.75, 1.25]);
/// # Ok::<(), tonnage::Error>(())
/// ```
pub trait Rule: Send + Sync {
    /// A word for names of variables and messages.
    fn name(&self) -> &'static str;

    /// The state for a variable that is computed with as this type. Each starts as zeros.
    fn slots(&self, ty: &TensorType) -> Vec<Slot>;

    /// What it makes of a gradient that is a few rows.
    fn by_rows(&self) -> ByRows;

    /// Whether each element of the variable, and of slots that have its shape, becomes what it does whatever the other elements are; and slots of another shape whatever
    /// all of them are. Ranks can then step a block of elements each.
    fn is_elementwise(&self) -> bool {
        false
    }

    /// Refuses numbers that make no sense.
    fn check(&self) -> Result<()>;

    /// What a variable and its slots become.
    fn step(&self, now: &Now<'_>) -> Result<Next>;
}

/// What a rule makes of a gradient that is a few rows, some of which may be the same row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByRows {
    /// It needs the gradient as a whole.
    Never,
    /// A row's step depends on that row alone, and on all that its gradient adds up to: just those rows change.
    Sums,
    /// The step is `-rate * gradient`, whatever the value is, and without state: what is the same row need
    /// not be added up before.
    Terms,
}

/// One tensor of state for each variable, which lasts from step to step.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// A word for it.
    pub name: &'static str,
    /// Its type.
    pub ty: TensorType,
}

impl Slot {
    /// One of the variable's own type.
    pub fn like(name: &'static str, ty: &TensorType) -> Slot {
        Slot { name, ty: ty.clone() }
    }

    /// One of the variable's dtype and another shape.
    pub fn shaped(name: &'static str, ty: &TensorType, shape: Shape) -> Slot {
        Slot { name, ty: TensorType::new(ty.dtype, shape) }
    }
}

/// What a step starts from. Everything is in the dtype that is computed with: the variable's, or f32 where that has
/// 16 bits.
pub struct Now<'a> {
    /// The variable's value; a few rows of it, where the gradient has just those.
    pub value: &'a Tensor,
    /// The gradient, of the same shape.
    pub gradient: &'a Tensor,
    /// The state, in the order of [`Rule::slots`].
    pub slots: &'a [Tensor],
    /// The learning rate, a scalar.
    pub rate: &'a Tensor,
    /// The number of this step, from 1; a scalar.
    pub step: &'a Tensor,
}

/// What a step makes.
pub struct Next {
    /// The variable's new value.
    pub value: Tensor,
    /// The state, in the order of [`Rule::slots`].
    pub slots: Vec<Tensor>,
}

/// Refuses a number of a rule that is not in `[0, 1)`.
pub(super) fn share(rule: &'static str, what: &str, value: f64) -> Result<()> {
    if (0.0..1.0).contains(&value) {
        return Ok(());
    }
    let what = format!("{what} is {value}");
    Err(bad_argument(rule, what, "it is a share: at least 0 and below 1"))
}

/// Refuses a number of a rule that is negative or none.
pub(super) fn positive(rule: &'static str, what: &str, value: f64) -> Result<()> {
    if value >= 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(bad_argument(rule, format!("{what} is {value}"), "use a number that is not negative"))
}

/// `old + (new - old) * (1 - share)`: a running mean.
pub(super) fn mean(old: &Tensor, new: &Tensor, share: f64) -> Result<Tensor> {
    new.sub(old)?.fma(1.0 - share, old)
}

/// `1 - share^step`: what a running mean that started at 0 is to be divided by.
pub(super) fn correction(step: &Tensor, share: f64) -> Result<Tensor> {
    use crate::ops::Elementwise;
    step.mul(share.max(f64::MIN_POSITIVE).ln())?.expm1()?.neg()
}
