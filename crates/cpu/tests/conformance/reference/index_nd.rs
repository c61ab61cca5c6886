//! Indexing into several axes, parts that start where a tensor says, sorting and counting.

use tonnage_core::{Attrs, DType};

use super::{Asked, indices};
use crate::plain::{Answer, Plain, held};

/// For every row that indices name: which shared position and place in the table it is; then the table's rows as
/// `(number, length)`.
fn named(asked: &Asked) -> (Vec<usize>, usize) {
    let Attrs::Count(batch) = *asked.attrs else { panic!("no count") };
    let (table, by) = (&asked.inputs[0], &asked.inputs[1]);
    let depth = *by.sizes.last().expect("an axis");
    let row: usize = table.sizes[batch + depth..].iter().product();
    let cells = &table.sizes[batch..batch + depth];
    let outer: usize = by.sizes[batch..by.sizes.len() - 1].iter().product();
    let shared: usize = by.sizes[..batch].iter().product();
    let place = |i: usize| {
        let start = i / outer * cells.iter().product::<usize>();
        let index = (0..depth).map(|j| by.values[i * depth + j] as usize);
        start + index.zip(cells).fold(0, |at, (i, n)| at * n + i)
    };
    ((0..shared * outer).map(place).collect(), row)
}

pub fn gather_nd(asked: &Asked) -> Vec<Answer> {
    let Attrs::Count(batch) = *asked.attrs else { panic!("no count") };
    let (table, by) = (&asked.inputs[0], &asked.inputs[1]);
    let (places, row) = named(asked);
    let values =
        places.iter().flat_map(|p| table.values[p * row..(p + 1) * row].to_vec()).collect();
    let depth = *by.sizes.last().expect("an axis");
    let sizes = [&by.sizes[..by.sizes.len() - 1], &table.sizes[batch + depth..]].concat();
    vec![Answer::new(table.dtype, sizes, values)]
}

fn scatter(asked: &Asked, put: impl Fn(f64, f64) -> f64) -> Plain {
    let [table, _, rows] = asked.inputs else { panic!("three inputs") };
    let (places, row) = named(asked);
    let mut made = table.clone();
    for (i, place) in places.iter().enumerate() {
        for j in 0..row {
            let to = &mut made.values[place * row + j];
            *to = held(put(*to, rows.values[i * row + j]), table.dtype);
        }
    }
    made
}

pub fn scatter_nd_add(asked: &Asked) -> Vec<Answer> {
    let made = scatter(asked, |a, b| a + b);
    let sizes = [0, 2].map(|i| asked.inputs[i].values.iter().map(|x| x.abs()).collect::<Vec<_>>());
    let [table, rows] = sizes;
    let of = |values, i: usize| Plain { values, ..asked.inputs[i].clone() };
    let inputs = [of(table, 0), asked.inputs[1].clone(), of(rows, 2)];
    let scale = scatter(&Asked { inputs: &inputs, ..*asked }, |a, b| a + b).values;
    let scale = if made.dtype.is_float() { scale } else { vec![0.0; made.values.len()] };
    vec![Answer::scaled(made.dtype, made.sizes, made.values, scale)]
}

fn put(asked: &Asked, put: impl Fn(f64, f64) -> f64) -> Vec<Answer> {
    let made = scatter(asked, put);
    vec![Answer::new(made.dtype, made.sizes, made.values)]
}

pub fn scatter_nd_update(asked: &Asked) -> Vec<Answer> {
    put(asked, |_, b| b)
}

pub fn scatter_nd_max(asked: &Asked) -> Vec<Answer> {
    put(asked, f64::max)
}

pub fn scatter_nd_min(asked: &Asked) -> Vec<Answer> {
    put(asked, f64::min)
}

pub fn dynamic_slice(asked: &Asked) -> Vec<Answer> {
    let Attrs::Shape(part) = asked.attrs else { panic!("no shape") };
    let (x, start) = (&asked.inputs[0], &asked.inputs[1]);
    let sizes = part.sizes().expect("known").to_vec();
    let from = |index: &Vec<usize>| {
        let moved = index.iter().zip(&start.values).map(|(i, s)| i + *s as usize);
        x.at(&moved.collect::<Vec<_>>())
    };
    let values = indices(&sizes).iter().map(from).collect();
    vec![Answer::new(x.dtype, sizes, values)]
}

