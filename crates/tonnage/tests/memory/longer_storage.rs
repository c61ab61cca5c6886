//! Inputs whose storage is longer than their elements, as parts of larger values and results of functions are: every op of
//! the table gives the same bits in place of them as beside them, eagerly and planned, and writes nothing behind them.
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::sync::Arc;

use tonnage::Bytes;
use tonnage_core::bytes::ALIGN;
use tonnage_core::row::{Mem, OpDef, Sample};
use tonnage_core::{Builder, Emit, Kind};
use tonnage_plan::{InputSpec, PlanOptions, lower, plan};
use tonnage_runtime::eager::{self, Arg};
use tonnage_runtime::machine::target;
use tonnage_runtime::{Array, Buffer, Owner, execute, host_ledger};

use crate::common::draw::{bits, for_every_sample, mark};
use crate::common::own_context;

/// A copy in storage that goes on behind the last element.
fn longer(array: &Array) -> Array {
    let elements = array.layout().count() * array.dtype().size();
    let owner = Owner::new(Kind::Input, "test");
    let len = Bytes::of(elements + 2 * ALIGN);
    let mut buffer = Buffer::obtain(&host_ledger(), len, owner).unwrap();
    array.copy_to(&mut buffer.bytes_mut().unwrap()[..elements]).unwrap();
    buffer.bytes_mut().unwrap()[elements..].fill(1);
    let sizes = array.layout().sizes.clone();
    Array::from_buffer(buffer, array.dtype(), tonnage_core::Layout::contiguous(sizes))
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// What the op gives in place of longer storages.
fn eagerly(op: &'static OpDef, sample: &Sample, inputs: &[Array]) -> Result<Vec<Vec<u8>>, String> {
    if let Mem::Update(0) = op.mem {
        let mut target = longer(&inputs[0]);
        let rest = inputs[1..].iter().map(|array| Arg::Owned(longer(array))).collect();
        eager::update(op, &mut target, rest, &sample.attrs, mark()).map_err(text)?;
        return Ok(vec![bits(&target)]);
    }
    let args = inputs.iter().map(|array| Arg::Owned(longer(array))).collect();
    let made = eager::apply(op, args, &sample.attrs, &sample.regions, false, mark());
    Ok(made.map_err(text)?.iter().map(bits).collect())
}

/// The same in a plan that may overwrite all of its inputs.
fn planned(op: &'static OpDef, sample: &Sample, inputs: &[Array]) -> Result<Vec<Vec<u8>>, String> {
    let inputs: Vec<Array> = inputs.iter().map(longer).collect();
    let mut builder = Builder::new();
    let values = inputs.iter().map(|a| builder.input(a.ty(), Kind::Input, None)).collect();
    let (attrs, regions) = (sample.attrs.clone(), sample.regions.clone());
    let made = builder.emit(op, values, attrs, regions, false).map_err(text)?;
    let graph = Arc::new(lower(&builder.finish(&made).map_err(text)?, &*target()).map_err(text)?);
    let mut seen = Vec::new();
    let specs: Vec<InputSpec> =
        inputs.iter().map(|array| execute::spec(array, true, &mut seen)).collect();
    let options = PlanOptions::new(target());
    let plan = plan(&graph, &specs, options).map_err(text)?;
    let (made, _) = execute::execute(&plan, &inputs, [0; 2], mark()).map_err(text)?;
    Ok(made.iter().map(bits).collect())
}

#[test]
fn every_op_gives_the_same_bits_in_place_of_a_longer_storage() {
    let _context = own_context();
    for_every_sample(|op, sample, inputs| {
        let beside = || -> Result<Vec<Vec<u8>>, String> {
            let copies = inputs.iter().map(|a| Arg::Owned(a.copied(mark(), "test").unwrap()));
            let args = copies.collect();
            let made = eager::apply(op, args, &sample.attrs, &sample.regions, false, mark());
            Ok(made.map_err(text)?.iter().map(bits).collect())
        };
        let expected = beside()?;
        if beside()? != expected {
            return Ok(()); // random numbers
        }
        if eagerly(op, sample, inputs)? != expected {
            return Err("something else, eagerly".into());
        }
        match planned(op, sample, inputs)? == expected {
            true => Ok(()),
            false => Err("something else, planned".into()),
        }
    });
}
