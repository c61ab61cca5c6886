//! Recurrent layers: LSTM, GRU and the plain one. A loop over time is one op of the plan.

use tonnage::{DType, Dim, Elementwise, Loop, Result, Tensor, TensorType, stack};

use super::Rule;
use super::quantize::dynamic_product;
use crate::call::Call;
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "LSTM" => |c| layer(c, 4, plain(c)?),
        "GRU" => |c| layer(c, 3, plain(c)?),
        "RNN" => |c| layer(c, 1, plain(c)?),
        _ => return None,
    })
}

/// The rule of an op of the domain `com.microsoft`.
pub fn find_microsoft(op: &str) -> Option<Rule> {
    Some(match op {
        "DynamicQuantizeLSTM" => |c| layer(c, 4, quantized(c)?),
        _ => return None,
    })
}

/// Weights of all directions: of the inputs `[directions, inputs, gates * hidden]`, and of the state.
struct Weights {
    inputs: Factor,
    state: Factor,
}

/// Weights, as floats or as bytes that are multiplied as such.
#[derive(Clone)]
struct Factor {
    values: Tensor,
    /// Scale and zero point of bytes, for each column or for all.
    steps: Option<(Tensor, Tensor)>,
}

impl Factor {
    /// That of one direction.
    fn of(&self, direction: usize) -> Result<Factor> {
        let at = |x: &Tensor| one_of(x, direction);
        let steps = match &self.steps {
            Some((scale, zero)) => Some((at(scale)?, at(zero)?)),
            None => None,
        };
        Ok(Factor { values: at(&self.values)?, steps })
    }

    /// `x` times these.
    fn times(&self, x: &Tensor) -> Result<Tensor> {
        match &self.steps {
            None => x.matmul(&self.values),
            Some((scale, zero)) => dynamic_product(x, &self.values, scale, zero),
        }
    }
}

/// What a direction has of a tensor.
fn one_of(x: &Tensor, direction: usize) -> Result<Tensor> {
    let d = direction as i64;
    x.slice(&[(d..d + 1).into()])?.squeeze(0)
}

fn plain(c: &Call) -> Result<Weights> {
    // `[directions, gates * hidden, inputs]` the other way round, written out once where weights are in memory.
    let of = |at: usize| -> Result<Factor> {
        let ty = c.ty(at)?;
        let [directions, gates, inputs] = &ty.shape.iter().cloned().collect::<Vec<_>>()[..] else {
            return Err(c.refuse(format!("weights of {ty}")));
        };
        let shape = [directions, inputs, gates].into_iter().cloned().collect();
        let swapped = TensorType { dtype: ty.dtype, shape };
        let values = c.made(&[at], "gates", swapped, |all| all[0].transpose(&[0, 2, 1]))?;
        Ok(Factor { values, steps: None })
    };
    Ok(Weights { inputs: of(1)?, state: of(2)? })
}

/// Weights of 8 bits, with a scale and a zero for each direction, or for each column of it.
fn quantized(c: &Call) -> Result<Weights> {
    let of = |at: usize, scale: usize| -> Result<Factor> {
        Ok(Factor { values: c.x(at)?, steps: Some((c.x(scale)?, c.x(scale + 1)?)) })
    };
    Ok(Weights { inputs: of(1, 8)?, state: of(2, 10)? })
}

/// An activation with its two numbers.
#[derive(Clone)]
struct Activation {
    name: String,
    alpha: f64,
    beta: f64,
}

impl Activation {
    fn run(&self, c: &Call, x: &Tensor) -> Result<Tensor> {
        match self.name.to_lowercase().as_str() {
            "sigmoid" => x.sigmoid(),
            "tanh" => x.tanh(),
            "relu" => x.relu(),
            "affine" => x.mul(self.alpha)?.add(self.beta),
            "leakyrelu" => x.leaky_relu(self.alpha),
            "thresholdedrelu" => x.greater(self.alpha)?.where_(x, &x.zeros_like()?),
            "scaledtanh" => x.mul(self.beta)?.tanh()?.mul(self.alpha),
            "hardsigmoid" => x.mul(self.alpha)?.add(self.beta)?.clip(0.0, 1.0),
            "elu" => x.elu(self.alpha),
            "softsign" => x.softsign(),
            "softplus" => x.softplus(),
            other => Err(c.refuse(format!("the activation `{other}`"))),
        }
    }
}

/// The numbers of an activation where none are given.
fn usual(name: &str) -> (f64, f64) {
    match name.to_lowercase().as_str() {
        "leakyrelu" => (0.01, 0.0),
        "hardsigmoid" => (0.2, 0.5),
        _ => (1.0, 0.0),
    }
}

