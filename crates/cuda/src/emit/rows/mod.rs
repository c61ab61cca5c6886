//! Kernels of row programs: threads share a row, hold it in registers where it is short enough, and meet in trees between passes.
//!
//! `program` says what is computed, this file how it is shared among threads, and its text; `held` where rows wait between passes, `passes`
//! how each goes through a row, `powers` sums of powers of e, `columns` sums over rows.
//!
//! Decision: `docs/decisions/rows-apart.md`.

mod columns;
mod held;
mod passes;
mod powers;
mod program;

use std::fmt::{self, Write as _};

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, OpDef};
use tonnage_core::{Attrs, Bytes, DType};
use tonnage_ops::TABLE;

use super::axes::Axes;
use super::operand::load;
use super::{Demand, KernelKey, Launch, OpCall, Operand, bad, blocks, c_type};
use columns::Parts;
use held::{Holding, sharing};
use program::{Column, Pass, RowOperand, RowProgram};

/// Bytes of the widest access.
const ACCESS: usize = 16;

/// What tells row kernels apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RowKey {
    /// The op; its program follows from it and from this.
    op: u16,
    passes: &'static [Pass],
    columns: &'static [Column],
    kept: &'static [&'static str],
    operands: SmallVec<[RowClass; 4]>,
    numbers: SmallVec<[&'static str; 2]>,
    dtype: DType,
    outputs: u8,
    /// Axes before the rows, where neighbours are one.
    rank: u8,
    vector: u8,
    /// Threads that share a row.
    lanes: u16,
    /// Where rows wait between passes.
    holding: Holding,
    /// Threads side by side along rows that are summed up; none where there are no such sums.
    across: u8,
    /// Whether the last access of a row is not whole: all begin where an access may.
    ragged: bool,
    /// Whether the rows that are made lie apart.
    apart: bool,
    /// Whether something is added to them.
    added: bool,
    /// Whether positions take 64 bits.
    wide: bool,
}

impl fmt::Display for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = TABLE.iter().find(|op| op.id == self.op).map_or("?", |op| op.name);
        let ragged = if self.ragged { " ragged" } else { "" };
        let added = if self.added { " added" } else { "" };
        write!(f, "rows {name}{ragged}{added}")
    }
}

/// What a kernel's text depends on of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct RowClass {
    operand: RowOperand,
    /// Whether neighbours of a row lie side by side, to be read at once.
    at_once: bool,
    dtype: DType,
}

/// Whether an op has a row program.
pub fn has(op: &OpDef, attrs: &Attrs, dtype: DType) -> bool {
    dtype.is_float() && program::program(op, attrs).is_some()
}

pub use program::adds;

/// Whether an op makes rows that may lie apart.
pub fn makes_rows_apart(op: &OpDef, attrs: &Attrs) -> bool {
    program::program(op, attrs).is_some_and(|program| may_lie_apart(&program))
}

fn may_lie_apart(program: &RowProgram) -> bool {
    program.columns.is_empty() && stores(program)
}

fn stores(program: &RowProgram) -> bool {
    program.passes.iter().any(|pass| matches!(pass, Pass::Store(_)))
}

