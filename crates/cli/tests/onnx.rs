//! `tonnage plan|explain|run|inspect model.onnx`.

mod common;
#[allow(dead_code, reason = "other tests write more kinds of models")]
#[path = "../../onnx/tests/models/write.rs"]
mod write;

use common::{said, tonnage};
use tonnage::io::{read_npy, save_npy};
use tonnage::tensor;
use write::{Folder, layer};

#[test]
fn a_model_is_inspected_planned_explained_and_run() {
    let folder = Folder::new();
    folder.put("layer.onnx", &layer().0);
    let text = said(&tonnage(folder.path(), &["inspect", "layer.onnx"]));
    for line in [
        "input  x  f32[batch, 4]",
        "output  y  f32[batch, 3]",
        "1  Gemm",
        "opset 17: 2 nodes, 2 weights",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let plan = said(&tonnage(folder.path(), &["plan", "layer.onnx", "--batch", "8"]));
    assert!(plan.contains("matmul") || plan.contains("fused"), "{plan}");
    let same = said(&tonnage(folder.path(), &["plan", "layer.onnx", "--dim", "batch=8"]));
    assert_eq!(plan, same);
    let args = ["explain", "layer.onnx", "--batch", "8", "--budget", "1MiB", "--save", "page.html"];
    assert!(said(&tonnage(folder.path(), &args)).contains("saved: page.html"));
    save_npy(folder.path().join("x.npy"), &tensor([[1.0f32, 0.0, 0.0, 0.0]]).unwrap()).unwrap();
    let args = ["run", "layer.onnx", "--input", "x.npy", "--output", "y.npy"];
    assert!(said(&tonnage(folder.path(), &args)).contains("y: f32[1, 3], saved: y.npy"));
    let made = read_npy(folder.path().join("y.npy")).unwrap();
    assert_eq!(made.to_vec::<f32>().unwrap(), [0.0, 0.0, 0.0]);
}

#[test]
fn a_budget_that_is_too_small_is_a_no_and_a_wrong_question_is_an_error() {
    let folder = Folder::new();
    folder.put("layer.onnx", &layer().0);
    let code = |args: &[&str]| tonnage(folder.path(), args).status.code();
    assert_eq!(code(&["plan", "layer.onnx", "--batch", "4096", "--budget", "64KiB"]), Some(1));
    assert_eq!(code(&["plan", "layer.onnx"]), Some(2));
    assert_eq!(code(&["plan", "missing.onnx", "--batch", "1"]), Some(2));
    assert_eq!(code(&["plan", "layer.onnx", "--dim", "seq"]), Some(2));
    assert_eq!(code(&["run", "layer.onnx", "--input", "missing.npy"]), Some(2));
}
