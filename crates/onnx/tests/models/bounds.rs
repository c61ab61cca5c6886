//! Models whose sizes the data decide, planned before they run.

use tonnage::{Bytes, Tensor, tensor};
use tonnage_onnx::{Model, load};

use crate::write::{Folder, graph, int, model, node, value};

/// As many negative zeros as the largest of `x` says; and where `x` is not 0, once in each row of `k`.
fn opened(folder: &Folder) -> Model {
    let nodes = [
        node("Cast", &["x"], &["whole"], &[int("to", 7)]),
        node("ReduceMax", &["whole"], &["count"], &[int("keepdims", 1)]),
        node("ConstantOfShape", &["count"], &["zeros"], &[]),
        node("Neg", &["zeros"], &["y"], &[]),
        node("NonZero", &["x"], &["places"], &[]),
        node("Add", &["places", "places"], &["z"], &[]),
    ];
    let gives = [value("y", 1, &["n"]), value("z", 7, &["1", "m"])];
    let graph = graph(&nodes, &[], &[value("x", 1, &["3"])], &gives);
    load(folder.put("model.onnx", &model(&graph).0)).unwrap()
}

fn called(model: &Model, x: [f32; 3]) -> Vec<Bytes> {
    let made = model.call([tensor(x).unwrap()]).unwrap();
    let lengths: Vec<usize> =
        made.into_iter().map(|value| value.tensor().unwrap().shape().count().unwrap()).collect();
    let places = x.iter().filter(|x| **x != 0.0).count();
    assert_eq!(lengths, [x.iter().copied().fold(0.0, f32::max) as usize, places]);
    model.last_run().iter().map(|ran| ran.measured.used).collect()
}

#[test]
fn what_is_not_bound_is_named_with_its_node() {
    let folder = Folder::new();
    let model = opened(&folder);
    let x = [Tensor::spec(tonnage::DType::F32, [3])];
    let refused = |bounds: &[(&str, usize)]| model.plans(&x, bounds).unwrap_err().to_string();
    let error = refused(&[]);
    assert!(error.contains("the ConstantOfShape") && error.contains("--bound count="), "{error}");
    let error = refused(&[("count", 9)]);
    assert!(error.contains("the NonZero") && error.contains("--bound places="), "{error}");
    let error = refused(&[("count", 9), ("places", 3), ("whole", 2)]);
    assert!(error.contains("`whole`") && error.contains("leave that bound out"), "{error}");
    assert!(model.plan(&x).unwrap_err().to_string().contains("--bound"));
}

#[test]
fn plans_for_bounds_are_those_of_calls_that_reach_them() {
    let folder = Folder::new();
    let model = opened(&folder);
    let x = [Tensor::spec(tonnage::DType::F32, [3])];
    let plans = model.plans(&x, &[("count", 100_000), ("places", 3)]).unwrap();
    let peaks: Vec<Bytes> = plans.iter().map(|plan| plan.peak()).collect();
    assert!(peaks.iter().any(|peak| peak.get() > 400_000), "{peaks:?}");
    let reached = called(&model, [1.0, 100_000.0, 2.0]);
    // A call gives up what nobody reads behind it, here the places, a block of 64 bytes. A plan counts on nothing of that kind.
    assert_eq!(reached, [peaks[0], peaks[1], Bytes::new(peaks[2].get() - 64)]);
    // Within the bounds it takes no more.
    let less = called(&model, [0.0, 50_000.0, 2.0]);
    assert!(less.len() == peaks.len() && less.iter().zip(&peaks).all(|(less, peak)| less <= peak));
}
