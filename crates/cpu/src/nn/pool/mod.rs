//! Kernels of pooling over one to three spatial axes, channel by channel; and the row of pixels that they work on at a
//! time.

pub mod avg;
pub mod avg_grad;
pub mod max;
pub mod max_grad;
pub mod max_pick;

/// A row of pixels along width: which image, and where along depth and height.
#[derive(Clone, Copy)]
struct PixelRow {
    batch: usize,
    at: [usize; 2],
}

impl PixelRow {
    /// Row `number` of images of these sizes.
    fn of(number: usize, sizes: &[usize]) -> PixelRow {
        let rank = sizes.len();
        let (height, depth) = (
            if rank > 3 { sizes[rank - 3] } else { 1 },
            if rank > 4 { sizes[rank - 4] } else { 1 },
        );
        PixelRow { batch: number / height / depth, at: [number / height % depth, number % height] }
    }
}
