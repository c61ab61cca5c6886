//! Optimizers: what a gradient does to variables.
//!
//! An [`Optimizer`] is a [`Rule`] and all that rules share. Inside of a function its updates are part of the planned
//! program, in place: an optimizer's state is in the plan before the first step, and in the ledger under its own
//! kind. A gradient that is rows changes just those rows of the variable and of the state.

mod adadelta;
mod adafactor;
mod adagrad;
mod adam;
mod adam8;
mod adamax;
mod blocks;
mod ftrl;
mod lion;
mod nadam;
mod rmsprop;
mod rows;
mod rule;
mod scale;
mod schedule;
mod sgd;
mod state;

pub use adadelta::Adadelta;
pub use adafactor::Adafactor;
pub use adagrad::Adagrad;
pub use adam::Adam;
pub use adam8::Adam8Bit;
pub use adamax::Adamax;
pub(crate) use blocks::SummedGradient;
pub use ftrl::Ftrl;
pub use lion::Lion;
pub use nadam::Nadam;
pub use rmsprop::RmsProp;
pub use rule::{ByRows, Next, Now, Rule, Slot};
pub use scale::LossScale;
pub use schedule::Schedule;
pub use sgd::Sgd;

use std::sync::{Mutex, MutexGuard, PoisonError};

use tonnage_core::error::bad_argument;
use tonnage_core::{Bytes, DType, Result, Source, World};

use crate::ops::Elementwise;
use crate::tape::Gradient;
use crate::tensor::Tensor;
use crate::variable::Variable;
use rows::RowSums;
use state::{OptimizerState, Slots};

/// Updates variables from their gradients.
///
/// ```
/// use tonnage::optim::Optimizer;
/// use tonnage::{Elementwise, GradientTape, Tensor, Variable, function, tensor};
/// let w = Variable::new("w", tensor([0.0f32, 0.0])?)?;
/// let optimizer = Optimizer::adam(0.1);
/// let step = function(|goal: Tensor| {
///     let mut tape = GradientTape::new();
///     let loss = (w.read()? - &goal)?.square()?.sum_all()?;
///     optimizer.apply([&w], &[tape.gradient(&loss, &w)?])?;
///     Ok(loss)
/// });
/// let goal = tensor([1.0f32, -2.0])?;
/// for _ in 0..200 {
///     step.call(goal.clone())?;
/// }
/// assert!(step.call(goal)?.scalar::<f32>()? < 1e-4);
/// # Ok::<(), tonnage::Error>(())
/// ```
pub struct Optimizer {
    rule: Box<dyn Rule>,
    schedule: Schedule,
    decay: Option<Decay>,
    clip: Option<Clip>,
    averages: Option<f64>,
    master: bool,
    state: Mutex<OptimizerState>,
}

/// A pull of every variable to 0.
struct Decay {
    amount: f64,
    /// Whether it goes the gradient's way through the rule.
    in_gradient: bool,
    only: Box<dyn Fn(&Variable) -> bool + Send + Sync>,
}

/// What the step of one variable starts from, besides its gradient.
#[derive(Clone, Copy)]
struct OneStep<'a> {
    variable: &'a Variable,
    slots: &'a Slots,
    rate: &'a Tensor,
    number: &'a Tensor,
    source: Source,
}

impl OneStep<'_> {
    /// What is stepped: the copy in f32, where there is one.
    fn stepped(&self) -> &Variable {
        self.slots.master.as_ref().unwrap_or(self.variable)
    }
}

#[derive(Debug, Clone, Copy)]
enum Clip {
    Value(f64),
    Norm(f64),
    GlobalNorm(f64),
}

impl Optimizer {
    /// One of a rule and a learning rate: a number, or a [`Schedule`].
    pub fn new(rule: impl Rule + 'static, rate: impl Into<Schedule>) -> Optimizer {
        Optimizer {
            rule: Box::new(rule),
            schedule: rate.into(),
            decay: None,
            clip: None,
            averages: None,
            master: false,
            state: Mutex::default(),
        }
    }

    /// Steps against the gradient.
    pub fn sgd(rate: impl Into<Schedule>) -> Optimizer {
        Optimizer::new(Sgd::default(), rate)
    }

