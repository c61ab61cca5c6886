//! Layers: against PyTorch's, in eager mode and in functions; their parameters; in memory; and refused.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

mod names;

use tonnage::nn::{
    Activation, BatchNorm, Bidirectional, Convolution, Dense, Embedding, Flatten, Frozen,
    GlobalPool, GroupNorm, Initializer, Layer, LayerNorm, MaxPool, Mode, MultiHeadAttention,
    Parameters, Recurrent, Reshape, RmsNorm, Sequential,
};
use tonnage::optim::Optimizer;
use tonnage::{
    Conv, DType, Dim, GradientTape, Pool, Result, Shape, Tensor, function, memory, ones,
    parameters, random_normal, set_seed, tensor, zeros,
};

use crate::common::{call_checked, in_use, own_context};

/// What PyTorch gives; cases.py makes it.
const CASES: &str = include_str!("cases.txt");

/// The numbers of cases.py.
fn fill(shape: &Shape, seed: usize) -> Tensor {
    let count = shape.elements().known().unwrap();
    let at = |i: usize| ((i * 37 + seed * 101 + 11) % 97) as f64 / 97.0 - 0.5;
    let values: Vec<f64> = (0..count).map(at).collect();
    tensor(values).unwrap().reshape(shape.clone()).unwrap()
}

struct LayerCase {
    layer: Box<dyn Layer>,
    input: Tensor,
    /// What each parameter is filled with, in order.
    seeds: Vec<usize>,
}

fn case(name: &str) -> Option<LayerCase> {
    let x = || fill(&[2, 5, 3].into(), 1);
    let image = || fill(&[2, 6, 5, 4].into(), 2);
    let made = |layer: Box<dyn Layer>, input, seeds: &[usize]| {
        Some(LayerCase { layer, input, seeds: seeds.to_vec() })
    };
    let strided = || Conv::valid().stride(2);
    match name {
        "dense" => made(Box::new(Dense::new(4)), x(), &[3, 4]),
        "conv" => made(Box::new(Convolution::new(6, &[3, 2], strided())), image(), &[3, 4]),
        "groups" => {
            let layer = Convolution::new(6, &[3, 2], Conv::valid().groups(2));
            made(Box::new(layer), image(), &[3, 4])
        }
        "transposed" => {
            made(Box::new(Convolution::transposed(3, &[2, 2], strided())), image(), &[3, 4])
        }
        "batch_norm" => made(Box::new(BatchNorm::new()), image(), &[3, 4]),
        "layer_norm" => made(Box::new(LayerNorm::new()), x(), &[3, 4]),
        "group_norm" => made(Box::new(GroupNorm::new(2)), image(), &[3, 4]),
        "simple" => made(Box::new(Recurrent::simple(4).sequences()), x(), &[3, 4, 5]),
        "gru" => made(Box::new(Recurrent::gru(4).sequences()), x(), &[3, 4, 5, 6]),
        "lstm" => made(Box::new(Recurrent::lstm(4).sequences()), x(), &[3, 4, 5]),
        "both" => {
            let half = || Recurrent::gru(4).sequences();
            let seeds = [3, 4, 5, 6, 13, 14, 15, 16];
            made(Box::new(Bidirectional::new(half(), half())), x(), &seeds)
        }
        "attention" => {
            let layer = MultiHeadAttention::new(2).causal();
            made(Box::new(layer), fill(&[2, 5, 6].into(), 1), &[3, 4, 5, 6, 7, 8, 9, 10])
        }
        _ => None,
    }
}

/// The output, and the gradient of its weighed sum.
fn both(layer: &dyn Layer, x: &Tensor) -> Result<(Tensor, Tensor)> {
    let mut tape = GradientTape::new();
    tape.watch(x);
    let y = layer.forward(x, Mode::Training)?;
    let sum = y.mul(fill(&y.shape(), 99))?.sum_all()?;
    let gradient = tape.gradient(&sum, x)?.tensor()?;
    Ok((y, gradient))
}

