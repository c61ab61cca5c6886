//! How a product is cut: which loops run it, among how many threads, and the packing space each needs.
//!
//! A function of sizes, kernel and thread count alone, so that `scratch_bytes` and the run agree. What decides the
//! bits of a result (the loops and the cut along K) does not look at the thread count.
//!
//! Decision: `docs/decisions/more-parts-than-threads.md`.

use std::ops::Range;

use tonnage_ops::linalg::Size;
use tonnage_simd::product::amx::SIDE;
use tonnage_simd::product::{Compute, GEMV_MAX, MicroKernel};

use super::bf16_dot;
use super::operand::Packs;

/// Which loops run a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GemmPath {
    /// Packed blocks and register tiles.
    Tiles,
    /// Packed blocks of `bf16` and the matrix unit.
    Bf16Dot,
    /// GEMV: the left operand has a few rows; the right one is read once.
    GemvRows,
    /// GEMV: the right operand has a few columns; the left one is read once.
    GemvCols,
    /// Skinny GEMM: the left operand has some rows, and the right one is large: it is read once too, where it lies in rows,
    /// and in tiles where it does not.
    SkinnyRows,
}

/// What else packing space depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct GemmOptions {
    /// How the left operand is packed.
    pub left: Packs,
    /// Sums are kept in scratch and then moved into the result, which has another dtype or no even rows.
    pub sums_in_scratch: bool,
    /// Operands and result are `bf16`, for which the machine has dot-product instructions.
    pub bf16_dot: bool,
}

/// Elements from which on an operand does not stay in the caches of a core, and is best read in the order of memory.
const FAR: usize = 1 << 19;

/// Elements of a row that are worth a stream of memory.
const LONG: usize = 256;

/// Elements of the long side that are summed at once by GEMV: a page of `f32`.
const GEMV_CHUNK: usize = 1024;

/// The same for one row or two, whose sums stay in L1: memory is read the faster the longer its runs are.
const LONG_GEMV_CHUNK: usize = 2 * GEMV_CHUNK;

/// The cut along K of GEMV.
pub(super) const GEMV_K: usize = 1024;

/// Steps of K that are one chain of additions there, where rows of the large operand are added up; a longer one
/// would lose more bits. With some rows it is a block of tiles, which may be what computes them.
pub(super) const GEMV_CHAIN: usize = 128;

/// Steps of K that are packed at once there, where the operand has to be: half as many of long chunks.
const GEMV_RUN: usize = 16;

/// Rows and columns of the block of sums that is kept where the result has another dtype: 1 MiB.
pub(super) const SUMS: usize = 512;

/// Work below this is not worth a thread: a few microseconds of it, as handing over is.
const FLOPS_PER_THREAD: f64 = 1e6;

/// Rows are cut between threads at multiples of this. Tiles of an even part are made even, so that whole tiles of the
/// kernel would only make one part larger than the other.
const ROW_UNIT: usize = 4;

/// The most shares of the work that a piece begins with: whoever is done first takes one that another has not begun.
const SHARES: usize = 4;

/// The most shares that are told apart by the bits of a word.
pub(super) const TOLD_APART: usize = u64::BITS as usize;

/// What packing an element costs, where a multiplication-addition counts 1.
const PACKING: usize = 16;

/// Packing may take one part in that many of the work where a product is cut into more parts than threads.
const LITTLE: usize = 40;

/// Every part of the packing space starts at a cache line.
pub(super) const ALIGN: usize = 64;

/// Columns of a product, in tiles of a wider kernel, from which on that is worth its last tile, which may be nearly empty.
const MANY_TILES: usize = 5;

/// Rows from which on it is: fewer are read by taller tiles, which read the right operand less often.
const MANY_ROWS: usize = 64;

/// The kernel for products of such a size: that one, or its wider one.
pub(super) fn suited<C: Compute>(
    kernel: &'static MicroKernel<C>,
    whole: Size,
    left: Packs,
) -> &'static MicroKernel<C> {
    let suits = |wider: &&MicroKernel<C>| {
        let many = whole.cols >= MANY_TILES * wider.cols && whole.rows >= MANY_ROWS;
        many && left == Packs::Blocks
    };
    kernel.wider.filter(suits).unwrap_or(kernel)
}

