//! Functions: nested arguments and results, variables that are made while tracing, caches, notices, the
//! eager switch, and what is captured.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use tonnage::{
    Bytes, DType, Elementwise, GradientTape, Kind, Result, Reuse, Static, Tensor, Variable,
    constant, forget_variables, function, get_variable, memory, notices, ones, random_normal,
    run_functions_eagerly, tensor, tree, while_loop, zeros,
};

use crate::common::{call_checked, in_use, own_context};

fn floats(values: &[f32]) -> Tensor {
    tensor(values.to_vec()).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().unwrap()
}

struct Layer {
    weight: Tensor,
    bias: Option<Tensor>,
    scale: f64,
}
tree!(Layer { weight, bias, scale });

struct NestedModel<T> {
    layers: Vec<T>,
    head: T,
    name: &'static str,
}
tree!(NestedModel<T> { layers, head, name });

fn layer(by: f32, bias: bool) -> Layer {
    let bias = bias.then(|| floats(&[by, -by]));
    Layer { weight: tensor([[by, 0.0], [0.0, 1.0]]).unwrap(), bias, scale: 2.0 }
}

impl<T> NestedModel<T> {
    fn of(layers: Vec<T>, head: T) -> NestedModel<T> {
        NestedModel { layers, head, name: "net" }
    }
}

