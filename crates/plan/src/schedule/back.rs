//! The way back: which rounds to run again, from where to where, and when to go back through which.
//!
//! Nothing is copied. A state stays at the place where it was made: to keep it is to leave it there, and what a
//! step back started from is what the next one ends at.

use super::revolve;

/// Where a state lies: [`START`], [`LAST`], or one of the places that are handed in.
pub type Place = usize;

/// The place of the state before the first round, which is never written.
pub const START: Place = usize::MAX;

/// The place of the state behind the last round, which is never written.
pub const LAST: Place = usize::MAX - 1;

/// Places that the way back needs at most besides those of the kept states: two to advance between, and the one
/// that the last step back started from.
pub const SPARE: usize = 3;

/// Rounds beyond which nobody counts them one by one.
const COUNTED: u64 = 2_000_000;

/// Places that the way back needs besides those of the states that the forward run kept, of so many rounds
/// and slots.
pub fn spare(rounds: u64, slots: u64) -> usize {
    // The state before the last round is among those that were kept: a place fewer.
    let most = SPARE - 1;
    if revolve::steps(rounds, slots) > COUNTED {
        return most;
    }
    let kept: Vec<(u64, Place)> =
        revolve::kept(rounds, slots).into_iter().enumerate().map(|(i, r)| (r, i)).collect();
    let rows = kept.len();
    Back::new(rounds, slots, kept, free(rows..rows + most))
        .map(|action| match action {
            Action::Forward { to, .. } => (to + 1).saturating_sub(rows),
            Action::Back { .. } => 0,
        })
        .max()
        .unwrap_or(0)
}

/// Places in the order in which they are taken: the first ones first.
pub fn free(places: impl DoubleEndedIterator<Item = Place>) -> Vec<Place> {
    places.rev().collect()
}

/// One thing to do on the way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Run a round again.
    Forward {
        /// Which.
        round: u64,
        /// The state before it.
        from: Place,
        /// Where the state behind it goes.
        to: Place,
    },
    /// Go back through a round.
    Back {
        /// Which.
        round: u64,
        /// The state before it.
        before: Place,
        /// The state behind it.
        after: Place,
    },
}

/// What is left of the way back. An iterator, since the list of all actions would grow with the rounds.
#[derive(Debug, Clone)]
pub struct Back {
    slots: u64,
    /// Kept states: round and place, in order.
    marks: Vec<(u64, Place)>,
    free: Vec<Place>,
    /// Rounds from here on are done.
    end: u64,
    /// The state behind the next round to go back through.
    after: Place,
    /// A state on its way, and where it goes to.
    moving: Option<(u64, Place, u64)>,
}

impl Back {
    /// The way back through so many rounds, with the kept states behind the first one in order, and other
    /// places that are free, the next one last.
    pub fn new(
        rounds: u64,
        slots: u64,
        kept: impl IntoIterator<Item = (u64, Place)>,
        free: Vec<Place>,
    ) -> Back {
        let marks = std::iter::once((0, START)).chain(kept).collect();
        Back { slots: slots.max(1), marks, free, end: rounds, after: LAST, moving: None }
    }

    /// A step back; the place that it started from is the one that the next ends at.
    fn back(&mut self, round: u64, before: Place) -> Action {
        let after = std::mem::replace(&mut self.after, before);
        if is_ours(after) {
            self.free.push(after);
        }
        self.end = round;
        Action::Back { round, before, after }
    }

    /// How far to go from a kept state: to where the next one is kept, or to the end.
    fn goal(&self, start: u64) -> u64 {
        let free = (self.slots + 1).saturating_sub(self.marks.len() as u64);
        match free > 1 {
            true => start + revolve::advance(self.end - start, free),
            false => self.end - 1,
        }
    }
}

/// Whether it may be written.
fn is_ours(place: Place) -> bool {
    place != START && place != LAST
}