#[test]
fn layers_give_what_pytorch_gives_eager_and_planned() {
    let _context = own_context();
    for line in CASES.lines() {
        let mut words = line.split(' ');
        let name = words.next().unwrap();
        let expected: Vec<f64> = words.map(|word| word.parse().unwrap()).collect();
        let LayerCase { layer, input, seeds } = case(name).unwrap();
        layer.forward(&input, Mode::Inference).unwrap();
        for (parameter, seed) in layer.parameters().iter().zip(seeds) {
            let shape = parameter.variable.ty().shape;
            parameter.variable.assign(&fill(&shape, seed)).unwrap();
        }
        let planned = function(|x: Tensor| both(&*layer, &x));
        for (y, gradient) in [both(&*layer, &input).unwrap(), planned.call(input.clone()).unwrap()]
        {
            let mut got = y.to_vec::<f64>().unwrap();
            got.extend(gradient.to_vec::<f64>().unwrap());
            assert_eq!(got.len(), expected.len(), "{name}");
            for (got, expected) in got.iter().zip(&expected) {
                assert!((got - expected).abs() < 1e-8, "{name}: {got} {expected}");
            }
        }
    }
}

struct Tied {
    table: Embedding,
    inner: Sequential,
}

parameters!(Tied { table, inner });

impl Layer for Tied {
    fn forward(&self, ids: &Tensor, mode: Mode) -> Result<Tensor> {
        let x = self.inner.forward(&self.table.forward(ids, mode)?, mode)?;
        x.matmul(&self.table.table()?.t()?)
    }
}

#[test]
fn parameters_have_paths_and_shared_ones_count_once() {
    let _context = own_context();
    let inner = Sequential::new().then(Dense::new(8)).then(Frozen(RmsNorm::new()));
    let model = Tied { table: Embedding::new(50, 8), inner };
    assert!(model.parameters().is_empty(), "nothing is built before the first input");
    model.forward(&tensor([[1i64, 2]]).unwrap(), Mode::Inference).unwrap();
    let found = model.parameters();
    let paths: Vec<&str> = found.iter().map(|p| p.path.as_str()).collect();
    assert_eq!(paths, ["table.table", "inner.0.kernel", "inner.0.bias", "inner.1.scale"]);
    assert_eq!((model.count(), model.trainable().len()), (50 * 8 + 8 * 8 + 8 + 8, 3));
    let twice = (&model, &model);
    assert_eq!(twice.count(), model.count());
}

#[test]
fn a_model_takes_no_bytes_before_it_is_trained_and_what_it_says_then() {
    let _context = own_context();
    set_seed(2);
    let before = in_use();
    let model = Sequential::new()
        .then(Convolution::new(8, &[3, 3], Conv::same()))
        .then(BatchNorm::new())
        .then(Activation::Relu)
        .then(MaxPool(Pool::of(2)))
        .then(Flatten)
        .then(Dense::new(10));
    let optimizer = Optimizer::adam(0.01);
    let step = function(|(x, labels): (Tensor, Tensor)| {
        let mut tape = GradientTape::new();
        let logits = model.forward(&x, Mode::Training)?;
        let loss = logits.sparse_cross_entropy(&labels)?.mean_all()?;
        let variables = model.trainable();
        let gradients = tape.gradient(&loss, &variables)?;
        optimizer.apply(&variables, &gradients)?;
        Ok(loss)
    });
    let x = random_normal([4, 8, 8, 1], DType::F32).unwrap().to_vec::<f32>().unwrap();
    let x = tensor(x).unwrap().reshape([4, 8, 8, 1]).unwrap();
    let labels = tensor([3i64, 1, 4, 1]).unwrap();
    let args = (x, labels);
    let given = in_use();
    step.plan(&args).unwrap();
    assert_eq!(in_use(), given, "planning takes nothing");
    let first = step.call(args.clone()).unwrap().scalar::<f32>().unwrap();
    let state = optimizer.bytes(&model.trainable()).unwrap();
    let held = model.weight_bytes().unwrap() + state + tonnage::Bytes::new(64);
    assert_eq!(in_use() - given, held, "{:?}", memory::info("cpu:0"));
    let mut last = first;
    for _ in 0..30 {
        last = call_checked(&step, &args).scalar::<f32>().unwrap();
    }
    assert!(last < first / 4.0, "{first} {last}");
    drop((step, args));
    drop((model, optimizer));
    assert_eq!(in_use(), before);
}

#[test]
fn batch_norm_learns_the_means_that_it_uses_later() {
    let _context = own_context();
    let norm = BatchNorm::new().momentum(0.5).epsilon(0.0);
    let x = tensor([[1.0f64, 10.0], [3.0, 30.0]]).unwrap();
    norm.forward(&x, Mode::Training).unwrap();
    let values: Vec<Vec<f64>> = norm.parameters()[2..]
        .iter()
        .map(|p| p.variable.read().unwrap().to_vec().unwrap())
        .collect();
    // Half of what it started as, half of the batch.
    assert_eq!(values, [[1.0, 10.0], [1.0, 50.5]]);
    let y = norm.forward(&x, Mode::Inference).unwrap().to_vec::<f64>().unwrap();
    assert_eq!(y[0], 0.0);
    assert!((y[3] - 20.0 / 50.5f64.sqrt()).abs() < 1e-12);
    assert_eq!(norm.trainable().len(), 2);
}

