//! Kernels that reduce over axes. Threads share a result, each goes through its part in order, and they meet in a tree: the same at every run.
//! Where results are few, blocks share them too: partial results go to the workspace, and a second function joins them in order.
//!
//! Floats are added up in f64: precise in any order, and the sum is rounded once.

use std::fmt::Write as _;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::tile::{Close, Form, Reduction, TileProgram};
use tonnage_core::{Bytes, DType};

use super::axes::Axes;
use super::operand::{OperandClass, Placed, load, stored};
use super::{KernelKey, Launch, Operand, Share, THREADS, TileKey, bad, blocks, body, c_type};

/// Bytes of the widest access.
const ACCESS: usize = 16;

/// Neighbours that a thread takes, at most.
const MOST: usize = 8;

/// Blocks that keep a device busy.
const BUSY: u64 = 1024;

/// Elements that a thread goes through at least, before blocks share a result.
const LEAST: u64 = 32;

/// Threads that meet without a barrier.
const WARP: u64 = 32;

/// Bytes of a partial result.
const PARTIAL: u64 = 8;

/// How a reduction is shared: follows from its sizes alone, as its workspace has to.
#[derive(Debug, Clone, Copy)]
struct Sharing {
    results: u64,
    /// Elements of one.
    length: u64,
    /// Threads that share a result.
    lanes: u64,
    /// Whether neighbours among them lie along what is reduced.
    along: bool,
    /// Blocks that share a result.
    parts: u64,
    /// Neighbouring results that a thread takes where operands lie so that it can.
    columns: u64,
}

impl Sharing {
    fn of(program: &TileProgram, domain: &[usize], axes: &[usize]) -> Sharing {
        let product = |gone: bool| {
            let taken = domain.iter().enumerate().filter(|(axis, _)| axes.contains(axis) == gone);
            taken.map(|(_, n)| *n as u64).product::<u64>()
        };
        let (results, length) = (product(false), product(true));
        let inner = domain.iter().rposition(|n| *n != 1);
        let along = inner.is_none_or(|axis| axes.contains(&axis));
        let size = |form: &Form| match form {
            Form::Elements(dtype) => dtype.size(),
            Form::Bits => ACCESS,
        };
        let largest = program.loads.iter().map(size).max().unwrap_or(ACCESS);
        // Short rows have no more threads than accesses.
        let accesses = length.div_ceil((ACCESS / largest).min(MOST) as u64);
        let lanes = match (along, length) {
            (_, 0..=8) => 1,
            (true, ..=1024) => accesses.next_power_of_two().min(WARP),
            (true, _) => u64::from(THREADS),
            (false, ..=64) => 1,
            (false, _) => 8,
        };
        let widest = (ACCESS / largest).min(MOST) as u64;
        // As many as divide them.
        let columns = if along { 1 } else { widest.min(1 << results.trailing_zeros().min(4)) };
        let each = u64::from(THREADS) / lanes * columns;
        let wanted = BUSY.div_ceil(results.div_ceil(each).max(1));
        let most = (length / (lanes * LEAST)).max(1);
        Sharing { results, length, lanes, along, parts: wanted.min(most), columns }
    }
}

/// Workspace: partial results, where blocks share them.
pub fn scratch(program: &TileProgram, domain: &[usize], axes: &[usize]) -> Bytes {
    let sharing = Sharing::of(program, domain, axes);
    match sharing.parts {
        1 => Bytes::ZERO,
        parts => Bytes::new(sharing.results * parts * PARTIAL),
    }
}

