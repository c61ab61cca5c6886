//! One step: the byte ranges that it takes, noted as lent, and its launch.

use smallvec::SmallVec;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::layout::Layout;
use tonnage_core::recipe::Generator;
use tonnage_core::row::Cost;
use tonnage_core::shape::Sizes;
use tonnage_core::tile::{Close, Form};
use tonnage_core::{Node, ValueId};
use tonnage_plan::{BufferId, Placed, Plan, Run, Step, TileRead, TileRun};

use super::dynamic;
use super::file_values::{rows_in_file, write_file_value};
use super::frame::ExecutionFrame;
use super::generators::Generators;
use super::kernel::kernel;
use super::loop_backward::while_grad;
use super::looping::while_loop;
use super::places::Places;
use super::region::branch;
use crate::backend::{ReadSource, ReadSources, Reads, TileLaunch, load_layouts};
use crate::lend::{ByteRange, Lender};

/// Runs a step, unless it is a transfer: those need a disk lane.
pub fn run_step<'p>(
    frame: &mut ExecutionFrame<'p>,
    lender: &mut Lender,
    step: &'p Step,
) -> Result<()> {
    match &step.run {
        Run::Nothing if step.dynamic => dynamic_view(frame, step),
        Run::Nothing => Ok(()),
        Run::Tile(run) if step.dynamic => dynamic_tile(frame, lender, step, run),
        Run::Tile(run) => tile(frame, lender, step, run, &[]),
        Run::Copy { run, from, to } => copy(frame, lender, step, run, *from, to),
        Run::Kernel(call) => kernel(frame, lender, step, call.as_deref()),
        Run::ToFile { run, file_value } => write_file_value(frame, lender, step, run, *file_value),
        Run::RowsToFile { file_value } => rows_in_file(frame, lender, step, *file_value),
        Run::Branch { key, branches } => branch(frame, lender, step, *key, branches),
        Run::Loop(plan) => while_loop(frame, lender, step, plan),
        Run::LoopGrad(plan) => while_grad(frame, lender, step, plan),
        Run::Transfer(_) => {
            let what = "a step spills where there is no disk lane".into();
            Err(ErrorKind::BadGraph { what }.into())
        }
    }
}

/// The node that a step runs.
pub fn node_of<'p>(plan: &'p Plan, step: &Step) -> Result<&'p Node> {
    plan.graph
        .nodes
        .get(step.node)
        .ok_or_else(|| ErrorKind::BadGraph { what: "a step without a node".into() }.into())
}

/// A view of something whose size the data decided.
fn dynamic_view(frame: &mut ExecutionFrame, step: &Step) -> Result<()> {
    let node = node_of(frame.places.plan(), step)?;
    dynamic::view(&mut frame.places, &frame.sizes, node)
}

/// A tile program over sizes that the data decided.
fn dynamic_tile(
    frame: &mut ExecutionFrame,
    lender: &mut Lender,
    step: &Step,
    planned: &TileRun,
) -> Result<()> {
    let node = node_of(frame.places.plan(), step)?;
    let anew = dynamic::tile(&frame.places, &frame.sizes, node, step, planned)?;
    let Some((run, sizes)) = anew else { return tile(frame, lender, step, planned, &[]) };
    tile(frame, lender, step, &run, &sizes)?;
    for (id, sizes) in step.writes.iter().zip(sizes) {
        frame.places.decide(*id, Layout::contiguous(sizes));
    }
    Ok(())
}

/// A tile program; `decided` are the sizes of what it makes, where the data decided them.
fn tile(
    frame: &mut ExecutionFrame,
    lender: &mut Lender,
    step: &Step,
    run: &TileRun,
    decided: &[Sizes],
) -> Result<()> {
    let mut writes: SmallVec<[ByteRange; 2]> = SmallVec::new();
    for (k, id) in step.writes.iter().enumerate() {
        let byte_range = match decided.get(k) {
            Some(sizes) => frame.places.written(*id, sizes)?,
            // A store is as large as what it runs over, which may be less than there is room for.
            None => match (&run.program.close, run.program.stores.get(k)) {
                (Close::Store, Some((_, Form::Elements(_)))) => {
                    frame.places.written(*id, &run.domain)?
                }
                _ => frame.places.written_as_planned(*id)?,
            },
        };
        writes.push(byte_range);
    }
    let cost = match frame.places.plan().graph.nodes.get(step.node) {
        Some(_) => run.cost,
        None => Cost::default(),
    };
    run_tile(frame, lender, run, &step.reads, writes, step.scratch, cost)
}

