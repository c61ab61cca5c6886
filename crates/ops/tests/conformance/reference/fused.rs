//! Chains of elementwise ops: the program, element by element.

use tonnage_core::tile::{Close, Fold, Form, Instr, Prim};
use tonnage_core::{Attrs, DType};

use super::{Asked, common, indices};
use crate::plain::{Answer, held};

fn instruction(instr: &Instr, args: &[f64]) -> f64 {
    let value = match instr.prim {
        Prim::Const(value) => value.to_f64(),
        Prim::Neg => -args[0],
        Prim::Square => args[0] * args[0],
        Prim::Exp => args[0].exp(),
        Prim::Log => args[0].ln(),
        Prim::Tanh => args[0].tanh(),
        Prim::Add => args[0] + args[1],
        Prim::Sub => args[0] - args[1],
        Prim::Mul => args[0] * args[1],
        Prim::Div => args[0] / args[1],
        Prim::Max => {
            if args[0].is_nan() || args[0] > args[1] {
                args[0]
            } else {
                args[1]
            }
        }
        Prim::Gt => f64::from(args[0] > args[1]),
        Prim::Lt => f64::from(args[0] < args[1]),
        Prim::Eq => f64::from(args[0] == args[1]),
        Prim::Select => {
            if args[0] != 0.0 {
                args[1]
            } else {
                args[2]
            }
        }
        Prim::Fma => args[0] * args[1] + args[2],
        Prim::Cast(to) | Prim::RoundTo(to) => held(args[0], to),
        other => panic!("no reference for {other:?}"),
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
                Form::Elements(_) => x.stretched(index),
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
        (Form::Elements(dtype), Close::Fold { fold, axes }) => {
            assert_eq!(*fold, Fold::Sum, "no reference for other folds yet");
            let kept: Vec<usize> = (0..domain.len()).filter(|a| !axes.contains(a)).collect();
            let sizes: Vec<usize> = kept.iter().map(|a| domain[*a]).collect();
            let mut sums = vec![0.0; sizes.iter().product()];
            let mut scale = sums.clone();
            for (index, value) in indices(domain).iter().zip(values) {
                let at = kept.iter().fold(0, |at, a| at * domain[*a] + index[*a]);
                sums[at] += value;
                scale[at] += value.abs();
            }
            Answer::scaled(dtype, sizes, sums, scale)
        }
    }
}
