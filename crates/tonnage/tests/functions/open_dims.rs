//! Open dims: one trace serves every size, and each size is planned to the byte.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use tonnage::{
    DType, Dim, Elementwise, ErrorKind, Function, GradientTape, Part, Result, Tensor, Tree,
    Variable, cond, function, ones, positions, random_normal, tensor, while_loop, zeros,
};

use crate::common::{call_checked, close, own_context};

fn open(name: &str) -> Dim {
    Dim::open(name)
}

/// Values in memory: a ramp of that shape.
fn ramp(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|i| (i % 13) as f32 * 0.25 - 1.0).collect();
    let lengths: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
    tensor(values).unwrap().reshape(&lengths).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f64> {
    tensor.cast(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

/// Calls with `f32[b, 6]` of several sizes: one trace, the bits of a function that is traced for the size,
/// and the bytes that were predicted.
#[track_caller]
fn serves_every_size(f: fn(Tensor) -> Result<Tensor>) {
    let _context = own_context();
    let spec = Tensor::spec(DType::F32, [open("b"), 6.into()]);
    let one = function(f).signature(spec);
    for size in [4, 1, 7, 0, 130, 4] {
        let x = ramp(&[size, 6]);
        let got = call_checked(&one, &x);
        let expected = call_checked(&function(f), &x);
        assert_eq!(got.ty(), expected.ty(), "for {size}");
        assert_eq!(bits(&got), bits(&expected), "for {size}");
    }
    assert_eq!(one.traces(), 1);
}

#[test]
fn sizes_stay_symbolic_in_reshapes() {
    serves_every_size(|x| {
        let rows = x.dim(0)?;
        let y = (x.reshape([rows.clone(), 2.into(), 3.into()])?.sum([1])? * 2.0)?;
        y.reshape([rows.times(&3.into())])?.reshape([-1, 3])
    });
}

#[test]
fn sizes_stay_symbolic_in_what_is_made() {
    serves_every_size(|x| {
        let rows = x.dim(0)?;
        let y = (zeros([rows.clone(), 10.into()])? + 1.0)?.sum_keep([1])?;
        let at = positions(rows, DType::F32)?.reshape([-1, 1])?;
        ((x * y)? + at)? - ones([6])?.broadcast_to(x_shape(6))?
    });
    fn x_shape(n: usize) -> tonnage::Shape {
        [1, n].into()
    }
}

#[test]
fn a_mean_divides_by_the_size_of_the_call() {
    serves_every_size(|x| {
        let centred = (&x - x.mean_all()?)?;
        centred.square()?.mean_all()
    });
}

#[test]
fn broadcasts_sums_and_products_take_open_dims() {
    serves_every_size(|x| {
        let gram = x.matmul(&x.t()?)?; // [b, b]
        let scaled = (gram / x.sum_keep([1])?.exp()?)?;
        scaled.softmax(1)?.matmul(&x)?.transpose(&[1, 0])
    });
}

#[test]
fn parts_of_open_dims_follow_the_rules_of_known_ones() {
    serves_every_size(|x| {
        let parts: [Part; 8] = [
            (1..).into(),
            (..2).into(),
            (-3..).into(),
            (..-1).into(),
            (1..5).into(),
            Part::ALL.by(-1),
            Part::from(-2..).by(-2),
            Part::from(1..).by(3),
        ];
        let mut sum = zeros([6])?;
        for (i, part) in parts.into_iter().enumerate() {
            let piece = x.slice(&[part])?;
            let weight = positions(piece.dim(0)?, DType::F32)?.reshape([-1, 1])?;
            sum = (sum + (piece * (weight + i as f64)?)?.sum([0])?)?;
        }
        Ok(sum)
    });
}

#[test]
fn gradients_are_planned_for_every_size() {
    serves_every_size(|x| {
        let mut tape = GradientTape::new();
        tape.watch(&x);
        let y = x.slice(&[(1..).into()])?.tanh()?;
        let loss = ((&y * &y)?.mean_all()? + ((&x).relu()? * 3.0)?.sum_all()?)?;
        tape.gradient(&loss, &[&x])?[0].tensor()
    });
}

#[test]
fn branches_and_loops_take_open_dims() {
    serves_every_size(|x| {
        let positive = tensor(0.0f32)?.less(x.sum_all()?)?;
        let y = cond(&positive, || (&x * 2.0)?.exp(), || -&x)?;
        let start = (tensor(0i32)?, y);
        let body = |(i, y): (Tensor, Tensor)| Ok(((i + 1)?, (y + &x)?.tanh()?));
        while_loop(start, |(i, _)| i.less(3), body).map(|(_, y)| y)
    });
}

#[test]
fn sizes_that_the_data_decide_follow_open_ones() {
    let _context = own_context();
    let f = |x: Tensor| {
        let kept = x.boolean_mask(&tensor(0.0f32)?.less(&x)?)?;
        kept.mean_all()
    };
    let one = function(f).signature(Tensor::spec(DType::F32, [open("n")]));
    for size in [7, 20, 500] {
        let x = ramp(&[size]);
        let positive: Vec<f64> = values(&x).into_iter().filter(|v| *v > 0.0).collect();
        let mean = positive.iter().sum::<f64>() / positive.len() as f64;
        close(&call_checked(&one, &x), &[mean], 1e-6);
    }
}

#[test]
fn the_same_name_is_the_same_size_wherever_it_stands() {
    let _context = own_context();
    let spec = (
        Tensor::spec(DType::F32, [open("b"), open("k")]),
        vec![Tensor::spec(DType::F32, [open("k")]), Tensor::spec(DType::F32, [open("b")])],
    );
    let f = function(|(x, more): (Tensor, Vec<Tensor>)| {
        ((x * &more[0])?.sum([1])? + &more[1])?.sum_all()
    })
    .signature(spec);
    let arguments = |b: usize, k: usize, c: usize| (ramp(&[b, k]), vec![ramp(&[k]), ramp(&[c])]);
    let made = call_checked(&f, &arguments(2, 3, 2));
    let by_hand = [-1.0 * -1.0 + 0.75 * 0.75 + 0.5 * 0.5, 0.25 + 0.0, 0.0, -1.0, -0.75];
    close(&made, &[by_hand.iter().sum::<f64>()], 1.0);
    call_checked(&f, &arguments(5, 4, 5));
    let error = f.call(arguments(5, 4, 6)).unwrap_err();
    let text = error.to_string();
    for part in ["argument `.1[1]` is f32[6]", "the signature says f32[b]", "b = 5 from `.0`"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let error = f.call((ramp(&[5]), vec![ramp(&[4]), ramp(&[5])])).unwrap_err().to_string();
    assert!(error.contains("argument `.0` is f32[5], but the signature says f32[b, k]"), "{error}");
    let error = f.call((ramp(&[2, 2]), vec![ramp(&[2])])).unwrap_err().to_string();
    assert!(error.contains("(tensor,[tensor,],) do not fit (tensor,[tensor,tensor,],)"), "{error}");
    assert_eq!(f.traces(), 1, "mistakes trace nothing");
}

#[test]
fn a_signature_takes_other_dtypes_and_plain_values_for_mistakes() {
    let _context = own_context();
    let spec = Tensor::spec(DType::F32, [open("n")]);
    let f = function(|(x, k): (Tensor, i64)| x * k).signature((spec, 3));
    assert_eq!(values(&f.call((ones([2]).unwrap(), 3)).unwrap()), [3.0, 3.0]);
    let error = f.call((tensor([1i32]).unwrap(), 3)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::BadArgument { op: "function", .. }), "{error}");
    assert!(error.to_string().contains("is i32[1], but the signature says f32[n]"), "{error}");
    let error = f.call((ones([2]).unwrap(), 4)).unwrap_err().to_string();
    assert!(error.contains("(tensor,4i64,) do not fit (tensor,3i64,)"), "{error}");
    // Inside of another function it is checked too.
    let outer = function(move |x: Tensor| f.call((x, 4)));
    assert!(outer.call(ones([2]).unwrap()).unwrap_err().to_string().contains("do not fit"));
}

#[test]
fn dims_may_be_expressions_of_others() {
    let _context = own_context();
    let n = open("n");
    let double = n.times(&2.into());
    let spec = (Tensor::spec(DType::F32, [n.clone()]), Tensor::spec(DType::F32, [double.clone()]));
    let f = function(|(x, y): (Tensor, Tensor)| {
        let y = y.reshape([x.dim(0)?, 2.into()])?;
        (x.reshape([-1, 1])? + y)?.sum([1])
    })
    .signature(spec);
    call_checked(&f, &(ramp(&[3]), ramp(&[6])));
    let error = f.call((ramp(&[3]), ramp(&[5]))).unwrap_err().to_string();
    assert!(error.contains("argument `.1` is f32[5], but the signature says f32[2*n]"), "{error}");
    let alone = function(|x: Tensor| x + 1.0).signature(Tensor::spec(DType::F32, [double]));
    let error = alone.call(ramp(&[4])).unwrap_err().to_string();
    assert!(error.contains("`n` stands nowhere by itself"), "{error}");
}

#[test]
fn a_shape_that_does_not_fit_is_found_while_tracing_or_in_the_call_that_has_it() {
    let _context = own_context();
    let spec = || Tensor::spec(DType::F32, [open("b"), 6.into()]);
    let never = function(|x: Tensor| x.reshape([x.dim(0)?, 5.into()])).signature(spec());
    let error = never.call(ramp(&[2, 6])).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ElementCount { .. }), "{error}");
    let sometimes = function(|x: Tensor| x.reshape([4, -1])).signature(spec());
    assert_eq!(sometimes.call(ramp(&[2, 6])).unwrap().shape().to_string(), "[4, 3]");
    let line = line!() - 2;
    let error = sometimes.call(ramp(&[3, 6])).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ElementCount { .. }), "{error}");
    assert_eq!(error.source_line().unwrap().line(), line, "{error}");
    assert_eq!(sometimes.call(ramp(&[4, 6])).unwrap().shape().to_string(), "[4, 6]");
    let two = function(|x: Tensor| x.clone() + x.reshape([-1])).signature(spec());
    let error = two.call(ramp(&[2, 6])).unwrap_err().to_string();
    assert!(error.contains("[b, 6] and [6*b]"), "both sides, symbolic: {error}");
}

