//! A plan explained: its sums are the plan's, and every kind of suggestion saves what it says when it is carried out.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use tonnage::nn::{Activation, Dense, Layer, Mode, Parameters, Sequential};
use tonnage::optim::Optimizer;
use tonnage::{
    Bytes, Change, DType, Elementwise, GradientTape, Plan, Result, Suggestion, Tensor, Variable,
    checkpoint, function, name_scope, random_normal, tensor,
};

use crate::common::own_context;

fn resident(rows: usize, columns: usize) -> Tensor {
    let values = random_normal([rows, columns], DType::F32).unwrap().to_vec::<f32>().unwrap();
    tensor(values).unwrap().reshape([rows as i64, columns as i64]).unwrap()
}

fn suggested(plan: &Plan, is_it: impl Fn(&Change) -> bool) -> Suggestion {
    let all = plan.explain().suggestions;
    assert!(all.len() <= 10);
    assert!(all.iter().all(|s| s.peak + s.saves == plan.peak() && !s.saves.is_zero()));
    assert!(all.windows(2).all(|two| two[0].saves >= two[1].saves));
    match all.iter().find(|s| is_it(&s.change)) {
        Some(found) => found.clone(),
        None => panic!("no such suggestion among {all:?}\n{plan:#}"),
    }
}

/// A step of training of a small net of layers, the last inside of a scope of its own.
fn planned_step() -> std::sync::Arc<Plan> {
    let model = Sequential::new().then(Dense::new(256)).then(Activation::Relu).then(Dense::new(64));
    let last = Dense::new(8);
    let optimizer = Optimizer::adam(0.01);
    let step = function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        let h = model.forward(&x, Mode::Training)?;
        let y = name_scope("head", || last.forward(&h, Mode::Training))?;
        let loss = y.square()?.mean_all()?;
        let mut variables = model.trainable();
        variables.extend(last.trainable());
        let gradients = tape.gradient(&loss, &variables)?;
        optimizer.apply(&variables, &gradients)?;
        Ok(loss)
    });
    step.plan(&Tensor::spec(DType::F32, [128, 32])).unwrap()
}

#[test]
fn what_lives_at_the_peak_adds_up_by_kind_by_layer_and_by_line() {
    let _context = own_context();
    let plan = planned_step();
    let explained = plan.explain();
    let by_line: Bytes = explained.live_at_peak.iter().map(|holder| holder.bytes).sum();
    assert_eq!(by_line + explained.gaps, plan.peak());
    for shares in [&explained.by_kind, &explained.by_layer] {
        let sum: Bytes = shares.iter().map(|share| share.bytes).sum();
        assert_eq!(sum + explained.gaps, plan.peak());
        assert!(shares.windows(2).all(|two| two[0].bytes >= two[1].bytes));
    }
    let layer = |name: &str| explained.by_layer.iter().find(|share| share.name == name).unwrap();
    // The kernel and the bias with what Adam remembers of them, and at the peak perhaps more.
    let first = Bytes::new(3 * (32 * 256 + 256) * 4);
    assert!(layer("0.dense").bytes >= first, "{explained}");
    assert!(layer("2.dense").bytes >= Bytes::new(3 * (256 * 64 + 64) * 4), "{explained}");
    assert!(layer("head").bytes >= Bytes::new(3 * (64 * 8 + 8) * 4), "{explained}");
    let text = explained.to_string();
    assert!(text.contains("by kind:") && text.contains("by layer:") && text.contains("0.dense"));
    assert!(text.lines().all(|line| !line.ends_with(' ')), "{text}");
}

#[test]
fn gradients_and_optimizer_state_count_to_the_layer_of_what_they_are_of() {
    let _context = own_context();
    let plan = planned_step();
    let lines = plan.explain().steps;
    let of = |layer: &str| lines.iter().filter(|line| line.layer.as_deref() == Some(layer)).count();
    // The forward pass, the backward pass and the update of each.
    assert!(of("0.dense") >= 3 && of("head") >= 3, "{plan:#}");
}

