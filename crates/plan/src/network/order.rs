//! The order of nodes beside the network lane.
//!
//! The invariant: the new order takes no more than the one that it was given, by the figure that orders are compared by, and what is allowed ahead.

use std::collections::VecDeque;
use std::sync::Arc;

use tonnage_core::Bytes;
use tonnage_core::graph::Graph;

use super::{is_barrier, is_transfer};
use crate::order::limits::Limits;
use crate::order::pressure::Pressure;
use crate::order::reordered;
use crate::place::InputSpec;
use crate::target::Target;

/// The graph with its nodes in the order in which they run beside the lane. Blocks that are gathered ahead may take so many bytes more at the peak.
pub(crate) fn ordered(
    graph: &Arc<Graph>,
    inputs: &[InputSpec],
    target: &dyn Target,
    ahead: Bytes,
) -> Arc<Graph> {
    let transfers: Vec<bool> = graph.nodes.iter().map(|node| is_transfer(graph, node)).collect();
    let lane = LaneOrder {
        graph,
        pressure: Pressure::of(graph, inputs, target),
        limits: Limits::of(graph),
        transfers,
    };
    let given: Vec<u32> = (0..graph.nodes.len() as u32).collect();
    let most = lane.pressure.peak(&given).bytes;
    let gathered = lane.gathered_ahead(given.clone(), most + ahead.get());
    let made = [lane.deferred(&gathered, most + ahead.get()), gathered];
    let is_right = |order: &&Vec<u32>| {
        debug_assert!(lane.limits.allow(order));
        lane.pressure.peak(order).bytes <= most + ahead.get()
    };
    match made.iter().find(is_right) {
        Some(order) if *order != given => Arc::new(reordered(graph, order)),
        _ => graph.clone(),
    }
}

/// What the largest transfer takes with its bucket: room in which each can be on its way while the one before it is in use.
pub(crate) fn room_ahead(graph: &Graph, target: &dyn Target) -> Bytes {
    let transfers = graph.nodes.iter().filter(|node| is_transfer(graph, node));
    let bytes = transfers.map(|node| {
        let made = graph.ty(node.outputs[0]).bytes(node.op.name).unwrap_or(Bytes::ZERO);
        let bucket = graph.with_call(node, |call| target.scratch(node.op, call, &[]));
        made.rounded() + bucket.rounded()
    });
    bytes.max().filter(|_| target.has_network_lane()).unwrap_or(Bytes::ZERO)
}

/// What is known of the nodes.
struct LaneOrder<'g> {
    graph: &'g Graph,
    pressure: Pressure,
    limits: Limits,
    transfers: Vec<bool>,
}

impl LaneOrder<'_> {
    /// Lets each tensor be gathered of blocks just before the first use of the one that was gathered before it: one ahead.
    fn gathered_ahead(&self, mut order: Vec<u32>, most: u64) -> Vec<u32> {
        let is_gather =
            |n: u32| self.transfers[n as usize] && !self.graph.nodes[n as usize].has_effect();
        let gathers: Vec<u32> = order.iter().copied().filter(|n| is_gather(*n)).collect();
        for pair in gathers.windows(2) {
            let (before, n) = (pair[0], pair[1]);
            let mut place = vec![0; order.len()];
            order.iter().enumerate().for_each(|(at, n)| place[*n as usize] = at);
            let at = place[n as usize];
            let needed = self.limits.before[n as usize].iter().map(|b| place[*b as usize] + 1);
            let first = needed.max().unwrap_or(0);
            let used = self.first_use(&order, place[before as usize]);
            let bytes: u64 = self.made(n);
            let mut live = vec![0; order.len()];
            self.pressure.walk(&order, |at, bytes| live[at] = bytes);
            let mut to = at;
            while to > first.max(used) && live[to - 1] + bytes <= most {
                to -= 1;
            }
            order[to..=at].rotate_right(1);
        }
        order
    }

    /// Bytes that a node makes.
    fn made(&self, n: u32) -> u64 {
        self.pressure.nodes[n as usize].makes.iter().map(|r| self.pressure.size[*r as usize]).sum()
    }

    /// The position of the first node that reads what the node at a position makes.
    fn first_use(&self, order: &[u32], at: usize) -> usize {
        let made = &self.pressure.nodes[order[at] as usize].makes;
        let reads = |n: &u32| {
            let needs = &self.pressure.nodes[*n as usize];
            needs.reads.iter().any(|root| made.contains(root)) && self.runs(*n)
        };
        order[at + 1..].iter().position(reads).map_or(at + 1, |more| at + 1 + more)
    }

    /// Whether a node does anything: a view does not.
    fn runs(&self, n: u32) -> bool {
        use tonnage_core::row::Lower;
        !matches!(self.graph.nodes[n as usize].op.lower, Lower::View(_) | Lower::Recipe(_))
    }

    /// Lets what waits for a transfer run later: when memory asks for it, or when there is nothing else to do.
    fn deferred(&self, order: &[u32], most: u64) -> Vec<u32> {
        let mut run = LaneRun::new(self, order.len());
        let mut queue: VecDeque<u32> = VecDeque::new();
        let mut is_deferred = vec![false; order.len()];
        let mut failing = 0;
        let can_fail = |n: u32| self.graph.nodes[n as usize].can_fail();
        for n in order.iter().copied() {
            let at = n as usize;
            let is_last = is_barrier(&self.graph.nodes[at]);
            while let Some(first) = queue.front().copied()
                && (is_last || run.bytes_with(n) > most)
            {
                queue.pop_front();
                is_deferred[first as usize] = false;
                failing -= usize::from(can_fail(first));
                run.node(first);
            }
            let waits = self.limits.before[at].iter().any(|b| is_deferred[*b as usize])
                || (self.limits.waits[at] && failing > 0)
                || run.touches_flight(n);
            if waits && !is_last {
                is_deferred[at] = true;
                failing += usize::from(can_fail(n));
                queue.push_back(n);
            } else {
                run.node(n);
            }
        }
        queue.into_iter().for_each(|n| run.node(n));
        run.made
    }
}

