//! Where weights are: in memory or in the file, as they are or trained.

use tonnage::{Bytes, Elementwise, GradientTape, Tensor, Variable, function, range, tensor};
use tonnage_onnx::{Model, load};

use crate::write::{Folder, floats, graph, layer, model, node, value};

/// `tanh(x @ w)`, with 8 MiB of weights.
fn large(folder: &Folder) -> Model {
    let weights: Vec<f32> = (0..2048 * 1024).map(|n| (n % 17) as f32).collect();
    let graph = graph(
        &[node("MatMul", &["x", "w"], &["sum"], &[]), node("Tanh", &["sum"], &["y"], &[])],
        &[floats("w", &[2048, 1024], &weights)],
        &[value("x", 1, &["batch", "2048"])],
        &[value("y", 1, &["batch", "1024"])],
    );
    load(folder.put("model.onnx", &model(&graph).0)).unwrap()
}

fn ones(batch: usize) -> Tensor {
    tensor(vec![1.0f32; batch * 2048]).unwrap().reshape([batch, 2048]).unwrap()
}

#[test]
fn a_plan_knows_the_peak_of_a_call_wherever_the_weights_are_and_says_where() {
    const MIB: u64 = 1 << 20;
    let folder = Folder::new();
    let resident = large(&folder);
    let tight = large(&folder).budget("4MiB").unwrap();
    let mut made = Vec::new();
    for (model, in_memory) in [(&resident, true), (&tight, false)] {
        let plan = model.plan(&model.specs(&[("batch", 16)]).unwrap()).unwrap();
        let inputs = plan.inputs.get();
        match in_memory {
            true => assert!(inputs > 8 * MIB && plan.reads().is_zero(), "{plan}"),
            // Read piece by piece.
            false => assert!(inputs < MIB && plan.reads().get() >= 8 * MIB, "{plan}"),
        }
        assert_eq!(plan.peak().get() > 8 * MIB, in_memory, "{plan}");
        for _ in 0..2 {
            made.push(model.call([ones(16)]).unwrap().remove(0).tensor().unwrap().to_vec::<f32>());
            let [ran] = model.last_run()[..] else { panic!("other than one segment") };
            assert_eq!((ran.measured.used, ran.peak), (plan.peak(), plan.peak()));
            assert_eq!(ran.measured.obtained, plan.obtains());
        }
    }
    assert!(made.iter().all(|one| one.as_ref().unwrap() == made[0].as_ref().unwrap()));
    let refused = load(folder.path().join("model.onnx")).unwrap().budget("64KiB").unwrap();
    let error = refused.plan(&refused.specs(&[("batch", 16)]).unwrap()).unwrap_err();
    assert!(matches!(error.kind(), tonnage::ErrorKind::OverBudget { .. }), "{error}");
}

#[test]
fn a_call_that_does_not_fit_with_weights_in_memory_gives_that_memory_back() {
    let folder = Folder::new();
    let model = large(&folder).budget("9MiB").unwrap();
    let place = |batch: usize| {
        let plan = model.plan(&model.specs(&[("batch", batch)]).unwrap()).unwrap();
        assert!(plan.peak() <= "9MiB".parse::<Bytes>().unwrap());
        plan.reads().is_zero()
    };
    assert!(place(1) && !place(256));
    for batch in [1, 256, 1] {
        model.call([ones(batch)]).unwrap();
        let peaks: Vec<Bytes> = model.last_run().iter().map(|ran| ran.measured.used).collect();
        assert!(peaks.len() == 1 && peaks[0] <= "9MiB".parse().unwrap(), "{peaks:?}");
    }
}

/// `mean((relu(x @ w + b) - 1)^2)`
fn loss(made: &Tensor) -> tonnage::Result<Tensor> {
    made.sub(1.0)?.square()?.mean_all()
}

