//! Kernels that store one value an element and read some of their operands across: neighbours of such an operand lie along another axis than
//! those of the result. A block of threads takes a tile of the two axes at a time, brings it to shared memory along the operand's, and reads it
//! there along the result's, so both have whole cache lines.

use std::fmt::Write as _;

use smallvec::SmallVec;
use tonnage_core::DType;
use tonnage_core::tile::{Form, TileProgram};

use super::axes::Axes;
use super::operand::{OperandClass, Placed, load, stored};
use super::store::{has_bits, has_steps};
use super::{THREADS, TileKey, body, c_type};

/// Elements of a tile along each of the two axes.
const TILE: usize = 64;

/// Neighbours that a warp reads at once.
const LANES: usize = 32;

/// Rows of a tile that a block reads at once.
const ROWS: usize = THREADS as usize / LANES;

/// Shorter axes fill no cache line.
const LEAST: usize = 32;

/// Shared memory of a block, as every device has it without being asked.
const SHARED: usize = 48 << 10;

/// Bytes of a row of a tile. One access more than its elements, so that threads which read along a column meet in no bank.
fn row(dtype: DType) -> usize {
    TILE * dtype.size() + dtype.size().max(4)
}

/// The axis along which operands are read that are marked as [`OperandClass::Transposed`]; nothing where none is worth it.
pub fn mark(program: &TileProgram, placed: &mut [Placed], axes: &Axes) -> Option<u8> {
    let last = axes.rank().checked_sub(1)?;
    if axes.sizes[last] < LEAST || has_bits(program) {
        return None;
    }
    let across = |i: usize, class: OperandClass| match class {
        OperandClass::Strided(dtype) => {
            let strides = &axes.strides[i];
            let runs = |axis: &usize| strides[*axis] == 1 && axes.sizes[*axis] >= LEAST;
            let axis = (0..last).rev().find(runs)?;
            (strides[last].unsigned_abs() > 1).then_some((axis, dtype))
        }
        _ => None,
    };
    let axis = placed.iter().enumerate().find_map(|(i, operand)| across(i, operand.class))?.0;
    let mut room = SHARED;
    for (i, operand) in placed.iter_mut().enumerate() {
        let Some((_, dtype)) = across(i, operand.class).filter(|(at, _)| *at == axis) else {
            continue;
        };
        let bytes = TILE * row(dtype);
        if bytes <= room {
            room -= bytes;
            operand.class = OperandClass::Transposed(dtype);
        }
    }
    u8::try_from(axis).ok()
}

/// How many tiles there are, with an axis that is read along.
pub fn tiles(axes: &Axes, axis: u8) -> u64 {
    let of = |(at, n): (usize, &usize)| {
        let is_cut = at == usize::from(axis) || at + 1 == axes.rank();
        (if is_cut { n.div_ceil(TILE) } else { *n }) as u64
    };
    axes.sizes.iter().enumerate().map(of).product()
}

/// The text of a kernel.
pub fn text(key: &TileKey, axis: u8) -> String {
    let (program, rank, axis) = (&key.program, usize::from(key.ranks.0), usize::from(axis));
    let last = rank - 1;
    let index = if key.wide { "u64" } else { "u32" };
    let mut text = body::function(program);
    let mut word = 1 + rank;
    // Where the arguments of each operand begin, and its steps.
    let mut first: SmallVec<[(usize, usize); 4]> = SmallVec::new();
    for class in &key.operands {
        let steps = word + Placed::words_of(*class);
        first.push((word, steps));
        word = steps + if has_steps(*class) { rank } else { 0 };
    }
    let outputs = word;
    word += program.stores.len();
    let _ = writeln!(text, "struct P {{ u64 w[{word}]; }};\ntypedef {index} idx;");
    text.push_str("TN_KERNEL(kernel) {\n");
    let across: Vec<(usize, DType)> = (key.operands.iter().enumerate())
        .filter_map(|(i, class)| match class {
            OperandClass::Transposed(dtype) => Some((i, *dtype)),
            _ => None,
        })
        .collect();
    for (i, dtype) in &across {
        let (ty, width) = (c_type(*dtype), row(*dtype) / dtype.size());
        let _ = writeln!(text, "  __shared__ {ty} t{i}[{TILE}][{width}];");
    }
    for (i, class) in key.operands.iter().enumerate() {
        if let OperandClass::Single(_) = class {
            let value = Placed::value(*class, first[i].0, "", "");
            let _ = writeln!(text, "  const auto s{i} = {value};");
        }
    }
    let _ = writeln!(
        text,
        "  const idx n{axis} = (idx)p.w[{}], n{last} = (idx)p.w[{}];\n  const idx m{axis} = (n{axis} + {less}u) / {TILE}u, m{last} = (n{last} + {less}u) / {TILE}u;\n  const idx tiles = (idx)p.w[0] / n{axis} / n{last} * m{axis} * m{last};\n  const u32 x = threadIdx.x % {LANES}u, y = threadIdx.x / {LANES}u;",
        1 + axis,
        1 + last,
        less = TILE - 1
    );
    text.push_str("  for (idx b = blockIdx.x; b < tiles; b += gridDim.x) {\n    idx q = b;\n");
    // Where the tile starts along each axis.
    for at in (0..rank).rev() {
        let (count, scale) = match at == axis || at == last {
            true => (format!("m{at}"), format!(" * {TILE}u")),
            false => (format!("(idx)p.w[{}]", 1 + at), String::new()),
        };
        let _ = writeln!(text, "    const idx c{at} = q % {count}{scale}; q /= {count};");
    }
    let outer = |steps: usize| {
        let mut sum = String::from("0");
        for at in (0..rank).filter(|at| *at != axis && *at != last) {
            let _ = write!(sum, " + (i64)c{at} * (i64)p.w[{}]", steps + at);
        }
        sum
    };
    for (i, _) in key.operands.iter().enumerate().filter(|(_, class)| has_steps(**class)) {
        let _ = writeln!(text, "    const i64 o{i} = {};", outer(first[i].1));
    }
    // The order of the result: the number of the element at the start of a row of the tile.
    text.push_str("    idx row = 0;\n");
    for at in 0..last {
        let start = if at == axis { "0".to_string() } else { format!("c{at}") };
        let _ = writeln!(text, "    row = row * (idx)p.w[{}] + {start};", 1 + at);
    }
    let mut inner = String::from("1u");
    for at in axis + 1..last {
        let _ = write!(inner, " * (idx)p.w[{}]", 1 + at);
    }
    let _ = writeln!(text, "    const idx each = {inner};");
    let _ = writeln!(
        text,
        "#pragma unroll\n    for (u32 j = 0; j < {TILE}u; j += {ROWS}u) {{\n#pragma unroll\n      for (u32 k = 0; k < {TILE}u; k += {LANES}u) {{\n        const idx l = c{last} + y + j, t = c{axis} + x + k;\n        if (l < n{last} && t < n{axis}) {{"
    );
    for (i, dtype) in &across {
        let (at, steps) = first[*i];
        let _ = writeln!(
            text,
            "          t{i}[y + j][x + k] = ((const {}*)p.w[{at}])[o{i} + (i64)t + (i64)l * (i64)p.w[{}]];",
            c_type(*dtype),
            steps + last
        );
    }
    text.push_str("        }\n      }\n    }\n    __syncthreads();\n");
    let _ = writeln!(
        text,
        "#pragma unroll\n    for (u32 j = 0; j < {TILE}u; j += {ROWS}u) {{\n#pragma unroll\n      for (u32 k = 0; k < {TILE}u; k += {LANES}u) {{\n        const idx t = c{axis} + y + j, l = c{last} + x + k;\n        if (t >= n{axis} || l >= n{last}) continue;\n        const idx e = (row + t * each) * n{last} + l;"
    );
    element(&mut text, key, &first, (axis, last, outputs));
    text.push_str("      }\n    }\n    __syncthreads();\n  }\n}\n");
    text
}

