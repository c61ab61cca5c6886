//! Nodes run in the order that takes the least memory, and updates still come when they should.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{
    Bytes, DType, Elementwise, GradientTape, Kind, Plan, Result, Tensor, Variable, Watched,
    function, random_normal, tensor,
};

use crate::common::{call_checked, own_context};

fn large() -> Tensor {
    let values = random_normal([128, 128], DType::F32).unwrap().to_vec::<f32>().unwrap();
    tensor(values).unwrap().reshape([128, 128]).unwrap()
}

/// The largest workspace of a kernel.
fn scratch(plan: &Plan) -> Bytes {
    let kernels = plan.buffers.iter().filter(|b| b.kind == Kind::Scratch);
    kernels.map(|b| b.bytes).max().unwrap()
}

/// Eight products first, then what is made of each: as people write it.
fn wide(x: Tensor, w: Tensor) -> Result<Tensor> {
    let products =
        (0..8).map(|i| (&x * f64::from(i))?.matmul(&w)).collect::<Result<Vec<Tensor>>>()?;
    let mut total = tonnage::zeros([128])?;
    for product in &products {
        total = (total + product.max([1])?)?;
    }
    Ok(total)
}

#[test]
fn what_is_made_early_and_read_late_is_made_late() {
    let _context = own_context();
    let f = function(|(x, w): (Tensor, Tensor)| wide(x, w));
    let args = (large(), large());
    let plan = f.plan(&args).unwrap();
    let one = Bytes::of(128 * 128 * 4).rounded();
    // A product, what it is made of, and what matmul packs; not eight products.
    assert!(plan.bound.get() <= one.get() * 3 + scratch(&plan).get(), "{plan}");
    let got = call_checked(&f, &args);
    let expected = wide(args.0.clone(), args.1.clone()).unwrap();
    assert_eq!(got.to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());
}

#[test]
fn an_update_comes_after_every_read_of_what_was_there() {
    let _context = own_context();
    let v = Variable::new("v", large()).unwrap();
    let before = v.read().unwrap().to_vec::<f32>().unwrap();
    let variable = v.clone();
    // The reads are written last but one and large: an order that looked at bytes alone would update first.
    let f = function(move |x: Tensor| {
        let old = variable.read()?;
        let product = old.matmul(&x)?;
        let most = product.max([1])?;
        variable.assign_add(&x)?;
        let new = variable.read()?.sum_all()?;
        Ok((most, new))
    });
    let x = large();
    let (most, new) = f.call(x.clone()).unwrap();
    let old = tensor(before.clone()).unwrap().reshape([128, 128]).unwrap();
    let expected = old.matmul(&x).unwrap().max([1]).unwrap();
    assert_eq!(most.to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());
    let expected = (&old + &x).unwrap().sum_all().unwrap();
    assert_eq!(new.to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());
}

#[test]
fn gradients_are_applied_as_soon_as_they_are_complete() {
    let _context = own_context();
    let held: Vec<Variable> =
        (0..6).map(|i| Variable::new(&format!("w{i}"), large()).unwrap()).collect();
    let step = function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        let mut h = x.clone();
        for w in &held {
            h = h.matmul(&w.read()?)?.tanh()?;
        }
        let loss = h.square()?.sum_all()?;
        let sources: Vec<&dyn Watched> = held.iter().map(|w| w as &dyn Watched).collect();
        let grads = tape.gradient(&loss, &sources)?;
        for (w, g) in held.iter().zip(grads) {
            w.assign_sub(&(g.tensor()? * 0.01)?)?;
        }
        Ok(loss)
    });
    let x = large();
    let plan = step.plan(&x).unwrap();
    let one = Bytes::of(128 * 128 * 4).rounded();
    // Six activations, the gradient in the backward pass and one of a weight: not one gradient a weight.
    assert!(plan.bound.get() <= one.get() * 8 + scratch(&plan).get(), "{plan}");
    call_checked(&step, &x);
}