    /// [`Adam`] with its usual numbers.
    pub fn adam(rate: impl Into<Schedule>) -> Optimizer {
        Optimizer::new(Adam::default(), rate)
    }

    /// [`Adam`] with [`Optimizer::weight_decay`].
    pub fn adamw(rate: impl Into<Schedule>, decay: f64) -> Optimizer {
        Optimizer::adam(rate).weight_decay(decay)
    }

    /// Pulls every variable to 0 by `rate * amount` of itself at each step, apart from its gradient. Of a gradient that is
    /// rows, those rows alone.
    pub fn weight_decay(mut self, amount: f64) -> Optimizer {
        self.decay = Some(Decay { amount, in_gradient: false, only: Box::new(|_| true) });
        self
    }

    /// Adds `amount` times every variable to its gradient: the gradient of `amount / 2` times its square.
    pub fn l2(mut self, amount: f64) -> Optimizer {
        self.decay = Some(Decay { amount, in_gradient: true, only: Box::new(|_| true) });
        self
    }

    /// Pulls only these variables to 0; biases and scales are often left alone.
    ///
    /// ```
    /// use tonnage::optim::Optimizer;
    /// let optimizer = Optimizer::adamw(1e-3, 0.01).decay_only(|v| v.ty().shape.rank() > 1);
    /// ```
    pub fn decay_only(
        mut self,
        only: impl Fn(&Variable) -> bool + Send + Sync + 'static,
    ) -> Optimizer {
        if let Some(decay) = &mut self.decay {
            decay.only = Box::new(only);
        }
        self
    }

    /// Keeps every element of every gradient between `-most` and `most`.
    pub fn clip_by_value(mut self, most: f64) -> Optimizer {
        self.clip = Some(Clip::Value(most));
        self
    }

    /// Keeps the norm of every gradient at `most`.
    pub fn clip_by_norm(mut self, most: f64) -> Optimizer {
        self.clip = Some(Clip::Norm(most));
        self
    }

    /// Keeps the norm of all gradients together at `most`.
    pub fn clip_by_global_norm(mut self, most: f64) -> Optimizer {
        self.clip = Some(Clip::GlobalNorm(most));
        self
    }

    /// Keeps a running mean of every variable, in which the old has a share of `decay`: [`Optimizer::average`].
    pub fn averages(mut self, decay: f64) -> Optimizer {
        self.averages = Some(decay);
        self
    }

    /// Keeps an f32 copy of variables of 16 bits, which is what is stepped: small steps are not lost to rounding.
    pub fn master_weights(mut self) -> Optimizer {
        self.master = true;
        self
    }

