//! User mistakes with values: each is an error of its own kind that names the op, both sides, what to do
//! and the user's line. None panics, and none leaks.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use std::sync::Mutex;

use tonnage::{
    Bytes, DType, Elementwise, ErrorKind, Tensor, Variable, cond, constant, full, function, memory,
    random_normal, random_uniform, range, tensor, while_loop, zeros,
};

use crate::common::refused::floats;
use crate::common::{in_use, own_context};
use crate::refused;

#[test]
fn shapes_that_do_not_fit_are_named_both() {
    let _context = own_context();
    let (a, b) = (floats(&[2, 3]), floats(&[4]));
    refused!(&a + &b, ErrorKind::ShapeMismatch { .. }, "add: ", "[2, 3]", "[4]", ";");
    refused!(a.maximum(&b), ErrorKind::ShapeMismatch { .. }, "maximum: ", "[2, 3]", "[4]");
    let c = floats(&[4, 5]);
    refused!(a.matmul(&c), ErrorKind::ShapeMismatch { .. }, "matmul: ", "[2, 3]", "[4, 5]", ";");
    refused!(a.matmul(&b), ErrorKind::RankMismatch { .. }, "matmul: ", "[4]", "2 or more");
    let mask = a.less(2).unwrap();
    refused!(mask.where_(&a, &b), ErrorKind::ShapeMismatch { .. }, "where", "[2, 3]", "[4]");
    let v = Variable::new("v", floats(&[2])).unwrap();
    refused!(v.assign(&floats(&[3])), ErrorKind::ShapeMismatch { .. }, "assign: ", "[2]", "[3]");
    refused!(
        v.assign_add(&floats(&[5])),
        ErrorKind::ShapeMismatch { .. },
        "assign_add: ",
        "[2]",
        "[5]"
    );
    // A variable does not grow to what is assigned.
    refused!(v.assign(&a), ErrorKind::ShapeMismatch { .. }, "assign: ", "[2]", "[2, 3]");
    assert_eq!(v.read().unwrap().to_vec::<f32>().unwrap(), [1.0, 1.0]);
    refused!(a.broadcast_to([3, 3]), ErrorKind::ShapeMismatch { .. }, "broadcast_to", "[3, 3]");
    // The same inside of a function, at the line of the op.
    let f = function(|(a, b): (Tensor, Tensor)| &a + &b);
    let error = f.call((a.clone(), b.clone())).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ShapeMismatch { op: "add", .. }), "{error}");
    assert!(error.to_string().contains(concat!("(at ", file!(), ":")), "{error}");
}

#[test]
fn dtypes_that_do_not_agree_are_named_both() {
    let _context = own_context();
    let (a, b) = (floats(&[2, 2]), tensor([[1i32, 2], [3, 4]]).unwrap());
    refused!(a.matmul(&b), ErrorKind::DTypeMismatch { .. }, "matmul: ", "f32", "i32", ";");
    let v = Variable::new("v", floats(&[2, 2])).unwrap();
    refused!(v.assign(&b), ErrorKind::DTypeMismatch { .. }, "assign: ", "f32", "i32", "cast");
    refused!(v.assign_add(&b), ErrorKind::DTypeMismatch { .. }, "assign_add: ", "f32", "i32");
    refused!(a.to_vec::<f64>(), ErrorKind::DTypeMismatch { .. }, "to_vec: ", "f32", "f64", "cast");
    refused!((&b).exp(), ErrorKind::DTypeUnsupported { .. }, "exp: ", "i32", "use ");
    let mask = a.less(2).unwrap();
    refused!(a.where_(&a, &a), ErrorKind::DTypeUnsupported { .. }, "where: ", "f32", "bool");
    refused!(-&mask, ErrorKind::DTypeUnsupported { .. }, "neg: ", "bool");
}

