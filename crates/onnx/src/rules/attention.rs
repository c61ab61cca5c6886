//! Attention, and the rotation of queries and keys.

use tonnage::{DType, Dim, Elementwise, Part, Result, Tensor, concat};

use super::Rule;
use crate::call::Call;
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "Attention" => attention,
        "RotaryEmbedding" => rotary,
        _ => return None,
    })
}

/// `[batch, length, heads * width]` as `[batch, heads, length, width]`.
pub fn headed(c: &Call, x: &Tensor, heads: Option<i64>) -> Result<Tensor> {
    let sizes = c.sizes(x)?;
    let [batch, length, width] = sizes[..] else { return Ok(x.clone()) };
    let heads = c.length(heads.unwrap_or(0))?;
    if heads == 0 || !width.is_multiple_of(heads) {
        return Err(c.refuse(format!("{heads} heads of {}", x.shape())));
    }
    x.reshape([batch, length, heads, width / heads])?.transpose(&[0, 2, 1, 3])
}

/// Numbers to add to scores: 0 where a mask is true, and minus infinity elsewhere.
fn bias_of(mask: &Tensor, dtype: DType) -> Result<Tensor> {
    let zero = tonnage::full(0.0, dtype, tonnage::Shape::scalar())?;
    let least = tonnage::full(f64::NEG_INFINITY, dtype, tonnage::Shape::scalar())?;
    mask.where_(&zero, &least)
}

/// What is added to the scores.
fn bias(c: &Call, queries: usize, keys: usize, dtype: DType) -> Result<Option<Tensor>> {
    let mut bias = match c.maybe(3)? {
        None => None,
        Some(mask) => {
            let own = c.sizes(&mask)?.last().copied().unwrap_or(0);
            let bias = if mask.dtype() == DType::Bool { bias_of(&mask, dtype)? } else { mask };
            // Keys beyond a mask are not seen.
            let mut widths = vec![[0, 0]; bias.rank()];
            if let Some(last) = widths.last_mut() {
                last[1] = keys.saturating_sub(own);
            }
            let outside = tonnage::PadMode::Constant(f64::NEG_INFINITY.into());
            Some(if own < keys { bias.pad(&widths, outside)? } else { bias })
        }
    };
    let mut add = |more: Tensor| -> Result<()> {
        bias = Some(match bias.take() {
            None => more,
            Some(bias) => bias.add(&more)?,
        });
        Ok(())
    };
    let lengths = c.maybe(6)?.map(|lengths| lengths.cast(DType::I64)).transpose()?;
    let rows = tonnage::positions(Dim::Known(queries), DType::I64)?.expand_dims(1)?;
    let columns = tonnage::positions(Dim::Known(keys), DType::I64)?.expand_dims(0)?;
    let before = match c.maybe(4)? {
        Some(past) => c.sizes(&past)?[2] as i64,
        None => 0,
    };
    // Where a query stands among the keys.
    let place = match (&lengths, c.maybe(4)?) {
        (Some(lengths), None) => {
            let count = c.sizes(lengths)?[0];
            rows.add(&lengths.sub(queries as i64)?.reshape([count, 1, 1, 1])?)?
        }
        _ => rows.add(before)?,
    };
    if c.flag("is_causal")? {
        add(bias_of(&columns.less_equal(&place)?, dtype)?)?;
    }
    let (left, right) = (c.int("left_window_size", -1)?, c.int("right_window_size", -1)?);
    if left >= 0 {
        add(bias_of(&place.sub(&columns)?.less_equal(left)?, dtype)?)?;
    }
    if right >= 0 {
        add(bias_of(&columns.sub(&place)?.less_equal(right)?, dtype)?)?;
    }
    if let Some(lengths) = &lengths {
        let count = c.sizes(lengths)?[0];
        add(bias_of(&columns.less(&lengths.reshape([count, 1, 1, 1])?)?, dtype)?)?;
    }
    Ok(bias)
}

