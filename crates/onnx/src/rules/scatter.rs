//! Elements put at indices.

use tonnage::{DType, Dim, Elementwise, Result, Tensor, scan, stack};

use super::Rule;
use super::index::{from_front, nd_from_front};
use crate::call::{Call, one};
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "Scatter" | "ScatterElements" => scatter_elements,
        "ScatterND" => |c| {
            let (x, rows) = (c.x(0)?, c.x(2)?);
            let places = nd_from_front(c, &c.x(1)?, &c.sizes(&x)?)?;
            one(put(c, x, &places, &rows)?)
        },
        "TensorScatter" => tensor_scatter,
        _ => return None,
    })
}

/// Rows put in by the attribute `reduction`.
fn put(c: &Call, x: Tensor, places: &Tensor, rows: &Tensor) -> Result<Tensor> {
    match c.text("reduction", "none")?.as_str() {
        "none" => x.scatter_nd_update(places, rows),
        "add" => x.scatter_nd_add(places, rows),
        "max" => x.scatter_nd_max(places, rows),
        "min" => x.scatter_nd_min(places, rows),
        "mul" => multiplied(c, x, places, rows),
        other => Err(c.refuse(format!("the attribute `reduction` is `{other}`"))),
    }
}

/// Rows multiplied in, one after the other: a place may come again.
fn multiplied(c: &Call, x: Tensor, places: &Tensor, rows: &Tensor) -> Result<Tensor> {
    let Some((depth, outer)) = c.sizes(places)?.split_last().map(|(n, all)| (*n, all.to_vec()))
    else {
        return Err(c.refuse("indices without an axis"));
    };
    let count: usize = outer.iter().product();
    let mut sizes = vec![count];
    sizes.extend(c.sizes(rows)?.iter().skip(outer.len()));
    let each = (places.reshape([count, depth])?, rows.reshape(sizes)?);
    let step = |x: Tensor, (place, row): (Tensor, Tensor)| {
        let place = place.expand_dims(0)?;
        let made = x.gather_nd(&place)?.mul(&row.expand_dims(0)?)?;
        Ok((x.scatter_nd_update(&place, &made)?, ()))
    };
    Ok(scan(x, each, step)?.0)
}

/// The index of each element along an axis, for a tensor of a shape.
fn coordinate(axis: usize, sizes: &[usize]) -> Result<Tensor> {
    let mut shape = vec![1; sizes.len()];
    shape[axis] = sizes[axis];
    tonnage::positions(Dim::Known(sizes[axis]), DType::I64)?.reshape(shape)?.broadcast_to(sizes)
}

fn scatter_elements(c: &Call) -> Result<Vec<Value>> {
    let (x, indices, rows) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let axis = c.axis(c.int("axis", 0)?, x.rank())?;
    let sizes = c.sizes(&indices)?;
    let along = from_front(&indices, c.sizes(&x)?[axis])?.cast(DType::I64)?;
    let mut places = Vec::new();
    for at in 0..sizes.len() {
        places.push(if at == axis { along.clone() } else { coordinate(at, &sizes)? });
    }
    let places = stack(&places.iter().collect::<Vec<_>>(), -1)?;
    one(put(c, x, &places, &rows)?)
}

/// New keys or values written into a cache, from where each row says.
fn tensor_scatter(c: &Call) -> Result<Vec<Value>> {
    let (x, update) = (c.x(0)?, c.x(1)?);
    let axis = c.axis(c.int("axis", -2)?, x.rank())?;
    let (whole, sizes) = (c.sizes(&x)?, c.sizes(&update)?);
    let mut starts_shape = vec![1; sizes.len()];
    starts_shape[0] = sizes[0];
    let mut along = coordinate(axis, &sizes)?;
    if let Some(starts) = c.maybe(2)? {
        along = along.add(&starts.cast(DType::I64)?.reshape(starts_shape)?)?;
    }
    if c.text("mode", "linear")? == "circular" {
        along = along.modulo(whole[axis] as i64)?;
    }
    let mut places = Vec::new();
    for at in 0..sizes.len() {
        places.push(if at == axis { along.clone() } else { coordinate(at, &sizes)? });
    }
    let places = stack(&places.iter().collect::<Vec<_>>(), -1)?;
    one(x.scatter_nd_update(&places, &update)?)
}
