//! Reductions.

use tonnage_core::{Attrs, Class, DType};

use super::{Asked, indices};
use crate::plain::{Answer, Plain};

/// For every result, the elements that are reduced to it, in order.
fn groups(asked: &Asked) -> (Vec<usize>, Vec<Vec<f64>>) {
    let (Attrs::Reduce { axes, keep_dims } | Attrs::Norm { axes, keep_dims, .. }) = asked.attrs
    else {
        panic!("no axes")
    };
    let x = &asked.inputs[0];
    let kept: Vec<usize> = (0..x.sizes.len()).filter(|a| !axes.contains(a)).collect();
    let outer: Vec<usize> = kept.iter().map(|a| x.sizes[*a]).collect();
    let mut all = vec![Vec::new(); outer.iter().product()];
    for index in indices(&x.sizes) {
        let at = kept.iter().fold(0, |at, a| at * x.sizes[*a] + index[*a]);
        all[at].push(x.at(&index));
    }
    let sizes = match keep_dims {
        false => outer,
        true => {
            (0..x.sizes.len()).map(|a| if axes.contains(&a) { 1 } else { x.sizes[a] }).collect()
        }
    };
    (sizes, all)
}

pub fn sum(asked: &Asked) -> Vec<Answer> {
    let (sizes, groups) = groups(asked);
    let values = groups.iter().map(|g| g.iter().sum()).collect();
    let scale = groups.iter().map(|g| g.iter().map(|x: &f64| x.abs()).sum()).collect();
    vec![Answer::scaled(asked.inputs[0].dtype, sizes, values, scale)]
}

/// The least value of a dtype, as far as f64 can say it.
fn least(x: &Plain) -> f64 {
    let bits = 8 * x.dtype.size() as i32;
    match x.dtype.class() {
        Class::Float => f64::NEG_INFINITY,
        Class::Signed => -2f64.powi(bits - 1),
        _ => 0.0,
    }
}

pub fn max(asked: &Asked) -> Vec<Answer> {
    let (sizes, groups) = groups(asked);
    let largest = |group: &Vec<f64>| {
        let larger = |a: f64, b: &f64| if a.is_nan() || a > *b { a } else { *b };
        group.iter().fold(least(&asked.inputs[0]), larger)
    };
    vec![Answer::new(asked.inputs[0].dtype, sizes, groups.iter().map(largest).collect())]
}

/// The largest value of a dtype, as far as f64 can say it.
fn greatest(x: &Plain) -> f64 {
    let bits = 8 * x.dtype.size() as i32;
    match x.dtype.class() {
        Class::Float => f64::INFINITY,
        Class::Signed => 2f64.powi(bits - 1) - 1.0,
        _ => 2f64.powi(bits) - 1.0,
    }
}

pub fn min(asked: &Asked) -> Vec<Answer> {
    let (sizes, groups) = groups(asked);
    let least = |group: &Vec<f64>| {
        let smaller = |a: f64, b: &f64| if a.is_nan() || a < *b { a } else { *b };
        group.iter().fold(greatest(&asked.inputs[0]), smaller)
    };
    vec![Answer::new(asked.inputs[0].dtype, sizes, groups.iter().map(least).collect())]
}

/// One number for each group, with errors measured against another one.
fn reduced(
    asked: &Asked,
    dtype: DType,
    value: impl Fn(&[f64]) -> f64,
    scale: impl Fn(&[f64]) -> f64,
) -> Vec<Answer> {
    let (sizes, groups) = groups(asked);
    let values = groups.iter().map(|g| value(g)).collect();
    let scale = groups.iter().map(|g| scale(g)).collect();
    vec![Answer::scaled(dtype, sizes, values, scale)]
}

fn average(group: &[f64]) -> f64 {
    group.iter().sum::<f64>() / group.len() as f64
}

fn variance(group: &[f64]) -> f64 {
    let mean = average(group);
    group.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / group.len() as f64
}

pub fn mean(asked: &Asked) -> Vec<Answer> {
    let size = |g: &[f64]| g.iter().map(|x| x.abs()).sum::<f64>() / g.len().max(1) as f64;
    reduced(asked, asked.inputs[0].dtype, average, size)
}

/// Whole numbers wrap around at every step, and so does what is left of them modulo 2^64.
pub fn prod(asked: &Asked) -> Vec<Answer> {
    let dtype = asked.inputs[0].dtype;
    let whole = |g: &[f64]| {
        let bits = g.iter().fold(1u64, |p, x| p.wrapping_mul(*x as i64 as u64));
        if dtype.class() == Class::Signed { bits as i64 as f64 } else { bits as f64 }
    };
    let float = |g: &[f64]| g.iter().product::<f64>();
    // Each factor brings an error of its own.
    let scale = |g: &[f64]| float(g).abs() * (1.0 + g.len() as f64 / 16.0);
    match dtype.is_float() {
        true => reduced(asked, dtype, float, scale),
        false => reduced(asked, dtype, whole, |_| 0.0),
    }
}

pub fn any(asked: &Asked) -> Vec<Answer> {
    let any = |g: &[f64]| f64::from(g.iter().any(|x| *x != 0.0));
    reduced(asked, DType::Bool, any, |_| 0.0)
}

pub fn all(asked: &Asked) -> Vec<Answer> {
    let all = |g: &[f64]| f64::from(g.iter().all(|x| *x != 0.0));
    reduced(asked, DType::Bool, all, |_| 0.0)
}