#[test]
fn axes_are_checked() {
    let _context = own_context();
    let a = floats(&[2, 3]);
    refused!(a.sum(2), ErrorKind::AxisOutOfRange { .. }, "sum: axis 2", "rank 2", "-2 to 1");
    refused!(a.max(-3), ErrorKind::AxisOutOfRange { .. }, "max: axis -3", "rank 2");
    refused!(a.sum(i64::MIN), ErrorKind::AxisOutOfRange { .. }, "sum: axis -92");
    refused!(a.softmax(7), ErrorKind::AxisOutOfRange { .. }, "softmax: axis 7");
    refused!(a.transpose(&[0, 5]), ErrorKind::AxisOutOfRange { .. }, "transpose: axis 5");
    let i = tensor([0i64]).unwrap();
    refused!(a.gather(&i, 4), ErrorKind::AxisOutOfRange { .. }, "gather: axis 4");
    let s = tensor(1.0f32).unwrap();
    refused!(s.sum(0), ErrorKind::AxisOutOfRange { .. }, "sum: axis 0", "a scalar has none");
    refused!(a.sum([0, 0]), ErrorKind::DuplicateAxis { .. }, "sum: axis 0", "twice", ";");
    refused!(a.sum([1, -1]), ErrorKind::DuplicateAxis { .. }, "sum: axis 1", "twice");
    refused!(a.transpose(&[0, 0]), ErrorKind::BadArgument { .. }, "transpose: ", "[0, 0]", "once");
    refused!(a.transpose(&[0]), ErrorKind::BadArgument { .. }, "transpose: ", "[0]", "rank 2");
}

#[test]
fn a_reshape_keeps_the_number_of_elements() {
    let _context = own_context();
    let a = floats(&[2, 3]);
    refused!(a.reshape([4]), ErrorKind::ElementCount { .. }, "reshape: ", "[2, 3]", "[4]", "6");
    refused!(a.reshape([-1, 4]), _, "reshape: ", "[2, 3]");
    refused!(a.reshape([-1, -1]), ErrorKind::BadArgument { .. }, "reshape: ", ";");
    refused!(a.reshape([-2, 3]), ErrorKind::BadArgument { .. }, "reshape: ", ";");
    refused!(a.reshape([-1, 0]), _, "reshape: ");
    refused!(a.reshape([i64::MAX, i64::MAX]), _, "reshape: ");
}

#[test]
fn sizes_that_no_machine_has_are_refused_at_once() {
    let _context = own_context();
    let huge = [usize::MAX, 2];
    let size = usize::MAX.to_string();
    let size = size.as_str();
    refused!(constant(1.0f32, huge), ErrorKind::TooLarge { .. }, "fill: ", "f32", size, ";");
    refused!(zeros(huge), ErrorKind::TooLarge { .. }, "fill: ", size);
    refused!(zeros([usize::MAX]), ErrorKind::TooLarge { .. }, "fill: ", size);
    refused!(full(1, DType::U8, huge), ErrorKind::TooLarge { .. }, "fill: ", "u8");
    refused!(random_normal(huge, DType::F64), ErrorKind::TooLarge { .. }, "random_normal: ", "f64");
    refused!(random_uniform(huge, DType::F32), ErrorKind::TooLarge { .. }, "random_uniform: ");
    let one = floats(&[1, 1]);
    refused!(one.broadcast_to(huge), ErrorKind::TooLarge { .. }, "broadcast_to: ", size);
    // Each side is a recipe of a few bytes; their sum is not.
    let (tall, wide) = (zeros([1 << 40, 1]).unwrap(), zeros([1, 1 << 40]).unwrap());
    refused!(&tall + &wide, ErrorKind::TooLarge { .. }, "add: ", "[1099511627776, 1099511627776]");
    refused!(tall.matmul(&wide), ErrorKind::TooLarge { .. }, "matmul: ", "1099511627776");
    refused!(range(0.0f64, f64::INFINITY, 1.0), ErrorKind::BadArgument { .. }, "range: ", ";");
    refused!(range(0, 10, 0), ErrorKind::BadArgument { .. }, "range: ", "step");
    // No elements is no mistake.
    assert!(zeros([5, 0]).unwrap().to_vec::<f32>().unwrap().is_empty());
}