/// What is done for the element `e`, at `t` and `l` of the two axes.
fn element(
    text: &mut String,
    key: &TileKey,
    first: &[(usize, usize)],
    (axis, last, outputs): (usize, usize, usize),
) {
    let program = &key.program;
    let mut arguments = String::new();
    for (i, class) in key.operands.iter().enumerate() {
        let (at, steps) = first[i];
        let place = format!(
            "(o{i} + (i64)t * (i64)p.w[{}] + (i64)l * (i64)p.w[{}])",
            steps + axis,
            steps + last
        );
        let value = match class {
            OperandClass::Single(_) => format!("s{i}"),
            OperandClass::Transposed(dtype) => load(*dtype, &format!("t{i}[x + k][y + j]")),
            OperandClass::Output(k) => match program.loads[i] {
                Form::Elements(dtype) => {
                    let output = outputs + usize::from(*k);
                    load(dtype, &format!("((const {}*)p.w[{output}])[e]", c_type(dtype)))
                }
                Form::Bits => String::new(),
            },
            _ => Placed::value(*class, at, &place, "e"),
        };
        let ty = body::register_type(program.loads[i].register());
        let _ = writeln!(text, "        const {ty} l{i} = {value};");
        let _ = write!(arguments, "{}l{i}", if i == 0 { "" } else { ", " });
    }
    for (k, (reg, _)) in program.stores.iter().enumerate() {
        let _ = writeln!(text, "        {} y{k};", body::register_type(program.register(*reg)));
        let _ = write!(arguments, "{}y{k}", if arguments.is_empty() { "" } else { ", " });
    }
    let _ = writeln!(text, "        body({arguments});");
    for (k, (_, form)) in program.stores.iter().enumerate() {
        if let Form::Elements(dtype) = form {
            let (ty, value) = (c_type(*dtype), stored(*dtype, &format!("y{k}")));
            let _ = writeln!(text, "        (({ty}*)p.w[{}])[e] = {value};", outputs + k);
        }
    }
}

#[cfg(test)]
mod tests {
    use tonnage_core::layout::Layout;

    use super::*;
    use crate::emit::{KernelKey, Operand, Share, launch};

    /// Along which axis operand 0 is read, and how many blocks there are.
    fn shared(sizes: &[usize], strides: &[isize]) -> (Option<u8>, u32) {
        let mut program = TileProgram::loading(&[DType::F32]);
        program.store(0, DType::F32);
        let layout =
            Layout { sizes: sizes.into(), strides: strides.iter().copied().collect(), offset: 0 };
        let made = launch(&program, sizes, &[Operand::Memory(256, &layout)], &[512], None);
        let made = made.unwrap().unwrap();
        let KernelKey::Tile(key) = made.key else { panic!("a tile program") };
        let axis = match key.share {
            Share::Transpose { axis } => Some(axis),
            _ => None,
        };
        (axis, made.functions[0].1)
    }

    #[test]
    fn what_lies_across_goes_through_tiles_where_both_axes_fill_a_cache_line() {
        assert_eq!(shared(&[100, 70], &[1, 100]), (Some(0), 4));
        assert_eq!(shared(&[3, 64, 5, 65], &[20800, 1, 64, 320]), (Some(1), 30));
        assert_eq!(shared(&[100, 8], &[1, 100]).0, None);
        assert_eq!(shared(&[8, 100], &[1, 8]).0, None);
        assert_eq!(shared(&[100, 70], &[70, 1]).0, None);
        assert_eq!(shared(&[100, 70], &[1, 0]).0, None);
    }
}
