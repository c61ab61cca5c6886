//! Values that go to files and outlive the call: new values of variables that live there.
//!
//! Decision: `docs/decisions/variables-in-files.md`.

use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Mark, Value};
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::graph::Builder;
use tonnage_core::layout::Layout;
use tonnage_core::lent::{Data, In};
use tonnage_core::recipe::{Generator, Stored};
use tonnage_core::row::{Cost, OpDef};
use tonnage_core::{Bytes, Kind, TensorType};
use tonnage_cpu::rows_in_parts::{self, RowsInParts};
use tonnage_cpu::tile::{self, FILE_PIECE, Pieces, TileSource, file_piece};
use tonnage_cpu::workers::Workers;
use tonnage_cpu::workers::{Alone, for_each_part};
use tonnage_ops::shape::broadcast_to::BROADCAST_TO;
use tonnage_ops::state;
use tonnage_ops::tile::fused_store::{STORE, as_it_is};
use tonnage_plan::{FileValuePlan, Plan, PlanOptions, Step, TileRun, lower};

use super::frame::ExecutionFrame;
use super::recipe_inputs::{InputGenerators, Specs};
use super::step::{ReadSource, Reads, nothing, sources};
use super::{execute_with, missing, plan_once};
use crate::array::Array;
use crate::lend::Lender;
use crate::machine::target;
use crate::pool::pool;
use crate::spill::FileValue;

/// Where values go that outlive the call in files, as its plan numbers them.
#[derive(Default)]
pub struct FileValues {
    places: Vec<Arc<FileValue>>,
}

impl FileValues {
    /// The places that a plan's values go to. A disk without room is an error before anything has happened.
    pub fn reserve(plan: &Plan) -> Result<FileValues> {
        let place = |file_value: &FileValuePlan| {
            FileValue::reserve(file_value.count, file_value.dtype.size()).map(Arc::new)
        };
        Ok(FileValues { places: plan.file_values.iter().map(place).collect::<Result<_>>()? })
    }

    /// What a call brings, and behind that the places that it makes: as its plan numbers them.
    pub fn behind(&self, given: &InputGenerators, plan: &Plan) -> InputGenerators {
        let places = plan.file_values.iter().zip(&self.places);
        let made = places.map(|(file_value, place)| Generator::Stored {
            elements: Stored(place.clone()),
            dtype: file_value.dtype,
        });
        given.iter().cloned().chain(made).collect()
    }

    /// The place of that number.
    pub fn place(&self, number: usize) -> Result<&FileValue> {
        self.places.get(number).map(|place| &**place).ok_or_else(missing)
    }
}

impl<'p> ExecutionFrame<'p> {
    /// Makes a value a piece at a time, each thread its own pieces: while one writes, the others compute.
    pub(super) fn write_file_value(
        &mut self,
        lender: &mut Lender,
        step: &Step,
        run: &TileRun,
        file_value: usize,
    ) -> Result<()> {
        let to = self.file_values.place(file_value)?;
        let scratch = self.places.scratch(step.scratch);
        let Some(scratch) = scratch else { return Ok(()) }; // nothing to write
        self.used.lent(&scratch);
        let mut reads = Reads::default();
        let from = self.loads(run, &step.reads, &[], &mut reads)?;
        let mut lent = lender.lend(&reads, &[scratch])?;
        let all = sources(run, &from, &lent.reads);
        let size = self.places.plan().file_values[file_value].dtype.size();
        let pieces = Pieces::of(&run.domain, FILE_PIECE / size);
        let one = |number: usize, scratch: &mut [u8]| -> Result<()> {
            let piece = pieces.piece(number);
            let parts: SmallVec<[TileSource; 4]> = all
                .iter()
                .map(|source| TileSource { layout: piece.of(&source.layout), read: source.read })
                .collect();
            let scratch = &mut scratch[..piece.sizes.iter().product::<usize>() * size];
            tile::run(&run.program, &piece.sizes, &parts, &mut [&mut *scratch], nothing(), &Alone)?;
            to.write(piece.start, scratch)
        };
        let bytes = self.places.plan().file_values[file_value].bytes();
        let thread_scratch = ThreadScratch { scratch: &mut *lent.writes[0], bytes, size };
        pool().run(run.cost, |workers| thread_scratch.each(pieces.count(), workers, &one))
    }

