//! `rotary_embedding`: pairs of elements of each vector rotated by angles that grow with its position, each pair at a pace of its
//! own, so that the product of two vectors depends on how far apart they are.
//!
//! Sines and cosines are computed once for each position, in f64, and used for all heads. The transpose of a rotation is the
//! rotation back, and that is its gradient.

use smallvec::smallvec;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values,
};
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{Attrs, Bytes, Call, DType, Element, Emit, OpDef, Scalar, TensorType};

use super::float::{Float, Wide, with_float};
use super::rows::{StridedRows, bytes_of_rows};
use crate::index::indices::Indices;
use crate::infer::{along, bad_attrs, cost, dtype, each, inputs, integer, rank_at_least, shape};
use crate::parallel::{cut, cut_bytes, for_each_item, rows_at_once};
use crate::simd::float::{self, MathFloat};
use crate::simd::{self, Isa};

const NAME: &str = "rotary_embedding";

/// `(x [..., length, width], positions [length]) -> [..., length, width]`; the rest as [`Attrs::Rotary`].
pub static ROTARY_EMBEDDING: OpDef = OpDef {
    name: NAME,
    doc: "Pairs of elements rotated by angles that grow with their vector's position.",
    infer,
    axes,
    mem: Mem::Reuse(&[0]),
    scratch,
    saves: Saves::one_of(&[&[Save::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(each(&made, 4), made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples,
};

#[derive(Clone, Copy)]
struct RotarySpec {
    base: f64,
    neighbours: bool,
    back: bool,
}

fn how(attrs: &Attrs) -> Result<RotarySpec> {
    let Attrs::Rotary { base, neighbours, back } = *attrs else {
        return Err(bad_attrs(NAME, attrs, "those of rotary embeddings"));
    };
    let base = base.to_f64();
    match base > 0.0 && base.is_finite() {
        true => Ok(RotarySpec { base, neighbours, back }),
        false => {
            let what = format!("angles by powers of {base}");
            Err(bad_argument(NAME, what, "use a number above 0, such as 10000"))
        }
    }
}

fn infer(call: &Call) -> Result<Types> {
    let [x, positions] = inputs(NAME, call)?;
    how(call.attrs)?;
    dtype(NAME, x, DType::is_float, "f64, f32, f16 or bf16 (cast first)")?;
    rank_at_least(NAME, x, 2, "[..., length, width]")?;
    integer(NAME, positions)?;
    let rank = x.shape.rank();
    let lengths = x.shape[rank - 2..rank - 1].iter().cloned().collect();
    shape(NAME, &positions.shape, &lengths, "pass one position for each vector along the axis")?;
    if x.shape[rank - 1].known().is_none_or(|width| width % 2 == 1) {
        let what = format!("vectors of {} elements", x.shape[rank - 1]);
        return Err(bad_argument(
            NAME,
            what,
            "use an even number of them: they are rotated by pairs",
        ));
    }
    Ok(smallvec![x.clone()])
}

fn axes(call: &Call) -> AxisMap {
    let rank = call.inputs[0].shape.rank();
    let mut axes: Vec<AxisOf> = (0..rank).map(|axis| along(&[(0, axis)])).collect();
    axes[rank - 2] = along(&[(0, rank - 2), (1, 0)]);
    axes[rank - 1] = AxisOf::Mixed;
    AxisMap { outputs: vec![axes], summed: Vec::new() }
}

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

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let RotarySpec { base, neighbours, back } = how(call.attrs)?;
    let attrs = Attrs::Rotary { base: Scalar::Float(base), neighbours, back: !back };
    let made = e.apply(&ROTARY_EMBEDDING, vec![call.grad()?, call.input(1)?], attrs)?;
    Ok(vec![crate::emit::dense(made), None])
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
        simd::level().run(RotaryAngles { position, how, table });
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
            simd::level().run(RotateVector { x, angles, neighbours, work: &mut *work });
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

impl<C: Wide> simd::SimdKernel for RotaryAngles<'_, C> {
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

impl<C: Wide> simd::SimdKernel for RotateVector<'_, C> {
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

fn samples() -> Vec<Sample> {
    use DType::*;
    let of = |dtype, sizes: &[usize], positions, neighbours, back| {
        let length = sizes[sizes.len() - 2];
        let types = [TensorType::new(dtype, sizes), TensorType::new(positions, [length])];
        let attrs = Attrs::Rotary { base: Scalar::Float(100.0), neighbours, back };
        Sample::of(&types, attrs).with(1, Values::Below(90))
    };
    vec![
        of(F64, &[2, 3, 4], I64, false, false),
        of(F32, &[2, 2, 5, 6], I32, true, false),
        of(F32, &[3, 70], U8, false, true),
        of(F16, &[2, 3, 4], I64, true, true),
        of(BF16, &[1, 3, 4], I16, false, false),
        of(F32, &[300, 2, 64], I64, false, false),
        of(F32, &[0, 3, 4], I64, false, false),
        of(F32, &[2, 0, 4], I64, false, false),
    ]
}
