//! The binomial schedule of Revolve (Griewank and Walther, *Algorithm 799: Revolve*, ACM TOMS 26, 2000): the
//! fewest rounds that have to be run again, for a known number of rounds and slots.
//!
//! Their count `t(N, s)` is of rounds that are *advanced* through: the forward run up to the state before the last
//! round, N - 1 of them, and all that are run again. Going back through a round is not counted. A loop that is differentiated
//! runs its last round too, for its result, so it advances through `t(N, s) + 1` rounds in all: N the first time, and
//! [`again`] = `t(N, s) - (N - 1)` more.

/// Rounds that can be gone back through with so many slots where no round is advanced through more than
/// `times` times: the binomial coefficient of `slots + times` over `slots`. Saturates.
pub fn reach(slots: u64, times: u64) -> u64 {
    let (small, large) = (slots.min(times), slots.max(times));
    let mut value: u128 = 1;
    for i in 1..=u128::from(small) {
        value = value * (u128::from(large) + i) / i;
        if value > u128::from(u64::MAX) {
            return u64::MAX;
        }
    }
    value as u64
}

/// How often a round is advanced through at most.
pub fn times(rounds: u64, slots: u64) -> u64 {
    if slots == 1 {
        return rounds.saturating_sub(1);
    }
    (0..).find(|times| reach(slots, *times) >= rounds).unwrap_or(u64::MAX)
}

/// Rounds that are advanced through in all, `t(N, s)`. Saturates.
///
/// ```
/// use tonnage_plan::schedule::revolve;
/// assert_eq!(revolve::steps(4, 4), 3); // a slot for every state
/// assert_eq!(revolve::steps(10, 3), 15);
/// ```
pub fn steps(rounds: u64, slots: u64) -> u64 {
    let slots = slots.max(1);
    if rounds <= 1 {
        return 0;
    }
    let times = times(rounds, slots);
    times.saturating_mul(rounds).saturating_sub(reach(slots + 1, times - 1))
}

/// Rounds that are run again: all but those of the forward run.
pub fn again(rounds: u64, slots: u64) -> u64 {
    steps(rounds, slots).saturating_sub(rounds.saturating_sub(1))
}

/// How far to advance from the first of so many rounds, whose state is in one of the slots, before the
/// next state is kept. At least two slots and two rounds.
///
/// With `r` as in [`times`], any length is right that leaves behind it what `slots` slots reach in `r - 2` to
/// `r - 1` times, and before it what one fewer reach in `r - 1` to `r` times; this is the longest.
pub fn advance(rounds: u64, slots: u64) -> u64 {
    let times = times(rounds, slots);
    let longest = reach(slots, times.saturating_sub(1));
    let rest = reach(slots - 1, times.saturating_sub(1));
    longest.min(rounds.saturating_sub(rest)).clamp(1, rounds.saturating_sub(1).max(1))
}

/// The states that the forward run keeps besides the first, in order, and the one before the last round,
/// which the way back starts from: at most as many as there are slots.
pub fn kept(rounds: u64, slots: u64) -> Vec<u64> {
    let mut all = Vec::new();
    let (mut start, mut slots) = (0, slots.max(1));
    while rounds - start > 1 && slots > 1 {
        start += advance(rounds - start, slots);
        slots -= 1;
        all.push(start);
    }
    if rounds - start > 1 {
        all.push(rounds - 1);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fewest advances, by looking at every place for the next state: the definition, for up to `most`
    /// rounds and slots. `best[s][n]` goes back through n rounds.
    fn optimum(most: usize, slots: usize) -> Vec<Vec<u64>> {
        let mut best = vec![vec![0u64; most + 1]; slots + 1];
        for n in 2..=most {
            // One slot: from the start, to every state.
            best[1][n] = (1..n as u64).sum();
        }
        for s in 2..=slots {
            for n in 2..=most {
                let through = |k: usize| k as u64 + best[s - 1][n - k] + best[s][k];
                best[s][n] = (1..n).map(through).min().unwrap_or(0);
            }
        }
        best
    }

    #[test]
    fn the_published_count_is_the_optimum() {
        let best = optimum(300, 40);
        for (s, row) in best.iter().enumerate().skip(1) {
            for (n, fewest) in row.iter().enumerate() {
                assert_eq!(steps(n as u64, s as u64), *fewest, "{n} rounds, {s} slots");
            }
        }
    }

    #[test]
    fn every_advance_is_part_of_an_optimum() {
        let best = optimum(200, 20);
        for s in 2..=20 {
            for n in 2..=200 {
                let k = advance(n as u64, s as u64) as usize;
                let total = k as u64 + best[s - 1][n - k] + best[s][k];
                assert_eq!(total, best[s][n], "{n} rounds, {s} slots, {k} at first");
            }
        }
    }

    #[test]
    fn with_a_slot_for_every_state_nothing_is_run_again() {
        for n in 0..50 {
            assert_eq!(again(n, n.max(1)), 0);
            assert_eq!(kept(n, n.max(1)), (1..n).collect::<Vec<_>>());
        }
        assert_eq!(again(51, 50), 0, "the state before the last round needs no slot");
    }

    #[test]
    fn twice_the_square_root_of_slots_runs_each_round_at_most_once_again() {
        for n in [250u64, 1000, 4000, 100_000] {
            let slots = tonnage_core::looping::default_slots(n);
            assert!(again(n, slots) < n, "{n}: {}", again(n, slots));
            assert_eq!(times(n, slots), 2);
        }
    }

    #[test]
    fn the_forward_run_keeps_no_more_states_than_there_are_slots() {
        for s in 1..30 {
            for n in 0..300 {
                let kept = kept(n, s);
                assert!(kept.len() as u64 <= s && kept.is_sorted());
                assert_eq!(kept.len() as u64, tonnage_core::looping::kept(n, Some(s as usize)));
                assert_eq!(kept.last().copied(), (n > 1).then(|| n - 1));
            }
        }
    }
}