fn activations(c: &Call, directions: usize, gates: usize) -> Result<Vec<Activation>> {
    let defaults: &[&str] = match gates {
        4 => &["Sigmoid", "Tanh", "Tanh"],
        3 => &["Sigmoid", "Tanh"],
        _ => &["Tanh"],
    };
    let names = c.texts("activations")?.unwrap_or_else(|| {
        defaults
            .iter()
            .cycle()
            .take(defaults.len() * directions)
            .map(|name| (*name).to_string())
            .collect()
    });
    if names.len() != defaults.len() * directions {
        return Err(c.refuse(format!("{} activations", names.len())));
    }
    let (alphas, betas) = (c.floats("activation_alpha")?, c.floats("activation_beta")?);
    let given = |all: &Option<Vec<f32>>, at: usize| {
        all.as_ref().and_then(|all| all.get(at)).map(|x| f64::from(*x))
    };
    let each = names.into_iter().enumerate().map(|(at, name)| {
        let (alpha, beta) = usual(&name);
        Activation {
            alpha: given(&alphas, at).unwrap_or(alpha),
            beta: given(&betas, at).unwrap_or(beta),
            name,
        }
    });
    Ok(each.collect())
}

/// What one direction needs.
struct Direction {
    /// Of the inputs, `[inputs, gates * hidden]`.
    weights: Factor,
    /// Of the state, `[hidden, gates * hidden]`.
    recurrent: Factor,
    /// Of the inputs and of the state.
    biases: Option<(Tensor, Tensor)>,
    peepholes: Option<Tensor>,
    activations: Vec<Activation>,
    hidden: usize,
    clip: Option<f64>,
    couples: bool,
    linear_before_reset: bool,
}

fn layer(c: &Call, gates: usize, weights: Weights) -> Result<Vec<Value>> {
    let rows_first = c.flag("layout")?;
    let swapped = |x: Tensor| if rows_first { x.transpose(&[1, 0, 2]) } else { Ok(x) };
    let x = swapped(c.x(0)?)?;
    let Weights { inputs: w, state: r } = weights;
    let [steps, batch, _] = c.sizes(&x)?[..] else {
        return Err(c.refuse(format!("an input of {}", x.shape())));
    };
    let directions = c.sizes(&w.values)?[0];
    let hidden = c.sizes(&r.values)?[1];
    let way = c.text("direction", "forward")?;
    if (way == "bidirectional") != (directions == 2) {
        return Err(
            c.refuse(format!("weights for {directions} directions, and the direction `{way}`"))
        );
    }
    let lengths = c.maybe(4)?;
    let all = activations(c, directions, gates)?;
    let start = |input: usize, direction: usize| -> Result<Tensor> {
        match c.maybe(input)? {
            Some(state) => one_of(&swapped(state)?, direction),
            None => tonnage::full(0, x.dtype(), [batch, hidden]),
        }
    };
    let (mut sequences, mut hiddens, mut cells) = (Vec::new(), Vec::new(), Vec::new());
    for d in 0..directions {
        let biases = match c.maybe(3)? {
            Some(b) => {
                let mut halves = one_of(&b, d)?.split_evenly(2, 0)?.into_iter();
                halves.next().zip(halves.next())
            }
            None => None,
        };
        let direction = Direction {
            weights: w.of(d)?,
            recurrent: r.of(d)?,
            biases,
            peepholes: if gates == 4 {
                c.maybe(7)?.map(|p| one_of(&p, d)).transpose()?
            } else {
                None
            },
            activations: all[d * all.len() / directions..][..all.len() / directions].to_vec(),
            hidden,
            clip: c.maybe_float("clip")?,
            couples: c.flag("input_forget")?,
            linear_before_reset: c.flag("linear_before_reset")?,
        };
        let backwards = way == "reverse" || d == 1;
        let cell = if gates == 4 { start(6, d)? } else { start(5, d)?.zeros_like()? };
        let (sequence, hidden, cell) =
            direction.run(c, &x, (start(5, d)?, cell), lengths.as_ref(), backwards, steps)?;
        sequences.push(sequence);
        hiddens.push(hidden);
        cells.push(cell);
    }
    let joined = |all: &[Tensor], axis: i64| stack(&all.iter().collect::<Vec<_>>(), axis);
    let (sequence, hidden, cell) =
        (joined(&sequences, 1)?, joined(&hiddens, 0)?, joined(&cells, 0)?);
    let mut made = match rows_first {
        false => vec![sequence, hidden, cell],
        true => vec![
            sequence.transpose(&[2, 0, 1, 3])?,
            hidden.transpose(&[1, 0, 2])?,
            cell.transpose(&[1, 0, 2])?,
        ],
    };
    if gates != 4 {
        made.pop();
    }
    Ok(made.into_iter().map(Value::Tensor).collect())
}

