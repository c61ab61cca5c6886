//! Eager mode: one op, now.
//!
//! An input that is given by value and held by nobody else lends its bytes to the result where the row
//! allows: who allocates can be read in the code.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tonnage_core::attrs::Attrs;
use tonnage_core::graph::Graph;
use tonnage_core::kernel::{Data, In, Kernel, Out};
use tonnage_core::layout::Layout;
use tonnage_core::recipe::Recipe;
use tonnage_core::row::{Call, Lower, Mem, OpDef, Types};
use tonnage_core::shape::Sizes;
use tonnage_core::tile::{Close, Form, TileProgram};
use tonnage_core::{Kind, Mark, Result, TensorType};
use tonnage_ops::tile;

use crate::array::{Array, owner};
use crate::buffer::Buffer;
use crate::emit::EagerEmit;
use crate::events::{self, Action};
use crate::execute;
use crate::ledger::Ledger;
use crate::pool::pool;
use crate::storage::{Pinned, State};

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
    let types: SmallVec<[TensorType; 3]> = args.iter().map(|a| a.array().ty()).collect();
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
            let program = make(&call, aux)?;
            apply_tile(op, &call, args, &outputs, &program, mark)
        }
        Lower::Slices(kernel) => apply_kernel(op, &call, args, &outputs, kernel, mark),
        Lower::Composite(expand) => {
            let mut emit = EagerEmit::new(mark);
            let inputs = args.into_iter().map(crate::emit::value).collect();
            let made = expand(&mut emit, &call, inputs)?;
            made.into_iter().map(crate::emit::array).collect()
        }
        Lower::Region(_) => execute::region_op(op, args, attrs, regions, aux, mark),
    }
}

/// Applies an op that updates its first input, which is `target`: in place where nobody else holds its
/// bytes, into bytes of its own otherwise. On an error the target is what it was.
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
    let (Lower::Tile(make), true) = (op.lower, in_place) else {
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
    let mut inputs = Inputs::new(args);
    let domain: Sizes = target.sizes().into();
    let owner = owner(mark, op.name);
    // The value may be a view of other bytes, but not of these: nobody else holds them.
    let recipes: SmallVec<[Option<&Recipe>; 3]> =
        std::iter::once(None).chain(inputs.recipes.iter().map(Option::as_deref)).collect();
    let Some((program, loads)) = tile::compose(&program, &recipes, &domain) else {
        return Err(bad_layout(op));
    };
    inputs.layouts.insert(0, target.layout().clone());
    let pins = inputs.pins(op, mark)?;
    let sources = sources(op, &program, &loads, &inputs.layouts, &domain, |i| match i {
        0 => tile::Read::Output(0),
        i => pins[i - 1].as_ref().map_or(tile::Read::Slice(&[]), |p| tile::Read::Slice(p.bytes())),
    })?;
    let mut bytes = target.storage().pin_mut(Ledger::cpu(), owner)?;
    events::record(op.name, mark.source, Action::InPlace, types[0].bytes(op.name)?.rounded());
    let out = bytes.bytes_mut();
    pool().run((op.cost)(&call), |workers| {
        tile::run(&program, &domain, &sources, &mut [out], &mut [], workers)
    })
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
            let buffer = crate::storage::materialize(&recipe, Ledger::cpu(), owner(mark, op.name))?;
            Array::from_buffer(buffer, output.dtype, Layout::contiguous(sizes))
        }
        None => copy[0].view(Layout::contiguous(sizes)),
    };
    Ok(smallvec![made])
}

/// The inputs of an op while it runs: those that gave up their bytes are gone.
struct Inputs<'a> {
    args: SmallVec<[Option<Arg<'a>>; 3]>,
    recipes: SmallVec<[Option<Arc<Recipe>>; 3]>,
    layouts: SmallVec<[Layout; 3]>,
}

