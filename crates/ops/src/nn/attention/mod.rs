//! Attention. Memory is linear in the lengths: what is saved for the backward pass is two numbers a query.
//!
//! `forward` is the op, `grad` its gradient for queries, keys and values; `quadratic` is the same in plain ops, for the
//! gradient of a mask and for second derivatives.

pub mod forward;
pub mod grad;
mod quadratic;

use smallvec::smallvec;
use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::row::{AxisMap, AxisOf, Sample};
use tonnage_core::{Attrs, Call, DType, Dim, Scalar, Shape, TensorType};

use crate::infer::{along, bad_attrs, cost, dtype, same_dtype};

/// The attributes: scale, causal, masked.
pub fn attrs(op: &'static str, attrs: &Attrs) -> Result<(f64, bool, bool)> {
    match attrs {
        Attrs::Attention { scale, causal, masked } => Ok((scale.to_f64(), *causal, *masked)),
        _ => Err(bad_attrs(op, attrs, "those of attention")),
    }
}

/// What scores, sums and their logarithms are computed and held in.
pub fn computed(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// Refuses queries, keys and values that do not fit together.
fn check(op: &'static str, q: &TensorType, k: &TensorType, v: &TensorType) -> Result<()> {
    for ty in [q, k, v] {
        dtype(op, ty, DType::is_float, "f64, f32, f16 or bf16 (cast first)")?;
        same_dtype(op, q, ty)?;
        if ty.shape.rank() != 4 {
            let expected = "4 ([batch, heads, length, width])".into();
            return Err(ErrorKind::RankMismatch { op, shape: ty.shape.clone(), expected }.into());
        }
    }
    let differ = |left: &TensorType, right: &TensorType, help: &str| {
        let (left, right) = (left.shape.clone(), right.shape.clone());
        Err(ErrorKind::ShapeMismatch { op, left, right, help: help.into() }.into())
    };
    if q.shape[0] != k.shape[0] || q.shape[3] != k.shape[3] {
        return differ(q, k, "queries and keys have one batch and one width");
    }
    if k.shape[..3] != v.shape[..3] {
        return differ(k, v, "there is a value for every key, in as many heads");
    }
    let (heads, of_keys) = (&q.shape[1], &k.shape[1]);
    let even = heads == of_keys
        || heads.known().zip(of_keys.known()).is_some_and(|(h, k)| k > 0 && h.is_multiple_of(k));
    if even { Ok(()) } else { differ(q, k, "heads of keys divide those of queries") }
}

/// Refuses a mask that does not broadcast to a score for every query and key.
fn check_mask(op: &'static str, q: &TensorType, k: &TensorType, mask: &TensorType) -> Result<()> {
    let fits = |d: DType| d == DType::Bool || d == q.dtype;
    dtype(op, mask, fits, "bool (true is seen), or the dtype of the queries, to be added")?;
    let [b, h, t, _] = &q.shape[..] else { return Ok(()) };
    let scores: Shape = [b, h, t, &k.shape[2]].into_iter().cloned().collect();
    if mask.shape.broadcast(&scores, op).is_ok_and(|made| made == scores) {
        return Ok(());
    }
    let what = format!("a mask of shape {} for scores of shape {scores}", mask.shape);
    Err(bad_argument(op, what, "use a mask that broadcasts to [batch, heads, queries, keys]"))
}

/// How batch, heads and queries of `q` run along those of the inputs: `(input, axis)` of the first `inputs` inputs.
struct AttentionAxes {
    batch: AxisOf,
    heads: AxisOf,
    queries: AxisOf,
}

/// Along which axes a call can be cut. `like_q` and `like_k` are the inputs that have the axes of queries and of keys.
fn runs(call: &Call, like_q: &[usize], like_k: &[usize]) -> AttentionAxes {
    let causal = attrs(call.op, call.attrs).is_ok_and(|(_, causal, _)| causal);
    let masked = attrs(call.op, call.attrs).is_ok_and(|(_, _, masked)| masked);
    let mask = || call.inputs.last().filter(|_| masked).map(|ty| (call.inputs.len() - 1, ty));
    let of = |axis: usize, inputs: &[&[usize]]| {
        let mut all: Vec<(usize, usize)> =
            inputs.iter().flat_map(|i| i.iter()).map(|input| (*input, axis)).collect();
        if let Some((input, ty)) = mask() {
            let own = (axis + ty.shape.rank()).checked_sub(4);
            all.extend(own.filter(|own| !ty.shape[*own].is(1)).map(|own| (input, own)));
        }
        along(&all)
    };
    let same_heads = call.inputs[0].shape[1] == call.inputs[like_k[0]].shape[1];
    AttentionAxes {
        batch: of(0, &[like_q, like_k]),
        heads: if same_heads { of(1, &[like_q, like_k]) } else { AxisOf::Mixed },
        queries: if causal { AxisOf::Mixed } else { of(2, &[like_q]) },
    }
}

/// Nothing can be cut but what `runs` says: outputs as lists of axes.
fn axes(outputs: Vec<Vec<AxisOf>>) -> AxisMap {
    AxisMap { outputs, summed: Vec::new() }
}

/// Sizes to test with.
struct Case {
    dtype: DType,
    /// Batch, heads of queries and of keys.
    heads: [usize; 3],
    /// Queries, keys, width of both, width of values.
    lengths: [usize; 4],
    causal: bool,
    mask: Option<(DType, Vec<usize>)>,
}

impl Case {
    fn types(&self) -> [TensorType; 3] {
        let ([b, h, of_keys], [t, s, d, e]) = (self.heads, self.lengths);
        let ty = |shape: [usize; 4]| TensorType::new(self.dtype, shape);
        [ty([b, h, t, d]), ty([b, of_keys, s, d]), ty([b, of_keys, s, e])]
    }

    fn mask(&self) -> Option<TensorType> {
        self.mask.as_ref().map(|(dtype, shape)| TensorType::new(*dtype, &shape[..]))
    }

    fn attrs(&self) -> Attrs {
        let scale = Scalar::Float(0.4);
        Attrs::Attention { scale, causal: self.causal, masked: self.mask.is_some() }
    }
}

fn cases() -> Vec<Case> {
    use DType::*;
    let of = |dtype, heads, lengths, causal, mask: Option<(DType, &[usize])>| Case {
        dtype,
        heads,
        lengths,
        causal,
        mask: mask.map(|(dtype, shape)| (dtype, shape.to_vec())),
    };
    vec![
        of(F64, [2, 2, 2], [3, 5, 4, 4], false, None),
        of(F32, [1, 2, 2], [5, 5, 3, 7], true, None),
        of(F16, [1, 1, 1], [3, 4, 4, 4], false, None),
        of(BF16, [1, 2, 1], [3, 4, 4, 3], true, None),
        // Queries in groups; more keys than queries; masks that are added, that hide, and that broadcast.
        of(F32, [2, 4, 2], [3, 6, 4, 5], true, None),
        of(F32, [1, 6, 2], [4, 7, 3, 2], false, Some((F32, &[4, 7]))),
        of(F32, [2, 2, 2], [3, 11, 2, 3], false, Some((Bool, &[2, 1, 1, 11]))),
        of(F32, [2, 3, 1], [3, 12, 2, 3], true, Some((Bool, &[2, 3, 3, 12]))),
        of(F64, [2, 2, 1], [2, 4, 3, 3], false, Some((F64, &[2, 1, 4]))),
        of(F16, [1, 2, 2], [2, 5, 3, 3], false, Some((F16, &[1, 5]))),
        // More than a block of either; a query alone.
        of(F32, [1, 1, 1], [150, 270, 4, 5], true, None),
        of(F32, [1, 2, 1], [1, 300, 5, 6], true, None),
        // Queries that see nothing; nobody there.
        of(F32, [1, 1, 1], [5, 3, 2, 2], true, None),
        of(F32, [1, 1, 1], [3, 0, 2, 2], false, None),
        of(F32, [0, 2, 2], [3, 4, 2, 2], false, None),
        of(F32, [1, 2, 2], [0, 4, 2, 2], false, None),
    ]
}

/// Flops of a number of products of scores, and everything read and written once.
fn costs(call: &Call, products: u64, made: &[TensorType]) -> tonnage_core::row::Cost {
    let most = |dim: &Dim| dim.most().unwrap_or(0) as u64;
    let flops = match call.inputs {
        [q, k, v, ..] if [q, k, v].iter().all(|ty| ty.shape.rank() == 4) => {
            let width = most(&q.shape[3]).max(most(&v.shape[3]));
            let scores = [&q.shape[0], &q.shape[1], &q.shape[2], &k.shape[2]];
            let scores = scores.into_iter().map(most).fold(1, u64::saturating_mul);
            // Of as many keys as queries half are seen, of more keys a larger part.
            let (queries, keys) = (most(&q.shape[2]), most(&k.shape[2]));
            let causal = attrs(call.op, call.attrs).is_ok_and(|(_, causal, _)| causal);
            let scores = match causal && keys >= queries && keys > 0 {
                true => (scores as f64 * (1.0 - 0.5 * queries as f64 / keys as f64)) as u64,
                false => scores,
            };
            scores.saturating_mul(width).saturating_mul(2).saturating_mul(products)
        }
        _ => 0,
    };
    cost(flops, call.inputs.iter().chain(made))
}

fn sample(types: &[TensorType], mask: Option<TensorType>, attrs: Attrs) -> Sample {
    let all: Vec<TensorType> = types.iter().cloned().chain(mask).collect();
    Sample::of(&all, attrs)
}

/// One number for each query, of what is computed in.
fn per_query(q: &TensorType) -> TensorType {
    TensorType { dtype: computed(q.dtype), shape: q.shape[..3].iter().cloned().collect() }
}

#[allow(clippy::unnecessary_wraps, reason = "as type rules return it")]
/// Types of several results.
fn types_of(all: impl IntoIterator<Item = TensorType>) -> Result<tonnage_core::row::Types> {
    let mut types = smallvec![];
    types.extend(all);
    Ok(types)
}
