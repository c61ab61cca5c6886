//! `rotary_embedding`: pairs of elements of each vector rotated by angles that grow with its position, each pair at a pace of its
//! own, so that the product of two vectors depends on how far apart they are.
//!
//! The transpose of a rotation is the rotation back, and that is its gradient.

use smallvec::smallvec;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values,
};
use tonnage_core::{Attrs, Call, DType, Emit, OpDef, Scalar, TensorType};

use crate::OpId;
use crate::infer::{along, bad_attrs, cost, dtype, each, inputs, integer, rank_at_least, shape};

/// The op's name, for errors.
pub const NAME: &str = "rotary_embedding";

/// `(x [..., length, width], positions [length]) -> [..., length, width]`; the rest as [`Attrs::Rotary`].
pub static ROTARY_EMBEDDING: OpDef = OpDef {
    id: OpId::RotaryEmbedding as u16,
    name: NAME,
    doc: "Pairs of elements rotated by angles that grow with their vector's position.",
    infer,
    axes,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(each(&made, 4), made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

#[derive(Clone, Copy)]
/// How positions rotate.
pub struct RotarySpec {
    /// Of the wavelengths.
    pub base: f64,
    /// Whether pairs are neighbours; otherwise an element and the one half a head on.
    pub neighbours: bool,
    /// Whether it rotates back, as the gradient does.
    pub back: bool,
}

/// What the attributes say.
pub fn how(attrs: &Attrs) -> Result<RotarySpec> {
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

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let RotarySpec { base, neighbours, back } = how(call.attrs)?;
    let attrs = Attrs::Rotary { base: Scalar::Float(base), neighbours, back: !back };
    let made = e.apply(&ROTARY_EMBEDDING, vec![call.grad()?, call.input(1)?], attrs)?;
    Ok(vec![crate::emit::dense(made), None])
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
