//! The order of the program with every node as late as what reads it allows, except where it must wait for
//! nothing and leads to an effect: updates run as soon as they can, so that a gradient is gone before the
//! next one is made.

use super::limits::Limits;

/// Goes through the program's effects and results in order, and puts before each what it needs that has
/// not run yet.
pub fn order(limits: &Limits) -> Vec<u32> {
    let count = limits.count();
    let mut is_needed = vec![false; count];
    for before in &limits.before {
        for b in before {
            is_needed[*b as usize] = true;
        }
    }
    let mut made = Vec::with_capacity(count);
    let mut done = vec![false; count];
    let mut failing = limits.failing.iter().copied().peekable();
    for n in (0..count as u32).filter(|n| limits.waits[*n as usize] || !is_needed[*n as usize]) {
        if limits.waits[n as usize] {
            while let Some(f) = failing.next_if(|f| *f < n) {
                run(f, limits, &mut done, &mut made);
            }
        }
        run(n, limits, &mut done, &mut made);
    }
    made
}

/// A node after all that it needs; without recursion, for chains are long.
fn run(n: u32, limits: &Limits, done: &mut [bool], made: &mut Vec<u32>) {
    let mut stack = vec![(n, 0)];
    while let Some((n, next)) = stack.pop() {
        if done[n as usize] {
            continue;
        }
        match limits.before[n as usize].get(next) {
            Some(before) => {
                stack.push((n, next + 1));
                stack.push((*before, 0));
            }
            None => {
                done[n as usize] = true;
                made.push(n);
            }
        }
    }
}
