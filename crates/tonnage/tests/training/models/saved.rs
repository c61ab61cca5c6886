//! What lies between the forward pass and the backward pass: what the rows declare, and no more.

use std::cell::RefCell;
use std::rc::Rc;

use tonnage::{
    Bytes, GradientTape, SavedForBackward, Tensor, Variable, Watched, function, set_seed,
};

use super::nets::Params;
use super::{Net, ids, image, nets, rows};

use crate::common::{in_use, own_context};

/// Bytes that are saved in a function: as its tape says while it is traced, and as its plan in a budget has it.
fn planned(net: Net, x: &Tensor, budget: &str) -> (SavedForBackward, Bytes, String) {
    let held: Rc<RefCell<Option<SavedForBackward>>> = Rc::default();
    let seen = held.clone();
    let step = function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        let mut params = Params::default();
        let loss = net(&mut params, x)?;
        *seen.borrow_mut() = Some(tape.held());
        let all: Vec<&dyn Watched> = params.all.iter().map(|v| v as &dyn Watched).collect();
        for (variable, grad) in params.all.iter().zip(tape.gradient(&loss, &all)?) {
            variable.assign_sub(&grad.scale(0.02)?)?;
        }
        Ok(loss)
    });
    let plan = step.exact().no_spill().budget(budget).unwrap().plan(x).unwrap();
    let held = held.borrow_mut().take().unwrap();
    (held, plan.saved_bytes(), plan.to_string())
}

/// Bytes that are saved in eager mode: as the tape says, and as the ledger has it.
fn eager(net: Net, x: &Tensor) -> (Bytes, Bytes) {
    let mut params = Params::default();
    let before = in_use();
    let tape = GradientTape::new();
    let loss = net(&mut params, x.clone()).unwrap();
    drop(loss);
    let variables: Bytes = params.all.iter().map(Variable::bytes).sum();
    let held = tape.held();
    (held.bytes() - held.of_sources(), in_use() - before - variables)
}

#[track_caller]
fn check(name: &str, net: Net, budget: &str, x: impl FnOnce() -> Tensor) {
    let _context = own_context();
    set_seed(3);
    let x = x();
    let (held, saved, plan) = planned(net, &x, budget);
    let declared = held.bytes() - held.of_sources();
    println!("{name}: {declared} declared, {saved} saved in a plan");
    assert!(saved <= declared, "{saved} saved, {declared} declared\n{held}\n{plan}");
    let (declared, in_use) = eager(net, &x);
    println!("{name}: {declared} declared in eager mode, {in_use} in use");
    // The argument is ours, and what reads it saves it; nothing else is.
    let own = x.ty().bytes("x").unwrap().rounded();
    assert!(declared == in_use || declared == in_use + own, "{declared} declared, {in_use} in use");
}

#[test]
fn of_a_multilayer_perceptron() {
    check("mlp", nets::mlp, "1TiB", || rows([16, 32]));
}

#[test]
fn of_a_resnet_of_20_layers() {
    check("resnet20", nets::resnet20, "1TiB", || image([2, 16, 16, 3]));
}

#[test]
fn of_a_gpt_of_6_layers() {
    check("gpt", nets::gpt, "1TiB", || ids([2, 16], 50));
}

#[test]
fn of_a_gated_recurrent_unit() {
    // With room for more, what is expensive in an iteration is saved besides.
    check("gru", nets::gru, "least", || rows([512, 4, 8]));
}

#[test]
fn of_an_embedding_recommender() {
    check("recommender", nets::recommender, "1TiB", || ids([8, 4], 1000));
}
