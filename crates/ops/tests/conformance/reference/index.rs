//! Indexing.

use tonnage_core::{Attrs, DType};

use super::{Asked, indices};
use crate::plain::Answer;

/// Parts of `params` along an axis, which the shape of the indices takes the place of.
pub fn gather(asked: &Asked) -> Vec<Answer> {
    let Attrs::Axis(axis) = *asked.attrs else { panic!("no axis") };
    let (params, chosen) = (&asked.inputs[0], &asked.inputs[1]);
    let (before, after) = (&params.sizes[..axis], &params.sizes[axis + 1..]);
    let sizes = [before, &chosen.sizes, after].concat();
    let rank = chosen.sizes.len();
    let value = |index: &Vec<usize>| {
        let at = chosen.at(&index[axis..axis + rank]) as usize;
        params.at(&[&index[..axis], &[at], &index[axis + rank..]].concat())
    };
    vec![Answer::new(params.dtype, sizes.clone(), indices(&sizes).iter().map(value).collect())]
}

/// A table with rows added along axis 0.
pub fn scatter_add(asked: &Asked) -> Vec<Answer> {
    let [table, chosen, rows] = asked.inputs else { panic!("three inputs") };
    let row: usize = table.sizes[1..].iter().product();
    let mut values = table.values.clone();
    let mut scale: Vec<f64> = values.iter().map(|x| x.abs()).collect();
    for (i, at) in chosen.values.iter().enumerate() {
        for j in 0..row {
            values[*at as usize * row + j] += rows.values[i * row + j];
            scale[*at as usize * row + j] += rows.values[i * row + j].abs();
        }
    }
    vec![Answer::scaled(table.dtype, table.sizes.clone(), values, scale)]
}

/// The largest along the last axis, largest first, and where they are; of equal ones the first comes first.
pub fn top_k(asked: &Asked) -> Vec<Answer> {
    let Attrs::Count(k) = *asked.attrs else { panic!("no count") };
    let x = &asked.inputs[0];
    let (n, outer) = x.sizes.split_last().expect("an axis");
    let sizes = [outer, &[k]].concat();
    let (mut values, mut places) = (Vec::new(), Vec::new());
    for row in 0..outer.iter().product::<usize>() {
        let row = &x.values[row * n..(row + 1) * n];
        let mut order: Vec<usize> = (0..*n).collect();
        order.sort_by(|a, b| row[*b].partial_cmp(&row[*a]).expect("no NaN").then(a.cmp(b)));
        values.extend(order[..k].iter().map(|i| row[*i]));
        places.extend(order[..k].iter().map(|i| *i as f64));
    }
    vec![Answer::new(x.dtype, sizes.clone(), values), Answer::new(DType::I32, sizes, places)]
}

/// What a mask over the leading axes lets through, as rows.
pub fn boolean_mask(asked: &Asked) -> Vec<Answer> {
    let (x, mask) = (&asked.inputs[0], &asked.inputs[1]);
    let inner = &x.sizes[mask.sizes.len()..];
    let row: usize = inner.iter().product();
    let through: Vec<usize> = (0..mask.values.len()).filter(|i| mask.values[*i] != 0.0).collect();
    let values = through.iter().flat_map(|i| x.values[i * row..(i + 1) * row].to_vec()).collect();
    vec![Answer::new(x.dtype, [&[through.len()], inner].concat(), values)]
}
