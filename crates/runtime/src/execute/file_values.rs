//! Values that go to files and outlive the call: new values of variables that live there.
//!
//! Decision: `docs/decisions/variables-in-files.md`.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::Kind;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Mark, Value};
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::graph::Builder;
use tonnage_core::recipe::{Generator, Stored};
use tonnage_core::row::OpDef;
use tonnage_ops::shape::broadcast_to::BROADCAST_TO;
use tonnage_ops::state;
use tonnage_ops::tile::fused_store::{STORE, as_it_is};
use tonnage_plan::{FileValuePlan, Plan, PlanOptions, Step, TileRun, lower};

use super::frame::ExecutionFrame;
use super::recipe_inputs::{InputGenerators, Specs};
use super::step::{add_loads, node_of};
use super::{execute_with, missing, plan_once};
use crate::array::Array;
use crate::backend::{KernelInput, ReadSource, ReadSources, Reads, RowsToFile, TileToFile};
use crate::lend::Lender;
use crate::placement::{all_beside, ledger_of};
use crate::random::RunKey;
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

/// Makes a value a piece at a time, each thread its own pieces: while one writes, the others compute.
pub fn write_file_value(
    frame: &mut ExecutionFrame,
    lender: &mut Lender,
    step: &Step,
    run: &TileRun,
    file_value: usize,
) -> Result<()> {
    let to = frame.file_values.place(file_value)?;
    let scratch = frame.places.scratch(step.scratch);
    let Some(scratch) = scratch else { return Ok(()) }; // nothing to write
    frame.used.lent(&scratch);
    let (mut reads, mut loads) = (Reads::default(), ReadSources::default());
    let to_fill = (&mut reads, &mut loads);
    add_loads(&frame.places, &frame.generators, run, &step.reads, &[], to_fill)?;
    let planned = &frame.places.plan().file_values[file_value];
    let launch = TileToFile { run, loads: &loads, planned, to };
    let backend = lender.backend();
    backend.tile_to_file(&launch, lender.lend(&reads, &[scratch])?)
}

/// Puts rows into a table in a file, and what that is then into another place, a piece at a time.
pub fn rows_in_file(
    frame: &mut ExecutionFrame,
    lender: &mut Lender,
    step: &Step,
    file_value: usize,
) -> Result<()> {
    let node = node_of(frame.places.plan(), step)?;
    let to = frame.file_values.place(file_value)?;
    let table = step.streamed.first().ok_or_else(missing)?.recipe.clone();
    let (generator, _) = table.as_stored().ok_or_else(missing)?;
    let Generator::Stored { elements: old, dtype } = frame.generators.bind(generator) else {
        return Err(missing());
    };
    let scratch = frame.places.scratch(step.scratch);
    let Some(scratch) = scratch else { return Ok(()) }; // nothing to write
    frame.used.lent(&scratch);
    let mut reads = Reads::default();
    let mut inputs = SmallVec::new();
    for id in &node.inputs[1..] {
        let byte_range = frame.places.read(*id)?;
        let from = ReadSource::of(byte_range, &[], &mut reads);
        let (dtype, layout) = (frame.places.ty(*id).dtype, frame.places.layout(*id)?);
        inputs.push(KernelInput { dtype, layout, from });
    }
    let (op, sizes) = (node.op, table.sizes.as_slice());
    let launch = RowsToFile { op, sizes, dtype, old: &old, inputs, to };
    let backend = lender.backend();
    backend.rows_to_file(launch, lender.lend(&reads, &[scratch])?)
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
    let mut arrays: Vec<Array> = inputs.iter().map(|array| (*array).clone()).collect();
    let place = ledger_of("file", arrays.iter())?;
    all_beside("file", &place, &mut arrays, mark.source)?;
    let target = place.backend().target();
    let graph = Arc::new(lower(&builder.finish(&[stored])?, &*target)?);
    let mut specs = Specs::default();
    let all: Vec<_> = arrays.iter().map(|array| specs.of(array, false)).collect();
    let plan = plan_once(&graph, &all, PlanOptions::new(target), &arrays)?;
    // Nothing in it draws: the program's own random numbers are the same whether a value is stored in a file or not.
    let (made, _) = execute_with(&plan, &arrays, (RunKey::Words([0; 2]), specs.given()), mark)?;
    let made = made.into_iter().next().ok_or_else(missing)?;
    match made.as_recipe() {
        Some(_) => Ok(made),
        None => Err(ErrorKind::BadGraph { what: "a value that stays in memory".into() }.into()),
    }
}
