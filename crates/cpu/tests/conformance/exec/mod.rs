//! A tiny executor: runs one op through its row, as the runtime will.
//!
//! Everything is read from the row: types from `infer`, bytes from the types, workspace from `scratch`, the rest
//! from `lower`. Every buffer has guards, and workspace is lent to the byte.

pub mod buffer;
mod region;
mod slices;
pub mod team;
pub mod tensor;
mod tile;

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::graph::Graph;
use tonnage_core::kind::Kind;
use tonnage_core::row::{Call, Lower, Mem, OpDef, Types};
use tonnage_core::source::Source;
use tonnage_core::{Bytes, Emit, Mark, TensorType, Value};
use tonnage_counting::Seen;
use tonnage_cpu::workers::{Alone, Workers};
use tonnage_cpu::{CpuTarget, kernel_of};
use tonnage_plan::{Machine, Target};

use buffer::Buffer;
use tensor::{Store, Tensor};

/// What an op is lent to work with on so many threads.
pub fn scratch(op: &OpDef, call: &Call, threads: usize) -> Bytes {
    CpuTarget::new(threads, Machine::DEFAULT).scratch(op, call, &[])
}

/// An input whose bytes an output took over, and that output.
type Taken = Option<(usize, usize)>;

/// Runs ops.
pub struct Engine<'w> {
    /// Lent to kernels.
    pub workers: &'w dyn Workers,
    /// Whether an input that nobody else holds may be taken over, where its row allows.
    pub in_place: bool,
    mark: Mark,
}

/// Runs a kernel, which must not allocate. What a kernel says of its error may.
pub fn nothing_allocated(op: &str, kernel: impl FnOnce() -> Result<()>) -> Result<()> {
    let (made, seen) = tonnage_counting::count(kernel);
    if made.is_ok() {
        let Seen { times, largest } = seen;
        assert_eq!(times, 0, "{op}: the kernel allocated, up to {largest} bytes");
    }
    made
}

impl Engine<'static> {
    /// On one thread, never in place.
    pub fn plain() -> Engine<'static> {
        Engine::on(&Alone, false)
    }
}

