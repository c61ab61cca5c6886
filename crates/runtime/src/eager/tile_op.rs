//! An elementwise op or a fold, eagerly: a tile program of one op.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tonnage_core::layout::Layout;
use tonnage_core::recipe::Recipe;
use tonnage_core::row::{Call, OpDef, Types};
use tonnage_core::shape::Sizes;
use tonnage_core::tile::{Close, Form, TileProgram};
use tonnage_core::{Kind, Mark, Result, TensorType};
use tonnage_ops::tile;

use super::inputs::{Inputs, obtain};
use super::{Arg, Args, Arrays, bad_layout, sizes};
use crate::array::{Array, owner};
use crate::buffer::Buffer;
use crate::events::{self, Action};
use crate::ledger::Ledger;
use crate::pool::pool;
use crate::storage::State;

pub(super) fn apply(
    op: &'static OpDef,
    call: &Call,
    args: Args,
    outputs: &Types,
    program: &TileProgram,
    mark: Mark,
) -> Result<Arrays> {
    if let Some(made) = small_tile(op, &args, outputs, program, mark)? {
        return Ok(smallvec![made]);
    }
    let domain = match program.close {
        Close::Store => sizes(&outputs[0], op.name)?,
        Close::Fold { .. } => {
            let domain = tile::domain(call, program)?;
            sizes(&TensorType::new(tonnage_core::DType::U8, domain), op.name)?
        }
    };
    let mut inputs = Inputs::new(args);
    let composed;
    let (program, loads) = match inputs.recipes.iter().any(Option::is_some) {
        true => {
            let recipes: SmallVec<[Option<&Recipe>; 3]> =
                inputs.recipes.iter().map(Option::as_deref).collect();
            let made = tile::compose(program, &recipes, &domain);
            let Some((made, loads)) = made else { return Err(bad_layout(op)) };
            if let Some(recipe) = chained(&made, &loads, &domain) {
                events::record(op.name, mark.source, Action::Recipe, tonnage_core::Bytes::ZERO);
                return Ok(smallvec![Array::from_recipe(Arc::new(recipe))]);
            }
            composed = made;
            (&composed, loads)
        }
        false => (program, (0..program.loads.len()).map(tile::Composed::Input).collect()),
    };
    // A fold reads its inputs while others of its results are written: never in place.
    let mut taken = match program.close {
        Close::Store => inputs.take_over(op.mem, &outputs[0]),
        Close::Fold { .. } => None,
    };
    let in_place = taken.as_ref().map(|(input, _)| *input);
    let mut buffers: SmallVec<[Buffer; 1]> = SmallVec::new();
    for ty in outputs {
        buffers.push(obtain(&mut taken, ty, op.name, mark)?);
    }
    let scratch = tile::scratch(program, &domain);
    let mut scratch = Buffer::obtain(
        Ledger::cpu(),
        scratch,
        owner(Mark { kind: Kind::Scratch, ..mark }, op.name),
    )?;
    let pins = inputs.pins(op, mark)?;
    let sources = sources(op, program, &loads, &inputs.layouts, &domain, |i| match &pins[i] {
        Some(pin) => tile::Read::Slice(pin.bytes()),
        None if in_place == Some(i) => tile::Read::Output(0),
        None => tile::Read::Slice(&[]),
    })?;
    {
        let mut outs: SmallVec<[&mut [u8]; 2]> =
            buffers.iter_mut().map(Buffer::bytes_mut).collect();
        let scratch = scratch.bytes_mut();
        let mut go = |workers: &dyn tonnage_core::Workers| {
            tile::run(program, &domain, &sources, &mut outs, scratch, workers)
        };
        match domain.iter().product::<usize>() < SMALL {
            true => go(&tonnage_core::workers::Alone)?,
            false => pool().run((op.cost)(call), go)?,
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

/// A small op whose inputs lie in memory as they are computed, and stay there.
fn small_tile(
    op: &'static OpDef,
    args: &Args,
    outputs: &Types,
    program: &TileProgram,
    mark: Mark,
) -> Result<Option<Array>> {
    let [output] = outputs.as_slice() else { return Ok(None) };
    let Some(count) = output.shape.count().filter(|n| *n < SMALL && *n > 0) else {
        return Ok(None);
    };
    let fits = |arg: &Arg| {
        let array = arg.array();
        let stays = matches!(arg, Arg::Borrowed(_)) || !array.is_sole();
        let n = array.layout().count();
        // A shape of as many elements that stretches to the result's is the result's, but for lengths
        // of 1: the order is the same.
        stays && array.layout().is_contiguous() && (n == count || n == 1)
    };
    if !tile::is_direct(program) || !args.iter().all(fits) {
        return Ok(None);
    }
    let mut guards: SmallVec<[_; 3]> = SmallVec::new();
    for arg in args {
        guards.push(arg.array().storage().read());
    }
    let mut inputs: SmallVec<[&[u8]; 3]> = SmallVec::new();
    for (guard, arg) in guards.iter().zip(args) {
        let State::Resident(buffer) = &**guard else { return Ok(None) };
        let (layout, size) = (arg.array().layout(), arg.array().dtype().size());
        let start = layout.offset * size;
        inputs.push(&buffer.bytes()[start..start + layout.count() * size]);
    }
    let bytes = tonnage_core::Bytes::of(count * output.dtype.size());
    let mut buffer = Buffer::obtain(Ledger::cpu(), bytes, owner(mark, op.name))?;
    tile::direct(program, &inputs, buffer.bytes_mut())?;
    // Mostly the result lies as an input does.
    let like = args
        .iter()
        .map(|a| a.array().layout())
        .find(|l| l.sizes.len() == output.shape.rank() && l.count() == count);
    let layout = match like {
        Some(layout) => Layout { offset: 0, ..layout.clone() },
        None => Layout::contiguous(output.shape.sizes().unwrap_or_default()),
    };
    Ok(Some(Array::from_buffer(buffer, output.dtype, layout)))
}

/// What the loads of a program read.
pub(super) fn sources<'b>(
    op: &'static OpDef,
    program: &TileProgram,
    loads: &[tile::Composed],
    layouts: &[Layout],
    domain: &[usize],
    read: impl Fn(usize) -> tile::Read<'b>,
) -> Result<SmallVec<[tile::Source<'b>; 3]>> {
    loads
        .iter()
        .zip(&program.loads)
        .map(|(load, form)| match load {
            tile::Composed::Generator(generator, layout) => {
                Ok(tile::Source { layout: layout.clone(), read: tile::Read::Generator(*generator) })
            }
            tile::Composed::Input(i) => {
                let layout = match form {
                    Form::Bits => layouts[*i].clone(),
                    Form::Elements(_) => {
                        layouts[*i].broadcast_to(domain).ok_or_else(|| bad_layout(op))?
                    }
                };
                Ok(tile::Source { layout, read: read(*i) })
            }
        })
        .collect()
}

/// Elements below which nobody asks what the work costs: it stays on this thread.
const SMALL: usize = 4096;

/// The result as a recipe, where nothing that it reads is in memory and it is short enough.
fn chained(program: &TileProgram, loads: &[tile::Composed], domain: &Sizes) -> Option<Recipe> {
    let chains = program.close == Close::Store
        && program.stores.len() == 1
        && matches!(program.stores[0].1, Form::Elements(_))
        && program.code.len() <= tonnage_core::recipe::LONGEST;
    if !chains {
        return None;
    }
    let sources = loads
        .iter()
        .map(|load| match load {
            tile::Composed::Generator(generator, layout) => Some((*generator, layout.clone())),
            tile::Composed::Input(_) => None,
        })
        .collect::<Option<SmallVec<[_; 1]>>>()?;
    Some(Recipe { program: program.clone(), sources, sizes: domain.clone() })
}
