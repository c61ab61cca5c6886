//! Training: a step takes what was predicted, goes on to the same bits after a stop, and stops in good order; tensors in files.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::fs;

use tonnage::data::Dataset;
use tonnage::io::{SafeTensors, parse_idx, read_idx, save_safetensors};
use tonnage::nn::{Activation, Apply, Dense, Layer, Mode, Parameters, Sequential};
use tonnage::optim::Optimizer;
use tonnage::train::{
    Checkpoints, Epoch, Fit, Go, Loading, Position, Which, evaluate, load_weights, mean_loss,
    predictor, save_weights,
};
use tonnage::{
    DType, Elementwise, ErrorKind, Part, RandomKey, Tensor, memory, set_seed, tensor, zeros,
};

use crate::common::{Folder, in_use, own_context};

/// Points, and which of four quarters they lie in.
fn points(rows: usize) -> Dataset<(Tensor, Tensor)> {
    let x = RandomKey::new(3).normal([rows, 2], DType::F32).unwrap();
    let positive = x.greater(0.0).unwrap().cast(DType::I64).unwrap();
    let column = |i: i64| positive.slice(&[Part::ALL, Part::from(i..i + 1)]).unwrap();
    let y = (column(0) * 2i64).unwrap().add(column(1)).unwrap().reshape([rows]).unwrap();
    let all = tonnage::range(0i64, rows as i64, 1).unwrap();
    let own = Dataset::of((x, y)).unwrap().rows(&all).unwrap();
    Dataset::of(own).unwrap()
}

fn model() -> Sequential {
    Sequential::new().then(Dense::new(24)).then(Activation::Tanh).then(Dense::new(4))
}

fn loss(logits: &Tensor, labels: &Tensor) -> tonnage::Result<Tensor> {
    logits.sparse_cross_entropy(labels)
}

fn values(model: &Sequential) -> Vec<Vec<f32>> {
    let all = model.parameters();
    all.iter().map(|p| p.variable.read().unwrap().to_vec().unwrap()).collect()
}

#[test]
fn training_learns_and_takes_what_was_predicted() {
    let _context = own_context();
    let before = in_use();
    {
        set_seed(1);
        let (train, test) = points(600).hold_out(6).unwrap();
        assert_eq!((train.len(), test.len()), (500, 100));
        let (model, optimizer) = (model(), Optimizer::adam(0.02));
        let fit = Fit::new(12, 50).budget("1MiB".parse().unwrap());
        let predicted = fit.predict(&model, &optimizer, &train, loss).unwrap().peak();
        let mut told = 0;
        let history = fit
            .run(&model, &optimizer, &train, loss, |progress| {
                told += 1;
                assert_eq!((progress.steps, progress.position.step), (Some(120), told));
                Go::On
            })
            .unwrap();
        assert_eq!((history.predicted, history.measured), (predicted, predicted));
        assert_eq!((told, history.losses.len()), (120, 12));
        let found = evaluate(&model, &test, 33).unwrap();
        assert!(found.accuracy > 0.9 && found.loss < 0.4, "{found:?}");
    }
    assert_eq!(in_use(), before);
}

#[test]
fn training_that_was_stopped_goes_on_to_the_same_bits() {
    let _context = own_context();
    let folder = Folder::new("resume");
    let data = points(256);
    let trained = |stop: Option<u64>, checkpoints: Option<Checkpoints>, resume: bool| {
        set_seed(9);
        let (model, optimizer) = (model(), Optimizer::adam(0.01));
        let mut fit = Fit::new(3, 32).seed(4);
        if let Some(checkpoints) = checkpoints {
            fit = fit.checkpoints(checkpoints, 5);
        }
        if resume {
            // Whatever was drawn since must not matter.
            set_seed(77);
            fit = fit.resume();
        }
        let after = |p: &tonnage::train::Progress| match stop {
            Some(step) if p.position.step == step => Go::Stop,
            _ => Go::On,
        };
        let history = fit.run(&model, &optimizer, &data, loss, after).unwrap();
        (values(&model), history.position.step, optimizer.steps().unwrap())
    };
    let whole = trained(None, None, false);
    let checkpoints = Checkpoints::new(&folder.0).keep(2);
    let part = trained(Some(13), Some(checkpoints.clone()), false);
    assert_eq!(part.1, 13);
    let rest = trained(None, Some(checkpoints), true);
    assert_eq!(rest, whole);
    // The last two, and the file that names them.
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 3);
}