fn attention(c: &Call) -> Result<Vec<Value>> {
    let (query_heads, key_heads) = (c.maybe_int("q_num_heads")?, c.maybe_int("kv_num_heads")?);
    let is_flat = c.x(0)?.rank() == 3;
    let q = headed(c, &c.x(0)?, query_heads)?;
    let (mut k, mut v) = (headed(c, &c.x(1)?, key_heads)?, headed(c, &c.x(2)?, key_heads)?);
    if let (Some(keys), Some(values)) = (c.maybe(4)?, c.maybe(5)?) {
        (k, v) = (concat(&[&keys, &k], 2)?, concat(&[&values, &v], 2)?);
    }
    let (present_key, present_value) = (k.clone(), v.clone());
    let [_, heads, queries, width] = c.sizes(&q)?[..] else {
        return Err(c.refuse("queries of other than 4 axes"));
    };
    let [_, own, keys, _] = c.sizes(&k)?[..] else {
        return Err(c.refuse("keys of other than 4 axes"));
    };
    if own != heads && own > 0 && heads.is_multiple_of(own) {
        (k, v) = (k.repeat(heads / own, 1)?, v.repeat(heads / own, 1)?);
    }
    let dtype = q.dtype();
    let scale = c.maybe_float("scale")?.unwrap_or(1.0 / (width as f64).sqrt()).sqrt();
    let mut scores = q.mul(scale)?.matmul(&k.mul(scale)?.t()?)?;
    let mode = c.int("qk_matmul_output_mode", 0)?;
    let mut shown = scores.clone();
    let cap = c.float("softcap", 0.0)?;
    if cap > 0.0 {
        scores = scores.div(cap)?.tanh()?.mul(cap)?;
    }
    if mode == 1 {
        shown = scores.clone();
    }
    let bias = bias(c, queries, keys, dtype)?;
    if let Some(bias) = &bias {
        scores = scores.add(bias)?;
    }
    if mode == 2 {
        shown = scores.clone();
    }
    let wide = match c.maybe_dtype("softmax_precision")? {
        Some(dtype) => scores.cast(dtype)?,
        None => scores,
    };
    let mut shares = wide.softmax(-1)?;
    // A query that sees no key has no shares.
    if let Some(bias) = &bias {
        let blind = bias.max_keep(-1)?.equal(f64::NEG_INFINITY)?;
        shares = blind.where_(&shares.zeros_like()?, &shares)?;
    }
    if mode == 3 {
        shown = shares.clone();
    }
    let mut made = shares.cast(dtype)?.matmul(&v)?;
    if is_flat {
        let [batch, heads, queries, width] = c.sizes(&made)?[..] else {
            return Err(c.refuse("other than 4 axes"));
        };
        made = made.transpose(&[0, 2, 1, 3])?.reshape([batch, queries, heads * width])?;
    }
    Ok(vec![made.into(), present_key.into(), present_value.into(), shown.cast(dtype)?.into()])
}

fn rotary(c: &Call) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    let sizes = c.sizes(&x)?;
    // As `[batch, length, heads, width]`.
    let rows = match sizes[..] {
        [_, _, _, _] => x.transpose(&[0, 2, 1, 3])?,
        [batch, length, width] => {
            let heads = c.length(c.int("num_heads", 0)?)?.max(1);
            x.reshape([batch, length, heads, width / heads])?
        }
        _ => return Err(c.refuse(format!("an input of {}", x.shape()))),
    };
    let width = c.sizes(&rows)?[3] as i64;
    let rotated_len = match c.int("rotary_embedding_dim", 0)? {
        0 => width,
        n => n,
    };
    let last = |part: Part| [Part::ALL, Part::ALL, Part::ALL, part];
    let rotated = rows.slice(&last((0..rotated_len).into()))?;
    let cache = |at: usize| -> Result<Tensor> {
        let table = c.x(at)?;
        let table = match c.maybe(3)? {
            Some(places) => table.gather(&places, 0)?,
            None => table,
        };
        table.expand_dims(2)
    };
    let (cos, sin) = (cache(1)?, cache(2)?);
    let neighbours = c.flag("interleaved")?;
    let (a, b) = match neighbours {
        true => {
            (rotated.slice(&last(Part::ALL.by(2)))?, rotated.slice(&last(Part::from(1..).by(2)))?)
        }
        false => (
            rotated.slice(&last((0..rotated_len / 2).into()))?,
            rotated.slice(&last((rotated_len / 2..).into()))?,
        ),
    };
    let real = cos.mul(&a)?.sub(&sin.mul(&b)?)?;
    let imaginary = sin.mul(&a)?.add(&cos.mul(&b)?)?;
    let made = match neighbours {
        true => tonnage::stack(&[&real, &imaginary], -1)?.reshape(c.sizes(&rotated)?)?,
        false => concat(&[&real, &imaginary], -1)?,
    };
    let made = match rotated_len < width {
        true => concat(&[&made, &rows.slice(&last((rotated_len..).into()))?], -1)?,
        false => made,
    };
    let made = match sizes.len() {
        4 => made.transpose(&[0, 2, 1, 3])?,
        _ => made.reshape(sizes)?,
    };
    Ok(vec![made.into()])
}
