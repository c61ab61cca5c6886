//! The backward pass: which iterations to recompute, from where to where, and when to walk which backward.
//!
//! Nothing is copied. A state stays at the place where it was made: to checkpoint it is to leave it there, and what a
//! backward step started from is what the next one ends at.

use super::revolve;

/// Where a state lies: [`START`], [`LAST`], or one of the places that are handed in.
pub type StatePlace = usize;

/// The place of the state before the first iteration, which is never written.
pub const START: StatePlace = usize::MAX;

/// The place of the state behind the last iteration, which is never written.
pub const LAST: StatePlace = usize::MAX - 1;

/// Places that the backward pass needs at most besides those of the checkpointed states: two to advance between, and the one
/// that the last backward step started from.
pub const SPARE: usize = 3;

/// Iterations beyond which they are not counted one by one.
const COUNTED: u64 = 2_000_000;

/// Places that the backward pass needs besides those of the states that the forward pass checkpointed, of that number
/// of iterations and checkpoints.
pub fn spare(iterations: u64, max_checkpoints: u64) -> usize {
    // The state before the last iteration is among the checkpoints: a place fewer.
    let most = SPARE - 1;
    if revolve::steps(iterations, max_checkpoints) > COUNTED {
        return most;
    }
    let checkpointed: Vec<(u64, StatePlace)> = revolve::checkpointed(iterations, max_checkpoints)
        .into_iter()
        .enumerate()
        .map(|(i, r)| (r, i))
        .collect();
    let rows = checkpointed.len();
    BackwardSchedule::new(iterations, max_checkpoints, checkpointed, free(rows..rows + most))
        .map(|action| match action {
            BackwardAction::Forward { to, .. } => (to + 1).saturating_sub(rows),
            BackwardAction::Backward { .. } => 0,
        })
        .max()
        .unwrap_or(0)
}

/// Places in the order in which they are taken: the first ones first.
pub fn free(places: impl DoubleEndedIterator<Item = StatePlace>) -> Vec<StatePlace> {
    places.rev().collect()
}

/// One thing to do in the backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackwardAction {
    /// Recompute an iteration.
    Forward {
        /// Which.
        iteration: u64,
        /// The state before it.
        from: StatePlace,
        /// Where the state behind it goes.
        to: StatePlace,
    },
    /// Walk an iteration backward.
    Backward {
        /// Which.
        iteration: u64,
        /// The state before it.
        before: StatePlace,
        /// The state behind it.
        after: StatePlace,
    },
}

/// What is left of the backward pass. An iterator, since the list of all actions would grow with the iterations.
#[derive(Debug, Clone)]
pub struct BackwardSchedule {
    max_checkpoints: u64,
    /// Checkpoints: iteration and place, in order.
    marks: Vec<(u64, StatePlace)>,
    free: Vec<StatePlace>,
    /// Iterations from here on are done.
    end: u64,
    /// The state behind the next iteration to walk backward.
    after: StatePlace,
    /// A state on its way, and where it goes to.
    moving: Option<(u64, StatePlace, u64)>,
}

impl BackwardSchedule {
    /// The backward pass through `iterations` iterations, with the checkpointed states behind the first one in order, and other
    /// places that are free, the next one last.
    pub fn new(
        iterations: u64,
        max_checkpoints: u64,
        checkpointed: impl IntoIterator<Item = (u64, StatePlace)>,
        free: Vec<StatePlace>,
    ) -> BackwardSchedule {
        let marks = std::iter::once((0, START)).chain(checkpointed).collect();
        BackwardSchedule {
            max_checkpoints: max_checkpoints.max(1),
            marks,
            free,
            end: iterations,
            after: LAST,
            moving: None,
        }
    }

    /// A step back; the place that it started from is the one that the next ends at.
    fn backward(&mut self, iteration: u64, before: StatePlace) -> BackwardAction {
        let after = std::mem::replace(&mut self.after, before);
        if is_ours(after) {
            self.free.push(after);
        }
        self.end = iteration;
        BackwardAction::Backward { iteration, before, after }
    }

    /// How far to go from a checkpoint: to where the next one is, or to the end.
    fn goal(&self, start: u64) -> u64 {
        let free = (self.max_checkpoints + 1).saturating_sub(self.marks.len() as u64);
        match free > 1 {
            true => start + revolve::advance(self.end - start, free),
            false => self.end - 1,
        }
    }
}

/// Whether it may be written.
fn is_ours(place: StatePlace) -> bool {
    place != START && place != LAST
}

impl Iterator for BackwardSchedule {
    type Item = BackwardAction;

