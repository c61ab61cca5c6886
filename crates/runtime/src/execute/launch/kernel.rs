//! The launch of a kernel, and with it of the tile program that finishes what it makes.

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::graph::Graph;
use tonnage_core::layout::Layout;
use tonnage_core::lent::{Data, In, Out};
use tonnage_core::recipe::Generator;
use tonnage_core::row::Cost;
use tonnage_core::shape::Sizes;
use tonnage_core::{Attrs, Node, OpDef};
use tonnage_cpu::kernel::{Epilogue, Kernel, KernelDef};
use tonnage_cpu::{kernel_of, tile};
use tonnage_plan::TileRun;

use super::tile::sources;
use super::{ReadSource, nothing};
use crate::interrupt::Stop;
use crate::lend::{ByteRange, Lender};
use crate::pool::pool;

/// The kernel of an op.
///
/// # Errors
/// Where the CPU has none.
pub fn find_kernel(op: &'static OpDef) -> Result<&'static KernelDef> {
    kernel_of(op).ok_or_else(|| no_kernel(op))
}

#[cold]
fn no_kernel(op: &'static OpDef) -> tonnage_core::Error {
    let what = format!("the CPU has no kernel for {}", op.name);
    tonnage_core::ErrorKind::BadGraph { what }.into()
}

/// A kernel and what it runs over.
pub struct KernelLaunch<'a> {
    /// The kernel.
    pub kernel: &'a KernelDef,
    /// The node that it is run for, which names its inputs and outputs.
    pub node: &'a Node,
    /// The graph that knows their dtypes.
    pub graph: &'a Graph,
    /// Attributes, with all sizes known.
    pub attrs: &'a Attrs,
    /// What its inputs read.
    pub inputs: &'a [ReadSource],
    /// How its inputs lie.
    pub layouts: Vec<Layout>,
    /// The tile program that finishes what it makes, and what its loads read.
    pub epilogue: Option<(&'a TileRun, &'a [ReadSource])>,
    /// The byte ranges that both read.
    pub reads: &'a [ByteRange],
    /// Its outputs, and behind them its scratch, if it has any.
    pub writes: &'a [ByteRange],
    /// Sizes of its outputs: at their bounds where it decides them.
    pub sizes: &'a [Sizes],
    /// What it takes, to decide on threads.
    pub cost: Cost,
    /// What stops it before its end.
    pub stop: Option<&'a Stop>,
}

impl KernelLaunch<'_> {
    /// Runs it; the sizes of its outputs, as it decided them.
    pub fn run(self, lender: &mut Lender) -> Result<SmallVec<[Sizes; 2]>> {
        let KernelLaunch { kernel, node, graph, attrs, .. } = self;
        let lent = lender.lend(self.reads, self.writes)?;
        let inputs: SmallVec<[In; 4]> = self
            .inputs
            .iter()
            .zip(self.layouts)
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
            .zip(self.sizes)
            .zip(lent_writes.by_ref())
            .map(|((id, sizes), data)| Out {
                dtype: graph.ty(*id).dtype,
                sizes: sizes.clone(),
                data,
            })
            .collect();
        let scratch: &mut [u8] = lent_writes.next().unwrap_or_else(nothing);
        let sources = self.epilogue.map(|(run, loads)| sources(run, loads, &lent.reads));
        let mut epilogue = self.epilogue.map(|(run, _)| tile::TileEpilogue::of(&run.program));
        if let (Some(epilogue), Some(sources)) = (&mut epilogue, &sources) {
            epilogue.resolve(sources)?;
        }
        pool().run_until(self.cost, self.stop, |workers| {
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
        Ok(outs.into_iter().map(|out| out.sizes).collect())
    }
}