/// The launch of an op over rows of its first input; nothing where there is nothing to do.
///
/// # Errors
/// Where it has no row program.
pub fn launch(call: &OpCall) -> Result<Option<Launch>> {
    let OpCall { op, attrs, operands, sizes, outputs, lies, added, .. } = *call;
    let row_step = lies.first().and_then(Layout::row_step);
    let program = program::program(op, attrs).ok_or_else(|| bad("an op without a row program"))?;
    let (Some((width, outer)), Some((_, dtype))) = (sizes.split_last(), operands.first()) else {
        return Err(bad("rows without an axis"));
    };
    let rows: u64 = outer.iter().map(|n| *n as u64).product();
    if row_step.is_some() && !may_lie_apart(&program) {
        return Err(bad("rows apart of an op that makes none"));
    }
    if added.is_some() && !adds(op) {
        return Err(bad("an op that adds nothing to its rows"));
    }
    // Sums over no rows are zeros.
    let nothing = rows == 0 && program.columns.is_empty();
    if nothing || *width == 0 && !has_results(&program) {
        return Ok(None);
    }
    let mut strides: SmallVec<[SmallVec<[i64; 4]>; 4]> = SmallVec::new();
    let (mut addresses, mut steps): (SmallVec<[u64; 4]>, SmallVec<[i64; 4]>) = Default::default();
    for ((operand, dtype), kind) in operands.iter().zip(program.operands) {
        let (address, step, outer_steps) = match operand {
            Operand::Memory(address, layout) => {
                let start = address + (layout.offset * dtype.size()) as u64;
                let (step, before) = row_steps(layout, *kind, outer.len());
                (start, step, before)
            }
            Operand::Output(output) => {
                let own = Layout::rows_apart(sizes, row_step.unwrap_or(*width));
                let mut all: SmallVec<[i64; 4]> = own.strides.iter().map(|s| *s as i64).collect();
                let step = all.pop().unwrap_or(1);
                (outputs.get(*output).copied().unwrap_or(0), step, all)
            }
            Operand::Generator(..) => return Err(bad("a row that is computed")),
        };
        addresses.push(address);
        steps.push(step);
        strides.push(outer_steps);
    }
    let axes: SmallVec<[usize; 4]> = (0..outer.len()).collect();
    let axes = Axes::merged(outer, &strides, &axes);
    let rank = axes.rank().max(1);
    let half = u64::from(u32::MAX >> 1);
    let wide = rows > half || *width as u64 > half / 2;
    // Along rows that are side by side in every operand that is read so.
    let full = ACCESS / dtype.size();
    let fits = |vector: usize, i: usize| {
        steps[i] == 1
            && addresses[i].is_multiple_of((vector * operands[i].1.size()).min(ACCESS) as u64)
            && axes.strides[i].iter().all(|step| step.unsigned_abs().is_multiple_of(vector as u64))
    };
    let lies_at_multiples = |vector: usize| {
        let is_aligned = |address: &u64| address.is_multiple_of((vector * dtype.size()) as u64);
        outputs.iter().chain(&added).all(is_aligned)
            && row_step.is_none_or(|step| step.is_multiple_of(vector))
    };
    // Rows that begin where a whole access may are read in whole ones, the last with what lies behind the row: that is in the same aligned
    // piece, and blocks of memory end at the end of one. It is not computed with, and not written.
    let begin_whole = |i: usize| {
        let piece = (full * operands[i].1.size()) as u64;
        !program.operands[i].is_row() || fits(full, i) && addresses[i].is_multiple_of(piece)
    };
    let ragged = added.is_none()
        && *width > full
        && !width.is_multiple_of(full)
        && program.columns.is_empty()
        && (row_step.is_some() || !stores(&program))
        && (0..program.operands.len()).all(begin_whole)
        && lies_at_multiples(full);
    let mut vector = full;
    while vector > 1 && !width.is_multiple_of(vector) && !ragged {
        vector /= 2;
    }
    if !lies_at_multiples(vector) {
        vector = 1;
    }
    let classes = program.operands.iter().enumerate().map(|(i, operand)| RowClass {
        operand: *operand,
        at_once: operand.is_row() && fits(vector, i),
        dtype: operands[i].1,
    });
    let is_held = |(kind, _): &(&RowOperand, &(Operand, DType))| **kind == RowOperand::Held;
    let held = program.operands.iter().zip(operands).filter(is_held);
    let bytes = held.map(|(_, (_, dtype))| dtype.size()).sum();
    let (lanes, holding) = sharing(*width, vector, bytes, (call.shared, program.passes_over() > 1));
    let across = match program.columns {
        [] => 0,
        _ => columns::across(*width as u64, vector),
    };
    let key = RowKey {
        op: op.id,
        passes: program.passes,
        columns: program.columns,
        kept: program.kept,
        operands: classes.collect(),
        numbers: program.numbers.iter().map(|(name, _)| *name).collect(),
        dtype: *dtype,
        outputs: outputs.len() as u8,
        rank: rank as u8,
        vector: vector as u8,
        lanes: lanes as u16,
        holding,
        across: across as u8,
        ragged,
        apart: row_step.is_some(),
        added: added.is_some(),
        wide,
    };
    let mut words = vec![rows, *width as u64];
    words.extend(program.numbers.iter().map(|(_, number)| number.to_bits()));
    let mut lengths: SmallVec<[u64; 4]> = axes.sizes.iter().map(|n| *n as u64).collect();
    lengths.resize(rank, 1);
    words.extend(&lengths);
    for (i, address) in addresses.iter().enumerate() {
        words.extend([*address, steps[i] as u64]);
        let mut steps: SmallVec<[u64; 4]> = axes.strides[i].iter().map(|s| *s as u64).collect();
        steps.resize(rank, 0);
        words.extend(&steps);
    }
    words.extend(outputs);
    words.extend(row_step.map(|step| step as u64));
    let each = u64::from(key.block("kernel").threads) / lanes as u64;
    let mut functions: SmallVec<[(&'static str, u32); 2]> = SmallVec::new();
    functions.push(("kernel", blocks(rows, each)));
    if !program.columns.is_empty() {
        let parts = Parts::of(rows, *width as u64);
        words.extend([call.scratch.unwrap_or(0), parts.count]);
        parts.functions(vector, &mut functions);
    }
    words.extend(added);
    let points = program.operands.iter().any(|operand| matches!(operand, RowOperand::Label(_)));
    let demand = points.then_some(Demand::Below { op: op.name, size: *width });
    Ok(Some(Launch { key: KernelKey::Rows(key), functions, words, demand }))
}

/// Workspace of an op that has a row program: what rows keep for sums over them, and the parts of those.
pub fn scratch(op: &OpDef, call: &Call) -> Bytes {
    let program = program::program(op, call.attrs).filter(|program| !program.columns.is_empty());
    let (Some(program), Some(x)) = (program, call.inputs.first()) else { return Bytes::ZERO };
    let sizes = x.shape.most().unwrap_or_default();
    let Some((width, outer)) = sizes.split_last() else { return Bytes::ZERO };
    let rows = outer.iter().map(|n| *n as u64).product();
    let parts = Parts::of(rows, *width as u64);
    let numbers = rows * program.kept.len() as u64 + parts.numbers(program.columns.len());
    Bytes::new(numbers * x.dtype.compute().size() as u64)
}

fn has_results(program: &RowProgram) -> bool {
    program.passes.iter().any(|pass| matches!(pass, Pass::RowResult(..) | Pass::WideResult(..)))
}

/// The step along a row, and those of the axes before it. A row that all share has none of those.
fn row_steps(layout: &Layout, kind: RowOperand, outer: usize) -> (i64, SmallVec<[i64; 4]>) {
    let mut steps: SmallVec<[i64; 4]> = layout.strides.iter().map(|s| *s as i64).collect();
    let step = match kind {
        RowOperand::Number(_) | RowOperand::Label(_) => 0,
        RowOperand::Held | RowOperand::Read => steps.pop().unwrap_or(0),
    };
    // Axes that it lacks are before those that it has.
    while steps.len() < outer {
        steps.insert(0, 0);
    }
    (step, steps)
}

/// The names of operands in expressions.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// The text of a kernel.
pub fn text(key: &RowKey) -> String {
    let writer = Writer { key, text: String::new(), replaced: Default::default(), waits: false };
    writer.whole()
}

struct Writer<'k> {
    key: &'k RowKey,
    text: String,
    /// What stands for the elements of each operand, where they are not held in registers.
    replaced: [Option<String>; 4],
    /// Whether rows that are held are read from shared memory.
    waits: bool,
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// The word where an operand's arguments begin: its address, its step along a row, those along axes.
    fn word_of(&self, operand: usize) -> usize {
        let rank = usize::from(self.key.rank);
        2 + self.key.numbers.len() + rank + operand * (2 + rank)
    }

    /// The word with the address of what is added.
    fn added(&self, outputs: usize) -> usize {
        let sums = 2 * usize::from(!self.key.columns.is_empty());
        outputs + usize::from(self.key.outputs) + usize::from(self.key.apart) + sums
    }

    fn whole(mut self) -> String {
        let key = self.key;
        let (lanes, vector) = (key.lanes, key.vector);
        let (outputs, index) =
            (self.word_of(key.operands.len()), if key.wide { "u64" } else { "u32" });
        let computed = c_type(key.dtype.compute());
        let words = self.added(outputs) + usize::from(key.added);
        let lowest = match key.dtype {
            DType::F64 => "tn::from_bits(0xfff0000000000000ull)",
            _ => "tn::from_bits(0xff800000u)",
        };
        if key.passes.iter().any(|pass| matches!(pass, Pass::Powers(_) | Pass::PowersReplaced(_))) {
            self.text.push_str(powers::NEAR);
        }
        self.begin_held();
        let threads = key.block("kernel").threads;
        self.line(&format!(
            "struct P {{ u64 w[{words}]; }};\ntypedef {index} idx;\ntypedef {computed} C;"
        ));
        self.line(&format!("constexpr int L = {lanes}, V = {vector};"));
        self.line("TN_KERNEL(kernel) {");
        self.line(&format!("  __shared__ C tree[{threads}];\n  const C LOWEST = {lowest};"));
        self.line("  const idx rows = (idx)p.w[0], n = (idx)p.w[1];");
        self.line(&format!(
            "  const idx row = (idx)blockIdx.x * {}u + threadIdx.x / L, lane = threadIdx.x % L;",
            threads / u32::from(lanes)
        ));
        self.line(
            "  const bool live = row < rows;\n  const idx o = live ? row : 0, size = live ? n : 0;",
        );
        for (i, name) in key.numbers.iter().enumerate() {
            self.line(&format!("  const C {name} = (C)tn::from_bits(p.w[{}]);", 2 + i));
        }
        self.place();
        self.hold();
        for pass in key.passes {
            self.pass(pass, outputs);
        }
        self.line("}");
        self.end_held();
        if !key.columns.is_empty() {
            self.columns(outputs);
        }
        self.text
    }

    /// Finds row `o` in every operand, and reads what there is one of for it.
    fn place(&mut self) {
        let key = self.key;
        let rank = usize::from(key.rank);
        let first_size = 2 + key.numbers.len();
        self.line("  idx q = o;");
        for axis in (1..rank).rev() {
            let size = first_size + axis;
            self.line(&format!(
                "  const idx k{axis} = q % (idx)p.w[{size}]; q /= (idx)p.w[{size}];"
            ));
        }
        self.line("  const idx k0 = q;");
        for (i, class) in key.operands.iter().enumerate() {
            let word = self.word_of(i);
            let ty = c_type(class.dtype);
            let mut at = String::from("0");
            for axis in 0..rank {
                let _ = write!(at, " + (i64)k{axis} * (i64)p.w[{}]", word + 2 + axis);
            }
            self.line(&format!("  const {ty}* const x{i} = (const {ty}*)p.w[{word}] + ({at});"));
            match class.operand {
                RowOperand::Number(name) => {
                    let value = load(class.dtype, &format!("x{i}[0]"));
                    self.line(&format!("  const C {name} = {value};"));
                }
                RowOperand::Label(name) => {
                    self.line(&format!("  const i64 {name}_ = (i64)x{i}[0];"));
                    self.line(&format!("  if ((u64){name}_ >= (u64)n && live && lane == 0) guard.fail((u64)row, {name}_);"));
                    self.line(&format!("  const idx {name} = (idx){name}_;"));
                }
                RowOperand::Held | RowOperand::Read => {}
            }
        }
    }

    /// Reads the elements from `s` on of an operand, one by one or at once, to where `to` says.
    fn read(&mut self, i: usize, to: &str) {
        let class = self.key.operands[i];
        let ty = c_type(class.dtype);
        let waits = self.waits && class.operand == RowOperand::Held;
        if class.at_once || waits {
            let value = load(class.dtype, &format!("t{i}.v[v]"));
            let from = if waits { "w" } else { "x" };
            self.line(&format!(
                "      const Vec<{ty}, V> t{i} = *(const Vec<{ty}, V>*)({from}{i} + s);"
            ));
            self.line(&format!("#pragma unroll\n      for (int v = 0; v < V; v++) {to}{value};"));
        } else {
            let step = self.word_of(i) + 1;
            let value = load(class.dtype, &format!("x{i}[(i64)(s + v) * (i64)p.w[{step}]]"));
            self.line(&format!("#pragma unroll\n      for (int v = 0; v < V; v++) {to}{value};"));
        }
    }
}

/// Whether an expression has that name in it, as a word of its own.
fn uses(expression: &str, name: &str) -> bool {
    expression.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}