#[test]
fn arguments_and_results_are_nested_as_they_come() {
    let _context = own_context();
    let apply = |layer: &Layer, x: Tensor| -> Result<Tensor> {
        let y = (x.matmul(&layer.weight)? * layer.scale)?;
        match &layer.bias {
            Some(bias) => y + bias,
            None => Ok(y),
        }
    };
    type Results = ([Tensor; 2], HashMap<String, Tensor>, BTreeMap<u8, Vec<Tensor>>, &'static str);
    let run = move |(x, model): (Tensor, NestedModel<Layer>)| -> Result<Results> {
        let mut steps = Vec::new();
        let mut y = x;
        for layer in &model.layers {
            y = apply(layer, y)?;
            steps.push(y.clone());
        }
        let last = apply(&model.head, y)?;
        let sums = [last.sum_all()?, last.max(-1)?];
        let named = [("last", last.clone()), ("first", steps[0].clone())];
        let named = named.into_iter().map(|(k, v)| (k.to_string(), v)).collect();
        Ok((sums, named, BTreeMap::from([(2, steps), (1, vec![last])]), model.name))
    };
    let f = function(run);
    let model = |bias| NestedModel::of(vec![layer(2.0, bias), layer(3.0, true)], layer(1.0, false));
    let x = tensor([[1.0f32, 2.0], [3.0, 4.0]]).unwrap();
    for bias in [true, false] {
        let eager = run((x.clone(), model(bias))).unwrap();
        let (sums, named, steps, name) = call_checked(&f, &(x.clone(), model(bias)));
        assert_eq!(
            (values(&sums[0]), values(&sums[1])),
            (values(&eager.0[0]), values(&eager.0[1]))
        );
        for key in ["last", "first"] {
            assert_eq!(values(&named[key]), values(&eager.1[key]));
        }
        assert_eq!((steps[&1].len(), steps[&2].len(), name), (1, 2, "net"));
        assert_eq!(values(&steps[&2][1]), values(&eager.2[&2][1]));
    }
    assert_eq!(f.traces(), 2, "a bias that is not there is another nesting");
    f.call((x.clone(), model(true))).unwrap();
    assert_eq!(f.traces(), 2);
}

#[test]
fn a_map_is_in_the_order_of_its_keys_whatever_its_hasher() {
    let _context = own_context();
    let f = function(|map: HashMap<String, Tensor>| {
        let mut keys: Vec<&String> = map.keys().collect();
        keys.sort();
        keys.iter().try_fold(zeros([1])?, |sum, key| (sum * 10.0)? + &map[*key])
    });
    for iteration in 0..20 {
        // Every map has a hasher of its own, and other places for its keys.
        let map: HashMap<String, Tensor> =
            (0..8).map(|i| (format!("key{i}"), floats(&[(i + iteration) as f32]))).collect();
        let expected = (0..8).fold(0.0, |sum, i| sum * 10.0 + (i + iteration) as f32);
        assert_eq!(values(&f.call(map).unwrap()), [expected]);
    }
    assert_eq!(f.traces(), 1);
}

#[test]
fn plain_values_are_part_of_the_signature() {
    let _context = own_context();
    #[derive(Debug, Clone)]
    enum StaticChoice {
        Twice,
        Squared,
    }
    let f = function(|(x, k, on, text, how): (Tensor, f64, bool, String, Static<StaticChoice>)| {
        let x = (x * k)?;
        let x = if on { (x + text.len() as f64)? } else { x };
        match how.0 {
            StaticChoice::Twice => x * 2.0,
            StaticChoice::Squared => x.square(),
        }
    });
    let call = |k, on, text: &str, how| {
        values(&f.call((floats(&[3.0]), k, on, text.to_string(), Static(how))).unwrap())
    };
    assert_eq!(call(1.0, true, "ab", StaticChoice::Twice), [10.0]);
    assert_eq!(call(1.0, true, "ab", StaticChoice::Squared), [25.0]);
    assert_eq!(call(1.0, false, "ab", StaticChoice::Twice), [6.0]);
    assert_eq!(call(1.0, true, "abc", StaticChoice::Twice), [12.0]);
    assert_eq!(call(0.0, true, "ab", StaticChoice::Twice), [4.0]);
    assert_eq!(call(-0.0, true, "ab", StaticChoice::Twice), [4.0]);
    assert_eq!(f.traces(), 6);
    assert_eq!(call(1.0, true, "ab", StaticChoice::Twice), [10.0]);
    assert_eq!(f.traces(), 6);
}

#[test]
fn variables_made_while_tracing_belong_to_the_function() {
    let _context = own_context();
    let start = in_use();
    let f = function(|x: Tensor| {
        let mut y = x;
        for _ in 0..3 {
            // Three of one name and line: they are told apart by their order.
            let weight = (random_normal([4, 4], DType::F32)? * 0.1)?;
            let w = Variable::new("w", weight)?;
            let calls = Variable::not_trainable("calls", constant(0i32, ())?)?;
            calls.assign_add(&constant(1i32, ())?)?;
            y = y.matmul(&w.read()?)?;
        }
        Ok(y)
    });
    let x = || ones([2, 4]).unwrap();
    let before = in_use();
    f.plan(&x()).unwrap();
    assert_eq!(in_use(), before, "neither tracing nor planning obtains anything");
    let first = values(&f.call(x()).unwrap());
    assert_eq!(first, values(&f.call(x()).unwrap()), "the same weights");
    let more = values(&f.call(ones([3, 4]).unwrap()).unwrap());
    assert_eq!(more[..8], first, "in another trace too");
    assert_eq!(f.traces(), 2);
    let variables = f.variables();
    assert_eq!(variables.len(), 6);
    let read = |i: usize| variables[i].read().unwrap();
    assert_ne!(values(&read(0)), values(&read(2)), "three different ones");
    assert_eq!(read(1).scalar::<i32>().unwrap(), 3);
    assert!(!variables[1].is_trainable() && variables[0].is_trainable());
    drop((variables, f));
    assert_eq!(in_use(), start, "they are gone with the function");
}

#[test]
fn a_first_value_is_computed_when_it_is_needed() {
    let _context = own_context();
    let table = tensor(vec![vec![0.5f32; 64]; 64]).unwrap();
    let f = function(move |x: Tensor| {
        // Takes a matmul: no recipe, and nothing that tracing may run.
        let w = Variable::new("w", table.matmul(&table)?)?;
        let v = Variable::new("v", (w.read()? + 1.0)?)?;
        (x.matmul(&w.read()?)? + v.read()?)?.sum_all()
    });
    let x = ones([1, 64]).unwrap();
    let before = in_use();
    f.plan(&x).unwrap();
    assert_eq!(in_use(), before);
    let expected = 64.0 * 64.0 * (64.0 * 16.0 + 17.0);
    assert_eq!(values(&f.call(x.clone()).unwrap()), [expected]);
    assert!(in_use() > before);
    f.variables()[0].assign(&zeros([64, 64]).unwrap()).unwrap();
    assert_eq!(values(&f.call(x).unwrap()), [64.0 * 64.0 * 17.0], "and never again");
}

#[test]
fn variables_are_found_again_in_loops_branches_and_inner_functions() {
    let _context = own_context();
    let inner = function(|x: Tensor| {
        let v = Variable::new("inner", constant(2.0f32, ())?)?;
        x * v.read()?
    });
    let inner = Arc::new(inner);
    let used = inner.clone();
    let f = function(move |x: Tensor| {
        let start = (constant(0i32, ())?, x);
        let body = |(i, x): (Tensor, Tensor)| {
            let step = Variable::new("step", (constant(1.0f32, ())? + 0.5)?)?;
            Ok(((i + 1)?, (x + step.read()?)?))
        };
        let (_, x) = while_loop(start, |(i, _)| i.less(4), body)?;
        used.call(x)
    });
    assert_eq!(values(&f.call(floats(&[1.0])).unwrap()), [14.0]);
    assert_eq!(values(&f.call(floats(&[1.0, 2.0])).unwrap()), [14.0, 16.0]);
    let names = |variables: Vec<Variable>| -> Vec<String> {
        variables.iter().map(|v| v.name().to_string()).collect()
    };
    assert_eq!(
        (names(f.variables()), names(inner.variables())),
        (vec!["step".into()], vec!["inner".into()])
    );
    inner.variables()[0].assign(&constant(1.0f32, ()).unwrap()).unwrap();
    assert_eq!(
        values(&inner.call(floats(&[5.0])).unwrap()),
        [5.0],
        "one variable, wherever it is called"
    );
}

#[test]
fn get_variable_finds_the_functions_own_again() {
    let _context = own_context();
    let f = function(|x: Tensor| {
        let w = get_variable("only", Reuse::Never, || ones([1]))?;
        w.assign_add(&ones([1])?)?;
        x * w.read()?
    });
    assert_eq!(values(&f.call(floats(&[1.0])).unwrap()), [2.0]);
    assert_eq!(values(&f.call(floats(&[1.0, 1.0])).unwrap()), [3.0, 3.0]);
    forget_variables();
}

#[test]
fn a_variable_that_changes_its_shape_or_never_ends_is_named() {
    let _context = own_context();
    let line = line!() + 2;
    let f = function(|(x, n): (Tensor, usize)| {
        let v = Variable::new("v", zeros([n])?)?;
        x + v.read()?.sum_all()?
    });
    f.call((floats(&[1.0]), 3)).unwrap();
    let error = f.call((floats(&[1.0]), 4)).unwrap_err();
    let text = error.to_string();
    for part in ["`v` was f32[3] in an earlier trace and is f32[4] now", "outside"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert_eq!(error.source_line().unwrap().line(), line);
    assert_eq!(values(&f.call((floats(&[2.0]), 3)).unwrap()), [2.0], "still usable");

    let endless = function(|n: usize| {
        let v = Variable::new(&format!("v{n}"), zeros([1])?)?;
        v.read()
    });
    let failed = (0..100).find_map(|n| endless.call(n).err().map(|e| (n, e))).unwrap();
    assert!(failed.0 >= 16, "a few are fine: {}", failed.0);
    let text = failed.1.to_string();
    assert!(text.contains("is new again") && text.contains("same name"), "{text}");
    assert!(text.contains(concat!("(at ", file!())), "{text}");
    endless.call(0).unwrap();
    // More of them in one trace, or in a few, are no mistake.
    let many = function(|n: usize| {
        (0..n).try_fold(zeros([1])?, |sum, _| sum + Variable::new("w", ones([1])?)?.read()?)
    });
    for n in [100, 150, 2] {
        assert_eq!(values(&many.call(n).unwrap()), [n as f32]);
    }
    assert_eq!(many.variables().len(), 150);
}

#[test]
fn a_first_value_that_depends_on_arguments_or_effects_is_refused() {
    let _context = own_context();
    let f = function(|x: Tensor| Variable::new("v", (&x * 2.0)?)?.read());
    let error = f.call(floats(&[1.0])).unwrap_err();
    assert!(error.to_string().contains("depends on an argument"), "{error}");
    assert!(f.variables().is_empty());
    let counter = Variable::new("counter", zeros([1]).unwrap()).unwrap();
    let c = counter.clone();
    let g = function(move |(): ()| {
        c.assign_add(&ones([1])?)?;
        Variable::new("v", c.read()?)?.read()
    });
    let error = g.call(()).unwrap_err();
    assert!(error.to_string().contains("depends on `assign_add`"), "{error}");
    let spec = Tensor::spec(DType::F32, [tonnage::Dim::open("n")]);
    let h = function(|x: Tensor| Variable::new("v", zeros([x.dim(0)?])?)?.read()).signature(spec);
    let error = h.call(floats(&[1.0])).unwrap_err();
    assert!(error.to_string().contains("f32[n], whose size is open"), "{error}");
}

#[test]
fn a_trace_that_fails_leaves_no_variables_behind() {
    let _context = own_context();
    let f = function(|x: Tensor| {
        let n = x.dim(0)?.known().unwrap_or(0);
        let w = get_variable("w", Reuse::Never, || ones([n]))?;
        let v = Variable::new("v", ones([n])?)?;
        (x.matmul(&w.read()?.reshape([3, 1])?)? + v.read()?.sum_all()?)?.sum_all()
    });
    let before = in_use();
    assert!(f.call(ones([2, 3]).unwrap()).is_err(), "w cannot be reshaped");
    assert!(f.variables().is_empty());
    assert_eq!(in_use(), before);
    assert_eq!(values(&f.call(ones([3, 3]).unwrap()).unwrap()), [18.0]);
    forget_variables();
}

#[test]
fn a_constant_is_held_once_however_many_functions_capture_it() {
    let _context = own_context();
    let start = in_use();
    let size = Bytes::mib(64);
    let count = size.as_usize() / 4;
    let large =
        zeros([count]).unwrap().scatter_add(&tensor([0i64]).unwrap(), &floats(&[1.0])).unwrap();
    assert_eq!(in_use(), start + size);
    let (a, b) = (large.clone(), large.clone());
    let f = function(move |x: Tensor| (x * &a)?.sum_all());
    let g = function(move |x: Tensor| (x + b.max(-1)?)?.sum_all());
    for _ in 0..2 {
        assert_eq!(values(&f.call(floats(&[2.0])).unwrap()), [2.0]);
        assert_eq!(values(&g.call(floats(&[2.0])).unwrap()), [3.0]);
        f.call(floats(&[3.0]).reshape([1, 1]).unwrap()).unwrap();
    }
    assert_eq!(in_use(), start + size, "two functions, three traces, one constant");
    let held = f.concrete(&floats(&[1.0])).unwrap();
    assert_eq!(held.captured_bytes(), size);
    drop((large, held, f));
    assert_eq!(in_use(), start + size, "the other holds it");
    drop(g);
    assert_eq!(in_use(), start);
}

#[test]
fn retracing_is_told_once_with_what_changed() {
    let _context = own_context();
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let to = heard.clone();
    notices::listen(move |notice| to.lock().unwrap().push(notice.to_string()));
    let line = line!() + 1;
    let f = function(|(x, k): (Vec<Tensor>, i64)| &x[1] * k);
    for n in 1..30 {
        f.call((vec![floats(&[1.0]), zeros([2, n]).unwrap()], 3)).unwrap();
    }
    let g = function(|(x, k): (Tensor, i64)| x * k);
    for k in 0..30 {
        g.call((floats(&[1.0]), k)).unwrap();
    }
    // A few traces that are used again and again are no news.
    let h = function(|x: Tensor| x + 1.0);
    for n in (1..10).flat_map(|n| [n; 8]) {
        h.call(zeros([n]).unwrap()).unwrap();
    }
    notices::stop_listening();
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), 2, "{heard:?}");
    for part in
        [format!("{}:{line}", file!()), "argument `.0[1]` went from f32[2, 7] to f32[2, 8]".into()]
    {
        assert!(heard[0].contains(&part), "{part} is not in {}", heard[0]);
    }
    assert!(heard[1].contains("went from (tensor,6i64,) to (tensor,7i64,)"), "{}", heard[1]);
}

