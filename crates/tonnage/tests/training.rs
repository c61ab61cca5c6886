//! Training: a step takes what was predicted, goes on to the same bits after a stop, and stops in good order; tensors in files.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

mod common;

use std::fs;
use std::path::PathBuf;

use common::{alone, in_use};
use tonnage::data::Dataset;
use tonnage::io::{SafeTensors, parse_idx, read_idx, save_safetensors};
use tonnage::nn::{Activation, Dense, Layer, Mode, Parameters, Sequential};
use tonnage::optim::Optimizer;
use tonnage::train::{Checkpoints, Fit, Go, evaluate};
use tonnage::{
    DType, Elementwise, ErrorKind, Part, RandomKey, Tensor, memory, set_seed, tensor, zeros,
};

/// A folder of its own, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tonnage-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

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
    let _turn = alone();
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
                assert_eq!((progress.steps, progress.position.step), (120, told));
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
    let _turn = alone();
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
    let _turn = alone();
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
    let _turn = alone();
    let folder = Folder::new("nan");
    let data = points(128);
    let model = model();
    let fit = Fit::new(5, 32).checkpoints(Checkpoints::new(&folder.0), 1);
    // A rate at which parameters overflow.
    let optimizer = Optimizer::sgd(1e38);
    let error = fit.run(&model, &optimizer, &data, loss, |_| Go::On).unwrap_err().to_string();
    for word in ["the loss of step", "`model.", "not finite"] {
        assert!(error.contains(word), "{word}: {error}");
    }
    assert!(folder.0.join("checkpoint.json").exists());
}

#[test]
fn what_cannot_be_trained_is_refused_before_anything_runs() {
    let _turn = alone();
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
    let _turn = alone();
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
    let _turn = alone();
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
    let _turn = alone();
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
    // A model is a layer behind a reference too.
    let model = model();
    (&model).forward(&zeros([1, 2]).unwrap(), Mode::Inference).unwrap();
}