/// How `thin` rows or columns by a `long` side are summed: elements of the long side at once, and steps of K to pack.
pub(super) fn gemv_chunk(thin: usize, long: usize) -> (usize, usize) {
    let chunk = if thin <= 2 { long.min(LONG_GEMV_CHUNK) } else { long.min(GEMV_CHUNK) };
    (chunk, if chunk > GEMV_CHUNK { GEMV_RUN / 2 } else { GEMV_RUN })
}

/// Elements that are packed at once of chunks that are no longer than one.
pub(super) fn gemv_packed(chunk: usize, k: usize) -> usize {
    let (short, long) = (chunk.min(GEMV_CHUNK) * k.min(GEMV_RUN), chunk * k.min(GEMV_RUN / 2));
    short.max(long).max(k.min(GEMV_K))
}

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(super) struct GemmPlan {
    pub path: GemmPath,
    /// Pieces that run at once, each with a slot of packing space.
    pub pieces: usize,
    /// The work in shares, each some parts: at least one for each piece.
    pub shares: usize,
    /// Into how many parts each product's rows and columns are cut.
    parts: (usize, usize),
    /// The unit of the cuts, of rows and of columns.
    unit: (usize, usize),
    size: Size,
    options: GemmOptions,
    /// K of a block (KC in BLIS): the cut along K.
    pub k_block: usize,
    /// Elements of a slot.
    pub slot: usize,
}

/// The most columns of a product that is run as GEMV. A left operand that is not in cache takes the time to read, and rows
/// that are read to their end are read the fastest: twice as many then.
fn max_gemv_cols(size: Size) -> usize {
    let far = size.k >= LONG && size.rows.saturating_mul(size.k) >= FAR;
    if far { 2 * GEMV_MAX } else { GEMV_MAX }
}

/// The most rows of a product that is run as skinny GEMM: where the right operand has long rows, and many.
fn max_skinny_rows<C: Compute>(size: Size, kernel: &MicroKernel<C>) -> usize {
    let far = size.cols >= LONG && size.cols.saturating_mul(size.k) >= FAR;
    if far { kernel.streams } else { GEMV_MAX }
}

impl GemmPath {
    fn of<C: Compute>(
        size: Size,
        kernel: &MicroKernel<C>,
        left: Packs,
        bf16_dot: bool,
    ) -> GemmPath {
        match size {
            Size { rows, cols, .. } if rows <= GEMV_MAX && rows <= cols => GemmPath::GemvRows,
            _ if bf16_dot && bf16_dot::pays(size) => GemmPath::Bf16Dot,
            // What is not read once, but in strips or bands that rows share, has its tiles.
            Size { cols, .. } if cols <= max_gemv_cols(size) && left == Packs::Blocks => {
                GemmPath::GemvCols
            }
            _ if left == Packs::Blocks && size.rows <= max_skinny_rows(size, kernel) => {
                GemmPath::SkinnyRows
            }
            _ => GemmPath::Tiles,
        }
    }
}

impl GemmPlan {
    /// Of a product of that size, which is `whole` or a part of it: what decides the bits follows from the whole.
    pub fn new<C: Compute>(
        whole: Size,
        size: Size,
        kernel: &MicroKernel<C>,
        options: GemmOptions,
        threads: usize,
    ) -> GemmPlan {
        let path = GemmPath::of(whole, kernel, options.left, options.bf16_dot);
        let unit = match path {
            GemmPath::Bf16Dot => (SIDE, SIDE),
            _ => (ROW_UNIT, kernel.cols),
        };
        let flops = 2.0 * size.batch as f64 * size.rows as f64 * size.cols as f64 * size.k as f64;
        let worth = (flops / FLOPS_PER_THREAD) as usize;
        let pieces = threads.min(worth).max(1);
        // Enough parts that all pieces get the same, or so many that it does not show. (Divisions are what a tiny
        // product spends its time on: none of them for one piece.)
        let mut per_product = 1;
        while pieces > 1
            && !(size.batch * per_product).is_multiple_of(pieces)
            && size.batch * per_product < 4 * pieces
        {
            per_product += 1;
        }
        let tiles = (kernel.rows, unit);
        let parts = match (pieces, options.left) {
            (2.., Packs::Blocks) => finer(size, path, tiles, per_product),
            _ => grid(size, path, tiles, per_product),
        };
        let all = size.batch.saturating_mul(parts.0 * parts.1);
        let pieces = pieces.min(all).max(1);
        let shares = worth.min(all).min(TOLD_APART).min(SHARES * pieces).max(pieces);
        let k_block = k_of_block(whole, kernel, options.left);
        let mut plan =
            GemmPlan { path, pieces, shares, parts, unit, size, options, k_block, slot: 0 };
        plan.slot = plan.slot_of(kernel);
        plan
    }

