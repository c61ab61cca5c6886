//! Which steps run on the network lane, and which step awaits each.
//!
//! The invariant: from the step that begins a transfer to the one that awaits it no step touches what the transfer writes, or writes what it reads; those
//! bytes and its bucket live as long, and no more lives at once than is allowed.

use smallvec::SmallVec;
use tonnage_core::Bytes;
use tonnage_core::graph::Graph;

use super::{is_barrier, is_transfer};
use crate::place::{StorageKey, store};
use crate::plan::{BufferId, BufferPlan, Placed, Run, Space, Step, StepMemory};

/// A transfer that runs beside the steps behind it.
pub(crate) struct Flight {
    /// The step that begins it.
    pub begins: usize,
    /// The step that awaits it, before it does anything; behind the last step where none does.
    pub awaited: usize,
    /// Buffers that live until then.
    pub buffers: SmallVec<[BufferId; 4]>,
}

/// All of them, in the order in which they begin.
pub(crate) type Flights = Vec<Flight>;

/// What a step reads and writes of memory.
#[derive(Default)]
struct Touched {
    reads: SmallVec<[StorageKey; 4]>,
    writes: SmallVec<[StorageKey; 4]>,
}

impl Touched {
    fn of(step: &Step, places: &[Option<Placed>]) -> Touched {
        let mut touched = Touched::default();
        if let (Run::Nothing, StepMemory::Aliases | StepMemory::Recipe) = (&step.run, step.memory) {
            return touched;
        }
        let key = |id: &tonnage_core::ValueId| {
            places.get(id.index()).and_then(Option::as_ref).and_then(|placed| store(&placed.at))
        };
        touched.reads.extend(step.reads.iter().filter_map(key));
        touched.writes.extend(step.writes.iter().filter_map(key));
        if let Run::Copy { to, .. } = &step.run {
            touched.writes.extend(store(&to.at));
        }
        if let Run::Branch { .. } | Run::Loop(_) | Run::LoopGrad(_) = &step.run {
            // A region may write what belongs to an input.
            touched.writes.extend(touched.reads.clone());
        }
        touched
    }

    fn crosses(&self, other: &Touched) -> bool {
        let any = |a: &[StorageKey], b: &[StorageKey]| a.iter().any(|key| b.contains(key));
        any(&self.writes, &other.reads)
            || any(&self.writes, &other.writes)
            || any(&self.reads, &other.writes)
    }
}

/// The transfers of steps that run beside others, as long as no more than `most` lives at once.
pub(crate) fn find(
    graph: &Graph,
    places: &[Option<Placed>],
    steps: &[Step],
    buffers: &[BufferPlan],
    most: Bytes,
) -> Flights {
    let mut flights = Flights::new();
    let begins = |step: &Step| {
        let node = graph.nodes.get(step.node);
        matches!(step.run, Run::Kernel(Some(_))) && node.is_some_and(|n| is_transfer(graph, n))
    };
    let touched: Vec<Touched> = steps.iter().map(|step| Touched::of(step, places)).collect();
    let mut live = lives(steps.len(), buffers);
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| begins(step)) {
        let mut held: SmallVec<[BufferId; 4]> = step.scratch.into_iter().collect();
        for key in touched[at].reads.iter().chain(&touched[at].writes) {
            match key {
                StorageKey::Buffer(b) if !held.contains(&BufferId(*b)) => held.push(BufferId(*b)),
                _ => {}
            }
        }
        let ends_step = |later: usize| {
            let node = graph.nodes.get(steps[later].node);
            node.is_some_and(is_barrier)
                || is_other_transfer(graph, &steps[later])
                || touched[later].crosses(&touched[at])
        };
        let mut awaited = at + 1;
        while awaited < steps.len() && !ends_step(awaited) {
            let more: u64 = held.iter().map(|b| &buffers[b.0]).map(|b| after(b, awaited)).sum();
            if live[awaited] + more > most.get() {
                break;
            }
            live[awaited] += more;
            awaited += 1;
        }
        let between = &steps[at + 1..awaited];
        if between.iter().any(|step| !matches!(step.run, Run::Nothing)) {
            flights.push(Flight { begins: at, awaited, buffers: held });
        }
    }
    one_order(flights, steps, &begins)
}

/// Whether a step moves bytes between ranks and cannot do so beside others, since its sizes are not known.
fn is_other_transfer(graph: &Graph, step: &Step) -> bool {
    let world = |node: &tonnage_core::Node| {
        tonnage_ops::world::buckets::world(&node.attrs).is_some_and(|world| world.size() > 1)
    };
    matches!(step.run, Run::Kernel(None)) && graph.nodes.get(step.node).is_some_and(world)
}

/// Transfers keep their order on the lane: one that begins while another is on its way runs there too, and is awaited at once if nothing hides it.
fn one_order(flights: Flights, steps: &[Step], begins: &impl Fn(&Step) -> bool) -> Flights {
    let mut made = Flights::new();
    let mut flights = flights.into_iter().peekable();
    let mut busy = 0;
    for (at, _) in steps.iter().enumerate().filter(|(_, step)| begins(step)) {
        let flight = match flights.next_if(|flight| flight.begins == at) {
            Some(flight) => flight,
            None if at < busy => Flight { begins: at, awaited: at + 1, buffers: SmallVec::new() },
            None => continue,
        };
        busy = busy.max(flight.awaited);
        made.push(flight);
    }
    made
}

/// What lives at every step.
fn lives(steps: usize, buffers: &[BufferPlan]) -> Vec<u64> {
    let mut change = vec![0i64; steps + 2];
    for buffer in buffers.iter().filter(|b| b.space == Space::Memory) {
        change[buffer.first.min(steps)] += buffer.bytes.get() as i64;
        change[buffer.last.min(steps) + 1] -= buffer.bytes.get() as i64;
    }
    let mut now = 0;
    let mut all: Vec<u64> = Vec::with_capacity(steps);
    for change in &change[..steps] {
        now += change;
        all.push(now.max(0) as u64);
    }
    all
}

/// What a buffer takes at a step behind its end.
fn after(buffer: &BufferPlan, step: usize) -> u64 {
    if buffer.last < step { buffer.bytes.get() } else { 0 }
}
