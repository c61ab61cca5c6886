//! One step that is a kernel: the byte ranges that it takes, with those of the step that finishes what it makes, and its
//! launch.

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::{Node, ValueId};
use tonnage_plan::{KernelCall, Run, Step};

use super::dynamic;
use super::frame::ExecutionFrame;
use super::generators::Generators;
use super::places::Places;
use super::step::{add_loads, node_of};
use crate::backend::{KernelInput, KernelLaunch, KernelOutput, ReadSource, ReadSources, Reads};
use crate::lend::{ByteRange, Lender};

/// What a kernel reads and writes, as its launch has it.
pub struct Operands {
    pub inputs: SmallVec<[KernelInput; 4]>,
    pub outputs: SmallVec<[KernelOutput; 2]>,
    /// Byte ranges that it is lent to read.
    pub reads: Reads,
    /// Those of its outputs, and behind them its scratch, if it has any.
    pub writes: SmallVec<[ByteRange; 3]>,
}

impl Operands {
    /// Those of a step.
    ///
    /// # Errors
    /// Where a value has no place.
    pub fn of(
        places: &Places,
        generators: &Generators,
        step: &Step,
        node: &Node,
        call: &KernelCall,
    ) -> Result<Operands> {
        let mut writes: SmallVec<[ByteRange; 3]> = SmallVec::new();
        for (id, layout) in node.outputs.iter().zip(&call.outputs) {
            writes.push(places.written(*id, &layout.sizes)?);
        }
        let made = writes.len();
        if let Some(scratch) = places.scratch(step.scratch) {
            writes.push(scratch);
        }
        let mut reads = Reads::default();
        let mut inputs: SmallVec<[KernelInput; 4]> = SmallVec::new();
        for id in &node.inputs {
            let dtype = places.ty(*id).dtype;
            let streamed = step.streamed.iter().find(|streamed| streamed.input == inputs.len());
            let (layout, from) = match streamed.and_then(|s| s.recipe.as_stored()) {
                Some((generator, layout)) => {
                    (layout.clone(), ReadSource::Generator(generators.bind(generator)))
                }
                None => {
                    let from = ReadSource::of(places.read(*id)?, &writes[..made], &mut reads);
                    (places.layout(*id)?, from)
                }
            };
            inputs.push(KernelInput { dtype, layout, from });
        }
        let output = |(id, layout): (&ValueId, &Layout)| KernelOutput {
            dtype: places.ty(*id).dtype,
            layout: layout.clone(),
        };
        let outputs = node.outputs.iter().zip(&call.outputs).map(output).collect();
        Ok(Operands { inputs, outputs, reads, writes })
    }
}

/// Runs a kernel, with what its plan says of the call, or with what the data have decided by now.
pub fn kernel(
    frame: &mut ExecutionFrame,
    lender: &mut Lender,
    step: &Step,
    planned: Option<&KernelCall>,
) -> Result<()> {
    let node = node_of(frame.places.plan(), step)?;
    let (decided_attrs, decided);
    let (attrs, call, decides) = match planned {
        Some(call) => (&node.attrs, call, false),
        None => {
            decided_attrs = frame.sizes.attrs(&node.attrs);
            decided = dynamic::kernel_call(&frame.places, &frame.sizes, node, &decided_attrs)?;
            (&decided_attrs, &decided.0, decided.1)
        }
    };
    let (places, generators) = (&frame.places, &frame.generators);
    let Operands { inputs, outputs, mut reads, writes } =
        Operands::of(places, generators, step, node, call)?;
    writes.iter().for_each(|byte_range| frame.used.lent(byte_range));
    let made = &writes[..outputs.len()];
    let mut cost = call.cost;
    let epilogue = match step.epilogue.and_then(|at| places.plan().steps.get(at)) {
        Some(Step { run: Run::Tile(run), reads: inputs, .. }) => {
            let more = run.cost;
            cost = cost.with(more, u64::saturating_add);
            let mut loads = ReadSources::default();
            let to_fill = (&mut reads, &mut loads);
            add_loads(places, generators, run, inputs, made, to_fill)?;
            Some((run.as_ref(), loads))
        }
        _ => None,
    };
    let launch = KernelLaunch {
        op: node.op,
        attrs,
        inputs,
        outputs,
        decides,
        epilogue: epilogue.as_ref().map(|(run, loads)| (*run, loads.as_slice())),
        cost,
        stop: frame.stop.inside_step(),
    };
    let backend = lender.backend();
    let real = backend.kernel(launch, lender.lend(&reads, &writes)?)?;
    if step.dynamic {
        for (id, sizes) in node.outputs.iter().zip(&real) {
            frame.decide(*id, sizes);
        }
    }
    Ok(())
}
