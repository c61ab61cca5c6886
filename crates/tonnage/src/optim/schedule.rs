//! Learning rates that depend on the step.

use tonnage_core::error::bad_argument;
use tonnage_core::{DType, Result};

use crate::make;
use crate::ops::Elementwise;
use crate::tensor::Tensor;

/// The learning rate at each step, counted from 0. A plain number is a schedule.
///
/// ```
/// use tonnage::optim::Schedule;
/// let schedule = Schedule::Cosine { start: 0.1, end: 0.0, steps: 100 }.warm_up(10);
/// assert!((schedule.rate(0)? - 0.01).abs() < 1e-12);
/// assert!((schedule.rate(10)? - 0.1).abs() < 1e-12);
/// assert!((schedule.rate(60)? - 0.05).abs() < 1e-12);
/// assert_eq!(schedule.rate(1000)?, 0.0);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Schedule {
    /// Always the same; [`Optimizer::set_rate`](super::Optimizer::set_rate) changes it.
    Constant(f64),
    /// Times `factor` after every `every` steps.
    Step {
        /// The first rate.
        start: f64,
        /// Steps of one rate.
        every: u64,
        /// What the rate is multiplied by then.
        factor: f64,
    },
    /// Times `factor` in the course of every so many steps.
    Exponential {
        /// The first rate.
        start: f64,
        /// Steps in which `factor` is reached.
        every: u64,
        /// What the rate is multiplied by in that time.
        factor: f64,
    },
    /// Half a wave of the cosine from one rate to another, which stays.
    Cosine {
        /// The first rate.
        start: f64,
        /// The last rate.
        end: f64,
        /// Steps between them.
        steps: u64,
    },
    /// Straight from one rate to another, which stays.
    Linear {
        /// The first rate.
        start: f64,
        /// The last rate.
        end: f64,
        /// Steps between them.
        steps: u64,
    },
    /// Straight up from 0 to the first rate of another schedule, which then begins.
    WarmUp {
        /// Steps on the way up.
        steps: u64,
        /// What comes then.
        then: Box<Schedule>,
    },
}

impl From<f64> for Schedule {
    fn from(rate: f64) -> Schedule {
        Schedule::Constant(rate)
    }
}

impl Schedule {
    /// This schedule after `steps` steps of linear warm-up to its first rate.
    pub fn warm_up(self, steps: u64) -> Schedule {
        Schedule::WarmUp { steps, then: Box::new(self) }
    }

    /// The rate at a step.
    pub fn rate(&self, step: u64) -> Result<f64> {
        self.check()?;
        self.at(&make::tensor(step as f64)?)?.scalar()
    }

    /// The rate at a step that is a scalar tensor of f64.
    pub(super) fn at(&self, step: &Tensor) -> Result<Tensor> {
        let done = |steps: u64| step.div(steps as f64)?.minimum(1.0);
        match self {
            Schedule::Constant(rate) => make::full(*rate, DType::F64, ()),
            Schedule::Step { start, every, factor } => {
                power(*factor, step.div(*every as f64)?.floor()?)?.mul(*start)
            }
            Schedule::Exponential { start, every, factor } => {
                power(*factor, step.div(*every as f64)?)?.mul(*start)
            }
            Schedule::Cosine { start, end, steps } => {
                let wave = done(*steps)?.mul(std::f64::consts::PI)?.cos()?;
                wave.add(1.0)?.mul((start - end) / 2.0)?.add(*end)
            }
            Schedule::Linear { start, end, steps } => done(*steps)?.mul(end - start)?.add(*start),
            Schedule::WarmUp { steps, then } => {
                let up = step.add(1.0)?.div(*steps as f64)?.minimum(1.0)?;
                then.at(&step.sub(*steps as f64)?.maximum(0.0)?)?.mul(up)
            }
        }
    }

    /// Refuses what gives no rate.
    pub(super) fn check(&self) -> Result<()> {
        let (rates, steps) = match self {
            Schedule::Constant(rate) => ([*rate, 0.0], 1),
            Schedule::Step { start, every, factor }
            | Schedule::Exponential { start, every, factor } => ([*start, *factor], *every),
            Schedule::Cosine { start, end, steps } | Schedule::Linear { start, end, steps } => {
                ([*start, *end], *steps)
            }
            Schedule::WarmUp { steps, then } => {
                then.check()?;
                ([0.0, 0.0], *steps)
            }
        };
        if let Some(bad) = rates.iter().find(|rate| !(**rate >= 0.0 && rate.is_finite())) {
            let what = format!("{bad} in {self:?}");
            return Err(bad_argument("schedule", what, "use numbers that are not negative"));
        }
        if steps == 0 {
            let what = format!("0 steps in {self:?}");
            return Err(bad_argument("schedule", what, "use at least 1"));
        }
        Ok(())
    }
}

/// A number to the power of a tensor; 0 to the power of 0 is 1.
fn power(factor: f64, exponent: Tensor) -> Result<Tensor> {
    make::full(factor, DType::F64, ())?.pow(exponent)
}
