//! Elements by index, in order, or by a mask.

use tonnage::{DType, Dim, Elementwise, Result, Tensor};

use super::Rule;
use crate::call::{Call, int_tensor, one};
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "Gather" => |c| {
            let (table, axis) = (c.raw(0)?, c.int("axis", 0)?);
            let axis = c.axis(axis, table.rank())?;
            let places = from_front(&c.x(1)?, c.sizes(&table)?[axis])?;
            if axis == 0
                && let Some(rows) = c.importer.tables.rows(c, &table, &places)?
            {
                return one(rows);
            }
            one(c.read(table)?.gather(&places, axis as i64)?)
        },
        "GatherElements" => |c| {
            let (x, indices) = (c.x(0)?, c.x(1)?);
            let axis = c.axis(c.int("axis", 0)?, x.rank())?;
            let sizes = c.sizes(&x)?;
            let places = from_front(&indices, sizes[axis])?;
            // Other axes of the indices may be shorter: those elements alone are looked at.
            let parts: Vec<tonnage::Part> = c
                .sizes(&indices)?
                .iter()
                .enumerate()
                .map(|(at, n)| if at == axis { tonnage::Part::ALL } else { (0..*n as i64).into() })
                .collect();
            one(x.slice(&parts)?.take_along_axis(&places, axis as i64)?)
        },
        "GatherND" => |c| {
            let (x, indices) = (c.x(0)?, c.x(1)?);
            let batch = c.length(c.int("batch_dims", 0)?)?;
            let places = nd_from_front(c, &indices, &c.sizes(&x)?[batch..])?;
            one(x.gather_nd_batched(&places, batch)?)
        },
        "TopK" => top_k,
        "NonZero" => |c| {
            let x = c.x(0)?;
            if x.rank() == 0 {
                return one(x.reshape([1])?.nonzero()?.t()?);
            }
            one(x.nonzero()?.t()?)
        },
        "Compress" => |c| {
            let (x, condition) = (c.x(0)?, c.x(1)?);
            let Some(axis) = c.maybe_int("axis")? else {
                let count: usize = c.sizes(&x)?.iter().product();
                return one(masked(c, &x.reshape([count])?, &condition)?);
            };
            let axis = c.axis(axis, x.rank())?;
            let mut order: Vec<i64> = (0..x.rank() as i64).collect();
            order.swap(0, axis);
            one(masked(c, &x.transpose(&order)?, &condition)?.transpose(&order)?)
        },
        "Unique" => unique,
        "OneHot" => one_hot,
        _ => return None,
    })
}

/// Indices that count from the back, counted from the front.
pub fn from_front(indices: &Tensor, length: usize) -> Result<Tensor> {
    match indices.dtype().class() {
        tonnage_core::Class::Unsigned => Ok(indices.clone()),
        _ => indices.less(0)?.where_(&indices.add(length as i64)?, indices),
    }
}

/// The same for indices into several axes, along the last one.
pub fn nd_from_front(c: &Call, indices: &Tensor, sizes: &[usize]) -> Result<Tensor> {
    let count = c.sizes(indices)?.last().copied().unwrap_or(0);
    let lengths: Vec<i64> = sizes.iter().take(count).map(|n| *n as i64).collect();
    if lengths.len() != count {
        return Err(c.refuse(format!("indices into {count} axes of {}", sizes.len())));
    }
    let lengths = int_tensor(&lengths, &[count])?;
    let indices = indices.cast(DType::I64)?;
    indices.less(0)?.where_(&indices.add(&lengths)?, &indices)
}

/// Rows where a condition, which may be shorter than the axis, is true.
fn masked(c: &Call, x: &Tensor, condition: &Tensor) -> Result<Tensor> {
    let length = c.sizes(condition)?.first().copied().unwrap_or(0);
    x.slice(&[(0..length as i64).into()])?.boolean_mask(condition)
}

fn top_k(c: &Call) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    let k = match c.maybe_int("k")? {
        Some(k) => k,
        None => c.number(1)?,
    };
    let (k, axis) = (c.length(k)?, c.axis(c.int("axis", -1)?, x.rank())?);
    let largest = c.int("largest", 1)? != 0;
    // In order, with the first of equal elements first.
    let places = x.argsort(axis as i64, largest)?;
    let mut parts = vec![tonnage::Part::ALL; x.rank()];
    parts[axis] = (0..k as i64).into();
    let places = places.slice(&parts)?.cast(DType::I64)?;
    let values = x.take_along_axis(&places, axis as i64)?;
    Ok(vec![values.into(), places.into()])
}

/// Of one axis, or of all elements: the numbers decide how many, so that it runs on known ones.
fn unique(c: &Call) -> Result<Vec<Value>> {
    let x = c.known(0)?;
    let sizes = c.sizes(&x)?;
    let (rows, axis) = match c.maybe_int("axis")? {
        Some(axis) => {
            let axis = c.axis(axis, sizes.len())?;
            let mut order: Vec<i64> = (0..sizes.len() as i64).collect();
            order.swap(0, axis);
            (x.transpose(&order)?, Some((axis, order)))
        }
        None => (x.reshape([sizes.iter().product::<usize>()])?, None),
    };
    let shape = c.sizes(&rows)?;
    let (count, width) = (shape[0], shape[1..].iter().product::<usize>());
    let numbers = (&rows).cast(DType::F64)?.to_vec::<f64>()?;
    let row = |at: usize| &numbers[at * width..(at + 1) * width];
    let compare =
        |a: &usize, b: &usize| row(*a).partial_cmp(row(*b)).unwrap_or(std::cmp::Ordering::Equal);
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(compare);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for at in order {
        match groups.last_mut() {
            Some(group) if row(group[0]) == row(at) => group.push(at),
            _ => groups.push(vec![at]),
        }
    }
    if c.int("sorted", 1)? == 0 {
        groups.sort_by_key(|group| group[0]);
    }
    let mut inverse = vec![0; count];
    for (number, group) in groups.iter().enumerate() {
        group.iter().for_each(|at| inverse[*at] = number as i64);
    }
    let first: Vec<i64> = groups.iter().map(|group| group[0] as i64).collect();
    let counts: Vec<i64> = groups.iter().map(|group| group.len() as i64).collect();
    let found = rows.gather(&int_tensor(&first, &[first.len()])?, 0)?;
    let found = match &axis {
        Some((_, order)) => found.transpose(order)?,
        None => found,
    };
    let numbers = [first, inverse, counts];
    let numbers = numbers.iter().map(|all| int_tensor(all, &[all.len()]).map(Value::Tensor));
    std::iter::once(Ok(found.into())).chain(numbers).collect()
}

fn one_hot(c: &Call) -> Result<Vec<Value>> {
    let (indices, depth, values) = (c.x(0)?, c.length(c.number(1)?)?, c.x(2)?);
    let axis = c.int("axis", -1)?;
    let rank = indices.rank() + 1;
    let axis = c.axis(axis, rank)?;
    let whole = indices.cast(DType::I64)?;
    let whole =
        whole.less(0)?.where_(&whole.add(depth as i64)?, &whole)?.expand_dims(axis as i64)?;
    let mut shape = vec![1; rank];
    shape[axis] = depth;
    let places = tonnage::positions(Dim::Known(depth), DType::I64)?.reshape(shape)?;
    let (off, on) = (values.slice(&[(0..1).into()])?, values.slice(&[(1..2).into()])?);
    one(places.equal(&whole)?.where_(&on, &off)?)
}
