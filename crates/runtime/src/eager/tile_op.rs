//! An elementwise op or a reduction, eagerly: a tile program of one op.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, OpDef, Types};
use tonnage_core::tile::{Close, Form, TileProgram};
use tonnage_core::{Kind, Mark, Result, TensorType};
use tonnage_cpu::tile;
use tonnage_ops::tile::{Composed, chained};

use super::inputs::{EagerInputs, exactly, obtain};
use super::{Args, Arrays, SMALL, bad_layout, sizes};
use crate::array::{Array, owner};
use crate::buffer::Buffer;
use crate::context::host_ledger;
use crate::events::{self, Action};
use crate::pool::pool;

pub(super) fn apply(
    op: &'static OpDef,
    call: &Call,
    args: Args,
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
    let mut inputs = EagerInputs::new(args);
    let composed;
    let (program, loads) = match inputs.recipes.iter().any(Option::is_some) {
        true => {
            let (made, loads) = inputs.compose(op, program, &domain, mark)?;
            let generators = loads.iter().map(Composed::generator);
            if let Some(recipe) = chained(&made, generators, &domain, &tile::LIMITS) {
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
        buffers.push(obtain(&mut taken, ty, op.name, mark)?);
    }
    let scratch = tile::scratch(program, &domain);
    let mut scratch = Buffer::obtain(
        &host_ledger(),
        scratch,
        owner(Mark { kind: Kind::Scratch, ..mark }, op.name),
    )?;
    let sources =
        sources(op, program, &loads, &inputs.layouts, &domain, |i| match pins.bytes(i) {
            Some(bytes) => tile::Read::Slice(bytes),
            None if in_place == Some(i) => tile::Read::Output(0),
            None => tile::Read::Slice(&[]),
        })?;
    {
        let mut outs: SmallVec<[&mut [u8]; 2]> = SmallVec::new();
        for (buffer, ty) in buffers.iter_mut().zip(outputs) {
            outs.push(exactly(buffer.bytes_mut(), ty, op.name)?);
        }
        let scratch = scratch.bytes_mut();
        let mut go = |workers: &dyn tonnage_cpu::workers::Workers| {
            tile::run(program, &domain, &sources, &mut outs, scratch, workers)
        };
        match domain.iter().product::<usize>() < SMALL {
            true => go(&tonnage_cpu::workers::Alone)?,
            false => pool().run_op((op.cost)(call), go)?,
        }
    }
    buffers
        .into_iter()
        .zip(outputs)
        .map(|(buffer, ty)| {
            Ok(Array::from_buffer(buffer, ty.dtype, Layout::contiguous(sizes(ty, op.name)?)))
        })
        .collect()
}

/// What the loads of a program read.
pub(super) fn sources<'b>(
    op: &'static OpDef,
    program: &TileProgram,
    loads: &'b [Composed],
    layouts: &[Layout],
    domain: &[usize],
    read: impl Fn(usize) -> tile::Read<'b>,
) -> Result<SmallVec<[tile::TileSource<'b>; 3]>> {
    loads
        .iter()
        .zip(&program.loads)
        .map(|(load, form)| match load {
            Composed::Generator(generator, layout) => Ok(tile::TileSource {
                layout: layout.clone(),
                read: tile::Read::Generator(generator),
            }),
            Composed::Input(i) => {
                let layout = match form {
                    Form::Bits => layouts[*i].clone(),
                    Form::Elements(_) => {
                        layouts[*i].broadcast_to(domain).ok_or_else(|| bad_layout(op))?
                    }
                };
                Ok(tile::TileSource { layout, read: read(*i) })
            }
        })
        .collect()
}
