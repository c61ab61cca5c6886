//! Kernels that store one value an element. A thread takes some neighbours at once, by loads of up to 16 bytes, and some such groups one after
//! the other whose loads are all in flight before the first is used.

use std::fmt::Write as _;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::tile::{Form, TileProgram};

use super::axes::{Axes, contiguous};
use super::neighbours::{GoneThrough, Neighbours, positions};
use super::operand::{BLOCK, OperandClass, Placed, block, comes_in_blocks};
use super::{
    KernelKey, Launch, Operand, Share, THREADS, TileKey, bad, blocks, body, c_type, transpose,
};

/// Bytes of the widest access.
const ACCESS: usize = 16;

/// Neighbours that a thread takes, at most; of bits it takes a whole byte.
const MOST: usize = 8;

/// Groups of neighbours whose loads are in flight together.
const GROUPS: u64 = 4;

/// The launch of a program.
pub fn launch(
    program: &TileProgram,
    domain: &[usize],
    operands: &[Operand],
    outputs: &[u64],
) -> Result<Option<Launch>> {
    if outputs.len() < program.stores.len() || operands.len() < program.loads.len() {
        return Err(bad("a program with fewer operands than it has"));
    }
    let mut placed: SmallVec<[Placed; 4]> = SmallVec::new();
    for (operand, form) in operands.iter().zip(&program.loads) {
        placed.push(Placed::of(*operand, *form, domain)?);
    }
    // The order of the elements is an operand too: whoever lies in it needs no steps of its own.
    let order = contiguous(domain);
    let mut strides: SmallVec<[SmallVec<[i64; 4]>; 4]> =
        placed.iter().map(|operand| operand.strides.clone()).collect();
    strides.push(order);
    let all: SmallVec<[usize; 4]> = (0..domain.len()).collect();
    let axes = Axes::merged(domain, &strides, &all);
    if domain.contains(&0) {
        return Ok(None);
    }
    let in_order = &axes.strides[placed.len()];
    for (operand, strides) in placed.iter_mut().zip(&axes.strides) {
        if let OperandClass::Strided(dtype) = operand.class {
            operand.class = match strides.split_last() {
                _ if strides == in_order => OperandClass::InOrder(dtype),
                Some((1, outer)) if !outer.is_empty() => OperandClass::Rows(dtype),
                Some((0, outer)) if !outer.is_empty() => OperandClass::PerRow(dtype),
                _ => OperandClass::Strided(dtype),
            };
        }
    }
    let axis = transpose::mark(program, &mut placed, &axes);
    let (vector, one_by_one) = match axis {
        Some(_) => (1, false),
        None => vector(program, &placed, &axes, outputs),
    };
    if one_by_one {
        for operand in &mut placed {
            if let OperandClass::Rows(dtype) | OperandClass::PerRow(dtype) = operand.class {
                operand.class = OperandClass::Strided(dtype);
            }
        }
    }
    for (operand, strides) in placed.iter_mut().zip(&axes.strides) {
        let OperandClass::Random(dtype, random) = operand.class else { continue };
        let is_whole = |step: &i64| step.unsigned_abs().is_multiple_of(BLOCK as u64);
        let starts = operand.words[0].is_multiple_of(BLOCK as u64);
        let follows =
            matches!(strides.split_last(), Some((1, outer)) if outer.iter().all(is_whole));
        let whole = vector.is_multiple_of(BLOCK) && !one_by_one;
        if whole && starts && follows && comes_in_blocks(dtype, random) {
            operand.class = OperandClass::RandomBlocks(dtype, random);
        }
    }
    let rank = if axes.rank() < 2 { 1 } else { axes.rank() };
    let wide = axes.count() > u64::from(u32::MAX >> 1)
        || (0..placed.len()).any(|i| axes.reach(i) > u64::from(u32::MAX >> 1));
    let key = TileKey {
        program: program.clone(),
        operands: placed.iter().map(|operand| operand.class).collect(),
        ranks: (rank as u8, 0),
        vector: vector as u8,
        wide,
        share: axis.map_or(Share::Store { one_by_one }, |axis| Share::Transpose { axis }),
    };
    let count = axes.count().max(1);
    let mut words = vec![count];
    if rank > 1 {
        words.extend(axes.sizes.iter().map(|n| *n as u64));
    }
    for (operand, strides) in placed.iter().zip(&axes.strides) {
        words.extend(&operand.words);
        if has_steps(operand.class) {
            let mut steps: SmallVec<[u64; 4]> = strides.iter().map(|step| *step as u64).collect();
            steps.resize(rank, 0);
            words.extend(&steps);
        }
    }
    words.extend(&outputs[..program.stores.len()]);
    let each = u64::from(THREADS) * vector as u64 * groups(&key);
    let blocks = axis.map_or(blocks(count, each), |axis| blocks(transpose::tiles(&axes, axis), 1));
    let functions = SmallVec::from_iter([("kernel", blocks)]);
    Ok(Some(Launch { key: KernelKey::Tile(key), functions, words, demand: None }))
}

