//! Kernels that make images of another size, and where pixels lie between others along an axis.
//!
//! Along an axis each pixel that is made lies between two of the image, found by one division: there is no table.

pub mod forward;
pub mod grad;

use tonnage_core::window::Between;

/// One axis of the two images.
#[derive(Clone, Copy)]
pub struct ResizeAxis {
    between: Between,
    from: usize,
    to: usize,
}

impl ResizeAxis {
    /// The two pixels that a pixel of the made image lies between, and how far it is from the first to the second.
    #[inline(always)]
    fn place(&self, at: usize) -> (usize, usize, f64) {
        let ratio = self.from as f64 / self.to as f64;
        let exact = match self.between {
            Between::Nearest => {
                let near = ((at as f64 + 0.5) * ratio) as usize;
                return (near.min(self.from - 1), near.min(self.from - 1), 0.0);
            }
            Between::Linear => (at as f64 + 0.5) * ratio - 0.5,
            Between::LinearCorners if self.to == 1 => 0.0,
            Between::LinearCorners => at as f64 * (self.from - 1) as f64 / (self.to - 1) as f64,
        };
        let exact = exact.clamp(0.0, (self.from - 1) as f64);
        let low = exact as usize;
        (low, (low + 1).min(self.from - 1), exact - low as f64)
    }

    /// How much of a pixel of the image is in one of the made image.
    #[inline(always)]
    fn share(&self, at: usize, of: usize) -> f64 {
        let (low, high, share) = self.place(at);
        (if low == of { 1.0 - share } else { 0.0 }) + (if high == of { share } else { 0.0 })
    }

    /// Pixels of the made image that a pixel of the image may be in.
    fn reached(&self, of: usize) -> std::ops::Range<usize> {
        // Where the second of the two reaches it for the first time, and where the first has passed it.
        let first = |wanted: &dyn Fn(usize) -> bool| {
            let (mut low, mut high) = (0, self.to);
            while low < high {
                let middle = (low + high) / 2;
                if wanted(middle) { high = middle } else { low = middle + 1 }
            }
            low
        };
        first(&|at| self.place(at).1 >= of)..first(&|at| self.place(at).0 > of)
    }
}

/// The axes of images of these sizes, three of them.
pub fn axes(between: Between, image: &[usize], made: &[usize]) -> [ResizeAxis; 3] {
    let spatial = image.len() - 2;
    let mut axes = [ResizeAxis { between, from: 1, to: 1 }; 3];
    for (i, axis) in axes[3 - spatial..].iter_mut().enumerate() {
        *axis = ResizeAxis { between, from: image[i + 1], to: made[i + 1] };
    }
    axes
}
