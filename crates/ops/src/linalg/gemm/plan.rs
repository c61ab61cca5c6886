//! How a product is cut: which loops run it, among how many threads, and the packing space each needs.
//!
//! A function of sizes, kernel and thread count alone, so that `scratch_bytes` and the run agree. What decides the
//! bits of a result (the loops and the cut along K) does not look at the thread count.
//!
//! Decision: `docs/decisions/more-parts-than-threads.md`.

use std::ops::Range;

use super::compute::Compute;
use super::kernel::amx::SIDE;
use super::kernel::{FEW, Kernel};
use super::operand::Packs;
use super::pairs;

/// A batch of products `[rows, depth] x [depth, cols]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// How many products.
    pub batch: usize,
    /// Rows of the left operand and of the result.
    pub rows: usize,
    /// Columns of the right operand and of the result.
    pub cols: usize,
    /// What is summed over: columns of the left operand, rows of the right one.
    pub depth: usize,
}

impl Size {
    /// A single product.
    pub const fn single(rows: usize, cols: usize, depth: usize) -> Size {
        Size { batch: 1, rows, cols, depth }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batch == 0 || self.rows == 0 || self.cols == 0
    }
}

/// Which loops run a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    /// Packed blocks and register tiles.
    Tiles,
    /// Packed blocks of `bf16` and the matrix unit.
    Pairs,
    /// The left operand has a few rows; the right one is read once.
    FewRows,
    /// The right operand has a few columns; the left one is read once.
    FewCols,
    /// The left operand has some rows, and the right one is large: it is read once too, where it lies in rows, and in
    /// tiles where it does not.
    SomeRows,
}

/// What else packing space depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Means {
    /// How the left operand is packed.
    pub left: Packs,
    /// Sums are kept in scratch and then moved into the result, which has another dtype or no even rows.
    pub rounds: bool,
    /// Operands and result are `bf16`, which the machine multiplies in pairs.
    pub pairs: bool,
}

/// So many elements of an operand are more than stays near a core, and worth to be read in the order of memory.
const FAR: usize = 1 << 19;
/// Elements of a row that are worth a stream of memory.
const LONG: usize = 256;
/// Elements of the long side that are summed at once on the path of a few: a page of `f32`.
const FEW_CHUNK: usize = 1024;
/// The same for one line or two, whose sums stay in L1: memory is read the faster the longer its runs are.
const LONG_CHUNK: usize = 2 * FEW_CHUNK;
/// The cut along K on the path of a few.
pub(super) const FEW_DEPTH: usize = 1024;
/// Steps of depth that are one chain of additions on that path, where rows of the large operand are added up; a longer one
/// would lose more bits. With some rows it is a block of tiles, which may be what computes them.
pub(super) const FEW_CHAIN: usize = 128;
/// Steps of depth that are packed at once on that path, where the operand has to be: half as many of long chunks.
const FEW_RUN: usize = 16;
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
    kernel: &'static Kernel<C>,
    whole: Size,
    left: Packs,
) -> &'static Kernel<C> {
    let suits = |wider: &&Kernel<C>| {
        let many = whole.cols >= MANY_TILES * wider.cols && whole.rows >= MANY_ROWS;
        many && left == Packs::Blocks
    };
    kernel.wider.filter(suits).unwrap_or(kernel)
}

/// How `few` lines by a `long` side are summed: elements of the long side at once, and steps of depth to pack.
pub(super) fn chunk_of_few(few: usize, long: usize) -> (usize, usize) {
    let chunk = if few <= 2 { long.min(LONG_CHUNK) } else { long.min(FEW_CHUNK) };
    (chunk, if chunk > FEW_CHUNK { FEW_RUN / 2 } else { FEW_RUN })
}

/// Elements that are packed at once of chunks that are no longer than one.
pub(super) fn packed_of_few(chunk: usize, depth: usize) -> usize {
    let (short, long) = (chunk.min(FEW_CHUNK) * depth.min(FEW_RUN), chunk * depth.min(FEW_RUN / 2));
    short.max(long).max(depth.min(FEW_DEPTH))
}

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub path: Path,
    /// Pieces that run at once, each with a slot of packing space.
    pub pieces: usize,
    /// The work in shares, each some parts: at least one for each piece.
    pub shares: usize,
    /// Into how many parts each product's rows and columns are cut.
    parts: (usize, usize),
    /// The unit of the cuts, of rows and of columns.
    unit: (usize, usize),
    size: Size,
    means: Means,
    /// Depth of a block: the cut along K.
    pub deep: usize,
    /// Elements of a slot.
    pub slot: usize,
}

/// The most columns of a product that are a few. With a left operand that is far its reading takes the time, and lines that are
/// read to their end are read the fastest: twice as many then.
fn few_cols(size: Size) -> usize {
    let far = size.depth >= LONG && size.rows.saturating_mul(size.depth) >= FAR;
    if far { 2 * FEW } else { FEW }
}

/// The most rows of a product that are some: where the right operand has long rows, and many.
fn some_rows<C: Compute>(size: Size, kernel: &Kernel<C>) -> usize {
    let far = size.cols >= LONG && size.cols.saturating_mul(size.depth) >= FAR;
    if far { kernel.streams } else { FEW }
}

