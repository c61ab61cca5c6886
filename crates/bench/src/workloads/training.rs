//! What workloads share: a planned function over its arguments, and a training step of a model.

use std::rc::Rc;

use tonnage::nn::{Layer, Mode, Parameters};
use tonnage::optim::Optimizer;
use tonnage::{
    DType, Elementwise, Function, GradientTape, Result, Tensor, Tree, function, memory, tensor,
};

use crate::measure::PreparedWorkload;

/// A function called with the same arguments every time.
pub fn planned<A, R, F>(
    f: Function<A, R, F>,
    args: A,
    budget: Option<&str>,
) -> Result<PreparedWorkload>
where
    A: Tree + Clone + 'static,
    R: Tree + 'static,
    F: Fn(A) -> Result<R> + 'static,
{
    let f = match budget {
        Some(budget) => f.budget(budget)?,
        None => f,
    };
    let f = Rc::new(f);
    // Whatever lies on a device.
    let mut place = "cpu:0".to_string();
    args.for_each(&mut |leaf| place = leaf.device().to_string());
    let (planned, known) = (f.clone(), args.clone());
    Ok(PreparedWorkload {
        step: Box::new(move || f.call(args.clone()).map(drop)),
        // Results are dropped, so what is in use between steps is state and arguments.
        state: Box::new(move || Ok(memory::info(&place)?.in_use)),
        plan: Some(Box::new(move || planned.plan(&known))),
        calls: 1,
    })
}

/// Forward, backward, update, as one function of a batch. Parameters, and what the optimizer remembers of them, have their
/// first values, as those of the peers have when their first step begins.
pub fn trained<M: Layer + Parameters + 'static>(
    model: M,
    optimizer: Optimizer,
    (x, y): (Tensor, Tensor),
    loss: fn(&Tensor, &Tensor) -> Result<Tensor>,
    budget: Option<&str>,
) -> Result<PreparedWorkload> {
    model.forward(&x.gather(&tensor([0i32])?, 0)?, Mode::Inference)?;
    optimizer.build(&model.trainable())?;
    let all = model.trainable().into_iter().chain(optimizer.variables());
    for variable in all.filter(|variable| variable.ty().dtype.is_float()) {
        variable.assign_add(&tensor(0.0f32)?.cast(variable.ty().dtype)?)?;
    }
    let step = function(move |(x, y): (Tensor, Tensor)| {
        let mut tape = GradientTape::new();
        let loss = loss(&model.forward(&x, Mode::Training)?, &y)?;
        let variables = model.trainable();
        let gradients = tape.gradient(&loss, &variables)?;
        optimizer.apply(&variables, &gradients)?;
        Ok(loss)
    });
    planned(step, (x, y), budget)
}

/// The mean cross-entropy of labels, in f32 whatever the logits are.
pub fn cross_entropy(logits: &Tensor, labels: &Tensor) -> Result<Tensor> {
    logits.cast(DType::F32)?.sparse_cross_entropy(labels)?.mean_all()
}