    /// Makes the state for these variables: zeros that take no bytes before the first step writes them. [`Optimizer::apply`]
    /// does it where it was not done.
    #[track_caller]
    pub fn build<'v>(&self, variables: impl IntoIterator<Item = &'v Variable>) -> Result<()> {
        let source = Source::here();
        self.check().map_err(|e| e.at(source))?;
        let mut state = self.state();
        state.steps(source)?;
        if let Schedule::Constant(rate) = self.schedule {
            state.rate(rate, source)?;
        }
        for variable in variables {
            self.slots(&mut state, variable, source)?;
        }
        Ok(())
    }

    /// Makes one step: each variable changes by its gradient. One that is not connected is left alone.
    ///
    /// # Errors
    /// Where there are not as many gradients as variables, a gradient does not have its variable's shape, or a number of the
    /// optimizer makes no sense.
    #[track_caller]
    pub fn apply<'v>(
        &self,
        variables: impl IntoIterator<Item = &'v Variable>,
        gradients: &[Gradient],
    ) -> Result<()> {
        let source = Source::here();
        let variables: Vec<&Variable> = variables.into_iter().collect();
        self.check_step(&variables, gradients).map_err(|e| e.at(source))?;
        let gradients: Vec<_> = gradients.iter().cloned().map(SummedGradient::Whole).collect();
        let world = World::alone();
        let step = || self.step(&variables, &gradients, &world, source);
        source.stand_for(step).map_err(|e| e.at(source))
    }

    /// One step from gradients of all ranks. Of variables with a [block](SummedGradient::Block), or with state in blocks, each rank steps its own.
    fn step(
        &self,
        variables: &[&Variable],
        gradients: &[SummedGradient],
        world: &World,
        source: Source,
    ) -> Result<()> {
        let gradients = self.clipped(gradients, world)?;
        let mut state = self.state();
        let before = state.steps(source)?.read()?.cast(DType::F64)?;
        let rate = match &self.schedule {
            Schedule::Constant(rate) => state.rate(*rate, source)?.read()?,
            other => other.at(&before)?,
        };
        let number = before.add(1.0)?;
        for (variable, gradient) in variables.iter().zip(&gradients) {
            if gradient.is_unconnected() {
                continue;
            }
            let slots = self.slots(&mut state, variable, source)?;
            let step = OneStep { variable, slots: &slots, rate: &rate, number: &number, source };
            match gradient.of_block(&slots, world)? {
                Some((block, world)) => self.step_block(&step, block, &world)?,
                None => self.step_one(&step, &gradient.whole(world)?)?,
            }
        }
        state.steps(source)?.assign_add(&crate::make::full(1, DType::I64, ())?)
    }

    /// One variable's step. What was read is released before it is written, so that eager mode writes in place too.
    fn step_one(&self, step: &OneStep<'_>, gradient: &Gradient) -> Result<()> {
        let OneStep { variable, slots, source, .. } = *step;
        let dtype = computed_in(variable.ty().dtype);
        let rows = match (gradient, self.rule.by_rows()) {
            (Gradient::Rows(rows), ByRows::Terms)
                if self.decay_of(variable).is_none()
                    && slots.is_empty()
                    && dtype == variable.ty().dtype =>
            {
                return variable.assign_sub(&rows.scale(&step.rate.cast(dtype)?)?);
            }
            (Gradient::Rows(rows), ByRows::Terms | ByRows::Sums) => {
                RowSums::of(rows, variable, source)?
            }
            _ => None,
        };
        match rows {
            None => {
                let gradient = gradient.tensor()?.cast(dtype)?;
                self.step_parts(step, gradient, &Variable::read, &Variable::assign)?;
            }
            Some(rows) => {
                for piece in rows.pieces() {
                    let piece = piece?;
                    let gradient = piece.sums.clone().cast(dtype)?;
                    let read = |variable: &Variable| piece.read(variable);
                    let write = |to: &Variable, rows: &Tensor| piece.write(to, rows);
                    self.step_parts(step, gradient, &read, &write)?;
                }
            }
        }
        self.step_average(step, &Variable::read, &Variable::assign)
    }

    /// The step of what `part` reads of a variable and its state, and `write` writes.
    fn step_parts(
        &self,
        step: &OneStep<'_>,
        mut gradient: Tensor,
        part: &dyn Fn(&Variable) -> Result<Tensor>,
        write: &dyn Fn(&Variable, &Tensor) -> Result<()>,
    ) -> Result<()> {
        let OneStep { variable, slots, rate, number, .. } = *step;
        let dtype = computed_in(variable.ty().dtype);
        let (rate, number) = (rate.cast(dtype)?, number.cast(dtype)?);
        let next = {
            let mut value = part(step.stepped())?.cast(dtype)?;
            if let Some(decay) = self.decay_of(variable) {
                match decay.in_gradient {
                    true => gradient = value.fma(decay.amount, &gradient)?,
                    false => value = value.mul(rate.mul(-decay.amount)?.add(1.0)?)?,
                }
            }
            let rule_slots = slots.rule_slots.iter().map(part).collect::<Result<Vec<_>>>()?;
            let now = Now {
                value: &value,
                gradient: &gradient,
                slots: &rule_slots,
                rate: &rate,
                step: &number,
            };
            self.rule.step(&now)?
        };
        let write = |to: &Variable, value: &Tensor| write(to, &value.cast(to.ty().dtype)?);
        write(variable, &next.value)?;
        if let Some(master) = &slots.master {
            write(master, &next.value)?;
        }
        slots.rule_slots.iter().zip(&next.slots).try_for_each(|(slot, value)| write(slot, value))
    }

    /// The running mean of a variable that was stepped.
    fn step_average(
        &self,
        step: &OneStep<'_>,
        read: &dyn Fn(&Variable) -> Result<Tensor>,
        write: &dyn Fn(&Variable, &Tensor) -> Result<()>,
    ) -> Result<()> {
        let (Some(average), Some(share)) = (&step.slots.average, self.averages) else {
            return Ok(());
        };
        let value = read(step.stepped())?.cast(computed_in(step.variable.ty().dtype))?;
        write(average, &rule::mean(&read(average)?, &value, share)?)
    }

    fn decay_of(&self, variable: &Variable) -> Option<&Decay> {
        self.decay.as_ref().filter(|decay| (decay.only)(variable))
    }

    /// Steps that were made.
    #[track_caller]
    pub fn steps(&self) -> Result<u64> {
        let steps = self.state().steps(Source::here())?;
        Ok(steps.read()?.scalar::<i64>()?.max(0) as u64)
    }

    /// The learning rate of the next step.
    #[track_caller]
    pub fn rate(&self) -> Result<f64> {
        match &self.schedule {
            Schedule::Constant(rate) => self.state().rate(*rate, Source::here())?.read()?.scalar(),
            other => other.rate(self.steps()?),
        }
    }

    /// Changes a constant learning rate, without tracing anything again.
    ///
    /// # Errors
    /// Where a schedule gives the rate, or the rate makes no sense.
    #[track_caller]
    pub fn set_rate(&self, rate: f64) -> Result<()> {
        let source = Source::here();
        let Schedule::Constant(first) = self.schedule else {
            let what = format!("the rate is given by {:?}", self.schedule);
            let help = "use a constant rate, or another schedule from the start";
            return Err(bad_argument("set_rate", what, help).at(source));
        };
        Schedule::Constant(rate).check().map_err(|e| e.at(source))?;
        self.state().rate(first, source)?.assign(&crate::make::tensor(rate)?)
    }

    /// The running mean of a variable, where [`Optimizer::averages`] keeps one.
    pub fn average(&self, variable: &Variable) -> Option<Variable> {
        self.state().of(variable)?.average.clone()
    }

    /// All of the state, in the order of its making: what a checkpoint of training holds beside the variables.
    pub fn variables(&self) -> Vec<Variable> {
        self.state().variables()
    }

    /// Bytes of state for these variables once a step was made.
    pub fn bytes<'v>(&self, variables: impl IntoIterator<Item = &'v Variable>) -> Result<Bytes> {
        let mut total = Bytes::ZERO;
        for variable in variables {
            let (rule_slots, copies) = self.wanted(variable);
            for slot in rule_slots.into_iter().chain(copies.into_iter().flatten()) {
                total += slot.ty.bytes("optimizer")?.rounded();
            }
        }
        Ok(total)
    }

    fn state(&self) -> MutexGuard<'_, OptimizerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self) -> Result<()> {
        self.rule.check()?;
        self.schedule.check()?;
        if let Some(decay) = &self.decay {
            rule::positive("optimizer", "the decay", decay.amount)?;
        }
        if let Some(Clip::Value(most) | Clip::Norm(most) | Clip::GlobalNorm(most)) = self.clip {
            rule::positive("optimizer", "the clipping bound", most)?;
        }
        match self.averages {
            Some(share) => rule::share("optimizer", "the averages' decay", share),
            None => Ok(()),
        }
    }

    fn check_step(&self, variables: &[&Variable], gradients: &[Gradient]) -> Result<()> {
        self.check()?;
        if variables.len() != gradients.len() {
            let (v, g) = (variables.len(), gradients.len());
            let what = format!("{v} variables and {g} gradients");
            return Err(bad_argument("apply", what, "give one gradient for each variable"));
        }
        for (variable, gradient) in variables.iter().zip(gradients) {
            let given = match gradient {
                Gradient::Dense(tensor) => tensor.shape(),
                Gradient::Rows(rows) => rows.ty().shape.clone(),
                Gradient::Unconnected => continue,
            };
            let ty = variable.ty();
            if given != ty.shape || !ty.dtype.is_float() {
                let what = format!("`{}` is {ty}, its gradient is {given}", variable.name());
                let help = "a variable of floats takes a gradient of its own shape";
                return Err(bad_argument("apply", what, help));
            }
        }
        Ok(())
    }
}

/// The dtype that a step is computed in.
fn computed_in(dtype: DType) -> DType {
    if dtype.size() < 4 { DType::F32 } else { dtype }
}

impl std::fmt::Debug for Optimizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Optimizer({}, {:?})", self.rule.name(), self.schedule)
    }
}