#[test]
fn an_argument_that_is_moved_in_saves_what_was_said() {
    let _context = own_context();
    let f = function(|(x, y): (Tensor, Tensor)| x.tanh()?.matmul(&y));
    let (x, y) = (resident(512, 512), resident(512, 256));
    let plan = f.plan(&(x.clone(), y.clone())).unwrap();
    let found = suggested(&plan, |change| *change == Change::GiveUp { input: 0 });
    assert_eq!(found.saves, Bytes::mib(1));
    assert!(found.advice().contains("move argument 0 into the call"), "{}", found.advice());
    let (_, measured) = f.call_measured((x, y.clone())).unwrap();
    assert_eq!(measured.unwrap().used, found.peak);
}

#[test]
fn what_is_recomputed_saves_what_was_said() {
    let _context = own_context();
    let weights: Vec<Variable> = (0..4)
        .map(|i| {
            let (a, b) = if i % 2 == 0 { (64, 1024) } else { (1024, 64) };
            Variable::new("w", resident(a, b)).unwrap()
        })
        .collect();
    let net = |recompute: bool| {
        let w = weights.clone();
        function(move |x: Tensor| {
            let v = w.clone();
            let first = move |x: Tensor| -> Result<Tensor> {
                let wide = x.matmul(&v[0].read()?)?.tanh()?;
                wide.matmul(&v[1].read()?)
            };
            let mut tape = GradientTape::new();
            let h = if recompute { checkpoint(first)(x)? } else { first(x)? };
            let h = h.matmul(&w[2].read()?)?.tanh()?.matmul(&w[3].read()?)?;
            let loss = h.square()?.mean_all()?;
            for (v, gradient) in w.iter().zip(tape.gradient(&loss, &w)?) {
                v.assign_sub(&(gradient.tensor()? * 0.1)?)?;
            }
            Ok(loss)
        })
    };
    let x = resident(512, 64);
    let plan = net(false).plan(&x).unwrap();
    let found = suggested(&plan, |change| matches!(change, Change::Recompute { .. }));
    let carried_out = net(true);
    assert_eq!(carried_out.plan(&x).unwrap().peak(), found.peak, "{found}\n{plan:#}");
    let (_, measured) = carried_out.call_measured(x).unwrap();
    assert_eq!(measured.unwrap().used, found.peak);
    let Change::Recompute { with, nodes, times_the_time } = &found.change else { panic!() };
    assert_eq!(with.len(), 1, "the line that multiplies it: {found}");
    assert!(*nodes >= 2 && *times_the_time > 1.0 && *times_the_time < 2.0, "{found}");
    // What runs again is told as that.
    let recompute = carried_out.plan(&resident(512, 64)).unwrap().explain();
    assert!(recompute.steps.iter().filter(|line| line.recomputed).count() >= 2, "{recompute:#}");
    assert!(plan.explain().steps.iter().all(|line| !line.recomputed));
}

#[test]
fn what_is_held_for_one_line_alone_saves_what_was_said_when_that_line_lets_go() {
    let _context = own_context();
    let w = resident(512, 512);
    let net = |reads: bool| {
        let w = w.clone();
        function(move |x: Tensor| {
            let early = x.matmul(&w)?;
            let h = early.sum(0)?;
            let middle = h.reshape([512, 1])?.matmul(&h.reshape([1, 512])?)?;
            let late = middle.matmul(&middle)?.sum(1)?.reshape([512, 1])?;
            match reads {
                true => early.matmul(&late),
                false => Ok(late),
            }
        })
    };
    let x = resident(512, 512);
    let plan = net(true).plan(&x).unwrap();
    let found = suggested(&plan, |change| matches!(change, Change::LetGo { .. }));
    let without = net(false).plan(&x).unwrap();
    assert_eq!(without.peak(), found.peak, "{found}\n{plan:#}\n{without:#}");
    assert_eq!(found.saves, Bytes::mib(1));
    let Change::LetGo { reader, by_gradient } = found.change else { panic!() };
    assert!(!by_gradient && reader.line() > found.source.line(), "{found}");
}