#[test]
fn a_model_is_trained_as_the_same_layer_by_hand_is() {
    let folder = Folder::new();
    let path = folder.put("layer.onnx", &layer().0);
    let x = range(-6.0f32, 6.0, 1.0).unwrap().reshape([3, 4]).unwrap();
    let weights: Vec<f32> = (0..12).map(|n| n as f32 / 4.0 - 1.5).collect();
    let own = [
        Variable::new("w", tensor(weights).unwrap().reshape([4, 3]).unwrap()).unwrap(),
        Variable::new("b", tensor([0.5f32, 0.0, -0.5]).unwrap()).unwrap(),
    ];
    let by_hand = |x: &Tensor| x.matmul(&own[0].read()?)?.add(&own[1].read()?)?.relu();
    let trained = std::sync::Arc::new(load(&path).unwrap().trainable());
    let variables = trained.variables().unwrap();
    let names: Vec<&str> = variables.iter().map(Variable::name).collect();
    assert_eq!(names, ["w", "b"]);
    let updated = |variables: &[Variable], tape: &mut GradientTape, loss: &Tensor| {
        let sources: Vec<&Variable> = variables.iter().collect();
        let gradients = tape.gradient(loss, &sources)?;
        for (variable, gradient) in sources.iter().zip(&gradients) {
            variable.assign_sub(&(gradient.tensor()? * 0.05)?)?;
        }
        Ok::<(), tonnage::Error>(())
    };
    // Inside of a function, under a budget; and op by op beside it.
    let (of_step, model) = (variables.clone(), trained.clone());
    let step = function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        let made = loss(&model.call([x])?.remove(0).tensor()?)?;
        updated(&of_step, &mut tape, &made)?;
        Ok(made)
    })
    .budget("1MiB")
    .unwrap();
    let mut losses = Vec::new();
    for _ in 0..5 {
        let ours = step.call(x.clone()).unwrap().to_vec::<f32>().unwrap()[0];
        let mut tape = GradientTape::new();
        let made = loss(&by_hand(&x).unwrap()).unwrap();
        updated(&own, &mut tape, &made).unwrap();
        assert_eq!(ours, made.to_vec::<f32>().unwrap()[0]);
        losses.push(ours);
    }
    assert!(losses.windows(2).all(|pair| pair[1] < pair[0]), "{losses:?}");
    for (ours, own) in variables.iter().zip(&own) {
        assert_eq!(
            ours.read().unwrap().to_vec::<f32>().unwrap(),
            own.read().unwrap().to_vec::<f32>().unwrap()
        );
    }
    // A call outside sees what was learned, and the file is as it was.
    let now = trained.call([&x]).unwrap().remove(0).tensor().unwrap().to_vec::<f32>().unwrap();
    assert_eq!(now, by_hand(&x).unwrap().to_vec::<f32>().unwrap());
    let before = load(&path).unwrap().call([&x]).unwrap().remove(0).tensor().unwrap();
    assert_ne!(before.to_vec::<f32>().unwrap(), now);
}

#[test]
fn a_tape_around_a_call_sees_the_weights() {
    let folder = Folder::new();
    let model = load(folder.put("layer.onnx", &layer().0)).unwrap().trainable();
    let x = range(-6.0f32, 6.0, 1.0).unwrap().reshape([3, 4]).unwrap();
    let at = |model: &Model| -> f32 {
        loss(&model.call([&x]).unwrap().remove(0).tensor().unwrap())
            .unwrap()
            .to_vec::<f32>()
            .unwrap()[0]
    };
    let variables = model.variables().unwrap();
    let mut tape = GradientTape::new();
    let made = loss(&model.call([&x]).unwrap().remove(0).tensor().unwrap()).unwrap();
    let gradients = tape.gradient(&made, &variables.iter().collect::<Vec<_>>()).unwrap();
    for (variable, gradient) in variables.iter().zip(&gradients) {
        let start = variable.read().unwrap().to_vec::<f32>().unwrap();
        let sizes = variable.ty().shape.sizes().unwrap().to_vec();
        let slopes = gradient.tensor().unwrap().to_vec::<f32>().unwrap();
        for (at_element, slope) in slopes.iter().enumerate() {
            let moved = |by: f32| {
                let mut values = start.clone();
                values[at_element] += by;
                variable.assign(&tensor(values).unwrap().reshape(&sizes).unwrap()).unwrap();
                at(&model)
            };
            let by_difference = (moved(1e-2) - moved(-1e-2)) / 2e-2;
            assert!(
                (slope - by_difference).abs() < 1e-2 * slope.abs().max(1.0),
                "{slope} {by_difference}"
            );
        }
        variable.assign(&tensor(start).unwrap().reshape(&sizes).unwrap()).unwrap();
    }
}