#[test]
fn functions_run_eagerly_where_they_are_told_to() {
    let _context = own_context();
    let seen: Arc<Mutex<Vec<bool>>> = Arc::default();
    let to = seen.clone();
    let f = function(move |x: Tensor| {
        to.lock().unwrap().push(x.is_symbolic());
        let v = Variable::new("v", zeros([1])?)?;
        v.assign_add(&x)?;
        v.read()
    });
    let call = || values(&f.call(floats(&[1.0])).unwrap());
    run_functions_eagerly(true);
    assert_eq!((call(), call()), (vec![1.0], vec![2.0]), "the variable is found again");
    assert_eq!(f.traces(), 0);
    f.run_eagerly(false);
    assert_eq!((call(), call()), (vec![3.0], vec![4.0]));
    run_functions_eagerly(false);
    f.run_eagerly(true);
    assert_eq!(call(), [5.0]);
    f.run_eagerly(None);
    assert_eq!(call(), [6.0]);
    assert_eq!(*seen.lock().unwrap(), [false, false, true, false]);
    assert!(f.call_measured(floats(&[1.0])).unwrap().1.is_some());
}

#[test]
fn a_tape_around_a_call_sees_into_it() {
    let _context = own_context();
    let w = Variable::new("w", floats(&[3.0, 4.0])).unwrap();
    let v = w.clone();
    let f = function(move |x: Tensor| (x.square()? * v.read()?)?.sum_all());
    let x = floats(&[1.0, 2.0]);
    f.call(x.clone()).unwrap();
    let mut tape = GradientTape::new();
    tape.watch(&x);
    let y = f.call(x.clone()).unwrap();
    let (dx, dw) = tape.gradient(&y, (&x, &w)).unwrap();
    assert_eq!(values(&dx.tensor().unwrap()), [6.0, 16.0]);
    assert_eq!(values(&dw.tensor().unwrap()), [1.0, 4.0]);
    drop(tape);
    // A tape that watches nothing of it leaves it planned.
    let _tape = GradientTape::new().watch_accessed_variables(false);
    assert!(f.call_measured(x).unwrap().1.is_some());
}

