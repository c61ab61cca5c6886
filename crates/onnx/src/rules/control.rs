//! Branches and loops. A branch is the one that is taken, a loop its iterations one after the other: the numbers that decide have to be known.

use tonnage::{DType, Elementwise, Part, Result, Tensor, bind, stack};

use super::Rule;
use crate::call::{Call, int_tensor, scalar};
use crate::import::Need;
use crate::message::{DimMessage, ValueType};
use crate::value::Value;

/// Iterations that become part of a trace; a longer loop runs op by op.
const UNROLLED: usize = 512;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "If" => |c| {
            let branch = if c.number(0)? != 0 { "then_branch" } else { "else_branch" };
            c.importer.graph(c.graph(branch)?, Vec::new(), c)
        },
        "Loop" => looped,
        "Scan" => |c| if c.version < 9 { batched_scan(c) } else { scan(c) },
        _ => return None,
    })
}

/// Whether a loop goes on: a number that has to be known.
fn holds(c: &Call, value: &Value) -> Result<bool> {
    let [tensor] = value.tensors() else { return Err(c.refuse("a condition that is no tensor")) };
    if tensor.is_symbolic() {
        return Err(c.importer.needs(Need::Alone));
    }
    bind::outside_of_traces(|| Ok(tensor.cast(DType::I64)?.to_vec::<i64>()?.first() != Some(&0)))
}

fn looped(c: &Call) -> Result<Vec<Value>> {
    let body = c.graph("body")?;
    let most = match c.maybe(0)? {
        Some(_) => usize::try_from(c.number(0)?).unwrap_or(0),
        None => usize::MAX,
    };
    let mut runs = match c.maybe(1)? {
        Some(_) => c.number(1)? != 0,
        None => true,
    };
    let mut state: Vec<Value> = c.inputs[2.min(c.inputs.len())..].to_vec();
    let mut collected: Vec<Vec<Tensor>> =
        vec![Vec::new(); body.outputs.len().saturating_sub(1 + state.len())];
    let mut iteration = 0;
    while runs && iteration < most {
        if bind::is_tracing() && iteration >= UNROLLED {
            return Err(c.importer.needs(Need::Alone));
        }
        let mut inputs =
            vec![int_tensor(&[iteration as i64], &[])?.into(), scalar(true, DType::Bool)?.into()];
        inputs.extend(state.iter().cloned());
        let mut made = c.importer.graph(body, inputs, c)?.into_iter();
        let condition = made.next().unwrap_or(Value::Absent);
        let count = state.len();
        state = made.by_ref().take(count).collect();
        for (all, value) in collected.iter_mut().zip(made) {
            all.push(c.read(value.tensor()?)?);
        }
        iteration += 1;
        runs = iteration >= most || holds(c, &condition)?;
    }
    let outputs = &body.outputs[(1 + state.len()).min(body.outputs.len())..];
    for (all, output) in collected.iter().zip(outputs) {
        state.push(match all.is_empty() {
            true => empty(c, &output.ty)?.into(),
            false => stack(&all.iter().collect::<Vec<_>>(), 0)?.into(),
        });
    }
    Ok(state)
}

/// What a loop without an iteration collects.
fn empty(c: &Call, ty: &ValueType) -> Result<Tensor> {
    let ValueType::Tensor(dtype, Some(dims)) = ty else {
        return Err(c.refuse("a loop without iterations whose results have no type"));
    };
    let mut sizes = vec![0];
    for dim in dims {
        sizes.push(match dim {
            DimMessage::Known(n) => c.length(*n)?,
            _ => return Err(c.refuse("a loop without iterations whose results have open lengths")),
        });
    }
    tonnage::full(0, c.dtype(*dtype)?, sizes.as_slice())
}

/// One element along an axis, which is gone then.
fn element(x: &Tensor, axis: usize, at: usize) -> Result<Tensor> {
    let mut parts = vec![Part::ALL; x.rank()];
    parts[axis] = (at as i64..at as i64 + 1).into();
    x.slice(&parts)?.squeeze(axis as i64)
}

/// How a scan goes along its inputs and outputs.
struct Ways {
    inputs: Vec<(i64, bool)>,
    outputs: Vec<(i64, bool)>,
}

