//! One step that is a kernel: its byte ranges lent, and with them those of the step that finishes what it makes.

use smallvec::SmallVec;
use tonnage_core::TensorType;
use tonnage_core::bytes::ALIGN;
use tonnage_core::error::Result;
use tonnage_core::kernel::{Data, Epilogue, In, Kernel, Out};
use tonnage_core::recipe::Generator;
use tonnage_core::row::{Call, Cost};
use tonnage_core::shape::Sizes;
use tonnage_ops::tile;
use tonnage_plan::{Run, Step};

use super::frame::ExecutionFrame;
use super::step::{ReadSource, Reads, nothing, sources, tile_cost};
use crate::lend::{ByteRange, Lender};
use crate::pool::pool;

impl ExecutionFrame<'_> {
    pub fn kernel(&mut self, lender: &mut Lender, step: &Step) -> Result<()> {
        let node = self.node(step)?;
        let (op, aux) = (node.op, node.aux);
        let Some(kernel) = op.lower.kernel() else { return Ok(()) };
        let types: SmallVec<[TensorType; 4]> = node.inputs.iter().map(|id| self.ty(*id)).collect();
        let attrs = node.attrs.substitute(&|s| self.find(s));
        let call = Call { op: op.name, inputs: &types, attrs: &attrs, regions: &[] };
        let mut made = (op.infer)(&call)?;
        if aux {
            made.extend((op.saves.aux)(&call)?);
        }
        let sizes: SmallVec<[Sizes; 2]> =
            made.iter().map(|ty| ty.shape.most().unwrap_or_default()).collect();
        let ids = (node.inputs.clone(), node.outputs.clone());
        let mut writes: SmallVec<[ByteRange; 3]> = SmallVec::new();
        for (id, sizes) in ids.1.iter().zip(&sizes) {
            writes.push(self.written(*id, sizes)?);
        }
        let outputs = writes.len();
        if let Some(id) = step.scratch {
            writes.push(ByteRange { align: ALIGN, ..self.buffer(id) });
        }
        for byte_range in writes.clone() {
            self.lent(&byte_range);
        }
        let (mut reads, mut layouts) = (Reads::default(), Vec::new());
        let mut from: SmallVec<[ReadSource; 4]> = SmallVec::new();
        for id in &ids.0 {
            let streamed = step.streamed.iter().find(|streamed| streamed.input == from.len());
            if let Some((generator, layout)) = streamed.and_then(|s| s.recipe.as_stored()) {
                layouts.push(layout.clone());
                from.push(ReadSource::Generator(self.fixed(generator)));
                continue;
            }
            layouts.push(self.layout(*id)?);
            from.push(ReadSource::of(self.read(*id)?, &writes[..outputs], &mut reads));
        }
        let mut cost = (op.cost)(&call);
        let end = match step.epilogue.and_then(|at| self.plan.steps.get(at)) {
            Some(Step { run: Run::Tile(run), reads: inputs, .. }) => {
                let more = tile_cost(run);
                cost = Cost { flops: cost.flops + more.flops, bytes: cost.bytes + more.bytes };
                Some((run, self.loads(run, inputs, &writes[..outputs], &mut reads)?))
            }
            _ => None,
        };
        let stop = self.stop_inside();
        let real: SmallVec<[Sizes; 2]> = {
            let lent = lender.lend(&reads, &writes)?;
            let inputs: SmallVec<[In; 4]> = from
                .iter()
                .zip(layouts)
                .zip(&types)
                .map(|((from, layout), ty)| In {
                    dtype: ty.dtype,
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
            let mut outs: SmallVec<[Out; 2]> = made
                .iter()
                .zip(sizes)
                .zip(lent_writes.by_ref())
                .map(|((ty, sizes), data)| Out { dtype: ty.dtype, sizes, data })
                .collect();
            let scratch: &mut [u8] = lent_writes.next().unwrap_or_else(nothing);
            let sources = end.as_ref().map(|(run, from)| sources(run, from, &lent.reads));
            let mut epilogue = end.as_ref().map(|(run, _)| tile::TileEpilogue::of(&run.program));
            if let (Some(epilogue), Some(sources)) = (&mut epilogue, &sources) {
                epilogue.resolve(sources)?;
            }
            pool().run_until(cost, stop.as_ref(), |workers| {
                kernel(&mut Kernel {
                    attrs: &attrs,
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
            for (id, sizes) in ids.1.iter().zip(&real) {
                self.decide(*id, sizes);
            }
        }
        Ok(())
    }
}