    fn next(&mut self) -> Option<BackwardAction> {
        loop {
            if let Some((iteration, place, goal)) = self.moving {
                if iteration + 1 == self.end {
                    self.moving = None;
                    return Some(self.backward(iteration, place));
                }
                if iteration == goal {
                    self.moving = None;
                    self.marks.push((iteration, place));
                    continue;
                }
                let to = self.free.pop()?;
                self.free.push(place);
                self.moving = Some((iteration + 1, to, goal));
                return Some(BackwardAction::Forward { iteration, from: place, to });
            }
            let (start, place) = *self.marks.last()?;
            match self.end.saturating_sub(start) {
                // Its iterations are done; its place is in use until the next step back is.
                0 => {
                    self.marks.pop();
                    if place != self.after && is_ours(place) {
                        self.free.push(place);
                    }
                }
                1 => return Some(self.backward(start, place)),
                _ => {
                    let to = self.free.pop()?;
                    self.moving = Some((start + 1, to, self.goal(start)));
                    return Some(BackwardAction::Forward { iteration: start, from: place, to });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Online;
    use super::*;

    /// Plays the backward pass on states that are numbers of iterations; how often each iteration is recomputed.
    fn play(
        iterations: u64,
        max_checkpoints: u64,
        checkpointed: &[(u64, StatePlace)],
        places: usize,
    ) -> Vec<u64> {
        let mut memory = vec![None; places];
        for (iteration, place) in checkpointed {
            memory[*place] = Some(*iteration);
        }
        let free = free((0..places).filter(|p| checkpointed.iter().all(|(_, k)| k != p)));
        let mut recomputed = vec![0; iterations as usize];
        let mut end = iterations;
        let state = |memory: &[Option<u64>], place: StatePlace| match place {
            START => Some(0),
            LAST => Some(iterations),
            place => memory[place],
        };
        for action in
            BackwardSchedule::new(iterations, max_checkpoints, checkpointed.iter().copied(), free)
        {
            match action {
                BackwardAction::Forward { iteration, from, to } => {
                    assert_ne!(from, to);
                    assert_eq!(
                        state(&memory, from),
                        Some(iteration),
                        "the state before the iteration"
                    );
                    memory[to] = Some(iteration + 1);
                    recomputed[iteration as usize] += 1;
                }
                BackwardAction::Backward { iteration, before, after } => {
                    assert_eq!(iteration + 1, end, "iterations are walked backward in order");
                    assert_eq!(
                        state(&memory, before),
                        Some(iteration),
                        "the state before the iteration"
                    );
                    assert_eq!(state(&memory, after), Some(iteration + 1), "the state behind it");
                    end = iteration;
                }
            }
        }
        assert_eq!(end, 0, "every iteration is walked backward");
        recomputed
    }

    fn known(iterations: u64, max_checkpoints: u64) -> Vec<u64> {
        let checkpointed: Vec<(u64, StatePlace)> =
            revolve::checkpointed(iterations, max_checkpoints)
                .into_iter()
                .enumerate()
                .map(|(i, r)| (r, i))
                .collect();
        let places = checkpointed.len() + spare(iterations, max_checkpoints);
        play(iterations, max_checkpoints, &checkpointed, places)
    }

    fn unknown(iterations: u64, max_checkpoints: u64) -> Vec<u64> {
        let mut online = Online::new(max_checkpoints);
        for iteration in 1..iterations {
            online.checkpoint(iteration);
        }
        let checkpointed: Vec<_> = online.checkpointed(iterations).collect();
        play(iterations, max_checkpoints, &checkpointed, max_checkpoints as usize - 1 + SPARE)
    }

    #[test]
    fn every_iteration_is_walked_backward_in_as_few_steps_as_revolve_takes() {
        for max_checkpoints in 1..20 {
            for iterations in 0..150 {
                let recomputed: u64 = known(iterations, max_checkpoints).iter().sum();
                assert_eq!(
                    recomputed,
                    revolve::recomputed(iterations, max_checkpoints),
                    "{iterations} iterations, {max_checkpoints} checkpoints"
                );
            }
        }
        for (iterations, max_checkpoints) in [(4000, 127), (1000, 7), (500, 300)] {
            assert_eq!(
                known(iterations, max_checkpoints).iter().sum::<u64>(),
                revolve::recomputed(iterations, max_checkpoints)
            );
        }
    }

    #[test]
    fn every_iteration_is_walked_backward_whatever_the_checkpoints_and_the_end() {
        for max_checkpoints in 1..20 {
            for iterations in 0..150 {
                unknown(iterations, max_checkpoints);
            }
        }
    }

    #[test]
    fn not_knowing_the_end_repeats_no_iteration_more_often() {
        for max_checkpoints in 2..20 {
            for iterations in 2..400 {
                // Once for the forward run.
                let most = 1 + unknown(iterations, max_checkpoints).into_iter().max().unwrap_or(0);
                let known = revolve::times(iterations, max_checkpoints).max(1);
                assert!(
                    most <= known + 1,
                    "{iterations} iterations, {max_checkpoints} checkpoints: {most} and {known}"
                );
            }
        }
    }

    #[test]
    fn not_knowing_the_end_costs_at_most_half_as_much_again() {
        let (mut sum, mut count) = (0.0, 0.0);
        for max_checkpoints in 2..20 {
            for iterations in (max_checkpoints + 1..400).step_by(7) {
                let recomputed: u64 = unknown(iterations, max_checkpoints).iter().sum();
                let ratio = (iterations - 1 + recomputed) as f64
                    / revolve::steps(iterations, max_checkpoints) as f64;
                assert!(
                    ratio <= 1.5,
                    "{iterations} iterations, {max_checkpoints} checkpoints: {ratio}"
                );
                (sum, count) = (sum + ratio, count + 1.0);
            }
        }
        assert!(sum / count < 1.12, "{}", sum / count);
    }
}
