//! Every function of the headers: how it is called, and what the CPU gives.

use bytemuck::{cast_slice, cast_slice_mut};
use tonnage_core::DType;
use tonnage_simd::cast::cast;
use tonnage_simd::philox::Stream;
use tonnage_simd::prim::{Binary, Ternary, Unary};
use tonnage_simd::{level, random};

use super::inputs::{COUNT, Elements, Inputs, REGISTERS};
use super::program::c_type;

/// A function over all elements.
pub struct Case {
    /// In C++, of the element `i`.
    pub call: String,
    /// What it gives.
    pub out: DType,
    /// The CPU's result.
    pub wanted: Box<dyn Fn(&Inputs) -> Elements>,
    /// The first operand's dtype, where there is one.
    of: Option<DType>,
    /// Whether arguments beyond 10^6 are left to the platform's library by the CPU.
    far: bool,
}

impl Case {
    /// Units in the last place that this element may differ by.
    pub fn may_differ(&self, inputs: &Inputs, i: usize) -> u64 {
        match (self.far, self.of) {
            (true, Some(DType::F32)) => u64::from(first::<f32>(inputs, DType::F32, i).abs() > 1e6),
            (true, Some(DType::F64)) => {
                2 * u64::from(first::<f64>(inputs, DType::F64, i).abs() > 1e6)
            }
            _ => 0,
        }
    }

    /// For messages.
    pub fn operands(&self, inputs: &Inputs, i: usize) -> String {
        let Some(dtype) = self.of else { return String::new() };
        let at = i * dtype.size()..(i + 1) * dtype.size();
        let operand = |n| format!("{:02x?}", &inputs.of(dtype, n).bytes()[at.clone()]);
        format!("of {}, {}, {}", operand(0), operand(1), operand(2))
    }
}

fn first<T: bytemuck::Pod>(inputs: &Inputs, dtype: DType, i: usize) -> T {
    cast_slice(inputs.of(dtype, 0).bytes())[i]
}

/// All of them.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in REGISTERS {
        cases.extend(Unary::ALL.iter().filter_map(|&prim| unary(prim, dtype)));
        cases.extend(Binary::ALL.iter().filter_map(|&prim| binary(prim, dtype)));
        cases.extend(Ternary::ALL.iter().filter_map(|&prim| ternary(prim, dtype)));
        cases.extend(REGISTERS.iter().filter_map(|&to| number_cast(dtype, to)));
        cases.extend([DType::F16, DType::BF16].iter().filter_map(|&to| half_cast(dtype, to)));
        if dtype != DType::Bool {
            cases.extend(randoms(dtype));
        }
    }
    cases.extend([DType::F16, DType::BF16].into_iter().flat_map(halves));
    cases
}

/// A name in snake case, as the headers have it.
fn name(prim: impl std::fmt::Debug, dtype: DType) -> String {
    let prim = format!("{prim:?}");
    let snake = match prim.as_str() {
        "Equal" => "eq".to_string(),
        "NotEqual" => "ne".to_string(),
        "Less" => "lt".to_string(),
        "LessEqual" => "le".to_string(),
        "Greater" => "gt".to_string(),
        "GreaterEqual" => "ge".to_string(),
        "MulAdd" => "fma".to_string(),
        camel => {
            let mut snake = String::new();
            for (i, letter) in camel.char_indices() {
                if i > 0 && letter.is_ascii_uppercase() {
                    snake.push('_');
                }
                snake.push(letter.to_ascii_lowercase());
            }
            snake
        }
    };
    let prefix = if dtype == DType::Bool && snake != "select" { "b" } else { "p" };
    format!("{prefix}_{snake}")
}

fn unary(prim: Unary, dtype: DType) -> Option<Case> {
    let function = prim.function(dtype)?;
    let truth = matches!(prim, Unary::IsNan | Unary::IsInf | Unary::IsFinite);
    let out = if truth { DType::Bool } else { dtype };
    Some(Case {
        call: format!("{}({dtype}_a[i])", name(prim, dtype)),
        out,
        wanted: Box::new(move |inputs| {
            let mut made = Elements::new(out);
            function(level(), made.bytes_mut(), inputs.of(dtype, 0).bytes());
            made
        }),
        of: Some(dtype),
        far: matches!(prim, Unary::Sin | Unary::Cos | Unary::Tan),
    })
}

