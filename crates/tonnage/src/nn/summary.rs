//! What a model is and what training it takes, as a table.

use std::fmt;

use tonnage_core::{Bytes, Result, Source, TensorType};

use super::{Layer, Mode};
use crate::function::function;
use crate::ops::Elementwise;
use crate::optim::Optimizer;
use crate::tape::{Gradient, GradientTape};
use crate::tensor::Tensor;

/// A model's parameters, and what training it takes by kind. [`summary`] makes it, and it prints as a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Every parameter: where it is, its type, and whether training changes it. Shared ones are there once.
    pub parameters: Vec<(String, TensorType, bool)>,
    /// The input that it is for.
    pub input: TensorType,
    /// Of all parameters, once they are written.
    pub weights: Bytes,
    /// Of the gradients of those that training changes, if all are there at once: an upper bound, since a plan applies each as soon as it is
    /// complete, and one that is rows stays rows.
    pub gradients: Bytes,
    /// The state of the optimizer.
    pub optimizer: Bytes,
    /// What is saved for the backward pass for that input.
    pub activations: Bytes,
    /// The most that forward and backward take together, over parameters and input: what a budget is compared with.
    pub peak: Bytes,
}

/// What a model is and what training it takes for an input, which may be a [`Tensor::spec`]: nothing runs, and no bytes are taken.
///
/// ```
/// use tonnage::nn::{Activation, Dense, Sequential, summary};
/// use tonnage::optim::Optimizer;
/// use tonnage::{DType, Tensor};
/// let model = Sequential::new().then(Dense::new(256)).then(Activation::Relu).then(Dense::new(10));
/// let found = summary(&model, &Optimizer::adam(0.001), &Tensor::spec(DType::F32, [64, 784]))?;
/// assert_eq!(found.count(), 784 * 256 + 256 + 256 * 10 + 10);
/// assert_eq!(found.optimizer, found.weights + found.weights);
/// assert!(found.to_string().contains("0.kernel"));
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where the model does not take that input.
#[track_caller]
pub fn summary<M: Layer>(model: &M, optimizer: &Optimizer, input: &Tensor) -> Result<Summary> {
    let source = Source::here();
    let step = function(|x: Tensor| {
        let mut tape = GradientTape::new();
        let y = model.forward(&x, Mode::Training)?;
        // Of the squares: the gradient of a plain sum would know nothing of what came out.
        let loss = y.square()?.mean_all()?;
        let mut made = Vec::new();
        for gradient in tape.gradient(&loss, &model.trainable())? {
            match gradient {
                Gradient::Dense(tensor) => made.push(tensor),
                Gradient::Rows(rows) => made.extend(rows.parts().map(|(_, rows)| rows.clone())),
                Gradient::Unconnected => {}
            }
        }
        Ok(made)
    });
    let plan = step.plan(input).map_err(|e| e.at(source))?;
    let all = model.parameters();
    let mut gradients = Bytes::ZERO;
    for parameter in all.iter().filter(|p| p.trainable) {
        gradients += parameter.variable.ty().bytes("summary")?.rounded();
    }
    Ok(Summary {
        weights: model.weight_bytes()?,
        gradients,
        optimizer: optimizer.bytes(&model.trainable())?,
        activations: plan.saved_bytes(),
        peak: plan.peak(),
        input: input.ty(),
        parameters: all.into_iter().map(|p| (p.path, p.variable.ty(), p.trainable)).collect(),
    })
}

impl Summary {
    /// How many numbers the parameters are.
    pub fn count(&self) -> u64 {
        self.parameters.iter().map(|(_, ty, _)| count(ty)).sum()
    }
}

fn count(ty: &TensorType) -> u64 {
    ty.shape.count().unwrap_or(0) as u64
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wide = self.parameters.iter().map(|(path, ..)| path.len()).max().unwrap_or(0);
        for (path, ty, trainable) in &self.parameters {
            let fixed = if *trainable { "" } else { "  not trained" };
            let ty_text = ty.to_string();
            writeln!(f, "{path:wide$}  {ty_text:<24} {:>12}{fixed}", count(ty))?;
        }
        writeln!(f, "{} parameters; for an input of {}:", self.count(), self.input)?;
        for (what, bytes) in [
            ("weights", self.weights),
            ("gradients, at most", self.gradients),
            ("optimizer", self.optimizer),
            ("activations saved", self.activations),
            ("peak, both passes", self.peak),
        ] {
            writeln!(f, "  {what:<22} {bytes}")?;
        }
        Ok(())
    }
}
