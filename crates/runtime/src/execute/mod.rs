//! Running a plan: nothing is obtained but what the plan names, and *used* is recorded on its own.
//!
//! `frame` is one run of one graph (a call, or one iteration of a body). It is composed of parts with one job each:
//! `places` (where values lie), `sizes` (which the data decided), `used` (what was lent), `generators` (what random ops
//! draw and a call brings), `stop_points` (where it may stop), `state_file` (states of loops that wait in files),
//! `file_values` (values that outlive the call in files).
//!
//! `replay` launches a call again as one that the device recorded. `step` runs one step of it (`kernel`: one that is a kernel; `dynamic`: what the plan left open of one); `region` runs
//! branches, `looping` loops, and `loop_backward` their backward passes; `transfer` hands values to the disk lane, and `network` runs
//! transfers between ranks beside the kernels. They
//! take the parts that they need, and say what is to run on which byte ranges; `bytes` copies, and reads and writes the few numbers that
//! say what runs next. The device runs it ([`Backend`]): nothing here sees a slice or calls a kernel.

mod alone;
mod bytes;
mod dynamic;
mod file_values;
mod frame;
mod generators;
mod headroom;
mod kernel;
mod loop_backward;
mod looping;
mod network;
mod places;
mod recipe_inputs;
mod region;
mod replay;
mod sizes;
mod state_file;
mod step;
mod stop_points;
mod transfer;
mod used;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::bytes::Bytes;
use tonnage_core::emit::Mark;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::graph::{Builder, Graph};
use tonnage_core::layout::Layout;
use tonnage_core::row::OpDef;
use tonnage_core::{Emit, Kind, ValueId};
use tonnage_plan::{At, InputSpec, OutputPlan, Plan, PlanOptions, lower};

use crate::arena::Arena;
use crate::array::{Array, owner};
use crate::backend::{Backend, HostStepPolicy, refused_on_host};
use crate::buffer::Buffer;
use crate::eager::{Arg, Args, Arrays};
use crate::interrupt::{self, Stop};
use crate::ledger::{Ledger, Owner};
use crate::lend::{ByteRange, Lender};
use crate::placement::{all_beside, ledger_of};
use crate::pool::{self, pool};
use crate::random::RunKey;
use crate::spill::{DiskLane, SpillFile};
use crate::storage::{Pinned, PinnedMut, Storage};
use crate::ticks::Ticks;

pub use file_values::{store_in_file, update_in_file};
pub use headroom::{Headroom, plan_once};
pub use recipe_inputs::{InputGenerators, Specs};

use file_values::FileValues;
use frame::{ExecutionFrame, Lanes};
use generators::Generators;
use network::NetworkLane;
use replay::{CallFigures, CallSite, NextRun, Replays};
use stop_points::StopPoints;
use transfer::{HostSpill, SpillLane};

/// What a run took, as the executor saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// The bytes that kernels were lent at any time, with the inputs and the small results: what the call needs.
    pub used: Bytes,
    /// The most of the arena that was lent and alive at the same time. Where it is less than the arena, its packing
    /// has gaps, or a branch or data decided.
    pub at_once: Bytes,
    /// What was obtained from the ledger: the arena and the small results.
    pub obtained: Bytes,
    /// Iterations of loops that gradients recomputed.
    pub recomputed_iterations: u64,
    /// What was written to a file.
    pub spilled: Bytes,
}

/// What is known of a tensor for planning; `seen` are storages that were counted already.
pub fn spec(array: &Array, donated: bool, seen: &mut Vec<*const Storage>) -> InputSpec {
    if let Some(recipe) = array.as_recipe() {
        return InputSpec::Recipe(recipe);
    }
    let storage = std::ptr::from_ref(array.storage());
    let bytes = match seen.contains(&storage) {
        true => Bytes::ZERO,
        false => array.storage().reserved(),
    };
    seen.push(storage);
    InputSpec::Bytes { layout: array.layout().clone(), bytes, donated }
}

/// Runs a plan. `inputs` are what it was planned for, to the number; `key` makes its random numbers.
pub fn execute(
    plan: &Plan,
    inputs: &[Array],
    key: [u32; 2],
    mark: Mark,
) -> Result<(Arrays, Measured)> {
    execute_with(plan, inputs, (RunKey::Words(key), &InputGenerators::new()), mark)
}

