//! Segments in pieces: training steps of models whose last product is wide. Whatever the head, its logits never exist as a whole
//! where memory is short, on a CPU and, on paper, on a card.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use tonnage::optim::Optimizer;
use tonnage::{
    Bytes, DType, Elementwise, Function, GradientTape, Kind, Plan, Result, Tensor, Variable,
    device, function, random_normal, set_seed, tensor,
};

use crate::common::dice::{Dice, Seed};
use crate::common::{call_checked, own_context};

type Batch = (Tensor, Tensor, Tensor);

const WIDTH: usize = 16;
const WORDS: usize = 2048;
const BATCH: [usize; 2] = [6, 48];

/// A model of words, and how it is trained.
#[derive(Debug, Clone, Copy)]
struct Head {
    /// The table of words is the last product's too.
    tied: bool,
    /// Logits are a matrix, not rows of rows.
    flat: bool,
    /// What it computes in; parameters are f32.
    dtype: DType,
    /// A probability for each word, not a label.
    dense: bool,
    /// The mean of all losses, not a sum with weights.
    mean: bool,
    /// Whether losses are computed from a copy of the logits in f32.
    cast: bool,
    adam: bool,
    layers: usize,
}

/// A variable whose numbers lie in memory.
fn weights(name: &str, sizes: [usize; 2]) -> Variable {
    let numbers = (random_normal(sizes, DType::F32).unwrap() * 0.3).unwrap();
    Variable::new(name, in_memory(&numbers)).unwrap()
}

/// The same numbers, not what computes them.
fn in_memory(t: &Tensor) -> Tensor {
    let sizes: Vec<i64> = t.shape().iter().map(|n| n.known().unwrap() as i64).collect();
    tensor(t.to_vec::<f32>().unwrap()).unwrap().reshape(&sizes[..]).unwrap()
}

impl Head {
    fn drawn(dice: &mut Dice) -> Head {
        let mut coin = || dice.below(2) == 0;
        let (tied, flat, dense, mean, cast, adam) =
            (coin(), coin(), coin(), coin(), coin(), coin());
        let dtype = *dice.pick(&[DType::F32, DType::BF16]);
        Head { tied, flat, dtype, dense, mean, cast, adam, layers: dice.below(4) }
    }

    /// Bytes of the logits that losses are computed from: beside labels those have no copy.
    fn logits(&self) -> u64 {
        let dtype = if self.cast && self.dense { DType::F32 } else { self.dtype };
        (BATCH[0] * BATCH[1] * WORDS * dtype.size()) as u64
    }

    /// Tables and weights, from the same numbers each time.
    fn variables(&self) -> Vec<Variable> {
        set_seed(7);
        let mut all = vec![weights("table", [WORDS, WIDTH])];
        all.extend((0..self.layers).map(|_| weights("layer", [WIDTH, WIDTH])));
        if !self.tied {
            all.push(weights("head", [WIDTH, WORDS]));
        }
        all
    }

    fn batch(&self) -> Batch {
        let count = BATCH[0] * BATCH[1];
        let of = |by: usize| -> Tensor {
            let numbers: Vec<i64> = (0..count).map(|i| (i * by % WORDS) as i64).collect();
            tensor(numbers).unwrap().reshape(BATCH.map(|n| n as i64)).unwrap()
        };
        let truth = match self.dense {
            true => {
                in_memory(&of(13).one_hot_of(WORDS, DType::F32, 0.9, 0.1 / WORDS as f64).unwrap())
            }
            false => of(13),
        };
        set_seed(9);
        (of(7), truth, in_memory(&random_normal(BATCH, DType::F32).unwrap()))
    }

    fn loss(&self, all: &[Variable], (words, truth, weights): &Batch) -> Result<Tensor> {
        let table = all[0].read()?;
        let mut x = table.gather(words, 0)?.cast(self.dtype)?;
        // The batch itself cannot run in pieces.
        x = (&x + x.mean_keep(0)?)?;
        for layer in &all[1..=self.layers] {
            x = (&x + x.matmul(&layer.read()?.cast(self.dtype)?)?.tanh()?)?;
        }
        let (mut truth, mut weights) = (truth.clone(), weights.clone());
        if self.flat {
            x = x.reshape([-1, WIDTH as i64])?;
            truth = match self.dense {
                true => truth.reshape([-1, WORDS as i64])?,
                false => truth.reshape([-1])?,
            };
            weights = weights.reshape([-1])?;
        }
        let logits = match self.tied {
            true => x.matmul(&table.cast(self.dtype)?.transpose(&[1, 0])?)?,
            false => x.matmul(&all[all.len() - 1].read()?.cast(self.dtype)?)?,
        };
        let logits = if self.cast { logits.cast(DType::F32)? } else { logits };
        let losses = match self.dense {
            true => logits.cross_entropy(&truth.cast(logits.dtype())?)?,
            false => logits.sparse_cross_entropy(&truth)?,
        };
        let losses = losses.cast(DType::F32)?;
        if self.mean { losses.mean_all() } else { (losses * weights)?.sum_all() }
    }

