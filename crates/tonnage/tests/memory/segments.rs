//! Segments in pieces: programs with a wide middle, drawn at random, at budgets from unlimited down, give what they give as a
//! whole, in the memory that was predicted.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use tonnage::{
    Bytes, DType, Elementwise, ErrorKind, Function, GradientTape, Result, Tensor, Variable,
    Watched, function, random_normal, random_uniform, set_seed, tensor,
};

use crate::common::dice::{Dice, Seed};
use crate::common::{call_checked, own_context};

type Two = (Tensor, Tensor);
type Three = (Tensor, Tensor, Tensor);

/// What lies between narrow values.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Middle {
    /// A hidden layer many times as wide as what goes in and comes out.
    Hidden,
    /// Scores of all pairs of rows, their softmax, and means.
    Scores,
    /// Softmax written out: a maximum, exponentials, their sum.
    Written,
    /// A convolution of one tap to many channels, and back.
    Channels,
    /// A map that is made larger, used, and summed.
    Upsampled,
    /// A hidden layer whose rows are folded: their maximum and their mean.
    Folded,
    /// A hidden layer with random numbers in it.
    Dropout,
}

const MIDDLES: [Middle; 7] = [
    Middle::Hidden,
    Middle::Scores,
    Middle::Written,
    Middle::Channels,
    Middle::Upsampled,
    Middle::Folded,
    Middle::Dropout,
];

#[derive(Debug, Clone, Copy)]
struct Program {
    middle: Middle,
    /// The batch, rows of an element of it, the width of a row, and by how much the middle is wider.
    sizes: [usize; 4],
    /// Whether it goes backward too.
    trains: bool,
    /// Whether something mixes the batch before, so that it cannot run in pieces itself.
    mixed: bool,
}

impl Program {
    fn drawn(dice: &mut Dice, trains: bool) -> Program {
        let middle = *dice.pick(&MIDDLES);
        // Lengths that have few divisors leave a rest.
        let sizes = [*dice.pick(&[1, 3, 6, 7]), *dice.pick(&[64, 96, 130, 131]), 16, 24];
        Program { middle, sizes, trains, mixed: dice.below(3) > 0 }
    }

    fn arguments(&self, dtype: DType) -> Result<(Tensor, Tensor, Tensor)> {
        let [batch, rows, width, wider] = self.sizes;
        let drawn = |sizes: &[usize], scale: f64| -> Result<Tensor> {
            let numbers = (random_normal(sizes, DType::F32)? * scale)?.to_vec::<f32>()?;
            let shape: Vec<i64> = sizes.iter().map(|n| *n as i64).collect();
            tensor(numbers)?.reshape(&shape[..])?.cast(dtype)
        };
        let x = drawn(&[batch, rows, width], 1.0)?;
        let up = drawn(&[width, width * wider], 0.2)?;
        Ok((x, up, drawn(&[width * wider, width], 0.1)?))
    }

    fn larger(&self) -> [usize; 4] {
        let [batch, rows, width, wider] = self.sizes;
        [batch, rows, wider, width]
    }

    /// From a narrow value over a wide one to a narrow one.
    fn forward(&self, x: &Tensor, up: &Tensor, down: &Tensor) -> Result<Tensor> {
        let [batch, rows, width, wider] = self.sizes.map(|n| n as i64);
        let x = &match self.mixed {
            true => (x + (x.sum_keep(0)? * 0.1)?)?,
            false => x.clone(),
        };
        match self.middle {
            Middle::Hidden => x.matmul(up)?.tanh()?.matmul(down),
            Middle::Scores => {
                let keys = x.transpose(&[0, 2, 1])?;
                (x.matmul(&keys)? * 0.3)?.softmax(-1)?.matmul(x)
            }
            Middle::Written => {
                let scores = x.matmul(up)?;
                let e = (&scores - scores.max_keep(2)?)?.exp()?;
                (&e / e.sum_keep(2)?)?.matmul(down)
            }
            Middle::Channels => {
                let images = x.reshape([batch, rows, 1, width])?;
                let one_tap = |w: &Tensor, from: i64, to: i64| w.reshape([1, 1, from, to]);
                let wide =
                    images.conv2d(&one_tap(up, width, width * wider)?, &tonnage::Conv::same())?;
                let wide = wide.relu()?;
                let back = one_tap(down, width * wider, width)?;
                wide.conv2d(&back, &tonnage::Conv::same())?.reshape([batch, rows, width])
            }
            Middle::Upsampled => {
                let map = x.reshape([batch, rows, 1, width])?;
                let larger = map.broadcast_to(self.larger())?;
                let waves = larger.matmul(&up.slice(&[(..).into(), (0..width).into()])?)?.sin()?;
                waves.sum(2)
            }
            Middle::Folded => {
                let wide = x.matmul(up)?.tanh()?;
                (wide.max_keep(2)? + wide.mean_keep(2)?)?.broadcast_to([
                    self.sizes[0],
                    self.sizes[1],
                    self.sizes[2],
                ])
            }
            Middle::Dropout => {
                let wide = x.matmul(up)?.relu()?;
                let [batch, rows, width, wider] = self.sizes;
                let drawn = random_uniform([batch, rows, width * wider], DType::F32)?;
                let kept = drawn.less(&tonnage::full(0.8, DType::F32, ())?)?;
                (wide * kept.cast(x.dtype())?)?.matmul(down)
            }
        }
    }

