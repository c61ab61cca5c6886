//! A group of neighbours that a thread of a kernel takes which stores them: what is done with its elements, as text.

use std::fmt::Write as _;

use tonnage_core::tile::Form;

use super::operand::{OperandClass, Placed, load, of_block, stored};
use super::store::{has_bits, has_steps};
use super::{Share, TileKey, body, c_type};

/// Which elements are gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoneThrough {
    /// All of a group, at once.
    Whole,
    /// Those of a group that are there, one by one.
    OneByOne,
    /// One.
    Single,
}

/// A group of neighbours that a thread takes.
pub struct Neighbours<'a> {
    pub key: &'a TileKey,
    /// Where the arguments of each operand begin, and its steps.
    pub first: &'a [(usize, usize)],
    /// Where the addresses of the outputs are.
    pub outputs: usize,
}

impl Neighbours<'_> {
    /// What stands behind the last whole group, along one axis: an element a thread of the first block; of bits, a byte is one thread's.
    pub fn rest(&self, text: &mut String) {
        let (key, vector) = (self.key, usize::from(self.key.vector));
        match has_bits(&key.program) {
            true => {
                let _ = writeln!(
                    text,
                    "  const idx g = n / {vector}u, e = g * {vector}u;\n  const int most = (int)(n - e);\n  if (blockIdx.x == 0 && threadIdx.x == 0 && most > 0) {{"
                );
                positions(text, key, self.first, 1, ("g", vector));
                self.elements(text, GoneThrough::OneByOne);
            }
            false => {
                let _ = writeln!(
                    text,
                    "  const idx e = n / {vector}u * {vector}u + threadIdx.x;\n  if (blockIdx.x == 0 && e < n) {{"
                );
                positions(text, key, self.first, 1, ("e", 1));
                self.elements(text, GoneThrough::Single);
            }
        }
        text.push_str("  }\n");
    }

    /// What is done with its elements.
    pub fn elements(&self, text: &mut String, part: GoneThrough) {
        let (key, program, whole) = (self.key, &self.key.program, part == GoneThrough::Whole);
        let (vector, rank) = (usize::from(key.vector), usize::from(key.ranks.0));
        let one_by_one = key.share == Share::Store { one_by_one: true };
        for (k, (_, form)) in program.stores.iter().enumerate() {
            let _ = match form {
                Form::Elements(dtype) if whole => {
                    writeln!(text, "      Vec<{}, {vector}> z{k};", c_type(*dtype))
                }
                Form::Elements(_) => Ok(()),
                Form::Bits => writeln!(text, "      u8 z{k} = 0;"),
            };
        }
        let _ = match part {
            GoneThrough::Whole => {
                writeln!(text, "#pragma unroll\n      for (int v = 0; v < {vector}; v++) {{")
            }
            GoneThrough::OneByOne => {
                writeln!(text, "#pragma unroll 1\n      for (int v = 0; v < most; v++) {{")
            }
            GoneThrough::Single => writeln!(text, "      {{\n        const int v = 0;"),
        };
        if one_by_one {
            positions(text, key, self.first, rank, ("(e + v)", 1));
        }
        for (k, (reg, _)) in program.stores.iter().enumerate() {
            let _ = writeln!(text, "        {} y{k};", body::register_type(program.register(*reg)));
        }
        let mut arguments = String::new();
        for i in 0..key.operands.len() {
            let value = self.value(i, whole && vector > 1);
            let ty = body::register_type(program.loads[i].register());
            let _ = writeln!(text, "        const {ty} l{i} = {value};");
            let _ = write!(arguments, "{}l{i}", if i == 0 { "" } else { ", " });
        }
        for k in 0..program.stores.len() {
            let _ = write!(arguments, "{}y{k}", if arguments.is_empty() { "" } else { ", " });
        }
        let _ = writeln!(text, "        body({arguments});");
        for (k, (_, form)) in program.stores.iter().enumerate() {
            let _ = match form {
                Form::Elements(dtype) => {
                    let to = match whole {
                        true => format!("z{k}.v[v]"),
                        false => {
                            format!("(({}*)p.w[{}])[e + v]", c_type(*dtype), self.outputs + k)
                        }
                    };
                    writeln!(text, "        {to} = {};", stored(*dtype, &format!("y{k}")))
                }
                Form::Bits => writeln!(text, "        z{k} |= (u8)(y{k} << v);"),
            };
        }
        text.push_str("      }\n");
        for (k, (_, form)) in program.stores.iter().enumerate() {
            let address = self.outputs + k;
            let _ = match form {
                Form::Elements(dtype) if whole => {
                    let ty = c_type(*dtype);
                    writeln!(text, "      ((Vec<{ty}, {vector}>*)p.w[{address}])[g] = z{k};")
                }
                Form::Elements(_) => Ok(()),
                Form::Bits => writeln!(text, "      ((u8*)p.w[{address}])[g] = z{k};"),
            };
        }
    }

    /// Element `v` of a load, from what was read at once or by itself.
    fn value(&self, i: usize, at_once: bool) -> String {
        let (key, class, (word, steps)) = (self.key, self.key.operands[i], self.first[i]);
        let one_by_one = key.share == Share::Store { one_by_one: true };
        match class {
            OperandClass::Single(_) | OperandClass::PerRow(_) => format!("s{i}"),
            OperandClass::Rows(dtype) if at_once => load(dtype, &format!("x{i}.v[v]")),
            OperandClass::Rows(_) => Placed::value(class, word, &format!("a{i} + v"), ""),
            OperandClass::RandomBlocks(dtype, random) if at_once => {
                of_block(dtype, random, &format!("x{i}[v]"))
            }
            OperandClass::RandomBlocks(dtype, random) => {
                let alone = OperandClass::Random(dtype, random);
                Placed::value(alone, word, &format!("a{i} + v"), "")
            }
            OperandClass::InOrder(dtype) if at_once => load(dtype, &format!("x{i}[u].v[v]")),
            OperandClass::InOrder(_) => Placed::value(class, word, "", "e + v"),
            OperandClass::Output(k) => {
                let output = self.outputs + usize::from(k);
                match key.program.loads[i] {
                    Form::Bits => format!("(u8)(((const u8*)p.w[{output}])[g] >> v & 1)"),
                    Form::Elements(dtype) if at_once => load(dtype, &format!("x{i}[u].v[v]")),
                    Form::Elements(dtype) => {
                        load(dtype, &format!("((const {}*)p.w[{output}])[e + v]", c_type(dtype)))
                    }
                }
            }
            OperandClass::Bits => Placed::value(class, word, "(e + v)", ""),
            _ => {
                let rank = usize::from(key.ranks.0);
                let inner = match one_by_one {
                    true => String::new(),
                    false => format!(" + v * (i64)p.w[{}]", steps + rank - 1),
                };
                Placed::value(class, word, &format!("a{i}{inner}"), "")
            }
        }
    }
}

