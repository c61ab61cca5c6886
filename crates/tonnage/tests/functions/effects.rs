//! Printing, assertions and callbacks: in the order of the program, once each, wherever they stand.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::sync::{Arc, Mutex, PoisonError};

use tonnage::{
    Bytes, Container, DType, Elementwise, ErrorKind, Function, Graph, Lent, Result, Session,
    Tensor, Variable, assert_all, assert_equal, assert_less, assert_shape, cond, function,
    host_callback, host_effect, print, scan, tensor, while_loop,
};

use crate::common::prints::{Seen, both, listening, number, taken};
use crate::common::{in_use, own_context};

/// A callback that notes its name and value.
fn note(seen: &Seen, name: &'static str, x: &Tensor) -> Result<()> {
    let seen = seen.clone();
    host_effect(&[x], move |args| {
        seen.lock().unwrap().push(format!("{name} {}", args[0]));
        Ok(())
    })
}

#[test]
fn effects_keep_the_order_of_the_program() {
    let _context = own_context();
    let seen = listening();
    let to = seen.clone();
    let program = move |x: Tensor| {
        print("first {}", &[&x.sum_all()?])?;
        // Expensive and read late: an order that looked at bytes alone would move it.
        let y = x.matmul(&x)?;
        note(&to, "second", &y.max_all()?)?;
        assert_all(&x.less(100.0)?, "small", &[])?;
        print("third", &[])?;
        print("third", &[])?; // the same again is not the same
        note(&to, "fourth", &x.max_all()?)?;
        y.sum_all()
    };
    let x = tensor([[1.0f32, 2.0], [3.0, 4.0]]).unwrap();
    let lines = both(&seen, x, program);
    assert_eq!(lines, ["first 10.0", "second 22.0", "third", "third", "fourth 4.0"]);
}

#[test]
fn effects_run_once_an_iteration_and_in_the_branch_that_is_taken() {
    let _context = own_context();
    let seen = listening();
    let to = seen.clone();
    let program = move |x: Tensor| {
        let (_, x) = while_loop(
            (tensor(0i64)?, x),
            |(i, _)| i.less(3),
            |(i, x)| {
                print("iteration {}", &[&i])?;
                note(&to, "value", &x)?;
                Ok(((i + 1)?, (x * 2.0)?))
            },
        )?;
        let large = x.greater(10.0)?;
        let x = cond(
            &large,
            || {
                print("large {}", &[&x])?;
                Ok(x.clone())
            },
            || {
                print("small {}", &[&x])?;
                &x + 1.0
            },
        )?;
        let rows = tensor([1.0f32, 2.0])?;
        let (end, _) = scan(x, rows, |x: Tensor, row: Tensor| {
            row.print("row {}")?;
            Ok(((x + &row)?, row))
        })?;
        end.print("end {}")?;
        Ok(end)
    };
    let expected = |x: [&str; 3], branch: &str, end: &str| {
        let mut all: Vec<String> = Vec::new();
        for (i, x) in x.iter().enumerate() {
            all.extend([format!("iteration {i}"), format!("value {x}")]);
        }
        all.extend([branch.into(), "row 1.0".into(), "row 2.0".into(), format!("end {end}")]);
        all
    };
    let lines = both(&seen, tensor(1.0f32).unwrap(), program.clone());
    assert_eq!(lines, expected(["1.0", "2.0", "4.0"], "small 8.0", "12.0"));
    let lines = both(&seen, tensor(3.0f32).unwrap(), program);
    assert_eq!(lines, expected(["3.0", "6.0", "12.0"], "large 24.0", "27.0"));
}

#[test]
fn a_callback_computes_on_its_own_and_its_results_come_back() {
    let _context = own_context();
    let doubled = function(|x: Tensor| x * 2.0);
    let double = Arc::new(Mutex::new(doubled));
    let program = move |x: Tensor| {
        let double = double.clone();
        let made = host_callback(&[&x], &[x.ty(), number(DType::I64)], move |args| {
            let x = args[0].tensor()?;
            let twice = double.lock().unwrap().call((&x + 1.0)?)?;
            Ok(vec![twice, tensor(args[0].sizes().len() as i64)?])
        })?;
        let rank = (&made[1]).cast(DType::F32)?;
        (&made[0] + rank)?.sum_all()
    };
    let x = tensor([[1.0f32, 2.0], [3.0, 4.0]]).unwrap().transpose(&[1, 0]).unwrap();
    assert_eq!(program(x.clone()).unwrap().to_vec::<f32>().unwrap(), [36.0]);
    let f = function(program);
    assert_eq!(f.call(x.clone()).unwrap().to_vec::<f32>().unwrap(), [36.0]);
    assert_eq!(f.call(x).unwrap().to_vec::<f32>().unwrap(), [36.0]);
}

