//! Eager mode: one op, now.
//!
//! An input that is given by value and held by nobody else lends its bytes to the result where the row
//! allows: who allocates can be read in the code. `inputs` decides that; `tile_op` and `kernel` run what the
//! row says, `small` what takes less time than to say so.

mod inputs;
mod kernel;
mod small;
mod tile_op;

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tonnage_core::attrs::Attrs;
use tonnage_core::graph::Graph;
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, Lower, OpDef};
use tonnage_core::shape::Sizes;
use tonnage_core::{Mark, Result, TensorType};

use self::inputs::{EagerInputs, exactly, range};
use self::tile_op::EagerLoads;
use crate::array::{Array, owner};
use crate::emit::EagerEmit;
use crate::events::{self, Action};
use crate::execute;
use crate::ledger::Ledger;
use crate::lend::Lender;
use crate::placement::{beside, default_ledger, ledger_of};
use crate::storage::materialize;

/// Elements below which the cost of the work is not estimated: it stays on this thread.
const SMALL: usize = 4096;

/// An input of an eager op.
#[derive(Debug)]
pub enum Arg<'a> {
    /// Left as it is.
    Borrowed(&'a Array),
    /// Given up: its bytes may become the result's.
    Owned(Array),
}

impl Arg<'_> {
    /// The tensor.
    pub fn array(&self) -> &Array {
        match self {
            Arg::Borrowed(array) => array,
            Arg::Owned(array) => array,
        }
    }
}

/// Inputs of an eager op.
pub type Args<'a> = SmallVec<[Arg<'a>; 3]>;
/// Results of an eager op.
pub type Arrays = SmallVec<[Array; 1]>;

/// Applies an op now. With `aux`, the row's extra outputs follow the others.
pub fn apply(
    op: &'static OpDef,
    args: Args,
    attrs: &Attrs,
    regions: &[Arc<Graph>],
    aux: bool,
    mark: Mark,
) -> Result<Arrays> {
    run(op, args, attrs, regions, aux, mark).map_err(|e| e.at(mark.source))
}

fn run(
    op: &'static OpDef,
    args: Args,
    attrs: &Attrs,
    regions: &[Arc<Graph>],
    aux: bool,
    mark: Mark,
) -> Result<Arrays> {
    if let (Lower::Tile(_), false) = (&op.lower, aux)
        && let Some(made) = small::again(op, &args, attrs, mark)?
    {
        return Ok(smallvec![made]);
    }
    let mut types: SmallVec<[TensorType; 3]> = SmallVec::new();
    for arg in &args {
        types.push(arg.array().ty());
    }
    let call = Call { op: op.name, inputs: &types, attrs, regions };
    let mut outputs = (op.infer)(&call)?;
    if aux {
        outputs.extend((op.saves.aux)(&call)?);
    }
    match op.lower {
        Lower::View(view) => apply_view(op, &call, args, &outputs[0], view, mark),
        Lower::Recipe(make) => {
            events::record(op.name, mark.source, Action::Recipe, tonnage_core::Bytes::ZERO);
            Ok(smallvec![Array::from_recipe(Arc::new(make(&call)?))])
        }
        Lower::Tile(make) => {
            if let ([output], false) = (outputs.as_slice(), aux)
                && let Some(made) = small::apply(op, &call, &args, output, mark)?
            {
                return Ok(smallvec![made]);
            }
            let program = make(&call, aux)?;
            tile_op::apply(op, &call, placed(op, args, mark)?, &outputs, &program, mark)
        }
        Lower::Kernel => kernel::apply(op, &call, placed(op, args, mark)?, &outputs, mark),
        // A graph as one op is planned as one.
        Lower::Composite(_) if !regions.is_empty() => {
            execute::region_op(op, args, attrs, regions, aux, mark)
        }
        Lower::Composite(expand) => {
            let mut emit = EagerEmit::new(mark);
            let inputs = args.into_iter().map(crate::emit::value).collect();
            let made = expand(&mut emit, &call, inputs)?;
            made.into_iter().map(crate::emit::array).collect()
        }
        Lower::Region(_) => execute::region_op(op, args, attrs, regions, aux, mark),
        Lower::Transfer(_) => {
            let what = format!("{} stands in plans alone", op.name);
            Err(tonnage_core::ErrorKind::BadGraph { what }.into())
        }
    }
}

/// The device that an op runs on, and its inputs there.
fn placed<'a>(op: &'static OpDef, args: Args<'a>, mark: Mark) -> Result<(Ledger, Args<'a>)> {
    let place = ledger_of(op.name, args.iter().map(Arg::array))?;
    let args = beside_all(op, &place, args, mark)?;
    Ok((place, args))
}

/// Inputs as an op needs them that runs there.
fn beside_all<'a>(
    op: &'static OpDef,
    place: &Ledger,
    mut args: Args<'a>,
    mark: Mark,
) -> Result<Args<'a>> {
    for arg in &mut args {
        if let Some(array) = beside(op.name, place, arg.array(), mark.source)? {
            *arg = Arg::Owned(array);
        }
    }
    Ok(args)
}

