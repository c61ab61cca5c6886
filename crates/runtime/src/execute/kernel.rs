//! One step that is a kernel: its byte ranges lent, and with them those of the step that finishes what it makes.

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::lent::{Data, In, Out};
use tonnage_core::recipe::Generator;
use tonnage_core::row::{Call, Cost};
use tonnage_core::shape::Sizes;
use tonnage_core::{Attrs, Node, TensorType};
use tonnage_cpu::kernel::{Epilogue, Kernel};
use tonnage_cpu::{kernel_of, tile};
use tonnage_plan::{KernelCall, Run, Step};

use super::frame::ExecutionFrame;
use super::step::{ReadSource, Reads, nothing, sources};
use crate::lend::{ByteRange, Lender};
use crate::pool::pool;

impl ExecutionFrame<'_> {
    /// Runs a kernel, with what its plan says of the call, or with what the data have decided by now.
    pub fn kernel(
        &mut self,
        lender: &mut Lender,
        step: &Step,
        planned: Option<&KernelCall>,
    ) -> Result<()> {
        let node = self.node(step)?;
        let Some(kernel) = kernel_of(node.op) else { return Ok(()) };
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
        let mut from: SmallVec<[ReadSource; 4]> = SmallVec::new();
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
        let end = match step.epilogue.and_then(|at| self.places.plan().steps.get(at)) {
            Some(Step { run: Run::Tile(run), reads: inputs, .. }) => {
                let more = run.cost;
                cost = Cost { flops: cost.flops + more.flops, bytes: cost.bytes + more.bytes };
                Some((run, self.loads(run, inputs, &writes[..outputs], &mut reads)?))
            }
            _ => None,
        };
        let (stop, graph) = (self.stop.inside_step(), &self.places.plan().graph);
        let real: SmallVec<[Sizes; 2]> = {
            let lent = lender.lend(&reads, &writes)?;
            let inputs: SmallVec<[In; 4]> = from
                .iter()
                .zip(layouts)
                .zip(&node.inputs)
                .map(|((from, layout), id)| In {
                    dtype: graph.ty(*id).dtype,
                    layout,
                    data: match from {
                        ReadSource::Output(output) => Data::Output(*output),
                        ReadSource::Range(i) => Data::Slice(lent.reads[*i]),
                        ReadSource::Generator(Generator::Stored { elements, .. }) => {
                            Data::Stored(&*elements.0)
                        }
                        ReadSource::Generator(_) => Data::Slice(&[]),
                    },
                })
                .collect();
            let mut lent_writes = lent.writes.into_iter();
            let mut outs: SmallVec<[Out; 2]> = node
                .outputs
                .iter()
                .zip(&call.outputs)
                .zip(lent_writes.by_ref())
                .map(|((id, sizes), data)| Out {
                    dtype: graph.ty(*id).dtype,
                    sizes: sizes.clone(),
                    data,
                })
                .collect();
            let scratch: &mut [u8] = lent_writes.next().unwrap_or_else(nothing);
            let sources = end.as_ref().map(|(run, from)| sources(run, from, &lent.reads));
            let mut epilogue = end.as_ref().map(|(run, _)| tile::TileEpilogue::of(&run.program));
            if let (Some(epilogue), Some(sources)) = (&mut epilogue, &sources) {
                epilogue.resolve(sources)?;
            }
            pool().run_until(cost, stop, |workers| {
                (kernel.run)(&mut Kernel {
                    attrs,
                    inputs: &inputs,
                    outputs: &mut outs,
                    scratch,
                    workers,
                    epilogue: epilogue.as_ref().map(|f| f as &dyn Epilogue),
                })
            })?;
            inputs.iter().try_for_each(In::check)?;
            outs.into_iter().map(|out| out.sizes).collect()
        };
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
