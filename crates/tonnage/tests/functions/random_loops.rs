//! Loops and branches that nobody wrote: random bodies in every kind of loop, nested too, eagerly, as a function and
//! under every budget, against the same iterations unrolled. The bits are the same, the memory is what was predicted, and
//! a lower budget never takes more.
//!
//! With `TONNAGE_SOAK` set there are many more of them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use std::ops::Range;
use std::sync::Arc;

use tonnage::{
    Bytes, DType, Elementwise, ErrorKind, GradientTape, Loop, Part, Plan, Result, Tensor, Watched,
    cond, stack, switch, tensor,
};

use crate::common::dice::{Dice, Seed};
use crate::common::random::{arguments, bits, op, sizes};
use crate::common::{call_checked, own_context};

/// Whether loops are loops, or their iterations are written out one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoopForm {
    Loops,
    Unrolled,
}

/// Elements of a value at most: nothing grows without end.
const MOST: usize = 512;

/// What a loop carries and what it stacks.
type Made = (Vec<Tensor>, Vec<Tensor>);

/// Whether a tensor, which is no symbol, is true.
fn is_true(t: &Tensor) -> Result<bool> {
    Ok(t.cast(DType::F64)?.to_vec::<f64>()?[0] != 0.0)
}

/// The same elements close together, as a loop holds its state: products of strided operands may differ in the last bit.
fn close_together(t: &Tensor) -> Result<Tensor> {
    stack(&[t], 0)?.get(&[0.into()])
}

/// The value with the elements of a type: cut from its front or its end, or repeated.
fn brought_to(dice: &mut Dice, value: &Tensor, like: &Tensor) -> Result<Tensor> {
    let (have, want) = (value.shape().count().unwrap(), like.shape().count().unwrap());
    let lengths: Vec<i64> = sizes(like).iter().map(|n| *n as i64).collect();
    let flat = value.reshape([-1])?;
    let front = dice.below(2) == 0;
    let part = match (have >= want, front) {
        (true, true) => flat.slice(&[Part::from(0..want as i64)])?,
        (true, false) => flat.slice(&[Part::from((have - want) as i64..)])?,
        (false, _) if have == 0 => return Ok(like.clone()),
        (false, _) => flat.slice(&[Part::from(0..1)])?.broadcast_to([want])?,
    };
    part.reshape(&lengths)?.cast(like.dtype())
}

/// What a generator is told besides its dice.
#[derive(Clone, Copy)]
struct Make {
    how: LoopForm,
    /// Loops in loops that may still come.
    depth: usize,
}

impl Make {
    /// Some ops and loops on tensors that there are.
    fn block(self, dice: &mut Dice, all: &mut Vec<Tensor>, steps: usize) -> Result<()> {
        for _ in 0..steps {
            let made = match dice.below(4) {
                0 if self.depth > 0 => self.region(dice, all)?,
                _ => op(dice, all)?.into_iter().collect(),
            };
            all.extend(made.into_iter().filter(|t| t.shape().count().is_some_and(|n| n <= MOST)));
        }
        Ok(())
    }

    /// A body: ops on what an iteration gets and on what lies outside; the last values that it makes, so many.
    fn body(
        self,
        seed: u64,
        outside: &[Tensor],
        own: Vec<Tensor>,
        count: usize,
    ) -> Result<Vec<Tensor>> {
        let mut dice = Dice(seed);
        let mut all: Vec<Tensor> = outside.iter().cloned().chain(own).collect();
        let steps = 1 + dice.below(6);
        Make { depth: self.depth - 1, ..self }.block(&mut dice, &mut all, steps)?;
        let first = all.len() - count.min(all.len());
        let mut made = all.split_off(first);
        // Now and then a front part of what was computed.
        for value in &mut made {
            if value.rank() > 0 && dice.below(3) == 0 {
                let rows = sizes(value)[0];
                *value = value.slice(&[Part::from(0..rows.div_ceil(2) as i64)])?;
            }
        }
        Ok(made)
    }