    /// Bytes of packing space, wherever it starts.
    pub fn bytes(&self, element: usize) -> usize {
        match self.pieces * self.slot * element {
            0 => 0,
            bytes => bytes + ALIGN - 1,
        }
    }

    /// Bytes of the largest slot of any product that is no larger than this one, where the result has the dtype that it
    /// is computed in.
    pub fn most<C: Compute>(size: Size, kernel: &MicroKernel<C>) -> usize {
        let wider = kernel.wider.map_or(0, |wider| GemmPlan::most(size, wider));
        let some =
            max_skinny_rows(size, kernel).min(size.rows.max(GEMV_MAX)).max(max_gemv_cols(size));
        let k_block = size.k.min(kernel.block_k);
        most_of_tiles(size, k_block, kernel, false).max(most_of_gemv::<C>(size, some)).max(wider)
    }

    /// The same of any part of a product that is no larger than `part`.
    pub fn most_of_parts<C: Compute>(
        whole: Size,
        part: Size,
        kernel: &MicroKernel<C>,
        (sums_in_scratch, bf16_dot): (bool, bool),
    ) -> usize {
        let k_block = part.k.min(k_of_block(whole, kernel, Packs::Blocks));
        match GemmPath::of(whole, kernel, Packs::Blocks, bf16_dot) {
            GemmPath::Tiles => most_of_tiles(part, k_block, kernel, sums_in_scratch),
            GemmPath::Bf16Dot => {
                slot_bytes::<C>([bf16_dot::most_space(part.rows, part.cols, part.k), 0, 0, 0])
            }
            GemmPath::GemvRows => most_of_gemv::<C>(part, GEMV_MAX),
            GemmPath::GemvCols => most_of_gemv::<C>(part, max_gemv_cols(whole)),
            GemmPath::SkinnyRows => {
                let thin = most_of_gemv::<C>(part, part.rows.max(GEMV_MAX));
                most_of_tiles(part, k_block, kernel, sums_in_scratch).max(thin)
            }
        }
    }

    /// Multiples of K at which a product may be cut into parts that are added up, without changing a bit; `None` where it may
    /// not be, since sums are rounded when they are complete. `mn_major` where the operand for whose sake it is cut is
    /// MN-major; `left` where it is the left one.
    pub fn k_unit<C: Compute>(
        whole: Size,
        kernel: &MicroKernel<C>,
        sums_in_scratch: bool,
        left: bool,
        mn_major: bool,
    ) -> Option<usize> {
        let path = GemmPath::of(whole, kernel, Packs::Blocks, false);
        let many = left == (path == GemmPath::GemvCols);
        match path {
            _ if sums_in_scratch => None,
            // Between blocks, and between chains of additions.
            GemmPath::Tiles | GemmPath::Bf16Dot | GemmPath::SkinnyRows => {
                Some(k_of_block(whole, kernel, Packs::Blocks).max(1))
            }
            GemmPath::GemvRows | GemmPath::GemvCols if many && mn_major => Some(GEMV_CHAIN),
            GemmPath::GemvRows | GemmPath::GemvCols => Some(GEMV_K),
        }
    }

    /// The shares that a piece begins with.
    pub fn own(&self, piece: usize) -> Range<usize> {
        piece * self.shares / self.pieces..(piece + 1) * self.shares / self.pieces
    }

    /// The parts of all products in a run of shares.
    pub fn items(&self, shares: Range<usize>) -> Range<usize> {
        let all = self.size.batch * self.parts.0 * self.parts.1;
        if self.pieces == 1 {
            return 0..all;
        }
        shares.start * all / self.shares..shares.end * all / self.shares
    }

