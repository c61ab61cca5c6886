//! Operands: the class that a kernel is generated for, and the words that a launch brings.

use std::fmt::Write as _;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::recipe::{Distribution, Generator, Key};
use tonnage_core::tile::Form;
use tonnage_core::{DType, Scalar};

use super::axes::contiguous;
use super::{Operand, bad, c_type};

/// What a kernel's text depends on of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperandClass {
    /// Elements in memory that lie in the domain's order.
    InOrder(DType),
    /// Elements in memory at steps of their own.
    Strided(DType),
    /// The same, of neighbours along another axis than the last: through shared memory.
    Transposed(DType),
    /// Rows of neighbours in memory, at steps of their own.
    Rows(DType),
    /// An element a row, at steps of their own.
    PerRow(DType),
    /// One element for all.
    Single(DType),
    /// Bits in the domain's order.
    Bits,
    /// The output of that number, in place.
    Output(u8),
    /// `start + position * step`.
    Count(DType),
    /// Random numbers.
    Random(DType, Random),
    /// Random numbers whose neighbours are made together, a block of four at a time.
    RandomBlocks(DType, Random),
}

/// How random numbers are spread; the bound of whole numbers is an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Random {
    Uniform,
    Normal,
    TruncatedNormal,
    Bits,
    Below,
}

/// An operand of a launch: its class, its steps over the domain, and where it starts.
#[derive(Debug, Clone)]
pub struct Placed {
    pub class: OperandClass,
    /// Over the whole domain.
    pub strides: SmallVec<[i64; 4]>,
    /// An address, or the first position of a generator; then what else a generator needs.
    pub words: SmallVec<[u64; 4]>,
}

impl Placed {
    /// An operand over a domain.
    pub fn of(operand: Operand, form: Form, domain: &[usize]) -> Result<Placed> {
        let placed = |class, strides, words: &[u64]| Placed { class, strides, words: words.into() };
        Ok(match (operand, form) {
            (Operand::Output(output), _) => {
                let output = u8::try_from(output).map_err(|_| bad("too many outputs"))?;
                placed(OperandClass::Output(output), contiguous(domain), &[])
            }
            (Operand::Memory(address, _), Form::Bits) => {
                placed(OperandClass::Bits, contiguous(domain), &[address])
            }
            (Operand::Memory(address, layout), Form::Elements(dtype)) => {
                let start = address + (layout.offset * dtype.size()) as u64;
                let strides = steps(&layout.strides);
                let class = match is_single(domain, &strides) {
                    true => OperandClass::Single(dtype),
                    false => OperandClass::Strided(dtype),
                };
                placed(class, strides, &[start])
            }
            (Operand::Generator(generator, layout), _) => {
                let (class, mut words) = generated(generator)?;
                words.insert(0, layout.offset as u64);
                Placed { class, strides: steps(&layout.strides), words }
            }
        })
    }

    /// Where the element at a position lies, as text: `at` is the position for operands at steps of their own, `flat` the number of the
    /// element in the domain's order, `word` the first of its arguments.
    pub fn value(class: OperandClass, word: usize, at: &str, flat: &str) -> String {
        let mut text = String::new();
        let element = |dtype: DType, at: &str| {
            load(dtype, &format!("((const {}*)p.w[{word}])[{at}]", c_type(dtype)))
        };
        match class {
            OperandClass::InOrder(dtype) => text.push_str(&element(dtype, flat)),
            OperandClass::Strided(dtype)
            | OperandClass::Rows(dtype)
            | OperandClass::PerRow(dtype) => text.push_str(&element(dtype, at)),
            OperandClass::Single(dtype) => text.push_str(&element(dtype, "0")),
            OperandClass::Bits => {
                let _ =
                    write!(text, "(u8)(((const u8*)p.w[{word}])[({at}) >> 3] >> (({at}) & 7) & 1)");
            }
            OperandClass::Output(_)
            | OperandClass::RandomBlocks(..)
            | OperandClass::Transposed(_) => {}
            OperandClass::Count(dtype) => {
                let (first, step) = (word + 1, word + 2);
                let at = format!("p.w[{word}] + (u64)({at})");
                let _ = match dtype {
                    DType::F64 => write!(text, "count_f64(p.w[{first}], p.w[{step}], {at})"),
                    DType::F32 => write!(text, "(f32)count_f64(p.w[{first}], p.w[{step}], {at})"),
                    DType::F16 => {
                        write!(text, "f16_round(count_f64(p.w[{first}], p.w[{step}], {at}))")
                    }
                    DType::BF16 => {
                        write!(text, "bf16_round(count_f64(p.w[{first}], p.w[{step}], {at}))")
                    }
                    _ => write!(text, "({})(p.w[{first}] + p.w[{step}] * ({at}))", c_type(dtype)),
                };
            }
            OperandClass::Random(dtype, random) => {
                let key = format!("(u32)p.w[{}], (u32)(p.w[{0}] >> 32)", word + 1);
                let at = format!("p.w[{word}] + (u64)({at})");
                let name = match dtype {
                    DType::F64 => "f64",
                    DType::F32 => "f32",
                    DType::F16 => "f16",
                    DType::BF16 => "bf16",
                    other => c_type(other),
                };
                let _ = match random {
                    Random::Uniform => write!(text, "random_uniform_{name}({key}, {at})"),
                    Random::Normal => write!(text, "random_normal_{name}({key}, {at})"),
                    Random::TruncatedNormal => {
                        write!(text, "random_truncated_normal_{name}({key}, {at})")
                    }
                    Random::Bits => write!(text, "random_bits_{name}({key}, {at})"),
                    Random::Below => {
                        write!(text, "({name})random_below_u64({key}, {at}, p.w[{}])", word + 2)
                    }
                };
            }
        }
        text
    }

