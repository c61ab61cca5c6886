//! One step that is a kernel: its byte ranges lent, and with them those of the step that finishes what it makes.

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::row::{Call, Cost};
use tonnage_core::{Attrs, Node, TensorType};
use tonnage_plan::{KernelCall, Run, Step};

use super::frame::ExecutionFrame;
use super::launch::{KernelLaunch, ReadSource, ReadSources, Reads, find_kernel};
use crate::lend::{ByteRange, Lender};

impl ExecutionFrame<'_> {
    /// Runs a kernel, with what its plan says of the call, or with what the data have decided by now.
    pub fn kernel(
        &mut self,
        lender: &mut Lender,
        step: &Step,
        planned: Option<&KernelCall>,
    ) -> Result<()> {
        let node = self.node(step)?;
        let Some(kernel) = find_kernel(node.op) else { return Ok(()) };
        let (decided_attrs, decided);
        let (attrs, call) = match planned {
            Some(call) => (&node.attrs, call),
            None => {
                decided_attrs = self.sizes.attrs(&node.attrs);
                decided = self.decided_call(node, &decided_attrs)?;
                (&decided_attrs, &decided)
            }
        };
        let mut writes: SmallVec<[ByteRange; 3]> = SmallVec::new();
        for (id, sizes) in node.outputs.iter().zip(&call.outputs) {
            writes.push(self.places.written(*id, sizes)?);
        }
        let outputs = writes.len();
        writes.extend(self.places.scratch(step.scratch));
        writes.iter().for_each(|byte_range| self.used.lent(byte_range));
        let (mut reads, mut layouts) = (Reads::default(), Vec::new());
        let mut from = ReadSources::new();
        for id in &node.inputs {
            let streamed = step.streamed.iter().find(|streamed| streamed.input == from.len());
            if let Some((generator, layout)) = streamed.and_then(|s| s.recipe.as_stored()) {
                layouts.push(layout.clone());
                from.push(ReadSource::Generator(self.generators.bind(generator)));
                continue;
            }
            layouts.push(self.places.layout(*id)?);
            from.push(ReadSource::of(self.places.read(*id)?, &writes[..outputs], &mut reads));
        }
        let mut cost = call.cost;
        let epilogue = match step.epilogue.and_then(|at| self.places.plan().steps.get(at)) {
            Some(Step { run: Run::Tile(run), reads: inputs, .. }) => {
                let more = run.cost;
                cost = Cost { flops: cost.flops + more.flops, bytes: cost.bytes + more.bytes };
                Some((run.as_ref(), self.loads(run, inputs, &writes[..outputs], &mut reads)?))
            }
            _ => None,
        };
        let real = KernelLaunch {
            kernel,
            node,
            graph: &self.places.plan().graph,
            attrs,
            inputs: &from,
            layouts,
            epilogue: epilogue.as_ref().map(|(run, loads)| (*run, loads.as_slice())),
            reads: &reads,
            writes: &writes,
            sizes: &call.outputs,
            cost,
            stop: self.stop.inside_step(),
        }
        .run(lender)?;
        if step.dynamic {
            for (id, sizes) in node.outputs.iter().zip(&real) {
                self.decide(*id, sizes);
            }
        }
        Ok(())
    }

    /// What the call of a kernel needs, now that the data decided the sizes that it depends on.
    fn decided_call(&self, node: &Node, attrs: &Attrs) -> Result<KernelCall> {
        let types: SmallVec<[TensorType; 4]> = node.inputs.iter().map(|id| self.ty(*id)).collect();
        let call = Call { op: node.op.name, inputs: &types, attrs, regions: &[] };
        let mut made = (node.op.infer)(&call)?;
        if node.aux {
            made.extend((node.op.saves.aux)(&call)?);
        }
        let sizes = |ty: &TensorType| ty.shape.most().unwrap_or_default();
        Ok(KernelCall { outputs: made.iter().map(sizes).collect(), cost: (node.op.cost)(&call) })
    }
}
