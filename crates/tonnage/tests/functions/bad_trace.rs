//! Mistakes while tracing: errors that name the user's line and what to do, and functions that stay usable.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock, Mutex};

use tonnage::{
    Context, Elementwise, ErrorKind, Function, GradientTape, Result, Tensor, Variable, cond,
    function, host_callback, host_effect, name_scope, pure_callback, tensor, while_loop,
};

use crate::common::refused::floats;
use crate::common::{in_use, own_context};
use crate::refused;

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().unwrap()
}

#[test]
fn a_symbol_that_escapes_its_trace_is_refused_wherever_it_is_used() {
    let _context = own_context();
    let escaped: Arc<Mutex<Option<Tensor>>> = Arc::default();
    let to = escaped.clone();
    let f = function(move |x: Tensor| {
        let y = (x * 2.0)?;
        *to.lock().unwrap() = Some(y.clone());
        Ok(y)
    });
    f.call(floats(&[2])).unwrap();
    let symbol = escaped.lock().unwrap().clone().unwrap();
    refused!(&symbol + 1.0, ErrorKind::Escaped { .. }, "add", "results");
    refused!(symbol.matmul(&floats(&[2, 2])), ErrorKind::Escaped { .. }, "matmul");
    refused!(f.call(symbol.clone()), ErrorKind::Escaped { .. }, "function");
    refused!(f.plan(&symbol), ErrorKind::Escaped { .. }, "function");
    refused!(symbol.to_vec::<f32>(), ErrorKind::Symbolic { .. }, "cond");
    let other = symbol.clone();
    let line = line!() + 1;
    let g = function(move |x: Tensor| x + &other);
    let error = g.call(floats(&[2])).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Escaped { op: "add" }), "{error}");
    assert_eq!(error.source_line().unwrap().line(), line, "where it is used");
    let other = symbol.clone();
    let h = function(move |_: Tensor| Ok(other.clone()));
    refused!(h.call(floats(&[2])), ErrorKind::Escaped { .. }, "return");
    let v = Variable::new("v", floats(&[2])).unwrap();
    assert!(v.assign(&symbol).is_err());
    assert!(Variable::new("w", symbol).is_err());
    assert_eq!(values(&f.call(floats(&[2])).unwrap()), [2.0, 2.0], "still usable");
}

#[test]
fn reading_a_symbolic_value_points_at_cond_and_while_loop() {
    let _context = own_context();
    let f = function(|x: Tensor| {
        let sum = x.sum_all()?;
        match sum.scalar::<f32>()? > 0.0 {
            true => x.exp(),
            false => -x,
        }
    });
    let line = line!() - 5;
    let error = f.call(floats(&[2])).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Symbolic { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("`cond`") && text.contains("`while_loop`"), "{text}");
    assert_eq!(error.source_line().unwrap().line(), line, "where it is read");
    assert_eq!(f.traces(), 0);
    let g = function(|x: Tensor| {
        let positive = tensor(0.0f32)?.less(x.sum_all()?)?;
        cond(&positive, || (&x).exp(), || -&x)
    });
    assert_eq!(values(&g.call(floats(&[1])).unwrap()), [1f32.exp()], "what it points at works");
}

type Endless = Function<Tensor, Tensor, fn(Tensor) -> Result<Tensor>>;

static ENDLESS: LazyLock<Endless> =
    LazyLock::new(|| function(|x: Tensor| ENDLESS.call((x + 1.0)?)));
static PING: LazyLock<Endless> = LazyLock::new(|| function(|x: Tensor| PONG.call(x)));
static PONG: LazyLock<Endless> = LazyLock::new(|| function(|x: Tensor| PING.call(x)));

type Counted = Function<(Tensor, u32), Tensor, fn((Tensor, u32)) -> Result<Tensor>>;

static COUNTED: LazyLock<Counted> = LazyLock::new(|| {
    function(|(x, n): (Tensor, u32)| match n {
        0 => Ok(x),
        n => COUNTED.call(((x * 2.0)?, n - 1)),
    })
});

#[test]
fn recursion_without_end_is_an_error_that_names_the_function() {
    let _context = own_context();
    let before = in_use();
    for _ in 0..2 {
        let error = ENDLESS.call(floats(&[2])).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Recursion { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(file!()) && text.contains("plain argument"), "{text}");
        assert!(matches!(PING.call(floats(&[1])).unwrap_err().kind(), ErrorKind::Recursion { .. }));
    }
    tonnage::run_functions_eagerly(true);
    let eager = ENDLESS.call(floats(&[2]));
    tonnage::run_functions_eagerly(false);
    assert!(matches!(eager.unwrap_err().kind(), ErrorKind::Recursion { .. }));
    assert_eq!(in_use(), before);
    // Recursion that ends is a function like any other.
    assert_eq!(values(&COUNTED.call((floats(&[1]), 10)).unwrap()), [1024.0]);
    assert_eq!(values(&COUNTED.call((floats(&[1]), 30)).unwrap()), [2f32.powi(30)]);
    assert!(COUNTED.call((floats(&[1]), 1000)).is_err());
    assert_eq!(values(&COUNTED.call((floats(&[1]), 3)).unwrap()), [8.0]);
}

