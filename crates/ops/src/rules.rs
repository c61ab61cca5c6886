//! What many rows say in the same words: type rules, axis maps, costs. A row names the one that
//! holds for it; nothing here is a default.

use smallvec::{SmallVec, smallvec};
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{Error, ErrorKind, Result, bad_argument};
use tonnage_core::row::{AxisMap, AxisOf, Call, Cost, Types};
use tonnage_core::{DType, Shape, TensorType};

/// Type rules.
pub mod infer {
    use super::*;

    /// Exactly this many inputs.
    pub fn count(call: &Call, expected: usize) -> Result<()> {
        match call.inputs.len() {
            got if got == expected => Ok(()),
            got => {
                Err(ErrorKind::InputCount { op: call.op, expected: expected.to_string(), got }
                    .into())
            }
        }
    }

    /// Attributes of another op: a bug of the caller's.
    pub fn wrong_attrs(call: &Call) -> Error {
        bad_argument(call.op, format!("got the attributes {:?}", call.attrs), "see its row")
    }

    #[inline]
    fn only(call: &Call, ty: &TensorType, fits: bool, supported: &'static str) -> Result<()> {
        match fits {
            true => Ok(()),
            false => {
                let (op, dtype) = (call.op, ty.dtype);
                Err(ErrorKind::DTypeUnsupported { op, dtype, supported }.into())
            }
        }
    }

    /// Refuses all but floats.
    pub fn float(call: &Call, ty: &TensorType) -> Result<()> {
        only(call, ty, ty.dtype.is_float(), "f64, f32, f16 or bf16 (cast first)")
    }

    /// Refuses booleans.
    pub fn number(call: &Call, ty: &TensorType) -> Result<()> {
        only(call, ty, ty.dtype != DType::Bool, "a number (cast first)")
    }

    /// Refuses all but booleans.
    pub fn boolean(call: &Call, ty: &TensorType) -> Result<()> {
        only(call, ty, ty.dtype == DType::Bool, "bool (compare first)")
    }

    /// Refuses all but integers.
    pub fn integer(call: &Call, ty: &TensorType) -> Result<()> {
        only(call, ty, ty.dtype.is_integer(), "an integer (cast first)")
    }

    /// One float in, the same type out.
    pub fn unary_float(call: &Call) -> Result<Types> {
        count(call, 1)?;
        float(call, &call.inputs[0])?;
        Ok(smallvec![call.inputs[0].clone()])
    }

    /// One number in, the same type out.
    pub fn unary_number(call: &Call) -> Result<Types> {
        count(call, 1)?;
        number(call, &call.inputs[0])?;
        Ok(smallvec![call.inputs[0].clone()])
    }

    /// The dtype that two promote to.
    #[inline]
    pub fn promoted(call: &Call, a: DType, b: DType) -> Result<DType> {
        match a.promote(b) {
            Some(dtype) => Ok(dtype),
            None => Err(do_not_promote(call, a, b)),
        }
    }

    #[cold]
    fn do_not_promote(call: &Call, a: DType, b: DType) -> Error {
        let help = format!("cast one side, e.g. to {}", wider(a, b));
        ErrorKind::DTypeMismatch { op: call.op, left: a, right: b, help }.into()
    }

    fn wider(a: DType, b: DType) -> DType {
        match (a.is_float(), b.is_float()) {
            (true, false) => a,
            (false, true) => b,
            _ if a.size() >= b.size() => a,
            _ => b,
        }
    }

    /// Two numbers in, promoted and broadcast.
    pub fn binary_number(call: &Call) -> Result<Types> {
        count(call, 2)?;
        number(call, &call.inputs[0])?;
        number(call, &call.inputs[1])?;
        let (a, b) = (&call.inputs[0], &call.inputs[1]);
        let dtype = promoted(call, a.dtype, b.dtype)?;
        Ok(smallvec![TensorType { dtype, shape: a.shape.broadcast(&b.shape, call.op)? }])
    }

    /// Two floats in, promoted and broadcast.
    pub fn binary_float(call: &Call) -> Result<Types> {
        count(call, 2)?;
        float(call, &call.inputs[0])?;
        float(call, &call.inputs[1])?;
        binary_number(call)
    }

    /// Two of a dtype in, broadcast; booleans out.
    pub fn comparison(call: &Call) -> Result<Types> {
        count(call, 2)?;
        let (a, b) = (&call.inputs[0], &call.inputs[1]);
        promoted(call, a.dtype, b.dtype)?;
        Ok(smallvec![TensorType::new(DType::Bool, a.shape.broadcast(&b.shape, call.op)?)])
    }

