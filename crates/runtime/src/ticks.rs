//! When the steps of a call ended, those inside of its loops and branches too: by the host's clock, or by that of a device that runs late.
//!
//! A device is asked for moments as steps are launched, and how far those lie apart when the call has been waited for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use tonnage_core::{Bytes, Graph, Source, TensorType};

use crate::backend::{Backend, DeviceMoment};

/// Runs of bodies whose steps are told apart at most, in a call: a loop of a million iterations is cut off.
const MOST_RUNS: usize = 1 << 12;

/// A step inside of loops and branches, all its runs in a call together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnerStep {
    /// The op.
    pub op: &'static str,
    /// Its line; nothing for a copy that no line asked for.
    pub source: Option<Source>,
    /// What it makes first.
    pub made: Option<TensorType>,
    /// What one run reads and makes, views and recipes as if they were whole.
    pub bytes: Bytes,
    /// How often it ran.
    pub runs: u64,
    /// Nanoseconds of all runs.
    pub nanoseconds: u64,
}

/// When the steps of a call, or of one run of a body, ended.
#[derive(Debug)]
pub(crate) struct Ticks {
    pub start: Instant,
    begun: Option<DeviceMoment>,
    /// The node of each step, and when it ended.
    ends: Vec<(usize, Tick)>,
    /// Runs of bodies, each with its graph.
    inside: Vec<(Arc<Graph>, Ticks)>,
}

#[derive(Debug)]
enum Tick {
    /// Nanoseconds from the start.
    Host(u64),
    Device(DeviceMoment),
}

impl Ticks {
    /// For a run of that many steps that begins now.
    pub fn begin(steps: usize, backend: &dyn Backend) -> Ticks {
        let (ends, inside) = (Vec::with_capacity(steps), Vec::new());
        Ticks { start: Instant::now(), begun: backend.moment(), ends, inside }
    }

    /// A step of that node ended, or was launched.
    pub fn step(&mut self, node: usize, backend: &dyn Backend) {
        let tick = match backend.moment() {
            Some(moment) => Tick::Device(moment),
            None => Tick::Host(self.start.elapsed().as_nanos() as u64),
        };
        self.ends.push((node, tick));
    }

    /// A run of a body ended.
    pub fn ran(&mut self, graph: &Arc<Graph>, ticks: Ticks) {
        if self.inside.len() < MOST_RUNS {
            self.inside.push((graph.clone(), ticks));
        }
    }

    /// When each step ended, in nanoseconds from the start. What a device has not come to ended when what was before it did.
    pub fn ends(&self) -> Vec<u64> {
        let mut last = 0;
        let of = |(_, tick): &(usize, Tick)| {
            let at = match (tick, &self.begun) {
                (Tick::Host(at), _) => Some(*at),
                (Tick::Device(moment), Some(begun)) => {
                    moment.since(begun).map(|since| since.as_nanos() as u64)
                }
                (Tick::Device(_), None) => None,
            };
            last = at.unwrap_or(last).max(last);
            last
        };
        self.ends.iter().map(of).collect()
    }

    /// The steps inside of loops and branches; those that took longest first.
    pub fn inner_steps(&self) -> Vec<InnerStep> {
        let mut all = BTreeMap::new();
        self.add_inner(&mut all);
        let mut all: Vec<InnerStep> = all.into_values().collect();
        all.sort_by_key(|step| std::cmp::Reverse(step.nanoseconds));
        all
    }

    fn add_inner(&self, all: &mut BTreeMap<(usize, usize), InnerStep>) {
        for (graph, run) in &self.inside {
            let mut before = 0;
            for (at, (end, (node, _))) in run.ends().into_iter().zip(&run.ends).enumerate() {
                let key = (Arc::as_ptr(graph).addr(), at);
                let step = all.entry(key).or_insert_with(|| inner_step(graph, *node));
                step.runs += 1;
                step.nanoseconds += end - before;
                before = end;
            }
            run.add_inner(all);
        }
    }
}

/// A step of a node that has not run.
fn inner_step(graph: &Graph, node: usize) -> InnerStep {
    let node = graph.nodes.get(node);
    let ids = node.into_iter().flat_map(|node| node.inputs.iter().chain(&node.outputs));
    InnerStep {
        op: node.map_or("copy", |node| node.op.name),
        source: node.map(|node| node.source),
        made: node.and_then(|node| node.outputs.first()).map(|id| graph.ty(*id).clone()),
        bytes: ids.filter_map(|id| graph.ty(*id).bytes("step").ok()).sum(),
        runs: 0,
        nanoseconds: 0,
    }
}