#[test]
fn what_a_callback_is_lent_is_no_copy() {
    let _context = own_context();
    let f = function(|x: Tensor| {
        let y = x.matmul(&x)?;
        let sum = host_callback(&[&y], &[number(DType::F32)], |args: &[Lent]| {
            Ok(vec![tensor(args[0].to_vec::<f32>()?.iter().sum::<f32>())?])
        })?;
        Ok(sum[0].clone())
    });
    let x = tensor(vec![1.0f32; 128 * 128]).unwrap().reshape([128, 128]).unwrap();
    let plan = f.plan(&x).unwrap();
    let one = Bytes::of(128 * 128 * 4).rounded();
    assert_eq!(plan.steps[1].live, one, "the product, and no copy of it\n{plan}");
    let (sum, measured) = f.call_measured(x).unwrap();
    assert_eq!(sum.to_vec::<f32>().unwrap(), [(128 * 128 * 128) as f32]);
    assert_eq!(measured.unwrap().used, plan.peak());
}

#[test]
fn a_failed_assertion_leaves_variables_as_they_were() {
    let _context = own_context();
    let v = Variable::new("v", tensor([1.0f32, 2.0]).unwrap()).unwrap();
    let held = v.clone();
    let program = move |x: Tensor| {
        held.assign_add(&x)?;
        assert_less(&x, &tensor(10.0f32)?, "x must stay small")?;
        held.read()?.sum_all()
    };
    let f = function(program);
    f.call(tensor([1.0f32, 1.0]).unwrap()).unwrap();
    assert_eq!(v.read().unwrap().to_vec::<f32>().unwrap(), [2.0, 3.0]);
    let before = in_use();
    let error = f.call(tensor([1.0f32, 70.0]).unwrap()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Asserted { .. }));
    let text = error.to_string();
    assert!(
        text.contains("x must stay small: not 70.0 < 10.0 at [1], and 1 of 2 in all"),
        "{text}"
    );
    assert!(text.contains("effects.rs:"), "{text}");
    assert_eq!(v.read().unwrap().to_vec::<f32>().unwrap(), [2.0, 3.0]);
    assert_eq!(in_use(), before);
    // In a loop too, which would write the variable in its own bytes if nothing could fail.
    let held = v.clone();
    let iterations = function(move |x: Tensor| {
        while_loop(
            tensor(0i64)?,
            |i| i.less(5),
            |i| {
                held.assign_add(&x)?;
                assert_less(&i, &tensor(3i64)?, "three iterations")?;
                i + 1
            },
        )
    });
    let error = iterations.call(tensor([1.0f32, 1.0]).unwrap()).unwrap_err().to_string();
    assert!(error.contains("three iterations: not 3 < 3"), "{error}");
    assert_eq!(v.read().unwrap().to_vec::<f32>().unwrap(), [2.0, 3.0]);
}

#[test]
fn an_effect_that_looks_at_an_update_comes_after_it_and_before_the_next() {
    let _context = own_context();
    let seen = listening();
    let v = Variable::new("v", tensor(1.0f32).unwrap()).unwrap();
    let to = seen.clone();
    let held = v.clone();
    let f = function(move |x: Tensor| {
        print("before {}", &[&held.read()?])?;
        held.assign_add(&x)?;
        print("after {}", &[&held.read()?])?;
        note(&to, "x", &x)?;
        assert_all(&x.greater(0.0)?, "positive", &[&x])?;
        held.assign_add(&x)?;
        held.read()?.print("end {}")
    });
    f.call(tensor(2.0f32).unwrap()).unwrap();
    assert_eq!(taken(&seen), ["before 1.0", "after 3.0", "x 2.0", "end 5.0"]);
    assert_eq!(v.read().unwrap().to_vec::<f32>().unwrap(), [5.0]);
}