/// Applies an op that updates its first input, which is `target`: in place where nobody else holds its
/// bytes, into bytes of its own otherwise. On an error the target is unchanged.
pub fn update(
    op: &'static OpDef,
    target: &mut Array,
    args: Args,
    attrs: &Attrs,
    mark: Mark,
) -> Result<()> {
    let mut types: SmallVec<[TensorType; 3]> = smallvec![target.ty()];
    types.extend(args.iter().map(|a| a.array().ty()));
    let call = Call { op: op.name, inputs: &types, attrs, regions: &[] };
    (op.infer)(&call).map_err(|e| e.at(mark.source))?;
    let in_place = target.is_sole() && target.as_recipe().is_none();
    if matches!(op.lower, Lower::Kernel) {
        if !in_place {
            *target = target.copied(mark, op.name)?;
        }
        let place = target.storage().ledger().unwrap_or_else(default_ledger);
        let args = beside_all(op, &place, args, mark)?;
        return kernel::update(op, &call, target, (place, args), mark);
    }
    let (Lower::Tile(make), true) = (op.lower, in_place) else {
        // What is updated stays where it lies.
        let args = match target.storage().ledger() {
            Some(place) => beside_all(op, &place, args, mark)?,
            None => args,
        };
        let all = std::iter::once(Arg::Owned(target.clone())).chain(args).collect();
        let made = apply(op, all, attrs, &[], false, mark)?.swap_remove(0);
        // What is written is in memory from then on: a chain of updates would be computed at each read.
        *target = match made.as_recipe() {
            Some(_) => made.copied(mark, op.name)?,
            None => made,
        };
        return Ok(());
    };
    let program = make(&call, false)?;
    let domain: Sizes = target.sizes().into();
    let owner = owner(mark, op.name);
    let place = target.storage().ledger().unwrap_or_else(default_ledger);
    let args = beside_all(op, &place, args, mark)?;
    // The value may be a view of other bytes, but not of these: nobody else holds them.
    let mut inputs = EagerInputs::of_update(place.clone(), target.layout().clone(), args);
    let (program, loads) = inputs.compose(op, &program, &domain, mark)?;
    let pins = inputs.pins(op, mark)?;
    let mut bytes = target.storage().pin_mut(&place, owner)?;
    events::record(op.name, mark.source, Action::InPlace, types[0].bytes(op.name)?.rounded());
    let mut lender = Lender::new(place.backend());
    lender.lend_for(Some(mark.source));
    let out = exactly(range(&mut lender, bytes.buffer_mut()?), &types[0], op.name)?;
    let lent = pins.lend(&mut lender)?;
    let (layouts, in_place) = (&inputs.layouts[..], Some(0));
    let loads = EagerLoads { program: &program, loads, layouts, in_place, stops: false };
    loads.launch(op, &domain, (op.cost)(&call), &mut lender, &lent, (&[out], 1))
}

fn sizes(ty: &TensorType, op: &'static str) -> Result<Sizes> {
    ty.bytes(op)?;
    // Known, or decided by the data and bounded: infer gives nothing else for known inputs.
    Ok(ty.shape.most().unwrap_or_default())
}

fn apply_view(
    op: &'static OpDef,
    call: &Call,
    mut args: Args,
    output: &TensorType,
    view: fn(&Call, &Layout) -> Option<Layout>,
    mark: Mark,
) -> Result<Arrays> {
    let array = args[0].array();
    let sizes = sizes(output, op.name)?;
    let made = match array.as_recipe() {
        Some(recipe) => recipe
            .view(sizes.clone(), |layout| view(call, layout))
            .map(|recipe| Array::from_recipe(Arc::new(recipe))),
        None => view(call, array.layout()).map(|layout| array.view(layout)),
    };
    if let Some(made) = made {
        events::record(op.name, mark.source, Action::View, made.storage().reserved());
        return Ok(smallvec![made]);
    }
    // The elements do not lie in that order: a copy puts them so.
    let copy = apply(
        &tonnage_ops::math::identity::IDENTITY,
        smallvec![args.swap_remove(0)],
        &Attrs::None,
        &[],
        false,
        mark,
    )?;
    let made = match copy[0].as_recipe() {
        // A recipe that cannot be looked at in that order is written out first.
        Some(recipe) => {
            let buffer = materialize(&recipe, &default_ledger(), owner(mark, op.name))?;
            Array::from_buffer(buffer, output.dtype, Layout::contiguous(sizes))
        }
        None => copy[0].view(Layout::contiguous(sizes)),
    };
    Ok(smallvec![made])
}

fn bad_layout(op: &'static OpDef) -> tonnage_core::Error {
    let what = format!("the inputs of {} do not broadcast to what it runs over", op.name);
    tonnage_core::ErrorKind::BadGraph { what }.into()
}