/// Whether an operand is addressed by steps.
pub fn has_steps(class: OperandClass) -> bool {
    use OperandClass::{Count, PerRow, Random, RandomBlocks, Rows, Strided, Transposed};
    matches!(
        class,
        Strided(_) | Transposed(_) | Rows(_) | PerRow(_) | Count(_) | Random(..) | RandomBlocks(..)
    )
}

/// Groups a thread takes: where indices have to be taken apart, or numbers are made, one is work enough.
fn groups(key: &TileKey) -> u64 {
    let plain = |class: &OperandClass| {
        matches!(
            class,
            OperandClass::InOrder(_) | OperandClass::Single(_) | OperandClass::Output(_)
        )
    };
    match key.ranks.0 == 1 && key.operands.iter().all(plain) && !has_bits(&key.program) {
        true => GROUPS,
        false => 1,
    }
}

pub fn has_bits(program: &TileProgram) -> bool {
    program
        .loads
        .iter()
        .chain(program.stores.iter().map(|(_, form)| form))
        .any(|f| *f == Form::Bits)
}

fn bytes_of(form: Form) -> Option<usize> {
    match form {
        Form::Elements(dtype) => Some(dtype.size()),
        Form::Bits => None,
    }
}

/// How many neighbours a thread takes, and whether one by one.
fn vector(program: &TileProgram, placed: &[Placed], axes: &Axes, outputs: &[u64]) -> (usize, bool) {
    let inner = axes.sizes.last().copied().unwrap_or(1);
    // A byte of bits is one thread's.
    if program.stores.iter().any(|(_, form)| *form == Form::Bits) {
        return (MOST, !fits(program, placed, axes, outputs, MOST, inner));
    }
    let mut sizes: SmallVec<[usize; 4]> = SmallVec::new();
    sizes.extend(program.stores.iter().filter_map(|(_, form)| bytes_of(*form)));
    for operand in placed {
        if let OperandClass::InOrder(dtype) | OperandClass::Rows(dtype) = operand.class {
            sizes.push(dtype.size());
        }
    }
    let least = sizes.iter().copied().min().unwrap_or(1);
    let mut vector = (ACCESS / least).min(MOST);
    while vector > 1 && !fits(program, placed, axes, outputs, vector, inner) {
        vector /= 2;
    }
    (vector, false)
}

/// Whether every access of so many neighbours is aligned, and stays in a row.
fn fits(
    program: &TileProgram,
    placed: &[Placed],
    axes: &Axes,
    outputs: &[u64],
    vector: usize,
    inner: usize,
) -> bool {
    // Along one axis the last group may be short.
    if axes.rank() > 1 && !inner.is_multiple_of(vector) {
        return false;
    }
    let aligned =
        |address: u64, size: usize| address.is_multiple_of((size * vector).min(ACCESS) as u64);
    let stores = program.stores.iter().zip(outputs);
    let outputs_fit = stores
        .clone()
        .all(|((_, form), address)| bytes_of(*form).is_none_or(|n| aligned(*address, n)));
    let operands_fit =
        placed.iter().zip(&axes.strides).all(|(operand, strides)| match operand.class {
            OperandClass::InOrder(dtype) => aligned(operand.words[0], dtype.size()),
            OperandClass::Rows(dtype) => {
                let outer = &strides[..strides.len() - 1];
                aligned(operand.words[0], dtype.size())
                    && outer.iter().all(|step| step.unsigned_abs().is_multiple_of(vector as u64))
            }
            // Read one by one.
            _ => true,
        });
    outputs_fit && operands_fit
}

