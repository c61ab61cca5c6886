//! Deferred graphs: built without running anything, fed by name, run in sessions that own what they hold.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use std::collections::BTreeMap;

use tonnage::{
    Bytes, DType, Dim, Elementwise, ErrorKind, GradientTape, Graph, Reuse, Session, Tensor, Tree,
    Variable, cond, function, get_variable, memory, name_scope, ones, random_normal, tensor, zeros,
};

use crate::common::{in_use, own_context};
use crate::refused;

fn floats(values: &[f32]) -> Tensor {
    tensor(values.to_vec()).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().unwrap()
}

/// Runs twice and checks that reserved = used = predicted.
#[track_caller]
fn run_checked<T: Tree>(
    session: &Session,
    fetches: &T,
    updates: &[&Tensor],
    feeds: &[(&'static str, Tensor)],
) -> T {
    let feeds = || feeds.iter().cloned();
    let mut first = None;
    for _ in 0..2 {
        let plan = session.plan(fetches, updates, feeds()).unwrap();
        let before = in_use();
        memory::reset_peak("cpu:0").unwrap();
        let (made, measured) = session.run_measured(fetches, updates, feeds()).unwrap();
        let reserved = memory::info("cpu:0").unwrap().peak - before;
        assert_eq!(reserved, plan.obtains(), "reserved and predicted\n{plan}");
        match plan.is_bound {
            false => assert_eq!(measured.used, plan.peak(), "used and predicted\n{plan}"),
            true => assert!(measured.used <= plan.peak()),
        }
        first = first.or(Some(made));
    }
    first.unwrap()
}

#[test]
fn nothing_is_obtained_until_it_runs() {
    let _context = own_context();
    let before = in_use();
    let graph = Graph::new();
    let a = graph.placeholder("a", DType::F32, [1 << 20]).unwrap();
    let b = graph.placeholder("b", DType::F32, [1 << 20]).unwrap();
    let c = graph.build(|| (a + b)?.tanh()).unwrap();
    let session = Session::new(&graph);
    let spec = || Tensor::spec(DType::F32, [1 << 20]);
    let plan = session.plan(&c, &[], [("a", spec()), ("b", spec())]).unwrap();
    assert_eq!(plan.peak(), Bytes::mib(12));
    assert_eq!(in_use(), before, "neither building nor planning obtains anything");
    let feeds = [("a", floats(&vec![0.5; 1 << 20])), ("b", floats(&vec![0.25; 1 << 20]))];
    assert_eq!(values(&run_checked(&session, &c, &[], &feeds))[7], 0.75f32.tanh());
}

#[test]
fn fetches_are_nested_and_only_what_they_need_is_run_and_fed() {
    let _context = own_context();
    let graph = Graph::new();
    let x = graph.placeholder("x", DType::F32, [2]).unwrap();
    let y = graph.placeholder("y", DType::F32, [2]).unwrap();
    let v = graph.build(|| Variable::new("v", zeros([2])?)).unwrap();
    let (sum, product, updated) = graph
        .build(|| {
            let sum = (&x + &y)?;
            v.assign_add(&x)?;
            Ok((sum, (&x * &y)?, v.read()?))
        })
        .unwrap();
    let session = Session::new(&graph);
    session.initialize().unwrap();
    let feeds = [("x", floats(&[1.0, 2.0])), ("y", floats(&[3.0, 4.0]))];
    type Fetches = BTreeMap<&'static str, (Tensor, Vec<Tensor>)>;
    let fetches: Fetches = [("a", (sum.clone(), vec![product, x.clone()]))].into();
    let made = run_checked(&session, &fetches, &[], &feeds);
    assert_eq!(values(&made["a"].0), [4.0, 6.0]);
    assert_eq!(values(&made["a"].1[0]), [3.0, 8.0]);
    assert_eq!(values(&made["a"].1[1]), [1.0, 2.0]);
    assert_eq!(values(&session.variable(&v).unwrap().read().unwrap()), [0.0, 0.0], "not run");
    // The update needs no y.
    session.run_with(&(), &[&updated], [("x", floats(&[1.0, 2.0]))]).unwrap();
    let got = session.run(&updated, [("x", floats(&[1.0, 2.0]))]).unwrap();
    assert_eq!(values(&got), [2.0, 4.0]);
    // What has values already is returned as it is.
    let (a, b) = session.run(&(floats(&[9.0]), sum), feeds).unwrap();
    assert_eq!((values(&a), values(&b)), (vec![9.0], vec![4.0, 6.0]));
}

#[test]
fn what_is_a_recipe_is_fetched_without_bytes() {
    let _context = own_context();
    let before = in_use();
    let graph = Graph::new();
    let (large, read) = graph
        .build(|| {
            let large = tonnage::constant(1.0f32, [1000, 1000, 1000])?;
            let v = Variable::new("v", zeros([1000, 1000, 1000])?)?;
            Ok((large, (v.read()? + 2.0)?))
        })
        .unwrap();
    let session = Session::new(&graph);
    session.initialize().unwrap();
    let (large, read) = session.run(&(large, read), []).unwrap();
    assert!(large.is_recipe() && read.is_recipe());
    assert_eq!(in_use(), before);
    assert_eq!(
        values(&read.slice(&[(..1).into(), (..1).into(), (..2).into()]).unwrap()),
        [2.0, 2.0]
    );
}

#[test]
fn one_graph_serves_every_batch() {
    let _context = own_context();
    let graph = Graph::new();
    let batch = Dim::open("batch");
    let x = graph.placeholder("x", DType::F32, [batch, 2.into()]).unwrap();
    let y = graph.placeholder("y", DType::F32, [Dim::open("batch")]).unwrap();
    let (loss, step) = graph
        .build(|| {
            let w = Variable::new("w", zeros([2, 1])?)?;
            let mut tape = GradientTape::new();
            let error = (x.matmul(&w.read()?)?.reshape([y.dim(0)?])? - &y)?;
            let loss = error.square()?.mean_all()?;
            let grad = tape.gradient(&loss, &[&w])?[0].tensor()?;
            w.assign_sub(&(grad * 0.3)?)?;
            Ok((loss, w.read()?))
        })
        .unwrap();
    let session = Session::new(&graph);
    session.initialize().unwrap();
    let feeds = |n: usize| {
        let rows: Vec<[f32; 2]> = (0..n).map(|i| [i as f32 * 0.1, 1.0]).collect();
        let y: Vec<f32> = rows.iter().map(|r| 2.0 * r[0] - r[1]).collect();
        [("x", tensor(rows).unwrap()), ("y", tensor(y).unwrap())]
    };
    let first = session.run(&loss, feeds(8)).unwrap().scalar::<f32>().unwrap();
    for n in (2..40).cycle().take(400) {
        session.run_with(&(), &[&step], feeds(n)).unwrap();
    }
    let made = run_checked(&session, &loss, &[&step], &feeds(16));
    let last = made.scalar::<f32>().unwrap();
    assert!(last < first * 1e-3, "{first} to {last}");
    let error = session.run(&loss, [feeds(3)[0].clone(), feeds(4)[1].clone()]).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("placeholder `y` is f32[batch], but was fed f32[4] with batch = 3 from `x`"),
        "{text}"
    );
    // A size that nothing else of the fetch needs still comes from its placeholder.
    let zeros = graph.build(|| zeros([x.dim(0)?])).unwrap();
    assert_eq!(session.run(&zeros, [feeds(5)[0].clone()]).unwrap().shape().to_string(), "[5]");
    let error = session.run(&zeros, []).unwrap_err().to_string();
    assert!(error.contains("placeholder `x`"), "{error}");
}

#[test]
fn mistakes_name_the_placeholder_or_the_variable() {
    let _context = own_context();
    let graph = Graph::new();
    let line = line!() + 1;
    let x = graph.placeholder("x", DType::F32, [2]).unwrap();
    let (y, z) = graph
        .build(|| {
            let v = Variable::new("weights", ones([2])?)?;
            let w = Variable::deferred("later", tonnage::TensorType::new(DType::F32, [2]));
            Ok(((&x * v.read()?)?, (&x + w.read()?)?))
        })
        .unwrap();
    let session = Session::new(&graph);
    let feed = || [("x", floats(&[1.0, 2.0]))];
    let made = format!("made at {}:{line}", file!());
    refused!(
        session.run(&y, []),
        ErrorKind::BadArgument { .. },
        "placeholder `x`",
        "is not fed",
        made.as_str()
    );
    refused!(session.run(&y, feed()), ErrorKind::Uninitialized { .. }, "`weights`", "initialize");
    refused!(session.plan(&y, &[], feed()), ErrorKind::Uninitialized { .. }, "`weights`");
    session.initialize().unwrap();
    assert_eq!(values(&session.run(&y, feed()).unwrap()), [1.0, 2.0]);
    refused!(session.run(&z, feed()), ErrorKind::Uninitialized { .. }, "`later`");
    session.variable(&graph.variables()[1]).unwrap().assign(&ones([2]).unwrap()).unwrap();
    assert_eq!(values(&session.run(&z, feed()).unwrap()), [2.0, 3.0]);
    let name = [("y", floats(&[1.0, 2.0]))];
    refused!(
        session.run(&y, name.clone()),
        ErrorKind::BadArgument { .. },
        "no placeholder `y`",
        "the graph has `x`"
    );
    refused!(
        session.run(&y, [("x", floats(&[1.0]))]),
        ErrorKind::BadArgument { .. },
        "placeholder `x` is f32[2], but was fed f32[1]"
    );
    refused!(
        session.run(&y, [("x", tensor([1i32, 2]).unwrap())]),
        ErrorKind::BadArgument { .. },
        "placeholder `x` is f32[2], but was fed i32[2]"
    );
    let twice = [("x", floats(&[1.0, 2.0])), ("x", floats(&[1.0, 2.0]))];
    refused!(session.run(&y, twice.clone()), ErrorKind::BadArgument { .. }, "`x` is fed twice");
    let spec = [("x", Tensor::spec(DType::F32, [2]))];
    refused!(session.run(&y, spec.clone()), ErrorKind::BadArgument { .. }, "without values");
    refused!(
        graph.placeholder("x", DType::F32, [3]),
        ErrorKind::NameTaken { .. },
        "`x`",
        made.as_str()
    );
    let again = || graph.build(|| Variable::new("weights", ones([2])?));
    assert!(matches!(again().unwrap_err().kind(), ErrorKind::NameTaken { .. }));
    assert_eq!(graph.variables().len(), 2);
    // Values of a graph mean nothing outside of it.
    refused!(&y + 1.0, ErrorKind::Escaped { .. }, "add");
    let other = Graph::new();
    refused!(Session::new(&other).run(&y, feed()), ErrorKind::Escaped { .. }, "session");
    refused!(
        graph.variables()[0].read(),
        ErrorKind::BadArgument { .. },
        "`weights`",
        "lives in sessions"
    );
    // It is still what it was.
    assert_eq!(values(&session.run(&y, feed()).unwrap()), [1.0, 2.0]);
}

#[test]
fn sessions_hold_values_of_their_own_and_free_them() {
    let _context = own_context();
    let start = in_use();
    let graphs = || memory::info("cpu:0").unwrap().graphs;
    let before = graphs();
    let graph = Graph::new();
    let x = graph.placeholder("x", DType::F32, [256, 256]).unwrap();
    let (total, v) = graph
        .build(|| {
            let v = Variable::new("v", zeros([256, 256])?)?;
            v.assign_add(&x)?;
            Ok((v.read()?.sum_all()?, v))
        })
        .unwrap();
    let (one, two) = (Session::new(&graph), Session::new(&graph));
    one.initialize().unwrap();
    two.initialize().unwrap();
    let feed = || [("x", ones([256, 256]).unwrap())];
    let size = Bytes::new(256 * 256 * 4);
    for n in 1..4 {
        let sum = one.run(&total, feed()).unwrap().scalar::<f32>().unwrap();
        assert_eq!(sum, n as f32 * 65536.0);
    }
    assert_eq!(in_use(), start + size, "the other's is a recipe still");
    let sum = two.run(&total, feed()).unwrap().scalar::<f32>().unwrap();
    assert_eq!(sum, 65536.0);
    assert_eq!(in_use(), start + size + size);
    let held = graph.graph_bytes() + one.graph_bytes() + two.graph_bytes();
    assert_eq!(graphs(), before + held);
    assert!(one.graph_bytes() > Bytes::ZERO && graph.graph_bytes() > Bytes::ZERO);
    let own = one.variable(&v).unwrap();
    one.close().unwrap();
    one.close().unwrap();
    assert_eq!(in_use(), start + size);
    refused!(one.run(&total, feed()), ErrorKind::Closed { .. }, "session", "make another one");
    refused!(one.plan(&total, &[], feed()), ErrorKind::Closed { .. }, "session");
    refused!(one.initialize(), ErrorKind::Closed { .. }, "session");
    refused!(own.read(), ErrorKind::Closed { .. }, "`v`");
    assert_eq!(two.run(&total, feed()).unwrap().scalar::<f32>().unwrap(), 2.0 * 65536.0);
    drop(two);
    assert_eq!((in_use(), graphs()), (start, before + graph.graph_bytes()), "dropping closes too");
    // The graph can be run again.
    let three = Session::new(&graph);
    three.initialize().unwrap();
    assert_eq!(three.run(&total, feed()).unwrap().scalar::<f32>().unwrap(), 65536.0);
    drop((one, three, graph, x, total, v));
    assert_eq!(graphs(), before);
}

const fn goes_anywhere<T: Send + Sync>() {}

const _: () = {
    goes_anywhere::<Graph>();
    goes_anywhere::<Session>();
};

#[test]
fn variables_are_scoped_shared_and_initialized_from_one_another() {
    let _context = own_context();
    let graph = Graph::new();
    let all = graph
        .build(|| {
            let make = || get_variable("var", Reuse::Auto, || random_normal([100], DType::F32));
            let (a, b) = (name_scope("one", make)?, name_scope("two", make)?);
            let again = name_scope("one", make)?;
            let sum = Variable::new("sum", (a.read()? + b.read()?)?)?;
            Ok((a.read()?, b.read()?, again.read()?, sum.read()?))
        })
        .unwrap();
    let names: Vec<String> = graph.variables().iter().map(|v| v.name().to_string()).collect();
    assert_eq!(names, ["one/var", "two/var", "sum"]);
    let session = Session::new(&graph);
    session.initialize().unwrap();
    let (a, b, again, sum) = session.run(&all, []).unwrap();
    assert_eq!(values(&a), values(&again));
    assert_ne!(values(&a), values(&b));
    let expected: Vec<f32> = values(&a).iter().zip(values(&b)).map(|(x, y)| x + y).collect();
    assert_eq!(values(&sum), expected);
    // The same names in another graph are other variables.
    let other = Graph::new();
    other.build(|| get_variable("sum", Reuse::Never, || zeros([1]))).unwrap();
}

#[test]
fn functions_branches_and_outside_variables_are_part_of_a_graph() {
    let _context = own_context();
    let outside = Variable::new("outside", floats(&[10.0])).unwrap();
    let inner = function(|x: Tensor| x * Variable::new("inner", constant_two()?)?.read()?);
    fn constant_two() -> tonnage::Result<Tensor> {
        tonnage::constant(2.0f32, ())
    }
    let graph = Graph::new();
    let x = graph.placeholder("x", DType::F32, [1]).unwrap();
    let y = graph
        .build(|| {
            let positive = zeros([1])?.less(&x)?.reshape(tonnage::Shape::scalar())?;
            let y = cond(&positive, || inner.call(x.clone()), || -&x)?;
            y + outside.read()?
        })
        .unwrap();
    let session = Session::new(&graph);
    session.initialize().unwrap();
    let run = |by: f32| values(&session.run(&y, [("x", floats(&[by]))]).unwrap());
    assert_eq!((run(3.0), run(-3.0)), (vec![16.0], vec![13.0]));
    outside.assign(&zeros([1]).unwrap()).unwrap();
    assert_eq!(run(3.0), [6.0]);
    session.close().unwrap();
    assert_eq!(values(&outside.read().unwrap()), [0.0], "it is not the session's to free");
    let text = graph.to_string();
    assert!(text.contains("`x`") && text.contains("cond"), "{text}");
}

#[test]
fn a_build_that_fails_leaves_the_graph_usable() {
    let _context = own_context();
    let graph = Graph::new();
    let x = graph.placeholder("x", DType::F32, [2]).unwrap();
    let failed = graph.build(|| {
        let v = Variable::new("v", zeros([3])?)?;
        &x + v.read()?
    });
    assert!(matches!(failed.unwrap_err().kind(), ErrorKind::ShapeMismatch { .. }));
    assert!(graph.variables().is_empty());
    let y = graph.build(|| &x + Variable::new("v", ones([2])?)?.read()?).unwrap();
    let session = Session::new(&graph);
    session.initialize().unwrap();
    let feed = [("x", floats(&[1.0, 2.0]))];
    assert_eq!(values(&session.run(&y, feed).unwrap()), [2.0, 3.0]);
    let inside = function({
        let graph = graph.clone();
        move |x: Tensor| graph.build(|| x + 1.0)
    });
    let error = inside.call(floats(&[1.0])).unwrap_err().to_string();
    assert!(error.contains("built inside of another trace"), "{error}");
}

#[test]
fn a_graph_made_inside_of_a_function_uses_its_values_and_is_not_run() {
    let _context = own_context();
    let f = function(|x: Tensor| {
        let graph = Graph::new();
        let outside = tonnage::bind::Outside::begin();
        let y = graph.build(|| x.matmul(&ones([3, 5])?))?;
        assert_eq!(y.shape().sizes().unwrap().as_slice(), [2, 5]);
        let session = Session::new(&graph);
        refused!(session.run(&y, []), ErrorKind::Escaped { .. }, "session: ");
        // Another one, inside of that: its values too.
        let inner = graph.build(|| Ok(Graph::new()))?;
        let z = inner.build(|| (&y).exp()? + (x.sum_all()?))?;
        assert_eq!(z.shape().sizes().unwrap().as_slice(), [2, 5]);
        drop(outside);
        x + 1.0
    });
    f.call(zeros([2, 3]).unwrap()).unwrap();
    // One that was made elsewhere does not know them.
    let elsewhere = Graph::new();
    let g = function(move |x: Tensor| {
        let outside = tonnage::bind::Outside::begin();
        refused!(elsewhere.build(|| (&x).exp()), ErrorKind::Escaped { .. }, "exp: ");
        drop(outside);
        Ok(x)
    });
    g.call(zeros([2, 3]).unwrap()).unwrap();
}
