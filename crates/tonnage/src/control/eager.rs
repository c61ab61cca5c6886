//! Applying an op with regions that may write variables.
//!
//! In a function the op's results are assigned, and the planner lets it write straight into the variables' bytes.
//! Where nothing is traced, the op and the assignments are planned and run together as one graph, for the same
//! reason; but not under a tape, which has to see the op on its own.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tonnage_core::attrs::Attrs;
use tonnage_core::graph::{Builder, Graph};
use tonnage_core::{Emit, Kind, Mark, OpDef, Result, Value};
use tonnage_ops::state::assign::ASSIGN;
use tonnage_plan::{PlanOptions, lower};
use tonnage_runtime::Array;
use tonnage_runtime::execute;
use tonnage_runtime::placement::{all_beside, ledger_of};
use tonnage_runtime::random::next_key;

use crate::dispatch::{self, OpContext, TensorArg, TensorArgs};
use crate::tape;
use crate::tensor::{Tensor, TensorRepr};
use crate::trace;
use crate::variable::{LockedVariables, Variable};

/// An input of an op with regions.
pub(super) enum RegionInput {
    Tensor(Tensor),
    /// A variable that becomes the op's output of that number. These outputs are the last ones, or the last
    /// before those of stacked rows, and are not returned.
    Written(Variable, usize),
}

/// Applies the op and writes the variables; returns the other outputs.
pub(super) fn apply(
    op: &'static OpDef,
    inputs: SmallVec<[RegionInput; 3]>,
    attrs: Attrs,
    regions: Vec<Arc<Graph>>,
    mark: Mark,
) -> Result<SmallVec<[Tensor; 1]>> {
    // What is stored in files is written as a value, behind the op.
    let in_place =
        |given: &RegionInput| matches!(given, RegionInput::Written(v, _) if !v.is_in_files());
    let in_files =
        |given: &RegionInput| matches!(given, RegionInput::Written(v, _) if v.is_in_files());
    let writes = inputs.iter().any(in_place) && !inputs.iter().any(in_files);
    if writes && trace::current().is_none() && tape::is_quiet() {
        return at_once(op, inputs, attrs, regions, mark);
    }
    let mut written: SmallVec<[(Variable, usize); 2]> = SmallVec::new();
    let mut given = TensorArgs::new();
    for input in inputs {
        given.push(TensorArg::Owned(match input {
            RegionInput::Tensor(tensor) => tensor,
            RegionInput::Written(variable, output) => {
                let value = variable.read()?;
                written.push((variable, output));
                value
            }
        }));
    }
    let context = OpContext { regions, aux: false, mark };
    let made = dispatch::apply(op, given, attrs, context)?;
    for (variable, output) in &written {
        variable.assign_from(&made[*output], mark.source)?;
    }
    let is_result = |k: &usize| written.iter().all(|(_, output)| output != k);
    Ok(made.into_iter().enumerate().filter(|(k, _)| is_result(k)).map(|(_, t)| t).collect())
}

/// The op and its assignments as one graph, planned and run now.
fn at_once(
    op: &'static OpDef,
    inputs: SmallVec<[RegionInput; 3]>,
    attrs: Attrs,
    regions: Vec<Arc<Graph>>,
    mark: Mark,
) -> Result<SmallVec<[Tensor; 1]>> {
    let mut builder = Builder::new();
    builder.mark(mark);
    let variables: Vec<(Variable, bool)> = inputs
        .iter()
        .filter_map(|given| match given {
            RegionInput::Written(variable, _) => Some((variable.clone(), true)),
            RegionInput::Tensor(_) => None,
        })
        .collect();
    let others: Vec<Array> = inputs
        .iter()
        .filter_map(|given| match given {
            RegionInput::Tensor(tensor) => tensor.array(op.name).ok().cloned(),
            RegionInput::Written(..) => None,
        })
        .collect();
    let mut held = LockedVariables::take(&variables, &others, mark.source)?;
    // Those that nobody else holds are the call's to overwrite.
    drop(others);
    let mut taken = held.arrays().into_iter();
    let (mut values, mut arrays, mut donated) = (Vec::new(), Vec::new(), Vec::new());
    let mut written: Vec<(usize, Value)> = Vec::new();
    for input in inputs {
        let value = match input {
            RegionInput::Tensor(tensor) => {
                let value = builder.input(tensor.ty(), Kind::Input, None);
                tensor.array(op.name)?;
                if let TensorRepr::Array(array) = tensor.into_repr() {
                    arrays.push(array);
                }
                donated.push(arrays.last().is_some_and(tonnage_runtime::Array::is_sole));
                value
            }
            RegionInput::Written(variable, output) => {
                let name = Some(variable.name().into());
                let value = builder.input(variable.ty(), variable.kind(), name);
                arrays.extend(taken.next());
                donated.push(false);
                written.push((output, value.clone()));
                value
            }
        };
        values.push(value);
    }
    let made = builder.emit(op, values, attrs, regions, false)?;
    let is_result = |k: &usize| written.iter().all(|(output, _)| output != k);
    let mut outputs: Vec<Value> =
        made.iter().enumerate().filter(|(k, _)| is_result(k)).map(|(_, v)| v.clone()).collect();
    let results = outputs.len();
    for (output, before) in &written {
        let inputs = vec![before.clone(), made[*output].clone()];
        outputs.push(builder.apply(&ASSIGN, inputs, Attrs::None)?);
    }
    let place = ledger_of(op.name, arrays.iter())?;
    all_beside(op.name, &place, &mut arrays, mark.source)?;
    let target = place.backend().target();
    let graph = Arc::new(lower(&builder.finish(&outputs)?, &*target)?);
    let mut seen = Vec::new();
    let specs: Vec<_> = arrays
        .iter()
        .zip(&donated)
        .map(|(array, donated)| execute::spec(array, *donated, &mut seen))
        .collect();
    let planned = execute::plan_once(&graph, &specs, PlanOptions::new(target), &arrays)?;
    let (made, _) = execute::execute(&planned, &arrays, next_key(), mark)?;
    drop(arrays);
    held.end(&[]);
    let mut tensors: SmallVec<[Tensor; 1]> = smallvec![];
    tensors.extend(made.into_iter().take(results).map(Tensor::from_array));
    Ok(tensors)
}
