//! User mistakes with variables, containers, tapes and devices: errors of their own kind, as in
//! `bad_input`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use tonnage::{
    Container, DType, Elementwise, ErrorKind, GradientTape, Reuse, Tensor, TensorType, Variable,
    forget_variables, function, get_variable, memory, name_scope, ones, tensor, while_loop, zeros,
};

use crate::common::own_context;
use crate::common::refused::floats;
use crate::refused;

#[test]
fn a_variable_without_a_value_says_where_it_was_made() {
    let _context = own_context();
    let v = Variable::deferred("later", TensorType::new(DType::F32, [2]));
    let made = format!("made at {}:{}", file!(), line!() - 1);
    refused!(v.read(), ErrorKind::Uninitialized { .. }, "`later`", made.as_str(), "assign");
    refused!(v.assign_add(&ones([2]).unwrap()), ErrorKind::Uninitialized { .. }, "`later`");
    let w = v.clone();
    let f = function(move |x: Tensor| x + w.read()?);
    refused!(f.call(floats(&[2])), ErrorKind::Uninitialized { .. }, "`later`", made.as_str());
    refused!(v.assign(&floats(&[3])), ErrorKind::ShapeMismatch { .. }, "assign: ", "[2]", "[3]");
    assert!(!v.is_initialized());
    v.assign(&floats(&[2])).unwrap();
    assert_eq!(f.call(floats(&[2])).unwrap().to_vec::<f32>().unwrap(), [2.0, 2.0]);
}

#[test]
fn a_closed_container_says_so() {
    let _context = own_context();
    let container = Container::new("weights");
    let v = container.enter(|| Variable::new("v", floats(&[2]))).unwrap();
    let w = v.clone();
    let f = function(move |x: Tensor| x + w.read()?);
    f.call(floats(&[2])).unwrap();
    container.close().unwrap();
    refused!(v.read(), ErrorKind::Closed { .. }, "`v`", "closed", ";");
    refused!(v.assign(&floats(&[2])), ErrorKind::Closed { .. }, "`v`");
    refused!(v.assign_add(&floats(&[2])), ErrorKind::Closed { .. }, "`v`");
    refused!(f.call(floats(&[2])), ErrorKind::Closed { .. }, "`v`");
    refused!(container.enter(|| Ok(())), ErrorKind::Closed { .. }, "container `weights`", ";");
}

#[test]
fn a_name_that_is_taken_names_both_places() {
    let _context = own_context();
    let first = line!() + 1;
    name_scope("net", || get_variable("w", Reuse::Never, || zeros([2]))).unwrap();
    let first = format!("made at {}:{first}", file!());
    let again = format!("again at {}:{}", file!(), line!() + 2);
    refused!(
        name_scope("net", || { get_variable("w", Reuse::Never, || zeros([2])) }),
        ErrorKind::NameTaken { .. },
        "`net/w`",
        first.as_str(),
        again.as_str(),
        "Reuse::Auto"
    );
    refused!(
        get_variable("w", Reuse::Always, || zeros([2])),
        ErrorKind::BadArgument { .. },
        "get_variable: there is no variable `w`",
        "Reuse::Auto"
    );
    forget_variables();
}

#[test]
fn a_tape_says_why_it_cannot_answer() {
    let _context = own_context();
    let x = floats(&[2]);
    let mut tape = GradientTape::new();
    tape.watch(&x);
    let y = (&x).square().unwrap().sum_all().unwrap();
    let whole = (&y).cast(DType::I32).unwrap();
    refused!(
        tape.gradient(&whole, &[&x]),
        ErrorKind::Tape { .. },
        "tape: target 0 is i32[]",
        "float"
    );
    let ints = tensor([1i32]).unwrap();
    refused!(tape.gradient(&y, &[&ints]), ErrorKind::Tape { .. }, "tape: source 0 is i32[1]");
    let wrong = floats(&[3]);
    refused!(
        tape.gradient_from(&y, &wrong, &[&x]),
        ErrorKind::Tape { .. },
        "tape: the gradient given for target 0 is f32[3], the target f32[]",
        ";"
    );
    // None of these used the tape up.
    assert!(tape.gradient(&y, &[&x]).is_ok());
    refused!(
        tape.gradient(&y, &[&x]),
        ErrorKind::Tape { .. },
        "gave its gradient",
        "GradientTape::persistent"
    );
}

