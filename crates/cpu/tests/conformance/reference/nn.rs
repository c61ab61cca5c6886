//! Softmax and cross-entropies, row by row.

use tonnage_core::{Attrs, DType};

use super::Asked;
use crate::plain::{Answer, Plain};

/// Rows along the last axis.
pub fn rows(x: &Plain) -> Vec<Vec<f64>> {
    let width = *x.sizes.last().expect("an axis");
    let count = x.sizes[..x.sizes.len() - 1].iter().product();
    (0..count).map(|i| x.values[i * width..(i + 1) * width].to_vec()).collect()
}

/// What sums are kept in.
pub fn wide(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// The logarithm of the sum of the powers of e.
fn log_sum_exp(row: &[f64]) -> f64 {
    let largest = row.iter().fold(f64::NEG_INFINITY, |a, b| if a > *b { a } else { *b });
    let base = if largest == f64::NEG_INFINITY { 0.0 } else { largest };
    base + row.iter().map(|x| (x - base).exp()).sum::<f64>().ln()
}

/// A function of rows, with a scale for each element.
fn by_rows(x: &Plain, f: impl Fn(usize, &[f64]) -> Vec<(f64, f64)>) -> Answer {
    let made = rows(x).iter().enumerate().flat_map(|(i, row)| f(i, row)).collect::<Vec<_>>();
    let (values, scale) = made.into_iter().unzip();
    Answer::scaled(x.dtype, x.sizes.clone(), values, scale)
}

pub fn softmax(asked: &Asked) -> Vec<Answer> {
    let made = by_rows(&asked.inputs[0], |_, row| {
        let lse = log_sum_exp(row);
        let most = row.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        row.iter().map(|x| ((x - lse).exp(), (x - lse).exp() * (1.0 + most))).collect()
    });
    vec![made]
}

pub fn softmax_grad(asked: &Asked) -> Vec<Answer> {
    let [g, y] = asked.inputs else { panic!("two inputs") };
    let of_y = rows(y);
    let made = by_rows(g, |i, g| {
        let y = &of_y[i];
        let sum: f64 = g.iter().zip(y).map(|(g, y)| g * y).sum();
        let size: f64 = g.iter().zip(y).map(|(g, y)| (g * y).abs()).sum();
        g.iter().zip(y).map(|(g, y)| (y * (g - sum), y.abs() * (g.abs() + size))).collect()
    });
    vec![made]
}

pub fn log_softmax(asked: &Asked) -> Vec<Answer> {
    let made = by_rows(&asked.inputs[0], |_, row| {
        let lse = log_sum_exp(row);
        row.iter().map(|x| (x - lse, x.abs() + lse.abs())).collect()
    });
    vec![made]
}

pub fn log_softmax_grad(asked: &Asked) -> Vec<Answer> {
    let [g, y] = asked.inputs else { panic!("two inputs") };
    let of_y = rows(y);
    let made = by_rows(g, |i, g| {
        let (sum, size) = (g.iter().sum::<f64>(), g.iter().map(|g| g.abs()).sum::<f64>());
        let each = g.iter().zip(&of_y[i]);
        let value =
            |(g, y): (&f64, &f64)| (g - y.exp() * sum, g.abs() + y.exp() * size * (1.0 + y.abs()));
        each.map(value).collect()
    });
    vec![made]
}

fn share(asked: &Asked) -> f64 {
    let Attrs::Smoothing(share) = asked.attrs else { panic!("no smoothing") };
    share.to_f64()
}

/// What a row is told to be: a label or probabilities, smoothed.
fn targets(asked: &Asked, row: usize) -> Vec<f64> {
    let (x, told, share) = (&asked.inputs[0], &asked.inputs[1], share(asked));
    let width = *x.sizes.last().expect("an axis");
    let target = |i: usize| match told.dtype.is_float() {
        true => told.values[row * width + i],
        false => f64::from(told.values[row] == i as f64),
    };
    (0..width).map(|i| (1.0 - share) * target(i) + share / width as f64).collect()
}

/// `sum(t * (lse - x))`
pub fn cross_entropy(asked: &Asked) -> Vec<Answer> {
    let x = &asked.inputs[0];
    let (mut losses, mut scale) = (vec![], vec![]);
    for (i, row) in rows(x).iter().enumerate() {
        let (lse, targets) = (log_sum_exp(row), targets(asked, i));
        let terms = row.iter().zip(&targets);
        losses.push(terms.clone().map(|(x, t)| t * (lse - x)).sum::<f64>());
        scale.push(terms.map(|(x, t)| t.abs() * (lse.abs() + x.abs() + 1.0)).sum::<f64>());
    }
    let sizes = x.sizes[..x.sizes.len() - 1].to_vec();
    // Beside labels, losses are what they are computed in.
    let dtype = if asked.inputs[1].dtype.is_float() { x.dtype } else { x.dtype.compute() };
    vec![Answer::scaled(dtype, sizes, losses, scale)]
}

pub fn cross_entropy_grad(asked: &Asked) -> Vec<Answer> {
    let [x, _, g] = asked.inputs else { panic!("three inputs") };
    let made = by_rows(x, |i, row| {
        let (lse, g, targets) = (log_sum_exp(row), g.values[i], targets(asked, i));
        let by = g * targets.iter().sum::<f64>();
        let size = g.abs() * targets.iter().map(|t| t.abs()).sum::<f64>();
        let value = |(x, t): (&f64, &f64)| {
            let power = (x - lse).exp();
            let doubt = 1.0 + x.abs() + lse.abs();
            (power * by - g * t, power * size * doubt + (g * t).abs())
        };
        row.iter().zip(&targets).map(value).collect()
    });
    vec![made]
}

/// Pairs of the last axis rotated by an angle that grows with the position, which is the axis before it.
pub fn rotary_embedding(asked: &Asked) -> Vec<Answer> {
    let Attrs::Rotary { base, neighbours, back } = *asked.attrs else { panic!("no attrs") };
    let [x, positions] = asked.inputs else { panic!("two inputs") };
    let (length, width) = (positions.values.len(), x.sizes[x.sizes.len() - 1]);
    let pairs = width / 2;
    let made = by_rows(x, |row, values| {
        let position = positions.values[row % length];
        let mut made = vec![(0.0, 0.0); width];
        for i in 0..pairs {
            let (a, b) = if neighbours { (2 * i, 2 * i + 1) } else { (i, i + pairs) };
            let angle = position / base.to_f64().powf(i as f64 / pairs as f64);
            let (sin, cos) = if back { (-angle).sin_cos() } else { angle.sin_cos() };
            let size = values[a].abs() + values[b].abs();
            made[a] = (values[a] * cos - values[b] * sin, size);
            made[b] = (values[b] * cos + values[a] * sin, size);
        }
        made
    });
    vec![made]
}
