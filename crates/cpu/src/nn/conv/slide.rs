//! Windows along one axis: where their taps lie, and which of them lie on the axis at all.

use std::ops::Range;

/// Windows along one axis: tap `t` of window `i` lies at `i * step + first + t * tap`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slide {
    /// How many windows.
    pub windows: usize,
    pub step: usize,
    /// How many taps.
    pub taps: usize,
    pub first: isize,
    pub tap: isize,
}

impl Slide {
    /// A window for each pixel.
    pub fn pixels(count: usize) -> Slide {
        Slide { windows: count, step: 1, taps: 1, first: 0, tap: 0 }
    }

    /// Where a tap lies, be it in padding.
    #[inline(always)]
    pub fn place(&self, window: usize, tap: usize) -> isize {
        (window * self.step) as isize + self.first + tap as isize * self.tap
    }

    /// Where a tap lies on an axis of length `len`, if it does.
    #[inline(always)]
    pub fn inside(&self, window: usize, tap: usize, len: usize) -> Option<isize> {
        let at = self.place(window, tap);
        (at >= 0 && at < len as isize).then_some(at)
    }

    /// The taps of a window that lie on an axis of length `len`; only where taps go forward.
    #[inline(always)]
    pub fn taps_inside(&self, window: usize, len: usize) -> Range<usize> {
        let (first, tap) = (self.place(window, 0), self.tap.max(1));
        let from = |edge: isize| ((edge - first).max(0) + tap - 1) / tap;
        let end = from(len as isize) as usize;
        (from(0) as usize).min(self.taps)..end.min(self.taps)
    }

    /// Of these windows, the ones whose given taps all lie on an axis of length `len`; as above.
    #[inline(always)]
    pub fn whole(&self, taps: Range<usize>, len: usize, windows: Range<usize>) -> Range<usize> {
        let Some(last) = taps.end.checked_sub(1) else { return windows };
        let (low, high) = (self.place(0, taps.start), self.place(0, last));
        let step = self.step as isize;
        let from = ((-low).max(0) + step - 1) / step;
        let to = ((len as isize - high).max(0) + step - 1) / step;
        let from = (from as usize).clamp(windows.start, windows.end);
        from..(to as usize).clamp(from, windows.end)
    }
}
