//! Memory runs out at every request in turn, in every op of the table, eager and planned, in a training
//! step and in the gradient of a loop: the error says so, nothing leaks, and variables keep their values.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use tonnage::{
    Bytes, DType, Elementwise, ErrorKind, GradientTape, Result, Tensor, Variable, constant,
    function, memory, random_normal, tensor, while_loop,
};
use tonnage_core::row::{Mem, OpDef, Sample};
use tonnage_core::{Builder, Emit, Kind};
use tonnage_plan::{InputSpec, Plan, PlanOptions, lower, plan};
use tonnage_runtime::eager::{self, Arg, Args};
use tonnage_runtime::machine::target;
use tonnage_runtime::{Array, execute, host_ledger};

use crate::common::draw::{bits, for_every_sample, mark};
use crate::common::{in_use, own_context};

/// Runs `run` with its first request refused, then its second, and so on until it gets through. Each
/// refused run must say so and leave the ledger as it was.
fn refuse_each<R>(
    mut run: impl FnMut() -> Result<R>,
    mut check: impl FnMut() -> std::result::Result<(), String>,
) -> std::result::Result<u64, String> {
    for n in 1.. {
        let before = in_use();
        host_ledger().fail_nth(Some(n));
        let made = run();
        host_ledger().fail_nth(None);
        match made {
            Ok(made) => {
                drop(made);
                return Ok(n - 1);
            }
            Err(e) if matches!(e.kind(), ErrorKind::SystemRefused { .. }) => {}
            Err(e) => return Err(format!("request {n} refused, and: {e}")),
        }
        if in_use() != before {
            return Err(format!("request {n} refused: {before} before, {} after", in_use()));
        }
        check().map_err(|e| format!("request {n} refused: {e}"))?;
    }
    Err("it never gets through".into())
}

/// How many requests a run makes when nothing is refused.
fn requests<R>(run: impl FnOnce() -> Result<R>) -> std::result::Result<u64, String> {
    let scope = memory::scope();
    let made = run().map_err(|e| e.to_string())?;
    let count = scope.report().count(memory::Action::Allocated);
    drop(made);
    Ok(count as u64)
}

fn copies(inputs: &[Array]) -> Vec<Array> {
    inputs.iter().map(|array| array.copied(mark(), "copy").unwrap()).collect()
}

fn eagerly(op: &'static OpDef, sample: &Sample, args: Args, aux: bool) -> Result<Vec<Array>> {
    let made = eager::apply(op, args, &sample.attrs, &sample.regions, aux, mark())?;
    Ok(made.into_iter().collect())
}

fn borrowed(inputs: &[Array]) -> Args<'_> {
    inputs.iter().map(Arg::Borrowed).collect()
}

#[test]
fn an_eager_op_that_is_refused_memory_leaks_nothing() {
    let _context = own_context();
    for_every_sample(|op, sample, inputs| {
        for aux in [false, true] {
            let asked = requests(|| eagerly(op, sample, borrowed(inputs), aux))?;
            let before: Vec<_> = inputs.iter().map(bits).collect();
            let same = || match inputs.iter().map(bits).eq(before.iter().cloned()) {
                true => Ok(()),
                false => Err("an input was written to".into()),
            };
            let refused = refuse_each(|| eagerly(op, sample, borrowed(inputs), aux), same)?;
            if refused < asked {
                return Err(format!("{asked} requests, but {refused} refusals were noticed"));
            }
            // Inputs that are given up are gone, whether it works or not.
            for n in 1..=refused + 1 {
                let mine = copies(inputs);
                let held: Bytes = mine.iter().map(|a| a.storage().reserved()).sum();
                let rest = in_use() - held;
                host_ledger().fail_nth(Some(n));
                let made = eagerly(op, sample, mine.into_iter().map(Arg::Owned).collect(), aux);
                host_ledger().fail_nth(None);
                drop(made);
                if in_use() != rest {
                    return Err(format!("given up, request {n}: {rest} and {}", in_use()));
                }
            }
        }
        Ok(())
    });
}

struct Planned {
    plan: Plan,
    inputs: Vec<Array>,
}

/// A graph of one node, planned for these very inputs.
fn planned(
    op: &'static OpDef,
    sample: &Sample,
    inputs: Vec<Array>,
    aux: bool,
    donated: bool,
) -> Result<Planned> {
    let mut builder = Builder::new();
    let values = inputs.iter().map(|a| builder.input(a.ty(), Kind::Input, None)).collect();
    let made = builder.emit(op, values, sample.attrs.clone(), sample.regions.clone(), aux)?;
    let graph = lower(&builder.finish(&made)?, &*target())?;
    let mut seen = Vec::new();
    let specs: Vec<InputSpec> =
        inputs.iter().map(|array| execute::spec(array, donated, &mut seen)).collect();
    let options = PlanOptions::new(target());
    Ok(Planned { plan: plan(&std::sync::Arc::new(graph), &specs, options)?, inputs })
}

