//! Attention, score by score.

use tonnage_core::{Attrs, DType};

use super::{Asked, indices};
use crate::plain::{Answer, Plain};

/// A call's sizes: batch, heads, queries, keys, width, and heads of queries for each head of keys.
struct Call<'a> {
    q: &'a Plain,
    k: &'a Plain,
    v: &'a Plain,
    mask: Option<&'a Plain>,
    scale: f64,
    causal: bool,
    group: usize,
}

impl<'a> Call<'a> {
    fn of(asked: &'a Asked) -> Call<'a> {
        let Attrs::Attention { scale, causal, masked } = *asked.attrs else { panic!("no attrs") };
        let [q, k, v] = [&asked.inputs[0], &asked.inputs[1], &asked.inputs[2]];
        let mask = masked.then(|| asked.inputs.last().expect("a mask"));
        let group = q.sizes[1].checked_div(k.sizes[1]).unwrap_or(0);
        Call { q, k, v, mask, scale: scale.to_f64(), causal, group }
    }

    fn queries(&self) -> Vec<Vec<usize>> {
        indices(&self.q.sizes[..3])
    }

    fn keys(&self) -> usize {
        self.k.sizes[2]
    }

    fn computed(&self) -> DType {
        if self.q.dtype == DType::F64 { DType::F64 } else { DType::F32 }
    }

    /// The score of a query with a key, and what its errors are a fraction of; nothing where it is hidden.
    fn score(&self, query: &[usize], key: usize) -> Option<(f64, f64)> {
        let (queries, keys) = (self.q.sizes[2], self.keys());
        if self.causal && key + queries > query[2] + keys {
            return None;
        }
        let of_key = [query[0], query[1] / self.group, key];
        let term = |d: usize| {
            self.q.at(&[query, &[d]].concat()) * self.k.at(&[&of_key[..], &[d]].concat())
        };
        let terms: Vec<f64> = (0..self.q.sizes[3]).map(|d| term(d) * self.scale).collect();
        let (sum, scale) = (terms.iter().sum::<f64>(), terms.iter().map(|x| x.abs()).sum::<f64>());
        let Some(mask) = self.mask else { return Some((sum, scale)) };
        let mask_at = mask.broadcast(&[query, &[key]].concat());
        match mask.dtype {
            DType::Bool => (mask_at != 0.0).then_some((sum, scale)),
            _ => Some((sum + mask_at, scale + mask_at.abs())),
        }
    }

    fn value(&self, query: &[usize], key: usize, e: usize) -> f64 {
        self.v.at(&[query[0], query[1] / self.group, key, e])
    }
}

pub fn attention(asked: &Asked) -> Vec<Answer> {
    let call = Call::of(asked);
    let width = call.v.sizes[3];
    let (mut means, mut means_scale, mut lse, mut lse_scale) = (vec![], vec![], vec![], vec![]);
    for query in call.queries() {
        let scores: Vec<Option<(f64, f64)>> =
            (0..call.keys()).map(|key| call.score(&query, key)).collect();
        let largest = scores.iter().flatten().fold(f64::NEG_INFINITY, |m, (s, _)| m.max(*s));
        let off = scores.iter().flatten().fold(0.0f64, |m, (_, s)| m.max(*s));
        let weight = |s: Option<(f64, f64)>| s.map_or(0.0, |(s, _)| (s - largest).exp());
        let total: f64 = scores.iter().map(|s| weight(*s)).sum();
        for e in 0..width {
            let parts = (0..call.keys()).map(|key| {
                let share = weight(scores[key]) / total;
                share * call.value(&query, key, e)
            });
            let parts: Vec<f64> = parts.map(|x| if total == 0.0 { 0.0 } else { x }).collect();
            means.push(parts.iter().sum());
            // An error of a score is one of its weight.
            means_scale.push(parts.iter().map(|x| x.abs()).sum::<f64>() * (1.0 + 2.0 * off));
        }
        lse.push(if total == 0.0 { f64::NEG_INFINITY } else { largest + total.ln() });
        lse_scale.push(1.0 + off);
    }
    let sizes = [&call.q.sizes[..3], &[width]].concat();
    let (computed, numbers) = (call.computed(), call.q.sizes[..3].to_vec());
    // What rounding lost is nothing, up to what rounding loses.
    let lost = vec![0.0; lse.len()];
    vec![
        Answer::scaled(call.q.dtype, sizes, means, means_scale),
        Answer::scaled(computed, numbers.clone(), lse, lse_scale.clone()),
        Answer::scaled(computed, numbers, lost, lse_scale),
    ]
}

pub fn attention_grad(asked: &Asked) -> Vec<Answer> {
    let call = Call::of(asked);
    let [lse, lost, shared, g] = [3, 4, 5, 6].map(|i| &asked.inputs[i]);
    let zeros = |x: &Plain| (vec![0.0; x.values.len()], vec![0.0; x.values.len()]);
    let (mut dq, mut dk, mut dv) = (zeros(call.q), zeros(call.k), zeros(call.v));
    let add = |to: &mut (Vec<f64>, Vec<f64>), of: &Plain, at: &[usize], x: f64, scale: f64| {
        let at = at.iter().zip(&of.sizes).fold(0, |at, (i, n)| at * n + i);
        to.0[at] += x;
        to.1[at] += scale;
    };
    for query in call.queries() {
        for key in 0..call.keys() {
            let Some((score, off)) = call.score(&query, key) else { continue };
            if lse.at(&query) == f64::NEG_INFINITY {
                continue;
            }
            let weight = (score - lse.at(&query) - lost.at(&query)).exp();
            let doubt = lse.at(&query).abs() + lost.at(&query).abs();
            let doubt = weight * (1.0 + 2.0 * (off + doubt));
            let of_key = [query[0], query[1] / call.group, key];
            let (mut slope, mut size) = (-shared.at(&query), shared.at(&query).abs());
            for e in 0..call.v.sizes[3] {
                let gave = g.at(&[&query[..], &[e]].concat());
                let term = gave * call.value(&query, key, e);
                (slope, size) = (slope + term, size + term.abs());
                let at = [&of_key[..], &[e]].concat();
                add(&mut dv, call.v, &at, weight * gave, doubt * gave.abs());
            }
            let (slope, size) = (weight * slope * call.scale, doubt * size * call.scale);
            for d in 0..call.q.sizes[3] {
                let (of_q, of_k) = ([&query[..], &[d]].concat(), [&of_key[..], &[d]].concat());
                let (x, y) = (call.q.at(&of_q), call.k.at(&of_k));
                add(&mut dq, call.q, &of_q, slope * y, size * y.abs());
                add(&mut dk, call.k, &of_k, slope * x, size * x.abs());
            }
        }
    }
    let answer =
        |x: &Plain, (values, scale)| Answer::scaled(x.dtype, x.sizes.clone(), values, scale);
    vec![answer(call.q, dq), answer(call.k, dk), answer(call.v, dv)]
}
