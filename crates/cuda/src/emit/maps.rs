//! Kernels of ops that move elements to places known from their sizes: `concat`, `pad`, `place`, `roll`.
//!
//! Each element of the result is read where a map of every axis says, from the part that has it; what no part has is a number. Axes that
//! all parts run through alike are one with the axis outside of them, and elements that lie side by side are moved 16 bytes at a time.

use std::fmt::Write as _;

use smallvec::SmallVec;
use tonnage_core::attrs::PadMode;
use tonnage_core::error::Result;
use tonnage_core::row::OpDef;
use tonnage_core::scalar::FromScalar as _;
use tonnage_core::{Attrs, DType, Scalar, with_element};
use tonnage_ops::OpId;

use super::{KernelKey, Launch, OpCall, THREADS, bad, blocks, moved_type};

/// The most parts that a kernel is made for: its text has a branch for each.
const MOST_PARTS: usize = 32;

/// The most bytes of an access.
const WIDEST: u64 = 16;

/// What tells these kernels apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MapKey {
    /// Bytes of an element.
    size: u8,
    /// Elements that are moved at once.
    vector: u8,
    /// How the axes of the result are read, the same way in every part.
    ways: SmallVec<[Way; 4]>,
    parts: u8,
    /// Whether positions take 64 bits.
    wide: bool,
}

/// How an axis of a part is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Way {
    /// From a start on, as far as the part goes.
    Shift,
    /// Every so many positions there is an element.
    Step,
    /// What falls off one end comes in at the other.
    Roll,
    /// As in a mirror on the outermost element.
    Reflect,
    /// As in a mirror beside it.
    Symmetric,
}

/// An axis of a part: where it starts in the result, how far it goes, its steps there and in memory.
#[derive(Debug, Clone, Copy)]
struct MapAxis {
    start: i64,
    len: i64,
    every: i64,
    stride: i64,
}

/// A part: where its first element lies, and its axes.
type Part = (u64, SmallVec<[MapAxis; 4]>);

/// How the axes of the result are read, and what from.
struct Maps {
    ways: SmallVec<[Way; 4]>,
    parts: SmallVec<[Part; 4]>,
}

/// Words before the lengths of the result.
const FIRST: usize = 3;

/// Words of an axis of a part.
const EACH: usize = 4;

/// Whether an op is one of these.
pub fn has(op: &OpDef, attrs: &Attrs) -> bool {
    let is = |id: OpId| op.id == id as u16;
    match attrs {
        Attrs::Join { parts, .. } => is(OpId::Concat) && *parts <= MOST_PARTS,
        _ => is(OpId::Pad) || is(OpId::Place) || is(OpId::Roll),
    }
}

/// What the attributes say.
fn maps(call: &OpCall) -> Result<Maps> {
    let mut parts: SmallVec<[Part; 4]> = SmallVec::new();
    let mut ways: SmallVec<[Way; 4]> = SmallVec::from_elem(Way::Shift, call.made().len());
    let mut before = 0;
    for i in 0..call.operands.len() {
        let (address, layout, _) = call.memory(i)?;
        let mut axes: SmallVec<[MapAxis; 4]> = layout
            .sizes
            .iter()
            .zip(&layout.strides)
            .map(|(n, stride)| MapAxis {
                start: 0,
                len: *n as i64,
                every: 1,
                stride: *stride as i64,
            })
            .collect();
        match call.attrs {
            Attrs::Join { axis, .. } => {
                axes[*axis].start = before;
                before += axes[*axis].len;
            }
            Attrs::Pad { widths, padding } => {
                for ((axis, way), width) in axes.iter_mut().zip(&mut ways).zip(widths) {
                    axis.start = width[0] as i64;
                    *way = match padding {
                        // An axis without a mirror is one that is read on.
                        _ if *width == [0, 0] => Way::Shift,
                        PadMode::Constant(_) => Way::Shift,
                        PadMode::Reflect => Way::Reflect,
                        PadMode::Symmetric => Way::Symmetric,
                    };
                }
            }
            Attrs::Place { slices, .. } => {
                for ((axis, way), slice) in axes.iter_mut().zip(&mut ways).zip(slices) {
                    let Some(slice) = slice.known() else {
                        return Err(bad("places that are known"));
                    };
                    (axis.start, axis.every) = (slice.start as i64, slice.step as i64);
                    *way = if axis.every == 1 { Way::Shift } else { Way::Step };
                }
            }
            Attrs::Roll { axis, shift } => {
                if let (Some(of), Some(way)) = (axes.get_mut(*axis), ways.get_mut(*axis)) {
                    of.start = shift.rem_euclid(of.len.max(1));
                    *way = Way::Roll;
                }
            }
            _ => return Err(bad("an op that moves elements")),
        }
        parts.push((address, axes));
    }
    Ok(Maps { ways, parts })
}