/// Runs a plan that was made for [`Specs`]: the inputs bring what it left open, and lie on one device or nowhere.
pub fn execute_with(
    plan: &Plan,
    inputs: &[Array],
    (key, brought): (RunKey, &InputGenerators),
    mark: Mark,
) -> Result<(Arrays, Measured)> {
    let ledger = ledger_of("function", inputs.iter())?;
    let own = |kind| owner(Mark { kind, ..mark }, "function");
    if !ledger.is_host()
        && let HostStepPolicy::Refuse = HostStepPolicy::current()
        && let Some(op) = plan.host_step()
    {
        return Err(refused_on_host(op, ledger.device()));
    }
    // First of all: a disk without room is an error before anything has happened.
    let spill = match (plan.disk.is_zero(), plan.host_spill.is_zero()) {
        (true, true) => None,
        (false, _) => Some(SpillPlace::File(SpillFile::create(plan.disk)?)),
        (true, false) => {
            let own = owner(Mark { kind: Kind::Staging, ..mark }, "spilled");
            let spill = HostSpill::obtain(ledger.backend(), plan.host_spill, own)?;
            Some(SpillPlace::Host(Box::new(spill)))
        }
    };
    let file_values = FileValues::reserve(plan)?;
    let brought = file_values.behind(brought, plan);
    let drew = AtomicBool::new(false);
    let generators = Generators::new(key, &brought, &drew);
    // What is pinned stays when room has to be made for the arena.
    let mut pins = CallPins::new(plan, inputs, &plan.written, &ledger, mark)?;
    let mut arena = Arena::obtain(&ledger, plan.arena, own(Kind::Activation))?;
    let mut results: SmallVec<[Buffer; 2]> = SmallVec::new();
    for output in &plan.outputs {
        results.push(match output {
            OutputPlan::Own { bytes, .. } => Buffer::obtain(&ledger, *bytes, own(Kind::Output))?,
            _ => Buffer::default(),
        });
    }
    let obtained = arena.reserved() + results.iter().map(Buffer::reserved).sum();
    let (measured, decided) = {
        let backend = ledger.backend();
        let replays = match ledger.is_recording() {
            true => None,
            false => Replays::of(plan, backend),
        };
        let mut recorded = None;
        let mut blocks = CallBlocks { arena: &mut arena, pins: &mut pins, results: &mut results };
        if let Some(replays) = replays {
            let (lender, frame) = blocks.lend(plan, backend, generators)?;
            let site = CallSite::of(&lender, &brought);
            recorded = match replays.next(&site) {
                NextRun::Replay(recorded) => Some(recorded),
                NextRun::Record => replays.record(site, frame, lender),
                NextRun::Steps => None,
            };
        }
        let (mut lender, mut frame) = blocks.lend(plan, backend, generators)?;
        frame.file_values = file_values;
        frame.ticks = ledger.is_recording().then(|| Ticks::begin(plan.steps.len(), backend));
        let ran = match &recorded {
            Some(recorded) => recorded.launch(backend).map(|figures| (figures, Bytes::ZERO)),
            None => {
                let ran = beside_lanes(&mut frame, &mut lender, spill);
                ran.map(|spilled| (CallFigures::of(&frame), spilled))
            }
        };
        // Whatever runs late has run when the call returns, and its error is the call's.
        let waited = backend.wait();
        let ran = ran.and_then(|ran| waited.map(|()| ran));
        // What was lent lies in one block, which is rounded as every block is.
        let top = plan.inputs + plan.own_outputs();
        let used = |touched: Bytes| top + ledger.block(touched);
        if let Some(ticks) = frame.ticks.take() {
            let used = ran.as_ref().ok().map(|(figures, _)| used(figures.touched));
            ledger.record_call(plan, ticks, used);
        }
        let (CallFigures { touched, at_once, recomputed_iterations }, spilled) = ran?;
        let (used, at_once) = (used(touched), ledger.block(at_once));
        (
            Measured { used, at_once, obtained, recomputed_iterations, spilled },
            frame.places.into_decided(),
        )
    };
    drop(pins);
    let made = collect(plan, inputs, arena, results, &decided, generators, mark)?;
    Ok((made, measured))
}

/// The memory of a call.
struct CallBlocks<'c, 'a> {
    arena: &'c mut Arena,
    pins: &'c mut CallPins<'a>,
    results: &'c mut [Buffer],
}

impl CallBlocks<'_, '_> {
    /// Lends all of it to a frame that has not begun.
    fn lend<'c, 'p>(
        &'c mut self,
        plan: &'p Plan,
        backend: &'c dyn Backend,
        generators: Generators<'p>,
    ) -> Result<(Lender<'c>, ExecutionFrame<'p>)> {
        let mut lender = Lender::new(backend);
        let base = lender.add(self.arena.buffer_mut());
        let arena = ByteRange { base, offset: 0, len: plan.arena.as_usize(), align: 1 };
        let given = self.pins.lend(&mut lender)?;
        let mut outputs: SmallVec<[ByteRange; 4]> = SmallVec::new();
        for buffer in self.results.iter_mut() {
            let len = buffer.len();
            outputs.push(ByteRange { base: lender.add(buffer), offset: 0, len, align: 1 });
        }
        Ok((lender, ExecutionFrame::new(plan, arena, given, outputs, generators)))
    }
}