fn square_size(group: &[f64]) -> f64 {
    group.iter().map(|x| x * x).sum::<f64>() / group.len().max(1) as f64
}

pub fn var(asked: &Asked) -> Vec<Answer> {
    reduced(asked, asked.inputs[0].dtype, variance, square_size)
}

pub fn std(asked: &Asked) -> Vec<Answer> {
    let root = |g: &[f64]| variance(g).sqrt();
    reduced(asked, asked.inputs[0].dtype, root, |g| square_size(g).sqrt())
}

pub fn logsumexp(asked: &Asked) -> Vec<Answer> {
    let log = |g: &[f64]| g.iter().map(|x| x.exp()).sum::<f64>().ln();
    reduced(asked, asked.inputs[0].dtype, log, |_| 1.0)
}

pub fn count_nonzero(asked: &Asked) -> Vec<Answer> {
    let count = |g: &[f64]| g.iter().filter(|x| **x != 0.0).count() as f64;
    reduced(asked, DType::I64, count, |_| 0.0)
}

pub fn norm(asked: &Asked) -> Vec<Answer> {
    let Attrs::Norm { power, .. } = asked.attrs else { panic!("no power") };
    let power = power.to_f64();
    let length = |g: &[f64]| match power.is_infinite() {
        true => g.iter().fold(0.0, |most: f64, x| most.max(x.abs())),
        false => g.iter().map(|x| x.abs().powf(power)).sum::<f64>().powf(1.0 / power),
    };
    reduced(asked, asked.inputs[0].dtype, length, |_| 0.0)
}

/// Rows along an axis, as lists of places in the flat tensor, in order.
fn rows(sizes: &[usize], axis: usize) -> Vec<Vec<usize>> {
    let inner: usize = sizes[axis + 1..].iter().product();
    let outer: usize = sizes[..axis].iter().product();
    let n = sizes[axis];
    let row = |o: usize, i: usize| (0..n).map(|k| (o * n + k) * inner + i).collect();
    (0..outer).flat_map(|o| (0..inner).map(move |i| row(o, i))).collect()
}

fn arg(asked: &Asked, ahead: impl Fn(f64, f64) -> bool) -> Vec<Answer> {
    let Attrs::Axis(axis) = *asked.attrs else { panic!("no axis") };
    let x = &asked.inputs[0];
    let winner = |row: &Vec<usize>| {
        let first = |best: usize, i: usize| {
            if ahead(x.values[row[i]], x.values[row[best]]) { i } else { best }
        };
        (0..row.len()).fold(0, first) as f64
    };
    let sizes = [&x.sizes[..axis], &x.sizes[axis + 1..]].concat();
    let values = rows(&x.sizes, axis).iter().map(winner).collect();
    vec![Answer::new(DType::I64, sizes, values)]
}

pub fn argmax(asked: &Asked) -> Vec<Answer> {
    arg(asked, |a, b| a > b)
}

pub fn argmin(asked: &Asked) -> Vec<Answer> {
    arg(asked, |a, b| a < b)
}

/// Runs along an axis: `next(state, place)` gives the result at a place and the state behind it.
fn run(
    asked: &Asked,
    of: usize,
    start: f64,
    next: impl Fn(f64, usize, Option<usize>) -> (f64, f64),
    grows: bool,
) -> Vec<Answer> {
    let Attrs::Scan { axis, reverse, .. } = *asked.attrs else { panic!("no axis") };
    let x = &asked.inputs[of];
    let mut values = vec![0.0; x.values.len()];
    let mut scale = values.clone();
    for mut row in rows(&x.sizes, axis) {
        if reverse {
            row.reverse();
        }
        let (mut state, mut before, mut size) = (start, None, 0.0);
        for place in row {
            let (made, after) = next(state, place, before);
            (values[place], state, before) = (made, after, Some(place));
            // Each step brings an error of its own: of what is added, or of what has come of it.
            size += if grows { x.values[place].abs() } else { made.abs() / 16.0 };
            scale[place] = size;
        }
    }
    vec![Answer::scaled(x.dtype, x.sizes.clone(), values, scale)]
}

fn exclusive(asked: &Asked) -> bool {
    matches!(asked.attrs, Attrs::Scan { exclusive: true, .. })
}

pub fn cumsum(asked: &Asked) -> Vec<Answer> {
    let x = &asked.inputs[0].values;
    let next = |sum: f64, i: usize, _: Option<usize>| {
        let after = sum + x[i];
        (if exclusive(asked) { sum } else { after }, after)
    };
    run(asked, 0, 0.0, next, true)
}

pub fn cumprod(asked: &Asked) -> Vec<Answer> {
    let x = &asked.inputs[0];
    // Modulo 2^53 and less what is left of whole numbers is exact.
    let wrapped = |p: f64| if x.dtype.is_float() { p } else { crate::plain::held(p, x.dtype) };
    let next = |product: f64, i: usize, _: Option<usize>| {
        let after = wrapped(product * x.values[i]);
        (if exclusive(asked) { product } else { after }, after)
    };
    run(asked, 0, 1.0, next, false)
}

pub fn linear_recurrence(asked: &Asked) -> Vec<Answer> {
    let (a, b) = (&asked.inputs[0].values, &asked.inputs[1].values);
    let next = |y: f64, i: usize, before: Option<usize>| {
        let factor = if exclusive(asked) { before.map_or(0.0, |i| a[i]) } else { a[i] };
        let made = b[i] + factor * y;
        (made, made)
    };
    run(asked, 1, 0.0, next, true)
}
