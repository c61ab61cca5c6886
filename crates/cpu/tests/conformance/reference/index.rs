//! Indexing. Without an attribute, rows lie along axis 0.

use tonnage_core::{Attrs, DType};

use super::{Asked, indices};
use crate::plain::{Answer, Plain};

fn axis(asked: &Asked) -> usize {
    if let Attrs::Axis(axis) = *asked.attrs { axis } else { 0 }
}

/// For every element of gathered rows: which index chose it, and where it lies in the table.
fn chosen(table: &[usize], by: &Plain, axis: usize) -> Vec<(usize, Vec<usize>)> {
    let rank = by.sizes.len();
    let sizes = [&table[..axis], &by.sizes, &table[axis + 1..]].concat();
    let place = |index: &Vec<usize>| {
        let inner = &index[axis..axis + rank];
        let number = inner.iter().zip(&by.sizes).fold(0, |at, (i, n)| at * n + i);
        let row = by.values[number] as usize;
        (number, [&index[..axis], &[row], &index[axis + rank..]].concat())
    };
    indices(&sizes).iter().map(place).collect()
}

fn rows_shape(table: &[usize], by: &Plain, axis: usize) -> Vec<usize> {
    [&table[..axis], &by.sizes, &table[axis + 1..]].concat()
}

fn flat(sizes: &[usize], index: &[usize]) -> usize {
    index.iter().zip(sizes).fold(0, |at, (i, n)| at * n + i)
}

/// Where each index first occurs.
pub fn first_of(asked: &Asked) -> Vec<Answer> {
    let all = &asked.inputs[0];
    let first = |x: &f64| all.values.iter().position(|y| x == y).expect("itself") as f64;
    let values = all.values.iter().map(first).collect();
    vec![Answer::new(DType::I64, all.sizes.clone(), values)]
}

/// Parts of a table along an axis, which the shape of the indices takes the place of.
pub fn gather(asked: &Asked) -> Vec<Answer> {
    let (table, by, axis) = (&asked.inputs[0], &asked.inputs[1], axis(asked));
    let values = chosen(&table.sizes, by, axis).iter().map(|(_, at)| table.at(at)).collect();
    vec![Answer::new(table.dtype, rows_shape(&table.sizes, by, axis), values)]
}

/// Of equal indices only the last gets the row.
pub fn gather_last(asked: &Asked) -> Vec<Answer> {
    let (table, by, axis) = (&asked.inputs[0], &asked.inputs[1], axis(asked));
    let last = |number: usize| !by.values[number + 1..].contains(&by.values[number]);
    let value = |(number, at): &(usize, Vec<usize>)| if last(*number) { table.at(at) } else { 0.0 };
    let values = chosen(&table.sizes, by, axis).iter().map(value).collect();
    vec![Answer::new(table.dtype, rows_shape(&table.sizes, by, axis), values)]
}

/// Zeros with rows added.
pub fn rows_to_dense(asked: &Asked) -> Vec<Answer> {
    let [by, rows] = asked.inputs else { panic!("two inputs") };
    let Attrs::Shape(shape) = asked.attrs else { panic!("a shape") };
    let table = Plain::zeros(&tonnage_core::TensorType::new(rows.dtype, shape.clone()));
    let inputs = [table, by.clone(), rows.clone()];
    scatter_add(&Asked { inputs: &inputs, attrs: &Attrs::None, regions: &[] })
}

/// A table with rows added.
pub fn scatter_add(asked: &Asked) -> Vec<Answer> {
    let [table, by, rows] = asked.inputs else { panic!("three inputs") };
    let mut values = table.values.clone();
    let mut scale: Vec<f64> = values.iter().map(|x| x.abs()).collect();
    for ((_, at), row) in chosen(&table.sizes, by, axis(asked)).iter().zip(&rows.values) {
        values[flat(&table.sizes, at)] += row;
        scale[flat(&table.sizes, at)] += row.abs();
    }
    vec![Answer::scaled(table.dtype, table.sizes.clone(), values, scale)]
}

/// A table with rows replaced; the last of equal indices stays.
pub fn scatter_update(asked: &Asked) -> Vec<Answer> {
    let [table, by, rows] = asked.inputs else { panic!("three inputs") };
    let mut values = table.values.clone();
    let mut places: Vec<_> =
        chosen(&table.sizes, by, axis(asked)).into_iter().zip(&rows.values).collect();
    places.sort_by_key(|((number, _), _)| *number);
    for ((_, at), row) in places {
        values[flat(&table.sizes, &at)] = *row;
    }
    vec![Answer::new(table.dtype, table.sizes.clone(), values)]
}

/// Elements of each row of the last axis, by indices of their own.
pub fn take_along_axis(asked: &Asked) -> Vec<Answer> {
    let (x, by) = (&asked.inputs[0], &asked.inputs[1]);
    let value = |index: &Vec<usize>| {
        let (_, outer) = index.split_last().expect("an axis");
        x.at(&[outer, &[by.at(index) as usize]].concat())
    };
    let values = indices(&by.sizes).iter().map(value).collect();
    vec![Answer::new(x.dtype, by.sizes.clone(), values)]
}

/// Zeros with values added at indices along the last axis, which is as long as the attributes say.
pub fn put_along_axis(asked: &Asked) -> Vec<Answer> {
    let Attrs::Shape(length) = asked.attrs else { panic!("no length") };
    let (by, x) = (&asked.inputs[0], &asked.inputs[1]);
    let (_, outer) = x.sizes.split_last().expect("an axis");
    let sizes = [outer, &[length[0].known().expect("known")]].concat();
    let mut values = vec![0.0; sizes.iter().product()];
    let mut scale = values.clone();
    for index in indices(&x.sizes) {
        let (_, outer) = index.split_last().expect("an axis");
        let at = flat(&sizes, &[outer, &[by.at(&index) as usize]].concat());
        values[at] += x.at(&index);
        scale[at] += x.at(&index).abs();
    }
    vec![Answer::scaled(x.dtype, sizes, values, scale)]
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

/// Zeros, with rows where the mask is true, in order.
pub fn mask_scatter(asked: &Asked) -> Vec<Answer> {
    let (mask, rows) = (&asked.inputs[0], &asked.inputs[1]);
    let inner = &rows.sizes[1..];
    let row: usize = inner.iter().product();
    let (mut values, mut next) = (Vec::new(), 0);
    for truth in &mask.values {
        match *truth != 0.0 {
            true => {
                values.extend(&rows.values[next * row..(next + 1) * row]);
                next += 1;
            }
            false => values.extend(vec![0.0; row]),
        }
    }
    vec![Answer::new(rows.dtype, [&mask.sizes, inner].concat(), values)]
}
