//! Contexts of one's own: what is held, set or asked in one is not seen in another, on any thread that enters it.
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use tonnage::memory::{self, HeldBy};
use tonnage::{
    Bytes, Context, DType, ErrorKind, Function, Result, Tensor, Variable, function, notices,
    prints, random_normal, run_functions_eagerly, set_seed, tensor, zeros,
};

use crate::common::{in_use, own_context};

/// 4 KiB in memory, of one line whoever asks for them.
fn resident() -> Tensor {
    tensor(vec![0.5f32; 1024]).unwrap()
}

/// A variable, of one line too.
fn variable(name: &str) -> Variable {
    Variable::new(name, resident()).unwrap()
}

/// A function that captures some bytes, and was traced.
fn capturing() -> Function<Tensor, Tensor, impl Fn(Tensor) -> Result<Tensor>> {
    let captured = resident();
    let f = function(move |x: Tensor| x + &captured);
    f.call(zeros([1024]).unwrap()).unwrap();
    f
}

#[test]
fn the_holders_of_a_line_are_those_of_the_context() {
    let _context = own_context();
    let (held, f) = (variable("here"), capturing());
    let line = |x: &Tensor| memory::why(x).unwrap().owner.unwrap().source.to_string();
    let [of_variable, of_function] = [line(&held.read().unwrap()), line(&resident())];
    let why = |line: &str| memory::why_line(line).unwrap();
    let here = [why(&of_variable), why(&of_function)];
    let names = |by: &HeldBy| matches!(by, HeldBy::Variable { name, .. } if name == "here");
    assert!(here[0].held_by.iter().all(names) && here[0].held_by.len() == 1, "{}", here[0]);
    let captured = here[1].held_by.iter().filter(|by| matches!(by, HeldBy::Captured { .. }));
    assert_eq!(captured.count(), 1, "{}", here[1]);

    let other = own_context();
    let nothing = |line: &str| assert_eq!((why(line).held, why(line).held_by), (vec![], vec![]));
    nothing(&of_variable);
    nothing(&of_function);
    let elsewhere = (variable("elsewhere"), capturing());
    assert!(!why(&of_variable).held_by.iter().any(names), "{}", why(&of_variable));
    drop(other);
    assert_eq!([why(&of_variable), why(&of_function)], here);
    drop(elsewhere);
    assert_eq!([why(&of_variable), why(&of_function)], here);
    drop((held, f));
    nothing(&of_variable);
    nothing(&of_function);
}

thread_local! {
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

#[test]
fn a_host_is_asked_for_what_runs_in_its_context_alone() {
    // So long that it asks before it starts.
    let long = || tonnage::full(0.5, DType::F32, [6_000_000]).unwrap().sort(-1, false);
    let _context = own_context();
    tonnage::bind::set_question(|| {
        ASKED.set(ASKED.get() + 1);
        true
    });
    let error = long().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Interrupted), "{error}");
    let asked = ASKED.get();
    assert!(asked > 0);
    let _other = own_context();
    long().unwrap();
    assert_eq!(ASKED.get(), asked);
    // One of its own is set there, though the first has one.
    tonnage::bind::set_question(|| {
        ASKED.set(ASKED.get() + 100);
        false
    });
    long().unwrap();
    assert!(ASKED.get() >= asked + 100);
}

#[test]
fn bytes_limits_and_switches_are_those_of_the_context() {
    let _context = own_context();
    let held = resident();
    let before = in_use();
    memory::set_limit("cpu:0", Some(Bytes::new(8 << 10))).unwrap();
    run_functions_eagerly(true);
    let large = || tensor(vec![0.5f32; 1 << 16]);
    let error = large().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NeverFits { .. }), "{error}");
    let f = function(|x: Tensor| x * 2.0);
    {
        let _other = own_context();
        assert_eq!(in_use(), Bytes::ZERO);
        let made = large().unwrap();
        f.call(resident()).unwrap();
        assert_eq!(f.traces(), 1);
        assert!(in_use() > Bytes::new(8 << 10), "{}", in_use());
        drop(made);
    }
    assert_eq!(in_use(), before);
    f.call(held.reshape([32, 32]).unwrap()).unwrap();
    assert_eq!(f.traces(), 1, "it runs op by op here");
}

#[test]
fn a_seed_is_that_of_the_context() {
    let drawn = || random_normal([4], DType::F32).unwrap().to_vec::<f32>().unwrap();
    let _context = own_context();
    set_seed(5);
    let expected = [drawn(), drawn()];
    set_seed(5);
    let first = drawn();
    {
        let _other = own_context();
        set_seed(6);
        assert_ne!(drawn(), expected[1]);
    }
    assert_eq!([first, drawn()], expected);
}

#[test]
fn listeners_hear_what_happens_in_their_context_alone() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listen = |who: &'static str| {
        let (printed, noticed) = (heard.clone(), heard.clone());
        prints::listen(move |line| printed.lock().unwrap().push(format!("{who}: {line}")));
        notices::listen(move |_| noticed.lock().unwrap().push(format!("{who}: a notice")));
    };
    let speak = || {
        tensor(1i32).unwrap().print("x is {}").unwrap();
        let f = function(|x: Tensor| x + 1.0);
        (1..20).for_each(|n| drop(f.call(zeros([n]).unwrap()).unwrap()));
        std::mem::take(&mut *heard.lock().unwrap())
    };
    let _context = own_context();
    listen("here");
    {
        let _other = own_context();
        listen("there");
        assert_eq!(speak(), ["there: x is 1", "there: a notice"]);
    }
    assert_eq!(speak(), ["here: x is 1", "here: a notice"]);
}

#[test]
fn a_thread_sees_the_context_that_it_entered() {
    let _context = own_context();
    let held = resident();
    let (here, context) = (in_use(), Context::current());
    let (entered, apart) = std::thread::scope(|scope| {
        let inside = || {
            let _entered = context.enter();
            in_use()
        };
        let apart = || {
            let _other = own_context();
            in_use()
        };
        (scope.spawn(inside).join().unwrap(), scope.spawn(apart).join().unwrap())
    });
    assert_eq!((entered, apart), (here, Bytes::ZERO));
    drop(held);
}
