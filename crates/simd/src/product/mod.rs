//! Micro-kernels: what one core computes without leaving its registers.
//!
//! A [`MicroKernel`] is chosen once per product, by dtype and [`GemmLevel`]. Its `tile` computes a small block of
//! the result. Every element is one chain of additions in the order of K, whatever the tile's
//! size and wherever it starts: that is why the bits do not depend on how threads cut the result.

#![allow(unsafe_code, reason = "the instruction that prefetches takes a pointer")]

pub mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod compute;
mod flush;
mod gemv;
mod portable;
#[cfg(target_arch = "x86_64")]
mod skinny;
pub mod transpose;
pub mod vnni;
#[cfg(target_arch = "x86_64")]
mod wide;
mod widened;

pub use compute::{Compute, GemmOutput, Reads};
pub use flush::Flushed;
pub use gemv::{GEMV_MAX, GemvStream, SIDE_BY_SIDE};

/// Which instructions a kernel may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GemmLevel {
    /// What every machine of the target has.
    Portable,
    /// x86-64 with AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// x86-64 with the AVX-512 subsets of Skylake servers.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// The same, with a unit that multiplies matrices of `bf16`.
    #[cfg(target_arch = "x86_64")]
    Amx,
}

impl GemmLevel {
    /// All that this target can name, the slowest first.
    #[cfg(target_arch = "x86_64")]
    pub const ALL: &[GemmLevel] =
        &[GemmLevel::Portable, GemmLevel::Avx2, GemmLevel::Avx512, GemmLevel::Amx];
    /// All that this target can name, the slowest first.
    #[cfg(not(target_arch = "x86_64"))]
    pub const ALL: &[GemmLevel] = &[GemmLevel::Portable];

    /// True where this machine has it. The standard library caches the answer.
    pub fn is_available(self) -> bool {
        match self {
            GemmLevel::Portable => true,
            #[cfg(target_arch = "x86_64")]
            GemmLevel::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            GemmLevel::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("fma")
            }
            #[cfg(target_arch = "x86_64")]
            GemmLevel::Amx => GemmLevel::Avx512.is_available() && amx::is_available(),
        }
    }

    /// True where there is an instruction for dot products of `bf16` (AMX).
    pub fn has_bf16_dot(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self == GemmLevel::Amx;
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// The fastest that this machine has.
    pub fn best() -> GemmLevel {
        GemmLevel::ALL
            .iter()
            .rev()
            .copied()
            .find(|level| level.is_available())
            .unwrap_or(GemmLevel::Portable)
    }
}

/// Steps of K side by side that are worth a vector.
pub const ALONG: usize = 16;

/// Asks the cache for elements that are read later. Any pointer will do.
#[inline(always)]
pub fn fetch<T>(from: *const T, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for byte in (0..len * size_of::<T>()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program could see, and faults nowhere.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast::<i8>().wrapping_add(byte)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, len);
}

/// One call of a micro-kernel: `c[..rows, ..cols] (+)= a[..rows, ..k] * b[..k, ..cols]`.
///
/// Strides count elements. The columns of `b` and of `c` lie side by side.
pub struct Tile<C> {
    /// Steps of K.
    pub k: usize,
    /// The first element of the left operand.
    pub a: *const C,
    /// From one of its rows to the next.
    pub a_row: isize,
    /// From one of its steps of K to the next.
    pub a_k: isize,
    /// Steps of K, at least 1, after which `a` lies further on by `a_jump` besides.
    pub a_run: usize,
    /// What `a` moves on by after a run, besides.
    pub a_jump: isize,
    /// After `a_first` such runs, and then after every `a_period` of them, `a` lies further on by `a_leap` besides.
    pub a_first: usize,
    /// Runs between two leaps.
    pub a_period: usize,
    /// What `a` moves on by in a leap.
    pub a_leap: isize,
    /// The first element of the right operand.
    pub b: *const C,
    /// From one of its steps of K to the next.
    pub b_k: isize,
    /// Where to pack `b` as a panel; null for nowhere. Then the tile must have at least [`MicroKernel::min_packing_rows`] rows.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "vector kernels read it"))]
    pub pack_to: *mut C,
    /// The first element of the result.
    pub c: *mut C,
    /// From one of its rows to the next.
    pub c_row: isize,
    /// 1 to [`MicroKernel::rows`], or to [`MicroKernel::tall`] where it may.
    pub rows: usize,
    /// 1 to [`MicroKernel::cols`].
    pub cols: usize,
    /// Add to what `c` holds, rather than overwrite it.
    pub add: bool,
    /// Begin with what `c` holds: its sums and these are one chain of additions. For kernels that stream by tiles.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "vector kernels read it"))]
    pub onward: bool,
}

