//! Which axes, and which part of an axis, as users write them.

use smallvec::{SmallVec, smallvec};
use tonnage_core::attrs::AxisSlice;
use tonnage_core::error::bad_argument;
use tonnage_core::{Dim, Result};

/// Axes to reduce over: all of them, one, or several; negative ones count from the back.
#[derive(Debug, Clone)]
pub struct Axes(pub(crate) Option<SmallVec<[i64; 4]>>);

impl Axes {
    /// All axes.
    pub const ALL: Axes = Axes(None);
}

impl From<i64> for Axes {
    fn from(axis: i64) -> Axes {
        Axes(Some(smallvec![axis]))
    }
}

impl<const N: usize> From<[i64; N]> for Axes {
    fn from(axes: [i64; N]) -> Axes {
        Axes(Some(axes.into_iter().collect()))
    }
}

impl From<&[i64]> for Axes {
    fn from(axes: &[i64]) -> Axes {
        Axes(Some(axes.into()))
    }
}

/// A part of one axis, as `start..stop` by `step`, with the rules of Python: negative positions count
/// from the back, and positions outside are moved to the end.
///
/// ```
/// use tonnage::{Part, range};
/// let x = range(0i64, 10, 1)?;
/// assert_eq!(x.slice(&[Part::from(2..8).by(2)])?.to_vec::<i64>()?, [2, 4, 6]);
/// assert_eq!(x.slice(&[Part::ALL.by(-3)])?.to_vec::<i64>()?, [9, 6, 3, 0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Part {
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
}

impl Part {
    /// All of the axis.
    pub const ALL: Part = Part { start: None, stop: None, step: 1 };

    /// The same by that step; a negative one walks backwards.
    #[must_use]
    pub fn by(self, step: i64) -> Part {
        Part { step, ..self }
    }

    /// Where it begins and ends on an axis of that length, where it goes step by step.
    #[doc(hidden)]
    pub fn within(&self, len: usize) -> Option<(usize, usize)> {
        let slice = self.resolve("slice", &Dim::Known(len)).ok()?.known()?;
        (slice.step == 1).then_some((slice.start, slice.start + slice.len))
    }

    pub(crate) fn resolve(&self, op: &'static str, dim: &Dim) -> Result<AxisSlice> {
        if self.start.is_none() && self.stop.is_none() && self.step == 1 {
            return Ok(AxisSlice::all(dim.clone()));
        }
        if self.step == 0 {
            return Err(bad_argument(op, "a step of 0", "use 1, -1 or more"));
        }
        let Some(n) = dim.known() else { return Ok(self.open(dim)) };
        let (n, step) = (n as i64, self.step);
        let from_front = |at: i64| if at < 0 { at.saturating_add(n) } else { at };
        let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
        let start =
            self.start.map_or(if step > 0 { 0 } else { n - 1 }, from_front).clamp(low, high);
        let stop = self.stop.map_or(if step > 0 { n } else { -1 }, from_front).clamp(low, high);
        let span = if step > 0 { stop - start } else { start - stop };
        let len = span.max(0).unsigned_abs().div_ceil(step.unsigned_abs()) as usize;
        let start = if len == 0 { 0 } else { start as usize };
        // Nothing is that far away from a single element.
        let step = if len <= 1 { 1 } else { step };
        Ok(AxisSlice { start: start.into(), len: len.into(), step: step as isize })
    }

    /// The same of a dim that is open: positions are expressions that are moved to the end in each call.
    fn open(&self, dim: &Dim) -> AxisSlice {
        let known = |n: u64| Dim::Known(usize::try_from(n).unwrap_or(usize::MAX));
        // Borders between elements, 0 to the length: before the first element, or behind the last.
        let border = |at: i64| match at < 0 {
            true => dim.less(&known(at.unsigned_abs())),
            false => dim.least(&known(at.unsigned_abs())),
        };
        let behind = |at: i64| if at == -1 { dim.clone() } else { border(at.saturating_add(1)) };
        let (low, high) = match self.step > 0 {
            true => (
                self.start.map_or(Dim::Known(0), border),
                self.stop.map_or_else(|| dim.clone(), border),
            ),
            false => (
                self.stop.map_or(Dim::Known(0), behind),
                self.start.map_or_else(|| dim.clone(), behind),
            ),
        };
        let step = known(self.step.unsigned_abs());
        let len = high.less(&low).plus(&step).minus(&Dim::Known(1)).divided_by(&step);
        let start = if self.step > 0 { low } else { high.less(&Dim::Known(1)) };
        AxisSlice { start, len, step: self.step as isize }
    }
}

macro_rules! part_from {
    ($($range:ty, |$r:ident| $start:expr, $stop:expr;)*) => {$(
        impl From<$range> for Part {
            fn from($r: $range) -> Part {
                Part { start: $start, stop: $stop, step: 1 }
            }
        }
    )*};
}

part_from! {
    std::ops::RangeFull, |_r| None, None;
    std::ops::Range<i64>, |r| Some(r.start), Some(r.end);
    std::ops::RangeFrom<i64>, |r| Some(r.start), None;
    std::ops::RangeTo<i64>, |r| None, Some(r.end);
}