    fn function(self) -> Function<Three, Vec<Tensor>, impl Fn(Three) -> Result<Vec<Tensor>>> {
        function(move |(x, up, down): (Tensor, Tensor, Tensor)| {
            if !self.trains {
                return Ok(vec![self.forward(&x, &up, &down)?]);
            }
            let mut tape = GradientTape::new();
            let all: [&dyn Watched; 3] = [&x, &up, &down];
            all.iter().for_each(|t| tape.watch(*t));
            let loss = self.forward(&x, &up, &down)?.square()?.sum_all()?;
            let mut made = vec![loss.clone()];
            for grad in tape.gradient(&loss, &all)? {
                made.extend(grad.tensor().ok());
            }
            Ok(made)
        })
    }
}

fn numbers(all: &[Tensor]) -> Vec<Vec<f64>> {
    let of = |t: &Tensor| t.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
    all.iter().map(of).collect()
}

fn bits(all: &[Tensor]) -> Vec<Vec<u32>> {
    let of = |t: &Tensor| t.to_vec::<f32>().unwrap().iter().map(|x| x.to_bits()).collect();
    all.iter().map(of).collect()
}

#[track_caller]
fn near(got: &[Tensor], expected: &[Vec<f64>], what: &str) {
    for (got, expected) in numbers(got).iter().zip(expected) {
        assert_eq!(got.len(), expected.len());
        let scale = expected.iter().fold(1e-3f64, |m, x| m.max(x.abs()));
        for (a, b) in got.iter().zip(expected) {
            assert!((a - b).abs() <= 2e-4 * scale, "{a} and {b} of {scale}\n{what}");
        }
    }
}

/// Budgets from unlimited down to the least of a program: predicted is used, a lower budget takes no more, and results are those
/// of f64, and where nothing is summed over pieces those of the whole to the bit. Returns the segments that were cut.
fn sweep(program: Program, exact: bool) -> usize {
    set_seed(7);
    let args = program.arguments(DType::F32).unwrap();
    set_seed(7);
    let reference = program.arguments(DType::F64).unwrap();
    set_seed(5);
    let expected = numbers(&program.function().call(reference).unwrap());
    set_seed(5);
    let whole = program.function().call(args.clone()).unwrap();
    let prices = match exact {
        true => program.function().exact().no_spill().prices(&args).unwrap(),
        false => program.function().no_spill().prices(&args).unwrap(),
    };
    let (mut before, mut cut) = (Bytes::new(u64::MAX), 0);
    for price in prices {
        let f = program.function().no_spill().budget(price.peak).unwrap();
        let f = if exact { f.exact() } else { f };
        let plan = f.plan(&args).unwrap();
        assert!(plan.peak() <= price.peak && plan.peak() <= before, "{plan}");
        before = plan.peak();
        set_seed(5);
        let made = f.call(args.clone()).unwrap();
        near(&made, &expected, &plan.to_string());
        let fitted = plan.fitted.unwrap();
        assert_eq!(fitted.segments, plan.segments.len());
        cut += fitted.segments;
        if exact || (fitted.segments_with_sums == 0 && fitted.micro_batches.is_none()) {
            assert_eq!(bits(&made), bits(&whole), "{plan}");
        }
        call_checked(&f, &args);
    }
    cut
}