impl Iterator for Back {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        loop {
            if let Some((round, place, goal)) = self.moving {
                if round + 1 == self.end {
                    self.moving = None;
                    return Some(self.back(round, place));
                }
                if round == goal {
                    self.moving = None;
                    self.marks.push((round, place));
                    continue;
                }
                let to = self.free.pop()?;
                self.free.push(place);
                self.moving = Some((round + 1, to, goal));
                return Some(Action::Forward { round, from: place, to });
            }
            let (start, place) = *self.marks.last()?;
            match self.end.saturating_sub(start) {
                // Its rounds are done; its place is in use until the next step back is.
                0 => {
                    self.marks.pop();
                    if place != self.after && is_ours(place) {
                        self.free.push(place);
                    }
                }
                1 => return Some(self.back(start, place)),
                _ => {
                    let to = self.free.pop()?;
                    self.moving = Some((start + 1, to, self.goal(start)));
                    return Some(Action::Forward { round: start, from: place, to });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Online;
    use super::*;

    /// Plays the way back on states that are numbers of rounds; how often each round is run again.
    fn play(rounds: u64, slots: u64, kept: &[(u64, Place)], places: usize) -> Vec<u64> {
        let mut memory = vec![None; places];
        for (round, place) in kept {
            memory[*place] = Some(*round);
        }
        let free = free((0..places).filter(|p| kept.iter().all(|(_, k)| k != p)));
        let mut again = vec![0; rounds as usize];
        let mut end = rounds;
        let state = |memory: &[Option<u64>], place: Place| match place {
            START => Some(0),
            LAST => Some(rounds),
            place => memory[place],
        };
        for action in Back::new(rounds, slots, kept.iter().copied(), free) {
            match action {
                Action::Forward { round, from, to } => {
                    assert_ne!(from, to);
                    assert_eq!(state(&memory, from), Some(round), "the state before the round");
                    memory[to] = Some(round + 1);
                    again[round as usize] += 1;
                }
                Action::Back { round, before, after } => {
                    assert_eq!(round + 1, end, "rounds are gone back through in order");
                    assert_eq!(state(&memory, before), Some(round), "the state before the round");
                    assert_eq!(state(&memory, after), Some(round + 1), "the state behind it");
                    end = round;
                }
            }
        }
        assert_eq!(end, 0, "every round is gone back through");
        again
    }

    fn known(rounds: u64, slots: u64) -> Vec<u64> {
        let kept: Vec<(u64, Place)> =
            revolve::kept(rounds, slots).into_iter().enumerate().map(|(i, r)| (r, i)).collect();
        let places = kept.len() + spare(rounds, slots);
        play(rounds, slots, &kept, places)
    }

    fn unknown(rounds: u64, slots: u64) -> Vec<u64> {
        let mut online = Online::new(slots);
        for round in 1..rounds {
            online.keep(round);
        }
        let kept: Vec<_> = online.kept(rounds).collect();
        play(rounds, slots, &kept, slots as usize - 1 + SPARE)
    }

    #[test]
    fn every_round_is_gone_back_through_in_as_few_steps_as_revolve_takes() {
        for slots in 1..20 {
            for rounds in 0..150 {
                let again: u64 = known(rounds, slots).iter().sum();
                assert_eq!(again, revolve::again(rounds, slots), "{rounds} rounds, {slots} slots");
            }
        }
        for (rounds, slots) in [(4000, 127), (1000, 7), (500, 300)] {
            assert_eq!(known(rounds, slots).iter().sum::<u64>(), revolve::again(rounds, slots));
        }
    }

    #[test]
    fn every_round_is_gone_back_through_whatever_the_slots_and_the_end() {
        for slots in 1..20 {
            for rounds in 0..150 {
                unknown(rounds, slots);
            }
        }
    }

    #[test]
    fn not_knowing_the_end_repeats_no_round_more_often() {
        for slots in 2..20 {
            for rounds in 2..400 {
                // Once for the forward run.
                let most = 1 + unknown(rounds, slots).into_iter().max().unwrap_or(0);
                let known = revolve::times(rounds, slots).max(1);
                assert!(most <= known + 1, "{rounds} rounds, {slots} slots: {most} and {known}");
            }
        }
    }

    #[test]
    fn not_knowing_the_end_costs_at_most_half_as_much_again() {
        let (mut sum, mut count) = (0.0, 0.0);
        for slots in 2..20 {
            for rounds in (slots + 1..400).step_by(7) {
                let again: u64 = unknown(rounds, slots).iter().sum();
                let ratio = (rounds - 1 + again) as f64 / revolve::steps(rounds, slots) as f64;
                assert!(ratio <= 1.5, "{rounds} rounds, {slots} slots: {ratio}");
                (sum, count) = (sum + ratio, count + 1.0);
            }
        }
        assert!(sum / count < 1.12, "{}", sum / count);
    }
}
