//! Reductions.

use tonnage_core::{Attrs, Class};

use super::{Asked, indices};
use crate::plain::{Answer, Plain};

/// For every result, the elements that fold into it, in order.
fn groups(asked: &Asked) -> (Vec<usize>, Vec<Vec<f64>>) {
    let Attrs::Reduce { axes, keep_dims } = asked.attrs else { panic!("no axes") };
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
