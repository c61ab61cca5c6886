//! Chains of elementwise ops: the program, element by element.

use tonnage_core::tile::{Close, Form, Instr, Prim, Reduction};
use tonnage_core::{Attrs, DType};

use super::{Asked, common, indices};
use crate::exact;
use crate::plain::{Answer, held};

fn unary(prim: Prim, x: f64) -> f64 {
    match prim {
        Prim::Neg => -x,
        Prim::Abs => x.abs(),
        Prim::Sign => {
            if x == 0.0 {
                x
            } else {
                x.signum()
            }
        }
        Prim::Floor => x.floor(),
        Prim::Ceil => x.ceil(),
        Prim::Round => x.round_ties_even(),
        Prim::Sqrt => x.sqrt(),
        Prim::Rsqrt => 1.0 / x.sqrt(),
        Prim::Square => x * x,
        Prim::Reciprocal => 1.0 / x,
        Prim::Exp => x.exp(),
        Prim::Expm1 => x.exp_m1(),
        Prim::Log => x.ln(),
        Prim::Log1p => x.ln_1p(),
        Prim::Sin => x.sin(),
        Prim::Cos => x.cos(),
        Prim::Tan => x.tan(),
        Prim::Asin => x.asin(),
        Prim::Acos => x.acos(),
        Prim::Atan => x.atan(),
        Prim::Sinh => x.sinh(),
        Prim::Cosh => x.cosh(),
        Prim::Tanh => x.tanh(),
        Prim::Asinh => x.asinh(),
        Prim::Acosh => x.acosh(),
        Prim::Atanh => x.atanh(),
        Prim::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Prim::Softplus => x.exp().ln_1p(),
        Prim::Silu => exact::silu(x),
        Prim::Gelu => exact::gelu(x),
        Prim::GeluTanh => exact::gelu_tanh(x),
        Prim::Erf => exact::erf(x),
        Prim::Erfc => exact::erfc(x),
        Prim::Lgamma => exact::lgamma(x),
        Prim::Digamma => exact::digamma(x),
        Prim::Cast(to) | Prim::RoundTo(to) => held(x, to),
        other => panic!("no reference for {other:?}"),
    }
}

fn instruction(instr: &Instr, args: &[f64]) -> f64 {
    let value = match (instr.prim, args) {
        (Prim::Const(value), _) => value.to_f64(),
        (prim, [x]) => unary(prim, *x),
        (Prim::Add, [a, b]) => a + b,
        (Prim::Sub, [a, b]) => a - b,
        (Prim::Mul, [a, b]) => a * b,
        (Prim::Div, [a, b]) => a / b,
        (Prim::Mod, [a, b]) => a - b * (a / b).floor(),
        (Prim::FloorDiv, [a, b]) => (a / b).floor(),
        (Prim::Pow, [a, b]) => a.powf(*b),
        (Prim::Atan2, [a, b]) => a.atan2(*b),
        (Prim::Hypot, [a, b]) => a.hypot(*b),
        (Prim::Polygamma, [a, b]) => exact::polygamma(*a as u32, *b),
        (Prim::Max, [a, b]) => a.max(*b),
        (Prim::Min, [a, b]) => a.min(*b),
        (Prim::Gt, [a, b]) => f64::from(a > b),
        (Prim::Lt, [a, b]) => f64::from(a < b),
        (Prim::Eq, [a, b]) => f64::from(a == b),
        (Prim::Select, [choice, a, b]) => {
            if *choice != 0.0 {
                *a
            } else {
                *b
            }
        }
        (Prim::Fma, [a, b, c]) => a * b + c,
        (other, _) => panic!("no reference for {other:?}"),
    };
    if instr.result().is_float() { value } else { held(value, instr.result()) }
}

pub fn fused(asked: &Asked) -> Vec<Answer> {
    let Attrs::Tile(program) = asked.attrs else { panic!("no program") };
    let elements = asked.inputs.iter().zip(&program.loads);
    let elements = elements.filter(|(_, form)| matches!(form, Form::Elements(_)));
    let domain = common(elements.map(|(x, _)| &x.sizes).collect::<Vec<_>>().into_iter());
    let mut stored = vec![Vec::new(); program.stores.len()];
    for (at, index) in indices(&domain).iter().enumerate() {
        let mut registers: Vec<f64> = Vec::new();
        for (x, form) in asked.inputs.iter().zip(&program.loads) {
            registers.push(match form {
                Form::Elements(_) => x.broadcast(index),
                Form::Bits => f64::from(x.values[at / 8] as u8 >> (at % 8) & 1),
            });
        }
        for instr in &program.code {
            let args: Vec<f64> = instr.args.iter().map(|r| registers[*r as usize]).collect();
            registers.push(instruction(instr, &args));
        }
        for (values, (reg, _)) in stored.iter_mut().zip(&program.stores) {
            values.push(registers[*reg as usize]);
        }
    }
    let forms = program.stores.iter().map(|(_, form)| *form);
    forms.zip(stored).map(|(form, values)| close(form, values, &domain, &program.close)).collect()
}

fn close(form: Form, values: Vec<f64>, domain: &[usize], how: &Close) -> Answer {
    match (form, how) {
        (Form::Bits, _) => {
            let byte = |bits: &[f64]| {
                bits.iter().enumerate().map(|(i, b)| b * f64::from(1u8 << i)).sum::<f64>()
            };
            let bytes: Vec<f64> = values.chunks(8).map(byte).collect();
            Answer::new(DType::U8, vec![bytes.len()], bytes)
        }
        (Form::Elements(dtype), Close::Store) => Answer::new(dtype, domain, values),
        (Form::Elements(dtype), Close::Reduce { reduction, axes }) => {
            assert!(
                matches!(reduction, Reduction::Sum | Reduction::Mean),
                "no reference for other reductions"
            );
            let kept: Vec<usize> = (0..domain.len()).filter(|a| !axes.contains(a)).collect();
            let sizes: Vec<usize> = kept.iter().map(|a| domain[*a]).collect();
            let mut sums = vec![0.0; sizes.iter().product()];
            let mut scale = sums.clone();
            for (index, value) in indices(domain).iter().zip(values) {
                let at = kept.iter().fold(0, |at, a| at * domain[*a] + index[*a]);
                sums[at] += value;
                scale[at] += value.abs();
            }
            if *reduction == Reduction::Mean {
                let count: usize = axes.iter().map(|a| domain[*a]).product();
                sums.iter_mut().chain(&mut scale).for_each(|x| *x /= count as f64);
            }
            Answer::scaled(dtype, sizes, sums, scale)
        }
    }
}