    /// Puts rows into a table in a file, and what that is then into another place, a piece at a time.
    pub(super) fn rows_in_file(
        &mut self,
        lender: &mut Lender,
        step: &Step,
        file_value: usize,
    ) -> Result<()> {
        let node = self.node(step)?;
        let to = self.file_values.place(file_value)?;
        let table = step.streamed.first().ok_or_else(missing)?.recipe.clone();
        let (generator, _) = table.as_stored().ok_or_else(missing)?;
        let Generator::Stored { elements: old, dtype } = self.generators.bind(generator) else {
            return Err(missing());
        };
        let scratch = self.places.scratch(step.scratch);
        let Some(scratch) = scratch else { return Ok(()) }; // nothing to write
        self.used.lent(&scratch);
        let mut reads = Reads::default();
        let mut from: SmallVec<[(TensorType, Layout, ReadSource); 2]> = SmallVec::new();
        for id in &node.inputs[1..] {
            let byte_range = self.places.read(*id)?;
            from.push((
                self.ty(*id),
                self.places.layout(*id)?,
                ReadSource::of(byte_range, &[], &mut reads),
            ));
        }
        let mut lent = lender.lend(&reads, &[scratch])?;
        let inputs: SmallVec<[In; 2]> = from
            .into_iter()
            .map(|(ty, layout, from)| {
                let data = match from {
                    ReadSource::Range(i) => lent.reads[i],
                    ReadSource::Output(_) | ReadSource::Generator(_) => &[],
                };
                In { dtype: ty.dtype, layout, data: Data::Slice(data) }
            })
            .collect();
        let [indices, rows] = &inputs[..] else { return Err(missing()) };
        let order = rows_in_parts::order_bytes(indices.layout.count()).as_usize();
        let (order, scratch) = lent.writes[0].split_at_mut(order);
        let order: &mut [u64] = &mut bytemuck::cast_slice_mut(order)[..indices.layout.count()];
        let (size, count) = (dtype.size(), table.sizes.iter().product::<usize>());
        let cost = Cost { flops: 0, bytes: 2 * (count * size) as u64 };
        let bytes = Bytes::of(count * size);
        let thread_scratch = ThreadScratch { scratch, bytes, size };
        pool().run(cost, |workers| {
            let rows = RowsInParts::new(node.op, &table.sizes, [indices, rows], order, workers)?;
            let piece = FILE_PIECE / size;
            let one = |number: usize, scratch: &mut [u8]| -> Result<()> {
                let first = number * piece;
                let scratch = &mut scratch[..piece.min(count - first) * size];
                old.0.read(first as u64, scratch);
                rows.put(first, scratch)?;
                to.write(first, scratch)
            };
            thread_scratch.each(count.div_ceil(piece), workers, &one)
        })?;
        old.0.check()
    }
}

/// Memory in which threads make pieces of what goes to a file, each in its own.
struct ThreadScratch<'a> {
    scratch: &'a mut [u8],
    /// Of all that goes to the file.
    bytes: Bytes,
    /// Of an element.
    size: usize,
}

impl ThreadScratch<'_> {
    /// Makes `count` pieces: every thread that works takes the next few.
    fn each(
        self,
        count: usize,
        workers: &dyn Workers,
        one: &(dyn Fn(usize, &mut [u8]) -> Result<()> + Sync),
    ) -> Result<()> {
        let piece = file_piece(self.bytes);
        let own = piece / self.size * self.size;
        let shares = workers.threads().min((self.scratch.len() / piece).max(1));
        let failed: Mutex<Option<tonnage_core::Error>> = Mutex::new(None);
        let thread_scratch = &mut self.scratch[..shares * own];
        for_each_part(workers, thread_scratch, shares, &|i| i * own, &|share, scratch| {
            for number in count * share / shares..count * (share + 1) / shares {
                if let Err(error) = one(number, scratch) {
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    return;
                }
            }
        })?;
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

/// The same values in a file, which is read as they are needed; as they are, where they are in one or are one number.
pub fn store_in_file(array: &Array, mark: Mark) -> Result<Array> {
    file_value(&[array], mark, |_, mut inputs| Ok(inputs.swap_remove(0)))
}

/// What a value in a file is after an update, in a place of its own: holders of the old value still have it.
pub fn update_in_file(
    op: &'static OpDef,
    old: &Array,
    values: &[&Array],
    mark: Mark,
) -> Result<Array> {
    let shape = old.ty().shape;
    let inputs: SmallVec<[&Array; 3]> =
        std::iter::once(old).chain(values.iter().copied()).collect();
    file_value(&inputs, mark, |builder, mut inputs| match *op == state::assign::ASSIGN {
        true => builder.apply(&BROADCAST_TO, vec![inputs.swap_remove(1)], Attrs::Shape(shape)),
        false => builder.apply(state::pure(op), inputs, Attrs::None),
    })
}

fn file_value(
    inputs: &[&Array],
    mark: Mark,
    make: impl FnOnce(&mut Builder, Vec<Value>) -> Result<Value>,
) -> Result<Array> {
    let mut builder = Builder::new();
    builder.mark(mark);
    let values = inputs.iter().map(|array| builder.input(array.ty(), Kind::Input, None)).collect();
    let made = make(&mut builder, values)?;
    let attrs = as_it_is(made.ty().dtype);
    let stored = builder.apply(&STORE, vec![made], attrs)?;
    let target = target();
    let graph = Arc::new(lower(&builder.finish(&[stored])?, &*target)?);
    let mut specs = Specs::default();
    let arrays: Vec<Array> = inputs.iter().map(|array| (*array).clone()).collect();
    let all: Vec<_> = arrays.iter().map(|array| specs.of(array, false)).collect();
    let plan = plan_once(&graph, &all, PlanOptions::new(target), &arrays)?;
    // Nothing in it draws: the program's own random numbers are the same whether a value is stored in a file or not.
    let (made, _) = execute_with(&plan, &arrays, ([0; 2], specs.given()), mark)?;
    let made = made.into_iter().next().ok_or_else(missing)?;
    match made.as_recipe() {
        Some(_) => Ok(made),
        None => Err(ErrorKind::BadGraph { what: "a value that stays in memory".into() }.into()),
    }
}
