//! Batch normalizations that go into the convolution before them: the same numbers, and nothing of them is left in a call.

use tonnage::{Plan, Tensor, tensor};
use tonnage_onnx::{Model, load};

use crate::write::{Folder, Message, floats, graph, int, model, node, value};

/// Numbers of both signs that repeat late.
fn numbers(count: i64, seed: i64) -> Vec<f32> {
    (0..count).map(|n| ((n * 37 + seed * 11) % 101) as f32 / 50.0 - 1.0).collect()
}

/// A convolution of `[2, 16, 9, ...]` and a normalization of it; `more` nodes read what both made.
struct Case {
    /// Axes of the image behind its channels.
    axes: usize,
    groups: i64,
    /// Whether the convolution has a bias of its own.
    bias: bool,
    more: Vec<Message>,
}

const INPUTS: i64 = 16;
const OUTPUTS: i64 = 48;

impl Case {
    fn image(&self) -> Vec<i64> {
        [vec![2, INPUTS], vec![9; self.axes]].concat()
    }

    fn model(&self, folder: &Folder) -> Model {
        let filters = [vec![OUTPUTS, INPUTS / self.groups], vec![3; self.axes]].concat();
        let inputs = if self.bias { vec!["x", "w", "b"] } else { vec!["x", "w"] };
        let read = ["conv", "scale", "shift", "mean", "variance"];
        let nodes = [
            node("Conv", &inputs, &["conv"], &[int("group", self.groups)]),
            node("BatchNormalization", &read, &["normal"], &[]),
        ];
        let variance: Vec<f32> = numbers(OUTPUTS, 7).iter().map(|x| x * x + 0.25).collect();
        let weights = [
            floats("w", &filters, &numbers(filters.iter().product(), 1)),
            floats("b", &[OUTPUTS], &numbers(OUTPUTS, 2)),
            floats("scale", &[OUTPUTS], &numbers(OUTPUTS, 3)),
            floats("shift", &[OUTPUTS], &numbers(OUTPUTS, 4)),
            floats("mean", &[OUTPUTS], &numbers(OUTPUTS, 5)),
            floats("variance", &[OUTPUTS], &variance),
        ];
        let text = |dims: &[i64]| dims.iter().map(i64::to_string).collect::<Vec<_>>();
        let made = [vec![2, OUTPUTS], vec![7; self.axes]].concat();
        let (takes, gives) = (text(&self.image()), text(&made));
        let port = |name: &str, dims: &[String]| {
            value(name, 1, &dims.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let nodes = [nodes.to_vec(), self.more.clone()].concat();
        let graph = graph(&nodes, &weights, &[port("x", &takes)], &[port("y", &gives)]);
        load(folder.put("model.onnx", &model(&graph).0)).unwrap()
    }

    fn x(&self) -> Tensor {
        let image = self.image();
        let sizes: Vec<usize> = image.iter().map(|n| *n as usize).collect();
        tensor(numbers(image.iter().product(), 9)).unwrap().reshape(sizes).unwrap()
    }
}

fn called(model: &Model, x: &Tensor) -> Vec<f32> {
    let made = model.call([x]).unwrap().remove(0).tensor().unwrap().to_vec::<f32>().unwrap();
    let ran = model.last_run()[0];
    assert_eq!(ran.measured.used, ran.peak);
    made
}

/// How many nodes of a plan multiply element by element, those of fused ones too.
fn products(plan: &Plan) -> usize {
    let text = plan.graph.to_string();
    text.lines().filter(|line| line.to_lowercase().contains("mul")).count()
}

/// What it gives beside what it gives with weights that are trained, which are not folded. Whether a product is left in the plan.
fn is_folded(case: &Case) -> bool {
    let (folder, x) = (Folder::new(), case.x());
    let (resident, trained) = (case.model(&folder), case.model(&folder).trainable());
    let plan = |model: &Model| model.plan(std::slice::from_ref(&x)).unwrap();
    assert!(products(&plan(&trained)) > 0, "{}", plan(&trained).graph);
    let made = called(&resident, &x);
    let plain = called(&trained, &x);
    let apart = plain.iter().zip(&made).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let largest = made.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
    assert!(apart <= 1e-5 * largest, "{apart} of {largest}");
    products(&plan(&resident)) == 0
}

#[test]
fn a_normalization_goes_into_the_convolution_that_it_alone_reads() {
    for axes in 1..=2 {
        for groups in [1, 4, INPUTS] {
            for bias in [false, true] {
                let more = vec![node("Relu", &["normal"], &["y"], &[])];
                assert!(is_folded(&Case { axes, groups, bias, more }), "{axes} {groups} {bias}");
            }
        }
    }
}

#[test]
fn a_convolution_that_others_read_too_stays_as_it_is() {
    let more = vec![node("Add", &["normal", "conv"], &["y"], &[])];
    assert!(!is_folded(&Case { axes: 2, groups: 1, bias: true, more }));
}
