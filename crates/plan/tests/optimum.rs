//! How far the frontier is from the best there is: on graphs small enough to search through all ways to run them.
//!
//! The search knows nothing of the frontier. A state is the set of values that are in memory; computing a node costs its
//! time and needs its inputs there and room for its outputs and workspace; dropping a value costs nothing. Dijkstra's
//! algorithm then finds the least time in which all results can be there, over all orders and any number of
//! recomputations of anything: no integer program over the same choices could do better.

#[path = "common/works.rs"]
mod works;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use tonnage_core::Bytes;
use tonnage_core::graph::Graph;
use tonnage_plan::{Allowed, Frontier, Machine};
use works::{Works, network, options};

/// One node as the search sees it; values are bits.
struct SearchNode {
    reads: u32,
    makes: u32,
    over: Vec<u32>,
    room: u64,
    seconds: f64,
}

struct Search {
    works: Vec<SearchNode>,
    sizes: Vec<u64>,
    results: u32,
}

fn set(values: &[usize]) -> u32 {
    values.iter().fold(0, |set, value| set | 1 << value)
}

impl Search {
    fn of(graph: &Graph, machine: &Machine) -> Search {
        let Works { works, sizes, results } = Works::of(graph, machine);
        assert!(sizes.len() <= 24, "{} values", sizes.len());
        let work = |work: &works::Work| SearchNode {
            reads: set(&work.reads),
            makes: set(&work.makes),
            over: work.over.iter().map(|value| *value as u32).collect(),
            room: work.room,
            seconds: work.seconds,
        };
        Search { works: works.iter().map(work).collect(), sizes, results: set(&results) }
    }

    fn bytes(&self, set: u32) -> u64 {
        (0..self.sizes.len()).filter(|b| set >> b & 1 == 1).map(|b| self.sizes[b]).sum()
    }

    /// The least time within that many bytes of arena.
    fn least_seconds(&self, arena: u64) -> Option<f64> {
        // Whole nanoseconds of a thousandth, so that times have an order.
        let ticks = |seconds: f64| (seconds * 1e12) as u64;
        let mut best: HashMap<u32, u64> = HashMap::from([(0, 0)]);
        let mut open = BinaryHeap::from([Reverse((0u64, 0u32))]);
        while let Some(Reverse((time, set))) = open.pop() {
            if set & self.results == self.results {
                return Some(time as f64 / 1e12);
            }
            if best.get(&set).is_some_and(|b| *b < time) {
                continue;
            }
            let mut reach = |set: u32, time: u64| {
                if best.get(&set).is_none_or(|b| time < *b) {
                    best.insert(set, time);
                    open.push(Reverse((time, set)));
                }
            };
            let held = self.bytes(set);
            for work in &self.works {
                if set & work.reads != work.reads || set & work.makes == work.makes {
                    continue;
                }
                let after = time + ticks(work.seconds);
                let more = self.bytes(work.makes & !set);
                if held + more + work.room <= arena {
                    reach(set | work.makes, after);
                }
                for b in &work.over {
                    let first = self.sizes[*b as usize];
                    if held + more - first + work.room <= arena {
                        reach(set & !(1 << b) | work.makes, after);
                    }
                }
            }
            for b in (0..self.sizes.len()).filter(|b| set >> b & 1 == 1) {
                // Results stay: to drop one would only mean to recompute it.
                if self.results >> b & 1 == 0 {
                    reach(set & !(1 << b), time);
                }
            }
        }
        None
    }
}

#[test]
fn the_frontier_is_within_a_twentieth_of_the_best_on_average() {
    let graphs = [
        network(4096, &[32, 32, 32, 32, 32], &[]),
        network(4096, &[32, 32, 32, 32, 32], &[(0, 3)]),
        network(4096, &[16, 64, 16, 64, 16], &[]),
        network(2048, &[64, 32, 128, 32, 16], &[]),
        network(8192, &[8, 64, 32, 16, 64], &[(0, 3)]),
        network(4096, &[64, 64, 64, 64], &[(0, 2)]),
    ];
    let machine = Machine::DEFAULT.without_disk();
    let (mut sum, mut count) = (0.0, 0);
    for (graph, inputs) in &graphs {
        let search = Search::of(graph, &machine);
        let frontier =
            Frontier::allowing(Allowed::EXACT, graph, &[], inputs, options(machine)).unwrap();
        let free = search.least_seconds(u64::MAX).unwrap();
        let mut last = Bytes::new(u64::MAX);
        for point in 0..frontier.points() {
            let plan = frontier.plan(point).unwrap();
            if plan.peak() >= last {
                continue;
            }
            last = plan.peak();
            let arena = plan.arena + plan.own_outputs();
            let took = plan.fitted.unwrap().seconds;
            // a point may fit where the search knows no way: what is recomputed is fused anew.
            let Some(best) = search.least_seconds(arena.get()) else { continue };
            let over = (took / best - 1.0).max(0.0);
            println!("{arena:>12} {:.3} {:.3} of the least time", took / free, took / best);
            (sum, count) = (sum + over, count + 1);
        }
    }
    let mean = sum / f64::from(count);
    println!("{count} points, {:.2}% over the best on average", mean * 100.0);
    assert!(count >= 12 && mean <= 0.05, "{count} points, {mean}");
}