fn binary(prim: Binary, dtype: DType) -> Option<Case> {
    use Binary::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
    let function = prim.function(dtype)?;
    let truth = matches!(prim, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual);
    let out = if truth { DType::Bool } else { dtype };
    Some(Case {
        call: format!("{}({dtype}_a[i], {dtype}_b[i])", name(prim, dtype)),
        out,
        wanted: Box::new(move |inputs| {
            let mut made = Elements::new(out);
            let (a, b) = (inputs.of(dtype, 0), inputs.of(dtype, 1));
            function(level(), made.bytes_mut(), a.bytes(), b.bytes());
            made
        }),
        of: Some(dtype),
        far: false,
    })
}

fn ternary(prim: Ternary, dtype: DType) -> Option<Case> {
    let function = prim.function(dtype)?;
    // A boolean chooses; what is added to is of the dtype.
    let operands = match prim {
        Ternary::Select => [(DType::Bool, 2), (dtype, 0), (dtype, 1)],
        Ternary::MulAdd => [(dtype, 0), (dtype, 1), (dtype, 2)],
    };
    let text = operands.map(|(dtype, n)| format!("{dtype}_{}[i]", ["a", "b", "c"][n]));
    Some(Case {
        call: format!("{}({})", name(prim, dtype), text.join(", ")),
        out: dtype,
        wanted: Box::new(move |inputs| {
            let mut made = Elements::new(dtype);
            let [a, b, c] = operands.map(|(dtype, n)| inputs.of(dtype, n).bytes());
            function(level(), made.bytes_mut(), a, b, c);
            made
        }),
        of: Some(dtype),
        far: false,
    })
}

/// Casts one after the other.
fn cast_case(call: String, from: DType, steps: [DType; 2]) -> Case {
    Case {
        call,
        out: steps[1],
        wanted: Box::new(move |inputs| cast_twice(inputs.of(from, 0), from, steps)),
        of: Some(from),
        far: false,
    }
}

fn cast_twice(of: &Elements, from: DType, steps: [DType; 2]) -> Elements {
    let (mut between, mut out) = (Elements::new(steps[0]), Elements::new(steps[1]));
    cast(from, steps[0])(level(), between.bytes_mut(), of.bytes());
    cast(steps[0], steps[1])(level(), out.bytes_mut(), between.bytes());
    out
}

fn number_cast(from: DType, to: DType) -> Option<Case> {
    let call = match (from, to) {
        (DType::Bool, DType::Bool) => return None,
        (DType::Bool, _) => format!("b_cast_to<{}>({from}_a[i])", c_type(to)),
        (_, DType::Bool) => format!("b_cast_from({from}_a[i])"),
        _ => format!("p_cast<{}>({from}_a[i])", c_type(to)),
    };
    Some(cast_case(call, from, [to, to]))
}

/// A number as the f32 that its 16-bit float is.
fn half_cast(from: DType, half: DType) -> Option<Case> {
    let call = format!("{half}_round({from}_a[i])");
    (from != DType::Bool).then(|| cast_case(call, from, [half, DType::F32]))
}

