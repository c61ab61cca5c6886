//! Reserved = predicted = used, to the byte, over many functions at every budget from unlimited down to the least.

use std::sync::Arc;

use tonnage::{
    Bytes, Elementwise, GradientTape, Loop, Plan, Result, Tensor, Tree, Variable, Watched, concat,
    fori_loop, function, map_fn, memory, scan, set_seed, zeros,
};

use super::nets::{self, Params};
use super::{ids, image, rows};

use crate::common::{in_use, own_context};

type Body = Arc<dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>>;

struct PlanCase {
    name: String,
    body: Body,
    arguments: Vec<Tensor>,
}

fn case(
    name: &str,
    arguments: Vec<Tensor>,
    body: impl Fn(&[Tensor]) -> Result<Vec<Tensor>> + 'static,
) -> PlanCase {
    PlanCase { name: name.into(), body: Arc::new(body), arguments }
}

/// A step of training that updates all parameters.
fn training(name: &str, x: Tensor, net: fn(&mut Params, Tensor) -> Result<Tensor>) -> PlanCase {
    case(name, vec![x], move |a| {
        let (mut tape, mut params) = (GradientTape::new(), Params::default());
        let loss = net(&mut params, a[0].clone())?;
        let all: Vec<&dyn Watched> = params.all.iter().map(|v: &Variable| v as _).collect();
        for (variable, grad) in params.all.iter().zip(tape.gradient(&loss, &all)?) {
            variable.assign_sub(&(grad.tensor()? * 0.02)?)?;
        }
        Ok(vec![loss])
    })
}

/// Gradients of a scalar with respect to all arguments.
fn gradients(
    name: &str,
    arguments: Vec<Tensor>,
    f: impl Fn(&[Tensor]) -> Result<Tensor> + 'static,
) -> PlanCase {
    case(name, arguments, move |a| {
        let mut tape = GradientTape::new();
        a.iter().for_each(|x| tape.watch(x));
        let loss = f(a)?;
        let sources: Vec<&dyn Watched> = a.iter().map(|x| x as _).collect();
        let grads = tape.gradient(&loss, &sources)?;
        grads.iter().zip(a).map(|(grad, x)| grad.or_zeros(x)).collect()
    })
}

/// One step of a cell with two states, as an LSTM has.
fn lstm(
    (h, c): (Tensor, Tensor),
    x: &Tensor,
    wx: &Tensor,
    wh: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let gates = (x.matmul(wx)? + h.matmul(wh)?)?.split_evenly(4, -1)?;
    let kept = ((&gates[0]).sigmoid()? * c)?;
    let c = (kept + ((&gates[1]).sigmoid()? * (&gates[2]).tanh()?)?)?;
    Ok((((&gates[3]).sigmoid()? * (&c).tanh()?)?, c))
}

fn nets() -> Vec<PlanCase> {
    vec![
        training("mlp", rows([16, 32]), nets::mlp),
        training("lenet", image([4, 28, 28, 1]), nets::lenet),
        training("resnet20", image([2, 16, 16, 3]), nets::resnet20),
        training("u_net", image([2, 16, 16, 3]), nets::u_net),
        training("mobile_net", image([4, 16, 16, 3]), nets::mobile_net),
        training("gpt", ids([2, 16], 50), nets::gpt),
        training("gpt, spilled", ids([4, 64], 50), |p, x| nets::gpt_of(p, x, [4, 64, 32])),
        training("bert", ids([2, 16], 50), nets::bert),
        training("gru", rows([40, 4, 8]), nets::gru),
        training("recommender", ids([32, 4], 1000), nets::recommender),
        training("autoencoder", rows([64, 32]), nets::autoencoder),
    ]
}

