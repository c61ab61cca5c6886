//! How a length is transformed, and how many elements that takes: a function of the length alone.
//!
//! * A short row goes with others: as many as there are lanes, side by side.
//! * A long one is a matrix, `rows` by `cols` (Gentleman and Sande, 1966): its columns are transformed side by side, all is
//!   multiplied by twiddle factors, and then its rows are, which by then lie as columns did. So a row of n elements wants
//!   tables of about the root of n, but for one of n over the lanes, and each part of the work fits a cache.
//! * One with a large prime in it is a convolution of a length that has none (Bluestein, 1970).

use super::lanes::{LANES, is_smooth};

/// From here on a row is a matrix.
const MATRIX: usize = 256;

/// From here on all threads work on one row.
const SHARED: usize = 1 << 18;

/// How a length is transformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FftMethod {
    /// Of the row.
    pub n: usize,
    /// Of the row, or of its convolution.
    pub len: usize,
    /// The length of the first transforms.
    pub rows: usize,
    /// The length of the second ones: 1 where rows are short.
    pub cols: usize,
}

impl FftMethod {
    /// Of a length that is not 0.
    pub fn of(n: usize) -> FftMethod {
        let len = if is_smooth(n) { n } else { convolution(n) };
        let (rows, cols) = if len < MATRIX { (len, 1) } else { matrix(len) };
        FftMethod { n, len, rows, cols }
    }

    /// Whether a row is a matrix.
    pub fn is_matrix(self) -> bool {
        self.cols > 1
    }

    /// Whether a row is a convolution.
    pub fn is_convolution(self) -> bool {
        self.len != self.n
    }

    /// Whether all threads work on one row.
    pub fn is_shared(self) -> bool {
        self.len >= SHARED
    }

    /// Rows that are transformed at a time.
    pub fn group(self) -> usize {
        if self.is_matrix() { 1 } else { LANES }
    }

    /// Blocks of columns: as many as lanes, or fewer in the last one.
    pub fn blocks(self) -> usize {
        self.cols.div_ceil(LANES)
    }

    /// Rows of a block, with those that make squares of it.
    pub fn height(self) -> usize {
        self.rows.next_multiple_of(LANES)
    }

    /// Elements of the longest transform side by side.
    pub fn lanes(self) -> usize {
        LANES * self.rows.max(self.blocks() * LANES * usize::from(self.is_matrix()))
    }
}

/// The best length that holds a convolution of rows of `n`: few elements, and few odd factors.
fn convolution(n: usize) -> usize {
    let least = 2 * n - 1;
    let with = |odd: usize| odd * least.div_ceil(odd).next_power_of_two();
    [1, 3, 5, 9, 15].map(with).into_iter().min().unwrap_or(least)
}

/// The two factors that leave the fewest lanes empty, and are the nearest to each other.
fn matrix(len: usize) -> (usize, usize) {
    let waste = |n: usize| n.next_multiple_of(LANES) as f64 / n as f64;
    let work = |n: usize| (n as f64).log2();
    let cost = |rows: usize| {
        let cols = len / rows;
        let far = (rows.max(cols) as f64 / (len as f64).sqrt()).log2();
        waste(cols) * work(rows) + waste(rows) * work(cols) + 0.25 * far
    };
    let root = len.isqrt();
    let divisors = (2..=root).rev().filter(|n| len.is_multiple_of(*n)).take(8);
    let pairs = divisors.flat_map(|n| [n, len / n]);
    let best = pairs.min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(len);
    (best, len / best)
}