/// A training step on a batch of any size.
#[allow(clippy::type_complexity, reason = "a function has the type of its closure")]
fn train(
    weight: &Variable,
) -> Function<(Tensor, Tensor), Tensor, impl Fn((Tensor, Tensor)) -> Result<Tensor> + use<>> {
    let weight = weight.clone();
    function(move |(x, y): (Tensor, Tensor)| {
        let mut tape = GradientTape::new();
        let error = (x.matmul(&weight.read()?)?.tanh()? - &y)?;
        let loss = error.square()?.mean_all()?;
        let grad = tape.gradient(&loss, &[&weight])?[0].tensor()?;
        weight.assign_sub(&(grad * 0.1)?)?;
        Ok(loss)
    })
}

#[test]
fn a_training_step_is_one_trace_for_every_batch() {
    let _context = own_context();
    let first = || ramp(&[3, 2]).tanh().unwrap();
    let (open_one, exact) =
        (Variable::new("w", first()).unwrap(), Variable::new("w", first()).unwrap());
    let spec = (
        Tensor::spec(DType::F32, [open("batch"), 3.into()]),
        Tensor::spec(DType::F32, [open("batch"), 2.into()]),
    );
    let (a, b) = (train(&open_one).signature(spec), train(&exact));
    for size in [8, 3, 8, 17] {
        let batch = (ramp(&[size, 3]), ramp(&[size, 2]));
        let (x, y) = (call_checked(&a, &batch), call_checked(&b, &batch));
        assert_eq!(values(&x), values(&y));
    }
    assert_eq!(values(&open_one.read().unwrap()), values(&exact.read().unwrap()));
    assert_eq!((a.traces(), b.traces()), (1, 3));
}

