//! Indices in order: a stable radix sort of keys and their positions, four bits at a time.
//!
//! Each pass counts the digits of every block of keys, adds the counts up in the order of digits and blocks, and moves each key to where it
//! belongs. A thread takes neighbours, so equal digits keep their order. `kernels/order.cuh` has the steps; this file launches them.

use std::fmt::Write as _;

use smallvec::SmallVec;
use tonnage_core::Bytes;

use super::super::{THREADS, blocks};

/// Keys of a block of threads.
const TILE: u64 = 16 * THREADS as u64;

/// Bits of a pass.
const DIGIT: u32 = 4;

/// Bytes that parts of the workspace begin at a multiple of.
const ALIGN: u64 = 256;

/// Functions of passes, by their number.
const COUNTS: [&str; 16] = [
    "count0", "count1", "count2", "count3", "count4", "count5", "count6", "count7", "count8",
    "count9", "count10", "count11", "count12", "count13", "count14", "count15",
];
const MOVES: [&str; 16] = [
    "move0", "move1", "move2", "move3", "move4", "move5", "move6", "move7", "move8", "move9",
    "move10", "move11", "move12", "move13", "move14", "move15",
];

const ROW_COUNTS: [&str; 8] = [
    "row_count0",
    "row_count1",
    "row_count2",
    "row_count3",
    "row_count4",
    "row_count5",
    "row_count6",
    "row_count7",
];
const ROW_MOVES: [&str; 8] = [
    "row_move0",
    "row_move1",
    "row_move2",
    "row_move3",
    "row_move4",
    "row_move5",
    "row_move6",
    "row_move7",
];

/// The sort of some keys in a workspace.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    /// How many keys.
    pub count: u64,
    /// Passes.
    pub passes: u8,
    workspace: u64,
}

fn parts(count: u64) -> [u64; 5] {
    let counts = (4 * count.div_ceil(TILE)) << DIGIT;
    [8 * count, 8 * count, 4 * count, 4 * count, counts].map(|bytes| bytes.next_multiple_of(ALIGN))
}

/// Workspace of so many keys.
pub fn scratch(count: usize) -> Bytes {
    Bytes::new(parts(count as u64).iter().sum())
}

impl Order {
    /// Of keys that are below a bound; nothing where there are more than positions have bits for.
    pub fn of(count: u64, bound: u64, workspace: u64) -> Option<Order> {
        let bits = u64::BITS - bound.saturating_sub(1).leading_zeros();
        let passes = bits.div_ceil(DIGIT).max(1) as u8;
        (count <= u64::from(u32::MAX)).then_some(Order { count, passes, workspace })
    }

    /// Blocks of threads that share the keys.
    pub fn blocks(&self) -> u64 {
        self.count.div_ceil(TILE)
    }

    /// Addresses of the workspace's parts: keys and keys moved, positions and positions moved, counts.
    pub fn addresses(&self) -> [u64; 5] {
        let mut next = self.workspace;
        parts(self.count).map(|bytes| {
            next += bytes;
            next - bytes
        })
    }

    /// What is launched.
    pub fn functions(&self, functions: &mut SmallVec<[(&'static str, u32); 2]>) {
        let all = blocks(self.blocks(), 1);
        for (count, pass) in COUNTS.iter().zip(MOVES).take(usize::from(self.passes)) {
            functions.extend([(*count, all), ("scan", 1), (pass, all)]);
        }
    }
}

/// Passes that bring so many rows apart again, behind those that sorted the keys of all of them: positions tell the rows.
pub fn row_passes(rows: u64) -> u8 {
    (u64::BITS - rows.saturating_sub(1).leading_zeros()).div_ceil(DIGIT) as u8
}

/// What those launch, over so many keys.
pub fn row_functions(count: u64, passes: u8, functions: &mut SmallVec<[(&'static str, u32); 2]>) {
    let all = blocks(count.div_ceil(TILE), 1);
    for (count, pass) in ROW_COUNTS.iter().zip(ROW_MOVES).take(usize::from(passes)) {
        functions.extend([(*count, all), ("scan", 1), (pass, all)]);
    }
}

/// Their text, behind `done` passes; the length of a row is in a word.
pub fn row_text(passes: u8, done: u8, first: usize, row: usize) -> String {
    let mut text = String::new();
    let counts = first + 4;
    for pass in 0..passes {
        let [keys, places] = before(done + pass, first);
        let [to, places_to] = before(done + pass + 1, first);
        let _ = writeln!(
            text,
            "TN_KERNEL(row_count{pass}) {{ order_count<{pass}>(p.w[0], (const u64*)p.w[{keys}], (const u32*)p.w[{places}], (u32*)p.w[{counts}], p.w[{row}]); }}\n\
             TN_KERNEL(row_move{pass}) {{ order_move<{pass}>(p.w[0], (const u64*)p.w[{keys}], (const u32*)p.w[{places}], (u64*)p.w[{to}], (u32*)p.w[{places_to}], (const u32*)p.w[{counts}], p.w[{row}]); }}"
        );
    }
    text
}

/// The words that have the addresses of keys and positions before a pass, or behind the last one.
pub fn before(pass: u8, first: usize) -> [usize; 2] {
    [first, first + 2].map(|part| part + usize::from(pass % 2))
}

/// The text of so many passes, over addresses in the words from `first` on. Word 0 has the number of keys.
pub fn text(passes: u8, first: usize) -> String {
    let mut text = String::new();
    let counts = first + 4;
    for pass in 0..passes {
        let ([keys, places], [to, places_to]) = (before(pass, first), before(pass + 1, first));
        let _ = writeln!(
            text,
            "TN_KERNEL(count{pass}) {{ order_count<{pass}>(p.w[0], (const u64*)p.w[{keys}], (const u32*)p.w[{places}], (u32*)p.w[{counts}]); }}\n\
             TN_KERNEL(move{pass}) {{ order_move<{pass}>(p.w[0], (const u64*)p.w[{keys}], (const u32*)p.w[{places}], (u64*)p.w[{to}], (u32*)p.w[{places_to}], (const u32*)p.w[{counts}]); }}"
        );
    }
    let _ = writeln!(text, "TN_KERNEL(scan) {{ order_scan(p.w[0], (u32*)p.w[{counts}]); }}");
    text
}