#[test]
fn a_checkpoint_of_another_model_or_a_damaged_one_changes_nothing() {
    let _context = own_context();
    let folder = Folder::new("damaged");
    let data = points(64);
    let checkpoints = || Checkpoints::new(&folder.0);
    let fit = Fit::new(1, 32).checkpoints(checkpoints(), 0);
    fit.run(&model(), &Optimizer::adam(0.01), &data, loss, |_| Go::On).unwrap();

    let other = Sequential::new().then(Dense::new(4));
    let fit = Fit::new(2, 32).checkpoints(checkpoints(), 0).resume();
    let error = fit.run(&other, &Optimizer::sgd(0.01), &data, loss, |_| Go::On).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::BadFile { .. }));
    for word in ["another model", "model.2.kernel", "optimizer."] {
        assert!(error.to_string().contains(word), "{error}");
    }
    let wide = Sequential::new().then(Dense::new(25)).then(Activation::Tanh).then(Dense::new(4));
    let error = fit.run(&wide, &Optimizer::adam(0.01), &data, loss, |_| Go::On).unwrap_err();
    assert!(error.to_string().contains("f32[24]"), "{error}");

    let tensors = fs::read_dir(&folder.0).unwrap().map(|e| e.unwrap().path());
    let file = tensors.into_iter().find(|p| p.extension().unwrap() == "safetensors").unwrap();
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    let error = fit.run(&model(), &Optimizer::adam(0.01), &data, loss, |_| Go::On).unwrap_err();
    assert!(error.to_string().contains("bytes of tensors"), "{error}");
    fs::write(folder.0.join("checkpoint.json"), "{}").unwrap();
    let error = fit.run(&model(), &Optimizer::adam(0.01), &data, loss, |_| Go::On).unwrap_err();
    assert!(error.to_string().contains("no checkpoint"), "{error}");
}

#[test]
fn a_loss_that_is_no_number_stops_training_and_keeps_the_last_checkpoint() {
    let _context = own_context();
    let folder = Folder::new("nan");
    let data = points(128);
    let model = model();
    let fit = Fit::new(5, 32).checkpoints(Checkpoints::new(&folder.0), 1);
    // A rate at which parameters overflow.
    let optimizer = Optimizer::sgd(1e38);
    let error = fit.run(&model, &optimizer, &data, loss, |_| Go::On).unwrap_err().to_string();
    for word in ["the loss of step", "not finite", "`matmul`", "training.rs"] {
        assert!(error.contains(word), "{word}: {error}");
    }
    assert!(folder.0.join("checkpoint.json").exists());
}

