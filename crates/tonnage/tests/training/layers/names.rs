//! What plans call a user's own model by: its lines, its fields.

use std::collections::BTreeSet;
use std::sync::Arc;

use tonnage::data::Dataset;
use tonnage::nn::{Dense, Layer, LayerNorm, Mode, Sequential};
use tonnage::optim::Optimizer;
use tonnage::train::Fit;
use tonnage::{
    DType, Elementwise, GradientTape, Plan, Result, Tensor, function, parameters, tensor,
};

use crate::common::own_context;

struct Inner {
    norm: LayerNorm,
    wide: Dense,
}

parameters!(Inner { norm, wide });

const FIRST_LINE: u32 = line!();

impl Layer for Inner {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let normal = self.norm.forward(x, mode)?;
        self.wide.forward(&normal, mode)?.gelu()
    }
}

struct Model {
    encoder: Vec<Inner>,
    head: Dense,
}

parameters!(Model { encoder, head });

impl Layer for Model {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let mut x = x.clone();
        for inner in &self.encoder {
            x = inner.forward(&x, mode)?;
        }
        self.head.forward(&x, mode)
    }
}

const LAST_LINE: u32 = line!();

fn model() -> Model {
    let inner = || Inner { norm: LayerNorm::new(), wide: Dense::new(8) };
    Model { encoder: vec![inner(), inner()], head: Dense::new(3) }
}

/// A step of training, written by hand.
fn planned(model: impl Layer + 'static) -> Arc<Plan> {
    let optimizer = Optimizer::adam(0.01);
    let step = function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        let loss = model.forward(&x, Mode::Training)?.square()?.mean_all()?;
        let variables = model.trainable();
        optimizer.apply(&variables, &tape.gradient(&loss, &variables)?)?;
        Ok(loss)
    });
    step.plan(&Tensor::spec(DType::F32, [4, 8])).unwrap()
}

/// The names of what a plan takes in.
fn names(plan: &Plan) -> Vec<String> {
    let infos = plan.graph.inputs.iter().map(|id| plan.graph.value(*id));
    infos.filter_map(|info| info.name.as_deref().map(str::to_string)).collect()
}

#[test]
fn parameters_and_their_state_are_named_by_the_fields_of_a_users_struct() {
    let _context = own_context();
    let names = names(&planned(model()));
    for expected in ["encoder/0/norm/scale", "encoder/1/wide/kernel", "head/bias"] {
        for end in ["", "/adam.m", "/adam.v"] {
            let expected = format!("{expected}{end}");
            assert_eq!(
                names.iter().filter(|n| **n == expected).count(),
                1,
                "{expected}: {names:?}"
            );
        }
    }
    assert!(!names.iter().any(|name| name.contains("dense")), "{names:?}");
}

#[test]
fn a_layer_by_itself_is_called_what_it_is() {
    let _context = own_context();
    let names = names(&planned(Dense::new(2)));
    assert!(names.contains(&"dense/kernel".to_string()), "{names:?}");
}

/// Lines of the steps of a plan that run in this file's layers, and all others.
fn lines(plan: &Plan) -> (Vec<u32>, Vec<String>) {
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for node in &plan.graph.nodes {
        match node.source.file().ends_with("layers/names.rs") {
            true => own.push(node.source.line()),
            false => others.push(node.source.to_string()),
        }
    }
    (own, others)
}

#[test]
fn ops_of_a_users_layer_have_its_lines() {
    let _context = own_context();
    for plan in [planned(model()), planned(Sequential::new().then(model()))] {
        let (own, others) = lines(&plan);
        assert!(others.is_empty(), "{others:?}");
        // The norm, the dense layer with its activation, and the head.
        let inside: BTreeSet<u32> =
            own.iter().copied().filter(|line| (FIRST_LINE..LAST_LINE).contains(line)).collect();
        assert_eq!(inside.len(), 3, "{own:?}");
    }
}

#[test]
fn ops_of_a_model_that_is_fitted_have_its_lines() {
    let _context = own_context();
    let (x, y) = (tensor([[1.0f32; 8]; 4]).unwrap(), tensor([[0.0f32; 3]; 4]).unwrap());
    let data = Dataset::of((x, y)).unwrap();
    let loss = |made: &Tensor, y: &Tensor| made.squared_difference(y);
    let planned = |model: &dyn Layer| {
        Fit::new(1, 4).predict(&model, &Optimizer::adam(0.01), &data, loss).unwrap()
    };
    let (own, others) = lines(&planned(&model()));
    assert!(others.is_empty(), "{others:?}");
    assert!(own.iter().any(|line| (FIRST_LINE..LAST_LINE).contains(line)), "{own:?}");
    // One of this crate's layers alone is where it is fitted.
    let (_, others) = lines(&planned(&Dense::new(3)));
    assert!(others.is_empty(), "{others:?}");
}
