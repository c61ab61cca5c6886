//! Attention's weights in plain ops, as large as all scores: for the gradient of an added mask, which is as large, and for
//! second derivatives.

use smallvec::smallvec;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::{Attrs, DType, Dim, Scalar, Shape, TensorType};

use super::{attrs, computed};
use crate::{emit, math, shape};

/// Heads of queries by those of keys: `[batch, heads of keys, in a group, ...]`; all in what is computed in.
struct HeadGroups {
    dtype: DType,
    /// Heads of keys, and heads of queries for each.
    of_keys: Dim,
    group: Dim,
}

impl HeadGroups {
    fn of(q: &TensorType, k: &TensorType) -> HeadGroups {
        let group = q.shape[1].divided_by(&k.shape[1]);
        HeadGroups { dtype: computed(q.dtype), of_keys: k.shape[1].clone(), group }
    }

    /// Something of every head of queries.
    fn queries(&self, e: &mut dyn Emit, x: Value) -> Result<Value> {
        let x = emit::cast(e, x, self.dtype)?;
        let dims = &x.ty().shape;
        let heads = [dims[0].clone(), self.of_keys.clone(), self.group.clone()];
        let to: Shape = heads.into_iter().chain(dims[2..].iter().cloned()).collect();
        emit::reshape(e, x, &to)
    }

    /// Something of every head of keys.
    fn keys(&self, e: &mut dyn Emit, x: Value) -> Result<Value> {
        let x = emit::cast(e, x, self.dtype)?;
        let dims = &x.ty().shape;
        let heads = [dims[0].clone(), dims[1].clone(), Dim::Known(1)];
        let to: Shape = heads.into_iter().chain(dims[2..].iter().cloned()).collect();
        emit::reshape(e, x, &to)
    }

    /// One number for each query, beside its row.
    fn numbers(&self, e: &mut dyn Emit, x: Value) -> Result<Value> {
        let x = self.queries(e, x)?;
        let to: Shape = x.ty().shape.iter().cloned().chain([Dim::Known(1)]).collect();
        emit::reshape(e, x, &to)
    }

    /// A mask of any rank.
    fn mask(&self, e: &mut dyn Emit, mask: Value) -> Result<Value> {
        let rank = mask.ty().shape.rank();
        let mut dims = vec![Dim::Known(1); 4 - rank];
        dims.extend(mask.ty().shape.iter().cloned());
        let heads = match dims[1].is(1) {
            true => [Dim::Known(1), Dim::Known(1)],
            false => [self.of_keys.clone(), self.group.clone()],
        };
        let to: Shape =
            dims[..1].iter().cloned().chain(heads).chain(dims[2..].iter().cloned()).collect();
        emit::reshape(e, mask, &to)
    }
}

/// What the rules are made of, each as large as all scores.
struct Scores {
    heads: HeadGroups,
    q: Value,
    k: Value,
    v: Value,
    g: Value,
    /// Weights.
    p: Value,
    /// Gradients of weights, less what all of a query's share.
    u: Value,
    scale: f64,
}

fn product(e: &mut dyn Emit, a: &Value, b: &Value, ta: bool, tb: bool) -> Result<Value> {
    emit::matmul(e, a.clone(), b.clone(), ta, tb)
}

