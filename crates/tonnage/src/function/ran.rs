//! What a planned call took, beside what was predicted.

use std::fmt;
use std::time::Duration;

use tonnage_core::Bytes;
use tonnage_plan::{Fitted, Plan};
use tonnage_runtime::execute::Measured;

/// What a planned call took, what was done to let it fit, and what that cost.
///
/// ```
/// use tonnage::{DType, Elementwise, Tensor, function, random_normal, zeros};
/// let f = function(|x: Tensor| x.matmul(&x.t()?)?.tanh());
/// f.call((zeros([64, 32])? + random_normal([64, 32], DType::F32)?)?)?;
/// let ran = f.last_run().unwrap();
/// assert_eq!(ran.measured.used, ran.peak);
/// assert_eq!(ran.measured.obtained, ran.obtains);
/// assert!(ran.fitted.is_none()); // nothing had to be done
/// println!("{ran}");
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Ran {
    /// The most that its plan said would be held at once, inputs and all.
    pub peak: Bytes,
    /// What its plan said would be obtained.
    pub obtains: Bytes,
    /// What the executor saw.
    pub measured: Measured,
    /// The time that it took.
    pub seconds: f64,
    /// What was done to take less, and the time that was expected for it; `None` where it was planned without a
    /// look at its size.
    pub fitted: Option<Fitted>,
}

impl Ran {
    pub(super) fn new(plan: &Plan, measured: Measured, time: Duration) -> Ran {
        Ran {
            peak: plan.peak(),
            obtains: plan.obtains(),
            measured,
            seconds: time.as_secs_f64(),
            fitted: plan.fitted,
        }
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measured { used, obtained, .. } = self.measured;
        write!(f, "used {used} of {} predicted, obtained {obtained}", self.peak)?;
        write!(f, ", in {:.2} ms", self.seconds * 1e3)?;
        let Some(fitted) = &self.fitted else { return Ok(()) };
        let (now, free) = (fitted.seconds * 1e3, fitted.unlimited_seconds * 1e3);
        write!(f, "; {fitted}: {now:.2} ms were expected, {free:.2} ms with memory for everything")
    }
}