impl Planned {
    fn run(&self) -> Result<(Vec<Array>, Bytes)> {
        let (made, measured) = execute::execute(&self.plan, &self.inputs, [0, 0], mark())?;
        Ok((made.into_iter().collect(), measured.used))
    }
}

#[test]
fn a_planned_op_that_is_refused_memory_leaks_nothing_and_writes_nothing() {
    let _context = own_context();
    for_every_sample(|op, sample, inputs| {
        for (aux, donated) in [(false, false), (true, false), (false, true), (true, true)] {
            let mine = copies(inputs);
            let planned = planned(op, sample, mine, aux, donated).map_err(|e| e.to_string())?;
            let same = || match planned.inputs.iter().map(bits).eq(inputs.iter().map(bits)) {
                true => Ok(()),
                false => Err("an input was written to".into()),
            };
            let refused = refuse_each(|| planned.run(), same)?;
            let asked = requests(|| planned.run())?;
            if refused < asked {
                return Err(format!("{asked} requests, but {refused} refusals were noticed"));
            }
        }
        Ok(())
    });
}

#[test]
fn a_planned_op_gives_the_bits_of_the_eager_one_in_just_the_memory_predicted() {
    let _context = own_context();
    for_every_sample(|op, sample, inputs| {
        for (aux, donated) in [(false, false), (true, false), (false, true), (true, true)] {
            let eager = eagerly(op, sample, borrowed(inputs), aux).map_err(|e| e.to_string())?;
            let mine = copies(inputs);
            let planned = planned(op, sample, mine, aux, donated).map_err(|e| e.to_string())?;
            let before = in_use();
            memory::reset_peak("cpu:0").unwrap();
            let (made, used) = planned.run().map_err(|e| e.to_string())?;
            let reserved = memory::info("cpu:0").unwrap().peak - before;
            let plan = &planned.plan;
            if reserved != plan.obtains() {
                return Err(format!("reserved {reserved}, predicted {}\n{plan}", plan.obtains()));
            }
            if used > plan.peak() || (used != plan.peak() && !plan.is_bound) {
                return Err(format!("used {used}, predicted {}\n{plan}", plan.peak()));
            }
            for (i, (eager, made)) in eager.iter().zip(&made).enumerate() {
                if eager.ty() != made.ty() {
                    return Err(format!("output {i}: {} and {}", eager.ty(), made.ty()));
                }
                if bits(eager) != bits(made) {
                    return Err(format!(
                        "output {i} differs (aux {aux}, donated {donated})\n{plan}"
                    ));
                }
            }
            if eager.len() != made.len() {
                return Err(format!("{} and {} outputs", eager.len(), made.len()));
            }
            let written = |i: usize| donated || op.mem == Mem::Update(i);
            for (i, (mine, given)) in planned.inputs.iter().zip(inputs).enumerate() {
                if !written(i) && bits(mine) != bits(given) {
                    return Err(format!("input {i} was written to"));
                }
            }
        }
        Ok(())
    });
}

fn resident(shape: [usize; 2]) -> Tensor {
    let values = random_normal(shape, DType::F32).unwrap().to_vec::<f32>().unwrap();
    tensor(values).unwrap().reshape([shape[0] as i64, shape[1] as i64]).unwrap()
}

/// Weight and bias of a small layer, and a step of training on them.
fn step(w: &Variable, b: &Variable, x: &Tensor) -> Result<Tensor> {
    let mut tape = GradientTape::new();
    let y = (x.matmul(&w.read()?)? + b.read()?)?.relu()?.softmax(-1)?;
    let loss = y.square()?.sum_all()?;
    let grads = tape.gradient(&loss, &[w, b])?;
    w.assign_sub(&(grads[0].tensor()? * 0.1)?)?;
    b.assign_sub(&(grads[1].tensor()? * 0.1)?)?;
    Ok(loss)
}

fn layer() -> (Variable, Variable, Tensor) {
    let w = Variable::new("w", resident([24, 32])).unwrap();
    let b = Variable::new("b", resident([1, 32])).unwrap();
    (w, b, resident([16, 24]))
}

fn values(variable: &Variable) -> Vec<f32> {
    variable.read().unwrap().to_vec::<f32>().unwrap()
}

