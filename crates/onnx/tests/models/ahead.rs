//! What nodes make of weights alone: computed once, in no more memory than the weights.

use tonnage::{Bytes, Tensor, tensor};
use tonnage_onnx::{Model, load};

use crate::write::{Folder, Message, bytes, floats, graph, int, ints, model, node, value};

const SIDE: i64 = 128;

/// A model over `x` of `[batch, 128]`.
fn opened(folder: &Folder, nodes: &[Message], weights: &[Message]) -> Model {
    let (takes, gives) = (value("x", 1, &["batch", "128"]), value("y", 1, &["batch", "128"]));
    let graph = graph(nodes, weights, &[takes], &[gives]);
    load(folder.put("model.onnx", &model(&graph).0)).unwrap()
}

fn matrix(name: &str, step: f32) -> Message {
    let values: Vec<f32> = (0..SIDE * SIDE).map(|n| step * ((n % 13) as f32 - 6.0)).collect();
    floats(name, &[SIDE, SIDE], &values)
}

fn x() -> Tensor {
    let values: Vec<f32> = (0..2 * SIDE).map(|n| (n % 7) as f32 - 3.0).collect();
    tensor(values).unwrap().reshape([2, SIDE as usize]).unwrap()
}

/// Calls it twice with weights in memory, and once with them in the file: the same numbers, in the memory that was predicted. What a plan in memory holds besides
/// what calls make.
fn variables(folder: &Folder, model: &Model) -> Bytes {
    let plan = model.plan(&[x()]).unwrap();
    assert!(plan.reads().is_zero(), "{plan}");
    let called = |model: &Model| {
        let made = model.call([x()]).unwrap().remove(0).tensor().unwrap();
        made.to_vec::<f32>().unwrap()
    };
    let made = [called(model), called(model)];
    assert_eq!(model.last_run().len(), 1, "one segment");
    let ran = model.last_run()[0];
    assert_eq!((ran.measured.used, ran.peak), (plan.peak(), plan.peak()));
    let tight = load(folder.path().join("model.onnx")).unwrap().budget("256KiB").unwrap();
    let read = tight.plan(&[x()]).unwrap();
    let in_file = called(&tight);
    assert!(made.iter().all(|one| *one == in_file), "{read}");
    plan.inputs
}

#[test]
fn what_is_made_of_weights_alone_takes_their_place() {
    let folder = Folder::new();
    let nodes = [
        node("Mul", &["a", "b"], &["product"], &[]),
        node("Transpose", &["product"], &["transposed"], &[]),
        node("Tanh", &["transposed"], &["w"], &[]),
        node("MatMul", &["x", "w"], &["y"], &[]),
    ];
    let model = opened(&folder, &nodes, &[matrix("a", 0.01), matrix("b", 0.5)]);
    let held = variables(&folder, &model);
    // One matrix and `x`, not two; and the plan has the product alone.
    let one = (SIDE * SIDE * 4) as u64;
    assert!((one..one + 8192).contains(&held.get()), "{held}");
    let plan = model.plan(&[x()]).unwrap();
    assert!(!plan.to_string().contains("tanh"), "{plan}");
}

#[test]
fn what_is_larger_than_its_weights_is_computed_on_every_call() {
    let folder = Folder::new();
    let nodes = [
        node("Cast", &["bytes"], &["wide"], &[int("to", 1)]),
        node("Mul", &["wide", "step"], &["w"], &[]),
        node("MatMul", &["x", "w"], &["y"], &[]),
    ];
    let all: Vec<u8> = (0..SIDE * SIDE * 2).map(|n| (n % 251) as u8).collect();
    let narrow = node("Slice", &["stored", "from", "to"], &["bytes"], &[]);
    let nodes = [vec![narrow], nodes.to_vec()].concat();
    let weights = [
        bytes("stored", true, &[2 * SIDE, SIDE], &all),
        floats("step", &[], &[0.125]),
        ints("from", &[1], &[0]),
        ints("to", &[1], &[SIDE]),
    ];
    let held = variables(&folder, &opened(&folder, &nodes, &weights));
    let stored = (SIDE * SIDE * 2) as u64;
    assert!((stored..stored + 8192).contains(&held.get()), "{held}");
}

#[test]
fn a_weight_that_others_read_too_is_there_once() {
    let folder = Folder::new();
    let nodes = [
        node("Tanh", &["a"], &["w"], &[]),
        node("MatMul", &["x", "w"], &["first"], &[]),
        node("MatMul", &["x", "a"], &["second"], &[]),
        node("Add", &["first", "second"], &["y"], &[]),
    ];
    let held = variables(&folder, &opened(&folder, &nodes, &[matrix("a", 0.01)]));
    let one = (SIDE * SIDE * 4) as u64;
    assert!((one..one + 8192).contains(&held.get()), "{held}");
}

#[test]
fn parts_of_a_weight_that_are_put_together_again_take_its_place() {
    let folder = Folder::new();
    let nodes = [
        node("Slice", &["a", "zero", "half"], &["low"], &[]),
        node("Slice", &["a", "half", "all"], &["high"], &[]),
        node("Concat", &["high", "low"], &["w"], &[int("axis", 0)]),
        node("MatMul", &["x", "w"], &["y"], &[]),
    ];
    let weights = [
        matrix("a", 0.01),
        ints("zero", &[1], &[0]),
        ints("half", &[1], &[SIDE / 2]),
        ints("all", &[1], &[SIDE]),
    ];
    let model = opened(&folder, &nodes, &weights);
    let held = variables(&folder, &model);
    let one = (SIDE * SIDE * 4) as u64;
    assert!((one..one + 8192).contains(&held.get()), "{held}");
    let plan = model.plan(&[x()]).unwrap();
    assert!(!plan.to_string().contains("concat"), "{plan}");
}

#[test]
fn an_output_that_is_made_of_weights_alone_has_its_numbers() {
    let folder = Folder::new();
    let nodes = [node("Neg", &["a"], &["y"], &[])];
    let gives = value("y", 1, &["128", "128"]);
    let graph = graph(&nodes, &[matrix("a", 1.0)], &[value("x", 1, &["1"])], &[gives]);
    let model = load(folder.put("model.onnx", &model(&graph).0)).unwrap();
    for _ in 0..2 {
        let made = model.call([tensor([1.0f32]).unwrap()]).unwrap().remove(0).tensor().unwrap();
        let values = made.to_vec::<f32>().unwrap();
        assert!(values.iter().enumerate().all(|(n, y)| *y == 6.0 - (n % 13) as f32));
    }
}
