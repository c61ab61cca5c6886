//! Normalization, number by number.

use tonnage_core::Attrs;

use super::nn::wide;
use super::{Asked, indices};
use crate::plain::{Answer, Plain};

struct How {
    epsilon: f64,
    centered: bool,
    groups: usize,
}

fn how(asked: &Asked) -> How {
    let Attrs::Normalize { epsilon, centered, groups } = *asked.attrs else { panic!("no attrs") };
    How { epsilon: epsilon.to_f64(), centered, groups }
}

/// Indices of the elements that share statistics, by the index of those.
fn sets(x: &Plain, groups: Option<usize>) -> Vec<Vec<usize>> {
    let last = *x.sizes.last().expect("an axis");
    let mut all: Vec<Vec<usize>> = match groups {
        None => vec![vec![]; x.sizes[..x.sizes.len() - 1].iter().product()],
        Some(groups) => vec![vec![]; x.sizes[0] * groups],
    };
    for (at, index) in indices(&x.sizes).iter().enumerate() {
        let channel = index[index.len() - 1];
        let set = match groups {
            None => at / last,
            Some(groups) => index[0] * groups + channel / (last / groups),
        };
        all[set].push(at);
    }
    all
}

fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    values.clone().sum::<f64>() / values.count() as f64
}

/// Mean and variance of a set.
fn statistics(x: &Plain, set: &[usize], centered: bool) -> (f64, f64) {
    let middle = if centered { mean(set.iter().map(|i| x.values[*i])) } else { 0.0 };
    (middle, mean(set.iter().map(|i| (x.values[*i] - middle).powi(2))))
}

fn forward(asked: &Asked, sets: &[Vec<usize>]) -> (Answer, Vec<(f64, f64)>) {
    let [x, scale, bias] = asked.inputs else { panic!("three inputs") };
    let (how, last) = (how(asked), scale.values.len());
    let (mut values, mut around) = (vec![0.0; x.values.len()], vec![0.0; x.values.len()]);
    let mut found = Vec::new();
    for set in sets {
        let (mean, variance) = statistics(x, set, how.centered);
        let by = 1.0 / (variance + how.epsilon).sqrt();
        for i in set {
            let (scale, bias) = (scale.values[i % last], bias.values[i % last]);
            values[*i] = (x.values[*i] - mean) * by * scale + bias;
            let size = (x.values[*i].abs() + mean.abs()) * by * scale.abs();
            around[*i] = 2.0 * size + bias.abs();
        }
        found.push((mean, variance));
    }
    (Answer::scaled(x.dtype, x.sizes.clone(), values, around), found)
}

pub fn layer_norm(asked: &Asked) -> Vec<Answer> {
    vec![forward(asked, &sets(&asked.inputs[0], None)).0]
}

pub fn group_norm(asked: &Asked) -> Vec<Answer> {
    let (x, groups) = (&asked.inputs[0], how(asked).groups);
    let (made, found) = forward(asked, &sets(x, Some(groups)));
    let sizes = vec![x.sizes[0], groups];
    let of = |values: Vec<f64>| {
        let scale = values.iter().map(|v| v.abs() + 4.0).collect();
        Answer::scaled(wide(x.dtype), sizes.clone(), values, scale)
    };
    let (means, variances) = found.into_iter().unzip();
    vec![made, of(means), of(variances)]
}

/// Gradients, by the statistics of every set.
fn back(
    x: &Plain,
    scale: &Plain,
    g: &Plain,
    sets: &[Vec<usize>],
    how: &How,
    found: impl Fn(usize) -> (f64, f64),
) -> Vec<Answer> {
    let last = scale.values.len();
    let zeros = |x: &Plain| (vec![0.0; x.values.len()], vec![0.0; x.values.len()]);
    let (mut dx, mut dscale, mut dbias) = (zeros(x), zeros(scale), zeros(scale));
    for (number, set) in sets.iter().enumerate() {
        let (middle, variance) = found(number);
        let by = 1.0 / (variance + how.epsilon).sqrt();
        let normal = |i: usize| (x.values[i] - middle) * by;
        let size = |i: usize| (x.values[i].abs() + middle.abs()) * by;
        let gs = |i: usize| g.values[i] * scale.values[i % last];
        let for_mean = if how.centered { mean(set.iter().map(|i| gs(*i))) } else { 0.0 };
        let for_deviation = mean(set.iter().map(|i| gs(*i) * normal(*i)));
        let most = mean(set.iter().map(|i| gs(*i).abs() * (1.0 + size(*i))));
        for i in set.iter().copied() {
            dx.0[i] = (gs(i) - for_mean - normal(i) * for_deviation) * by;
            dx.1[i] = 2.0 * (gs(i).abs() + most * (1.0 + size(i))) * by;
            dscale.0[i % last] += g.values[i] * normal(i);
            dscale.1[i % last] += 2.0 * g.values[i].abs() * size(i);
            dbias.0[i % last] += g.values[i];
            dbias.1[i % last] += g.values[i].abs();
        }
    }
    let answer =
        |x: &Plain, (values, scale)| Answer::scaled(x.dtype, x.sizes.clone(), values, scale);
    vec![answer(x, dx), answer(scale, dscale), answer(scale, dbias)]
}

pub fn layer_norm_grad(asked: &Asked) -> Vec<Answer> {
    let [x, scale, g] = asked.inputs else { panic!("three inputs") };
    let (how, sets) = (how(asked), sets(x, None));
    back(x, scale, g, &sets, &how, |number| statistics(x, &sets[number], how.centered))
}

pub fn group_norm_grad(asked: &Asked) -> Vec<Answer> {
    let [x, scale, means, variances, g] = asked.inputs else { panic!("five inputs") };
    let how = how(asked);
    let sets = sets(x, Some(how.groups));
    back(x, scale, g, &sets, &how, |number| (means.values[number], variances.values[number]))
}