#[test]
fn a_planned_training_step_that_is_refused_memory_leaves_the_variables_as_they_were() {
    let _context = own_context();
    let start = in_use();
    {
        let (w, b, x) = layer();
        let was = (values(&w), values(&b));
        let same = || match (values(&w), values(&b)) == was {
            true => Ok(()),
            false => Err("a variable changed".to_string()),
        };
        let (v, c) = (w.clone(), b.clone());
        let f = function(move |x: Tensor| step(&v, &c, &x));
        // Refused in tracing and planning too: the first call does both.
        let refused = refuse_each(|| f.call(x.clone()), same).unwrap();
        assert!(refused >= 1, "the step makes requests");
        assert_ne!((values(&w), values(&b)), was, "the step that got through wrote them");
    }
    assert_eq!(in_use(), start);
}

#[test]
fn an_eager_training_step_that_is_refused_memory_leaks_nothing() {
    let _context = own_context();
    let start = in_use();
    {
        let (w, b, x) = layer();
        // Eagerly each assignment is a call of its own: one that fails leaves its own variable alone.
        let mut last = (values(&w), values(&b));
        let refused = refuse_each(
            || step(&w, &b, &x),
            || {
                let now = (values(&w), values(&b));
                let whole = now == last || now.1 == last.1 || now.0 == last.0;
                last = now;
                if whole { Ok(()) } else { Err("both changed in a step that failed".into()) }
            },
        );
        assert!(refused.unwrap() > 5);
    }
    assert_eq!(in_use(), start);
}

#[test]
fn a_variable_whose_update_is_refused_keeps_its_value() {
    let _context = own_context();
    let start = in_use();
    {
        let snapshot_of = |v: &Variable| v.read().unwrap();
        let v = Variable::new("v", resident([8, 8])).unwrap();
        let was = values(&v);
        let held = snapshot_of(&v); // so that the update needs bytes of its own
        let by = resident([8, 8]);
        let same = || match values(&v) == was {
            true => Ok(()),
            false => Err("it changed".to_string()),
        };
        assert_eq!(refuse_each(|| v.assign_add(&by), same).unwrap(), 1);
        assert_eq!(held.to_vec::<f32>().unwrap(), was);
        // One that is still a recipe.
        let r = Variable::new("r", random_normal([8, 8], DType::F32).unwrap()).unwrap();
        let was = values(&r);
        let same = || match values(&r) == was && r.bytes() == Bytes::ZERO {
            true => Ok(()),
            false => Err("it changed".to_string()),
        };
        assert_eq!(refuse_each(|| r.assign_add(&by), same).unwrap(), 1);
        let expected: Vec<f32> =
            was.iter().zip(by.to_vec::<f32>().unwrap()).map(|(a, b)| a + b).collect();
        assert_eq!(values(&r), expected);
    }
    assert_eq!(in_use(), start);
}

fn loop_gradient(h: &Tensor, w: &Tensor) -> Result<(Tensor, Tensor)> {
    let mut tape = GradientTape::new();
    tape.watch(w);
    tape.watch(h);
    let (_, last) = while_loop(
        (constant(0i32, ())?, h.clone()),
        |(i, _)| i.less(20),
        |(i, h): (Tensor, Tensor)| Ok(((i + 1)?, h.matmul(w)?.tanh()?)),
    )?;
    let grads = tape.gradient(&last.square()?.sum_all()?, &[w, h])?;
    Ok((grads[0].tensor()?, grads[1].tensor()?))
}

#[test]
fn the_gradient_of_a_loop_that_is_refused_memory_leaks_nothing() {
    let _context = own_context();
    let start = in_use();
    {
        let (h, w) = (resident([4, 16]), resident([16, 16]));
        let eager = refuse_each(|| loop_gradient(&h, &w), || Ok(())).unwrap();
        assert!(eager > 3, "{eager}");
        let f = function(|(h, w): (Tensor, Tensor)| loop_gradient(&h, &w));
        let planned = refuse_each(|| f.call((h.clone(), w.clone())), || Ok(())).unwrap();
        assert!(planned >= 1, "{planned}");
        let (dw, dh) = f.call((h.clone(), w.clone())).unwrap();
        let (ew, eh) = loop_gradient(&h, &w).unwrap();
        assert_eq!(dw.to_vec::<f32>().unwrap(), ew.to_vec::<f32>().unwrap());
        assert_eq!(dh.to_vec::<f32>().unwrap(), eh.to_vec::<f32>().unwrap());
    }
    assert_eq!(in_use(), start);
}
