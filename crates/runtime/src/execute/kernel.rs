//! One step that is a kernel: the byte ranges that it takes, with those of the step that finishes what it makes, and its
//! launch.

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::row::Cost;
use tonnage_plan::{KernelCall, Run, Step};

use super::dynamic;
use super::frame::ExecutionFrame;
use super::launch::{KernelLaunch, ReadSource, ReadSources, Reads, find_kernel};
use super::step::{loads, node_of};
use crate::lend::{ByteRange, Lender};

/// Runs a kernel, with what its plan says of the call, or with what the data have decided by now.
pub fn kernel(
    frame: &mut ExecutionFrame,
    lender: &mut Lender,
    step: &Step,
    planned: Option<&KernelCall>,
) -> Result<()> {
    let node = node_of(frame.places.plan(), step)?;
    let kernel = find_kernel(node.op)?;
    let (decided_attrs, decided);
    let (attrs, call) = match planned {
        Some(call) => (&node.attrs, call),
        None => {
            decided_attrs = frame.sizes.attrs(&node.attrs);
            decided = dynamic::kernel_call(&frame.places, &frame.sizes, node, &decided_attrs)?;
            (&decided_attrs, &decided)
        }
    };
    let (places, generators) = (&frame.places, &frame.generators);
    let mut writes: SmallVec<[ByteRange; 3]> = SmallVec::new();
    for (id, sizes) in node.outputs.iter().zip(&call.outputs) {
        writes.push(places.written(*id, sizes)?);
    }
    let outputs = writes.len();
    if let Some(scratch) = places.scratch(step.scratch) {
        writes.push(scratch);
    }
    writes.iter().for_each(|byte_range| frame.used.lent(byte_range));
    let (mut reads, mut layouts) = (Reads::default(), Vec::new());
    let mut from = ReadSources::new();
    for id in &node.inputs {
        let streamed = step.streamed.iter().find(|streamed| streamed.input == from.len());
        if let Some((generator, layout)) = streamed.and_then(|s| s.recipe.as_stored()) {
            layouts.push(layout.clone());
            from.push(ReadSource::Generator(generators.bind(generator)));
            continue;
        }
        layouts.push(places.layout(*id)?);
        from.push(ReadSource::of(places.read(*id)?, &writes[..outputs], &mut reads));
    }
    let mut cost = call.cost;
    let epilogue = match step.epilogue.and_then(|at| places.plan().steps.get(at)) {
        Some(Step { run: Run::Tile(run), reads: inputs, .. }) => {
            let more = run.cost;
            cost = Cost { flops: cost.flops + more.flops, bytes: cost.bytes + more.bytes };
            Some((
                run.as_ref(),
                loads(places, generators, run, inputs, &writes[..outputs], &mut reads)?,
            ))
        }
        _ => None,
    };
    let real = KernelLaunch {
        kernel,
        node,
        graph: &places.plan().graph,
        attrs,
        inputs: &from,
        layouts,
        epilogue: epilogue.as_ref().map(|(run, loads)| (*run, loads.as_slice())),
        reads: &reads,
        writes: &writes,
        sizes: &call.outputs,
        cost,
        stop: frame.stop.inside_step(),
    }
    .run(lender)?;
    if step.dynamic {
        for (id, sizes) in node.outputs.iter().zip(&real) {
            frame.decide(*id, sizes);
        }
    }
    Ok(())
}