static BY_CALLBACK: LazyLock<Endless> = LazyLock::new(|| {
    function(|x: Tensor| {
        let made =
            host_callback(&[&x], &[x.ty()], |lent| Ok(vec![BY_CALLBACK.call(lent[0].tensor()?)?]));
        Ok(made?.remove(0))
    })
});

static BY_PURE: LazyLock<Endless> = LazyLock::new(|| {
    function(|x: Tensor| {
        let made =
            pure_callback(&[&x], &[x.ty()], |lent| Ok(vec![BY_PURE.call(lent[0].tensor()?)?]));
        Ok(made?.remove(0))
    })
});

static BY_EFFECT: LazyLock<Endless> = LazyLock::new(|| {
    function(|x: Tensor| {
        host_effect(&[&x], |lent| BY_EFFECT.call(lent[0].tensor()?).map(drop))?;
        Ok(x)
    })
});

#[test]
fn recursion_through_a_callback_is_an_error_before_the_stack_overflows() {
    let _context = own_context();
    let before = in_use();
    for size in [2 << 20, 8 << 20] {
        for f in [&BY_CALLBACK, &BY_PURE, &BY_EFFECT] {
            let context = Context::current();
            let run = move || {
                let _entered = context.enter();
                f.call(floats(&[2])).unwrap_err().to_string()
            };
            let text = std::thread::Builder::new().stack_size(size).spawn(run).unwrap().join();
            let text = text.unwrap();
            assert!(text.contains(file!()) && text.contains("calls on"), "{text}");
        }
    }
    assert_eq!(in_use(), before);
}

#[test]
fn a_closure_that_fails_passes_its_error_on() {
    let _context = own_context();
    let fails = Arc::new(Mutex::new(true));
    let on = fails.clone();
    let f = function(move |x: Tensor| {
        let v = Variable::new("v", tensor([1.0f32; 2])?)?;
        if *on.lock().unwrap() {
            let what = "the user's own reason".to_string();
            return Err(ErrorKind::BadArgument { op: "mine", what, help: "none".into() }.into());
        }
        x + v.read()?
    });
    let error =
        refused!(f.call(floats(&[2])), ErrorKind::BadArgument { op: "mine", .. }, "own reason");
    assert!(error.to_string().starts_with("mine: the user's own reason"));
    assert!(f.plan(&floats(&[2])).is_err());
    assert_eq!((f.traces(), f.variables().len()), (0, 0));
    *fails.lock().unwrap() = false;
    assert_eq!(values(&f.call(floats(&[2])).unwrap()), [2.0, 2.0]);
}

#[test]
fn a_closure_that_panics_leaves_no_trace_on_the_stack() {
    let _context = own_context();
    let before = in_use();
    let panics = Arc::new(Mutex::new(true));
    let on = panics.clone();
    let inner = function(move |x: Tensor| {
        let _tape = GradientTape::new();
        let _v = Variable::new("v", tensor([1.0f32; 2])?)?;
        name_scope("scope", || {
            let start = (tensor(0i32)?, x);
            let body = |(i, x): (Tensor, Tensor)| {
                // The guard is given back first: this is about the function, not about the lock.
                let panics = *on.lock().unwrap();
                assert!(!panics, "a bug of the user's");
                Ok(((i + 1)?, (x * 2.0)?))
            };
            while_loop(start, |(i, _)| i.less(2), body).map(|(_, x)| x)
        })
    });
    let outer = function(move |x: Tensor| inner.call(x)? + 1.0);
    let caught = catch_unwind(AssertUnwindSafe(|| outer.call(floats(&[2]))));
    assert!(caught.is_err());
    assert_eq!(in_use(), before);
    // Nothing is traced any more, no scope is open, no tape records.
    let x = (floats(&[2]) + 1.0).unwrap();
    assert_eq!(values(&x), [2.0, 2.0]);
    let v = Variable::new("v", x).unwrap();
    assert_eq!(v.name(), "v");
    *panics.lock().unwrap() = false;
    assert_eq!(values(&outer.call(floats(&[2])).unwrap()), [5.0, 5.0]);
}

#[test]
fn arguments_of_the_wrong_shape_name_the_op_and_its_line() {
    let _context = own_context();
    let weight = floats(&[3, 2]);
    let line = line!() + 1;
    let f = function(move |x: Tensor| x.matmul(&weight));
    let error = f.call(floats(&[4, 5])).unwrap_err();
    assert!(
        error.to_string().contains("[4, 5]") && error.to_string().contains("[3, 2]"),
        "{error}"
    );
    assert_eq!(error.source_line().unwrap().line(), line);
    assert_eq!(f.traces(), 0);
    assert_eq!(values(&f.call(floats(&[1, 3])).unwrap()), [3.0, 3.0]);
}