#[test]
fn dims_are_opened_by_themselves_once_they_were_seen_to_change() {
    let _context = own_context();
    let f = function(|(x, y, w): (Tensor, Tensor, Tensor)| (x * y)?.matmul(&w)).reduce_retracing();
    let arguments = |b: usize, k: usize| (ramp(&[b, k]), ramp(&[b, k]), ramp(&[k, 2]));
    for b in 1..30 {
        let got = call_checked(&f, &arguments(b, 4));
        let (x, y, w) = arguments(b, 4);
        assert_eq!(values(&got), values(&(x * y).unwrap().matmul(&w).unwrap()));
    }
    assert_eq!(f.traces(), 3, "two sizes, then one for all");
    let text = f.concrete(&arguments(50, 4)).unwrap().inputs()[0].to_string();
    assert_eq!(text, "f32[n0, 4]");
    // Another dim changes too.
    for k in 5..20 {
        call_checked(&f, &arguments(3, k));
    }
    assert!(f.traces() <= 5, "{}", f.traces());
}

#[test]
fn a_closure_that_needs_known_sizes_is_traced_for_each() {
    let _context = own_context();
    let f = function(|x: Tensor| {
        let n = x.dim(0)?.known().ok_or(ErrorKind::BadArgument {
            op: "test",
            what: "open".into(),
            help: "none".into(),
        })?;
        x * n as f64
    })
    .reduce_retracing();
    for n in 1..7 {
        assert_eq!(values(&f.call(ones([n]).unwrap()).unwrap()), vec![n as f64; n]);
    }
    assert_eq!(f.traces(), 6);
}

