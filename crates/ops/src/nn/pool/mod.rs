//! Pooling over one to three spatial axes, channel by channel.

pub mod avg;
pub mod avg_grad;
pub mod max;
pub mod max_grad;
pub mod max_pick;

use tonnage_core::error::{Result, bad_argument};
use tonnage_core::row::{AxisMap, AxisOf};
use tonnage_core::{Attrs, DType, Shape, Sizes, TensorType, window};

use super::window::WindowGeometry;
use crate::infer::{along, bad_attrs, joined};

/// A window that an index of one of its taps fits into two bytes for.
pub fn window(op: &'static str, attrs: &Attrs) -> Result<WindowGeometry> {
    let Attrs::Window(window) = attrs else { return Err(bad_attrs(op, attrs, "a window")) };
    checked(op, window)
}

fn checked(op: &'static str, from: &window::Window) -> Result<WindowGeometry> {
    let window = WindowGeometry::of(op, from)?;
    let own = &window.axes[3 - window.spatial..];
    // So that no window lies in padding alone (but for a dilated one that steps over a small image).
    if own.iter().any(|axis| axis.padding.iter().any(|p| *p >= axis.reach())) {
        let what = format!("padding {:?} for windows of {:?}", from.padding, from.size);
        return Err(bad_argument(op, what, "pad by less than the window reaches"));
    }
    if window.area() > 1 << 16 {
        let what = format!("a window of {:?} has {} elements", from.size, window.area());
        return Err(bad_argument(op, what, "use windows of at most 65536 elements"));
    }
    Ok(window)
}

/// The smallest dtype that holds the index of a tap.
fn index_dtype(window: &WindowGeometry) -> DType {
    if window.area() <= 1 << 8 { DType::U8 } else { DType::U16 }
}

/// The shape of what the windows of an image give.
fn slid(op: &'static str, window: &WindowGeometry, image: &TensorType) -> Result<Shape> {
    let made = window.slide(op, window.lengths(op, image)?)?;
    let last = image.shape.rank() - 1;
    Ok(joined(&[&image.shape[..1], &made, &image.shape[last..]]))
}

/// Batch and channels run along those of all `inputs` inputs; windows overlap along the others.
fn axes(rank: usize, inputs: usize) -> AxisMap {
    let of = |axis| {
        let inputs: Vec<(usize, usize)> = (0..inputs).map(|input| (input, axis)).collect();
        along(&inputs)
    };
    let mut axes = vec![AxisOf::Mixed; rank];
    if rank > 1 {
        axes[0] = of(0);
        axes[rank - 1] = of(rank - 1);
    }
    AxisMap { outputs: vec![axes], summed: Vec::new() }
}

/// An image to test with, and its windows.
fn case(dtype: DType, image: &[usize], axes: &[[usize; 5]]) -> (TensorType, window::Window) {
    let each = |f: fn(&[usize; 5]) -> usize| axes.iter().map(f).collect::<Sizes>();
    let window = window::Window {
        size: each(|a| a[0]),
        stride: each(|a| a[1]),
        padding: axes.iter().map(|a| [a[2], a[3]]).collect(),
        dilation: each(|a| a[4]),
    };
    (TensorType::new(dtype, image), window)
}

/// Images and windows of every kind, of floats; for each spatial axis size, stride, padding, dilation.
fn cases() -> Vec<(TensorType, window::Window)> {
    use DType::*;
    let plain = [2, 2, 0, 0, 1];
    vec![
        case(F64, &[2, 4, 6, 3], &[plain, plain]),
        case(F64, &[1, 5, 7, 2], &[[3, 2, 1, 1, 1], [3, 2, 1, 1, 1]]),
        case(F64, &[2, 7, 5, 1], &[[2, 1, 0, 1, 1], [3, 2, 2, 0, 1]]),
        case(F64, &[1, 20, 20, 2], &[[17, 1, 4, 4, 1], [17, 3, 0, 16, 1]]),
        case(F64, &[1, 7, 8, 2], &[[2, 1, 1, 2, 3], [3, 2, 1, 0, 2]]),
        case(F32, &[1, 3, 1025, 1], &[[1, 1, 0, 0, 1], [2, 1, 0, 0, 1]]),
        case(F32, &[2, 2, 2, 1023], &[[2, 1, 0, 0, 1], [2, 1, 0, 0, 1]]),
        case(F32, &[1, 9, 9, 4], &[[2, 4, 0, 0, 1], [2, 4, 0, 0, 1]]),
        case(F16, &[1, 4, 4, 2], &[plain, plain]),
        case(BF16, &[1, 4, 4, 2], &[plain, plain]),
        case(F32, &[2, 9, 3], &[[3, 2, 1, 1, 1]]),
        case(F32, &[1, 4, 3, 4, 2], &[plain, [2, 1, 1, 0, 1], [3, 1, 1, 1, 1]]),
        case(F32, &[0, 4, 4, 2], &[plain, plain]),
        case(F32, &[2, 4, 4, 0], &[plain, plain]),
    ]
}
