//! Tensors and variables go from thread to thread, and the number of threads changes no bit.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use std::process::Command;

use tonnage::{
    Context, DType, Elementwise, Error, ErrorKind, Function, Result, Tensor, Variable, function,
    ones, random_normal, set_seed, tensor,
};

use crate::common::{in_use, own_context, test_name};

const fn goes_anywhere<T: Send + Sync>() {}

const _: () = {
    goes_anywhere::<Tensor>();
    goes_anywhere::<Variable>();
    goes_anywhere::<Error>();
    goes_anywhere::<ErrorKind>();
    goes_anywhere::<Function<Tensor, Tensor, fn(Tensor) -> Result<Tensor>>>();
};

#[test]
fn tensors_serve_several_threads_at_once() {
    let _context = own_context();
    let start = in_use();
    {
        let x = tensor(vec![vec![0.5f64; 32]; 32]).unwrap();
        let lazy = (random_normal([32, 32], DType::F64).unwrap() * 0.1).unwrap();
        let chain = |k: i64| -> Result<Vec<f64>> {
            let mut y = ((&x * k)? + &lazy)?;
            for _ in 0..20 {
                y = (y.matmul(&x)? * 0.01)?.tanh()?;
            }
            y.sum([0])?.to_vec()
        };
        let expected: Vec<_> = (0..4).map(|k| chain(k).unwrap()).collect();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|k| {
                    let (chain, context) = (&chain, Context::current());
                    scope.spawn(move || {
                        let _entered = context.enter();
                        (0..20).map(|_| chain(k).unwrap()).collect::<Vec<_>>()
                    })
                })
                .collect();
            for (k, thread) in threads.into_iter().enumerate() {
                for got in thread.join().unwrap() {
                    assert_eq!(got, expected[k]);
                }
            }
        });
    }
    assert_eq!(in_use(), start);
}

#[test]
fn a_function_and_a_variable_serve_several_threads_at_once() {
    let _context = own_context();
    let start = in_use();
    {
        let v = Variable::new("v", tensor([0.0f64; 4]).unwrap()).unwrap();
        let f = function(|x: Tensor| x.square()?.sum_all());
        let (v, f) = (&v, &f);
        std::thread::scope(|scope| {
            for k in 0..4i32 {
                let context = Context::current();
                scope.spawn(move || {
                    let _entered = context.enter();
                    for _ in 0..50 {
                        v.assign_add(&ones([4]).unwrap().cast(DType::F64).unwrap()).unwrap();
                        let x = tensor([f64::from(k); 3]).unwrap();
                        let got = f.call(x).unwrap().scalar::<f64>().unwrap();
                        assert_eq!(got, f64::from(3 * k * k));
                    }
                });
            }
        });
        assert_eq!(v.read().unwrap().to_vec::<f64>().unwrap(), [200.0; 4]);
        assert_eq!(f.traces(), 1);
    }
    assert_eq!(in_use(), start);
}

/// Tells a process that it is the one that computes.
const CHILD: &str = "TONNAGE_TEST_CHILD";

/// What this process computes, bit by bit.
fn bits() -> Result<String> {
    set_seed(5);
    let a = random_normal([300, 700], DType::F32)?;
    let b = random_normal([700, 500], DType::F32)?;
    let chain = |(a, b): (Tensor, Tensor)| -> Result<(Tensor, Tensor, Tensor)> {
        let y = (a.matmul(&b)? * 0.05)?.tanh()?;
        Ok((y.sum([0])?, y.sum_all()?, y.softmax(1)?.max([0, 1])?))
    };
    let f = function(chain);
    let mut text = String::new();
    for (p, q, r) in [chain((a.clone(), b.clone()))?, f.call((a, b))?] {
        for tensor in [p, q, r] {
            tensor.to_vec::<f32>()?.iter().for_each(|x| text += &format!("{:08x}", x.to_bits()));
        }
        text.push(' ');
    }
    Ok(text)
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let _context = own_context();
    // A process has its threads for good: each number is a process of its own.
    if std::env::var_os(CHILD).is_some() {
        println!("threads={}", tonnage_runtime::pool().threads());
        println!("bits={}", bits().unwrap());
        return;
    }
    let run = |threads: &str| {
        let name = test_name(module_path!(), "the_number_of_threads_changes_no_bit");
        let done = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &name, "--nocapture", "--test-threads=1"])
            .env(CHILD, "1")
            .env("TONNAGE_THREADS", threads)
            .output()
            .unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        assert!(done.status.success(), "{text}");
        assert!(text.contains(&format!("threads={threads}\n")), "{text}");
        let line = text.lines().find_map(|l| l.split_once("bits=")).unwrap();
        line.1.trim().to_string()
    };
    let one = run("1");
    assert!(one.len() > 2 * 8 * 500);
    assert_eq!(one, run("2"));
    assert_eq!(one, run("3"));
}
