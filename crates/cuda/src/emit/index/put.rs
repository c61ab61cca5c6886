//! Rows that are put into a table. Where they are added up the indices are sorted, and whoever has the first of equal ones goes through all of
//! them; where one of equal ones stays, they claim their places (`claim`).

use std::fmt::Write as _;

use smallvec::SmallVec;
use tonnage_core::DType;
use tonnage_core::error::Result;
use tonnage_ops::index::rows::axis;

use super::super::operand::{load, stored};
use super::super::walk::{Walk, offset};
use super::super::{THREADS, blocks, c_type};
use super::claim::{self, Claim};
use super::order::{self, Order};
use super::{Demand, KernelKey, Launch, OpCall, Operand, Put, bad, memory, moved_type, part};

/// What tells these kernels apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PutKey {
    how: Put,
    dtype: DType,
    index: DType,
    /// Axes of the indices; of the rows before them, their own, and behind them; of a table that is copied.
    ranks: [u8; 5],
    /// Whether the table starts as another one, or as zeros.
    starts: bool,
    /// Whether there are rows.
    has_rows: bool,
    /// Whether there are indices.
    has_indices: bool,
    passes: u8,
    wide: bool,
    /// Whether keys of the hash table take 64 bits.
    wide_keys: bool,
}

impl PutKey {
    /// How rows are put.
    pub fn name(&self) -> String {
        format!("{:?}", self.how)
    }
}

/// Words before lengths and steps. Those of the sort begin at `SORT`.
const FIRST: usize = 14;
const SORT: usize = 9;

