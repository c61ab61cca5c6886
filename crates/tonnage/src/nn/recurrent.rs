//! Layers that go along a sequence `[batch, time, features]`, as loops: an iteration is planned once, and the gradient of a long
//! sequence checkpoints a few states and recomputes the rest.

use tonnage_core::error::bad_argument;
use tonnage_core::{DType, Dim, Result, Shape, Source, TensorType};

use super::init::Initializer;
use super::param::Param;
use super::{Layer, Mode, width};
use crate::control::scan;
use crate::make;
use crate::ops::{Elementwise, concat};
use crate::parameters;
use crate::tensor::Tensor;

/// What happens at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecurrentCell {
    Simple,
    Gru,
    Lstm,
}

impl RecurrentCell {
    /// Numbers computed for each unit.
    fn gates(self) -> usize {
        match self {
            RecurrentCell::Simple => 1,
            RecurrentCell::Gru => 3,
            RecurrentCell::Lstm => 4,
        }
    }
}

/// A layer that carries a state along a sequence. It gives the last state `[batch, units]`, or with
/// [`sequences`](Recurrent::sequences) the state at every time.
///
/// ```
/// use tonnage::nn::{Layer, Mode, Recurrent};
/// let x = tonnage::zeros([2, 9, 4])?;
/// assert_eq!(Recurrent::gru(8).forward(&x, Mode::Inference)?.shape().to_string(), "[2, 8]");
/// let all = Recurrent::lstm(8).sequences().forward(&x, Mode::Inference)?;
/// assert_eq!(all.shape().to_string(), "[2, 9, 8]");
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug)]
pub struct Recurrent {
    cell: RecurrentCell,
    units: usize,
    sequences: bool,
    backwards: bool,
    kernel: Param,
    recurrent: Param,
    bias: Param,
    recurrent_bias: Option<Param>,
}

parameters!(Recurrent { kernel, recurrent, bias, recurrent_bias });

impl Recurrent {
    /// `h <- tanh(x @ kernel + h @ recurrent + bias)`
    #[track_caller]
    pub fn simple(units: usize) -> Recurrent {
        Recurrent::made(RecurrentCell::Simple, units)
    }

    /// Cho et al. 2014, with the reset gate on what comes out of the recurrent kernel:
    /// `r, z = sigmoid(..)`, `n = tanh(x @ kernel + r * (h @ recurrent + bias))`, `h <- (1 - z) * n + z * h`.
    #[track_caller]
    pub fn gru(units: usize) -> Recurrent {
        let bias = Param::new("gru/recurrent_bias", Initializer::Zeros);
        Recurrent { recurrent_bias: Some(bias), ..Recurrent::made(RecurrentCell::Gru, units) }
    }

    /// Hochreiter and Schmidhuber 1997, with a forget gate: `i, f, o = sigmoid(..)`, `g = tanh(..)`, `c <- f * c + i * g`,
    /// `h <- o * tanh(c)`.
    #[track_caller]
    pub fn lstm(units: usize) -> Recurrent {
        Recurrent::made(RecurrentCell::Lstm, units)
    }

    #[track_caller]
    fn made(cell: RecurrentCell, units: usize) -> Recurrent {
        Recurrent {
            cell,
            units,
            sequences: false,
            backwards: false,
            kernel: Param::new("recurrent/kernel", Initializer::GlorotUniform),
            recurrent: Param::new("recurrent/recurrent", Initializer::GlorotUniform),
            bias: Param::new("recurrent/bias", Initializer::Zeros),
            recurrent_bias: None,
        }
    }

    /// Gives the state at every time.
    #[must_use]
    pub fn sequences(self) -> Recurrent {
        Recurrent { sequences: true, ..self }
    }

    /// Goes from the end to the start; states stand at their times.
    #[must_use]
    pub fn backwards(self) -> Recurrent {
        Recurrent { backwards: true, ..self }
    }