impl<'w> Engine<'w> {
    /// On those threads.
    pub fn on(workers: &'w dyn Workers, in_place: bool) -> Engine<'w> {
        let mark = Mark { source: Source::here(), kind: Kind::Activation };
        Engine { workers, in_place, mark }
    }

    /// Applies an op.
    pub fn run(
        &mut self,
        op: &'static OpDef,
        inputs: Vec<Tensor>,
        attrs: &Attrs,
        regions: &[Arc<Graph>],
        aux: bool,
    ) -> Result<Vec<Tensor>> {
        let types: Vec<TensorType> = inputs.iter().map(Tensor::ty).collect();
        let call = Call { op: op.name, inputs: &types, attrs, regions };
        let mut made = (op.infer)(&call)?;
        if aux {
            made.extend((op.saves.aux)(&call)?);
        }
        let outputs = match op.lower {
            Lower::Tile(program) => {
                let program = program(&call, aux)?;
                self.tile(op, &call, &program, inputs, &made)?
            }
            Lower::Kernel => {
                let kernel = kernel_of(op).expect("the table has every kernel");
                self.slices(op, &call, kernel, inputs, &made)?
            }
            Lower::View(view) => vec![self.view(&call, view, inputs)?],
            Lower::Recipe(recipe) => vec![Tensor::recipe(recipe(&call)?)],
            Lower::Composite(expand) => {
                let values = inputs.into_iter().map(Tensor::value).collect();
                expand(self, &call, values)?.into_iter().map(Tensor::of).collect()
            }
            Lower::Region(kind) => self.region(kind, attrs, regions, inputs, &made)?,
            Lower::Transfer(_) => panic!("{} stands in no table", op.name),
        };
        assert_eq!(outputs.len(), made.len(), "{}: number of outputs", op.name);
        for (output, ty) in outputs.iter().zip(&made) {
            assert_eq!(output.dtype, ty.dtype, "{}: dtype of an output", op.name);
            match ty.shape.sizes() {
                Some(sizes) => assert_eq!(output.layout.sizes, sizes, "{}: sizes", op.name),
                None => assert!(
                    output
                        .layout
                        .sizes
                        .iter()
                        .zip(ty.shape.iter())
                        .all(|(n, d)| d.most() >= Some(*n)),
                    "{}: a size over its bound",
                    op.name
                ),
            }
        }
        Ok(outputs)
    }

    fn view(
        &mut self,
        call: &Call,
        view: fn(&Call, &tonnage_core::Layout) -> Option<tonnage_core::Layout>,
        mut inputs: Vec<Tensor>,
    ) -> Result<Tensor> {
        let input = inputs.remove(0);
        if let Store::Recipe(recipe) = &input.store {
            // The recipe's own sizes come from a view of a contiguous tensor like it.
            let sizes = view(call, &input.layout).map(|l| l.sizes);
            if let Some(recipe) = sizes.and_then(|s| recipe.view(s, |l| view(call, l))) {
                return Ok(Tensor::recipe(recipe));
            }
        }
        let input = self.resident(input)?;
        Ok(match view(call, &input.layout) {
            Some(layout) => Tensor { layout, ..input },
            None => {
                let copy = input.copy();
                let layout = view(call, &copy.layout).expect("a view of contiguous elements");
                Tensor { layout, ..copy }
            }
        })
    }

    /// The tensor with bytes.
    pub fn resident(&mut self, tensor: Tensor) -> Result<Tensor> {
        match tensor.store {
            Store::Bytes(_) => Ok(tensor),
            Store::Recipe(_) => {
                let identity = tonnage_ops::find("identity").expect("a row");
                Ok(self.run(identity, vec![tensor], &Attrs::None, &[], false)?.remove(0))
            }
        }
    }

    /// Which input's bytes which output may take over: the first that the row names, that nobody else holds,
    /// and that has the output's type.
    fn reuse(&self, op: &OpDef, inputs: &[Tensor], made: &Types) -> Taken {
        let Mem::Reuse(named) = op.mem else { return None };
        if !self.in_place {
            return None;
        }
        named.iter().filter(|i| inputs.get(**i).is_some_and(Tensor::is_sole_owner)).find_map(|i| {
            let ty = inputs[*i].ty();
            Some((*i, made.iter().position(|made| *made == ty)?))
        })
    }

    /// Bytes for every output, and the input whose bytes one of them took over.
    fn outputs(
        &self,
        op: &OpDef,
        inputs: &mut [Tensor],
        made: &Types,
    ) -> Result<(Vec<Buffer>, Taken)> {
        let mut buffers = made
            .iter()
            .map(|ty| Ok(Buffer::new(ty.bytes(op.name)?.as_usize())))
            .collect::<Result<Vec<_>>>()?;
        let taken = match op.mem {
            Mem::Update(variable) => {
                // A variable is written in place whoever looks at it; here others keep what they saw.
                if !inputs[variable].is_sole_owner() {
                    inputs[variable] = inputs[variable].copy();
                }
                Some((variable, 0))
            }
            _ => self.reuse(op, inputs, made),
        };
        if let Some((input, output)) = taken {
            let nothing = Store::Bytes(Arc::new(Buffer::new(0)));
            let Store::Bytes(buffer) = std::mem::replace(&mut inputs[input].store, nothing) else {
                panic!("a recipe can't be taken over");
            };
            buffers[output] = Arc::try_unwrap(buffer).ok().expect("the only holder");
        }
        Ok((buffers, taken))
    }
}

impl Emit for Engine<'_> {
    fn emit(
        &mut self,
        op: &'static OpDef,
        inputs: Vec<Value>,
        attrs: Attrs,
        regions: Vec<Arc<Graph>>,
        aux: bool,
    ) -> Result<Vec<Value>> {
        let inputs = inputs.into_iter().map(Tensor::of).collect();
        let made = self.run(op, inputs, &attrs, &regions, aux)?;
        Ok(made.into_iter().map(Tensor::value).collect())
    }

    fn mark(&mut self, mark: Mark) -> Mark {
        std::mem::replace(&mut self.mark, mark)
    }
}