/// A last copy, of a result that has to lie elsewhere.
fn copy(
    frame: &mut ExecutionFrame,
    lender: &mut Lender,
    step: &Step,
    run: &TileRun,
    from: ValueId,
    to: &Placed,
) -> Result<()> {
    let dtype = frame.places.ty(from).dtype;
    let layout = frame.places.layout(from)?;
    let whole = frame.places.whole(&to.at, from)?;
    let size = dtype.size();
    let writes = SmallVec::from_iter([whole.part(0, layout.count() * size, size)?]);
    if !step.dynamic {
        return run_tile(frame, lender, run, &[from], writes, None, run.cost);
    }
    let anew = dynamic::copy(run, &layout);
    run_tile(frame, lender, &anew, &[from], writes, None, anew.cost)
}

/// Runs a tile program that reads these values, and notes what it is lent.
pub fn run_tile(
    frame: &mut ExecutionFrame,
    lender: &mut Lender,
    run: &TileRun,
    inputs: &[ValueId],
    mut writes: SmallVec<[ByteRange; 2]>,
    scratch: Option<BufferId>,
    cost: Cost,
) -> Result<()> {
    let outputs = writes.len();
    for byte_range in &writes {
        frame.used.lent(byte_range);
    }
    if let Some(byte_range) = frame.places.scratch(scratch) {
        frame.used.lent(&byte_range);
        writes.push(byte_range);
    }
    let (mut reads, mut loads) = (Reads::default(), ReadSources::default());
    let to_fill = (&mut reads, &mut loads);
    add_loads(&frame.places, &frame.generators, run, inputs, &writes[..outputs], to_fill)?;
    let launch = TileLaunch {
        program: &run.program,
        domain: &run.domain,
        loads: &loads,
        layouts: load_layouts(run).collect(),
        outputs,
        cost,
        stop: frame.stop.inside_step(),
    };
    let backend = lender.backend();
    backend.tile(&launch, lender.lend(&reads, &writes)?)
}

/// Adds where the loads of a program come from to `from`, and byte ranges that are to be lent for them to `reads`.
pub fn add_loads(
    places: &Places,
    generators: &Generators,
    run: &TileRun,
    inputs: &[ValueId],
    outputs: &[ByteRange],
    (reads, from): (&mut Reads, &mut ReadSources),
) -> Result<()> {
    for (read, form) in run.reads.iter().zip(&run.program.loads) {
        from.push(match read {
            TileRead::Generator(generator, _) => ReadSource::Generator(generators.bind(generator)),
            TileRead::Input(i, _) => {
                let mut byte_range = places.read(inputs[*i])?;
                if *form == Form::Bits {
                    byte_range.align = 1;
                }
                ReadSource::of(byte_range, outputs, reads)
            }
        });
    }
    Ok(())
}

/// Has the system begin to read what the next step reads from a file that reads one as it goes, from step `from`
/// on: between two layers too the disk is busy while this machine computes.
pub fn read_ahead(plan: &Plan, generators: &Generators, from: usize) {
    /// Bytes from the file's start on: about a piece.
    const FIRST: usize = 8 << 20;
    let mut later = plan.steps[from..].iter();
    let Some(step) = later.find(|step| !step.streamed.is_empty()) else { return };
    for streamed in &step.streamed {
        let Some((generator, layout)) = streamed.recipe.as_stored() else { continue };
        if let Generator::Stored { elements, dtype } = generators.bind(generator) {
            elements.0.ahead(layout.offset as u64, FIRST / dtype.size());
        }
    }
}
