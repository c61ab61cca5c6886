//! Where the pixels of images lie in memory: along three spatial axes, of which an image with fewer lacks the first.

use tonnage_core::Layout;

/// Where the pixels of images lie: along three spatial axes, and their channels.
#[derive(Debug, Clone, Copy)]
pub struct Pixels {
    /// Depth, height and width.
    pub lengths: [usize; 3],
    /// Elements of a pixel.
    pub channels: usize,
    /// Where the first element lies.
    pub start: usize,
    /// From one image to the next.
    pub next: isize,
    /// From one pixel to the next along each spatial axis.
    pub strides: [isize; 3],
    /// From one channel to the next.
    pub channel: isize,
}

impl Pixels {
    /// Of an image with one to three spatial axes.
    pub fn of(layout: &Layout) -> Pixels {
        let (rank, mut lengths, mut strides) = (layout.sizes.len(), [1; 3], [0; 3]);
        let spatial = rank.saturating_sub(2).min(3);
        for i in 0..spatial {
            lengths[3 - spatial + i] = layout.sizes[i + 1];
            strides[3 - spatial + i] = layout.strides[i + 1];
        }
        let at = |axis: usize| layout.sizes.get(axis).zip(layout.strides.get(axis));
        let next = at(0).map_or(0, |(_, stride)| *stride);
        let (channels, channel) = at(rank.wrapping_sub(1)).map_or((0, 0), |(n, s)| (*n, *s));
        Pixels { lengths, channels, start: layout.offset, next, strides, channel }
    }

    /// Where the first channel of a pixel lies.
    pub fn at(&self, batch: usize, place: [usize; 3]) -> isize {
        let inner: isize = place.iter().zip(self.strides).map(|(i, s)| *i as isize * s).sum();
        self.start as isize + batch as isize * self.next + inner
    }
}