    /// A loop or a branch of any kind.
    fn region(self, dice: &mut Dice, all: &[Tensor]) -> Result<Vec<Tensor>> {
        let seed = dice.next();
        let state: Vec<Tensor> = (0..1 + dice.below(2)).map(|_| dice.pick(all).clone()).collect();
        let iterations = dice.below(5);
        let rows = dice.pick(all).clone();
        let has_rows = rows.rank() > 0 && sizes(&rows)[0] > 0;
        let reverse = dice.below(4) == 0;
        // The state of the next iteration, and what is stacked.
        let step = |state: Vec<Tensor>, own: Vec<Tensor>| -> Result<Made> {
            let count = state.len() + 1;
            let inside = state.iter().cloned().chain(own).collect();
            let mut made = self.body(seed, all, inside, count)?;
            let stacked = made.split_off(made.len() - 1);
            let mut dice = Dice(!seed);
            let next = state
                .iter()
                .enumerate()
                .map(|(i, like)| brought_to(&mut dice, made.get(i).unwrap_or(&stacked[0]), like));
            Ok((next.collect::<Result<_>>()?, stacked))
        };
        match dice.below(6) {
            0 | 1 if has_rows => self.over_rows(state, &rows, reverse, step).map(joined),
            2 if has_rows => {
                let own = |row: Tensor| self.body(seed, all, vec![row], 2);
                self.map(&rows, own)
            }
            3 => self.counted(state, iterations, |i, s| Ok(step(s, vec![i])?.0)),
            4 => self.until(state, iterations, |s| Ok(step(s, Vec::new())?.0)),
            _ => {
                let branch = |n: u64| {
                    let made = self.body(seed ^ n, all, Vec::new(), 1)?;
                    Ok(vec![brought_to(&mut Dice(n), &made[0], &state[0])?])
                };
                self.branch(dice, &state[0], branch)
            }
        }
    }

    fn over_rows(
        self,
        state: Vec<Tensor>,
        rows: &Tensor,
        reverse: bool,
        step: impl Fn(Vec<Tensor>, Vec<Tensor>) -> Result<Made>,
    ) -> Result<Made> {
        if self.how == LoopForm::Loops {
            let options = if reverse { Loop::new().reverse() } else { Loop::new() };
            return options
                .scan(state, rows.clone(), |s: Vec<Tensor>, row: Tensor| step(s, vec![row]));
        }
        let mut all: Vec<Tensor> = rows.unstack(0)?;
        if reverse {
            all.reverse();
        }
        let (mut state, mut stacked) = (state, Vec::new());
        for row in all {
            let (next, made) = step(state, vec![row])?;
            state = next.iter().map(close_together).collect::<Result<_>>()?;
            stacked.push(made);
        }
        if reverse {
            stacked.reverse();
        }
        Ok((state, stack_all(&stacked)?))
    }

    fn map(
        self,
        rows: &Tensor,
        body: impl Fn(Tensor) -> Result<Vec<Tensor>>,
    ) -> Result<Vec<Tensor>> {
        match self.how {
            LoopForm::Loops => tonnage::map_fn(rows.clone(), |row: Tensor| body(row)),
            LoopForm::Unrolled => {
                let made = rows.unstack(0)?.into_iter().map(body);
                stack_all(&made.collect::<Result<Vec<_>>>()?)
            }
        }
    }

    fn counted(
        self,
        state: Vec<Tensor>,
        iterations: usize,
        step: impl Fn(Tensor, Vec<Tensor>) -> Result<Vec<Tensor>>,
    ) -> Result<Vec<Tensor>> {
        // The number of an iteration takes part as a value of the state's dtype.
        let dtype = state[0].dtype();
        let step = |i: Tensor, s: Vec<Tensor>| step(i.cast(dtype)?, s);
        if self.how == LoopForm::Loops {
            return tonnage::fori_loop(0, iterations as i64, state, step);
        }
        let mut state = state;
        for i in 0..iterations {
            let next = step(tensor(i as i64)?, state)?;
            state = next.iter().map(close_together).collect::<Result<_>>()?;
        }
        Ok(state)
    }