/// The launch of a program.
pub fn launch(
    program: &TileProgram,
    domain: &[usize],
    reduced: &[usize],
    operands: &[Operand],
    (outputs, scratch): (&[u64], Option<u64>),
) -> Result<Option<Launch>> {
    let mut placed: SmallVec<[Placed; 4]> = SmallVec::new();
    for (operand, form) in operands.iter().zip(&program.loads) {
        placed.push(Placed::of(*operand, *form, domain)?);
    }
    let Some(output) = outputs.first() else { return Err(bad("a reduction without a result")) };
    let sharing = Sharing::of(program, domain, reduced);
    if sharing.results == 0 {
        return Ok(None);
    }
    let strides: SmallVec<[SmallVec<[i64; 4]>; 4]> =
        placed.iter().map(|operand| operand.strides.clone()).collect();
    let (gone, kept): (SmallVec<[usize; 4]>, SmallVec<[usize; 4]>) =
        (0..domain.len()).partition(|axis| reduced.contains(axis));
    let kept = Axes::merged(domain, &strides, &kept);
    let gone = Axes::merged(domain, &strides, &gone);
    let ranks = (kept.rank().max(1), gone.rank().max(1));
    let half = u64::from(u32::MAX >> 1);
    let wide = sharing.results > half
        || sharing.length > half
        || (0..placed.len()).any(|i| kept.reach(i) + gone.reach(i) > half);
    let vector = match sharing.columns {
        1 => vector(&mut placed, &sharing, (&kept, &gone)),
        columns => columns_at_once(&mut placed, columns, (&kept, &gone)),
    };
    let passes = if sharing.parts > 1 { 2 } else { 1 };
    let share = Share::Reduce { lanes: sharing.lanes as u16, along: sharing.along, passes };
    let key = TileKey {
        program: program.clone(),
        operands: placed.iter().map(|operand| operand.class).collect(),
        ranks: (ranks.0 as u8, ranks.1 as u8),
        vector: vector as u8,
        wide,
        share,
    };
    let partials = match (passes, scratch) {
        (1, _) => 0,
        (_, Some(scratch)) => scratch,
        (_, None) => return Err(bad("a reduction without its workspace")),
    };
    let mut words = vec![sharing.results, sharing.length, sharing.parts, *output, partials];
    for (axes, rank) in [(&kept, ranks.0), (&gone, ranks.1)] {
        let mut sizes: SmallVec<[u64; 4]> = axes.sizes.iter().map(|n| *n as u64).collect();
        sizes.resize(rank, 1);
        words.extend(&sizes);
    }
    for (i, operand) in placed.iter().enumerate() {
        words.extend(&operand.words);
        for (axes, rank) in [(&kept, ranks.0), (&gone, ranks.1)] {
            let mut steps: SmallVec<[u64; 4]> =
                axes.strides[i].iter().map(|step| *step as u64).collect();
            steps.resize(rank, 0);
            words.extend(&steps);
        }
    }
    let columns = if sharing.along { 1 } else { vector as u64 };
    let each = u64::from(THREADS) / sharing.lanes * columns;
    let mut functions: SmallVec<[(&'static str, u32); 2]> = SmallVec::new();
    functions.push(("kernel", blocks(sharing.results, each) * sharing.parts as u32));
    if passes == 2 {
        functions.push(("join", blocks(sharing.results, u64::from(THREADS) / JOIN)));
    }
    Ok(Some(Launch { key: KernelKey::Tile(key), functions, words, demand: None }))
}

/// How many neighbours of a row a thread takes by one access; operands that are read so become rows.
fn vector(placed: &mut [Placed], sharing: &Sharing, (kept, gone): (&Axes, &Axes)) -> usize {
    let is_row = |i: usize| gone.strides[i].as_slice() == [1];
    let rows: SmallVec<[usize; 4]> = (0..placed.len())
        .filter(|i| matches!(placed[*i].class, OperandClass::Strided(_)) && is_row(*i))
        .collect();
    let size = |operand: &Placed| match operand.class {
        OperandClass::Strided(dtype) => dtype.size(),
        _ => 1,
    };
    let least = rows.iter().map(|i| size(&placed[*i])).min();
    let Some(least) = least.filter(|_| sharing.along && gone.rank() == 1) else { return 1 };
    let mut vector = (ACCESS / least).min(MOST);
    let fits = |vector: usize| {
        sharing.length.is_multiple_of(vector as u64)
            && rows.iter().all(|i| {
                let bytes = (size(&placed[*i]) * vector).min(ACCESS) as u64;
                let steps = &kept.strides[*i];
                placed[*i].words[0].is_multiple_of(bytes)
                    && steps.iter().all(|step| step.unsigned_abs().is_multiple_of(vector as u64))
            })
    };
    while vector > 1 && !fits(vector) {
        vector /= 2;
    }
    if vector > 1 {
        for i in rows {
            if let OperandClass::Strided(dtype) = placed[i].class {
                placed[i].class = OperandClass::Rows(dtype);
            }
        }
    }
    vector
}

/// How many neighbouring results a thread takes: all or one. Operands that are read so become rows.
fn columns_at_once(placed: &mut [Placed], columns: u64, (kept, gone): (&Axes, &Axes)) -> usize {
    let fits = placed.iter().enumerate().all(|(i, operand)| match operand.class {
        OperandClass::Single(_) => true,
        OperandClass::Strided(dtype) => {
            let bytes = (dtype.size() as u64 * columns).min(ACCESS as u64);
            kept.strides[i].as_slice() == [1]
                && operand.words[0].is_multiple_of(bytes)
                && gone.strides[i].iter().all(|step| step.unsigned_abs().is_multiple_of(columns))
        }
        _ => false,
    });
    if !fits {
        return 1;
    }
    for operand in placed {
        if let OperandClass::Strided(dtype) = operand.class {
            operand.class = OperandClass::Rows(dtype);
        }
    }
    columns as usize
}

/// Threads that join the partial results of one.
const JOIN: u64 = 32;

/// How values are brought together.
struct Accumulator {
    /// Its type.
    ty: &'static str,
    start: String,
    /// Of `a` and `b`.
    join: &'static str,
}

impl Accumulator {
    fn of(reduction: Reduction, dtype: DType) -> Accumulator {
        let is_float = dtype.is_float();
        let own = c_type(dtype.compute());
        let wide = if is_float { "f64" } else { own };
        let least = |low: bool| match (dtype.compute(), low) {
            (DType::F64, true) => "tn::from_bits(0xfff0000000000000ull)".to_string(),
            (DType::F64, false) => "tn::from_bits(0x7ff0000000000000ull)".to_string(),
            (DType::F32, true) => "tn::from_bits(0xff800000u)".to_string(),
            (DType::F32, false) => "tn::from_bits(0x7f800000u)".to_string(),
            (DType::I64, true) => "(i64)0x8000000000000000ull".to_string(),
            (DType::I64, false) => "(i64)0x7fffffffffffffffull".to_string(),
            (DType::I32, true) => "(i32)0x80000000u".to_string(),
            (DType::I32, false) => "(i32)0x7fffffff".to_string(),
            (DType::I16, true) => "(i16)-32768".to_string(),
            (DType::I16, false) => "(i16)32767".to_string(),
            (DType::I8, true) => "(i8)-128".to_string(),
            (DType::I8, false) => "(i8)127".to_string(),
            (DType::Bool, false) => "(u8)1".to_string(),
            (_, true) => format!("({own})0"),
            (_, false) => format!("({own})~0ull"),
        };
        let is_truth = dtype == DType::Bool;
        match reduction {
            Reduction::Sum | Reduction::Mean => {
                Accumulator { ty: wide, start: format!("({wide})0"), join: "p_add(a, b)" }
            }
            Reduction::Prod => {
                Accumulator { ty: wide, start: format!("({wide})1"), join: "p_mul(a, b)" }
            }
            Reduction::Max => {
                let join = if is_truth { "b_max(a, b)" } else { "p_max(a, b)" };
                Accumulator { ty: own, start: least(true), join }
            }
            Reduction::Min => {
                let join = if is_truth { "b_min(a, b)" } else { "p_min(a, b)" };
                Accumulator { ty: own, start: least(false), join }
            }
            Reduction::Any => Accumulator { ty: "u8", start: "(u8)0".into(), join: "b_or(a, b)" },
            Reduction::All => Accumulator { ty: "u8", start: "(u8)1".into(), join: "b_and(a, b)" },
        }
    }
}

/// The text of a kernel.
pub fn text(key: &TileKey, lanes: u16, along: bool, passes: u8) -> String {
    let program = &key.program;
    let (Close::Reduce { reduction, .. }, Some((reg, form))) =
        (&program.close, program.stores.first())
    else {
        return String::new(); // `launch` makes no such key
    };
    let held = program.register(*reg);
    let acc = Accumulator::of(*reduction, held);
    let (kept, gone) = (usize::from(key.ranks.0), usize::from(key.ranks.1));
    let vector = key.vector;
    let mut text = body::function(program);
    let mut word = 5 + kept + gone;
    let mut first = Vec::new();
    for class in &key.operands {
        let steps = word + Placed::words_of(*class);
        first.push((word, steps));
        word = steps + kept + gone;
    }
    let index = if key.wide { "u64" } else { "u32" };
    let _ = writeln!(
        text,
        "struct P {{ u64 w[{word}]; }};\ntypedef {index} idx;\nconstexpr idx VECTOR = {vector};\ntypedef {} acc;",
        acc.ty
    );
    let _ = writeln!(text, "TN_FN acc join2(acc a, acc b) {{ return {}; }}", acc.join);
    finish(&mut text, *reduction, *form, &acc);
    let each = THREADS / u32::from(lanes);
    let _ = writeln!(text, "TN_KERNEL(kernel) {{\n  __shared__ acc tree[{THREADS}];");
    text.push_str(
        "  const idx results = (idx)p.w[0], length = (idx)p.w[1], parts = (idx)p.w[2];\n",
    );
    let _ = match along {
        true => writeln!(
            text,
            "  const u32 lane = threadIdx.x % {lanes}u, mine = threadIdx.x / {lanes}u;"
        ),
        false => writeln!(
            text,
            "  const u32 lane = threadIdx.x / {each}u, mine = threadIdx.x % {each}u;"
        ),
    };
    text.push_str("  const idx part = blockIdx.x % parts, group = blockIdx.x / parts;\n");
    let columns = if along { 1 } else { vector };
    let _ = writeln!(text, "  const idx o = (group * {each}u + mine) * {columns}u;");
    // Along a row a thread takes neighbours that are reduced, and otherwise neighbouring results.
    let step = if along { "VECTOR" } else { "1" };
    let _ = writeln!(
        text,
        "  const idx chunk = ((length + parts - 1) / parts + {step} - 1) / {step} * {step}, from = part * chunk;\n  const idx to = from + chunk < length ? from + chunk : length;"
    );
    let _ = writeln!(text, "  acc sums[{columns}];");
    let _ = writeln!(
        text,
        "#pragma unroll\n  for (int c = 0; c < {columns}; c++) sums[c] = {};",
        acc.start
    );
    text.push_str("  if (o < results) {\n");
    take_apart(&mut text, "o", "k", 5, kept);
    for (i, _) in key.operands.iter().enumerate() {
        let _ = write!(text, "    const i64 a{i} = 0");
        for axis in 0..kept {
            let _ = write!(text, " + (i64)k{axis} * (i64)p.w[{}]", first[i].1 + axis);
        }
        text.push_str(";\n");
    }
    let at_a_time = if vector > 1 { 4 } else { 8 };
    let _ = writeln!(
        text,
        "#pragma unroll {at_a_time}\n    for (idx s = from + lane * {step}; s < to; s += {lanes}u * {step}) {{"
    );
    // What of a reduction stands at `r`: all of a thread's columns, or one element of a row.
    let at_of = |i: usize| {
        let mut at = format!("a{i}");
        for axis in 0..gone {
            let _ = write!(at, " + (i64)g{axis} * (i64)p.w[{}]", first[i].1 + kept + axis);
        }
        at
    };
    if !along {
        text.push_str("      const idx r = s;\n");
        take_apart(&mut text, "r", "g", 5 + kept, gone);
    }
    for (i, class) in key.operands.iter().enumerate() {
        if let OperandClass::Rows(dtype) = class {
            let (ty, word) = (c_type(*dtype), first[i].0);
            let at = if along { format!("a{i} + s") } else { at_of(i) };
            let _ = writeln!(
                text,
                "      const Vec<{ty}, {vector}> x{i} = *(const Vec<{ty}, {vector}>*)((const {ty}*)p.w[{word}] + {at});"
            );
        }
    }
    text.push_str("#pragma unroll\n      for (idx v = 0; v < VECTOR; v++) {\n");
    if along {
        text.push_str("      const idx r = s + v;\n");
        take_apart(&mut text, "r", "g", 5 + kept, gone);
    }
    let mut arguments = String::new();
    for (i, class) in key.operands.iter().enumerate() {
        let at = at_of(i);
        let value = match class {
            OperandClass::Single(_) => Placed::value(*class, first[i].0, "0", "0"),
            OperandClass::Rows(dtype) => load(*dtype, &format!("x{i}.v[v]")),
            _ => Placed::value(*class, first[i].0, &at, &at),
        };
        let ty = body::register_type(program.loads[i].register());
        let _ = writeln!(text, "      const {ty} l{i} = {value};");
        let _ = write!(arguments, "{}l{i}", if i == 0 { "" } else { ", " });
    }
    let ty = body::register_type(held);
    let comma = if arguments.is_empty() { "" } else { ", " };
    let column = if along { "0" } else { "v" };
    let _ = writeln!(
        text,
        "      {ty} y0;\n      body({arguments}{comma}y0);\n      sums[{column}] = join2(sums[{column}], (acc)y0);\n      }}\n    }}\n  }}"
    );
    let _ = writeln!(
        text,
        "#pragma unroll\n  for (int c = 0; c < {columns}; c++) {{\n  acc sum = sums[c];"
    );
    tree(&mut text, u32::from(lanes), along);
    let _ = match passes {
        1 => writeln!(text, "  if (lane == 0 && o < results) finish(p, o + c, length, sum);"),
        _ => writeln!(
            text,
            "  if (lane == 0 && o < results) ((acc*)p.w[4])[part * results + o + c] = sum;"
        ),
    };
    if lanes > 1 {
        text.push_str("  __syncthreads();\n");
    }
    text.push_str("  }\n}\n");
    if passes == 2 {
        let each = THREADS / JOIN as u32;
        let _ = writeln!(
            text,
            "TN_KERNEL(join) {{\n  __shared__ acc tree[{THREADS}];\n  const idx results = (idx)p.w[0], length = (idx)p.w[1], parts = (idx)p.w[2];\n  const u32 lane = threadIdx.x / {each}u, mine = threadIdx.x % {each}u;\n  const idx o = (idx)blockIdx.x * {each}u + mine;\n  acc sum = {};\n  if (o < results) for (idx i = lane; i < parts; i += {JOIN}u) sum = join2(sum, ((const acc*)p.w[4])[i * results + o]);",
            acc.start
        );
        tree(&mut text, JOIN as u32, false);
        text.push_str("  if (lane == 0 && o < results) finish(p, o, length, sum);\n}\n");
    }
    text
}

/// The result of an accumulator, to where it is stored.
fn finish(text: &mut String, reduction: Reduction, form: Form, acc: &Accumulator) {
    let dtype = match form {
        Form::Elements(dtype) => dtype,
        Form::Bits => DType::Bool,
    };
    let value = match reduction {
        Reduction::Mean => "sum / (acc)length",
        _ => "sum",
    };
    let rounded = match (dtype, acc.ty) {
        (DType::F16, "f64") => format!("f16_round({value})"),
        (DType::BF16, "f64") => format!("bf16_round({value})"),
        (DType::F32, "f64") => format!("(f32)({value})"),
        _ => format!("({value})"),
    };
    let ty = c_type(dtype);
    let stored = stored(dtype, &rounded);
    let _ = writeln!(
        text,
        "TN_FN void finish(const P& p, idx o, idx length, acc sum) {{ (({ty}*)p.w[3])[o] = {stored}; }}"
    );
}

/// The index of a position along every axis: `{to}0`, `{to}1`, ...
fn take_apart(text: &mut String, from: &str, to: &str, sizes: usize, rank: usize) {
    if rank == 1 {
        let _ = writeln!(text, "      const idx {to}0 = {from};");
        return;
    }
    let mut left = from.to_string();
    for axis in (1..rank).rev() {
        let size = sizes + axis;
        let _ = writeln!(
            text,
            "      const idx {to}q{axis} = {left} / (idx)p.w[{size}], {to}{axis} = {left} - {to}q{axis} * (idx)p.w[{size}];"
        );
        left = format!("{to}q{axis}");
    }
    let _ = writeln!(text, "      const idx {to}0 = {left};");
}

/// Lanes meet: the first has all.
fn tree(text: &mut String, lanes: u32, along: bool) {
    if lanes == 1 {
        return;
    }
    let next = if along { 1 } else { THREADS / lanes };
    let in_warp = along && u64::from(lanes) <= WARP;
    if in_warp {
        let _ = writeln!(
            text,
            "#ifdef __CUDACC_RTC__\n#pragma unroll\n  for (u32 half = {}; half > 0; half /= 2) sum = join2(sum, (acc)__shfl_down_sync(0xffffffffu, sum, half, {lanes}));\n#else",
            lanes / 2
        );
    }
    text.push_str("  tree[threadIdx.x] = sum;\n  __syncthreads();\n");
    let _ =
        writeln!(text, "#pragma unroll\n  for (u32 half = {}; half > 0; half /= 2) {{", lanes / 2);
    let _ = writeln!(
        text,
        "    if (lane < half) tree[threadIdx.x] = join2(tree[threadIdx.x], tree[threadIdx.x + half * {next}u]);"
    );
    text.push_str("    __syncthreads();\n  }\n  sum = tree[threadIdx.x];\n");
    if in_warp {
        text.push_str("#endif\n");
    }
}