impl<'a> Inputs<'a> {
    fn new(args: Args<'a>) -> Inputs<'a> {
        Inputs {
            recipes: args.iter().map(|a| a.array().as_recipe()).collect(),
            layouts: args.iter().map(|a| a.array().layout().clone()).collect(),
            args: args.into_iter().map(Some).collect(),
        }
    }

    /// The bytes of an input for the first output, where the row allows and nobody else holds them.
    fn take_over(&mut self, mem: Mem, output: &TensorType) -> Option<(usize, Buffer)> {
        let Mem::Reuse(candidates) = mem else { return None };
        let fits = |input: &usize| match self.args.get(*input) {
            Some(Some(Arg::Owned(array))) => {
                array.is_sole()
                    && self.recipes[*input].is_none()
                    && array.dtype().size() == output.dtype.size()
                    && array.ty().shape == output.shape
            }
            _ => false,
        };
        let input = candidates.iter().copied().find(fits)?;
        let Some(Arg::Owned(array)) = self.args[input].take() else { return None };
        let buffer = Arc::try_unwrap(array.into_storage()).ok()?.into_buffer()?;
        Some((input, buffer))
    }

    /// Pins those that are in memory and were not taken over.
    fn pins(&self, op: &'static OpDef, mark: Mark) -> Result<SmallVec<[Option<Pinned<'_>>; 3]>> {
        self.args
            .iter()
            .zip(&self.recipes)
            .map(|(arg, recipe)| match (arg, recipe) {
                (Some(arg), None) => arg.array().pin(op.name, mark.source).map(Some),
                _ => Ok(None),
            })
            .collect()
    }

    fn array(&self, input: usize) -> Option<&Array> {
        self.args[input].as_ref().map(Arg::array)
    }
}

/// A buffer for an output: the bytes that were taken over, or new ones.
fn obtain(
    taken: &mut Option<(usize, Buffer)>,
    ty: &TensorType,
    op: &'static str,
    mark: Mark,
) -> Result<Buffer> {
    match taken.as_mut().map(|(_, buffer)| std::mem::take(buffer)) {
        Some(mut buffer) if !buffer.is_empty() => {
            events::record(op, mark.source, Action::Reused, buffer.reserved());
            buffer.set_owner(owner(mark, op));
            Ok(buffer)
        }
        _ => Buffer::obtain(Ledger::cpu(), ty.bytes(op)?, owner(mark, op)),
    }
}

fn apply_tile(
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
    let mut taken = inputs.take_over(op.mem, &outputs[0]);
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
    let guards: SmallVec<[_; 3]> = args.iter().map(|a| a.array().storage().read()).collect();
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
    let layout = Layout::contiguous(output.shape.sizes().unwrap_or_default());
    Ok(Some(Array::from_buffer(buffer, output.dtype, layout)))
}

/// What the loads of a program read.
fn sources<'b>(
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

fn apply_kernel(
    op: &'static OpDef,
    call: &Call,
    args: Args,
    outputs: &Types,
    kernel: fn(&mut Kernel) -> Result<()>,
    mark: Mark,
) -> Result<Arrays> {
    let mut inputs = Inputs::new(args);
    let mut taken = inputs.take_over(op.mem, &outputs[0]);
    let in_place = taken.as_ref().map(|(input, _)| *input);
    let mut buffers: SmallVec<[Buffer; 1]> = SmallVec::new();
    for ty in outputs {
        buffers.push(obtain(&mut taken, ty, op.name, mark)?);
    }
    let cost = (op.cost)(call);
    let threads = pool().threads_for(cost);
    let scratch = (op.scratch)(call, threads);
    let mut scratch = Buffer::obtain(
        Ledger::cpu(),
        scratch,
        owner(Mark { kind: Kind::Scratch, ..mark }, op.name),
    )?;
    let pins = (0..inputs.args.len())
        .map(|i| inputs.array(i).map(|a| a.pin(op.name, mark.source)).transpose())
        .collect::<Result<SmallVec<[_; 3]>>>()?;
    let ins: SmallVec<[In; 3]> = pins
        .iter()
        .enumerate()
        .map(|(i, pin)| In {
            dtype: call.inputs[i].dtype,
            layout: inputs.layouts[i].clone(),
            data: match pin {
                Some(pin) => Data::Slice(pin.bytes()),
                None if in_place == Some(i) => Data::Output(0),
                None => Data::Slice(&[]),
            },
        })
        .collect();
    let mut real: SmallVec<[Sizes; 1]> = SmallVec::new();
    {
        let mut outs: SmallVec<[Out; 1]> = SmallVec::new();
        for (buffer, ty) in buffers.iter_mut().zip(outputs) {
            let sizes = sizes(ty, op.name)?;
            outs.push(Out { dtype: ty.dtype, sizes, data: buffer.bytes_mut() });
        }
        let scratch = scratch.bytes_mut();
        pool().run(cost, |workers| {
            kernel(&mut Kernel {
                attrs: call.attrs,
                inputs: &ins,
                outputs: &mut outs,
                scratch,
                workers,
            })
        })?;
        real.extend(outs.into_iter().map(|out| out.sizes));
    }
    Ok(buffers
        .into_iter()
        .zip(outputs)
        .zip(real)
        .map(|((buffer, ty), sizes)| {
            Array::from_buffer(buffer, ty.dtype, Layout::contiguous(sizes))
        })
        .collect())
}

fn bad_layout(op: &'static OpDef) -> tonnage_core::Error {
    let what = format!("the inputs of {} do not stretch to what it runs over", op.name);
    tonnage_core::ErrorKind::BadGraph { what }.into()
}