    /// An item's product, rows and columns.
    pub fn item(&self, item: usize) -> (usize, Range<usize>, Range<usize>) {
        let per_product = self.parts.0 * self.parts.1;
        if per_product == 1 {
            return (item, 0..self.size.rows, 0..self.size.cols);
        }
        let (batch, part) = (item / per_product, item % per_product);
        let rows = cut(self.size.rows, self.unit.0, self.parts.0, part / self.parts.1);
        let cols = cut(self.size.cols, self.unit.1, self.parts.1, part % self.parts.1);
        (batch, rows, cols)
    }

    /// Whether sums are kept in scratch.
    pub fn sums_in_scratch(&self) -> bool {
        self.options.sums_in_scratch
    }

    fn slot_of<C: Compute>(&self, kernel: &MicroKernel<C>) -> usize {
        let sums_in_scratch = self.options.sums_in_scratch;
        let unit = ALIGN / size_of::<C>();
        let rows = largest(self.size.rows, self.unit.0, self.parts.0);
        let cols = largest(self.size.cols, self.unit.1, self.parts.1);
        let k = self.size.k;
        let of = |path: GemmPath| {
            let parts = match path {
                GemmPath::Tiles => {
                    let (rows, cols) = if sums_in_scratch {
                        (rows.min(SUMS), cols.min(SUMS))
                    } else {
                        (rows, cols)
                    };
                    let tile = kernel.rows_of_tile(rows, self.size.cols);
                    let mn_len = match self.options.left {
                        Packs::Blocks => rows.next_multiple_of(tile).min(kernel.block_rows),
                        Packs::Strips { .. } | Packs::Band { .. } => {
                            kernel.most_rows(self.size.cols)
                        }
                    };
                    let band =
                        if let Packs::Band { space, .. } = self.options.left { space } else { 0 };
                    let wide = cols.next_multiple_of(kernel.cols).min(kernel.block_cols);
                    let k_block = self.k_block;
                    [
                        band.max(mn_len * k_block),
                        wide * k_block,
                        if sums_in_scratch { rows * cols } else { 0 },
                        0,
                    ]
                }
                GemmPath::Bf16Dot => [bf16_dot::space(rows, cols, k), 0, 0, 0],
                GemmPath::GemvRows | GemmPath::GemvCols | GemmPath::SkinnyRows => {
                    let transposed = path == GemmPath::GemvCols;
                    let (thin, long) = if transposed { (cols, rows) } else { (rows, cols) };
                    let (chunk, _) = gemv_chunk(thin, long);
                    let k_block = k.min(GEMV_K);
                    let packed = gemv_packed(chunk, k);
                    [thin * k_block, packed, thin * chunk, thin * chunk]
                }
            };
            parts.iter().map(|part| part.next_multiple_of(unit)).sum::<usize>()
        };
        match self.path {
            GemmPath::SkinnyRows => of(GemmPath::SkinnyRows).max(of(GemmPath::Tiles)),
            path => of(path),
        }
    }
}

/// In blocks that are of at most that K.
fn most_of_tiles<C: Compute>(
    size: Size,
    k_block: usize,
    kernel: &MicroKernel<C>,
    sums_in_scratch: bool,
) -> usize {
    let (rows, cols) = match sums_in_scratch {
        true => (size.rows.min(SUMS), size.cols.min(SUMS)),
        false => (size.rows, size.cols),
    };
    let mn_len = (rows + kernel.tall).min(kernel.block_rows.max(kernel.tall));
    let wide = cols.next_multiple_of(kernel.cols).min(kernel.block_cols);
    slot_bytes::<C>([
        mn_len * k_block,
        wide * k_block,
        if sums_in_scratch { rows * cols } else { 0 },
        0,
    ])
}

/// With `thin` rows or columns of the small operand.
fn most_of_gemv<C>(size: Size, thin: usize) -> usize {
    let (long, k_block) = (size.rows.max(size.cols), size.k.min(GEMV_K));
    let packed = gemv_packed(long.min(LONG_GEMV_CHUNK), size.k);
    // Two long chunks of sums are no more than `GEMV_MAX` others.
    let chunk = long.min(GEMV_CHUNK);
    slot_bytes::<C>([thin * k_block, packed, thin * chunk, thin * chunk])
}

/// Parts of a slot, each from a cache line on.
fn slot_bytes<C>(parts: [usize; 4]) -> usize {
    let unit = ALIGN / size_of::<C>();
    parts.iter().map(|part| part.next_multiple_of(unit)).sum::<usize>() * size_of::<C>()
}

