//! The binomial schedule of Revolve (Griewank and Walther, *Algorithm 799: Revolve*, ACM TOMS 26, 2000): the
//! fewest iterations that have to be recomputed, for a known number of iterations and checkpoints.
//!
//! Their count `t(N, s)` is of iterations that are *advanced* through: the forward pass up to the state before the
//! last iteration, N - 1 of them, and all that are recomputed. The backward step of an iteration is not counted. A
//! loop that is differentiated runs its last iteration too, for its result, so it advances through `t(N, s) + 1`
//! iterations in all: N the first time, and [`recomputed`] = `t(N, s) - (N - 1)` more.

/// Iterations that can be walked backward with `max_checkpoints` checkpoints where no iteration is advanced through more than
/// `times` times: the binomial coefficient of `max_checkpoints + times` over `max_checkpoints`. Saturates.
pub fn reach(max_checkpoints: u64, times: u64) -> u64 {
    let (small, large) = (max_checkpoints.min(times), max_checkpoints.max(times));
    let mut value: u128 = 1;
    for i in 1..=u128::from(small) {
        value = value * (u128::from(large) + i) / i;
        if value > u128::from(u64::MAX) {
            return u64::MAX;
        }
    }
    value as u64
}

/// How often an iteration is advanced through at most.
pub fn times(iterations: u64, max_checkpoints: u64) -> u64 {
    if max_checkpoints == 1 {
        return iterations.saturating_sub(1);
    }
    (0..).find(|times| reach(max_checkpoints, *times) >= iterations).unwrap_or(u64::MAX)
}

/// Iterations that are advanced through in all, `t(N, s)`. Saturates.
///
/// ```
/// use tonnage_plan::schedule::revolve;
/// assert_eq!(revolve::steps(4, 4), 3); // a slot for every state
/// assert_eq!(revolve::steps(10, 3), 15);
/// ```
pub fn steps(iterations: u64, max_checkpoints: u64) -> u64 {
    let max_checkpoints = max_checkpoints.max(1);
    if iterations <= 1 {
        return 0;
    }
    let times = times(iterations, max_checkpoints);
    times.saturating_mul(iterations).saturating_sub(reach(max_checkpoints + 1, times - 1))
}

/// Iterations that are recomputed: all but those of the forward pass.
pub fn recomputed(iterations: u64, max_checkpoints: u64) -> u64 {
    steps(iterations, max_checkpoints).saturating_sub(iterations.saturating_sub(1))
}

/// How far to advance from the first of `iterations` iterations, whose state is in one of the checkpoints, before the
/// next state is checkpointed. At least two checkpoints and two iterations.
///
/// With `r` as in [`times`], any length is right that leaves behind it what `max_checkpoints` checkpoints reach in `r - 2` to
/// `r - 1` times, and before it what one fewer reach in `r - 1` to `r` times; this is the longest.
pub fn advance(iterations: u64, max_checkpoints: u64) -> u64 {
    let times = times(iterations, max_checkpoints);
    let longest = reach(max_checkpoints, times.saturating_sub(1));
    let rest = reach(max_checkpoints - 1, times.saturating_sub(1));
    longest.min(iterations.saturating_sub(rest)).clamp(1, iterations.saturating_sub(1).max(1))
}

/// The states that the forward pass checkpoints besides the first, in order, and the one before the last iteration,
/// which the backward pass starts from: at most as many as there are checkpoints.
pub fn checkpointed(iterations: u64, max_checkpoints: u64) -> Vec<u64> {
    let mut all = Vec::new();
    let (mut start, mut max_checkpoints) = (0, max_checkpoints.max(1));
    while iterations - start > 1 && max_checkpoints > 1 {
        start += advance(iterations - start, max_checkpoints);
        max_checkpoints -= 1;
        all.push(start);
    }
    if iterations - start > 1 {
        all.push(iterations - 1);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fewest advances, by looking at every place for the next state: the definition, for up to `most`
    /// iterations and checkpoints. `best[s][n]` walks n iterations backward.
    fn optimum(most: usize, max_checkpoints: usize) -> Vec<Vec<u64>> {
        let mut best = vec![vec![0u64; most + 1]; max_checkpoints + 1];
        for (n, best) in best[1].iter_mut().enumerate() {
            // One checkpoint: from the start, to every state.
            *best = (1..n as u64).sum();
        }
        for s in 2..=max_checkpoints {
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
                assert_eq!(steps(n as u64, s as u64), *fewest, "{n} iterations, {s} checkpoints");
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
                assert_eq!(total, best[s][n], "{n} iterations, {s} checkpoints, {k} at first");
            }
        }
    }

    #[test]
    fn with_a_checkpoint_for_every_state_nothing_is_recomputed() {
        for n in 0..50 {
            assert_eq!(recomputed(n, n.max(1)), 0);
            assert_eq!(checkpointed(n, n.max(1)), (1..n).collect::<Vec<_>>());
        }
        assert_eq!(
            recomputed(51, 50),
            0,
            "the state before the last iteration needs no checkpoint"
        );
    }

    #[test]
    fn twice_the_square_root_of_checkpoints_recomputes_each_iteration_at_most_once() {
        for n in [250u64, 1000, 4000, 100_000] {
            let max_checkpoints = tonnage_core::loop_checkpoints::default_max_checkpoints(n);
            assert!(recomputed(n, max_checkpoints) < n, "{n}: {}", recomputed(n, max_checkpoints));
            assert_eq!(times(n, max_checkpoints), 2);
        }
    }

    #[test]
    fn the_forward_pass_saves_no_more_states_than_there_are_checkpoints() {
        for s in 1..30 {
            for n in 0..300 {
                let checkpointed = checkpointed(n, s);
                assert!(checkpointed.len() as u64 <= s && checkpointed.is_sorted());
                assert_eq!(
                    checkpointed.len() as u64,
                    tonnage_core::loop_checkpoints::checkpoint_rows(n, Some(s as usize))
                );
                assert_eq!(checkpointed.last().copied(), (n > 1).then(|| n - 1));
            }
        }
    }
}
