//! The order in which a loop is gone back through, with a bounded number of kept states.
//!
//! How many rounds there are shows only at the end of the forward run. So states are kept online: at
//! every `stride`-th round; when the slots are full every second state is dropped and the stride
//! doubles, so at least half of the slots are always in use, evenly spread. Backwards, the piece behind
//! each kept state is run again, keeping states by bisection in the slots that are free by then: each
//! round is run at most `log2(stride) + 1` times again, and once where the slots suffice.

/// One thing to do on the way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Copy a kept state to where work goes on.
    Restore { slot: usize },
    /// Keep the state that work has come to.
    Keep { slot: usize },
    /// Run a round again.
    Forward { round: u64 },
    /// Go back through a round, whose state has been restored.
    Back { round: u64 },
}

/// Which states are kept.
#[derive(Debug, Clone)]
pub struct Schedule {
    slots: usize,
    stride: u64,
    /// Round and slot, in order of rounds.
    kept: Vec<(u64, usize)>,
    free: Vec<usize>,
}

impl Schedule {
    pub fn new(slots: usize) -> Schedule {
        let slots = slots.max(1);
        Schedule { slots, stride: 1, kept: Vec::new(), free: (0..slots).rev().collect() }
    }

    /// The slot for the state before that round, if it is to be kept.
    pub fn keep(&mut self, round: u64) -> Option<usize> {
        if !round.is_multiple_of(self.stride) {
            return None;
        }
        if self.free.is_empty() {
            self.stride *= 2;
            let stride = self.stride;
            let dropped: Vec<usize> =
                self.kept.iter().filter(|(r, _)| r % stride != 0).map(|(_, s)| *s).collect();
            self.kept.retain(|(r, _)| r % stride == 0);
            self.free.extend(dropped);
            if !round.is_multiple_of(self.stride) {
                return None;
            }
        }
        let slot = self.free.pop()?;
        self.kept.push((round, slot));
        Some(slot)
    }

    /// What to do to go back through `rounds` rounds.
    pub fn back(mut self, rounds: u64) -> Vec<Action> {
        debug_assert!(self.kept.len() <= self.slots);
        let mut actions = Vec::new();
        let mut end = rounds;
        while let Some((start, slot)) = self.kept.pop() {
            self.piece(start, end, slot, &mut actions);
            self.free.push(slot);
            end = start;
        }
        actions
    }

    /// Back through `start..end`, from the state before `start` in `slot`, with the slots that are free.
    fn piece(&mut self, start: u64, end: u64, slot: usize, actions: &mut Vec<Action>) {
        if start >= end {
            return;
        }
        if end - start == 1 {
            actions.extend([Action::Restore { slot }, Action::Back { round: start }]);
            return;
        }
        let Some(next) = self.free.pop() else {
            // No slot: every round from the start again.
            for round in (start..end).rev() {
                actions.push(Action::Restore { slot });
                actions.extend((start..round).map(|round| Action::Forward { round }));
                actions.push(Action::Back { round });
            }
            return;
        };
        // With a slot for every state the next one is kept; otherwise the one in the middle.
        let enough = self.free.len() as u64 + 2 >= end - start;
        let middle = if enough { start + 1 } else { start + (end - start) / 2 };
        actions.push(Action::Restore { slot });
        actions.extend((start..middle).map(|round| Action::Forward { round }));
        actions.push(Action::Keep { slot: next });
        self.piece(middle, end, next, actions);
        self.free.push(next);
        self.piece(start, middle, slot, actions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a schedule on states that are numbers of rounds.
    fn play(slots: usize, rounds: u64) -> u64 {
        let mut schedule = Schedule::new(slots);
        let mut memory = vec![None; slots];
        for round in 0..rounds {
            if let Some(slot) = schedule.keep(round) {
                memory[slot] = Some(round);
            }
        }
        let (mut at, mut next_back, mut again) = (None, rounds, 0);
        for action in schedule.back(rounds) {
            match action {
                Action::Restore { slot } => at = memory[slot],
                Action::Keep { slot } => memory[slot] = at,
                Action::Forward { round } => {
                    assert_eq!(at, Some(round));
                    at = Some(round + 1);
                    again += 1;
                }
                Action::Back { round } => {
                    assert_eq!(at, Some(round), "the state before the round is at hand");
                    assert_eq!(round + 1, next_back, "rounds are gone back through in order");
                    next_back = round;
                }
            }
        }
        assert_eq!(next_back, 0, "every round is gone back through");
        again
    }

    #[test]
    fn every_round_is_gone_back_through_whatever_the_slots() {
        for slots in [1, 2, 3, 5, 8, 16] {
            for rounds in [0, 1, 2, 3, 7, 8, 9, 31, 100] {
                play(slots, rounds);
            }
        }
    }

    #[test]
    fn with_a_slot_for_every_round_nothing_is_run_again() {
        for rounds in 0..20 {
            assert_eq!(play(rounds.max(1) as usize, rounds), 0);
        }
    }

    #[test]
    fn two_square_roots_of_slots_run_each_round_about_once_again() {
        for rounds in [250u64, 1000, 4000] {
            let slots = (2.0 * (rounds as f64).sqrt()).ceil() as usize;
            let again = play(slots, rounds);
            assert!(again <= rounds * 5 / 4, "{again} for {rounds}");
        }
    }
}