fn ways(c: &Call, inputs: usize, outputs: usize, names: [&str; 4]) -> Result<Ways> {
    let all = |name: &str, count: usize| -> Result<Vec<i64>> {
        Ok(c.ints(name)?.unwrap_or_else(|| vec![0; count]))
    };
    let both = |axes: &str, directions: &str, count: usize| -> Result<Vec<(i64, bool)>> {
        let (axes, directions) = (all(axes, count)?, all(directions, count)?);
        if axes.len() != count || directions.len() != count {
            return Err(c.refuse("axes or directions that are not as many as the values"));
        }
        Ok(axes.into_iter().zip(directions).map(|(axis, way)| (axis, way != 0)).collect())
    };
    Ok(Ways {
        inputs: both(names[0], names[1], inputs)?,
        outputs: both(names[2], names[3], outputs)?,
    })
}

/// The iterations of a scan: the last state, and what was collected.
fn iterate(c: &Call, state: Vec<Tensor>, xs: &[Tensor], ways: &Ways) -> Result<Vec<Tensor>> {
    let body = c.graph("body")?;
    let mut state: Vec<Value> = state.into_iter().map(Value::Tensor).collect();
    let mut lengths = Vec::new();
    for (x, (axis, _)) in xs.iter().zip(&ways.inputs) {
        lengths.push((c.axis(*axis, x.rank())?, c.sizes(x)?));
    }
    let Some(steps) = lengths.first().map(|(axis, sizes)| sizes[*axis]) else {
        return Err(c.refuse("a scan without inputs to go along"));
    };
    if bind::is_tracing() && steps > UNROLLED {
        return Err(c.importer.needs(Need::Alone));
    }
    let count = state.len();
    let mut collected: Vec<Vec<Tensor>> =
        vec![Vec::new(); body.outputs.len().saturating_sub(count)];
    for step in 0..steps {
        let mut inputs = state.clone();
        for ((x, (_, backwards)), (axis, _)) in xs.iter().zip(&ways.inputs).zip(&lengths) {
            let at = if *backwards { steps - 1 - step } else { step };
            inputs.push(element(x, *axis, at)?.into());
        }
        let mut made = c.importer.graph(body, inputs, c)?.into_iter();
        state = made.by_ref().take(count).collect();
        for (all, value) in collected.iter_mut().zip(made) {
            all.push(c.read(value.tensor()?)?);
        }
    }
    let mut made = state.into_iter().map(Value::tensor).collect::<Result<Vec<_>>>()?;
    for (mut all, (axis, backwards)) in collected.into_iter().zip(&ways.outputs) {
        if *backwards {
            all.reverse();
        }
        made.push(stack(&all.iter().collect::<Vec<_>>(), *axis)?);
    }
    Ok(made)
}

fn scan(c: &Call) -> Result<Vec<Value>> {
    let body = c.graph("body")?;
    let count = c.length(c.int("num_scan_inputs", 0)?)?;
    let all = c.all()?;
    let states = all.len().saturating_sub(count);
    let names =
        ["scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions"];
    let ways = ways(c, count, body.outputs.len().saturating_sub(states), names)?;
    let made = iterate(c, all[..states].to_vec(), &all[states..], &ways)?;
    Ok(made.into_iter().map(Value::Tensor).collect())
}

/// The scan of opset 8: row by row of a batch.
fn batched_scan(c: &Call) -> Result<Vec<Value>> {
    let body = c.graph("body")?;
    let count = c.length(c.int("num_scan_inputs", 0)?)?;
    if c.maybe(0)?.is_some() {
        return Err(c.refuse("a scan with lengths of sequences"));
    }
    let all = (1..c.inputs.len()).map(|at| c.x(at)).collect::<Result<Vec<_>>>()?;
    let states = all.len().saturating_sub(count);
    let names = ["", "directions", "", ""];
    let ways = ways(c, count, body.outputs.len().saturating_sub(states), names)?;
    let batch = all.first().map(|x| c.sizes(x)).transpose()?.map_or(0, |sizes| sizes[0]);
    let mut rows: Vec<Vec<Tensor>> = Vec::new();
    for row in 0..batch {
        let own = all.iter().map(|x| element(x, 0, row)).collect::<Result<Vec<_>>>()?;
        rows.push(iterate(c, own[..states].to_vec(), &own[states..], &ways)?);
    }
    let width = rows.first().map_or(0, Vec::len);
    let column = |at: usize| stack(&rows.iter().map(|row| &row[at]).collect::<Vec<_>>(), 0);
    (0..width).map(|at| column(at).map(Value::Tensor)).collect()
}