impl Direction {
    /// All steps: the states, and the last of each kind.
    fn run(
        &self,
        c: &Call,
        x: &Tensor,
        start: (Tensor, Tensor),
        lengths: Option<&Tensor>,
        backwards: bool,
        steps: usize,
    ) -> Result<(Tensor, Tensor, Tensor)> {
        let mut from_inputs = self.weights.times(x)?;
        if let Some((bias, _)) = &self.biases {
            from_inputs = from_inputs.add(bias)?;
        }
        let numbers = tonnage::positions(Dim::Known(steps), DType::I64)?;
        let lengths =
            lengths.map(|lengths| lengths.cast(DType::I64)?.expand_dims(1)).transpose()?;
        let step = |(hidden, cell): (Tensor, Tensor), (input, number): (Tensor, Tensor)| {
            let (mut next, mut next_cell) = self.step(c, &input, &hidden, &cell)?;
            let mut shown = next.clone();
            // A row that is over keeps its state, and shows zeros.
            if let Some(lengths) = &lengths {
                let runs = number.less(lengths)?;
                shown = runs.where_(&next, &next.zeros_like()?)?;
                next = runs.where_(&next, &hidden)?;
                next_cell = runs.where_(&next_cell, &cell)?;
            }
            Ok(((next, next_cell), shown))
        };
        // One step is no loop: what is around it can be a part of the same steps of the plan.
        if steps == 1 {
            let first = (from_inputs.squeeze(0)?, numbers.squeeze(0)?);
            let ((hidden, cell), shown) = step(start, first)?;
            return Ok((shown.expand_dims(0)?, hidden, cell));
        }
        let how = if backwards { Loop::new().reverse() } else { Loop::new() };
        let ((hidden, cell), sequence) = how.scan(start, (from_inputs, numbers), step)?;
        Ok((sequence, hidden, cell))
    }

    fn clipped(&self, x: Tensor) -> Result<Tensor> {
        match self.clip {
            Some(most) => x.clip(-most, most),
            None => Ok(x),
        }
    }

    /// A part of a row of gates.
    fn gate(&self, x: &Tensor, at: usize) -> Result<Tensor> {
        let n = self.hidden as i64;
        x.slice(&[tonnage::Part::ALL, (at as i64 * n..(at as i64 + 1) * n).into()])
    }

    fn step(
        &self,
        c: &Call,
        input: &Tensor,
        hidden: &Tensor,
        cell: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        match self.activations.len() {
            3 => self.lstm(c, input, hidden, cell),
            2 => Ok((self.gru(c, input, hidden)?, cell.clone())),
            _ => {
                let sum = input.add(&self.of_state(hidden)?)?;
                Ok((self.activations[0].run(c, &self.clipped(sum)?)?, cell.clone()))
            }
        }
    }

    fn of_state(&self, hidden: &Tensor) -> Result<Tensor> {
        let made = self.recurrent.times(hidden)?;
        match &self.biases {
            Some((_, bias)) => made.add(bias),
            None => Ok(made),
        }
    }

    fn lstm(
        &self,
        c: &Call,
        input: &Tensor,
        hidden: &Tensor,
        cell: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        let [f, g, h] = &self.activations[..] else {
            return Err(c.refuse("other than three activations"));
        };
        let sum = input.add(&self.of_state(hidden)?)?;
        let peep = |gate: Tensor, at: i64, cell: &Tensor| -> Result<Tensor> {
            let n = self.hidden as i64;
            match &self.peepholes {
                Some(all) => gate.add(&cell.mul(&all.slice(&[(at * n..(at + 1) * n).into()])?)?),
                None => Ok(gate),
            }
        };
        let open = f.run(c, &self.clipped(peep(self.gate(&sum, 0)?, 0, cell)?)?)?;
        let kept = match self.couples {
            true => (&open).neg()?.add(1.0)?,
            false => f.run(c, &self.clipped(peep(self.gate(&sum, 2)?, 2, cell)?)?)?,
        };
        let new = g.run(c, &self.clipped(self.gate(&sum, 3)?)?)?;
        let cell = kept.mul(cell)?.add(&open.mul(&new)?)?;
        let out = f.run(c, &self.clipped(peep(self.gate(&sum, 1)?, 1, &cell)?)?)?;
        Ok((out.mul(&h.run(c, &cell)?)?, cell))
    }

    fn gru(&self, c: &Call, input: &Tensor, hidden: &Tensor) -> Result<Tensor> {
        let [f, g] = &self.activations[..] else {
            return Err(c.refuse("other than two activations"));
        };
        let state = self.of_state(hidden)?;
        let update = f.run(c, &self.clipped(self.gate(input, 0)?.add(&self.gate(&state, 0)?)?)?)?;
        let reset = f.run(c, &self.clipped(self.gate(input, 1)?.add(&self.gate(&state, 1)?)?)?)?;
        let from_state = match self.linear_before_reset {
            true => reset.mul(&self.gate(&state, 2)?)?,
            false => {
                let made = reset.mul(hidden)?.matmul(&self.gate(&self.recurrent.values, 2)?)?;
                match &self.biases {
                    Some((_, bias)) => {
                        made.add(&bias.slice(&[(2 * self.hidden as i64..).into()])?)?
                    }
                    None => made,
                }
            }
        };
        let new = g.run(c, &self.clipped(self.gate(input, 2)?.add(&from_state)?)?)?;
        new.sub(&update.mul(&new)?)?.add(&update.mul(hidden)?)
    }
}