impl Scores {
    /// From the inputs of the gradient.
    fn of(e: &mut dyn Emit, inputs: &[Value], with: &Attrs) -> Result<Scores> {
        let (scale, causal, masked) = attrs("attention_grad", with)?;
        let heads = HeadGroups::of(inputs[0].ty(), inputs[1].ty());
        let (queries, keys) = (inputs[0].ty().shape[2].clone(), inputs[1].ty().shape[2].clone());
        let q = heads.queries(e, inputs[0].clone())?;
        let k = heads.keys(e, inputs[1].clone())?;
        let v = heads.keys(e, inputs[2].clone())?;
        let g = heads.queries(e, inputs[6].clone())?;
        let scores = product(e, &q, &k, false, true)?;
        let mut scores = emit::scale(e, scores, scale)?;
        let hidden = emit::number(e, f64::NEG_INFINITY, heads.dtype)?;
        if masked {
            let mask = heads.mask(e, inputs[7].clone())?;
            scores = match mask.ty().dtype {
                DType::Bool => {
                    let choice = vec![mask, scores, hidden.clone()];
                    e.apply(&math::where_::WHERE, choice, Attrs::None)?
                }
                _ => {
                    let mask = emit::cast(e, mask, heads.dtype)?;
                    emit::add(e, scores, mask)?
                }
            };
        }
        if causal {
            let later = later(e, &queries, &keys)?;
            scores =
                e.apply(&math::where_::WHERE, vec![later, hidden.clone(), scores], Attrs::None)?;
        }
        // A query that sees nothing has no weights: e to the power of minus infinity, not of NaN.
        let lse = heads.numbers(e, inputs[3].clone())?;
        let alone = emit::binary(e, &math::comparison::EQUAL, lse.clone(), hidden)?;
        let nought = emit::number(e, 0.0, heads.dtype)?;
        let lse = e.apply(&math::where_::WHERE, vec![alone, nought, lse], Attrs::None)?;
        let relative = emit::sub(e, scores, lse)?;
        let lost = heads.numbers(e, inputs[4].clone())?;
        let relative = emit::sub(e, relative, lost)?;
        let p = emit::unary(e, &math::exp::EXP, relative)?;
        let of_weights = product(e, &g, &v, false, true)?;
        let shared = heads.numbers(e, inputs[5].clone())?;
        let u = emit::sub(e, of_weights, shared)?;
        Ok(Scores { heads, q, k, v, g, p, u, scale })
    }
}

/// True where a key comes after what a query sees.
fn later(e: &mut dyn Emit, queries: &Dim, keys: &Dim) -> Result<Value> {
    let more = match (queries.known(), keys.known()) {
        (Some(queries), Some(keys)) => keys as i128 - queries as i128,
        _ if queries == keys => 0,
        _ => {
            let why = format!("{queries} queries and {keys} keys are open");
            return Err(ErrorKind::NoGradient { op: "attention_grad", why }.into());
        }
    };
    let range = |e: &mut dyn Emit, start: i128, len: &Dim| {
        let (start, step) = (Scalar::Int(start), Scalar::Int(1));
        let attrs = Attrs::Range { start, step, len: len.clone(), dtype: DType::I64 };
        e.apply(&shape::range::RANGE, Vec::new(), attrs)
    };
    let last = range(e, more, queries)?;
    let last = emit::reshape(e, last, &[queries.clone(), Dim::Known(1)].into_iter().collect())?;
    let keys = range(e, 0, keys)?;
    emit::binary(e, &math::comparison::LESS, last, keys)
}

/// The gradient of an added mask, for every query and key: `[batch, heads, queries, keys]`.
pub(super) fn mask_grad(e: &mut dyn Emit, inputs: &[Value], with: &Attrs) -> Result<Value> {
    let scores = Scores::of(e, inputs, with)?;
    let slopes = emit::mul(e, scores.p, scores.u)?;
    whole_heads(e, slopes)
}

/// `[batch, heads of keys, in a group, ...]` as `[batch, heads, ...]`.
fn whole_heads(e: &mut dyn Emit, x: Value) -> Result<Value> {
    let dims = &x.ty().shape;
    let heads = dims[1].times(&dims[2]);
    let to: Shape = [dims[0].clone(), heads].into_iter().chain(dims[3..].iter().cloned()).collect();
    emit::reshape(e, x, &to)
}

fn sum_of(e: &mut dyn Emit, terms: Vec<Value>) -> Result<Option<Value>> {
    let mut sum = None;
    for term in terms {
        sum = Some(match sum {
            None => term,
            Some(sum) => emit::add(e, sum, term)?,
        });
    }
    Ok(sum)
}