#[test]
fn a_concrete_function_shows_and_serves_its_signature() {
    let _context = own_context();
    let weight = ramp(&[6, 2]);
    let captured = weight.clone();
    let bias = Variable::new("bias", ramp(&[2])).unwrap();
    let b = bias.clone();
    let f = function(move |x: Tensor| x.matmul(&captured)? + b.read()?);
    let rows = f.concrete(&Tensor::spec(DType::F32, [open("rows"), 6.into()])).unwrap();
    assert_eq!(rows.inputs()[0].to_string(), "f32[rows, 6]");
    assert_eq!(rows.outputs()[0].to_string(), "f32[rows, 2]");
    assert_eq!(rows.captured_bytes().get(), 64, "48 bytes, rounded");
    assert_eq!((rows.captured().len(), rows.variables().len()), (1, 1));
    assert_eq!(rows.variables()[0].name(), "bias");
    let text = rows.graph();
    for part in ["%0: f32[rows, 6]", "`bias`", "matmul", "a node"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    for n in [1, 9] {
        let x = ramp(&[n, 6]);
        let expected = (x.matmul(&weight).unwrap() + bias.read().unwrap()).unwrap();
        let plan = rows.plan(&x).unwrap();
        let (got, measured) = rows.call_measured(x.clone()).unwrap();
        assert_eq!(values(&got), values(&expected));
        assert_eq!(measured.used, plan.peak());
        // The function finds the trace that was asked for.
        assert_eq!(values(&f.call(x).unwrap()), values(&expected));
    }
    assert_eq!(f.traces(), 1);
    let error = rows.call(ramp(&[2, 5])).unwrap_err().to_string();
    assert!(error.contains("is f32[2, 5], but the signature says f32[rows, 6]"), "{error}");
    drop(f);
    assert_eq!(rows.call(ramp(&[1, 6])).unwrap().shape().to_string(), "[1, 2]", "outlives it");
    // Known sizes are a signature too.
    let g = function(|x: Tensor| x + 1.0);
    let known = g.concrete(&ramp(&[3])).unwrap();
    assert_eq!(known.inputs()[0].to_string(), "f32[3]");
    assert!(known.call(ramp(&[4])).is_err());
}

#[test]
fn a_plan_can_be_asked_for_before_the_arguments_exist() {
    let _context = own_context();
    let f = function(|x: Tensor| x.exp()?.softmax(1));
    let spec = Tensor::spec(DType::F32, [300, 500]);
    let (kept, moved) = (f.plan(&spec).unwrap(), f.plan_moved(&spec).unwrap());
    assert!(moved.peak() < kept.peak(), "{} and {}", moved.peak(), kept.peak());
    let x = ramp(&[300, 500]);
    assert_eq!(kept.peak(), f.plan(&x).unwrap().peak());
    let (_, measured) = f.call_measured(x.clone()).unwrap();
    assert_eq!(measured.unwrap().used, kept.peak());
    let (_, measured) = f.call_measured(x).unwrap();
    assert_eq!(measured.unwrap().used, moved.peak(), "moved in");
    let error = f.plan(&Tensor::spec(DType::F32, [open("n"), 5.into()])).unwrap_err().to_string();
    assert!(error.contains("[n, 5]"), "{error}");
    // A spec has no values to compute with.
    for error in [(&spec + 1.0).unwrap_err(), f.call(spec.clone()).unwrap_err()] {
        assert!(error.to_string().contains("without values"), "{error}");
    }
}

#[test]
fn random_numbers_of_open_shapes_are_those_of_the_seed() {
    let _context = own_context();
    let draw = |x: Tensor| random_normal([x.dim(0)?, 2.into()], DType::F32);
    let one = function(draw).signature(Tensor::spec(DType::F32, [open("n")]));
    let of_seed = |n: usize| {
        tonnage::set_seed(5);
        one.call(zeros([n]).unwrap()).unwrap().to_vec::<f32>().unwrap()
    };
    let (few, many) = (of_seed(3), of_seed(40));
    assert_eq!((few.len(), many.len()), (6, 80));
    assert_eq!(few, many[..6]);
    let again = one.call(zeros([3]).unwrap()).unwrap().to_vec::<f32>().unwrap();
    assert_ne!(few, again, "fresh in every call, also where the result is a recipe");
}

#[test]
fn paths_name_every_tensor_of_a_tree() {
    let _context = own_context();
    let tree = (zeros([1]).unwrap(), [Some((zeros([2]).unwrap(),)), None], 4i32);
    let mut paths = Vec::new();
    tree.paths(&mut String::new(), &mut |path| paths.push(path.to_string()));
    assert_eq!(paths, [".0", ".1[0].0"]);
}
