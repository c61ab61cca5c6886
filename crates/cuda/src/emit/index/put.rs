//! Rows that are put into a table. Where they are added up the indices are sorted, and whoever has the first of equal ones goes through all of
//! them; where one of equal ones stays, they claim their places (`claim`).

use std::fmt::Write as _;
use std::ops::Range;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::row::{Call, OpDef};
use tonnage_core::{Attrs, DType};
use tonnage_ops::OpId;
use tonnage_ops::index::rows::axis;

use super::super::operand::{load, stored};
use super::super::walk::{Walk, offset};
use super::super::{THREADS, blocks, c_type};
use super::claim::{self, Claim};
use super::order::{self, Order};
use super::{
    Demand, KernelKey, Launch, OpCall, Operand, Put, bad, is_nd, memory, moved_type, part,
};

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
    /// Axes that an index names a place in, where it is a vector of them.
    depth: Option<u8>,
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
        (_, [table, indices, rows]) => (Some(table), indices, Some(rows)),
        _ => return Err(bad("rows without indices")),
    };
    let (indices, index_layout, index) = memory(indices)?;
    let named = Named::of(call.op, call.attrs, &index_layout.sizes, call.made().len());
    let vectors = index_layout.sizes.len() - usize::from(named.as_ref().is_some_and(|n| n.vectors));
    let along = Walk::of(part(index_layout, 0..vectors));
    let count = along.count();
    // Rows, and where they belong.
    let at = match (how, &named) {
        (Put::FirstOf, _) | (Put::AddToZeros, None) => 0,
        (_, None) => axis(call.op.name, call.attrs)?,
        // All axes up to the row are one.
        (_, Some(named)) => named.axes.end,
    };
    let product = |sizes: &[usize]| sizes.iter().map(|n| *n as u64).product::<u64>();
    let (before, width, size) = match (how, &named) {
        (Put::FirstOf, _) => (1, 1, i64::MAX as u64),
        (_, Some(_)) => (1, product(&call.made()[at..]), product(&call.made()[..at])),
        _ => (product(&call.made()[..at]), product(&call.made()[at + 1..]), call.made()[at] as u64),
    };
    let (rows, walks, dtype) = match rows {
        None => (0, [none(), none(), none()], DType::I64),
        Some(rows) => {
            let (address, layout, dtype) = memory(rows)?;
            let rank = layout.sizes.len();
            let cuts = match &named {
                Some(named) => {
                    let own = rank - (call.made().len() - named.axes.end);
                    [0..0, 0..own, own..rank]
                }
                None => {
                    let behind = call.made().len() - at - 1;
                    [0..at, at..rank - behind, rank - behind..rank]
                }
            };
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
    // A vector of indices is a number as wide as it needs to be.
    let (key_type, limit) = match named {
        Some(_) => (DType::I64, size),
        None => (index, size.min(index_limit(index))),
    };
    let Some(order) = Order::of(count, limit, workspace) else {
        return Err(bad("more indices than positions have bits for"));
    };
    let claims = how.claims().then(|| Claim::of(count, key_type, size));
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
        depth: named.as_ref().map(|named| named.axes.len() as u8),
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
    let op = call.op.name;
    let demand = match &named {
        None => Demand::Below { op, size: size as usize },
        Some(Named { axes, vectors }) => {
            let lengths = &call.made()[axes.clone()];
            let each = product(
                &index_layout.sizes[axes.start..index_layout.sizes.len() - usize::from(*vectors)],
            );
            let step = if *vectors { index_layout.strides.last().copied().unwrap_or(0) } else { 0 };
            words.extend([each.max(1), step as u64]);
            words.extend(lengths.iter().map(|n| *n as u64));
            Demand::Among { op, sizes: lengths.into() }
        }
    };
    Ok(Some(Launch { key: KernelKey::Put(key), functions, words, demand: Some(demand) }))
}

/// Axes of the table that an index names a place in, behind those that table and indices share.
struct Named {
    axes: Range<usize>,
    /// Whether the last axis of the indices is a vector of them, one for each.
    vectors: bool,
}

impl Named {
    fn of(op: &OpDef, attrs: &Attrs, indices: &[usize], rank: usize) -> Option<Named> {
        if op.id == OpId::PutAlongAxis as u16 {
            return Some(Named { axes: rank.saturating_sub(1)..rank, vectors: false });
        }
        let (Attrs::Count(batch), true) = (attrs, is_nd(op)) else { return None };
        Some(Named { axes: *batch..*batch + indices.last()?, vectors: true })
    }
}

/// How many rows are put, and into how many: what the workspace is for.
pub fn counts(call: &Call, op: &OpDef) -> Option<(usize, usize)> {
    let sizes = |i: usize| call.inputs.get(i)?.shape.most();
    if op.id == OpId::PutAlongAxis as u16 {
        // Indices share all axes but the last with what is made.
        return Some((sizes(0)?.iter().product(), usize::MAX));
    }
    let (table, indices) = (sizes(0)?, sizes(1)?);
    let named = Named::of(op, call.attrs, &indices, table.len())?;
    let vectors = indices[..indices.len() - 1].iter().product();
    Some((vectors, table[..named.axes.end].iter().product()))
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
    let named = key.depth.map_or(0, |depth| 2 + usize::from(depth));
    let words = FIRST + 2 * ranks + named;
    let _ = writeln!(text, "struct P {{ u64 w[{words}]; }};\ntypedef {idx} idx;");
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
            Put::Add | Put::AddToZeros | Put::Largest | Put::Least => add(key, &mut text),
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

/// The index of a position, `check`ed or known to be good.
fn index(key: &PutKey, position: &str, check: bool, text: &mut String) {
    offset(text, "at_index", position, key.ranks[0], FIRST);
    let ty = c_type(key.index);
    let Some(depth) = key.depth else {
        let _ = writeln!(text, "    const i64 index = (i64)((const {ty}*)p.w[5])[at_index];");
        if check {
            let _ = writeln!(
                text,
                "    if ((u64)index >= p.w[3]) {{ guard.fail((u64){position}, index); continue; }}"
            );
        }
        return;
    };
    // The place is counted over all shared ones.
    let own = FIRST + 2 * key.ranks.iter().map(|rank| usize::from(*rank)).sum::<usize>();
    let _ = writeln!(text, "    i64 index = (i64){position} / (i64)p.w[{own}];");
    for j in 0..usize::from(depth) {
        let size = own + 2 + j;
        let _ = writeln!(
            text,
            "    const i64 index{j} = (i64)((const {ty}*)p.w[5])[at_index + {j} * (i64)p.w[{}]];",
            own + 1
        );
        if check {
            let _ = writeln!(
                text,
                "    if ((u64)index{j} >= p.w[{size}]) {{ guard.fail((u64){position} * {depth} + {j}, index{j}); continue; }}"
            );
        }
        let _ = writeln!(text, "    index = index * (i64)p.w[{size}] + index{j};");
    }
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
        index(key, "t", true, text);
        text.push_str("  }\n}\n");
        return;
    }
    each(text, "keys", "p.w[0]");
    index(key, "t", true, text);
    let [keys, places] = order::before(0, SORT);
    let _ = writeln!(
        text,
        "    ((u64*)p.w[{keys}])[t] = (u64)index;\n    ((u32*)p.w[{places}])[t] = (u32)t;\n  }}\n}}"
    );
}

/// Positions claim the places of their indices.
fn claim(key: &PutKey, text: &mut String) {
    each(text, "claim", "p.w[0]");
    index(key, "t", true, text);
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
    index(key, "j", false, text);
    place(text, ty, "index");
    offset(text, "at", "j", key.ranks[2], own);
    text.push_str("    *to = from[at];\n  }\n}\n");
}

/// Each element of the first of equal indices goes through all of them.
fn add(key: &PutKey, text: &mut String) {
    let [keys, places] = order::before(key.passes, SORT);
    // Whole numbers wrap around, as those without a sign do.
    let ranks = matches!(key.how, Put::Largest | Put::Least);
    let ty = match key.dtype.is_float() || ranks {
        false => moved_type(key.dtype.size()),
        true => c_type(key.dtype),
    };
    let own = element(key, text);
    let _ = writeln!(
        text,
        "    const u64* const keys = (const u64*)p.w[{keys}];\n    const u32* const places = (const u32*)p.w[{places}];\n    const u64 key = keys[j];\n    if (j > 0 && keys[j - 1] == key) continue;"
    );
    place(text, ty, "key");
    let rounded = match (key.how, key.dtype) {
        // NaN is ahead of everything but itself; of equal ones the first stays.
        (Put::Largest, _) => "x > sum || (x != x && sum == sum) ? x : sum",
        (Put::Least, _) => "x < sum || (x != x && sum == sum) ? x : sum",
        (_, DType::F16) => "f16_round(sum + x)",
        (_, DType::BF16) => "bf16_round(sum + x)",
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