/// To storage and from it, and the random numbers of such a dtype.
fn halves(half: DType) -> Vec<Case> {
    let load = Case {
        call: format!("{half}_load(u16_a[i])"),
        out: DType::F32,
        wanted: Box::new(move |inputs| {
            let mut made = Elements::new(DType::F32);
            cast(half, DType::F32)(level(), made.bytes_mut(), inputs.of(DType::U16, 0).bytes());
            made
        }),
        of: Some(DType::U16),
        far: false,
    };
    let store = cast_case(format!("{half}_store(f32_a[i])"), DType::F32, [half, half]);
    let steps = if half == DType::F16 { 2f32.powi(11) } else { 2f32.powi(8) };
    let drawn = move |name: &str, fill: fn(Stream, u64, &mut [f32]), down: bool| {
        random_case(&format!("{name}_{half}"), "", DType::F32, move |stream, start, out| {
            let mut wide = Elements::new(DType::F32);
            fill(stream, start, &mut cast_slice_mut(wide.bytes_mut())[..HALF]);
            if down {
                let all: &mut [f32] = cast_slice_mut(wide.bytes_mut());
                all.iter_mut().for_each(|x| *x = (*x * steps).floor() / steps);
            }
            let rounded = cast_twice(&wide, DType::F32, [half, DType::F32]);
            out.copy_from_slice(&rounded.bytes()[..out.len()]);
        })
    };
    vec![
        load,
        store,
        drawn("uniform", |s, at, out| random::uniform_f32(level(), s, at, out), true),
        drawn("normal", |s, at, out| random::normal_f32(level(), s, at, out), false),
        drawn("truncated_normal", random::truncated_normal_f32, false),
    ]
}

/// Elements of the two pieces of a stream that are compared.
const HALF: usize = COUNT / 2;

/// Where they begin: inside of a block, and before the lower word of a block's counter is full.
const STARTS: [u64; 2] = [3, (1 << 34) - 5001];

const STREAM: Stream = Stream { key: [0x1234_5678, 0x9abc_def0], nonce: [0, 0] };

fn random_case(
    name: &str,
    bound: &str,
    out: DType,
    fill: impl Fn(Stream, u64, &mut [u8]) + 'static,
) -> Case {
    let ([near, far], [k0, k1]) = (STARTS, STREAM.key);
    let index = format!("i < {HALF} ? {near}ull + i : {far}ull + (i - {HALF})");
    Case {
        call: format!("random_{name}({k0}u, {k1}u, {index}{bound})"),
        out,
        wanted: Box::new(move |_| {
            let mut made = Elements::new(out);
            for (piece, start) in made.bytes_mut().chunks_mut(HALF * out.size()).zip(STARTS) {
                fill(STREAM, start, piece);
            }
            made
        }),
        of: None,
        far: false,
    }
}

fn randoms(dtype: DType) -> Vec<Case> {
    macro_rules! floats {
        ($($name:literal $fill:expr;)*) => {
            vec![$(random_case($name, "", dtype, |stream, start, out| {
                $fill(stream, start, cast_slice_mut(out));
            }),)*]
        };
    }
    match dtype {
        DType::F32 => floats! {
            "uniform_f32" |s, at, out| random::uniform_f32(level(), s, at, out);
            "normal_f32" |s, at, out| random::normal_f32(level(), s, at, out);
            "truncated_normal_f32" random::truncated_normal_f32;
        },
        DType::F64 => floats! {
            "uniform_f64" |s, at, out| random::uniform_f64(level(), s, at, out);
            "normal_f64" |s, at, out| random::normal_f64(level(), s, at, out);
            "truncated_normal_f64" random::truncated_normal_f64;
        },
        _ => {
            let wide = dtype.size() == 8;
            let below = u64::MAX >> (64 - 8 * dtype.size() + 1);
            let bits =
                random_case(&format!("bits_{dtype}"), "", dtype, move |stream, start, out| {
                    let (mut words, mut doubles) = (vec![0u32; HALF], vec![0u64; HALF]);
                    match wide {
                        true => random::bits_u64(level(), stream, start, &mut doubles),
                        false => random::bits_u32(level(), stream, start, &mut words),
                    }
                    match wide {
                        true => cast(DType::U64, dtype)(level(), out, cast_slice(&doubles)),
                        false => cast(DType::U32, dtype)(level(), out, cast_slice(&words)),
                    }
                });
            let bound = format!(", {below}ull");
            let name = format!("below_{dtype}");
            let below = random_case(&name, &bound, dtype, move |stream, start, out| {
                let mut doubles = vec![0u64; HALF];
                random::below_u64(level(), stream, start, below, &mut doubles);
                cast(DType::U64, dtype)(level(), out, cast_slice(&doubles));
            });
            vec![bits, below]
        }
    }
}