/// The functions in their order: the table's start, the keys, the sort, the rows.
pub fn launch(call: &OpCall, how: Put) -> Result<Option<Launch>> {
    let out = call.outputs.first().copied().unwrap_or(0);
    // What is not there has neither address nor axes.
    let none = || Walk::of(Default::default());
    let (table, indices, rows) = match (how, call.operands) {
        (Put::FirstOf, [indices]) => (None, indices, None),
        (Put::AddToZeros, [indices, rows]) => (None, indices, Some(rows)),
        (Put::Add | Put::Replace, [table, indices, rows]) => (Some(table), indices, Some(rows)),
        _ => return Err(bad("rows without indices")),
    };
    let (indices, index_layout, index) = memory(indices)?;
    let along = Walk::of(part(index_layout, 0..index_layout.sizes.len()));
    let count = along.count();
    // Rows, and where they belong.
    let at = match how {
        Put::Add | Put::Replace => axis(call.op.name, call.attrs)?,
        Put::AddToZeros | Put::FirstOf => 0,
    };
    let product = |sizes: &[usize]| sizes.iter().map(|n| *n as u64).product::<u64>();
    let (before, width, size) = match how {
        Put::FirstOf => (1, 1, i64::MAX as u64),
        _ => (product(&call.made[..at]), product(&call.made[at + 1..]), call.made[at] as u64),
    };
    let (rows, walks, dtype) = match rows {
        None => (0, [none(), none(), none()], DType::I64),
        Some(rows) => {
            let (address, layout, dtype) = memory(rows)?;
            let (rank, behind) = (layout.sizes.len(), call.made.len() - at - 1);
            let cuts = [0..at, at..rank - behind, rank - behind..rank];
            (address, cuts.map(|axes| Walk::of(part(layout, axes))), dtype)
        }
    };
    let made = if how == Put::FirstOf { 0 } else { before * size * width };
    let (table, table_walk) = match table {
        Some((Operand::Output(_), _)) | None => (0, none()),
        Some(table) => {
            let (address, layout, _) = memory(table)?;
            (address, Walk::of(part(layout, 0..layout.sizes.len())))
        }
    };
    let starts = (how == Put::AddToZeros || table != 0) && made > 0;
    if count == 0 && !starts {
        return Ok(None);
    }
    let workspace = call.scratch.unwrap_or(0);
    let Some(order) = Order::of(count, size.min(index_limit(index)), workspace) else {
        return Err(bad("more indices than positions have bits for"));
    };
    let claims = how.claims().then(|| Claim::of(count, index, size));
    let items = claims.map_or(count, |claim| claim.capacity());
    let has_rows = how == Put::FirstOf || before * width > 0;
    let total = before * count * width;
    let key = PutKey {
        how,
        dtype,
        index,
        ranks: [along.rank(), walks[0].rank(), walks[1].rank(), walks[2].rank(), table_walk.rank()],
        starts,
        has_rows: has_rows && count > 0,
        has_indices: count > 0,
        passes: if count > 0 && claims.is_none() { order.passes } else { 0 },
        wide_keys: claims.is_some_and(|claim| claim.wide),
        wide: total.max(made * u64::from(starts)).max(items) > u64::from(u32::MAX >> 1),
    };
    let mut functions: SmallVec<[(&'static str, u32); 2]> = SmallVec::new();
    let threads = u64::from(THREADS);
    if starts {
        functions.push(("start", blocks(made, threads)));
    }
    if count > 0 {
        // Before anything is written that lives on: an update does not happen behind a bad index.
        functions.insert(0, ("keys", blocks(items, threads)));
    }
    if key.has_rows {
        match claims {
            Some(_) => functions.push(("claim", blocks(count, threads))),
            None => order.functions(&mut functions),
        }
        functions.push(("put", blocks(total, threads)));
    }
    let mut words = vec![count, before, width, size, made, indices, rows, out, table];
    words.extend(claims.map_or(order.addresses(), |claim| claim.words(workspace)));
    along.words(1, &mut words);
    walks.iter().for_each(|walk| walk.words(1, &mut words));
    table_walk.words(1, &mut words);
    let demand = Some(Demand::Below { op: call.op.name, size: size as usize });
    Ok(Some(Launch { key: KernelKey::Put(key), functions, words, demand }))
}

/// What all indices of a dtype are below, as far as they are positions.
fn index_limit(index: DType) -> u64 {
    match index.size() {
        1 => 1 << 8,
        2 => 1 << 16,
        4 => 1 << 32,
        _ => i64::MAX as u64,
    }
}

pub fn text(key: &PutKey) -> String {
    let ranks: usize = key.ranks.iter().map(|rank| usize::from(*rank)).sum();
    let idx = if key.wide { "u64" } else { "u32" };
    let mut text = String::new();
    let _ = writeln!(text, "struct P {{ u64 w[{}]; }};\ntypedef {idx} idx;", FIRST + 2 * ranks);
    if key.starts {
        start(key, &mut text);
    }
    if key.has_indices {
        keys(key, &mut text);
    }
    if key.has_rows {
        match key.how.claims() {
            true => claim(key, &mut text),
            false => text.push_str(&order::text(key.passes, SORT)),
        }
        match key.how {
            Put::FirstOf => first_of(&mut text),
            Put::Replace => replace(key, &mut text),
            Put::Add | Put::AddToZeros => add(key, &mut text),
        }
    }
    text
}

fn each(text: &mut String, name: &str, total: &str) {
    let _ = writeln!(
        text,
        "TN_KERNEL({name}) {{\n  const idx total = (idx)({total});\n  for (idx t = (idx)blockIdx.x * {THREADS}u + threadIdx.x; t < total; t += (idx)gridDim.x * {THREADS}u) {{"
    );
}

/// The table as it was, or zeros.
fn start(key: &PutKey, text: &mut String) {
    let ty = moved_type(key.dtype.size());
    each(text, "start", "p.w[4]");
    let word = FIRST + 2 * key.ranks[..4].iter().map(|rank| usize::from(*rank)).sum::<usize>();
    let value = match key.how {
        Put::AddToZeros => "0".to_string(),
        _ => {
            offset(text, "at", "t", key.ranks[4], word);
            format!("((const {ty}*)p.w[8])[at]")
        }
    };
    let _ = writeln!(text, "    (({ty}*)p.w[7])[t] = {value};\n  }}\n}}");
}

/// An index, checked.
fn index(key: &PutKey, text: &mut String) {
    offset(text, "at", "t", key.ranks[0], FIRST);
    let _ = writeln!(
        text,
        "    const i64 index = (i64)((const {}*)p.w[5])[at];\n    if ((u64)index >= p.w[3]) {{ guard.fail((u64)t, index); continue; }}",
        c_type(key.index)
    );
}

/// Indices as keys with their positions, checked; or an empty table for them.
fn keys(key: &PutKey, text: &mut String) {
    if key.how.claims() {
        let capacity = format!("p.w[{}]", SORT + 3);
        each(text, "keys", &capacity);
        let emptied = claim::emptied(key.wide_keys, key.how == Put::Replace, SORT);
        let _ = writeln!(
            text,
            "    const idx s = t;\n    {emptied}\n    if (t >= (idx)p.w[0]) continue;"
        );
        index(key, text);
        text.push_str("  }\n}\n");
        return;
    }
    each(text, "keys", "p.w[0]");
    index(key, text);
    let [keys, places] = order::before(0, SORT);
    let _ = writeln!(
        text,
        "    ((u64*)p.w[{keys}])[t] = (u64)index;\n    ((u32*)p.w[{places}])[t] = (u32)t;\n  }}\n}}"
    );
}

/// Positions claim the places of their indices.
fn claim(key: &PutKey, text: &mut String) {
    each(text, "claim", "p.w[0]");
    index(key, text);
    claim::claim(text, key.wide_keys, key.how == Put::Replace, SORT);
    text.push_str("  }\n}\n");
}

fn first_of(text: &mut String) {
    each(text, "put", "p.w[0]");
    let _ = writeln!(text, "    ((i64*)p.w[7])[t] = (i64){};\n  }}\n}}", claim::claimed("t", SORT));
}

/// The element of the rows that a thread has: `before` those of its row, and `within` it.
fn element(key: &PutKey, text: &mut String) -> usize {
    each(text, "put", "p.w[1] * p.w[0] * p.w[2]");
    text.push_str("    const idx width = (idx)p.w[2], n = (idx)p.w[0], e = t % width, r = t / width, j = r % n, o = r / n;\n");
    let outer = FIRST + 2 * usize::from(key.ranks[0]);
    let own = offset(text, "before", "o", key.ranks[1], outer);
    offset(text, "within", "e", key.ranks[3], own + 2 * usize::from(key.ranks[2]));
    own
}

/// Where an element goes, by the index of its row.
fn place(text: &mut String, ty: &str, index: &str) {
    let _ = writeln!(
        text,
        "    const {ty}* const from = (const {ty}*)p.w[6] + before + within;\n    {ty}* const to = ({ty}*)p.w[7] + ((i64)o * (i64)p.w[3] + (i64){index}) * (i64)width + e;"
    );
}

/// The row whose index does not come again is put.
fn replace(key: &PutKey, text: &mut String) {
    let ty = moved_type(key.dtype.size());
    let own = element(key, text);
    let _ = writeln!(text, "    if ({} != (u32)j) continue;", claim::claimed("j", SORT));
    offset(text, "at_index", "j", key.ranks[0], FIRST);
    let _ = writeln!(
        text,
        "    const i64 index = (i64)((const {}*)p.w[5])[at_index];",
        c_type(key.index)
    );
    place(text, ty, "index");
    offset(text, "at", "j", key.ranks[2], own);
    text.push_str("    *to = from[at];\n  }\n}\n");
}

/// Each element of the first of equal indices goes through all of them.
fn add(key: &PutKey, text: &mut String) {
    let [keys, places] = order::before(key.passes, SORT);
    // Whole numbers wrap around, as those without a sign do.
    let ty = match key.dtype.is_float() {
        false => moved_type(key.dtype.size()),
        true => c_type(key.dtype),
    };
    let own = element(key, text);
    let _ = writeln!(
        text,
        "    const u64* const keys = (const u64*)p.w[{keys}];\n    const u32* const places = (const u32*)p.w[{places}];\n    const u64 key = keys[j];\n    if (j > 0 && keys[j - 1] == key) continue;"
    );
    place(text, ty, "key");
    let rounded = match key.dtype {
        DType::F16 => "f16_round(sum + x)",
        DType::BF16 => "bf16_round(sum + x)",
        _ => "sum + x",
    };
    let register = match key.dtype.is_float() {
        true => c_type(key.dtype.compute()),
        false => ty,
    };
    let _ = writeln!(
        text,
        "    {register} sum = {};\n    for (idx k = j; k < n && keys[k] == key; k++) {{",
        load(key.dtype, "*to")
    );
    offset(text, "at", "places[k]", key.ranks[2], own);
    let _ = writeln!(
        text,
        "      const {register} x = {};\n      sum = ({register})({rounded});\n    }}\n    *to = {};\n  }}\n}}",
        load(key.dtype, "from[at]"),
        stored(key.dtype, "sum")
    );
}