    /// As many iterations at most, fewer where the state grows large.
    fn until(
        self,
        state: Vec<Tensor>,
        iterations: usize,
        step: impl Fn(Vec<Tensor>) -> Result<Vec<Tensor>>,
    ) -> Result<Vec<Tensor>> {
        let goes_on = |i: &Tensor, s: &[Tensor]| -> Result<Tensor> {
            let small = (&s[0]).cast(DType::F64)?.sum_all()?.less(40.0)?;
            i.less(iterations as i64)?.logical_and(&small)
        };
        if self.how == LoopForm::Loops {
            let start = (tensor(0i64)?, state);
            let more = |(i, s): (Tensor, Vec<Tensor>)| goes_on(&i, &s);
            let body = |(i, s): (Tensor, Vec<Tensor>)| Ok(((i + 1)?, step(s)?));
            return Ok(Loop::new().at_most(8).while_loop(start, more, body)?.1);
        }
        let (mut state, mut i) = (state, 0);
        while is_true(&goes_on(&tensor(i)?, &state)?)? {
            let next = step(state)?;
            state = next.iter().map(close_together).collect::<Result<_>>()?;
            i += 1;
        }
        Ok(state)
    }

    fn branch(
        self,
        dice: &mut Dice,
        of: &Tensor,
        branch: impl Fn(u64) -> Result<Vec<Tensor>>,
    ) -> Result<Vec<Tensor>> {
        let sum = of.cast(DType::F64)?.sum_all()?;
        let two = dice.below(2) == 0;
        if two {
            let positive = sum.greater(0.0)?;
            return match self.how {
                LoopForm::Loops => cond(&positive, || branch(1), || branch(2)),
                LoopForm::Unrolled => branch(if is_true(&positive)? { 1 } else { 2 })?
                    .iter()
                    .map(close_together)
                    .collect(),
            };
        }
        let which = sum.greater(0.0)?.cast(DType::I32)?;
        let which = (which + sum.greater(3.0)?.cast(DType::I32)?)?;
        match self.how {
            LoopForm::Loops => switch(&which, &[&|| branch(1), &|| branch(2), &|| branch(3)]),
            LoopForm::Unrolled => {
                let which = which.to_vec::<i32>()?[0];
                branch(which as u64 + 1)?.iter().map(close_together).collect()
            }
        }
    }
}

fn joined((mut state, stacked): Made) -> Vec<Tensor> {
    state.extend(stacked);
    state
}

/// Rows of several values, as one value each.
fn stack_all(rows: &[Vec<Tensor>]) -> Result<Vec<Tensor>> {
    (0..rows[0].len())
        .map(|k| stack(&rows.iter().map(|row| &row[k]).collect::<Vec<_>>(), 0))
        .collect()
}

/// The program of a seed: its last values.
fn program(seed: u64, how: LoopForm, arguments: Vec<Tensor>) -> Result<Vec<Tensor>> {
    let mut dice = Dice(seed);
    let make = Make { how, depth: 1 + dice.below(3) };
    let mut all = arguments;
    let before = dice.below(3);
    make.block(&mut dice, &mut all, before)?;
    let made = make.region(&mut dice, &all)?;
    all.extend(made);
    let after = dice.below(5);
    make.block(&mut dice, &mut all, after)?;
    let last = all.len();
    Ok(all.split_off(last - 1 - dice.below(3).min(last - 1)))
}

/// What arguments are of.
const DTYPES: [DType; 6] = [DType::F32, DType::F32, DType::F32, DType::F64, DType::F16, DType::I32];

/// Seeds: so many quickly, so many at length.
fn seeds(quick: u64, long: u64) -> Range<u64> {
    0..if std::env::var_os("TONNAGE_SOAK").is_some() { long } else { quick }
}