#[test]
fn the_first_tensor_that_is_not_finite_is_named_and_nothing_is_written() {
    let _context = own_context();
    let data = points(64);
    let bad = Sequential::new()
        .then(Dense::new(24))
        .then(Apply(|x: &Tensor| x.log()))
        .then(Dense::new(4));
    let fit = Fit::new(1, 32);
    let error = fit.run(&bad, &Optimizer::sgd(0.1), &data, loss, |_| Go::On).unwrap_err();
    let text = error.to_string();
    for word in ["step 1", "`log`", "f32[32, 24]", "training.rs", "first that is not finite"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(values(&bad).iter().flatten().all(|x| x.is_finite()));

    let model = model();
    let x = tensor(vec![[f32::NAN, 1.0]; 32]).unwrap();
    let data = Dataset::of((x, tensor(vec![1i64; 32]).unwrap())).unwrap();
    let error = fit.run(&model, &Optimizer::sgd(0.1), &data, loss, |_| Go::On).unwrap_err();
    assert!(error.to_string().contains("what goes in, f32[32, 2], is not finite"), "{error}");
    assert!(values(&model).iter().flatten().all(|x| x.is_finite()));
}

#[test]
fn gradients_of_several_batches_make_one_step() {
    let _context = own_context();
    let data = points(256);
    let trained = |batch: usize, parts: usize| {
        set_seed(5);
        let (model, optimizer) = (model(), Optimizer::adam(0.01));
        let fit = Fit::new(2, batch).accumulate(parts).seed(4);
        let planned = fit.predict(&model, &optimizer, &data, loss).unwrap().peak();
        let history = fit.run(&model, &optimizer, &data, loss, |_| Go::On).unwrap();
        assert_eq!((history.predicted, history.measured), (planned, planned));
        assert_eq!((history.position.step, optimizer.steps().unwrap()), (8, 8));
        (values(&model), history.losses, planned)
    };
    let (whole, parts) = (trained(64, 1), trained(16, 4));
    for (a, b) in whole.0.iter().flatten().zip(parts.0.iter().flatten()) {
        assert!((a - b).abs() < 1e-4, "{a} {b}");
    }
    for (a, b) in whole.1.iter().zip(&parts.1) {
        assert!((a - b).abs() < 1e-4, "{a} {b}");
    }
    // What does not fill a step is left out.
    let fit = Fit::new(1, 60).accumulate(3);
    assert_eq!(fit.steps(&data), Some(1));
    let few = Fit::new(1, 100).accumulate(3);
    let error = few.run(&model(), &Optimizer::sgd(0.1), &data, loss, |_| Go::On).unwrap_err();
    assert!(error.to_string().contains("3 batches of 100 of 256 rows"), "{error}");
}

/// Follows the loss on what is held out.
#[derive(Default)]
struct Seen(Vec<Epoch>, Option<usize>);

impl tonnage::train::Callback for &mut Seen {
    fn epoch(&mut self, epoch: &Epoch) -> tonnage::Result<Go> {
        self.0.push(*epoch);
        Ok(if Some(self.0.len()) == self.1 { Go::Stop } else { Go::On })
    }
}

#[test]
fn what_is_held_out_is_told_after_every_epoch_and_a_callback_may_end_it() {
    let _context = own_context();
    let (train, test) = points(240).hold_out(6).unwrap();
    let (model, optimizer) = (model(), Optimizer::adam(0.02));
    let mut seen = Seen(Vec::new(), Some(3));
    let fit = Fit::new(9, 50).held_out(&test);
    let history = fit.run_with(&model, &optimizer, &train, loss, &mut seen).unwrap();
    assert_eq!((seen.0.len(), history.losses.len(), history.position.epoch), (3, 3, 3));
    let last = seen.0[2];
    assert_eq!(last.loss, history.losses[2]);
    let own = mean_loss(&model, &test, 7, loss).unwrap();
    assert!((last.held_out.unwrap() - own).abs() < 1e-6);
    assert!((evaluate(&model, &test, 11).unwrap().loss - own).abs() < 1e-6);
    let none = Fit::new(1, 50).at_most(0).run(&model, &optimizer, &train, loss, |_| Go::On);
    let none = none.unwrap();
    assert_eq!((none.position.step, none.steps), (0, 0));
}

#[test]
fn the_best_checkpoint_is_kept_beside_the_last_ones() {
    let _context = own_context();
    let folder = Folder::new("best");
    let w = tonnage::Variable::new("w", tensor([0.0f32]).unwrap()).unwrap();
    let named = [("model.w".to_string(), w.clone())];
    let checkpoints = Checkpoints::new(&folder.0).keep(2).keep_best();
    let scores = [5.0, 2.0, 3.0, f64::NAN, 4.0, 2.5];
    for (step, score) in scores.into_iter().enumerate() {
        w.assign(&tensor([step as f32]).unwrap()).unwrap();
        let position = Position { step: step as u64, epoch: 0, batch: 0 };
        checkpoints.save_scored(&named, position, Some(score)).unwrap();
    }
    let files = || -> Vec<String> {
        let all = fs::read_dir(&folder.0).unwrap();
        let mut names: Vec<String> =
            all.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != "tonnage.lock");
        names.sort();
        names
    };
    let steps = ["step-000000001", "step-000000004", "step-000000005"];
    let want: Vec<String> = std::iter::once("checkpoint.json".to_string())
        .chain(steps.iter().map(|step| format!("{step}.safetensors")))
        .collect();
    assert_eq!(files(), want);
    struct One {
        w: tonnage::Variable,
    }
    tonnage::parameters!(One { w });
    let model = One { w };
    for (which, step) in [(Which::Best, 1.0), (Which::Last, 5.0)] {
        checkpoints.load_model(&model, which).unwrap();
        assert_eq!(model.w.read().unwrap().to_vec::<f32>().unwrap(), [step]);
    }
}