/// Joins each axis that all parts run through alike with the one outside of it.
fn merge(sizes: &mut SmallVec<[i64; 4]>, ways: &mut SmallVec<[Way; 4]>, parts: &mut [Part]) {
    let mut at = sizes.len();
    while at > 1 {
        at -= 1;
        let (n, outer) = (sizes[at], at - 1);
        let runs = matches!(ways[outer], Way::Shift | Way::Roll) && ways[at] == Way::Shift;
        let alike = |(_, axes): &Part| {
            let (inner, outer) = (axes[at], axes[outer]);
            inner.start == 0 && inner.len == n && outer.stride == inner.stride * n
        };
        if runs && parts.iter().all(alike) {
            for (_, axes) in parts.iter_mut() {
                let inner = axes.remove(at);
                let axis = &mut axes[outer];
                (axis.start, axis.len, axis.stride) = (axis.start * n, axis.len * n, inner.stride);
            }
            sizes[outer] *= n;
            sizes.remove(at);
            ways.remove(at);
        }
    }
}

/// How many elements are moved at once along the last axis, which is then counted by so many.
fn widen(sizes: &mut [i64], ways: &[Way], parts: &mut [Part], (size, out): (u64, u64)) -> u64 {
    let (Some(n), Some(Way::Shift | Way::Roll)) = (sizes.last_mut(), ways.last()) else { return 1 };
    let last = ways.len() - 1;
    let fits = |vector: u64| {
        let (bytes, whole) = (vector * size, vector as i64);
        let part = |(address, axes): &Part| {
            let (axis, outer) = (axes[last], &axes[..last]);
            address.is_multiple_of(bytes)
                && axis.stride == 1
                && axis.start % whole == 0
                && axis.len % whole == 0
                && outer.iter().all(|axis| axis.stride % whole == 0)
        };
        bytes <= WIDEST && *n % whole == 0 && out.is_multiple_of(bytes) && parts.iter().all(part)
    };
    let vector = [16, 8, 4, 2].into_iter().find(|vector| fits(*vector)).unwrap_or(1);
    *n /= vector as i64;
    for (_, axes) in parts {
        for axis in &mut axes[..last] {
            axis.stride /= vector as i64;
        }
        (axes[last].start, axes[last].len) =
            (axes[last].start / vector as i64, axes[last].len / vector as i64);
    }
    vector
}

/// The bits of a number.
fn bits(value: Scalar, dtype: DType) -> u64 {
    let mut bits = [0; 8];
    with_element!(dtype, T => {
        bits[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&T::from_scalar(value)));
    });
    u64::from_le_bytes(bits)
}