/// Where an element lies in each operand that has steps of its own: number `at` of the groups of so many.
pub fn positions(
    text: &mut String,
    key: &TileKey,
    first: &[(usize, usize)],
    rank: usize,
    (at, each): (&str, usize),
) {
    let stepped: Vec<usize> =
        (0..key.operands.len()).filter(|i| has_steps(key.operands[*i])).collect();
    if stepped.is_empty() {
        return;
    }
    if rank == 1 {
        for i in stepped {
            let step = first[i].1;
            let _ =
                writeln!(text, "      const i64 a{i} = (i64)({at} * {each}u) * (i64)p.w[{step}];");
        }
        return;
    }
    let _ = writeln!(text, "      idx q = {at};");
    for axis in (1..rank).rev() {
        let (size, scale) = (1 + axis, if axis == rank - 1 { each } else { 1 });
        let _ = writeln!(
            text,
            "      const idx m{axis} = (idx)p.w[{size}] / {scale}u, d{axis} = q / m{axis}, c{axis} = (q - d{axis} * m{axis}) * {scale}u; q = d{axis};"
        );
    }
    text.push_str("      const idx c0 = q;\n");
    for i in stepped {
        let _ = write!(text, "      const i64 a{i} = 0");
        for axis in 0..rank {
            let _ = write!(text, " + (i64)c{axis} * (i64)p.w[{}]", first[i].1 + axis);
        }
        text.push_str(";\n");
    }
}