#[test]
fn weights_are_loaded_in_whole_or_in_part_and_differences_are_listed() {
    let _context = own_context();
    let folder = Folder::new("weights");
    let path = folder.0.join("w.safetensors");
    let x = tonnage::ones([1, 2]).unwrap();
    let built = |last: usize| {
        let model =
            Sequential::new().then(Dense::new(24)).then(Activation::Tanh).then(Dense::new(last));
        model.forward(&x, Mode::Inference).unwrap();
        model
    };
    let trained = built(4);
    save_weights(&path, &trained).unwrap();
    let same = built(4);
    load_weights(&path, &same, Loading::Strict).unwrap();
    assert_eq!(values(&same), values(&trained));

    let error = load_weights(&path, &built(5), Loading::Partial).unwrap_err().to_string();
    for word in ["2.kernel", "f32[24, 4]", "f32[24, 5]", "2.bias"] {
        assert!(error.contains(word), "{word}: {error}");
    }
    let first = Sequential::new().then(Dense::new(24));
    assert!(
        load_weights(&path, &first, Loading::All)
            .unwrap_err()
            .to_string()
            .contains("no parameters yet")
    );
    first.forward(&x, Mode::Inference).unwrap();
    let error = load_weights(&path, &first, Loading::Strict).unwrap_err().to_string();
    assert!(error.contains(r#"missing [], unknown ["2.bias", "2.kernel"]"#), "{error}");
    let loaded = load_weights(&path, &first, Loading::All).unwrap();
    assert_eq!(loaded.unknown, ["2.bias", "2.kernel"]);
    assert_eq!(values(&first)[..], values(&trained)[..2]);

    let deep = Sequential::new()
        .then(Dense::new(24))
        .then(Activation::Tanh)
        .then(Dense::new(4))
        .then(Dense::new(3));
    deep.forward(&x, Mode::Inference).unwrap();
    let last = values(&deep)[4..].to_vec();
    let error = load_weights(&path, &deep, Loading::All).unwrap_err().to_string();
    assert!(error.contains(r#"missing ["3.bias", "3.kernel"]"#), "{error}");
    let loaded = load_weights(&path, &deep, Loading::Partial).unwrap();
    assert_eq!(loaded.missing, ["3.bias", "3.kernel"]);
    assert_eq!((&values(&deep)[..4], &values(&deep)[4..]), (&values(&trained)[..], &last[..]));

    let checkpoints = Checkpoints::new(folder.0.join("saved"));
    assert_eq!(checkpoints.load_model(&same, Which::Last).unwrap(), None);
    let fit = Fit::new(1, 32).checkpoints(checkpoints.clone().keep_best(), 0);
    fit.run(&trained, &Optimizer::adam(0.1), &points(64), loss, |_| Go::On).unwrap();
    for which in [Which::Last, Which::Best] {
        assert!(checkpoints.load_model(&same, which).unwrap().is_some());
        assert_eq!(values(&same), values(&trained));
    }
}

/// Not a byte more at the end than at the start.
#[test]
fn predicting_again_and_again_holds_no_more() {
    let _context = own_context();
    let model = model();
    let says = predictor(&model);
    let x = tonnage::ones([4, 2]).unwrap();
    let call = || drop(says.call(x.clone()).unwrap());
    (0..10).for_each(|_| call());
    let before = memory::info("cpu:0").unwrap();
    (0..100_000).for_each(|_| call());
    let after = memory::info("cpu:0").unwrap();
    assert_eq!((before.in_use, before.peak), (after.in_use, after.peak));
    assert_eq!(says.traces(), 1);
}

#[test]
fn what_cannot_be_trained_is_refused_before_anything_runs() {
    let _context = own_context();
    let data = points(10);
    let run = |fit: Fit| {
        let made = fit.run(&model(), &Optimizer::sgd(0.1), &data, loss, |_| Go::On);
        made.unwrap_err().to_string()
    };
    assert!(run(Fit::new(1, 0)).contains("batches of 0"));
    assert!(run(Fit::new(1, 11)).contains("batches of 11 of 10 rows"));
    let tight = run(Fit::new(1, 5).budget("1KiB".parse().unwrap()));
    assert!(tight.contains("the least that would do"), "{tight}");
    let error = Dataset::of((zeros([3]).unwrap(), zeros([4]).unwrap())).unwrap_err().to_string();
    assert!(error.contains("f32[4] among tensors of 3 rows"), "{error}");
    assert!(Dataset::of(zeros(()).unwrap()).unwrap_err().to_string().contains("no rows"));
}

#[test]
fn tensors_go_to_files_and_back_with_every_dtype() {
    let _context = own_context();
    let folder = Folder::new("file");
    let path = folder.0.join("all.safetensors");
    let numbers = tensor([[0.0f64, 1.0, 2.0], [3.0, 4.0, 5.0]]).unwrap();
    let named: Vec<(String, Tensor)> = DType::ALL
        .into_iter()
        .map(|dtype| (dtype.to_string(), (&numbers).cast(dtype).unwrap()))
        .collect();
    let view = numbers.t().unwrap();
    let recipe = zeros([1000]).unwrap();
    let mut all: Vec<(&str, &Tensor)> = named.iter().map(|(n, t)| (n.as_str(), t)).collect();
    all.extend([("view", &view), ("recipe", &recipe)]);
    save_safetensors(&path, all.clone(), &[]).unwrap();
    let held = in_use();
    let file = SafeTensors::open(&path).unwrap();
    assert_eq!(in_use(), held, "a header takes no tensor's bytes");
    for (name, tensor) in all {
        let back = file.read(name).unwrap();
        assert_eq!(back.ty(), tensor.ty());
        let both = [&back, tensor].map(|t| t.cast(DType::F64).unwrap().to_vec::<f64>().unwrap());
        assert_eq!(both[0], both[1], "{name}");
    }
    let error = file.read("nobody").unwrap_err().to_string();
    assert!(error.contains("holds no `nobody`"), "{error}");
    let twice = save_safetensors(&path, [("a", &recipe), ("a", &view)], &[]).unwrap_err();
    assert!(twice.to_string().contains("two tensors"), "{twice}");
    assert!(SafeTensors::open(&path).is_ok(), "the old file is still there");
}

/// A gigabyte by the header's word, and what else headers may say.
#[test]
fn files_that_lie_are_refused_without_taking_memory() {
    let _context = own_context();
    let folder = Folder::new("lies");
    let path = folder.0.join("x");
    memory::reset_peak("cpu:0").unwrap();
    let before = memory::info("cpu:0").unwrap().peak;
    let with_header = |text: &str| {
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend(text.as_bytes());
        bytes
    };
    let files: Vec<Vec<u8>> = vec![
        vec![],
        vec![1, 2, 3],
        u64::MAX.to_le_bytes().to_vec(),
        with_header("no json"),
        with_header(r#"{"a":{"dtype":"F32","shape":[268435456],"data_offsets":[0,1073741824]}}"#),
        with_header(r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[4,0]}}"#),
        with_header(
            r#"{"a":{"dtype":"F32","shape":[18446744073709551615,2],"data_offsets":[0,8]}}"#,
        ),
        vec![0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255],
        vec![0, 0, 8, 1, 0, 0, 0, 5, 1],
        vec![0, 0, 7, 1, 0, 0, 0, 0],
        vec![9, 0, 8, 1, 0, 0, 0, 0],
    ];
    for bytes in files {
        fs::write(&path, &bytes).unwrap();
        let error = SafeTensors::open(&path).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::BadFile { .. }), "{error}");
        assert!(read_idx(&path).is_err() && parse_idx(&bytes).is_err());
    }
    assert!(SafeTensors::open("/nowhere/x").unwrap_err().to_string().contains("/nowhere/x"));
    assert_eq!(memory::info("cpu:0").unwrap().peak, before);
}

#[test]
fn batches_come_in_the_order_of_their_key_and_may_begin_anywhere() {
    let _context = own_context();
    let data = Dataset::of(tonnage::range(0i64, 10, 1).unwrap()).unwrap();
    let all = |batches: tonnage::data::Batches<'_, Tensor>| -> Vec<Vec<i64>> {
        batches.map(|batch| batch.unwrap().to_vec().unwrap()).collect()
    };
    assert_eq!(all(data.batches(4)), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]]);
    assert_eq!(all(data.batches(4).whole().after(1)), [[4, 5, 6, 7]]);
    let key = RandomKey::new(5);
    let (one, other) =
        (all(data.batches(3).shuffled(key).unwrap()), all(data.batches(3).shuffled(key).unwrap()));
    assert_eq!(one, other);
    let mut sorted: Vec<i64> = one.concat();
    assert_ne!(sorted, (0..10).collect::<Vec<_>>());
    sorted.sort();
    assert_eq!(sorted, (0..10).collect::<Vec<_>>());
    assert!(data.batches(0).next().is_none());
}