    /// How many arguments an operand of a class has.
    pub fn words_of(class: OperandClass) -> usize {
        match class {
            OperandClass::Output(_) => 0,
            OperandClass::Count(_) => 3,
            OperandClass::Random(_, Random::Below) => 3,
            OperandClass::Random(..) | OperandClass::RandomBlocks(..) => 2,
            _ => 1,
        }
    }
}

/// Elements of a block of random numbers.
pub const BLOCK: usize = 4;

/// Whether the elements of a block are made together.
pub fn comes_in_blocks(dtype: DType, random: Random) -> bool {
    match random {
        Random::Uniform | Random::Normal => {
            matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
        }
        Random::Bits => matches!(dtype, DType::U32 | DType::I32),
        Random::TruncatedNormal | Random::Below => false,
    }
}

/// Fills `{to}[0]` to `{to}[3]` with the block that starts at a position.
pub fn block(dtype: DType, random: Random, word: usize, at: &str, to: &str) -> String {
    let name = match (random, dtype) {
        (Random::Normal, _) => "normal_f32",
        (Random::Uniform, _) => "uniform_f32",
        (_, DType::I32) => "bits_i32",
        _ => "bits_u32",
    };
    let key = format!("(u32)p.w[{0}], (u32)(p.w[{0}] >> 32)", word + 1);
    format!("random_{name}_block({key}, (p.w[{word}] + (u64)({at})) >> 2, {to});")
}

/// An element of a block as a register holds it.
pub fn of_block(dtype: DType, random: Random, element: &str) -> String {
    match (dtype, random) {
        (DType::F16, Random::Normal) => format!("f16_round({element})"),
        (DType::BF16, Random::Normal) => format!("bf16_round({element})"),
        // Rounded downwards, for 1 is none of them.
        (DType::F16, _) => format!("tn::floor({element} * 2048.0f) / 2048.0f"),
        (DType::BF16, _) => format!("tn::floor({element} * 256.0f) / 256.0f"),
        _ => element.to_string(),
    }
}

fn steps(strides: &[isize]) -> SmallVec<[i64; 4]> {
    strides.iter().map(|stride| *stride as i64).collect()
}

fn is_single(domain: &[usize], strides: &[i64]) -> bool {
    domain.iter().zip(strides).all(|(n, stride)| *n == 1 || *stride == 0)
}

/// An element as a register holds it.
pub fn load(dtype: DType, element: &str) -> String {
    match dtype {
        DType::F16 => format!("f16_load({element})"),
        DType::BF16 => format!("bf16_load({element})"),
        _ => element.to_string(),
    }
}

/// A register as memory holds it.
pub fn stored(dtype: DType, register: &str) -> String {
    match dtype {
        DType::F16 => format!("f16_store({register})"),
        DType::BF16 => format!("bf16_store({register})"),
        _ => register.to_string(),
    }
}

fn generated(generator: &Generator) -> Result<(OperandClass, SmallVec<[u64; 4]>)> {
    match *generator {
        Generator::Count { start, step, dtype } => {
            let bits = |value: Scalar| match dtype.is_float() {
                true => value.to_f64().to_bits(),
                false => value.to_i128() as u64,
            };
            Ok((OperandClass::Count(dtype), [bits(start), bits(step)].into_iter().collect()))
        }
        Generator::Random { key, distribution, dtype } => {
            let key = match key {
                Key::Fixed(key) => key,
                Key::PerCall(_) => return Err(bad("a random op without a key")),
            };
            let mut words: SmallVec<[u64; 4]> = SmallVec::new();
            words.push(u64::from(key[0]) | u64::from(key[1]) << 32);
            let random = match distribution {
                Distribution::Uniform => Random::Uniform,
                Distribution::Normal => Random::Normal,
                Distribution::TruncatedNormal => Random::TruncatedNormal,
                Distribution::Bits => Random::Bits,
                Distribution::Below(below) => {
                    words.push(below);
                    Random::Below
                }
            };
            Ok((OperandClass::Random(dtype, random), words))
        }
        Generator::Stored { .. } => Err(bad("a device reads a file through staging alone")),
        Generator::Given { .. } => Err(bad("a call did not bring one of its inputs")),
    }
}