#[track_caller]
fn same_bits(got: &[Tensor], expected: &[Tensor], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (x, y)) in got.iter().zip(expected).enumerate() {
        assert_eq!(x.ty(), y.ty(), "{what}, result {i}");
        assert_eq!(bits(x), bits(y), "{what}, result {i}");
    }
}

/// Close in relation to the largest; whatever is not finite is not compared.
#[track_caller]
fn near(got: &[Tensor], expected: &[Tensor], tolerance: f64, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let numbers = |t: &Tensor| t.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
    for (i, (x, y)) in got.iter().zip(expected).enumerate() {
        assert_eq!(x.ty(), y.ty(), "{what}, result {i}");
        let (x, y) = (numbers(x), numbers(y));
        if y.iter().chain(&x).any(|v| !v.is_finite() || v.abs() > 1e8) {
            continue;
        }
        let scale = y.iter().fold(1.0f64, |most, v| most.max(v.abs()));
        let far = x.iter().zip(&y).any(|(a, b)| (a - b).abs() > tolerance * scale);
        assert!(!far, "{what}, result {i}:\n{x:?}\n{y:?}");
    }
}

/// Goes down from unlimited, each time below what the plan before took, some times, and to the least; then to budgets in
/// between. A lower budget never gives a higher peak or a faster plan. `run` is told a budget and gives its plan, after
/// it has checked a call.
fn go_down(seed: u64, start: Bytes, steps: usize, run: impl Fn(Bytes) -> Result<Arc<Plan>>) {
    let mut all: Vec<(Bytes, Bytes, f64)> = Vec::new();
    let mut budget = Bytes::new(start.get() - 1);
    for _ in 0..steps {
        match run(budget) {
            Ok(plan) => {
                all.push(answer(budget, &plan));
                // The further down, the larger the steps.
                let last = plan.peak();
                budget = Bytes::new(last.get() - 1 - (start - last).get() / 16);
            }
            Err(error) => {
                let ErrorKind::OverBudget { least: Some(least), .. } = error.kind() else {
                    panic!("seed {seed} at {budget}: {error}");
                };
                let plan = run(*least).unwrap_or_else(|e| panic!("seed {seed} at {least}: {e}"));
                assert_eq!(plan.peak(), *least, "seed {seed}");
                all.push(answer(*least, &plan));
                break;
            }
        }
    }
    let between = |pair: &[(Bytes, Bytes, f64)]| Bytes::new((pair[0].0 + pair[1].0).get() / 2);
    let more: Vec<Bytes> = all.windows(2).map(between).collect();
    for budget in more {
        let plan = run(budget).unwrap_or_else(|e| panic!("seed {seed} at {budget}: {e}"));
        all.push(answer(budget, &plan));
    }
    all.sort_by_key(|(budget, ..)| *budget);
    for (budget, peak, _) in &all {
        assert!(peak <= budget, "seed {seed}: {peak} at {budget}");
    }
    for pair in all.windows(2) {
        let [(less, low, slow), (more, high, fast)] = pair else { continue };
        assert!(low <= high, "seed {seed}: {low} at {less}, {high} at {more}");
        assert!(slow >= fast, "seed {seed}: {slow} s at {less}, {fast} s at {more}");
    }
}

/// What a budget came to: its peak, and the seconds that are expected.
fn answer(budget: Bytes, plan: &Plan) -> (Bytes, Bytes, f64) {
    (budget, plan.peak(), plan.fitted.unwrap().seconds)
}