    fn step(
        self,
        all: &[Variable],
    ) -> Function<Batch, Tensor, impl Fn(Batch) -> Result<Tensor> + use<>> {
        let all = all.to_vec();
        let optimizer = match self.adam {
            true => Optimizer::adamw(1e-3, 0.01),
            false => Optimizer::sgd(0.1),
        };
        optimizer.build(&all).unwrap();
        // What it remembers lies in memory too.
        for variable in optimizer.variables().iter().filter(|v| v.ty().dtype.is_float()) {
            let nothing = tensor(0.0f32).unwrap().cast(variable.ty().dtype).unwrap();
            variable.assign_add(&nothing).unwrap();
        }
        function(move |batch: Batch| {
            let mut tape = GradientTape::new();
            let loss = self.loss(&all, &batch)?;
            let gradients = tape.gradient(&loss, &all)?;
            optimizer.apply(&all, &gradients)?;
            Ok(loss)
        })
    }

    /// Memory in which all fits but half of the logits.
    fn budget(&self, unlimited: &Plan) -> Bytes {
        Bytes::new(unlimited.peak().get() - self.logits() / 2)
    }

    /// Whether no value as wide as the logits is a whole in a plan.
    #[track_caller]
    fn check(&self, plan: &Plan) {
        assert!(!plan.segments.is_empty(), "{self:?}\n{plan}");
        let mut whole = plan.buffers.iter().filter(|buffer| buffer.kind != Kind::Scratch);
        assert!(whole.all(|buffer| buffer.bytes.get() < self.logits() / 2), "{self:?}\n{plan}");
    }
}

fn values(all: &[Variable], loss: &Tensor) -> Vec<f64> {
    let of = |t: &Tensor| t.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
    let mut made = of(loss);
    all.iter().for_each(|variable| made.extend(of(&variable.read().unwrap())));
    made
}

#[test]
fn soak_logits_of_any_head_never_exist_as_a_whole() {
    let _context = own_context();
    let count = if std::env::var_os("TONNAGE_SOAK").is_some() { 200 } else { 16 };
    for seed in 0..count {
        let _seed = Seed(seed);
        let head = Head::drawn(&mut Dice(seed));
        let batch = head.batch();
        let all = head.variables();
        let whole = head.step(&all);
        let budget = head.budget(&whole.plan(&batch).unwrap());
        let loss = whole.call(batch.clone()).unwrap();
        let expected = values(&all, &loss);
        let all = head.variables();
        let step = head.step(&all).no_spill().budget(budget).unwrap();
        let plan = step.plan(&batch).unwrap();
        head.check(&plan);
        let loss = step.call(batch.clone()).unwrap();
        // A gradient of 16 bits has few digits, and a first step of Adam is the gradient's sign.
        let near = if head.adam || head.dtype != DType::F32 { 1e-2 } else { 1e-4 };
        let scale = expected.iter().fold(0f64, |most, x| most.max(x.abs()));
        for (a, b) in values(&all, &loss).iter().zip(&expected) {
            assert!((a - b).abs() <= near * scale, "{a} and {b} of {scale}: {head:?}\n{plan}");
        }
        call_checked(&step, &batch);
        for card in ["h200", "a100"] {
            device::plan_for(card).unwrap();
            let budget = head.budget(&whole.plan(&batch).unwrap());
            let all = head.variables();
            let step = head.step(&all).no_spill().budget(budget).unwrap();
            head.check(&step.plan(&batch).unwrap());
            device::plan_for(None).unwrap();
        }
    }
}

/// A wide hidden layer in each of several blocks is saved for the backward pass, and the logits are as large as all of them.
#[test]
fn segments_and_recomputed_values_are_had_at_once() {
    let _context = own_context();
    let [rows, layers] = [512, 8];
    set_seed(7);
    let of_layers: Vec<Variable> = (0..layers).map(|_| weights("layer", [64, 64])).collect();
    let table = weights("table", [64, 64 * layers]);
    let all: Vec<Variable> = of_layers.into_iter().chain([table]).collect();
    let step = {
        let all = all.clone();
        move |(x, labels): (Tensor, Tensor)| {
            let mut tape = GradientTape::new();
            let mut x = (&x + x.mean_keep(0)?)?;
            for layer in &all[..layers] {
                x = x.matmul(&layer.read()?)?.tanh()?;
            }
            let logits = x.matmul(&all[layers].read()?)?;
            let loss = logits.sparse_cross_entropy(&labels)?.mean_all()?;
            for (variable, gradient) in all.iter().zip(tape.gradient(&loss, &all)?) {
                variable.assign_sub(&(gradient.tensor()? * 0.1)?)?;
            }
            Ok(loss)
        }
    };
    let labels: Vec<i64> = (0..rows as i64).map(|i| i * 7 % (64 * layers as i64)).collect();
    let x = tensor(vec![0.5f32; rows * 64]).unwrap().reshape([rows as i64, 64]).unwrap();
    let batch = (x, tensor(labels).unwrap());
    let unlimited = function(step.clone()).plan(&batch).unwrap();
    let saved = (rows * 64 * layers * 4) as u64;
    let budget = Bytes::new(unlimited.peak().get() - saved - saved / 4);
    let step = function(step).no_spill().budget(budget).unwrap();
    let plan = step.plan(&batch).unwrap();
    let fitted = plan.fitted.unwrap();
    assert!(fitted.segments > 0 && fitted.recomputed > 0, "{plan}");
    call_checked(&step, &batch);
}
