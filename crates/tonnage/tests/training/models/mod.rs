//! Model-sized graphs: what is predicted is what is taken, forward and with gradients and updates, and the
//! arena has no gaps.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

mod exact;
mod nets;
mod saved;

use nets::Params;
use tonnage::{
    DType, GradientTape, Plan, Result, Tensor, Variable, Watched, function, random_normal,
    set_seed, tensor,
};

use crate::common::{call_checked, own_context};

type Net = fn(&mut Params, Tensor) -> Result<Tensor>;

fn image(shape: [usize; 4]) -> Tensor {
    let values = random_normal(shape, DType::F32).unwrap().to_vec::<f32>().unwrap();
    tensor(values).unwrap().reshape(shape.map(|n| n as i64)).unwrap()
}

fn rows<const N: usize>(shape: [usize; N]) -> Tensor {
    let values = random_normal(shape, DType::F32).unwrap().to_vec::<f32>().unwrap();
    tensor(values).unwrap().reshape(shape.map(|n| n as i64)).unwrap()
}

fn ids(shape: [usize; 2], below: usize) -> Tensor {
    let values: Vec<i64> = (0..shape[0] * shape[1]).map(|i| (i * 7 % below) as i64).collect();
    tensor(values).unwrap().reshape(shape.map(|n| n as i64)).unwrap()
}

/// No gap that could be closed: the arena is the largest sum that lives together.
#[track_caller]
fn without_gaps(plan: &Plan) {
    assert_eq!(plan.arena, plan.bound.rounded(), "{plan}");
}

#[track_caller]
fn check(net: Net, x: impl FnOnce() -> Tensor) {
    let _context = own_context();
    set_seed(3);
    let x = x();
    let forward = function(move |x: Tensor| net(&mut Params::default(), x));
    // The first call makes the parameters.
    forward.call(x.clone()).unwrap();
    let first = call_checked(&forward, &x).scalar::<f32>().unwrap();
    assert!(first.is_finite());
    without_gaps(&forward.plan(&x).unwrap());

    let step = function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        let mut params = Params::default();
        let loss = net(&mut params, x)?;
        let all: Vec<&dyn Watched> =
            params.all.iter().map(|v: &Variable| v as &dyn Watched).collect();
        let grads = tape.gradient(&loss, &all)?;
        for (variable, grad) in params.all.iter().zip(grads) {
            variable.assign_sub(&(grad.tensor()? * 0.02)?)?;
        }
        Ok(loss)
    });
    let start = step.call(x.clone()).unwrap().scalar::<f32>().unwrap();
    call_checked(&step, &x);
    without_gaps(&step.plan(&x).unwrap());
    let last =
        (0..3).map(|_| step.call(x.clone()).unwrap().scalar::<f32>().unwrap()).last().unwrap();
    assert!(last < start, "{start} became {last}");
}

#[test]
fn a_multilayer_perceptron() {
    check(nets::mlp, || rows([16, 32]));
}

#[test]
fn a_lenet() {
    check(nets::lenet, || image([4, 28, 28, 1]));
}

#[test]
fn a_resnet_of_20_layers() {
    check(nets::resnet20, || image([2, 16, 16, 3]));
}

#[test]
fn a_u_net() {
    check(nets::u_net, || image([1, 16, 16, 3]));
}

#[test]
fn a_mobile_net() {
    check(nets::mobile_net, || image([2, 16, 16, 3]));
}

#[test]
fn a_gpt_of_6_layers() {
    check(nets::gpt, || ids([2, 16], 50));
}

#[test]
fn an_encoder_like_bert() {
    check(nets::bert, || ids([2, 16], 50));
}

#[test]
fn a_gated_recurrent_unit_of_512_steps() {
    check(nets::gru, || rows([512, 4, 8]));
}

#[test]
fn an_embedding_recommender() {
    check(nets::recommender, || ids([8, 4], 1000));
}

#[test]
fn an_autoencoder() {
    check(nets::autoencoder, || rows([16, 32]));
}
