//! Tiles for attention in plain sums, which every float may have.

use tonnage_core::DType;
use tonnage_ops::nn::attention::computed;

use crate::emit::THREADS;

/// Shared memory that every block of threads may have.
const SHARED_BYTES: usize = 48 << 10;

/// Queries and keys of a tile, the largest first.
const TILES: [(usize, usize); 8] =
    [(64, 32), (32, 32), (32, 16), (16, 16), (8, 8), (4, 4), (2, 2), (1, 1)];

/// The largest tile that fits.
pub fn tile(grad: bool, dtype: DType, (d, e): (usize, usize)) -> Option<(usize, usize)> {
    let numbers = |(q, k): (usize, usize)| match grad {
        false => d * q + d.max(e) * k + q * k + 3 * q + THREADS as usize,
        true => (d + e) * (q + 1 + k + 1) + 2 * q * k + 3 * q,
    };
    let size = computed(dtype).size();
    TILES.into_iter().find(|tile| numbers(*tile) * size <= SHARED_BYTES)
}