#[test]
fn a_callback_that_fails_or_panics_ends_the_call_and_not_the_program() {
    let _context = own_context();
    let v = Variable::new("v", tensor(1.0f32).unwrap()).unwrap();
    let held = v.clone();
    let how = Arc::new(Mutex::new(0));
    let case = how.clone();
    let line = line!() + 4;
    let f = function(move |x: Tensor| {
        held.assign_add(&x)?;
        let case = case.clone();
        let made = host_callback(&[&x], &[number(DType::F32)], move |args| {
            match *case.lock().unwrap_or_else(PoisonError::into_inner) {
                0 => Ok(vec![args[0].tensor()?]),
                1 => Ok(vec![tensor([1.0f32, 2.0])?]),
                2 => Ok(vec![]),
                3 => Err(args[0].to_vec::<i64>().unwrap_err()),
                _ => panic!("no way"),
            }
        })?;
        Ok(made[0].clone())
    });
    let x = tensor(2.0f32).unwrap();
    assert_eq!(f.call(x.clone()).unwrap().to_vec::<f32>().unwrap(), [2.0]);
    assert_eq!(v.read().unwrap().to_vec::<f32>().unwrap(), [3.0]);
    for (i, words) in [
        "result 0 is f32[2], not f32[]",
        "0 results, not 1",
        "dtypes f32 and i64 do not agree",
        "it panicked: no way",
    ]
    .into_iter()
    .enumerate()
    {
        *how.lock().unwrap_or_else(PoisonError::into_inner) = i + 1;
        let before = in_use();
        let error = f.call(x.clone()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert!(error.ends_with(&format!("(at {}:{line})", file!())), "{error}");
        assert_eq!(v.read().unwrap().to_vec::<f32>().unwrap(), [3.0]);
        assert_eq!(in_use(), before);
    }
    *how.lock().unwrap_or_else(PoisonError::into_inner) = 0;
    f.call(x).unwrap();
    assert_eq!(v.read().unwrap().to_vec::<f32>().unwrap(), [5.0]);
}

#[test]
fn a_callback_never_waits_for_its_own_call() {
    let _context = own_context();
    let v = Variable::new("v", tensor(1.0f32).unwrap()).unwrap();
    let other = Variable::new("other", tensor(7.0f32).unwrap()).unwrap();
    let (held, read, free) = (v.clone(), v.clone(), other.clone());
    let said = Arc::new(Mutex::new(String::new()));
    let to = said.clone();
    let f = function(move |x: Tensor| {
        held.assign_add(&x)?;
        let (read, free, to) = (read.clone(), free.clone(), to.clone());
        host_effect(&[&x], move |_| {
            let error = read.read().unwrap_err();
            *to.lock().unwrap() = format!("{error} {read:?} {}", read.is_initialized());
            free.assign_add(&tensor(1.0f32)?)
        })
    });
    f.call(tensor(2.0f32).unwrap()).unwrap();
    let said = said.lock().unwrap().clone();
    assert!(said.contains("a callback asks for `v` while a call writes it"), "{said}");
    assert!(said.contains("written by a call") && said.ends_with("true"), "{said}");
    assert_eq!(v.read().unwrap().to_vec::<f32>().unwrap(), [3.0]);
    assert_eq!(other.read().unwrap().to_vec::<f32>().unwrap(), [8.0]);
}

#[test]
fn a_callback_that_closes_what_its_own_call_writes_is_refused_and_closes_nothing() {
    thread_local! {
        static CONTAINER: Container = Container::new("weights");
    }
    let _context = own_context();
    let make = || Variable::new("v", tensor(1.0f32)?);
    let v = CONTAINER.with(|container| container.enter(make)).unwrap();
    let held = v.clone();
    let f = function(move |x: Tensor| {
        held.assign_add(&x)?;
        host_effect(&[&x], |_| CONTAINER.with(Container::close))
    });
    let error = f.call(tensor(2.0f32).unwrap()).unwrap_err().to_string();
    assert!(error.contains("a callback asks for `v` while a call writes it"), "{error}");
    assert_eq!(v.read().unwrap().to_vec::<f32>().unwrap(), [1.0]);
    CONTAINER.with(Container::close).unwrap();
    assert!(v.read().is_err());

    let graph = Graph::new();
    let session: Arc<Mutex<Option<Arc<Session>>>> = Arc::default();
    let (closes, w) = (session.clone(), graph.build(|| Variable::new("w", tensor(1.0f32)?)));
    let w = w.unwrap();
    let after = graph.build(|| {
        w.assign_add(&tensor(2.0f32)?)?;
        let after = w.read()?;
        host_effect(&[&after], move |_| {
            let session = closes.lock().unwrap().clone();
            session.map_or(Ok(()), |session| session.close())
        })?;
        Ok(after)
    });
    let after = after.unwrap();
    let own = Arc::new(Session::new(&graph));
    own.initialize().unwrap();
    *session.lock().unwrap() = Some(own.clone());
    let error = own.run(&after, []).unwrap_err().to_string();
    assert!(error.contains("a callback asks for `w` while a call writes it"), "{error}");
    // It stays usable, and can be closed from outside.
    *session.lock().unwrap() = None;
    assert!(own.run(&after, []).unwrap().scalar::<f32>().unwrap() >= 3.0);
    own.close().unwrap();
    assert!(own.run(&after, []).is_err());
}

#[test]
fn in_a_deferred_graph_an_effect_runs_with_what_it_looks_at() {
    let _context = own_context();
    let seen = listening();
    let graph = Graph::new();
    let x = graph.placeholder("x", DType::F32, [2]).unwrap();
    let other = graph.placeholder("other", DType::F32, [2]).unwrap();
    let (y, z) = graph
        .build(|| {
            let y = x.square()?;
            y.print("y {}")?;
            let z = (&other * 2.0)?;
            z.print("z {}")?;
            Ok((y, z))
        })
        .unwrap();
    let session = Session::new(&graph);
    let x = tensor([1.0f32, 2.0]).unwrap();
    session.run(&y, [("x", x.clone())]).unwrap();
    assert_eq!(taken(&seen), ["y [1. 4.]"]);
    session.run(&z, [("other", x)]).unwrap();
    assert_eq!(taken(&seen), ["z [2. 4.]"]);
}

#[test]
fn open_sizes_are_known_to_whom_they_are_lent_to() {
    let _context = own_context();
    let seen = listening();
    let f = function(|x: Tensor| {
        assert_shape(&x, &[Some(3), Some(2)], "three pairs")?;
        let made = host_callback(&[&x], &[x.ty()], |args| Ok(vec![args[0].tensor()?]))?;
        made[0].print("x\n{}")?;
        Ok(made[0].clone())
    })
    .signature(Tensor::spec(DType::F32, [tonnage::Dim::open("n"), tonnage::Dim::Known(2)]));
    let x = tensor([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]]).unwrap();
    f.call(x).unwrap();
    assert_eq!(taken(&seen)[0], "x\n[[1. 2.]\n [3. 4.]\n [5. 6.]]");
    let error = f.call(tensor([[1.0f32, 2.0]]).unwrap()).unwrap_err().to_string();
    assert!(error.contains("three pairs: the shape is [1, 2], not [3, 2]"), "{error}");
}