/// Where a call's values wait that it spills, before it runs.
enum SpillPlace<'a> {
    File(SpillFile),
    Host(Box<HostSpill<'a>>),
}

/// Runs a frame beside the lanes that its plan has, whose threads end with it; what was spilled.
fn beside_lanes<'p, 'a>(
    frame: &mut ExecutionFrame<'p>,
    lender: &mut Lender<'a>,
    spill: Option<SpillPlace<'a>>,
) -> Result<Bytes> {
    let plan = frame.places.plan();
    let has_network = plan.steps.iter().any(|step| step.in_flight);
    if spill.is_none() && !has_network {
        match alone::runs_alone(plan, pool()) {
            true => pool::alone(|| frame.run(lender, Lanes::default(), true)),
            false => watched(frame, |frame| frame.run(lender, Lanes::default(), true)),
        }?;
        return Ok(frame.states.written());
    }
    std::thread::scope(|scope| {
        let mut spill = match spill {
            Some(SpillPlace::File(file)) => Some(SpillLane::Disk(DiskLane::start(scope, file)?)),
            Some(SpillPlace::Host(spill)) => Some(SpillLane::Host(spill)),
            None => None,
        };
        let backend = lender.backend();
        let mut network = match has_network {
            true => Some(NetworkLane::start(scope, backend)?),
            false => None,
        };
        let lanes = Lanes { spill: spill.as_mut(), network: network.as_mut() };
        watched(frame, |frame| frame.run(lender, lanes, true))?;
        Ok(spill.map_or(Bytes::ZERO, |lane| lane.written()) + frame.states.written())
    })
}

/// Runs a frame in the pool, or here where it calls back, from where it goes there for what lies between; it stops where the host asks for that.
fn watched<'p>(
    frame: &mut ExecutionFrame<'p>,
    go: impl FnOnce(&mut ExecutionFrame<'p>) -> Result<()> + Send,
) -> Result<()> {
    let stop = Stop::of_call();
    frame.stop = StopPoints::new(stop.clone());
    match frame.places.plan().calls_host {
        true => go(frame),
        false => in_pool(stop, || go(frame)),
    }
}

/// Runs in the pool, while this thread asks whether to stop.
fn in_pool(stop: Option<Stop>, go: impl FnOnce() -> Result<()> + Send) -> Result<()> {
    let Some(stop) = stop else { return pool().inside(go) };
    let ran = pool().inside_watched(go, || stop.leave(), interrupt::EVERY, || stop.ask());
    stop.come_back();
    ran.unwrap_or_else(|| Err(missing()))
}

/// The inputs' bytes, pinned: each storage once, to be written if any of its inputs is.
struct CallPins<'a> {
    read: SmallVec<[Option<Pinned<'a>>; 4]>,
    write: SmallVec<[Option<PinnedMut<'a>>; 4]>,
    /// For each input, the one that pinned its storage.
    owner: SmallVec<[usize; 8]>,
}

impl<'a> CallPins<'a> {
    fn new(
        plan: &Plan,
        inputs: &'a [Array],
        written: &[bool],
        ledger: &Ledger,
        mark: Mark,
    ) -> Result<CallPins<'a>> {
        let mut pins =
            CallPins { read: SmallVec::new(), write: SmallVec::new(), owner: SmallVec::new() };
        for (i, array) in inputs.iter().enumerate() {
            let first = inputs[..i].iter().position(|other| other.shares_bytes(array)).unwrap_or(i);
            pins.owner.push(first);
            let (mut read, mut write) = (None, None);
            if first == i && array.as_recipe().is_none() {
                let any = inputs.iter().zip(written).any(|(a, w)| *w && a.shares_bytes(array));
                let own = owner(mark, "function");
                match any {
                    true => write = Some(array.storage().pin_mut(ledger, own)?),
                    false => read = Some(array.storage().pin(ledger, own)?),
                }
            }
            pins.read.push(read);
            pins.write.push(write);
        }
        debug_assert_eq!(inputs.len(), plan.graph.inputs.len());
        Ok(pins)
    }

    fn lend<'p>(&'p mut self, lender: &mut Lender<'p>) -> Result<SmallVec<[ByteRange; 8]>> {
        let mut bases: SmallVec<[ByteRange; 8]> = SmallVec::new();
        for (read, write) in self.read.iter().zip(&mut self.write) {
            bases.push(match (read, write) {
                (Some(pin), _) => {
                    let buffer = pin.buffer()?;
                    ByteRange { base: lender.add(buffer), offset: 0, len: buffer.len(), align: 1 }
                }
                (None, Some(pin)) => {
                    let buffer = pin.buffer_mut()?;
                    let len = buffer.len();
                    ByteRange { base: lender.add(buffer), offset: 0, len, align: 1 }
                }
                (None, None) => ByteRange { base: 0, offset: 0, len: 0, align: 1 },
            });
        }
        Ok(self.owner.iter().map(|i| bases[*i]).collect())
    }
}

