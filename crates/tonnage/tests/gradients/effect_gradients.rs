//! Effects and recomputation: gradients and budgets never repeat an effect.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{
    Bytes, DType, Elementwise, GradientTape, Result, Tensor, checkpoint, cond, custom_gradient,
    function, host_callback, pure_callback, tensor, while_loop,
};

use crate::common::prints::{both, listening, number, taken};
use crate::common::{call_checked, own_context};

#[test]
fn gradients_pass_by_effects_which_still_run_once() {
    let _context = own_context();
    let seen = listening();
    let step = |x: Tensor| {
        let mut tape = GradientTape::new();
        tape.watch(&x);
        let y = (&x).square()?;
        y.print("y {}")?;
        y.check_finite("y")?;
        let z = checkpoint(|y: Tensor| {
            y.print("inside {}")?;
            (&y * &y)?.exp()
        })(y)?;
        let (_, z) = while_loop(
            (tensor(0i64)?, z),
            |(i, _)| i.less(2),
            |(i, z)| {
                z.print("iteration {}")?;
                Ok(((i + 1)?, (&z * &z)?))
            },
        )?;
        let z = cond(
            &z.greater(0.0)?,
            || {
                z.print("branch {}")?;
                &z * 3.0
            },
            || Ok(z.clone()),
        )?;
        tape.gradient(&z, &x)?.tensor()
    };
    let x = tensor(0.5f32).unwrap();
    let lines = both(&seen, x.clone(), step);
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert!(lines[0].starts_with("y 0.25") && lines[1].starts_with("inside 0.25"), "{lines:?}");
    // 3 exp(4 x^4): its slope is 48 x^3 exp(4 x^4).
    let slope = function(step).call(x).unwrap().to_vec::<f32>().unwrap()[0];
    let expected = 48.0 * 0.125 * (0.25f64).exp();
    assert!((f64::from(slope) - expected).abs() < 1e-4 * expected, "{slope} {expected}");
    taken(&seen);
}

#[test]
fn a_callback_has_the_gradient_that_its_user_says_and_no_other() {
    let _context = own_context();
    let cube = |x: &Tensor| -> Result<Tensor> {
        Ok(pure_callback(&[x], &[number(DType::F32)], |args| {
            Ok(vec![tensor(args[0].scalar::<f32>()?.powi(3))?])
        })?
        .swap_remove(0))
    };
    let plain = cube;
    let f = function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        tape.watch(&x);
        let y = plain(&x)?;
        tape.gradient(&y, &x)?.tensor()
    });
    let error = f.call(tensor(2.0f32).unwrap()).unwrap_err().to_string();
    assert!(error.contains("no gradient through pure_callback"), "{error}");
    let known = custom_gradient(
        move |x: Tensor| {
            let y = cube(&x)?;
            Ok((y, x))
        },
        |x: Tensor, dy: Tensor| (x.square()? * 3.0)? * dy,
    );
    let f = function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        tape.watch(&x);
        let y = known(x.clone())?;
        tape.gradient(&y, &x)?.tensor()
    });
    let slope = f.call(tensor(2.0f32).unwrap()).unwrap();
    assert_eq!(slope.to_vec::<f32>().unwrap(), [12.0]);
}

#[test]
fn a_callback_with_an_effect_is_never_recomputed_for_a_gradient() {
    let _context = own_context();
    let f = function(|x: Tensor| {
        let mut tape = GradientTape::new();
        tape.watch(&x);
        let (_, y) = while_loop(
            (tensor(0i64)?, x.clone()),
            |(i, _)| i.less(2),
            |(i, y)| {
                let factor =
                    host_callback(&[&i], &[number(DType::F32)], |_| Ok(vec![tensor(2.0f32)?]))?;
                Ok(((i + 1)?, (y * &factor[0])?))
            },
        )?;
        tape.gradient(&y, &x)?.tensor()
    });
    let error = f.call(tensor(2.0f32).unwrap()).unwrap_err().to_string();
    assert!(error.contains("cannot be read a second time; read it before the loop"), "{error}");
}

#[test]
fn a_function_that_a_tape_looks_into_prints_once() {
    let _context = own_context();
    let seen = listening();
    let f = function(|x: Tensor| {
        x.print("x {}")?;
        x.square()
    });
    let x = tensor(3.0f32).unwrap();
    let mut tape = GradientTape::new();
    tape.watch(&x);
    let y = f.call(x.clone()).unwrap();
    let slope = tape.gradient(&y, &x).unwrap().tensor().unwrap();
    assert_eq!(slope.to_vec::<f32>().unwrap(), [6.0]);
    assert_eq!(taken(&seen), ["x 3.0"]);
}

#[test]
fn a_budget_recomputes_what_was_printed_and_prints_it_once() {
    let _context = own_context();
    let seen = listening();
    let values: Vec<f32> = (0..256 * 16).map(|i| (i % 17) as f32 / 17.0).collect();
    let x = tensor(values).unwrap().reshape([256, 16]).unwrap();
    let square: Vec<f32> = (0..256).map(|i| ((i * 7) % 11) as f32 / 40.0).collect();
    let w = tensor(square).unwrap().reshape([16, 16]).unwrap();
    let step = || {
        function(|(x, w): (Tensor, Tensor)| {
            let mut tape = GradientTape::new();
            tape.watch(&x);
            let mut h = x.clone();
            for i in 0..12 {
                h = h.matmul(&w)?.tanh()?;
                h.print(&format!("layer {i}\n{{}}"))?;
                h.check_finite("h")?;
            }
            tape.gradient(&h.sum_all()?, &x)?.tensor()
        })
    };
    let args = (x, w);
    let free = step();
    let whole = free.plan(&args).unwrap().peak();
    let slope = free.call(args.clone()).unwrap().to_vec::<f32>().unwrap();
    let lines = taken(&seen);
    assert_eq!(lines.len(), 12);
    let tight = step().budget(Bytes::new(whole.get() * 7 / 10)).unwrap();
    let plan = tight.plan(&args).unwrap();
    assert!(plan.fitted.is_some() && plan.peak() < whole, "{plan}");
    assert_eq!(call_checked(&tight, &args).to_vec::<f32>().unwrap(), slope);
    let twice = taken(&seen);
    assert_eq!((&twice[..12], &twice[12..]), (&lines[..], &lines[..]));
}
