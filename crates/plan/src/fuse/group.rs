//! A tile program that can still grow: instructions that name their operands, in no order yet.
//!
//! A producer is written into its consumer by pointing the consumer's operand at the producer's last
//! instruction; nothing is renumbered, so a chain grows in time proportional to its length. When all is
//! in, [`FusionGroup::finish`] puts instructions and loads in the order in which the result needs them, each once:
//! an order that follows from what is computed, not from how it was written.

use smallvec::SmallVec;
use tonnage_core::DType;
use tonnage_core::graph::ValueId;
use tonnage_core::scalar::Scalar;
use tonnage_core::shape::Shape;
use tonnage_core::tile::{Close, Form, Prim, TileProgram};

use crate::program::{ProgramBuilder, ProgramOperand};

/// What an operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OperandSource {
    /// Loaded.
    Load(ValueId, Form),
    /// Made by the instruction of that number.
    Code(u16),
}

/// An instruction whose arguments are numbers of operands.
#[derive(Debug, Clone)]
struct Code {
    prim: Prim,
    dtype: DType,
    args: SmallVec<[u16; 3]>,
}

/// A node as a program that can still grow.
#[derive(Debug, Clone)]
pub(super) struct FusionGroup {
    sources: Vec<OperandSource>,
    code: Vec<Code>,
    stores: SmallVec<[(u16, Form); 1]>,
    pub close: Close,
    /// What it runs over.
    pub domain: Shape,
    /// Whether something was written in.
    pub grown: bool,
    /// A value that stays the first load whichever node reads it: the target of an update.
    first: Option<ValueId>,
}

impl FusionGroup {
    pub fn new(
        program: &TileProgram,
        inputs: &[ValueId],
        domain: Shape,
        first: Option<ValueId>,
    ) -> FusionGroup {
        let loads =
            inputs.iter().zip(&program.loads).map(|(id, form)| OperandSource::Load(*id, *form));
        let code = (0..program.code.len()).map(|i| OperandSource::Code(i as u16));
        FusionGroup {
            sources: loads.chain(code).collect(),
            code: program
                .code
                .iter()
                .map(|i| Code { prim: i.prim, dtype: i.dtype, args: i.args.clone() })
                .collect(),
            stores: program.stores.clone(),
            close: program.close.clone(),
            domain,
            grown: false,
            first,
        }
    }

    /// What it loads; a value may come twice.
    pub fn loads(&self) -> impl Iterator<Item = (ValueId, Form)> + '_ {
        self.sources.iter().filter_map(|source| match source {
            OperandSource::Load(id, form) => Some((*id, *form)),
            OperandSource::Code(_) => None,
        })
    }

    /// Whether another can load its only result as elements and drop it.
    pub fn can_fuse_into_consumers(&self) -> bool {
        self.close == Close::Store
            && matches!(self.stores.as_slice(), [(_, Form::Elements(_))])
            && self.first.is_none()
    }

    /// How many instructions.
    pub fn len(&self) -> usize {
        self.code.len()
    }

    /// Rough cost an element.
    pub fn work(&self) -> u64 {
        self.code.iter().map(|c| c.prim.flops()).sum()
    }

    /// Writes in the program of a value that it loads.
    pub fn absorb(&mut self, value: ValueId, inner: &FusionGroup) {
        let (sources, code) = (self.sources.len() as u16, self.code.len() as u16);
        self.sources.extend(inner.sources.iter().map(|source| match source {
            OperandSource::Code(at) => OperandSource::Code(at + code),
            load => *load,
        }));
        self.code.extend(
            inner.code.iter().map(|c| Code {
                args: c.args.iter().map(|arg| arg + sources).collect(),
                ..c.clone()
            }),
        );
        let (at, form) = inner.stores[0];
        let mut made = self.sources[usize::from(at + sources)];
        if let Form::Elements(dtype) = form
            && dtype.compute() != dtype
        {
            // As if it had lain in memory.
            let args = SmallVec::from_slice(&[at + sources]);
            self.code.push(Code { prim: Prim::RoundTo(dtype), dtype: dtype.compute(), args });
            made = OperandSource::Code(self.code.len() as u16 - 1);
        }
        for source in &mut self.sources[..usize::from(sources)] {
            if matches!(source, OperandSource::Load(id, Form::Elements(_)) if *id == value) {
                *source = made;
            }
        }
        self.grown = true;
    }

    /// The program and what it loads. `constant` knows values that are the same number everywhere, which
    /// become part of the program; `shape` knows all shapes.
    pub fn finish(
        &self,
        constant: &dyn Fn(ValueId) -> Option<Scalar>,
        shape: &dyn Fn(ValueId) -> Shape,
    ) -> (TileProgram, Vec<ValueId>) {
        let mut made = ProgramBuilder::default();
        let known = |id: ValueId| constant(id).filter(|_| self.first != Some(id));
        if let Some((id, form)) = self.loads().find(|(id, _)| self.first == Some(*id)) {
            made.load(id, form);
        }
        let mut places: Vec<Option<ProgramOperand>> = vec![None; self.sources.len()];
        let stores: Vec<(ProgramOperand, Form)> = self
            .stores
            .iter()
            .map(|(at, form)| (self.place(*at, &mut places, &mut made, &known), *form))
            .collect();
        // Something has to say how large the result is.
        for (id, form) in self.loads() {
            if covers(&made, &self.domain, shape) {
                break;
            }
            made.load(id, form);
        }
        made.finish(&stores, self.close.clone())
    }

    fn place(
        &self,
        at: u16,
        places: &mut [Option<ProgramOperand>],
        made: &mut ProgramBuilder<ValueId>,
        known: &dyn Fn(ValueId) -> Option<Scalar>,
    ) -> ProgramOperand {
        if let Some(place) = places[usize::from(at)] {
            return place;
        }
        let place = match self.sources[usize::from(at)] {
            OperandSource::Load(id, form) => match known(id) {
                Some(value) => made.code(Prim::Const(value), form.register(), SmallVec::new()),
                None => made.load(id, form),
            },
            OperandSource::Code(code) => {
                let code = &self.code[usize::from(code)];
                let args =
                    code.args.iter().map(|arg| self.place(*arg, places, made, known)).collect();
                made.code(code.prim, code.dtype, args)
            }
        };
        places[usize::from(at)] = Some(place);
        place
    }
}

/// Whether what was loaded says how large the result is.
fn covers(
    made: &ProgramBuilder<ValueId>,
    domain: &Shape,
    shape: &dyn Fn(ValueId) -> Shape,
) -> bool {
    let mut elements = made.loads().filter(|(_, form)| *form != Form::Bits);
    let joined = elements
        .try_fold(Shape::scalar(), |joined, (id, _)| joined.broadcast(&shape(*id), "fused").ok());
    joined.is_some_and(|joined| joined == *domain)
}