#[test]
fn a_limit_is_enforced_and_the_error_says_which_kind_of_too_much() {
    let _context = own_context();
    // 1 MiB in tensors that are too small to leave memory for a while.
    let held: Vec<Tensor> = (0..64).map(|_| tensor(vec![0.0f32; 4096]).unwrap()).collect();
    let limit = in_use() + Bytes::mib(2);
    memory::set_limit("cpu:0", Some(limit)).unwrap();
    let check = || {
        let error = refused!(
            tensor(vec![0u8; 64 << 20]),
            ErrorKind::NeverFits { .. },
            "never fits: input tensor asked for 64.00 MiB",
            "raise the limit"
        );
        let ErrorKind::NeverFits { limit: most, .. } = error.kind() else { unreachable!() };
        assert_eq!(*most, limit);
        refused!(
            tensor(vec![0u8; 2 << 20 | 1]),
            ErrorKind::OverBudget { .. },
            "over budget: input tensor asked for",
            "1.00 MiB in use",
            "held by input tensor at",
            concat!(file!(), ":"),
            "raise the budget"
        );
        // An eager op, and a planned one.
        let wide = held[0].reshape([1, -1]).unwrap();
        refused!(
            wide.broadcast_to([4096, 4096]).unwrap().exp(),
            ErrorKind::NeverFits { .. },
            "activation exp asked for 64.00 MiB"
        );
        let f = function(|x: Tensor| x.broadcast_to([4096, 4096])?.exp());
        refused!(
            f.call(wide.clone()),
            ErrorKind::OverBudget { .. },
            "a call asked for 64.0",
            "the least that would do is 6",
        );
        // The program goes on.
        assert_eq!((&held[0] + 1.0).unwrap().max(0).unwrap().scalar::<f32>().unwrap(), 1.0);
    };
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
    memory::set_limit("cpu:0", None).unwrap();
    if let Err(panic) = checked {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn an_index_out_of_range_is_found_and_leaves_variables_as_they_were() {
    let _context = own_context();
    let table = floats(&[3, 2]);
    let bad = tensor([0i64, 7]).unwrap();
    refused!(
        table.gather(&bad, 0),
        ErrorKind::IndexOutOfRange { index: 7, position: 1, size: 3, .. },
        "gather: index 7 at position 1",
        "axis of 3",
        "use 0 to 2"
    );
    let negative = tensor([-1i64]).unwrap();
    refused!(table.gather(&negative, 0), ErrorKind::IndexOutOfRange { .. }, "index -1");
    let rows = floats(&[2, 2]);
    refused!(
        table.clone().scatter_add(&bad, &rows),
        ErrorKind::IndexOutOfRange { .. },
        "scatter_add: index 7"
    );
    refused!(
        table.clone().scatter_update(&bad, &rows),
        ErrorKind::IndexOutOfRange { .. },
        "scatter_update: index 7"
    );
    // Planned.
    let v = Variable::new("v", floats(&[3, 2])).unwrap();
    let w = v.clone();
    let f = function(move |i: Tensor| {
        let rows = w.read()?.gather(&i, 0)?;
        w.assign_add(&constant(1.0f32, ())?)?;
        Ok(rows)
    });
    let before = in_use();
    let error = f.call(bad.clone()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::IndexOutOfRange { index: 7, .. }), "{error}");
    assert!(error.to_string().contains(concat!("(at ", file!(), ":")), "{error}");
    assert_eq!(in_use(), before);
    assert_eq!(v.read().unwrap().to_vec::<f32>().unwrap(), [1.0; 6], "as it was");
    f.call(tensor([0i64, 2]).unwrap()).unwrap();
    assert_eq!(v.read().unwrap().to_vec::<f32>().unwrap(), [2.0; 6]);
}

#[test]
fn an_update_waits_until_nothing_can_fail_any_more() {
    let _context = own_context();
    let v = Variable::new("v", floats(&[3, 2])).unwrap();
    let w = v.clone();
    let f = function(move |(t, i): (Tensor, Tensor)| {
        w.assign_add(&constant(1.0f32, ())?)?;
        t.gather(&i, 0)
    });
    f.call((floats(&[3, 2]), tensor([9i64]).unwrap())).unwrap_err();
    assert_eq!(v.read().unwrap().to_vec::<f32>().unwrap(), [1.0; 6]);
}

#[test]
fn a_singular_matrix_is_named() {
    let _context = own_context();
    let singular = tensor([[[4.0f64, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]]).unwrap();
    refused!(
        singular.cholesky(),
        ErrorKind::Singular { matrix: 1, column: 1, .. },
        "cholesky: matrix 1 is not",
        "positive definite",
        "column 1",
        ";"
    );
    refused!(floats(&[2, 3]).cholesky(), _, "cholesky: ", "[2, 3]");
    let nan = tensor([[f32::NAN]]).unwrap();
    refused!(nan.cholesky(), ErrorKind::Singular { .. }, "cholesky: matrix 0");
}

#[test]
fn ragged_data_are_refused_before_bytes_are_asked_for() {
    let _context = own_context();
    refused!(
        tensor(vec![vec![1, 2], vec![3]]),
        ErrorKind::BadArgument { .. },
        "tensor: ragged data: [1] has length 1, but [0] has length 2",
        "same length"
    );
    let scope = memory::scope();
    let deep = vec![vec![vec![0.0f32; 3]; 2], vec![vec![0.0; 3], vec![0.0; 2]]];
    refused!(tensor(deep), ErrorKind::BadArgument { .. }, "[1, 1] has length 2");
    assert_eq!(scope.report().count(memory::Action::Allocated), 0);
}

#[test]
fn the_values_of_a_symbolic_tensor_cannot_be_read() {
    let _context = own_context();
    let x = floats(&[2]);
    let f = function(|x: Tensor| {
        assert_eq!(x.to_string(), "Tensor(f32[2], symbolic)");
        assert_eq!(format!("{x:?}"), "Tensor(f32[2], symbolic)");
        refused!(x.to_vec::<f32>(), ErrorKind::Symbolic { .. }, "reading", "cond", "while_loop");
        refused!(x.scalar::<f32>(), ErrorKind::Symbolic { .. }, "reading", "cond", "while_loop");
        refused!(x.to_vec2::<f32>(), ErrorKind::Symbolic { .. }, "reading");
        refused!(x.to_vec3::<f32>(), ErrorKind::Symbolic { .. }, "reading");
        Ok(x)
    });
    f.call(x.clone()).unwrap();
    let g = function(|x: Tensor| constant(x.to_vec::<f32>()?[0], [2])? + &x);
    let error = g.call(x.clone()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Symbolic { .. }), "{error}");
    assert_eq!(error.source_line().unwrap().line(), line!() - 3);
}

#[test]
fn a_symbolic_tensor_cannot_leave_its_trace() {
    let _context = own_context();
    let x = floats(&[2]);
    let leaked: Mutex<Option<Tensor>> = Mutex::new(None);
    let f = function(|x: Tensor| {
        let y = (x * 2.0)?;
        *leaked.lock().unwrap() = Some(y.clone());
        Ok(y)
    });
    f.call(x.clone()).unwrap();
    let symbol = leaked.lock().unwrap().take().unwrap();
    let argument: Mutex<Option<Tensor>> = Mutex::new(None);
    let e = function(|x: Tensor| {
        *argument.lock().unwrap() = Some(x.clone());
        Ok(x)
    });
    e.call(x.clone()).unwrap();
    let argument = argument.lock().unwrap().take().unwrap();
    refused!(&x + &argument, ErrorKind::Escaped { .. }, "add: ");
    refused!(&symbol + &x, ErrorKind::Escaped { .. }, "add: ", "another trace", "results");
    refused!(&x + &symbol, ErrorKind::Escaped { .. }, "add: ");
    refused!((&symbol).exp(), ErrorKind::Escaped { .. }, "exp: ");
    refused!(symbol.to_vec::<f32>(), ErrorKind::Symbolic { .. }, "reading");
    refused!(f.call(symbol.clone()), ErrorKind::Escaped { .. }, "function: ");
    refused!(Variable::new("v", symbol.clone()), ErrorKind::Symbolic { .. }, "first value");
    let v = Variable::new("v", floats(&[2])).unwrap();
    refused!(v.assign(&symbol), _, "symbolic");
    let g = function(|x: Tensor| {
        refused!(&x + &symbol, ErrorKind::Escaped { .. }, "add: ");
        Ok(x)
    });
    g.call(x.clone()).unwrap();
    let h = function(|_: Tensor| Ok(symbol.clone()));
    refused!(h.call(x.clone()), ErrorKind::Escaped { .. }, "return: ");
    // Out of a branch or a body too.
    let inner: Mutex<Option<Tensor>> = Mutex::new(None);
    let yes = tensor(true).unwrap();
    let keep = |y: Tensor| {
        *inner.lock().unwrap() = Some(y.clone());
        Ok(y)
    };
    cond(&yes, || keep((&x * 2.0)?), || -&x).unwrap();
    let symbol = inner.lock().unwrap().take().unwrap();
    refused!(&symbol + &x, ErrorKind::Escaped { .. }, "add: ");
}

#[test]
fn a_number_must_fit_the_dtype() {
    let _context = own_context();
    let bytes = tensor([1u8, 2]).unwrap();
    refused!(&bytes + 300, ErrorKind::BadArgument { .. }, "add: 300", "u8", "cast");
    refused!(&bytes + -1, ErrorKind::BadArgument { .. }, "add: -1", "u8");
    refused!(-1 + &bytes, ErrorKind::BadArgument { .. }, "add: -1", "u8");
    refused!(bytes.less(0.5), ErrorKind::BadArgument { .. }, "less: 0.5", "u8");
    refused!(bytes.maximum(1e9), ErrorKind::BadArgument { .. }, "maximum: ", "u8");
    refused!(full(300, DType::U8, [2]), ErrorKind::BadArgument { .. }, "fill: 300", "u8");
    assert_eq!((&bytes + 3).unwrap().to_vec::<u8>().unwrap(), [4, 5]);
}

#[test]
fn branches_and_bodies_keep_their_types() {
    let _context = own_context();
    let x = floats(&[2]);
    let yes = tensor(true).unwrap();
    refused!(cond(&yes, || -&x, || x.sum_all()), _, "cond: ", "f32[2]", "f32[]", ";");
    refused!(cond(&yes, || -&x, || (&x).cast(DType::F64)), _, "cond: ", "f32[2]", "f64[2]");
    refused!(
        cond(&yes, || Ok(vec![x.clone()]), || Ok(vec![x.clone(), x.clone()])),
        ErrorKind::BadArgument { .. },
        "cond: ",
        "nested"
    );
    refused!(cond(&x, || -&x, || (&x).exp()), _, "cond: ", "f32[2]");
    refused!(
        while_loop(x.clone(), |x| x.sum_all()?.less(9), |x: Tensor| x.sum_all()),
        ErrorKind::BadArgument { .. },
        "while_loop: loop variable 0 enters as f32[2] and leaves as f32[]",
        "keep its dtype and shape"
    );
    refused!(
        while_loop(x.clone(), |x| x.sum_all()?.less(9), |x: Tensor| x.cast(DType::F64)),
        ErrorKind::BadArgument { .. },
        "enters as f32[2] and leaves as f64[2]"
    );
    refused!(while_loop(x.clone(), |x| x.less(9), |x: Tensor| x + 1), _, "while_loop: ", "bool[2]");
    // An error inside of a branch is the branch's own.
    refused!(
        cond(&yes, || x.matmul(&x), || -&x),
        ErrorKind::ShapeMismatch { .. } | ErrorKind::RankMismatch { .. },
        "matmul: "
    );
}
