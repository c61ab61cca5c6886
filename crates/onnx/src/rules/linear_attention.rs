//! Attention by a state instead of scores, and attention whose scores graphs change.

use tonnage::{DType, Elementwise, Result, Tensor, scan};

use super::Rule;
use super::attention::headed;
use crate::call::{Call, one};
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "LinearAttention" => linear,
        _ => return None,
    })
}

/// The rule of an op of the domain `ai.onnx.preview`.
pub fn find_preview(op: &str) -> Option<Rule> {
    Some(match op {
        "FlexAttention" => flex,
        _ => return None,
    })
}

/// `[batch, heads, time, width]` with time in front, in f32.
fn by_time(x: &Tensor) -> Result<Tensor> {
    x.cast(DType::F32)?.transpose(&[2, 0, 1, 3])
}

/// A state of keys and values, which each step decays, corrects, writes to and reads.
fn linear(c: &Call) -> Result<Vec<Value>> {
    let (query_heads, heads) = (c.maybe_int("q_num_heads")?, c.maybe_int("kv_num_heads")?);
    let rule = c.text("update_rule", "gated_delta")?;
    let (decays, corrects) = match rule.as_str() {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => return Err(c.refuse(format!("the attribute `update_rule` is `{other}`"))),
    };
    let dtype = c.x(0)?.dtype();
    let (q, k, v) = (
        headed(c, &c.x(0)?, query_heads)?,
        headed(c, &c.x(1)?, heads)?,
        headed(c, &c.x(2)?, heads)?,
    );
    let [batch, query_heads, time, width] = c.sizes(&q)?[..] else {
        return Err(c.refuse("queries of other than 3 axes"));
    };
    let [_, heads, _, deep] = c.sizes(&v)?[..] else {
        return Err(c.refuse("values of other than 3 axes"));
    };
    if heads == 0 || !query_heads.is_multiple_of(heads) {
        return Err(c.refuse(format!("{query_heads} heads of queries for {heads} of keys")));
    }
    // A number for each head, or for each element of a key.
    let spread = |x: Tensor| -> Result<Tensor> {
        let last = c.sizes(&x)?[2];
        match last == heads * width && width > 1 {
            true => by_time(&headed(c, &x, Some(heads as i64))?),
            false => by_time(&x.reshape([batch, time, last, 1])?.transpose(&[0, 2, 1, 3])?),
        }
    };
    let none = || tonnage::full(0.0, DType::F32, [time, 1, 1, 1]);
    let decay = if decays { spread(c.x(4)?)?.exp()? } else { none()? };
    let beta = if corrects { spread(c.x(5)?)? } else { none()? };
    let (start, state_dtype) = match c.maybe(3)? {
        Some(state) => ((&state).cast(DType::F32)?, state.dtype()),
        None => (tonnage::full(0.0, DType::F32, [batch, heads, width, deep])?, dtype),
    };
    let scale = match c.float("scale", 0.0)? {
        0.0 => 1.0 / (width as f64).sqrt(),
        scale => scale,
    };
    let steps = (by_time(&q)?, by_time(&k)?, by_time(&v)?, decay, beta);
    let (state, made) = scan(start, steps, |state: Tensor, (q, k, v, decay, beta)| {
        let state = if decays { state.mul(&decay.expand_dims(-1)?)? } else { state };
        let v = match corrects {
            true => v.sub(&k.expand_dims(-2)?.matmul(&state)?.squeeze(-2)?)?.mul(&beta)?,
            false => v,
        };
        let state = state.add(&k.expand_dims(-1)?.mul(&v.expand_dims(-2)?)?)?;
        let read = if query_heads == heads {
            state.clone()
        } else {
            state.repeat(query_heads / heads, 1)?
        };
        let made = q.expand_dims(-2)?.matmul(&read)?.squeeze(-2)?.mul(scale)?;
        Ok((state, made))
    })?;
    let made = made.transpose(&[1, 0, 2, 3])?.reshape([batch, time, query_heads * deep])?;
    Ok(vec![made.cast(dtype)?.into(), state.cast(state_dtype)?.into()])
}

fn flex(c: &Call) -> Result<Vec<Value>> {
    let (q, mut k, mut v) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let dtype = v.dtype();
    let ([_, heads, _, width], [_, own, ..]) = (&c.sizes(&q)?[..], &c.sizes(&k)?[..]) else {
        return Err(c.refuse("queries or keys of other than 4 axes"));
    };
    if own != heads && *own > 0 && heads.is_multiple_of(*own) {
        (k, v) = (k.repeat(heads / own, 1)?, v.repeat(heads / own, 1)?);
    }
    let scale = c.maybe_float("scale")?.unwrap_or(1.0 / (*width as f64).sqrt()).sqrt();
    let wide = match c.maybe_dtype("softmax_precision")? {
        Some(dtype) => dtype,
        None if q.dtype().size() < 4 => DType::F32,
        None => q.dtype(),
    };
    let changed = |x: Tensor, by: &str| -> Result<Tensor> {
        match c.attribute(by) {
            None => Ok(x),
            Some(_) => c.importer.graph(c.graph(by)?, vec![x.into()], c)?.remove(0).tensor(),
        }
    };
    let scores = q.mul(scale)?.matmul(&k.mul(scale)?.t()?)?.cast(wide)?;
    let shares = changed(changed(scores, "score_mod")?.cast(wide)?.softmax(-1)?, "prob_mod")?;
    one(shares.cast(wide)?.matmul(&v.cast(wide)?)?.cast(dtype)?)
}
