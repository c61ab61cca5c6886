//! The order that always runs, of what can run, what leaves the fewest bytes behind.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::limits::Limits;
use super::pressure::Pressure;

/// Ties go to the program's order, so that equal graphs give equal plans.
pub fn order(limits: &Limits, pressure: &Pressure) -> Vec<u32> {
    let count = limits.count();
    let mut after: Vec<Vec<u32>> = vec![Vec::new(); count];
    let mut missing: Vec<u32> = vec![0; count];
    for (n, before) in limits.before.iter().enumerate() {
        missing[n] = before.len() as u32;
        for b in before {
            after[*b as usize].push(n as u32);
        }
    }
    // Nodes that read each root and have not run; the last one frees it.
    let mut readers: Vec<Vec<u32>> = vec![Vec::new(); pressure.size.len()];
    for (n, needs) in pressure.nodes.iter().enumerate() {
        for root in &needs.reads {
            readers[*root as usize].push(n as u32);
        }
    }
    let mut left: Vec<u32> = readers.iter().map(|r| r.len() as u32).collect();
    let leaves = |n: u32, left: &[u32]| -> i64 {
        let needs = &pressure.nodes[n as usize];
        let made: u64 = needs.makes.iter().map(|r| pressure.size[*r as usize]).sum();
        let freed: u64 = needs
            .reads
            .iter()
            .map(|r| *r as usize)
            .filter(|r| left[*r] == 1 && !pressure.stays[*r] && pressure.in_arena[*r])
            .map(|r| pressure.size[r])
            .sum();
        made as i64 - freed as i64
    };
    let mut ready = BinaryHeap::new();
    for n in (0..count as u32).filter(|n| missing[*n as usize] == 0) {
        ready.push(Reverse((leaves(n, &left), n)));
    }
    let mut made = Vec::with_capacity(count);
    let mut done = vec![false; count];
    let mut failing = limits.failing.iter().copied().peekable();
    let mut waiting: Vec<u32> = Vec::new();
    while let Some(Reverse((price, n))) = ready.pop() {
        let at = n as usize;
        // An entry from before something was freed: the later one counts.
        if done[at] || price != leaves(n, &left) {
            continue;
        }
        if limits.waits[at] && failing.peek().is_some_and(|f| *f < n) {
            waiting.push(n);
            continue;
        }
        done[at] = true;
        made.push(n);
        for root in &pressure.nodes[at].reads {
            left[*root as usize] -= 1;
            if left[*root as usize] == 1 {
                let last = readers[*root as usize].iter().copied().find(|r| !done[*r as usize]);
                if let Some(r) = last.filter(|r| missing[*r as usize] == 0) {
                    ready.push(Reverse((leaves(r, &left), r)));
                }
            }
        }
        for next in &after[at] {
            missing[*next as usize] -= 1;
            if missing[*next as usize] == 0 {
                ready.push(Reverse((leaves(*next, &left), *next)));
            }
        }
        let before = failing.peek().copied();
        while failing.next_if(|f| done[*f as usize]).is_some() {}
        if failing.peek().copied() != before {
            for n in waiting.drain(..) {
                ready.push(Reverse((leaves(n, &left), n)));
            }
        }
    }
    made
}