#[test]
fn a_source_that_is_not_watched_is_told_apart_from_one_that_does_not_matter() {
    let _context = own_context();
    let (x, other, apart) = (floats(&[2]), floats(&[2]), floats(&[2]));
    let mut tape = GradientTape::persistent();
    tape.watch((&x, &apart));
    let y = (&x * &other).unwrap().sum_all().unwrap();
    refused!(
        tape.gradient(&y, &[&x, &other]),
        ErrorKind::Tape { .. },
        "tape: source 1, f32[2], was not watched",
        "`watch`"
    );
    let grads = tape.gradient(&y, &[&apart, &x]).unwrap();
    refused!(grads[0].tensor(), ErrorKind::Tape { .. }, "does not depend", "or_zeros");
    assert_eq!(grads[0].or_zeros(&apart).unwrap().to_vec::<f32>().unwrap(), [0.0, 0.0]);
    assert_eq!(grads[1].tensor().unwrap().to_vec::<f32>().unwrap(), [1.0, 1.0]);
    let (a, b) = tape.gradient_or_zeros(&y, (&apart, &x)).unwrap();
    assert_eq!(a.tensor().unwrap().to_vec::<f32>().unwrap(), [0.0, 0.0]);
    assert_eq!(b.tensor().unwrap().to_vec::<f32>().unwrap(), [1.0, 1.0]);
}

#[test]
fn an_op_without_a_gradient_says_why() {
    let _context = own_context();
    let x = tensor([1.0f32, 3.0, 2.0]).unwrap();
    // The gradient of a loop that only the data end has none of its own: it says what to do.
    let mut outer = GradientTape::new();
    outer.watch(&x);
    let mut inner = GradientTape::new();
    inner.watch(&x);
    let last = while_loop(x.clone(), |x| x.sum_all()?.less(90), |x: Tensor| x.square()).unwrap();
    let first = inner.gradient(&last.sum_all().unwrap(), &[&x]).unwrap()[0].tensor().unwrap();
    let sum = first.sum_all().unwrap();
    drop(inner);
    let text = outer.gradient(&sum, &[&x]).unwrap_err().to_string();
    assert!(text.contains("no gradient through while_grad"), "{text}");
    assert!(text.contains("say how many iterations it may take at most"), "{text}");
    assert!(text.contains(concat!("(at ", file!(), ":")), "{text}");
    // A comparison makes booleans: nothing flows through them.
    let mut tape = GradientTape::new();
    tape.watch(&x);
    let y = x.less(2).unwrap().cast(DType::F32).unwrap().sum_all().unwrap();
    let grads = tape.gradient(&y, &[&x]).unwrap();
    refused!(grads[0].tensor(), ErrorKind::Tape { .. }, "does not depend");
    // Indices are whole numbers: nothing flows through them.
    let mut tape = GradientTape::new();
    tape.watch(&x);
    let (_, indices) = x.top_k(2).unwrap();
    let y = indices.cast(DType::F32).unwrap().sum_all().unwrap();
    let grads = tape.gradient(&y, &[&x]).unwrap();
    refused!(grads[0].tensor(), ErrorKind::Tape { .. }, "does not depend");
}

#[test]
fn a_device_that_is_not_there_is_named() {
    let _context = own_context();
    let error = memory::info("gpu:0").unwrap_err().to_string();
    assert!(error.contains("cuda:0") && error.contains("cpu:0"), "{error}");
}
