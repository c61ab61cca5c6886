//! A tile program as text: one element, from registers that are loaded to registers that leave.

use std::fmt::Write as _;

use tonnage_core::scalar::FromScalar as _;
use tonnage_core::tile::{Instr, Prim, TileProgram};
use tonnage_core::{DType, Scalar, with_element};

use super::c_type;

/// The type of a register.
pub fn register_type(dtype: DType) -> &'static str {
    // 16-bit floats are held as f32.
    c_type(dtype.compute())
}

/// A function `body` of the registers that are loaded, which gives those that leave.
pub fn function(program: &TileProgram) -> String {
    let mut text = String::from("TN_FN void body(");
    for (i, form) in program.loads.iter().enumerate() {
        let _ = write!(text, "{}{} r{i}", comma(i), register_type(form.register()));
    }
    for (k, (reg, _)) in program.stores.iter().enumerate() {
        let ty = register_type(program.register(*reg));
        let _ = write!(text, "{}{ty}& y{k}", comma(program.loads.len() + k));
    }
    text.push_str(") {\n");
    for (i, instr) in program.code.iter().enumerate() {
        let reg = program.loads.len() + i;
        let ty = register_type(instr.result());
        let _ = writeln!(text, "  const {ty} r{reg} = {};", expression(instr));
    }
    for (k, (reg, _)) in program.stores.iter().enumerate() {
        let _ = writeln!(text, "  y{k} = r{reg};");
    }
    text.push_str("}\n");
    text
}

fn comma(i: usize) -> &'static str {
    if i == 0 { "" } else { ", " }
}

fn expression(instr: &Instr) -> String {
    let mut args = String::new();
    for (i, reg) in instr.args.iter().enumerate() {
        let _ = write!(args, "{}r{reg}", comma(i));
    }
    match instr.prim {
        Prim::Const(value) => constant(value, instr.dtype),
        Prim::Cast(to) => cast(instr.dtype, to, &args),
        Prim::RoundTo(DType::F16) => format!("f16_round({args})"),
        Prim::RoundTo(DType::BF16) => format!("bf16_round({args})"),
        Prim::RoundTo(_) => args,
        prim => {
            let prefix = if instr.dtype == DType::Bool && has_truth(prim) { "b" } else { "p" };
            format!("{prefix}_{}({args})", name(prim))
        }
    }
}

/// Whether booleans have a function of their own.
fn has_truth(prim: Prim) -> bool {
    use Prim::*;
    matches!(prim, Not | And | Or | Xor | Eq | Ne | Lt | Le | Gt | Ge | Max | Min)
}

/// The name of a primitive in the headers: its own, in lower case with underscores.
fn name(prim: Prim) -> String {
    let mut name = String::new();
    for c in format!("{prim:?}").chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

fn cast(from: DType, to: DType, arg: &str) -> String {
    let is_truth = from == DType::Bool;
    match to {
        DType::F16 if is_truth => format!("f16_round(b_cast_to<f32>({arg}))"),
        DType::BF16 if is_truth => format!("bf16_round(b_cast_to<f32>({arg}))"),
        DType::F16 => format!("f16_round({arg})"),
        DType::BF16 => format!("bf16_round({arg})"),
        DType::Bool if is_truth => arg.to_string(),
        DType::Bool => format!("b_cast_from({arg})"),
        _ if is_truth => format!("b_cast_to<{}>({arg})", c_type(to)),
        _ => format!("p_cast<{}>({arg})", c_type(to)),
    }
}

/// A number, by its bits: no text of a float is rounded on the way.
pub fn constant(value: Scalar, dtype: DType) -> String {
    let dtype = dtype.compute();
    let mut bits = [0; 8];
    with_element!(dtype, T => {
        bits[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&T::from_scalar(value)));
    });
    let bits = u64::from_le_bytes(bits);
    match dtype {
        DType::F64 => format!("tn::from_bits({bits:#x}ull)"),
        DType::F32 => format!("tn::from_bits({bits:#x}u)"),
        _ => format!("({})({bits:#x}ull)", c_type(dtype)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_headers() {
        assert_eq!(name(Prim::FloorDiv), "floor_div");
        assert_eq!(name(Prim::GeluTanh), "gelu_tanh");
        assert_eq!(name(Prim::Log1p), "log1p");
        assert_eq!(name(Prim::Atan2), "atan2");
    }

    #[test]
    fn a_program_is_one_function_of_its_loads() {
        let mut program = TileProgram::loading(&[DType::F32, DType::BF16]);
        let two = program.constant(2.0, DType::F32);
        let product = program.push(Prim::Mul, &[0, two]);
        let sum = program.push(Prim::Add, &[product, 1]);
        program.store(sum, DType::BF16);
        let text = function(&program);
        assert!(text.starts_with("TN_FN void body(f32 r0, f32 r1, f32& y0) {"), "{text}");
        assert!(text.contains("const f32 r3 = p_mul(r0, r2);"), "{text}");
        assert!(text.contains("tn::from_bits(0x40000000u)"), "{text}");
    }

    #[test]
    fn booleans_have_functions_of_their_own() {
        let mut program = TileProgram::loading(&[DType::Bool, DType::U8]);
        let truth = program.push(Prim::Not, &[0]);
        let bits = program.push(Prim::Not, &[1]);
        let cast = program.push(Prim::Cast(DType::Bool), &[bits]);
        let both = program.push(Prim::And, &[truth, cast]);
        program.store(both, DType::Bool);
        let text = function(&program);
        for part in ["b_not(r0)", "p_not(r1)", "b_cast_from(r3)", "b_and(r2, r4)"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