/// The text of a kernel.
pub fn text(key: &TileKey, one_by_one: bool) -> String {
    let (program, vector, rank) = (&key.program, usize::from(key.vector), usize::from(key.ranks.0));
    let groups = groups(key);
    let index = if key.wide { "u64" } else { "u32" };
    let mut text = body::function(program);
    let mut word = 1 + if rank > 1 { rank } else { 0 };
    // Where the arguments of each operand begin, and its steps.
    let mut first = Vec::new();
    for class in &key.operands {
        let steps = word + Placed::words_of(*class);
        first.push((word, steps));
        word = steps + if has_steps(*class) { rank } else { 0 };
    }
    let outputs = word;
    word += program.stores.len();
    let _ = writeln!(text, "struct P {{ u64 w[{word}]; }};");
    let _ = writeln!(text, "typedef {index} idx;");
    let _ = writeln!(text, "TN_KERNEL(kernel) {{\n  const idx n = (idx)p.w[0];");
    for (i, class) in key.operands.iter().enumerate() {
        if let OperandClass::Single(_) = class {
            let value = Placed::value(*class, first[i].0, "", "");
            let _ = writeln!(text, "  const auto s{i} = {value};");
        }
    }
    let _ = writeln!(
        text,
        "  for (idx b = (idx)blockIdx.x * {THREADS}u * {groups}u; b < (n + {v}u) / {vector}u; b += (idx)gridDim.x * {THREADS}u * {groups}u) {{",
        v = vector - 1
    );
    // Loads of all groups, then all else.
    for (i, class) in key.operands.iter().enumerate() {
        if let Some(ty) = vector_type(key, i, *class) {
            let _ = writeln!(text, "    {ty} x{i}[{groups}];");
        }
    }
    if key.operands.iter().enumerate().any(|(i, class)| vector_type(key, i, *class).is_some()) {
        let _ = writeln!(text, "#pragma unroll\n    for (int u = 0; u < {groups}; u++) {{");
        let _ = writeln!(
            text,
            "      const idx g = b + u * {THREADS}u + threadIdx.x, e = g * {vector}u;"
        );
        let _ = writeln!(text, "      if (e + {vector}u <= n) {{");
        for (i, class) in key.operands.iter().enumerate() {
            let Some(ty) = vector_type(key, i, *class) else { continue };
            let address = match class {
                OperandClass::Output(k) => outputs + usize::from(*k),
                _ => first[i].0,
            };
            let _ = writeln!(text, "        x{i}[u] = ((const {ty}*)p.w[{address}])[g];");
        }
        text.push_str("      }\n    }\n");
    }
    let _ = writeln!(text, "#pragma unroll\n    for (int u = 0; u < {groups}; u++) {{");
    let _ =
        writeln!(text, "      const idx g = b + u * {THREADS}u + threadIdx.x, e = g * {vector}u;");
    match one_by_one {
        true => {
            text.push_str("      if (e >= n) continue;\n");
            let _ = writeln!(
                text,
                "      const int most = e + {vector}u <= n ? {vector} : (int)(n - e);"
            );
        }
        // Without a branch for each element: those behind the last whole group come at the end.
        false => {
            let _ = writeln!(text, "      if (e + {vector}u > n) continue;");
            positions(&mut text, key, &first, rank, ("g", vector));
        }
    }
    // What a group reads of a row is one access.
    for (i, class) in key.operands.iter().enumerate() {
        let _ = match class {
            OperandClass::Rows(dtype) => {
                let ty = c_type(*dtype);
                writeln!(
                    text,
                    "      const Vec<{ty}, {vector}> x{i} = *(const Vec<{ty}, {vector}>*)((const {ty}*)p.w[{}] + a{i});",
                    first[i].0
                )
            }
            OperandClass::PerRow(_) => {
                let value = Placed::value(*class, first[i].0, &format!("a{i}"), "");
                writeln!(text, "      const auto s{i} = {value};")
            }
            OperandClass::RandomBlocks(dtype, random) => {
                let ty = body::register_type(*dtype);
                let fill =
                    block(*dtype, *random, first[i].0, &format!("a{i} + v"), &format!("x{i} + v"));
                writeln!(
                    text,
                    "      {ty} x{i}[{vector}];\n#pragma unroll\n      for (int v = 0; v < {vector}; v += {BLOCK}) {fill}"
                )
            }
            _ => Ok(()),
        };
    }
    let neighbours = Neighbours { key, first: &first, outputs };
    neighbours
        .elements(&mut text, if one_by_one { GoneThrough::OneByOne } else { GoneThrough::Whole });
    text.push_str("    }\n  }\n");
    // A row is a multiple of a group, where there are rows.
    if vector > 1 && !one_by_one && rank == 1 {
        neighbours.rest(&mut text);
    }
    text.push_str("}\n");
    text
}

/// The type of what is loaded at once of an operand that lies in order.
fn vector_type(key: &TileKey, load: usize, class: OperandClass) -> Option<String> {
    let vector = key.vector;
    match class {
        _ if vector == 1 || key.share == (Share::Store { one_by_one: true }) => None,
        OperandClass::InOrder(dtype) => Some(format!("Vec<{}, {vector}>", c_type(dtype))),
        OperandClass::Output(_) => match key.program.loads[load] {
            Form::Elements(dtype) => Some(format!("Vec<{}, {vector}>", c_type(dtype))),
            Form::Bits => None,
        },
        _ => None,
    }
}