impl<C> Tile<C> {
    /// From the end of a run to the start of the next; `runs` are left before a leap.
    #[inline(always)]
    fn jump(&self, runs: &mut usize) -> isize {
        *runs -= 1;
        if *runs > 0 {
            return self.a_jump;
        }
        *runs = self.a_period;
        self.a_jump + self.a_leap
    }
}

/// Needs the instructions of its level; `a`, `b` and `c` must be valid for the tile's extent, `b` for
/// all of the kernel's columns unless the kernel `masks`, `pack_to` for a panel of the tile's K.
pub type TileFn<C> = unsafe fn(&Tile<C>);

/// The micro-kernel of one dtype at one level, with the block sizes that suit it.
pub struct MicroKernel<C: 'static> {
    /// The most rows of a tile.
    pub rows: usize,
    /// The most rows of a tile of at most half the columns: it has registers for more of them.
    pub tall: usize,
    /// The most columns of a tile, and the width of a packed panel of the right operand.
    pub cols: usize,
    /// `tile` reads no column of `b` beyond the tile's own.
    pub masks: bool,
    /// Tiles of that many rows can pack `b` as they go: their loads and stores have slots to spare, so that packing costs
    /// nothing.
    pub min_packing_rows: usize,
    /// K of a block (KC in BLIS): the cut along K. Part of what decides the bits of a result.
    pub block_k: usize,
    /// Up to that many rows, blocks have a quarter of that K, and half of it.
    pub shallow: [usize; 2],
    /// The most rows of the left operand that are packed at once.
    pub block_rows: usize,
    /// Columns of the right operand that are packed at once: a multiple of `cols`, for a part of L2.
    pub block_cols: usize,
    /// The most rows that `stream` is fast with.
    pub streams: usize,
    /// Computes a tile.
    pub tile: TileFn<C>,
    /// The same for at most [`GEMV_MAX`] columns, along K, where the left operand is K-major in runs of at least
    /// [`ALONG`] steps. `b` has a run for each column then, and `b_k` leads from one to the next.
    pub skinny: Option<TileFn<C>>,
    /// Adds multiples of a run of rows to the sums of each row: for GEMV and skinny GEMM. Needs the
    /// instructions of its level.
    pub stream: unsafe fn(&GemvStream<'_, C>, &mut [C]),
    /// The dot product of two slices of one length. Needs the instructions of its level.
    pub dot: unsafe fn(&[C], &[C]) -> C,
    /// Adds those of one slice with several of its length. Needs the instructions of its level.
    pub dots: DotsFn<C>,
    /// A kernel that is faster where there are many columns.
    pub wider: Option<&'static MicroKernel<C>>,
}

/// See [`MicroKernel::dots`].
pub type DotsFn<C> = unsafe fn(&[C], &[&[C]; SIDE_BY_SIDE], &mut [C; SIDE_BY_SIDE]);

impl<C: Compute> MicroKernel<C> {
    /// K of one block in a product with `rows` rows: all blocks but the last have that K. Blocks are evened
    /// out: a thin last block would load and store the whole result for a few multiplications. That is the less to load and
    /// store the fewer rows there are, and a block of the right operand that is read by few of them is better read soon.
    pub fn k_of_block(&self, rows: usize, k: usize) -> usize {
        let [few, some] = self.shallow;
        let most = match rows {
            rows if rows <= few => self.block_k / 4,
            rows if rows <= some => self.block_k / 2,
            _ => self.block_k,
        };
        let blocks = k.div_ceil(most.max(1)).max(1);
        k.div_ceil(blocks).next_multiple_of(4)
    }

    /// The most rows of a tile in a product with `cols` columns.
    pub fn most_rows(&self, cols: usize) -> usize {
        if 2 * cols <= self.cols { self.tall } else { self.rows }
    }

    /// Rows of a tile where `rows` by `cols` are to be covered: evened out too, so that 16 rows are two tiles of 8
    /// rather than 14 and 2.
    pub fn rows_of_tile(&self, rows: usize, cols: usize) -> usize {
        let tiles = rows.div_ceil(self.most_rows(cols)).max(1);
        rows.div_ceil(tiles).max(1)
    }

    /// Rows of the left operand that are packed at once, where `rows` are to be covered by tiles of `tile` rows: evened
    /// out as well, for the right operand is packed anew for each.
    pub fn rows_of_block(&self, rows: usize, tile: usize) -> usize {
        let tiles = rows.div_ceil(tile);
        let blocks = tiles.div_ceil((self.block_rows / tile).max(1)).max(1);
        tiles.div_ceil(blocks) * tile
    }
}
