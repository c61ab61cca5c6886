//! Every budget from unlimited down to the least, for gradients of nested loops: a lower budget never gives a higher
//! peak, and no plan that fits and is faster is passed over.
//!
//! With `TONNAGE_SOAK` set there are many more programs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use tonnage::{
    Bytes, DType, Elementwise, GradientTape, Plan, Result, Tensor, Watched, fori_loop, function,
    map_fn, ones, scan,
};
use tonnage_plan::{Allowed, Frontier, Machine, PlanOptions};
use tonnage_runtime::machine::target_of;
use tonnage_runtime::pool;

use crate::common::dice::{Dice, Seed};
use crate::common::own_context;

/// A few ops on a state, some of them expensive.
fn ops(dice: &mut Dice, mut h: Tensor, w: &Tensor) -> Result<Tensor> {
    for _ in 0..1 + dice.below(4) {
        h = match dice.below(5) {
            0 => h.matmul(w)?,
            1 => h.matmul(w)?.tanh()?,
            2 => ((&h * 0.5)?.exp()? + &h)?,
            3 => h.softmax(-1)?,
            _ => (h.tanh()? * 0.9)?,
        };
    }
    Ok(h)
}

/// A loop of some kind over a body that may have loops in it.
fn nested(dice: &mut Dice, depth: usize, h: Tensor, w: &Tensor) -> Result<Tensor> {
    let iterations = 2 + dice.below(14);
    let seed = dice.next();
    let body = |h: Tensor| -> Result<Tensor> {
        let mut dice = Dice(seed);
        let mut h = ops(&mut dice, h, w)?;
        if depth > 0 {
            h = nested(&mut dice, depth - 1, h, w)?;
        }
        match dice.below(2) {
            0 => ops(&mut dice, h, w),
            _ => Ok(h),
        }
    };
    match dice.below(3) {
        0 => fori_loop(0, iterations as i64, h, |_, h: Tensor| body(h)),
        1 => {
            let step = |h: Tensor, x: Tensor| {
                let h = body((h + x)?)?;
                Ok((h.clone(), h.sum([0])?))
            };
            let (h, sums) = scan(h, ones([iterations])?.cast(DType::F32)?, step)?;
            h + sums.sum([0])?
        }
        _ => {
            let whole = h.clone();
            let add = |x: Tensor| body((&whole + x)?);
            map_fn(ones([iterations])?.cast(DType::F32)?, add)?.sum([0])
        }
    }
}

/// The gradients of a program of some nested loops, one after the other, as it is planned without a budget.
fn planned(seed: u64) -> std::sync::Arc<Plan> {
    let mut dice = Dice(seed);
    let (rows, width) = (8 << dice.below(4), 4 << dice.below(4));
    let f = function(move |(x, w): (Tensor, Tensor)| {
        let mut dice = Dice(seed ^ 0x5eed);
        let mut tape = GradientTape::new();
        tape.watch(&x);
        tape.watch(&w);
        let mut h = x.clone();
        for _ in 0..1 + dice.below(3) {
            h = ops(&mut dice, h, &w)?;
            let depth = 1 + dice.below(2);
            h = nested(&mut dice, depth, h, &w)?;
        }
        let loss = h.square()?.mean_all()?;
        let sources: [&dyn Watched; 2] = [&x, &w];
        let made = tape.gradient(&loss, &sources[..])?;
        Ok((made[0].or_zeros(&x)?, made[1].or_zeros(&w)?))
    });
    let small = |sizes: [usize; 2]| (ones(sizes).unwrap() * 0.1).unwrap().cast(DType::F32).unwrap();
    let resident = |t: Tensor| t.cumsum(0).unwrap();
    let arguments = (resident(small([rows, width])), resident(small([width, width])));
    f.exact().budget("1TiB").unwrap().plan(&arguments).unwrap()
}

#[test]
fn no_budget_passes_over_a_plan_that_fits_and_is_faster_soak() {
    let _context = own_context();
    let count = if std::env::var_os("TONNAGE_SOAK").is_some() { 400 } else { 12 };
    let mut points = 0;
    for seed in 0..count {
        let _told = Seed(seed);
        let plan = planned(seed);
        let target = target_of(pool().threads(), Machine::DEFAULT);
        let options = PlanOptions::new(target);
        let allowed = Allowed::default();
        let frontier =
            Frontier::allowing(allowed, &plan.program, &[], &plan.specs, options).unwrap();
        points += frontier.points();
        let all: Vec<(Bytes, f64)> = (0..frontier.points())
            .map(|point| {
                let plan = frontier.plan(point).unwrap();
                (plan.peak(), plan.fitted.unwrap().seconds)
            })
            .collect();
        let least = all.iter().map(|(peak, _)| *peak).min().unwrap();
        let mut budgets: Vec<u64> = all
            .iter()
            .flat_map(|(peak, _)| [peak.get() - 1, peak.get(), peak.get() * 107 / 100])
            .collect();
        budgets.sort_unstable();
        budgets.dedup();
        let mut before: Option<(Bytes, f64)> = None;
        for budget in budgets.into_iter().rev().map(Bytes::new) {
            let answer = frontier.fit(budget).unwrap();
            let fits = |(peak, _): &&(Bytes, f64)| *peak <= budget;
            let fastest = all.iter().filter(fits).map(|(_, seconds)| *seconds).reduce(f64::min);
            let Some(fastest) = fastest else {
                assert_eq!(answer.unwrap_err().peak(), least, "seed {seed}, {budget}");
                continue;
            };
            let plan = answer.unwrap_or_else(|p| panic!("seed {seed}: {} at {budget}", p.peak()));
            let (peak, seconds) = (plan.peak(), plan.fitted.unwrap().seconds);
            assert!(peak <= budget, "seed {seed}: {peak} at {budget}");
            assert_eq!(seconds, fastest, "seed {seed}: a faster one fits {budget}");
            if let Some((more, less)) = before {
                assert!(peak <= more, "seed {seed}: {peak} at {budget}, {more} before");
                assert!(seconds >= less, "seed {seed}: {seconds} at {budget}, {less} before");
            }
            before = Some((peak, seconds));
        }
    }
    assert!(points > 5 * count as usize, "{points} points of {count} programs");
}