pub fn dynamic_update(asked: &Asked) -> Vec<Answer> {
    let [x, part, start] = asked.inputs else { panic!("three inputs") };
    let mut values = x.values.clone();
    for index in indices(&part.sizes) {
        let moved = index.iter().zip(&start.values).map(|(i, s)| i + *s as usize);
        let flat = moved.zip(&x.sizes).fold(0, |at, (i, n)| at * n + i);
        values[flat] = part.at(&index);
    }
    vec![Answer::new(x.dtype, x.sizes.clone(), values)]
}

/// For each row of the last axis, its places in order.
fn orders(asked: &Asked) -> Vec<(usize, Vec<usize>)> {
    let Attrs::Descending(descending) = *asked.attrs else { panic!("no direction") };
    let x = &asked.inputs[0];
    let (n, outer) = x.sizes.split_last().expect("an axis");
    let order = |row: usize| {
        let values = &x.values[row * n..(row + 1) * n];
        let mut order: Vec<usize> = (0..*n).collect();
        order.sort_by(|a, b| {
            let up = values[*a].partial_cmp(&values[*b]).expect("no NaN");
            (if descending { up.reverse() } else { up }).then(a.cmp(b))
        });
        (row * n, order)
    };
    (0..outer.iter().product::<usize>()).map(order).collect()
}

pub fn sort(asked: &Asked) -> Vec<Answer> {
    let x = &asked.inputs[0];
    let row = |(start, order): &(usize, Vec<usize>)| {
        order.iter().map(|i| x.values[start + i]).collect::<Vec<_>>()
    };
    let values = orders(asked).iter().flat_map(row).collect();
    vec![Answer::new(x.dtype, x.sizes.clone(), values)]
}

pub fn argsort(asked: &Asked) -> Vec<Answer> {
    let places = orders(asked).into_iter().flat_map(|(_, order)| order);
    let values = places.map(|i| i as f64).collect();
    vec![Answer::new(DType::I32, asked.inputs[0].sizes.clone(), values)]
}

pub fn unique(asked: &Asked) -> Vec<Answer> {
    let x = &asked.inputs[0];
    let (mut found, mut counts, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for value in &x.values {
        let place = found.iter().position(|other| other == value).unwrap_or_else(|| {
            found.push(*value);
            counts.push(0.0);
            found.len() - 1
        });
        places.push(place as f64);
        counts[place] += 1.0;
    }
    vec![
        Answer::new(x.dtype, vec![found.len()], found),
        Answer::new(DType::I32, vec![places.len()], places),
        Answer::new(DType::I64, vec![counts.len()], counts),
    ]
}

pub fn searchsorted(asked: &Asked) -> Vec<Answer> {
    let Attrs::Right(right) = *asked.attrs else { panic!("no side") };
    let (sorted, values) = (&asked.inputs[0], &asked.inputs[1]);
    let n = *sorted.sizes.last().expect("an axis");
    let m = *values.sizes.last().expect("an axis");
    let place = |(i, value): (usize, &f64)| {
        let row = &sorted.values[i / m * n..(i / m + 1) * n];
        row.iter().filter(|x| *x < value || right && *x == value).count() as f64
    };
    let found = values.values.iter().enumerate().map(place).collect();
    vec![Answer::new(DType::I32, values.sizes.clone(), found)]
}

pub fn nonzero(asked: &Asked) -> Vec<Answer> {
    let x = &asked.inputs[0];
    let found: Vec<Vec<usize>> =
        indices(&x.sizes).into_iter().filter(|index| x.at(index) != 0.0).collect();
    let values = found.iter().flatten().map(|i| *i as f64).collect();
    vec![Answer::new(DType::I64, vec![found.len(), x.sizes.len()], values)]
}

pub fn bincount(asked: &Asked) -> Vec<Answer> {
    let Attrs::Count(bins) = *asked.attrs else { panic!("no bins") };
    let mut counts = vec![0.0; bins];
    asked.inputs[0].values.iter().for_each(|x| counts[*x as usize] += 1.0);
    vec![Answer::new(DType::I64, vec![bins], counts)]
}

pub fn histogram(asked: &Asked) -> Vec<Answer> {
    let Attrs::Histogram { low, high, bins } = *asked.attrs else { panic!("no range") };
    let (low, high) = (low.to_f64(), high.to_f64());
    let mut counts = vec![0.0; bins];
    for x in &asked.inputs[0].values {
        let part = ((x - low) / (high - low) * bins as f64).floor();
        counts[part.clamp(0.0, bins as f64 - 1.0) as usize] += 1.0;
    }
    vec![Answer::new(DType::I64, vec![bins], counts)]
}
