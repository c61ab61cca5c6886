//! Elements that are read, or put, where numbers along several axes say: `take_along_axis`, `gather_nd`, `dynamic_slice`, `dynamic_update`.
//!
//! A vector of indices names a place in the table, one index an axis; behind it lies a row. Indices and table may share leading axes, which
//! they are walked through together. A part that starts somewhere is one row behind one vector.

use std::fmt::Write as _;

use smallvec::SmallVec;
use tonnage_core::DType;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;

use super::super::walk::{Walk, offset};
use super::super::{THREADS, blocks, c_type};
use super::{Demand, KernelKey, Launch, OpCall, Operand, bad, memory, moved_type, part};

/// Bytes of the widest access.
const ACCESS: usize = 16;

/// What an op does with the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Pick {
    /// Reads an element of each row of the last axis.
    Along,
    /// Reads rows by indices into several axes.
    Nd,
    /// Reads a part.
    Slice,
    /// Puts a part.
    Update,
}

/// What tells these kernels apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PickKey {
    how: Pick,
    /// Bytes of an element, and how many are moved at once.
    size: u8,
    vector: u8,
    index: DType,
    /// Axes that an index names a place in.
    depth: u8,
    /// Axes of the indices' vectors, of what they share with the table, of a row in the table, of a row elsewhere, of a table that is copied.
    ranks: [u8; 5],
    wide: bool,
    /// Whether rows have elements, or indices are checked alone.
    has_rows: bool,
    /// Whether the result starts as another table, and how much of that is moved at once.
    starts: Option<u8>,
}

impl PickKey {
    /// What it does.
    pub fn name(&self) -> String {
        format!("{:?}", self.how)
    }
}

/// Words before those of the axes that are named.
const FIRST: usize = 10;

/// Where elements lie: the address of the first, and the way from one to the next.
type Place = (u64, Walk);

/// A table, the vectors that name places in it, and the rows behind those.
struct Picked<'a> {
    table: u64,
    dtype: DType,
    /// Address, dtype and step from one index of a vector to the next.
    indices: (u64, DType, i64),
    vectors: Walk,
    /// Vectors of each shared place.
    each: u64,
    shared: Walk,
    /// What the index of each axis is below, and its step.
    named: SmallVec<[(u64, i64); 4]>,
    row: Walk,
    /// Of a part that is put: the table's start, and the part.
    put: Option<(Option<Place>, Place)>,
    demand: Demand,
    sizes: &'a [usize],
}

fn none() -> Walk {
    Walk::of(Default::default())
}

fn steps(layout: &Layout, axes: std::ops::Range<usize>) -> SmallVec<[(u64, i64); 4]> {
    axes.map(|axis| (layout.sizes[axis] as u64, layout.strides[axis] as i64)).collect()
}

/// What an index of a part's start is below: where the part ends inside.
fn limits(whole: &[usize], part: &[usize]) -> impl Iterator<Item = u64> {
    whole.iter().zip(part).map(|(whole, part)| (whole - part.min(whole)) as u64 + 1)
}

fn reading<'a>(call: &'a OpCall, how: Pick) -> Result<Picked<'a>> {
    let ((table, layout, dtype), (at, lies, index)) = (call.memory(0)?, call.memory(1)?);
    let (rank, last) = (layout.sizes.len(), lies.sizes.len().saturating_sub(1));
    let count = |sizes: &[usize]| sizes.iter().map(|n| *n as u64).product::<u64>();
    let op = call.op.name;
    let among = |sizes: &[usize]| Demand::Among { op, sizes: sizes.into() };
    let picked = |step, vectors, each, shared, named, row, demand| Picked {
        table,
        dtype,
        indices: (at, index, step),
        vectors: Walk::of(vectors),
        each,
        shared: Walk::of(part(layout, shared)),
        named,
        row: Walk::of(row),
        put: None,
        demand,
        sizes: call.made(),
    };
    Ok(match (how, call.attrs) {
        (Pick::Nd, Attrs::Count(batch)) => {
            let depth = lies.sizes[last];
            let named = *batch..batch + depth;
            picked(
                lies.strides[last] as i64,
                part(lies, 0..last),
                count(&lies.sizes[*batch..last]),
                0..*batch,
                steps(layout, named.clone()),
                part(layout, named.end..rank),
                among(&layout.sizes[named]),
            )
        }
        (Pick::Slice, _) => {
            let mut named = steps(layout, 0..rank);
            for (axis, limit) in named.iter_mut().zip(limits(&layout.sizes, call.made())) {
                axis.0 = limit;
            }
            let whole = layout.sizes[..].into();
            let row =
                (call.made().into(), layout.strides.iter().map(|step| *step as i64).collect());
            let demand = Demand::Inside { op, part: call.made().into(), whole };
            let step = lies.strides.first().map_or(0, |step| *step as i64);
            picked(step, Default::default(), 1, 0..0, named, row, demand)
        }
        _ => {
            let before = rank.saturating_sub(1);
            picked(
                0,
                part(lies, 0..lies.sizes.len()),
                lies.sizes.last().map_or(1, |n| *n as u64),
                0..before,
                steps(layout, before..rank),
                Default::default(),
                among(&layout.sizes[before..]),
            )
        }
    })
}

