//! Constants, ranges, identity matrices, triangles, and the tables of `ai.onnx.ml` that are tensors.

use tonnage::{DType, Elementwise, Result, Shape, Tensor, bind};

use super::Rule;
use super::math::cast;
use crate::call::{Call, float_tensor, int_tensor, one};
use crate::message::AttributeValue;
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "Constant" => constant,
        "ConstantOfShape" => |c| {
            let to: Vec<usize> =
                c.numbers(0)?.into_iter().map(|n| c.length(n)).collect::<Result<_>>()?;
            let value = match c.stored("value") {
                Some(stored) => c.importer.model.file.tensor(stored)?,
                None => float_tensor(vec![0.0], &[1], DType::F32)?,
            };
            one(value.reshape(Shape::scalar())?.broadcast_to(to.as_slice())?)
        },
        "Range" => range,
        "EyeLike" => |c| {
            let x = c.x(0)?;
            let [rows, columns] = c.sizes(&x)?[..] else {
                return Err(c.refuse("a tensor that is no matrix"));
            };
            let dtype = c.maybe_dtype("dtype")?.unwrap_or(x.dtype());
            one(tonnage::eye_of(rows, columns, c.int("k", 0)?, dtype)?)
        },
        "Trilu" => |c| {
            let x = c.x(0)?;
            let k = c.maybe_numbers(1)?.and_then(|k| k.first().copied()).unwrap_or(0);
            let flat = if x.dtype() == DType::Bool { (&x).cast(DType::U8)? } else { x.clone() };
            let part = if c.int("upper", 1)? != 0 { flat.triu(k)? } else { flat.tril(k)? };
            one(cast(&part, x.dtype())?)
        },
        "Dropout" => |c| {
            let x = c.x(0)?;
            let trains = match c.maybe(2)? {
                Some(_) => c.number(2)? != 0,
                None => false,
            };
            let ratio = match c.maybe(1)? {
                Some(_) if trains => c.floats_of(1)?.first().copied().unwrap_or(0.5),
                _ => 0.5,
            };
            if trains && ratio != 0.0 {
                return Err(c.refuse("dropout in training mode"));
            }
            let mask = tonnage::full(true, DType::Bool, x.shape())?;
            Ok(vec![x.into(), mask.into()])
        },
        _ => return None,
    })
}

/// The rule of an op of `ai.onnx.ml`.
pub fn find_ml(op: &str) -> Option<Rule> {
    Some(match op {
        "ArrayFeatureExtractor" => |c| {
            let (x, places) = (c.x(0)?, c.x(1)?);
            let count = c.sizes(&places)?.iter().product::<usize>();
            let wide = if x.rank() == 1 { x.expand_dims(0)? } else { x };
            one(wide.gather(&places.reshape([count])?, -1)?)
        },
        "Binarizer" => |c| {
            let x = c.x(0)?;
            one(x.greater(c.float("threshold", 0.0)?)?.cast(x.dtype())?)
        },
        _ => return None,
    })
}

fn constant(c: &Call) -> Result<Vec<Value>> {
    let known = ["value", "value_float", "value_floats", "value_int", "value_ints"];
    let found = known.iter().find_map(|name| c.attribute(name));
    one(match found {
        Some(AttributeValue::Tensor(stored)) => c.importer.model.stored(stored)?,
        Some(AttributeValue::Int(value)) => int_tensor(&[*value], &[])?,
        Some(AttributeValue::Ints(values)) => int_tensor(values, &[values.len()])?,
        Some(AttributeValue::Float(value)) => {
            float_tensor(vec![f64::from(*value)], &[], DType::F32)?
        }
        Some(AttributeValue::Floats(values)) => float_tensor(
            values.iter().map(|x| f64::from(*x)).collect(),
            &[values.len()],
            DType::F32,
        )?,
        _ => {
            let name = c.attributes.first().map_or("", |a| a.0);
            return Err(c.refuse(format!("a constant by the attribute `{name}`")));
        }
    })
}

/// A number, the next, and so on: how many is decided by the numbers.
fn range(c: &Call) -> Result<Vec<Value>> {
    let (start, dtype) = (c.known(0)?, c.x(0)?.dtype());
    let count = match dtype.is_float() {
        true => {
            let numbers: Vec<f64> =
                (0..3).map(|at| c.floats_of(at)).collect::<Result<Vec<_>>>()?.concat();
            let [start, limit, step] = numbers[..] else {
                return Err(c.refuse("bounds that are no numbers"));
            };
            ((limit - start) / step).ceil().max(0.0) as usize
        }
        false => {
            let [start, limit, step] = [c.number(0)?, c.number(1)?, c.number(2)?];
            if step == 0 {
                return Err(c.refuse("a step of 0"));
            }
            let (span, step) = (i128::from(limit) - i128::from(start), i128::from(step));
            let whole = span / step + i128::from(span % step != 0 && (span < 0) == (step < 0));
            usize::try_from(whole.max(0)).unwrap_or(usize::MAX)
        }
    };
    let step = c.known(2)?;
    let made = bind::outside_of_traces(|| -> Result<Tensor> {
        let places = tonnage::positions(count, DType::I64)?.cast(dtype)?;
        places.mul(&step.reshape(Shape::scalar())?)?.add(&start.reshape(Shape::scalar())?)
    })?;
    one(made)
}