#[test]
fn random_loops_give_the_bits_of_their_iterations_unrolled_soak() {
    let _context = own_context();
    for seed in seeds(150, 20_000) {
        let _told = Seed(seed);
        let given = arguments(seed, &DTYPES);
        let expected = program(seed, LoopForm::Unrolled, given.clone()).unwrap();
        let eager = program(seed, LoopForm::Loops, given.clone());
        let eager = eager.unwrap_or_else(|e| panic!("seed {seed}, eager: {e}"));
        same_bits(&eager, &expected, &format!("seed {seed}, eager"));
        let make = || tonnage::function(move |x: Vec<Tensor>| program(seed, LoopForm::Loops, x));
        let f = make();
        same_bits(&call_checked(&f, &given), &expected, &format!("seed {seed}"));
        let start = f.plan(&given).unwrap().peak();
        go_down(seed, start, 4, |budget| {
            let f = make().exact().budget(budget)?;
            let plan = f.plan(&given)?;
            same_bits(&call_checked(&f, &given), &expected, &format!("seed {seed} at {budget}"));
            Ok(plan)
        });
        let least = make().exact().budget("least").unwrap();
        let peak = least.plan(&given).unwrap().peak();
        same_bits(&call_checked(&least, &given), &expected, &format!("seed {seed}, least"));
        let below = Bytes::new(peak.get() - 1);
        let refused = make().exact().budget(below).unwrap().plan(&given).map(drop).unwrap_err();
        let ErrorKind::OverBudget { least: named, .. } = refused.kind() else {
            panic!("{refused}")
        };
        assert_eq!(*named, Some(peak), "seed {seed}");
    }
}

/// A batch that goes through ops, which may run in pieces, and then through loops, which may not.
#[test]
fn random_loops_in_pieces_of_a_batch_are_close_soak() {
    let _context = own_context();
    for seed in seeds(60, 10_000) {
        let _told = Seed(seed);
        let given = arguments(seed, &[DType::F64]);
        let make = || tonnage::function(move |x: Vec<Tensor>| program(seed, LoopForm::Loops, x));
        let expected = program(seed, LoopForm::Unrolled, given.clone()).unwrap();
        let start = make().plan(&given).unwrap().peak();
        go_down(seed, start, 4, |budget| {
            let f = make().budget(budget)?;
            let plan = f.plan(&given)?;
            near(&call_checked(&f, &given), &expected, 1e-9, &format!("seed {seed} at {budget}"));
            Ok(plan)
        });
    }
}

/// Values and gradients of all arguments.
fn gradients(seed: u64, how: LoopForm, arguments: &[Tensor]) -> Result<Vec<Tensor>> {
    let mut tape = GradientTape::new();
    arguments.iter().for_each(|x| tape.watch(x));
    let made = program(seed, how, arguments.to_vec())?;
    let mut loss = tensor(0.0f64)?;
    for value in &made {
        loss = (loss + value.tanh()?.sum_all()?)?;
    }
    let sources: Vec<&dyn Watched> = arguments.iter().map(|x| x as _).collect();
    let grads = tape.gradient(&loss, &sources)?;
    grads.iter().zip(arguments).map(|(grad, x)| grad.or_zeros(x)).collect()
}

#[test]
fn gradients_of_random_loops_are_those_of_their_iterations_unrolled_soak() {
    let _context = own_context();
    for seed in seeds(80, 10_000) {
        let _told = Seed(seed);
        let given = arguments(seed, &[DType::F64]);
        let expected = gradients(seed, LoopForm::Unrolled, &given).unwrap();
        let eager = gradients(seed, LoopForm::Loops, &given);
        let eager = eager.unwrap_or_else(|e| panic!("seed {seed}, eager: {e}"));
        near(&eager, &expected, 1e-7, &format!("seed {seed}, eager"));
        let make = || tonnage::function(move |x: Vec<Tensor>| gradients(seed, LoopForm::Loops, &x));
        let f = make();
        near(&call_checked(&f, &given), &expected, 1e-7, &format!("seed {seed}"));
        let start = f.plan(&given).unwrap().peak();
        go_down(seed, start, 4, |budget| {
            let f = make().exact().budget(budget)?;
            let plan = f.plan(&given)?;
            near(&call_checked(&f, &given), &expected, 1e-7, &format!("seed {seed} at {budget}"));
            Ok(plan)
        });
    }
}
