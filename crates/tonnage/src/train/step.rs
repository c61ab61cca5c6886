//! One step of training: forward, backward, update; whole, or its gradient in parts that are added up.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tonnage_core::error::bad_argument;
use tonnage_core::{Error, ErrorKind, Result, Source};

use super::checkpoint::of_model;
use crate::make;
use crate::nn::{Layer, Mode};
use crate::ops::Elementwise;
use crate::optim::{LossScale, Optimizer};
use crate::tape::{Gradient, GradientTape, finite};
use crate::tensor::Tensor;
use crate::variable::{Role, Variable};

/// Rows to learn from: what goes in, and what should come out.
pub(super) type Batch = (Tensor, Tensor);

/// What the assertion in a step calls the loss.
const THE_LOSS: &str = "the loss";

/// All that a step is made of.
pub(super) struct Step<'a, M, L> {
    pub model: &'a M,
    pub optimizer: &'a Optimizer,
    pub loss: &'a L,
    pub scale: Option<&'a LossScale>,
    /// How many parts make one step.
    pub parts: usize,
    pub source: Source,
    /// Sums of gradients, where there are several parts.
    pub sums: Mutex<Vec<Variable>>,
}

impl<M: Layer, L: Fn(&Tensor, &Tensor) -> Result<Tensor>> Step<'_, M, L> {
    /// A step from one batch.
    pub fn whole(&self, batch: Batch) -> Result<Tensor> {
        let (loss, variables, gradients) = self.gradients(batch)?;
        self.source.stand_for(|| self.apply(&variables, &gradients))?;
        Ok(loss)
    }

    /// A part of a step: its share of the gradient is added to the sums.
    pub fn part(&self, batch: Batch) -> Result<Tensor> {
        let (loss, variables, gradients) = self.gradients(batch)?;
        self.source.stand_for(|| {
            let mut sums = self.sums();
            for (i, (variable, gradient)) in variables.iter().zip(&gradients).enumerate() {
                if i == sums.len() {
                    let (ty, name) = (variable.ty(), format!("{}/gradient", variable.name()));
                    let zeros = make::zeros_of(&ty, self.source)?;
                    sums.push(Variable::new_at(&name, zeros, Role::Fixed, self.source)?);
                }
                if !gradient.is_unconnected() {
                    sums[i].assign_add(&gradient.tensor()?.div(self.parts as f64)?)?;
                }
            }
            Ok(loss)
        })
    }

    /// The end of a step in parts: the update, and sums of 0.
    pub fn end(&self) -> Result<()> {
        self.source.stand_for(|| {
            let sums = self.sums();
            let gradients = sums
                .iter()
                .map(|sum| sum.read().map(Gradient::Dense))
                .collect::<Result<Vec<_>>>()?;
            self.apply(&self.model.trainable(), &gradients)?;
            sums.iter().try_for_each(|sum| sum.assign(&make::zeros_of(&sum.ty(), self.source)?))
        })
    }

    /// Gives parameters that are still recipes their bytes. A part of a step only reads them, and would have two plans: one before the
    /// first step, and one after.
    pub fn write_out(&self) -> Result<()> {
        let zeros = |variable: &Variable| make::zeros_of(&variable.ty(), self.source);
        let all = self.model.trainable();
        all.iter().try_for_each(|variable| match variable.read()?.is_recipe() {
            true => variable.assign_add(&zeros(variable)?),
            false => Ok(()),
        })
    }

    fn gradients(&self, (x, y): Batch) -> Result<(Tensor, Vec<Variable>, Vec<Gradient>)> {
        let mut tape = GradientTape::new();
        let losses = (self.loss)(&self.model.forward(&x, Mode::Training)?, &y)?;
        self.source.stand_for(|| {
            let loss = losses.mean_all()?;
            // Updates stand behind what can fail: where the loss is no number, parameters are as before the step.
            loss.check_finite(THE_LOSS)?;
            let goal = match self.scale {
                Some(scale) => scale.scale(&loss)?,
                None => loss.clone(),
            };
            let variables = self.model.trainable();
            let gradients = tape.gradient(&goal, &variables)?;
            Ok((loss, variables, gradients))
        })
    }

    fn apply(&self, variables: &[Variable], gradients: &[Gradient]) -> Result<()> {
        match self.scale {
            Some(scale) => scale.apply(self.optimizer, variables, gradients).map(|_| ()),
            None => self.optimizer.apply(variables, gradients),
        }
    }

    fn sums(&self) -> MutexGuard<'_, Vec<Variable>> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that training goes on from, by names that do not depend on where it was made.
    pub fn named(&self) -> Vec<(String, Variable)> {
        let of_optimizer = self.optimizer.variables().into_iter().enumerate();
        let of_optimizer = of_optimizer.map(|(i, v)| (format!("optimizer.{i}.{}", v.name()), v));
        let of_scale = self.scale.iter().flat_map(|scale| scale.variables());
        let of_scale = of_scale.map(|v| (v.name().to_string(), v));
        of_model(self.model).into_iter().chain(of_optimizer).chain(of_scale).collect()
    }

    /// Says where a loss that is no number comes from: parameters that an earlier step left so, or else the first result in
    /// the way forward, which is gone again op by op.
    pub fn explained(&self, error: Error, step: u64, batch: Batch) -> Error {
        let ErrorKind::Asserted { what } = error.kind() else { return error };
        if !what.starts_with(&format!("`{THE_LOSS}`")) {
            return error;
        }
        let (x, y) = batch;
        let given = [("what goes in", &x), ("what should come out", &y)];
        let given = given.into_iter().find(|(_, tensor)| is_bad(tensor));
        let own = || self.named().into_iter().find(|(_, v)| v.read().is_ok_and(|v| is_bad(&v)));
        let which = if let Some((name, tensor)) = given {
            format!("{name}, {}, is not finite", tensor.ty())
        } else if let Some((name, _)) = own() {
            format!("`{name}` is not finite since the step before")
        } else {
            let again = || -> Result<()> {
                let _tape = GradientTape::new();
                (self.loss)(&self.model.forward(&x, Mode::Training)?, &y)?.mean_all()?;
                Ok(())
            };
            match finite::first_not_finite(again) {
                Some(first) => format!("{first} is the first that is not finite"),
                None => "computed again, with other random numbers, all is finite".into(),
            }
        };
        let what = format!("the loss of step {step} is not finite; {which}");
        let help = "use a lower rate or clip gradients; the last checkpoint is kept";
        bad_argument("fit", what, help)
    }
}

/// Whether something in it is not finite.
fn is_bad(tensor: &Tensor) -> bool {
    let all = || tensor.is_finite()?.all(crate::Axes::ALL)?.scalar::<bool>();
    tensor.dtype().is_float() && !all().unwrap_or(true)
}