/// The most bytes of a block of the right operand, where the cut along K is free: for a part of L2.
const BLOCK: usize = 1 << 20;

/// The most steps of K then.
const MAX_K_BLOCK: usize = 2048;

/// K of one block: all blocks but the last have that K. It decides bits, so that it looks at the
/// whole product and not at what a thread has of it.
fn k_of_block<C: Compute>(size: Size, kernel: &MicroKernel<C>, left: Packs) -> usize {
    let even = kernel.k_of_block(size.rows, size.k).min(size.k);
    let unit = match left {
        Packs::Blocks => return even,
        Packs::Band { k_block, .. } => return k_block.clamp(1, size.k.max(1)),
        Packs::Strips { unit, .. } => unit,
    };
    let wide = size.cols.next_multiple_of(kernel.cols).min(kernel.block_cols);
    let most = (BLOCK / (wide * size_of::<C>()).max(1)).min(MAX_K_BLOCK) / unit.max(1);
    if unit < 2 || most == 0 || !size.k.is_multiple_of(unit) {
        return even;
    }
    let units = size.k / unit;
    let blocks = units.div_ceil(most).max(1);
    units.div_ceil(blocks) * unit
}

/// Part `part` of `parts` of `0..len`, cut between tiles.
fn cut(len: usize, tile: usize, parts: usize, part: usize) -> Range<usize> {
    let tiles = len.div_ceil(tile);
    let at = |part: usize| (tiles * part / parts * tile).min(len);
    at(part)..at(part + 1)
}

/// The length of the longest part.
fn largest(len: usize, tile: usize, parts: usize) -> usize {
    if parts == 1 {
        return len;
    }
    (len.div_ceil(tile).div_ceil(parts) * tile).min(len)
}

/// Cuts a product into some times `parts` parts, so that a thread that is done can take one from a thread that is not: cores
/// are seldom alike for as long as a large product takes, and never where a machine is shared. Just once where smaller parts
/// would be packed too often, or be shorter than what is summed at once.
fn finer(
    size: Size,
    path: GemmPath,
    tiles: (usize, (usize, usize)),
    parts: usize,
) -> (usize, usize) {
    let unit = tiles.1;
    let pays = |(r, c): (usize, usize)| {
        let (rows, cols) = (largest(size.rows, unit.0, r), largest(size.cols, unit.1, c));
        match path {
            GemmPath::Tiles => {
                rows.saturating_mul(cols) >= (LITTLE * PACKING).saturating_mul(rows + cols)
            }
            GemmPath::GemvRows | GemmPath::SkinnyRows => cols >= gemv_chunk(rows, size.cols).0,
            GemmPath::GemvCols => rows >= gemv_chunk(cols, size.rows).0,
            GemmPath::Bf16Dot => false,
        }
    };
    (2..=SHARES)
        .rev()
        .map(|times| grid(size, path, tiles, times * parts))
        .find(|&parts| pays(parts))
        .unwrap_or_else(|| grid(size, path, tiles, parts))
}

/// Cuts a product into at most `parts` parts: the rows times columns that let the slowest finish soonest. Of
/// those that are alike, the one with the most parts of rows: what is done with the result next is cut along its
/// first axis too, and so each thread finds what it made itself.
fn grid(
    size: Size,
    path: GemmPath,
    (tile, unit): (usize, (usize, usize)),
    parts: usize,
) -> (usize, usize) {
    if parts == 1 {
        return (1, 1);
    }
    let most = (size.rows.div_ceil(tile), size.cols.div_ceil(unit.1));
    match path {
        GemmPath::GemvRows | GemmPath::SkinnyRows => return (1, parts.min(most.1).max(1)),
        GemmPath::GemvCols => return (parts.min(most.0).max(1), 1),
        GemmPath::Tiles | GemmPath::Bf16Dot => {}
    }
    let cost = |(r, c): (usize, usize)| {
        let rows = largest(size.rows, unit.0, r) as u128;
        let cols = largest(size.cols, unit.1, c) as u128;
        rows * cols + PACKING as u128 * (rows + cols)
    };
    let mut best = (1, 1);
    for r in (1..=parts.min(most.0)).rev() {
        let candidate = (r, (parts / r).min(most.1).max(1));
        if cost(candidate) < cost(best) {
            best = candidate;
        }
    }
    best
}
