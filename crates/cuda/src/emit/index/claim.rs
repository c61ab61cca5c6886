//! Which position of equal indices is the first or the last, without putting them in order: positions claim the place of their index in a
//! hash table. Which thread comes first decides where an index lies in it, and never what is claimed: that is the least or the greatest.

use std::fmt::Write as _;

use tonnage_core::{Bytes, DType};

/// Bytes that parts of the workspace begin at a multiple of.
const ALIGN: u64 = 256;

/// A hash table for some indices.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    count: u64,
    /// A power of 2, at least twice as many as indices.
    capacity: u64,
    /// Whether keys take 64 bits.
    pub wide: bool,
}

impl Claim {
    /// For so many indices of a dtype, all of them below a bound.
    pub fn of(count: u64, index: DType, bound: u64) -> Claim {
        // All bits set is no index: it stands for an empty place.
        let wide = index.size() == 8 && bound > u64::from(u32::MAX);
        Claim { count, capacity: (2 * count).next_power_of_two().max(64), wide }
    }

    fn parts(&self) -> [u64; 3] {
        let key = if self.wide { 8 } else { 4 };
        [key * self.capacity, 4 * self.capacity, 4 * self.count]
            .map(|bytes| bytes.next_multiple_of(ALIGN))
    }

    /// The workspace.
    pub fn scratch(&self) -> Bytes {
        Bytes::new(self.parts().iter().sum())
    }

    /// Words of a launch: addresses of keys, of what is claimed, and of the place of each position; the capacity, and the shift of a hash.
    pub fn words(&self, workspace: u64) -> [u64; 5] {
        let mut next = workspace;
        let [keys, claimed, places] = self.parts().map(|bytes| {
            next += bytes;
            next - bytes
        });
        [keys, claimed, places, self.capacity, u64::from(32 - self.capacity.trailing_zeros())]
    }

    /// Threads that make it empty.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }
}

/// What is written at every place before anything is claimed, by statements over a number `s` below the capacity.
pub fn emptied(wide: bool, last: bool, first: usize) -> String {
    let (key, least) = (key_type(wide), if last { "0u" } else { "~0u" });
    let claimed = first + 1;
    format!("(({key}*)p.w[{first}])[s] = ~({key})0; ((u32*)p.w[{claimed}])[s] = {least};")
}

/// Statements by which position `t` claims the place of `index`.
pub fn claim(text: &mut String, wide: bool, last: bool, first: usize) {
    let (key, better) = (key_type(wide), if last { "atomicMax" } else { "atomicMin" });
    let [claimed, places, capacity, shift] = [1, 2, 3, 4].map(|i| first + i);
    let _ = writeln!(
        text,
        "    {key}* const keys = ({key}*)p.w[{first}];\n    const {key} key = ({key})index;\n    u32 s = ((u32)key ^ (u32)((u64)key >> 32)) * 0x9e3779b1u >> (u32)p.w[{shift}];\n    for (;;) {{\n      const {key} there = atomicCAS(&keys[s], ~({key})0, key);\n      if (there == ~({key})0 || there == key) break;\n      s = (s + 1) & ((u32)p.w[{capacity}] - 1);\n    }}\n    {better}(&((u32*)p.w[{claimed}])[s], (u32)t);\n    ((u32*)p.w[{places}])[t] = s;"
    );
}

/// The position that has claimed the place of the index at another.
pub fn claimed(at: &str, first: usize) -> String {
    format!("((const u32*)p.w[{}])[((const u32*)p.w[{}])[{at}]]", first + 1, first + 2)
}

fn key_type(wide: bool) -> &'static str {
    if wide { "u64" } else { "u32" }
}