/// Nodes as they run, with what lives then.
struct LaneRun<'r, 'g> {
    of: &'r LaneOrder<'g>,
    made: Vec<u32>,
    /// Nodes that read each root, or make it, and have not run.
    left: Vec<u32>,
    /// What each root holds.
    holds: Vec<u64>,
    /// Of each root that a transfer makes, and that nobody has awaited, the bucket that lives as long.
    in_flight: Vec<Option<u64>>,
    live: u64,
}

impl<'r, 'g> LaneRun<'r, 'g> {
    fn new(of: &'r LaneOrder<'g>, count: usize) -> LaneRun<'r, 'g> {
        let roots = of.pressure.size.len();
        let mut left = vec![0; roots];
        for needs in &of.pressure.nodes {
            needs.reads.iter().chain(&needs.makes).for_each(|root| left[*root as usize] += 1);
        }
        let (made, in_flight) = (Vec::with_capacity(count), vec![None; roots]);
        LaneRun { of, made, left, holds: vec![0; roots], in_flight, live: 0 }
    }

    /// What its result takes that takes over no other's bytes.
    fn added(&self, n: u32) -> u64 {
        let needs = &self.of.pressure.nodes[n as usize];
        let taken = needs.reuses.iter().any(|r| self.left[*r as usize] == 1);
        let all = needs.makes.iter().map(|r| self.of.pressure.size[*r as usize]);
        all.skip(usize::from(taken)).sum()
    }

    /// What lives while a node runs that comes next.
    fn bytes_with(&self, n: u32) -> u64 {
        self.live + self.added(n) + self.of.pressure.nodes[n as usize].scratch
    }

    /// Whether a node reads or writes what is on its way.
    fn touches_flight(&self, n: u32) -> bool {
        let needs = &self.of.pressure.nodes[n as usize];
        needs.reads.iter().any(|root| self.in_flight[*root as usize].is_some())
    }

    fn node(&mut self, n: u32) {
        let needs = &self.of.pressure.nodes[n as usize];
        let pressure = &self.of.pressure;
        let taken = needs.reuses.iter().find(|r| self.left[**r as usize] == 1);
        for (i, root) in needs.makes.iter().enumerate() {
            self.holds[*root as usize] = match taken.filter(|_| i == 0) {
                Some(from) => std::mem::take(&mut self.holds[*from as usize]),
                None => {
                    self.live += pressure.size[*root as usize];
                    pressure.size[*root as usize]
                }
            };
        }
        for root in needs.reads.iter().chain(&needs.makes).map(|root| *root as usize) {
            self.left[root] -= 1;
            self.live -= self.in_flight[root].take().unwrap_or(0);
            if self.left[root] == 0 && !pressure.stays[root] {
                self.live -= std::mem::take(&mut self.holds[root]);
            }
        }
        if self.of.transfers[n as usize] {
            for root in &needs.makes {
                self.in_flight[*root as usize] = Some(needs.scratch);
                self.live += needs.scratch;
            }
        }
        self.made.push(n);
    }
}