impl Path {
    fn of<C: Compute>(size: Size, kernel: &Kernel<C>, left: Packs, pairs: bool) -> Path {
        match size {
            Size { rows, cols, .. } if rows <= FEW && rows <= cols => Path::FewRows,
            _ if pairs && pairs::pays(size) => Path::Pairs,
            // What is not read once, but in strips or bands that lines share, has its tiles.
            Size { cols, .. } if cols <= few_cols(size) && left == Packs::Blocks => Path::FewCols,
            _ if left == Packs::Blocks && size.rows <= some_rows(size, kernel) => Path::SomeRows,
            _ => Path::Tiles,
        }
    }
}

impl Plan {
    /// Of a product of that size, which is `whole` or a part of it: what decides the bits follows from the whole.
    pub fn new<C: Compute>(
        whole: Size,
        size: Size,
        kernel: &Kernel<C>,
        means: Means,
        threads: usize,
    ) -> Plan {
        let path = Path::of(whole, kernel, means.left, means.pairs);
        let unit = match path {
            Path::Pairs => (SIDE, SIDE),
            _ => (ROW_UNIT, kernel.cols),
        };
        let flops =
            2.0 * size.batch as f64 * size.rows as f64 * size.cols as f64 * size.depth as f64;
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
        let parts = match (pieces, means.left) {
            (2.., Packs::Blocks) => finer(size, path, tiles, per_product),
            _ => grid(size, path, tiles, per_product),
        };
        let all = size.batch.saturating_mul(parts.0 * parts.1);
        let pieces = pieces.min(all).max(1);
        let shares = worth.min(all).min(TOLD_APART).min(SHARES * pieces).max(pieces);
        let deep = depth_of_block(whole, kernel, means.left);
        let mut plan = Plan { path, pieces, shares, parts, unit, size, means, deep, slot: 0 };
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
    pub fn most<C: Compute>(size: Size, kernel: &Kernel<C>) -> usize {
        let wider = kernel.wider.map_or(0, |wider| Plan::most(size, wider));
        let some = some_rows(size, kernel).min(size.rows.max(FEW)).max(few_cols(size));
        let deep = size.depth.min(kernel.block_depth);
        most_of_tiles(size, deep, kernel, false).max(most_of_few::<C>(size, some)).max(wider)
    }

    /// The same of any part of a product that is no larger than `part`.
    pub fn most_of_parts<C: Compute>(
        whole: Size,
        part: Size,
        kernel: &Kernel<C>,
        (rounds, pairs): (bool, bool),
    ) -> usize {
        let deep = part.depth.min(depth_of_block(whole, kernel, Packs::Blocks));
        match Path::of(whole, kernel, Packs::Blocks, pairs) {
            Path::Tiles => most_of_tiles(part, deep, kernel, rounds),
            Path::Pairs => {
                slot_bytes::<C>([pairs::most_space(part.rows, part.cols, part.depth), 0, 0, 0])
            }
            Path::FewRows => most_of_few::<C>(part, FEW),
            Path::FewCols => most_of_few::<C>(part, few_cols(whole)),
            Path::SomeRows => {
                let few = most_of_few::<C>(part, part.rows.max(FEW));
                most_of_tiles(part, deep, kernel, rounds).max(few)
            }
        }
    }

    /// Multiples of depth at which a product may be cut into parts that are added up, without changing a bit; `None` where it may
    /// not be, since sums are rounded when they are complete. `lines_first` where the operand for whose sake it is cut has its
    /// lines side by side in memory; `left` where it is the left one.
    pub fn unit_of_depth<C: Compute>(
        whole: Size,
        kernel: &Kernel<C>,
        rounds: bool,
        left: bool,
        lines_first: bool,
    ) -> Option<usize> {
        let path = Path::of(whole, kernel, Packs::Blocks, false);
        let many = left == (path == Path::FewCols);
        match path {
            _ if rounds => None,
            // Between blocks, and between chains of additions.
            Path::Tiles | Path::Pairs | Path::SomeRows => {
                Some(depth_of_block(whole, kernel, Packs::Blocks).max(1))
            }
            Path::FewRows | Path::FewCols if many && lines_first => Some(FEW_CHAIN),
            Path::FewRows | Path::FewCols => Some(FEW_DEPTH),
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
    pub fn rounds(&self) -> bool {
        self.means.rounds
    }

    fn slot_of<C: Compute>(&self, kernel: &Kernel<C>) -> usize {
        let rounds = self.means.rounds;
        let unit = ALIGN / size_of::<C>();
        let rows = largest(self.size.rows, self.unit.0, self.parts.0);
        let cols = largest(self.size.cols, self.unit.1, self.parts.1);
        let depth = self.size.depth;
        let of = |path: Path| {
            let parts = match path {
                Path::Tiles => {
                    let (rows, cols) =
                        if rounds { (rows.min(SUMS), cols.min(SUMS)) } else { (rows, cols) };
                    let tile = kernel.rows_of_tile(rows, self.size.cols);
                    let lines = match self.means.left {
                        Packs::Blocks => rows.next_multiple_of(tile).min(kernel.block_rows),
                        Packs::Strips { .. } | Packs::Band { .. } => {
                            kernel.most_rows(self.size.cols)
                        }
                    };
                    let band =
                        if let Packs::Band { space, .. } = self.means.left { space } else { 0 };
                    let wide = cols.next_multiple_of(kernel.cols).min(kernel.block_cols);
                    let deep = self.deep;
                    [band.max(lines * deep), wide * deep, if rounds { rows * cols } else { 0 }, 0]
                }
                Path::Pairs => [pairs::space(rows, cols, depth), 0, 0, 0],
                Path::FewRows | Path::FewCols | Path::SomeRows => {
                    let turned = path == Path::FewCols;
                    let (few, long) = if turned { (cols, rows) } else { (rows, cols) };
                    let (chunk, _) = chunk_of_few(few, long);
                    let deep = depth.min(FEW_DEPTH);
                    let packed = packed_of_few(chunk, depth);
                    [few * deep, packed, few * chunk, few * chunk]
                }
            };
            parts.iter().map(|part| part.next_multiple_of(unit)).sum::<usize>()
        };
        match self.path {
            Path::SomeRows => of(Path::SomeRows).max(of(Path::Tiles)),
            path => of(path),
        }
    }
}

/// In blocks that are no deeper than so.
fn most_of_tiles<C: Compute>(size: Size, deep: usize, kernel: &Kernel<C>, rounds: bool) -> usize {
    let (rows, cols) = match rounds {
        true => (size.rows.min(SUMS), size.cols.min(SUMS)),
        false => (size.rows, size.cols),
    };
    let lines = (rows + kernel.tall).min(kernel.block_rows.max(kernel.tall));
    let wide = cols.next_multiple_of(kernel.cols).min(kernel.block_cols);
    slot_bytes::<C>([lines * deep, wide * deep, if rounds { rows * cols } else { 0 }, 0])
}

/// With `few` lines of the small operand.
fn most_of_few<C>(size: Size, few: usize) -> usize {
    let (long, deep) = (size.rows.max(size.cols), size.depth.min(FEW_DEPTH));
    let packed = packed_of_few(long.min(LONG_CHUNK), size.depth);
    // Two long chunks of sums are no more than `FEW` others.
    let chunk = long.min(FEW_CHUNK);
    slot_bytes::<C>([few * deep, packed, few * chunk, few * chunk])
}

/// Parts of a slot, each from a cache line on.
fn slot_bytes<C>(parts: [usize; 4]) -> usize {
    let unit = ALIGN / size_of::<C>();
    parts.iter().map(|part| part.next_multiple_of(unit)).sum::<usize>() * size_of::<C>()
}

/// The most bytes of a block of the right operand, where the cut along K is free: for a part of L2.
const BLOCK: usize = 1 << 20;
/// The most steps of depth then.
const DEEPEST: usize = 2048;

/// The depth of one block of K: all blocks but the last are of that depth. It decides bits, so that it looks at the
/// whole product and not at what a thread has of it.
fn depth_of_block<C: Compute>(size: Size, kernel: &Kernel<C>, left: Packs) -> usize {
    let even = kernel.depth_of_block(size.rows, size.depth).min(size.depth);
    let unit = match left {
        Packs::Blocks => return even,
        Packs::Band { deep, .. } => return deep.clamp(1, size.depth.max(1)),
        Packs::Strips { unit, .. } => unit,
    };
    let wide = size.cols.next_multiple_of(kernel.cols).min(kernel.block_cols);
    let most = (BLOCK / (wide * size_of::<C>()).max(1)).min(DEEPEST) / unit.max(1);
    if unit < 2 || most == 0 || !size.depth.is_multiple_of(unit) {
        return even;
    }
    let units = size.depth / unit;
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
fn finer(size: Size, path: Path, tiles: (usize, (usize, usize)), parts: usize) -> (usize, usize) {
    let unit = tiles.1;
    let pays = |(r, c): (usize, usize)| {
        let (rows, cols) = (largest(size.rows, unit.0, r), largest(size.cols, unit.1, c));
        match path {
            Path::Tiles => {
                rows.saturating_mul(cols) >= (LITTLE * PACKING).saturating_mul(rows + cols)
            }
            Path::FewRows | Path::SomeRows => cols >= chunk_of_few(rows, size.cols).0,
            Path::FewCols => rows >= chunk_of_few(cols, size.rows).0,
            Path::Pairs => false,
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
    path: Path,
    (tile, unit): (usize, (usize, usize)),
    parts: usize,
) -> (usize, usize) {
    if parts == 1 {
        return (1, 1);
    }
    let most = (size.rows.div_ceil(tile), size.cols.div_ceil(unit.1));
    match path {
        Path::FewRows | Path::SomeRows => return (1, parts.min(most.1).max(1)),
        Path::FewCols => return (parts.min(most.0).max(1), 1),
        Path::Tiles | Path::Pairs => {}
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
