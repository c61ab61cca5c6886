//! The kernel of `layer_norm_grad`: gradients of scale and bias are sums over all rows, in parts whose number follows
//! from the shape alone and which are added in order.

use tonnage_core::error::Result;
use tonnage_core::{Bytes, Call, DType, Element};
use tonnage_ops::nn::norm::layer_grad::NAME;
use tonnage_ops::nn::norm::{NormSpec, computed, how};
use tonnage_simd::{Isa, SimdKernel, level};

use super::layer::statistics;
use crate::kernel::{Kernel, KernelDef};
use crate::linalg::gemm::Compute;
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::rows::{LANES, StridedRows, sum1, sum2};
use crate::parallel::{GRAIN, cut, cut_bytes, for_each_item};

/// The most parts of the sums over rows.
const PARTS: usize = 64;

/// The kernel of [`LAYER_NORM_GRAD`](tonnage_ops::nn::norm::layer_grad::LAYER_NORM_GRAD).
pub static LAYER_NORM_GRAD: KernelDef =
    KernelDef { run: kernel, scratch, has_epilogue: false, streaming: None };

/// Rows of a part, and how many parts there are.
fn parts(rows: usize, width: usize) -> (usize, usize) {
    let parts = (rows.saturating_mul(width) / GRAIN).clamp(1, PARTS);
    let each = rows.div_ceil(parts).max(1);
    (each, rows.div_ceil(each).max(1))
}

fn bytes(computed: DType, count: usize) -> usize {
    match computed {
        DType::F64 => cut_bytes::<f64>(count),
        _ => cut_bytes::<f32>(count),
    }
}

/// Sums of all parts; and for each thread two rows and the scale, where they have to be copied.
fn scratch(call: &Call, threads: usize) -> Bytes {
    let [Some(x), Some(scale)] = [0, 1].map(|i| call.inputs.get(i)) else { return Bytes::ZERO };
    let (width, computed) = (super::most(&scale.shape), computed(x.dtype));
    let (_, parts) = parts(super::most(&x.shape[..x.shape.rank() - 1]), width);
    let slots = bytes(computed, width).saturating_mul(3 * threads);
    Bytes::of(bytes(computed, parts * 2 * width) + slots)
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => run::<T>(k))
}

fn run<T: Float>(k: &mut Kernel) -> Result<()> {
    let how = how(NAME, k.attrs)?;
    let [x, scale, g] = [0, 1, 2].map(|i| StridedRows::<T>::of(&k.inputs[i]));
    let width = x.width;
    let [dx, dscale, dbias] = &mut k.outputs[..] else { return Ok(()) };
    let dx = dx.slice::<T>();
    let (each, parts) = parts(dx.len().checked_div(width).unwrap_or(0), width);
    let mut rest = &mut *k.scratch;
    let sums = cut::<T::Compute>(&mut rest, parts * 2 * width);
    sums.fill(T::Compute::ZERO);
    let items = dx.chunks_mut((each * width).max(1)).zip(sums.chunks_mut((2 * width).max(1)));
    let slot = 3 * bytes(<T::Compute as Element>::DTYPE, width);
    for_each_item(k.workers, items.enumerate(), rest, slot, &|(part, (dx, sums)), mut slot| {
        let [of_x, of_g, of_scale] = [(); 3].map(|()| cut::<T::Compute>(&mut slot, width));
        let scale = scale.row(0, of_scale);
        let (dscale, dbias) = sums.split_at_mut(width);
        for (i, dx) in dx.chunks_exact_mut(width).enumerate() {
            let number = part * each + i;
            let (x, g) = (x.row(number, of_x), g.row(number, of_g));
            level().run(LayerNormGradRow::<T> { x, g, scale, how, dx, dscale, dbias });
        }
        Ok(())
    })?;
    if width == 0 {
        return Ok(());
    }
    let (first, others) = sums.split_at_mut(2 * width);
    for part in others.chunks_exact(2 * width) {
        first.iter_mut().zip(part).for_each(|(a, b)| *a = *a + *b);
    }
    T::store(&first[..width], dscale.slice());
    T::store(&first[width..], dbias.slice());
    Ok(())
}

/// One row.
struct LayerNormGradRow<'a, T: Float> {
    x: &'a [T::Compute],
    g: &'a [T::Compute],
    scale: &'a [T::Compute],
    how: NormSpec,
    dx: &'a mut [T],
    dscale: &'a mut [T::Compute],
    dbias: &'a mut [T::Compute],
}

impl<T: Float> SimdKernel for LayerNormGradRow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let LayerNormGradRow { x, g, scale, how, dx, dscale, dbias } = self;
        let (mean, by) = statistics(x, &how);
        let share = T::Compute::ONE / T::Compute::of(x.len() as f64);
        // What all elements get: for the mean, and, along the normalized ones, for the deviation.
        let for_mean = match how.centered {
            true => sum2(g, scale, |g, scale| g * scale) * share,
            false => T::Compute::ZERO,
        };
        let mut products = [T::Compute::ZERO; LANES];
        for ((x, g), scale) in x.chunks(LANES).zip(g.chunks(LANES)).zip(scale.chunks(LANES)) {
            let all = products.iter_mut().zip(x).zip(g).zip(scale);
            all.for_each(|(((sum, x), g), scale)| *sum = (*g * *scale).fma::<I>(*x - mean, *sum));
        }
        let for_deviation = sum1(&products, |x| x) * by * share;
        let inputs = x.chunks(LANES).zip(g.chunks(LANES)).zip(scale.chunks(LANES));
        for (((x, g), scale), dx) in inputs.zip(dx.chunks_mut(LANES)) {
            let mut made = [T::Compute::ZERO; LANES];
            let made = &mut made[..dx.len()];
            for (((made, x), g), scale) in made.iter_mut().zip(x).zip(g).zip(scale) {
                let normal = (*x - mean) * by;
                *made = (*g * *scale - for_mean - normal * for_deviation) * by;
            }
            T::store(made, dx);
        }
        let sums = dscale.iter_mut().zip(dbias.iter_mut());
        for (((dscale, dbias), x), g) in sums.zip(x).zip(g) {
            *dscale = ((*x - mean) * by).fma::<I>(*g, *dscale);
            *dbias = *dbias + *g;
        }
    }
}