    /// An axis of attributes, which count from the front, as [`Shape::axis`] takes it: a number so large that it
    /// would turn negative must not count from the back.
    pub fn from_front(axis: usize) -> i64 {
        i64::try_from(axis).unwrap_or(i64::MAX)
    }

    /// The shape that is left after a reduction.
    pub fn reduced(call: &Call, ty: &TensorType) -> Result<Shape> {
        let Attrs::Reduce { axes, keep_dims } = call.attrs else { return Err(wrong_attrs(call)) };
        let named: SmallVec<[i64; 4]> = axes.iter().map(|a| from_front(*a)).collect();
        let axes = ty.shape.axes(call.op, &named)?;
        Ok(ty
            .shape
            .iter()
            .enumerate()
            .filter(|(i, _)| *keep_dims || !axes.contains(i))
            .map(|(i, d)| if axes.contains(&i) { 1.into() } else { d.clone() })
            .collect())
    }
}

/// Axis maps.
pub mod axes {
    use super::*;

    /// Every axis of the output runs along the same axis of each input that is not broadcast.
    pub fn elementwise(call: &Call) -> AxisMap {
        let rank = call.inputs.iter().map(|ty| ty.shape.rank()).max().unwrap_or(0);
        let along = |axis: usize| {
            let mut found: SmallVec<[(usize, usize); 2]> = SmallVec::new();
            for (input, ty) in call.inputs.iter().enumerate() {
                let own = (axis + ty.shape.rank()).checked_sub(rank);
                if let Some(own) = own.filter(|own| !ty.shape[*own].is(1)) {
                    found.push((input, own));
                }
            }
            if found.is_empty() { AxisOf::Mixed } else { AxisOf::Along(found) }
        };
        AxisMap { outputs: vec![(0..rank).map(along).collect()], summed: Vec::new() }
    }

    /// Nothing can be cut: this many outputs with this many axes each.
    pub fn mixed(ranks: &[usize]) -> AxisMap {
        let outputs = ranks.iter().map(|rank| vec![AxisOf::Mixed; *rank]).collect();
        AxisMap { outputs, summed: Vec::new() }
    }

    /// Axes that are not reduced run along; reduced ones are added up where `sums` says so.
    pub fn reduction(call: &Call, sums: bool) -> AxisMap {
        let Attrs::Reduce { axes, keep_dims } = call.attrs else { return AxisMap::default() };
        let mut out = Vec::new();
        for axis in 0..call.inputs[0].shape.rank() {
            match axes.contains(&axis) {
                false => out.push(AxisOf::Along(smallvec![(0, axis)])),
                true if *keep_dims => out.push(AxisOf::Mixed),
                true => {}
            }
        }
        let summed = match sums {
            true => axes.iter().map(|axis| smallvec![(0, *axis)]).collect(),
            false => Vec::new(),
        };
        AxisMap { outputs: vec![out], summed }
    }
}

/// Costs.
pub mod cost {
    use super::*;

    fn elements(ty: &TensorType) -> u64 {
        ty.shape.iter().fold(1u64, |n, d| n.saturating_mul(d.most().unwrap_or(1) as u64))
    }

    /// Bytes of a type, 0 where they are unknown.
    pub fn bytes(ty: &TensorType) -> u64 {
        elements(ty).saturating_mul(ty.dtype.size() as u64)
    }

    /// Bytes of all inputs and of outputs of these types.
    pub fn moved(call: &Call, outputs: &[TensorType]) -> u64 {
        call.inputs.iter().chain(outputs).map(bytes).fold(0, u64::saturating_add)
    }

    /// A number of flops for each element of the largest type, and everything read and written once.
    pub fn elementwise(call: &Call, outputs: &[TensorType], flops: u64) -> Cost {
        let most = call.inputs.iter().chain(outputs).map(elements).max().unwrap_or(0);
        Cost::local(most.saturating_mul(flops), moved(call, outputs))
    }

    /// Nothing at all: views and recipes.
    pub fn free(_: &Call) -> Cost {
        Cost::default()
    }
}

/// The sizes of a tensor that is about to be described, checked against what a machine can address.
pub fn known_sizes(call: &Call, dtype: DType, shape: &Shape) -> Result<tonnage_core::Sizes> {
    TensorType { dtype, shape: shape.clone() }.bytes(call.op)?;
    shape.sizes().ok_or_else(|| {
        bad_argument(call.op, format!("the shape {shape} is open"), "plan for known sizes first")
    })
}
