//! Updates and other elementwise steps that lie side by side run as one, with the bits and the bytes of single ones.
//!
//! With `TONNAGE_SOAK` set there are many more of the programs that nobody wrote.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::optim::Optimizer;
use tonnage::{
    DType, Elementwise, Gradient, Result, Tensor, Variable, function, random_normal, tensor, zeros,
};
use tonnage_plan::Run;

use crate::common::dice::{Dice, Seed};
use crate::common::random::{arguments, bits, op};
use crate::common::{call_checked, own_context};

/// What arguments and variables are of.
const DTYPES: [DType; 5] = [DType::F32, DType::F32, DType::BF16, DType::F16, DType::I32];

/// The program of a seed over variables: ops on what they hold, and updates of them, in any order.
fn program(seed: u64, variables: &[Variable], arguments: Vec<Tensor>) -> Result<Vec<Tensor>> {
    let mut dice = Dice(seed);
    let mut all = arguments;
    for variable in variables {
        all.push(variable.read()?);
    }
    for _ in 0..8 + dice.below(24) {
        if let Some(made) = op(&mut dice, &all)?
            && made.shape().count().is_some_and(|n| n <= 4096)
        {
            all.push(made);
        }
        let variable = dice.pick(variables);
        let fits: Vec<&Tensor> = all.iter().filter(|t| t.ty() == variable.ty()).collect();
        if dice.below(2) == 0 || fits.is_empty() {
            continue;
        }
        let value = *dice.pick(&fits);
        match dice.below(3) {
            0 => variable.assign(&(value * value)?)?,
            1 => variable.assign_add(value)?,
            _ => variable.assign_sub(value)?,
        }
        all.push(variable.read()?);
    }
    // Of their own: a result that is held with the bytes of a variable has the next call copy them.
    all.iter().rev().take(1 + dice.below(3)).map(|t| t * t).collect()
}

/// Variables that start as these tensors.
fn variables(values: &[Tensor]) -> Vec<Variable> {
    let made = values.iter().map(|value| Variable::new("v", value.clone()));
    made.collect::<Result<_>>().unwrap()
}

#[test]
fn random_updates_give_the_eager_bits_soak() {
    let _context = own_context();
    let count = if std::env::var_os("TONNAGE_SOAK").is_some() { 10_000 } else { 200 };
    for seed in 0..count {
        let _told = Seed(seed);
        let (given, initial) = (arguments(seed, &DTYPES), arguments(seed + 1_000_000, &DTYPES));
        let (eager, planned) = (variables(&initial), variables(&initial));
        let updated = planned.clone();
        let f = function(move |x: Vec<Tensor>| program(seed, &updated, x));
        let alike = |mine: &Tensor, theirs: &Tensor| {
            assert_eq!(bits(mine), bits(theirs), "{}", f.graph(&given).unwrap());
        };
        // The first call gives variables bytes of their own.
        let got = f.call(given.clone()).unwrap();
        let expected = program(seed, &eager, given.clone()).unwrap();
        got.iter().zip(&expected).for_each(|(mine, theirs)| alike(mine, theirs));
        drop((got, expected));
        call_checked(&f, &given);
        for _ in 0..2 {
            program(seed, &eager, given.clone()).unwrap();
        }
        for (mine, theirs) in planned.iter().zip(&eager) {
            alike(&mine.read().unwrap(), &theirs.read().unwrap());
        }
    }
}

#[test]
fn moments_a_weight_and_its_copy_are_one_pass() {
    let _context = own_context();
    for (sizes, optimizer) in [
        (vec![300, 400], Optimizer::adamw(1e-3, 0.01)),
        (vec![7], Optimizer::adamw(1e-3, 0.01)),
        (vec![300, 400], Optimizer::adam(1e-3)),
    ] {
        let w = Variable::new("w", zeros(sizes.clone()).unwrap()).unwrap();
        let rounded = Variable::new("copy", w.read().unwrap().cast(DType::BF16).unwrap()).unwrap();
        let (own, copy) = (w.clone(), rounded.clone());
        // An index that may be out of range: updates wait until it has been looked at.
        let step = function(move |(x, table, index): (Tensor, Tensor, Tensor)| {
            optimizer.apply([&own], &[Gradient::Dense(x)])?;
            copy.assign(&own.read()?.cast(DType::BF16)?)?;
            table.gather(&index, 0)
        });
        let x = random_normal(sizes.clone(), DType::F32).unwrap();
        let x = (x, random_normal([9, 50], DType::F32).unwrap(), tensor([8i64, 2, 3]).unwrap());
        // The first call gives variables bytes of their own.
        step.call(x.clone()).unwrap();
        call_checked(&step, &x);
        let plan = step.plan(&x).unwrap();
        let large = |at: &&tonnage_plan::Step| matches!(&at.run, Run::Tile(run) if run.domain.as_slice() == sizes);
        assert_eq!(plan.steps.iter().filter(large).count(), 1, "{plan}");
        assert_eq!(
            bits(&rounded.read().unwrap()),
            bits(&w.read().unwrap().cast(DType::BF16).unwrap())
        );
    }
}