fn putting<'a>(call: &'a OpCall) -> Result<Picked<'a>> {
    let [table, rows, indices] = call.operands else { return Err(bad("a part without a start")) };
    let ((rows, layout, dtype), (at, lies, index)) = (memory(rows)?, memory(indices)?);
    let start = match table {
        (Operand::Output(_), _) => None,
        table => {
            let (address, layout, _) = memory(table)?;
            Some((address, Walk::of(part(layout, 0..layout.sizes.len()))))
        }
    };
    let own = Layout::contiguous(call.made());
    let mut named = steps(&own, 0..call.made().len());
    for (axis, limit) in named.iter_mut().zip(limits(call.made(), &layout.sizes)) {
        axis.0 = limit;
    }
    let row = (layout.sizes.clone(), own.strides.iter().map(|step| *step as i64).collect());
    let whole = part(layout, 0..layout.sizes.len());
    Ok(Picked {
        table: call.outputs.first().copied().unwrap_or(0),
        dtype,
        indices: (at, index, lies.strides.first().map_or(0, |step| *step as i64)),
        vectors: none(),
        each: 1,
        shared: none(),
        named,
        row: Walk::of(row),
        put: Some((start, (rows, Walk::of(whole)))),
        demand: Demand::Inside {
            op: call.op.name,
            part: layout.sizes[..].into(),
            whole: call.made().into(),
        },
        sizes: call.made(),
    })
}

/// How many elements are moved at once: as many as lie side by side wherever indices point.
fn vector(size: usize, addresses: &[u64], walks: &[&Walk], steps: &[(u64, i64)]) -> u64 {
    let fits = |vector: u64| {
        let bytes = vector * size as u64;
        walks.iter().all(|walk| walk.has_runs_of(vector))
            && addresses.iter().all(|address| address.is_multiple_of(bytes))
            && steps
                .iter()
                .all(|(limit, step)| *limit == 1 || step.unsigned_abs().is_multiple_of(vector))
    };
    let most = (ACCESS / size) as u64;
    [most, most / 2, most / 4, most / 8].into_iter().find(|v| *v > 1 && fits(*v)).unwrap_or(1)
}

/// The launch of one; nothing where there is nothing to do.
///
/// # Errors
/// Where it was lent something else than memory.
pub fn launch(call: &OpCall, how: Pick) -> Result<Option<Launch>> {
    let picked = if how == Pick::Update { putting(call)? } else { reading(call, how)? };
    let Picked { table, dtype, indices: (at, index, step), vectors, each, shared, .. } = &picked;
    let (row, named, size) = (&picked.row, &picked.named, dtype.size());
    let out = call.outputs.first().copied().unwrap_or(0);
    let (start, rows) = match &picked.put {
        Some((start, (rows, whole))) => (start.as_ref(), Some((*rows, whole))),
        None => (None, None),
    };
    let made: u64 = picked.sizes.iter().map(|n| *n as u64).product();
    let count = vectors.count();
    if count == 0 {
        return Ok(None);
    }
    let mut walks: SmallVec<[&Walk; 2]> = SmallVec::from_slice(&[row]);
    walks.extend(rows.map(|(_, whole)| whole));
    let shared_steps = shared.reaches();
    let all: SmallVec<[(u64, i64); 4]> = named.iter().copied().chain(shared_steps).collect();
    let vector = vector(size, &[*table, rows.map_or(out, |(rows, _)| rows)], &walks, &all);
    let copied = start.filter(|_| made > 0).map(|(from, walk)| {
        let walk_vector = self::vector(size, &[*from, out], &[walk], &[]);
        (*from, walk, walk_vector)
    });
    let width = row.count() / vector;
    let total = count * width.max(1);
    let key = PickKey {
        how,
        size: size as u8,
        vector: vector as u8,
        index: *index,
        depth: named.len() as u8,
        ranks: [
            vectors.rank(),
            shared.rank(),
            row.rank(),
            rows.map_or(0, |(_, whole)| whole.rank()),
            copied.map_or(0, |(_, walk, _)| walk.rank()),
        ],
        wide: total.max(made) > u64::from(u32::MAX >> 1),
        has_rows: width > 0,
        starts: copied.map(|(.., vector)| vector as u8),
    };
    let mut words = vec![total, width.max(1), (*each).max(1), out, *table, *at, *step as u64];
    let source = rows.map_or(0, |(rows, _)| rows);
    let (from, copies) = copied.map_or((0, 0), |(from, _, vector)| (from, made / vector));
    words.extend([source, from, copies]);
    words.extend(named.iter().flat_map(|(limit, step)| [*limit, *step as u64]));
    vectors.words(1, &mut words);
    shared.words(1, &mut words);
    row.words(vector, &mut words);
    if let Some((_, whole)) = rows {
        whole.words(vector, &mut words);
    }
    let mut functions = SmallVec::new();
    if let Some((_, walk, vector)) = copied {
        walk.words(vector, &mut words);
        functions.push(("start", blocks(copies, u64::from(THREADS))));
    }
    functions.push(("kernel", blocks(total, u64::from(THREADS))));
    let demand = Some(picked.demand);
    Ok(Some(Launch { key: KernelKey::Pick(key), functions, words, demand }))
}