    /// The next state, and what is carried beside it.
    fn step(&self, weights: &[Tensor], x: &Tensor, h: Tensor, c: Tensor) -> Result<[Tensor; 2]> {
        let input = x.matmul(&weights[0])?.add(&weights[2])?;
        let inner = h.matmul(&weights[1])?;
        match self.cell {
            RecurrentCell::Simple => Ok([input.add(inner)?.tanh()?, c]),
            RecurrentCell::Gru => {
                let inner = inner.add(&weights[3])?;
                let (x, u) = (input.split_evenly(3, 1)?, inner.split_evenly(3, 1)?);
                let r = x[0].add(&u[0])?.sigmoid()?;
                let z = x[1].add(&u[1])?.sigmoid()?;
                let n = x[2].add(r.mul(&u[2])?)?.tanh()?;
                Ok([h.sub(&n)?.mul(&z)?.add(&n)?, c])
            }
            RecurrentCell::Lstm => {
                let gates = input.add(inner)?.split_evenly(4, 1)?;
                let [i, f, o] = [&gates[0], &gates[1], &gates[3]].map(|gate| gate.sigmoid());
                let c = f?.mul(&c)?.add(i?.mul((&gates[2]).tanh()?)?)?;
                Ok([o?.mul((&c).tanh()?)?, c])
            }
        }
    }
}

impl Layer for Recurrent {
    fn is_user_code(&self) -> bool {
        false
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        Source::here().stand_for(|| self.along(x))
    }
}

impl Recurrent {
    /// All of the sequence.
    fn along(&self, x: &Tensor) -> Result<Tensor> {
        let (into, dtype, shape) = (width("recurrent", x)?, x.dtype(), x.shape());
        let [batch, _, _] = &shape[..] else {
            let what = format!("an input of {shape}");
            return Err(bad_argument("recurrent", what, "give [batch, time, features]"));
        };
        let wide = self.cell.gates() * self.units;
        let mut weights = vec![
            self.kernel.read(&[into, wide], dtype)?,
            self.recurrent.read(&[self.units, wide], dtype)?,
            self.bias.read(&[wide], dtype)?,
        ];
        if let Some(bias) = &self.recurrent_bias {
            weights.push(bias.read(&[wide], dtype)?);
        }
        let h = state(batch, self.units, dtype)?;
        // Only an LSTM carries a second state.
        let c = state(batch, if self.cell == RecurrentCell::Lstm { self.units } else { 0 }, dtype)?;
        let mut times = x.transpose(&[1, 0, 2])?;
        if self.backwards {
            times = times.reverse([0])?;
        }
        if !self.sequences {
            let ((h, _), ()) = scan((h, c), times, |(h, c): (Tensor, Tensor), x: Tensor| {
                let [h, c] = self.step(&weights, &x, h, c)?;
                Ok(((h, c), ()))
            })?;
            return Ok(h);
        }
        let (_, all) = scan((h, c), times, |(h, c): (Tensor, Tensor), x: Tensor| {
            let [h, c] = self.step(&weights, &x, h, c)?;
            Ok(((h.clone(), c), h))
        })?;
        let all = if self.backwards { all.reverse([0])? } else { all };
        all.transpose(&[1, 0, 2])
    }
}

/// Zeros for a batch whose size may be open.
fn state(batch: &Dim, units: usize, dtype: DType) -> Result<Tensor> {
    let shape: Shape = [batch.clone(), Dim::Known(units)].into_iter().collect();
    make::zeros_of(&TensorType::new(dtype, shape), Source::here())
}

/// One layer from the start and one from the end; what they give stands side by side on the last axis.
#[derive(Debug)]
pub struct Bidirectional {
    forwards: Recurrent,
    backwards: Recurrent,
}

impl Bidirectional {
    /// Of two layers of the same kind.
    pub fn new(forwards: Recurrent, backwards: Recurrent) -> Bidirectional {
        Bidirectional { forwards, backwards: backwards.backwards() }
    }
}

parameters!(Bidirectional { forwards, backwards });

impl Layer for Bidirectional {
    fn is_user_code(&self) -> bool {
        false
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let sides = [self.forwards.forward(x, mode)?, self.backwards.forward(x, mode)?];
        concat(&[&sides[0], &sides[1]], -1)
    }
}
