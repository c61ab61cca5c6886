//! The kernel of `rotary_embedding`: sines and cosines are computed once for each position, in f64, and used for all
//! heads.

use tonnage_core::error::Result;
use tonnage_core::{Bytes, Call, DType, Element, TensorType};
use tonnage_ops::nn::rotary::{NAME, RotarySpec, how};
use tonnage_simd::float::{self, MathFloat};
use tonnage_simd::{Isa, SimdKernel, level};

use super::float::{Float, Wide, with_float};
use super::rows::{StridedRows, bytes_of_rows};
use crate::index::indices::Indices;
use crate::kernel::{Kernel, KernelDef};
use crate::parallel::{cut, cut_bytes, for_each_item, rows_at_once};
use crate::workers::for_each_chunk;

/// The kernel of [`ROTARY_EMBEDDING`](tonnage_ops::nn::rotary::ROTARY_EMBEDDING).
pub static ROTARY_EMBEDDING: KernelDef =
    KernelDef { run: kernel, scratch, has_epilogue: false, streaming: None };

fn computed(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// Cosines and sines of all positions, and two rows for each thread.
fn scratch(call: &Call, threads: usize) -> Bytes {
    let (Some(x), Some(positions)) = (call.inputs.first(), call.inputs.get(1)) else {
        return Bytes::ZERO;
    };
    let most = |ty: &TensorType| ty.shape.last().and_then(|dim| dim.most()).unwrap_or(0);
    let (width, length, computed) = (most(x), most(positions), computed(x.dtype));
    let table = bytes_of_rows(1, width.saturating_mul(length), computed);
    Bytes::of(table.saturating_add(bytes_of_rows(2, width, computed).saturating_mul(threads)))
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => run::<T>(k))
}

fn run<T: Float>(k: &mut Kernel) -> Result<()> {
    let how = how(k.attrs)?;
    let x = StridedRows::<T>::of(&k.inputs[0]);
    let positions = Indices::unchecked(&k.inputs[1]);
    let (width, length) = (x.width, positions.count());
    let mut rest = &mut *k.scratch;
    let table = cut::<T::Compute>(&mut rest, width * length);
    for_each_chunk(k.workers, table, width.max(1), &|row, table| {
        let position = positions.signed(row) as f64;
        level().run(RotaryAngles { position, how, table });
    })?;
    let table = &*table;
    let at_once = rows_at_once(width);
    let out = k.outputs[0].slice::<T>().chunks_mut((at_once * width).max(1)).enumerate();
    let slot = 2 * match <T::Compute as Element>::DTYPE {
        DType::F64 => cut_bytes::<f64>(width),
        _ => cut_bytes::<f32>(width),
    };
    for_each_item(k.workers, out, rest, slot, &|(number, out), mut slot| {
        let [buffer, work] = [(); 2].map(|()| cut::<T::Compute>(&mut slot, width));
        for (i, out) in out.chunks_exact_mut(width).enumerate() {
            let row = number * at_once + i;
            let x = x.row_or(row, out, buffer);
            let angles = &table[row % length * width..][..width];
            let neighbours = how.neighbours;
            level().run(RotateVector { x, angles, neighbours, work: &mut *work });
            T::store(work, out);
        }
        Ok(())
    })
}

/// Cosines, then sines, of one position.
struct RotaryAngles<'a, C> {
    position: f64,
    how: RotarySpec,
    table: &'a mut [C],
}

impl<C: Wide> SimdKernel for RotaryAngles<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let pairs = self.table.len() / 2;
        let (cosines, sines) = self.table.split_at_mut(pairs);
        let sign = if self.how.back { -1.0 } else { 1.0 };
        let pace = -self.how.base.ln() / pairs as f64;
        let angle = |i: usize| self.position * float::exp::<I, f64>(pace * i as f64);
        // The vector functions are exact up to some angle; hardly any position is so far out.
        if self.position.abs() * (1.0 / self.how.base).max(1.0) > <f64 as MathFloat>::TRIG_FAST {
            for (i, (cos, sin)) in cosines.iter_mut().zip(sines).enumerate() {
                (*cos, *sin) = (C::of(angle(i).cos()), C::of(sign * angle(i).sin()));
            }
            return;
        }
        for (i, (cos, sin)) in cosines.iter_mut().zip(sines).enumerate() {
            *cos = C::of(float::cos::<I, f64>(angle(i)));
            *sin = C::of(sign * float::sin::<I, f64>(angle(i)));
        }
    }
}

/// One vector.
struct RotateVector<'a, C> {
    x: &'a [C],
    angles: &'a [C],
    neighbours: bool,
    work: &'a mut [C],
}

impl<C: Wide> SimdKernel for RotateVector<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let (cosines, sines) = self.angles.split_at(self.x.len() / 2);
        if self.neighbours {
            let pairs = self.x.chunks_exact(2).zip(self.work.chunks_exact_mut(2));
            for ((x, to), (cos, sin)) in pairs.zip(cosines.iter().zip(sines)) {
                to[0] = x[0].fma::<I>(*cos, -(x[1] * *sin));
                to[1] = x[1].fma::<I>(*cos, x[0] * *sin);
            }
            return;
        }
        let (a, b) = self.x.split_at(self.x.len() / 2);
        let (to_a, to_b) = self.work.split_at_mut(self.x.len() / 2);
        let (inputs, outputs) = (a.iter().zip(b), to_a.iter_mut().zip(to_b));
        for (((a, b), (to_a, to_b)), (cos, sin)) in
            inputs.zip(outputs).zip(cosines.iter().zip(sines))
        {
            *to_a = a.fma::<I>(*cos, -(*b * *sin));
            *to_b = b.fma::<I>(*cos, *a * *sin);
        }
    }
}