/// The text of a kernel.
pub fn text(key: &PickKey) -> String {
    let (element, depth) = (moved_type(usize::from(key.size)), usize::from(key.depth));
    let ranks: usize = key.ranks.iter().map(|rank| usize::from(*rank)).sum();
    let idx = if key.wide { "u64" } else { "u32" };
    let mut text = String::new();
    let walks = FIRST + 2 * depth;
    let _ = writeln!(text, "struct P {{ u64 w[{}]; }};\ntypedef {idx} idx;", walks + 2 * ranks);
    let loop_over = |text: &mut String, name: &str, total: usize| {
        let _ = writeln!(
            text,
            "TN_KERNEL({name}) {{\n  const idx total = (idx)p.w[{total}];\n  for (idx t = (idx)blockIdx.x * {THREADS}u + threadIdx.x; t < total; t += (idx)gridDim.x * {THREADS}u) {{"
        );
    };
    let [vectors, shared, row, rows, start] = key.ranks;
    if let Some(vector) = key.starts {
        loop_over(&mut text, "start", 9);
        let lead = [vectors, shared, row, rows].map(usize::from).iter().sum::<usize>();
        offset(&mut text, "at", "t", start, walks + 2 * lead);
        let moved = format!("Vec<{element}, {vector}>");
        let _ = writeln!(
            text,
            "    (({moved}*)p.w[3])[t] = *(const {moved}*)((const {element}*)p.w[8] + at);\n  }}\n}}"
        );
    }
    loop_over(&mut text, "kernel", 0);
    text.push_str("    const idx width = (idx)p.w[1], e = t % width, o = t / width;\n");
    let behind = offset(&mut text, "at", "o", vectors, walks);
    text.push_str("    i64 from = 0;\n");
    let ty = c_type(key.index);
    // No axis is that long, so what has no place among numbers with a sign is out of range all the same.
    let read = |j: usize| {
        let element = format!("((const {ty}*)p.w[5])[at + {j} * (i64)p.w[6]]");
        match key.index {
            DType::U64 => format!("(i64)tn::least({element}, 0x7fffffffffffffffull)"),
            _ => format!("(i64){element}"),
        }
    };
    for j in 0..depth {
        let _ = writeln!(text, "    const i64 index{j} = {};", read(j));
    }
    // A start is to be a position at all before the part is looked at.
    if matches!(key.how, Pick::Slice | Pick::Update) {
        for j in 0..depth {
            let _ = writeln!(
                text,
                "    if (index{j} < 0) {{ guard.fail((u64){j}, index{j}); continue; }}"
            );
        }
    }
    for j in 0..depth {
        let (limit, step) = (FIRST + 2 * j, FIRST + 2 * j + 1);
        let _ = writeln!(
            text,
            "    if ((u64)index{j} >= p.w[{limit}]) {{ guard.fail((u64)o * {depth} + {j}, index{j}); continue; }}\n    from += index{j} * (i64)p.w[{step}];"
        );
    }
    if key.has_rows {
        let behind = match shared {
            0 => behind,
            _ => {
                let behind = offset(&mut text, "before", "o / (idx)p.w[2]", shared, behind);
                text.push_str("    from += before;\n");
                behind
            }
        };
        let behind = offset(&mut text, "within", "e", row, behind);
        let moved = format!("Vec<{element}, {}>", key.vector);
        let place = format!("(({element}*)p.w[4] + from + within)");
        let _ = match key.how {
            Pick::Update => {
                offset(&mut text, "of", "e", rows, behind);
                writeln!(
                    text,
                    "    *({moved}*){place} = *(const {moved}*)((const {element}*)p.w[7] + of);"
                )
            }
            _ => writeln!(text, "    (({moved}*)p.w[3])[t] = *(const {moved}*){place};"),
        };
    }
    text.push_str("  }\n}\n");
    text
}