fn loops() -> Vec<PlanCase> {
    let mut all = Vec::new();
    for iterations in [1, 2, 17, 100] {
        for (width, options) in [
            (3usize, Loop::new()),
            (33, Loop::new().checkpoints(1)),
            (70, Loop::new()),
            (120, Loop::new().checkpoints(4)),
            (120, Loop::new().spill()),
        ] {
            let name = format!("{iterations} iterations of {width} with {options:?}");
            let arguments = vec![rows([width, width]), rows([width, width])];
            all.push(gradients(&name, arguments, move |a| {
                let iteration = |_, y: Tensor| y.matmul(&a[1])?.tanh();
                options
                    .clone()
                    .fori_loop(0, iterations, a[0].clone(), iteration)?
                    .square()?
                    .sum_all()
            }));
        }
        let arguments = vec![rows([iterations as usize, 9, 50]), rows([50, 160]), rows([40, 160])];
        all.push(gradients(&format!("an lstm of {iterations} steps"), arguments, |a| {
            let start = (zeros([9, 40])?, zeros([9, 40])?);
            let step = |state: (Tensor, Tensor), x: Tensor| {
                let (h, c) = lstm(state, &x, &a[1], &a[2])?;
                Ok(((h.clone(), c), h))
            };
            let (_, hs) = scan(start, a[0].clone(), step)?;
            hs.square()?.sum_all()
        }));
        let arguments = vec![rows([31, 37]), rows([37, 37])];
        all.push(gradients(&format!("{iterations} iterations in 3"), arguments, move |a| {
            let inner = |_, y: Tensor| (y.matmul(&a[1])? * 0.3)?.sin();
            let outer = |_, y: Tensor| fori_loop(0, iterations, y, inner)?.tanh();
            fori_loop(0, 3, a[0].clone(), outer)?.square()?.sum_all()
        }));
        let arguments = vec![rows([iterations as usize, 45, 45])];
        all.push(case(&format!("a map over {iterations} rows"), arguments, |a| {
            let sorted = |x: Tensor| x.matmul(&x.t()?)?.softmax(-1)?.matmul(&x)?.sort(0, false);
            Ok(vec![map_fn(a[0].clone(), sorted)?])
        }));
    }
    all.push(gradients("a loop whose states are joined", vec![rows([60, 50])], |a| {
        let step = |_, (x, y): (Tensor, Tensor)| {
            let both = concat(&[&x, &y], 0)?.tanh()?;
            Ok(((&x + &y)?.sin()?, both.slice(&[(3..63).into()])?))
        };
        let (x, y) = fori_loop(0, 12, (a[0].clone(), (&a[0] * 0.5)?), step)?;
        (x * y)?.sum_all()
    }));
    all
}

/// A plan, and those of the loops in it.
fn inner<'p>(plan: &'p Plan, found: &mut Vec<&'p Plan>) {
    found.push(plan);
    for step in &plan.steps {
        match &step.run {
            tonnage_plan::Run::Loop(of) => {
                inner(&of.body, found);
                of.condition.iter().for_each(|plan| inner(plan, found));
            }
            tonnage_plan::Run::LoopGrad(of) => {
                inner(&of.forward.body, found);
                inner(&of.step, found);
            }
            _ => {}
        }
    }
}

/// What a table of cases came to.
#[derive(Default)]
struct Found {
    differences: Vec<String>,
    /// Plans whose arena is larger than the most that lives at once, of how many.
    gaps: usize,
    plans: usize,
}

impl Found {
    /// Calls a case under a budget and compares what it took with what its plan said.
    fn call(&mut self, case: &PlanCase, budget: Option<Bytes>) {
        let body = case.body.clone();
        let f = function(move |a: Vec<Tensor>| body(&a));
        let f = match budget {
            Some(budget) => f.budget(budget).unwrap(),
            None => f.unlimited(),
        };
        let arguments = &case.arguments;
        f.call(arguments.share()).unwrap(); // makes the parameters
        let plan = f.plan(arguments).unwrap();
        let before = in_use();
        memory::reset_peak("cpu:0").unwrap();
        let measured = f.call_measured(arguments.share()).unwrap().1.unwrap();
        let reserved = memory::info("cpu:0").unwrap().peak - before;
        assert!(!plan.is_bound, "{}: no data decide here", case.name);
        for (what, got, said) in [
            ("reserved", reserved, plan.obtains()),
            ("used", measured.used, plan.peak()),
            ("lent at once", measured.at_once, plan.bound.rounded()),
        ] {
            if got != said {
                let difference =
                    format!("{} at {budget:?}: {what} {got:?}, not {said:?}", case.name);
                self.differences.push(difference);
            }
        }
        let mut plans = Vec::new();
        inner(&plan, &mut plans);
        self.gaps += plans.iter().filter(|plan| plan.arena > plan.bound.rounded()).count();
        self.plans += plans.len();
    }
}

/// Calls every case without a budget and with some from there down to the least.
#[track_caller]
fn check(cases: fn() -> Vec<PlanCase>) {
    let _context = own_context();
    set_seed(5);
    let mut found = Found::default();
    for case in cases() {
        found.call(&case, None);
        let body = case.body.clone();
        let f = function(move |a: Vec<Tensor>| body(&a)).unlimited();
        f.call(case.arguments.share()).unwrap();
        let prices = f.prices(&case.arguments).unwrap();
        for price in prices.iter().rev().step_by(prices.len().div_ceil(5)) {
            found.call(&case, Some(price.peak));
        }
    }
    let Found { differences, gaps, plans } = found;
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    // Not every set of buffers can be packed without a gap, but a planner of arenas finds those that can.
    assert!(gaps * 30 <= plans, "{gaps} of {plans} arenas have gaps");
}

#[test]
fn networks_use_what_was_predicted_at_every_budget() {
    check(nets);
}

#[test]
fn loops_use_what_was_predicted_at_every_budget() {
    check(loops);
}