#[test]
fn mistakes_are_errors_at_once() {
    let _context = own_context();
    let x = tensor([1.0f32, 2.0]).unwrap();
    let error = print("{} and {}", &[&x]).unwrap_err().to_string();
    assert!(error.contains("has 2 placeholders for 1 values"), "{error}");
    let error = assert_all(&x, "x", &[]).unwrap_err().to_string();
    assert!(error.contains("a condition of dtype f32"), "{error}");
    let error = assert_equal(&x, &tensor([1.0f32, 2.0, 3.0]).unwrap(), "x").unwrap_err();
    assert!(error.to_string().contains("shapes [2] and [3] do not fit"), "{error}");
    let error = assert_equal(&x, &tensor([1.0f32, f32::NAN]).unwrap(), "same").unwrap_err();
    assert!(error.to_string().contains("same: not 2.0 == NaN at [1]"), "{error}");
}

#[test]
fn a_closure_is_freed_with_its_function_and_counted_while_it_lives() {
    let _context = own_context();
    let alive = Arc::new(());
    let weak = Arc::downgrade(&alive);
    let ballast = [0u8; 4096];
    let f: Function<Tensor, Tensor, _> = function(move |x: Tensor| {
        let alive = alive.clone();
        host_effect(&[&x], move |_| {
            assert_eq!((Arc::strong_count(&alive) > 0, ballast[0]), (true, 0));
            Ok(())
        })?;
        x + 1.0
    });
    let x = tensor(1.0f32).unwrap();
    f.call(x).unwrap();
    assert!(f.graph_bytes() > Bytes::new(4096), "{}", f.graph_bytes());
    drop(f);
    assert!(weak.upgrade().is_none());
}
