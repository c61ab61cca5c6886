//! How many states of a loop its gradient stores.

/// States that a gradient stores at once, the first one included, by default: all of up to
/// 16 iterations, about twice the square root beyond, and never fewer for more iterations.
///
/// ```
/// use tonnage_core::loop_checkpoints::default_max_checkpoints;
/// assert_eq!([1, 16, 17, 250, 4000].map(default_max_checkpoints), [1, 16, 16, 32, 127]);
/// ```
pub fn default_max_checkpoints(iterations: u64) -> u64 {
    let square = iterations.saturating_mul(4);
    let root = square.isqrt();
    let twice = if root * root < square { root + 1 } else { root };
    match iterations {
        0..=16 => iterations.max(1),
        _ => twice.max(16),
    }
}

/// How many states are stored besides the first one. With as many checkpoints as there are iterations but one, all
/// are; with fewer, the checkpoints less the first state's, and the state before the last iteration, which the backward pass starts
/// from.
pub fn checkpoint_rows(iterations: u64, max_checkpoints: Option<usize>) -> u64 {
    let max_checkpoints =
        max_checkpoints.map_or_else(|| default_max_checkpoints(iterations), |n| (n as u64).max(1));
    iterations.saturating_sub(1).min(max_checkpoints)
}