/// The gradient of the gradient. With weights P, their gradients less what is shared U, and a, b, c what comes in for
/// the gradients of queries, keys and values: the loss is `<P U, A> + <P, E>` with `A = scale (a k' + q b')`, `E = g c'`.
pub(super) fn second(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let inputs = (0..call.inputs.len()).map(|i| call.input(i)).collect::<Result<Vec<_>>>()?;
    let scores = Scores::of(e, &inputs, call.attrs)?;
    let Scores { heads, q, k, v, g, p, u, scale } = &scores;
    let grouped = |e: &mut dyn Emit, x: &Option<Value>, keys: bool| -> Result<Option<Value>> {
        match x {
            None => Ok(None),
            Some(x) if keys => heads.keys(e, x.clone()).map(Some),
            Some(x) => heads.queries(e, x.clone()).map(Some),
        }
    };
    let a = grouped(e, &call.grads[0], false)?;
    let b = grouped(e, &call.grads[1], true)?;
    let c = grouped(e, &call.grads[2], true)?;
    // A, and what U and P get from it; E, and what P gets from it.
    let mut terms = Vec::new();
    if let Some(a) = &a {
        terms.push(product(e, a, k, false, true)?);
    }
    if let Some(b) = &b {
        terms.push(product(e, q, b, false, true)?);
    }
    let of_slopes = sum_of(e, terms)?.map(|x| emit::scale(e, x, *scale)).transpose()?;
    let of_u = match &of_slopes {
        Some(x) => Some(emit::mul(e, p.clone(), x.clone())?),
        None => None,
    };
    let mut terms = Vec::new();
    if let Some(x) = &of_slopes {
        terms.push(emit::mul(e, u.clone(), x.clone())?);
    }
    if let Some(c) = &c {
        terms.push(product(e, g, c, false, true)?);
    }
    let Some(of_p) = sum_of(e, terms)? else { return Ok(vec![None; call.inputs.len()]) };
    let w = emit::mul(e, p.clone(), of_p)?;
    let slopes = emit::mul(e, p.clone(), u.clone())?;

    let mut grads = vec![None; call.inputs.len()];
    let mut queries = vec![product(e, &w, k, false, false)?];
    let mut keys = vec![product(e, &w, q, true, false)?];
    if let Some(b) = &b {
        queries.push(product(e, &slopes, b, false, false)?);
    }
    if let Some(a) = &a {
        keys.push(product(e, &slopes, a, true, false)?);
    }
    let mut means = Vec::new();
    let mut values = Vec::new();
    if let Some(x) = &of_u {
        means.push(product(e, x, v, false, false)?);
        values.push(product(e, x, g, true, false)?);
    }
    if let Some(c) = &c {
        means.push(product(e, p, c, false, false)?);
    }
    let minus_rows = |e: &mut dyn Emit, x: Value| -> Result<Value> {
        let sum = emit::sum(e, x, smallvec![4], false)?;
        emit::neg(e, sum)
    };
    let shared = match of_u {
        Some(x) => vec![minus_rows(e, x)?],
        None => Vec::new(),
    };
    let lse = minus_rows(e, w.clone())?;
    let made = [(0, queries, *scale), (1, keys, *scale), (2, values, 1.0), (6, means, 1.0)];
    for (input, terms, scale) in made {
        if let Some(sum) = sum_of(e, terms)?.filter(|_| call.needs[input]) {
            let sum = if scale == 1.0 { sum } else { emit::scale(e, sum, scale)? };
            grads[input] = Some(sum);
        }
    }
    (grads[3], grads[4]) = (Some(lse.clone()), Some(lse));
    grads[5] = sum_of(e, shared)?;
    if call.inputs.len() > 7 && call.inputs[7].dtype.is_float() {
        grads[7] = Some(w);
    }
    let mut all = Vec::new();
    for (i, grad) in grads.into_iter().enumerate() {
        let Some(grad) = grad.filter(|_| call.needs[i]) else {
            all.push(None);
            continue;
        };
        // Heads of queries that share keys add up.
        let grad = match i {
            1 | 2 => emit::sum(e, grad, smallvec![2], false)?,
            _ => whole_heads(e, grad)?,
        };
        all.push(emit::dense(emit::sum_to(e, grad, &call.inputs[i])?));
    }
    Ok(all)
}
