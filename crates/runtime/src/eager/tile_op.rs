//! An elementwise op or a reduction, eagerly: a tile program of one op.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, Cost, OpDef, Types};
use tonnage_core::tile::{Close, Form, TileProgram};
use tonnage_core::{Kind, Mark, Result, TensorType};
use tonnage_ops::tile::{Composed, chained};

use super::inputs::{EagerInputs, exactly, obtain, range};
use super::{Args, Arrays, SMALL, bad_layout, sizes};
use crate::array::{Array, owner};
use crate::backend::{ReadSource, Reads, TileLaunch};
use crate::buffer::Buffer;
use crate::events::{self, Action};
use crate::ledger::Ledger;
use crate::lend::{ByteRange, Lender};
use crate::pool::op_stop;

pub(super) fn apply(
    op: &'static OpDef,
    call: &Call,
    (place, args): (Ledger, Args),
    outputs: &Types,
    program: &TileProgram,
    mark: Mark,
) -> Result<Arrays> {
    let domain = match program.close {
        Close::Store => sizes(&outputs[0], op.name)?,
        Close::Reduce { .. } => {
            let domain = tonnage_ops::tile::domain(call, program)?;
            sizes(&TensorType::new(tonnage_core::DType::U8, domain), op.name)?
        }
    };
    let mut inputs = EagerInputs::new(place.clone(), args);
    let composed;
    let (program, loads) = match inputs.recipes.iter().any(Option::is_some) {
        true => {
            let (made, loads) = inputs.compose(op, program, &domain, mark)?;
            let generators = loads.iter().map(Composed::generator);
            let limits = place.backend().tile_limits();
            if let Some(recipe) = chained(&made, generators, &domain, &limits) {
                events::record(op.name, mark.source, Action::Recipe, tonnage_core::Bytes::ZERO);
                return Ok(smallvec![Array::from_recipe(Arc::new(recipe))]);
            }
            composed = made;
            (&composed, loads)
        }
        false => (program, (0..program.loads.len()).map(Composed::Input).collect()),
    };
    // A reduction reads its inputs while others of its results are written: never in place.
    let mut taken = match program.close {
        Close::Store => inputs.take_over(op.mem, &outputs[0])?,
        Close::Reduce { .. } => None,
    };
    let in_place = taken.as_ref().map(|(input, _)| *input);
    // What is pinned stays when room has to be made for the results.
    let pins = inputs.pins(op, mark)?;
    let mut buffers: SmallVec<[Buffer; 1]> = SmallVec::new();
    for ty in outputs {
        buffers.push(obtain(&place, &mut taken, ty, op.name, mark)?);
    }
    let backend = place.backend();
    let scratch = backend.tile_scratch(program, &domain);
    let own = owner(Mark { kind: Kind::Scratch, ..mark }, op.name);
    let mut scratch = Buffer::obtain(&place, scratch, own)?;
    let mut lender = Lender::new(backend);
    lender.lend_for(Some(mark.source));
    let mut writes: SmallVec<[ByteRange; 3]> = SmallVec::new();
    for (buffer, ty) in buffers.iter_mut().zip(outputs) {
        writes.push(exactly(range(&mut lender, buffer), ty, op.name)?);
    }
    if !scratch.is_empty() {
        writes.push(range(&mut lender, &mut scratch));
    }
    let lent = pins.lend(&mut lender)?;
    let cost = match domain.iter().product::<usize>() < SMALL {
        true => Cost::default(),
        false => (op.cost)(call),
    };
    let loads = EagerLoads { program, loads, layouts: &inputs.layouts, in_place, stops: true };
    loads.launch(op, &domain, cost, &mut lender, &lent, (&writes, outputs.len()))?;
    drop(lender);
    buffers
        .into_iter()
        .zip(outputs)
        .map(|(buffer, ty)| {
            Ok(Array::from_buffer(buffer, ty.dtype, Layout::contiguous(sizes(ty, op.name)?)))
        })
        .collect()
}

/// A tile program, and what its loads read of the inputs of an op.
pub(super) struct EagerLoads<'a> {
    pub program: &'a TileProgram,
    pub loads: SmallVec<[Composed; 2]>,
    pub layouts: &'a [Layout],
    /// The input whose bytes are the first output's.
    pub in_place: Option<usize>,
    /// Whether it may be stopped before its end: an update may not.
    pub stops: bool,
}

impl EagerLoads<'_> {
    /// Runs it. `lent` are the bytes of the inputs; the last pair what is written, and how much of that are outputs.
    pub fn launch(
        self,
        op: &'static OpDef,
        domain: &[usize],
        cost: Cost,
        lender: &mut Lender,
        lent: &[Option<ByteRange>],
        (writes, outputs): (&[ByteRange], usize),
    ) -> Result<()> {
        let mut reads = Reads::new();
        let mut from: SmallVec<[ReadSource; 4]> = SmallVec::new();
        let mut layouts: SmallVec<[Layout; 4]> = SmallVec::new();
        for (load, form) in self.loads.into_iter().zip(&self.program.loads) {
            let input = match load {
                Composed::Generator(generator, layout) => {
                    from.push(ReadSource::Generator(generator));
                    layouts.push(layout);
                    continue;
                }
                Composed::Input(input) => input,
            };
            layouts.push(match form {
                Form::Bits => self.layouts[input].clone(),
                Form::Elements(_) => {
                    self.layouts[input].broadcast_to(domain).ok_or_else(|| bad_layout(op))?
                }
            });
            from.push(match lent[input] {
                Some(range) => {
                    reads.push(range);
                    ReadSource::Range(reads.len() - 1)
                }
                None if self.in_place == Some(input) => ReadSource::Output(0),
                None => return Err(bad_layout(op)),
            });
        }
        let stop = if self.stops { op_stop(cost) } else { None };
        let launch = TileLaunch {
            program: self.program,
            domain,
            loads: &from,
            layouts: layouts.iter().collect(),
            outputs,
            cost,
            stop: stop.as_ref(),
        };
        let backend = lender.backend();
        backend.tile(&launch, lender.lend(&reads, writes)?)
    }
}