#[test]
fn soak_programs_with_a_wide_middle_give_the_same_in_just_the_memory_predicted() {
    let _context = own_context();
    let count = if std::env::var_os("TONNAGE_SOAK").is_some() { 400 } else { 24 };
    let mut cut = [0; 4];
    for seed in 0..count {
        let _seed = Seed(seed);
        let mut dice = Dice(seed);
        let (trains, exact) = (seed % 2 == 0, seed % 4 > 1);
        let program = Program::drawn(&mut dice, trains);
        cut[(seed % 4) as usize] += sweep(program, exact);
    }
    assert!(cut.iter().all(|cut| *cut > 0), "segments cut, by training and exactness: {cut:?}");
}

#[test]
fn every_kind_of_middle_is_cut() {
    let _context = own_context();
    for middle in MIDDLES {
        for trains in [false, true] {
            let program = Program { middle, sizes: [6, 96, 16, 24], trains, mixed: true };
            set_seed(7);
            let args = program.arguments(DType::F32).unwrap();
            let prices = program.function().no_spill().prices(&args).unwrap();
            let cut = prices.iter().any(|price| price.fitted.segments > 0);
            assert!(cut, "{middle:?}, training {trains}: {prices:?}");
        }
    }
}

/// The loss of a language model's head, and its gradients: hidden values, logits, losses. The rows are mixed before.
fn head(
    weights: &Variable,
) -> Function<Two, Vec<Tensor>, impl Fn(Two) -> Result<Vec<Tensor>> + use<>> {
    let weights = weights.clone();
    function(move |(x, labels): (Tensor, Tensor)| {
        let mut tape = GradientTape::new();
        tape.watch(&x);
        let hidden = (&x + x.mean_keep(0)?)?;
        let logits = hidden.matmul(&weights.read()?.t()?)?;
        let loss = logits.sparse_cross_entropy(&labels)?.mean_all()?;
        let sources: [&dyn Watched; 2] = [&x, &weights];
        let grads = tape.gradient(&loss, &sources)?;
        Ok(vec![loss, grads[0].tensor()?, grads[1].tensor()?])
    })
}

fn head_arguments(rows: usize, words: usize) -> (Variable, (Tensor, Tensor)) {
    set_seed(3);
    let weights = (random_normal([words, 16], DType::F32).unwrap() * 0.2).unwrap();
    let labels: Vec<i64> = (0..rows as i64).map(|i| i * 7 % words as i64).collect();
    let x =
        tensor(random_normal([rows, 16], DType::F32).unwrap().to_vec::<f32>().unwrap()).unwrap();
    let x = x.reshape([rows as i64, 16]).unwrap();
    (Variable::new("w", weights).unwrap(), (x, tensor(labels).unwrap()))
}

#[test]
fn logits_never_exist_as_a_whole() {
    let _context = own_context();
    let (weights, args) = head_arguments(1024, 2048);
    let logits = 1024 * 2048 * 4;
    let unlimited = head(&weights).plan(&args).unwrap();
    assert!(unlimited.arena.get() > logits);
    let budget = Bytes::new(unlimited.inputs.get() + logits / 3);
    let f = head(&weights).no_spill().budget(budget).unwrap();
    let plan = f.plan(&args).unwrap();
    let [segment] = &plan.segments[..] else { panic!("{plan}") };
    assert!(segment.whole.get() == logits && segment.pieces > 3, "{plan}");
    assert!(plan.to_string().contains("pieces along axis 0"), "{plan}");
    assert!(plan.buffers.iter().all(|buffer| buffer.bytes.get() < logits / 2), "{plan}");
    let whole = numbers(&head(&weights).call(args.clone()).unwrap());
    near(&f.call(args.clone()).unwrap(), &whole, &plan.to_string());
    call_checked(&f, &args);
}

#[test]
fn a_label_out_of_range_is_the_same_error_and_the_next_call_works() {
    let _context = own_context();
    let (weights, (x, labels)) = head_arguments(512, 2048);
    let mut wrong = labels.to_vec::<i64>().unwrap();
    wrong[301] = 4096;
    let args = (x.clone(), tensor(wrong).unwrap());
    let prices = head(&weights).no_spill().prices(&args).unwrap();
    let cut = prices.iter().find(|price| price.fitted.segments > 0).unwrap();
    let f = head(&weights).no_spill().budget(cut.peak).unwrap();
    assert!(!f.plan(&args).unwrap().segments.is_empty());
    for f in [f, head(&weights)] {
        let error = f.call(args.clone()).unwrap_err();
        let ErrorKind::IndexOutOfRange { op, index, size, .. } = *error.kind() else {
            panic!("{error}");
        };
        assert_eq!((op, index, size), ("cross_entropy", 4096, 2048));
        assert!(f.call((x.clone(), labels.clone())).is_ok());
    }
}