#[test]
fn graphs_are_in_the_ledger_until_the_function_is_dropped() {
    let _context = own_context();
    let graphs = || {
        let info = memory::info("cpu:0").unwrap();
        let kind = info.by_kind.iter().find(|(kind, _)| *kind == Kind::Graph);
        assert_eq!(kind.map_or(Bytes::ZERO, |(_, bytes)| *bytes), info.graphs);
        info.graphs
    };
    let before = graphs();
    let line = line!() + 1;
    let f = function(|x: Tensor| x.tanh()? + 1.0);
    let held = in_use();
    f.plan(&zeros([8, 8]).unwrap()).unwrap();
    assert_eq!(in_use(), held, "graphs are no tensors");
    let one = graphs() - before;
    assert_eq!(one, f.graph_bytes());
    assert!(one > Bytes::new(500), "{one}");
    f.plan(&zeros([9, 8]).unwrap()).unwrap();
    assert!(graphs() - before > one);
    let holders = memory::info("cpu:0").unwrap().holders;
    let holder =
        holders.iter().find(|h| h.owner.kind == Kind::Graph && h.owner.source.line() == line);
    assert_eq!(holder.unwrap().bytes, f.graph_bytes());
    drop(f);
    assert_eq!(graphs(), before);
}

#[test]
fn another_random_batch_or_another_number_is_no_other_plan() {
    let _context = own_context();
    let step = |(x, rate): (Tensor, Tensor)| -> Result<(Tensor, Tensor)> {
        let rows = (x.tanh()? * &rate)?;
        Ok((rows.sum([0])?, rows))
    };
    let f = function(step);
    let bits = |t: &Tensor| -> Vec<u32> { values(t).into_iter().map(f32::to_bits).collect() };
    let mut bytes = None;
    let rates = [0.1f32, 0.05, 0.0, -0.0, f32::INFINITY, 1e-40];
    for (i, rate) in rates.into_iter().enumerate() {
        let x = (random_normal([40, 3], DType::F32).unwrap() * 2.0).unwrap();
        let arguments = (x, constant(rate, ()).unwrap());
        let (sum, rows) = step((arguments.0.clone(), arguments.1.clone())).unwrap();
        let got = call_checked(&f, &arguments);
        assert_eq!((bits(&got.0), bits(&got.1)), (bits(&sum), bits(&rows)), "{rate}");
        assert!(got.1.is_recipe(), "a recipe of the arguments' recipes");
        // The sign of -0 is worth a plan of its own.
        if i != 3 && i != 4 {
            assert_eq!(*bytes.get_or_insert(f.graph_bytes()), f.graph_bytes(), "{rate}");
        } else {
            bytes = Some(f.graph_bytes());
        }
    }
    for value in [1.0f32, 0.333_251_95, 65504.0, 1e-8] {
        let half = constant(value, [1]).unwrap().cast(DType::F16).unwrap();
        let g = function(|x: Tensor| x.cast(DType::F32)? + 0.0);
        assert_eq!(bits(&g.call(half.clone()).unwrap()), bits(&half.cast(DType::F32).unwrap()));
    }
}