/// The launch of one; nothing where there is nothing to do.
///
/// # Errors
/// Where it was lent something else than memory.
pub fn launch(call: &OpCall) -> Result<Option<Launch>> {
    let Maps { mut ways, mut parts } = maps(call)?;
    let (Some((_, dtype)), Some(out)) = (call.operands.first(), call.outputs.first()) else {
        return Err(bad("a part, and a result"));
    };
    let mut sizes: SmallVec<[i64; 4]> = call.made().iter().map(|n| *n as i64).collect();
    let fill = match call.attrs {
        Attrs::Pad { padding: PadMode::Constant(value), .. } => bits(*value, *dtype),
        _ => 0,
    };
    if sizes.contains(&0) {
        return Ok(None);
    }
    // Of no elements none is read, wherever they would lie.
    parts.retain(|(_, axes)| axes.iter().all(|axis| axis.len > 0));
    merge(&mut sizes, &mut ways, &mut parts);
    let vector = widen(&mut sizes, &ways, &mut parts, (dtype.size() as u64, *out));
    let total: i64 = sizes.iter().product();
    let key = MapKey {
        size: dtype.size() as u8,
        vector: vector as u8,
        ways,
        parts: parts.len() as u8,
        wide: total > i64::from(i32::MAX >> 1),
    };
    let mut words = vec![total as u64, *out, fill];
    words.extend(sizes.iter().map(|n| *n as u64));
    for (address, axes) in &parts {
        words.push(*address);
        for MapAxis { start, len, every, stride } in axes {
            words.extend([*start, *len, *every, *stride].map(|word| word as u64));
        }
    }
    let functions = SmallVec::from_iter([("kernel", blocks(total as u64, u64::from(THREADS)))]);
    Ok(Some(Launch { key: KernelKey::Map(key), functions, words, demand: None }))
}

/// The text of a kernel.
pub fn text(key: &MapKey) -> String {
    let MapKey { size, vector, ways, parts, wide } = key;
    let (rank, parts) = (ways.len(), usize::from(*parts));
    let words = FIRST + rank + parts * (1 + EACH * rank);
    let (pos, unsigned) = if *wide { ("i64", "u64") } else { ("i32", "u32") };
    let element = moved_type(usize::from(*size));
    let mut text = String::new();
    let _ = writeln!(
        text,
        "struct P {{ u64 w[{words}]; }};\ntypedef Vec<{element}, {vector}> E;\n\
         TN_KERNEL(kernel) {{\n  const {pos} total = ({pos})p.w[0];\n\
         \x20 for ({pos} t = ({pos})blockIdx.x * {THREADS} + ({pos})threadIdx.x; t < total; t += ({pos})gridDim.x * {THREADS}) {{\n\
         \x20   {pos} q = t;\n    E value;\n    for (int j = 0; j < {vector}; j++) value.v[j] = ({element})p.w[2];"
    );
    for axis in (0..rank).rev() {
        let length = FIRST + axis;
        let _ = match axis {
            0 => writeln!(text, "    const {pos} o0 = q;"),
            _ => writeln!(
                text,
                "    const {pos} o{axis} = q % ({pos})p.w[{length}];\n    q /= ({pos})p.w[{length}];"
            ),
        };
    }
    for part in 0..parts {
        let base = FIRST + rank + part * (1 + EACH * rank);
        text.push_str("    {\n      bool has = true;\n      i64 at = 0;\n");
        for (axis, way) in ways.iter().enumerate() {
            let word = base + 1 + EACH * axis;
            let [start, len, every] = [0, 1, 2].map(|i| format!("({pos})p.w[{}]", word + i));
            let stride = word + 3;
            let x = format!("x{axis}");
            let _ = match way {
                Way::Shift => writeln!(text, "      const {pos} {x} = o{axis} - {start};"),
                Way::Step => writeln!(
                    text,
                    "      const {pos} d{axis} = o{axis} - {start}, {x} = d{axis} / {every};\n      has &= {x} * {every} == d{axis};"
                ),
                Way::Roll => writeln!(
                    text,
                    "      {pos} {x} = o{axis} - {start};\n      if ({x} < 0) {x} += {len};"
                ),
                Way::Reflect | Way::Symmetric => {
                    let beside = i32::from(*way == Way::Symmetric);
                    writeln!(
                        text,
                        "      {pos} {x} = o{axis} - {start};\n      if ({x} < 0) {x} = -{x} - {beside};\n\
                         \x20     if ({x} >= {len}) {x} = 2 * {len} - 2 + {beside} - {x};"
                    )
                }
            };
            let _ = writeln!(
                text,
                "      has &= ({unsigned}){x} < ({unsigned}){len};\n      at += (i64){x} * (i64)p.w[{stride}];"
            );
        }
        let _ = writeln!(text, "      if (has) value = ((const E*)p.w[{base}])[at];\n    }}");
    }
    text.push_str("    ((E*)p.w[1])[t] = value;\n  }\n}\n");
    text
}