#[test]
fn one_trace_of_a_model_serves_every_batch() {
    let _context = own_context();
    let model = Sequential::new()
        .then(Recurrent::gru(4).sequences())
        .then(Reshape(vec![3, 2, 2]))
        .then(GlobalPool::Avg)
        .then(Dense::new(3));
    let open = Tensor::spec(DType::F32, [Dim::open("batch"), 3.into(), 5.into()]);
    let f = function(|x: Tensor| model.forward(&x, Mode::Inference)).signature(open);
    for batch in [1, 4, 7] {
        let x = ones([batch, 3, 5]).unwrap();
        let alone = model.forward(&x, Mode::Inference).unwrap().to_vec::<f32>().unwrap();
        assert_eq!(f.call(x).unwrap().to_vec::<f32>().unwrap(), alone);
    }
    assert_eq!(f.traces(), 1);
}

#[test]
fn first_values_have_the_spread_that_they_are_named_for() {
    let _context = own_context();
    set_seed(11);
    let spread = |start: Initializer| {
        let x = start.make(&[3, 3, 40, 60], DType::F64).unwrap();
        (
            x.mean_all().unwrap().scalar::<f64>().unwrap(),
            x.var_all().unwrap().scalar::<f64>().unwrap(),
        )
    };
    let (into, out) = (360.0f64, 540.0);
    for (start, variance) in [
        (Initializer::GlorotUniform, 2.0 / (into + out)),
        (Initializer::GlorotNormal, 2.0 / (into + out)),
        (Initializer::HeUniform, 2.0 / into),
        (Initializer::HeNormal, 2.0 / into),
        (Initializer::LeCunUniform, 1.0 / into),
        (Initializer::LeCunNormal, 1.0 / into),
        (Initializer::Uniform(-1.0, 1.0), 1.0 / 3.0),
        (Initializer::Normal(0.0, 2.0), 4.0),
    ] {
        let (mean, found) = spread(start);
        assert!(mean.abs() < 0.02 * variance.sqrt(), "{start:?} {mean}");
        assert!((found / variance - 1.0).abs() < 0.03, "{start:?} {found} {variance}");
    }
    let (mean, _) = spread(Initializer::TruncatedNormal(5.0, 1.0));
    assert!((mean - 5.0).abs() < 0.02);
}

#[test]
fn inputs_that_do_not_fit_are_refused_and_the_layer_stays_usable() {
    let _context = own_context();
    let dense = Dense::new(4);
    dense.forward(&zeros([2, 3]).unwrap(), Mode::Inference).unwrap();
    let refused = |layer: &dyn Layer, x: Tensor, words: &[&str]| {
        let error = layer.forward(&x, Mode::Inference).unwrap_err().to_string();
        for word in words {
            assert!(error.contains(word), "{word}: {error}");
        }
    };
    refused(&dense, zeros([2, 5]).unwrap(), &["dense/kernel", "[3, 4]", "[5, 4]"]);
    refused(&dense, zeros(()).unwrap(), &["dense", "1 or more"]);
    refused(&Recurrent::gru(2), zeros([2, 3]).unwrap(), &["[batch, time, features]"]);
    refused(&MultiHeadAttention::new(3), zeros([1, 2, 8]).unwrap(), &["8", "3 heads"]);
    refused(&Embedding::new(5, 2), tensor([7i64]).unwrap(), &["7"]);
    refused(&Flatten, zeros(()).unwrap(), &["flatten"]);
    refused(&GlobalPool::Max, zeros([2, 3]).unwrap(), &["channels"]);
    refused(
        &Convolution::new(2, &[1, 1, 1, 1], Conv::valid()),
        zeros([1, 2]).unwrap(),
        &["1 to 3"],
    );
    let open = Tensor::spec(DType::F32, [2.into(), Dim::open("width")]);
    let f = function(|x: Tensor| Dense::new(4).forward(&x, Mode::Inference)).signature(open);
    let error = f.call(zeros([2, 3]).unwrap()).unwrap_err().to_string();
    assert!(error.contains("open"), "{error}");
    assert_eq!(dense.forward(&zeros([2, 3]).unwrap(), Mode::Inference).unwrap().rank(), 2);
}
