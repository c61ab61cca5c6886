//! Sequences of tensors, and values that may be left out.

use tonnage::{DType, Result, concat, stack};

use super::Rule;
use crate::call::{Call, int_tensor, one, scalar};
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "SequenceConstruct" => |c| Ok(vec![c.all()?.into()]),
        "SequenceEmpty" => |_| Ok(vec![Value::Sequence(Vec::new())]),
        "SequenceLength" => |c| one(int_tensor(&[c.sequence(0)?.len() as i64], &[])?),
        "SequenceAt" => |c| {
            let all = c.sequence(0)?;
            one(all[c.axis(c.number(1)?, all.len())?].clone())
        },
        "SequenceInsert" => |c| {
            let (mut all, tensor) = (c.sequence(0)?, c.x(1)?);
            let at = match c.maybe(2)? {
                Some(_) => {
                    c.axis(c.number(2)?, all.len() + 1).or_else(|error| match c.number(2) {
                        // Before the last one.
                        Ok(-1) if !all.is_empty() => Ok(all.len() - 1),
                        _ => Err(error),
                    })?
                }
                None => all.len(),
            };
            let at =
                if c.maybe(2)?.is_some() && c.number(2)? < 0 { at.saturating_sub(1) } else { at };
            all.insert(at, tensor);
            Ok(vec![all.into()])
        },
        "SequenceErase" => |c| {
            let mut all = c.sequence(0)?;
            let at = match c.maybe(1)? {
                Some(_) => c.axis(c.number(1)?, all.len())?,
                None => c.axis(-1, all.len())?,
            };
            all.remove(at);
            Ok(vec![all.into()])
        },
        "ConcatFromSequence" => |c| {
            let (all, axis) = (c.sequence(0)?, c.int("axis", 0)?);
            let all: Vec<&_> = all.iter().collect();
            one(if c.flag("new_axis")? { stack(&all, axis)? } else { concat(&all, axis)? })
        },
        "SplitToSequence" => split,
        "SequenceMap" => map,
        "OptionalHasElement" => |c| {
            let there = !matches!(c.inputs.first(), None | Some(Value::Absent));
            one(scalar(there, DType::Bool)?)
        },
        "OptionalGetElement" => |c| match c.inputs.first() {
            None | Some(Value::Absent) => Err(c.refuse("an optional value that is left out")),
            Some(value) => Ok(vec![value.clone()]),
        },
        _ => return None,
    })
}

fn split(c: &Call) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    let axis = c.axis(c.int("axis", 0)?, x.rank())?;
    let length = c.sizes(&x)?[axis];
    let given = c.maybe(1)?;
    let keeps = given.is_some() || c.int("keepdims", 1)? != 0;
    let lengths: Vec<usize> = match &given {
        None => vec![1; length],
        Some(split) if split.rank() == 0 => {
            let each = c.length(c.number(1)?)?.max(1);
            (0..length.div_ceil(each)).map(|at| each.min(length - at * each)).collect()
        }
        Some(_) => c.numbers(1)?.into_iter().map(|n| c.length(n)).collect::<Result<_>>()?,
    };
    let parts = x.split(&lengths, axis as i64)?;
    Ok(vec![match keeps {
        true => parts.into(),
        false => {
            parts.iter().map(|part| part.squeeze(axis as i64)).collect::<Result<Vec<_>>>()?.into()
        }
    }])
}

/// A graph for each tensor of a sequence.
fn map(c: &Call) -> Result<Vec<Value>> {
    let (body, count) = (c.graph("body")?, c.sequence(0)?.len());
    let mut made = vec![Vec::new(); body.outputs.len()];
    for at in 0..count {
        let mut inputs = Vec::new();
        for value in &c.inputs {
            inputs.push(match value {
                Value::Sequence(all) => match all.get(at) {
                    Some(tensor) => Value::Tensor(tensor.clone()),
                    None => return Err(c.refuse("sequences that are not equally long")),
                },
                other => other.clone(),
            });
        }
        for (all, value) in made.iter_mut().zip(c.importer.graph(body, inputs, c)?) {
            all.push(value.tensor()?);
        }
    }
    Ok(made.into_iter().map(Value::Sequence).collect())
}