/// The results, each where the plan says that it lives, and as large as the data decided.
fn collect(
    plan: &Plan,
    inputs: &[Array],
    arena: Arena,
    results: SmallVec<[Buffer; 2]>,
    decided: &HashMap<ValueId, Layout>,
    generators: Generators,
    mark: Mark,
) -> Result<Arrays> {
    let retained: Vec<(std::ops::Range<usize>, Owner)> = plan
        .outputs
        .iter()
        .filter_map(|output| match output {
            OutputPlan::Buffer { buffer, .. } => {
                let planned = &plan.buffers[buffer.0];
                let start = planned.offset.as_usize();
                let own = owner(Mark { kind: Kind::Output, ..mark }, "function");
                Some((start..start + planned.bytes.as_usize(), own))
            }
            _ => None,
        })
        .collect();
    let mut parts = match retained.is_empty() {
        true => {
            drop(arena);
            Vec::new()
        }
        false => arena.into_parts(&retained)?,
    }
    .into_iter();
    let ids = &plan.graph.outputs;
    let mut made = Arrays::new();
    for (k, ((output, own), id)) in plan.outputs.iter().zip(results).zip(ids).enumerate() {
        let dtype = plan.graph.ty(*id).dtype;
        // A value that was copied to where it is returned lies close together there.
        let is_copy = match (plan.place(*id).map(|p| &p.at), output) {
            (Some(At::Buffer(b)), OutputPlan::Buffer { buffer, .. }) => b != buffer,
            (Some(At::Output(at)), OutputPlan::Own { .. }) => *at != k,
            (Some(At::Input(i)), OutputPlan::Input { input, .. }) => i != input,
            _ => true,
        };
        let real = |planned: &Layout| match decided.get(id) {
            None => planned.clone(),
            Some(layout) if is_copy => Layout::contiguous(layout.sizes.clone()),
            Some(layout) => layout.clone(),
        };
        made.push(match output {
            OutputPlan::Own { layout, .. } => Array::from_buffer(own, dtype, real(layout)),
            OutputPlan::Buffer { layout, .. } => {
                let part = parts.next().ok_or_else(missing)?;
                Array::from_buffer(part, dtype, real(layout))
            }
            // A cast in place leaves another dtype in the input's bytes.
            OutputPlan::Input { input, layout } => inputs[*input].view_as(dtype, real(layout)),
            OutputPlan::Recipe(recipe) => Array::from_recipe(generators.bind_recipe(recipe)),
            OutputPlan::Given => return Err(missing()),
        });
    }
    Ok(made)
}

pub(crate) fn missing() -> tonnage_core::Error {
    ErrorKind::BadGraph { what: "a result that is nowhere".into() }.into()
}

/// An op with regions, eagerly: a graph of one node, planned and run.
pub(crate) fn region_op(
    op: &'static OpDef,
    args: Args,
    attrs: &Attrs,
    regions: &[Arc<Graph>],
    aux: bool,
    mark: Mark,
) -> Result<Arrays> {
    let mut builder = Builder::new();
    builder.mark(mark);
    let mut inputs = Vec::new();
    let (mut arrays, mut owned): (Vec<Array>, Vec<bool>) = (Vec::new(), Vec::new());
    for arg in args {
        inputs.push(builder.input(arg.array().ty(), Kind::Input, None));
        owned.push(matches!(arg, Arg::Owned(_)));
        arrays.push(match arg {
            Arg::Owned(array) => array,
            Arg::Borrowed(array) => array.clone(),
        });
    }
    let made = builder.emit(op, inputs, attrs.clone(), regions.to_vec(), aux)?;
    let place = ledger_of(op.name, arrays.iter())?;
    all_beside(op.name, &place, &mut arrays, mark.source)?;
    let target = place.backend().target();
    let graph = Arc::new(lower(&builder.finish(&made)?, &*target)?);
    let mut seen = Vec::new();
    // What was moved in, and nobody else holds, may be overwritten.
    let specs: Vec<InputSpec> = arrays
        .iter()
        .zip(&owned)
        .map(|(array, owned)| spec(array, *owned && array.is_sole(), &mut seen))
        .collect();
    let planned = plan_once(&graph, &specs, PlanOptions::new(target), &arrays)?;
    Ok(execute(&planned, &arrays, crate::random::next_key(), mark)?.0)
}
