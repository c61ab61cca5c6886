//! Plans that are wrong: every place in turn, of results, of values and of what a region works in, at every depth, has
//! a byte too few. The executor refuses such a plan before it writes a byte too many; no kernel sees it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use tonnage::{
    Bytes, Elementwise, GradientTape, Loop, Result, Tensor, cond, constant, fori_loop, function,
    map_fn, scan, tensor,
};
use tonnage_plan::{At, OutputPlan, Plan, Run};
use tonnage_runtime::Array;
use tonnage_runtime::execute::execute;

use crate::common::draw::{bits, mark};
use crate::common::own_context;

const SIZES: [usize; 2] = [5, 6];

fn numbers() -> Vec<f32> {
    (0..SIZES[0] * SIZES[1]).map(|i| (i * 7 % 11) as f32 / 5.0 - 1.0).collect()
}

/// The gradient of a scalar with respect to its argument.
fn slope(x: Tensor, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let mut tape = GradientTape::new();
    tape.watch(&x);
    let loss = f(&x)?;
    tape.gradient(&loss, &x)?.or_zeros(&x)
}

type Program = (&'static str, fn(Tensor) -> Result<Tensor>);

const PROGRAMS: [Program; 9] = [
    ("kernel", |x| x.sort(1, false)),
    ("tile program over a kernel's result", |x| x.cumsum(0)?.tanh()?.cumsum(1)),
    ("reduction", |x| x.cumsum(0)?.sum([0])),
    ("copy of a view", |x| x.cumsum(0)?.t()?.slice(&[(0..2).into()])),
    ("rows", |x| map_fn(x, |r: Tensor| r.cumsum(0)?.sort(0, true)?.slice(&[(0..3).into()]))),
    ("states and rows", |x| {
        let start = constant(0.5f32, [6])?;
        let step = |s: Tensor, r: Tensor| {
            let next = (s.cumsum(0)? + r)?.sort(0, false)?;
            Ok((next.clone(), next.cumsum(0)?))
        };
        let (last, all) = scan(start, x, step)?;
        &all + &last
    }),
    ("branches", |x| {
        let positive = x.sum_all()?.greater(0.0)?;
        cond(&positive, || x.cumsum(0)?.cumsum(1), || x.sort(1, true)?.cumsum(0))
    }),
    ("gradient of a loop", |x| {
        slope(x, |x| {
            let options = Loop::new().checkpoints(2);
            let step = |_, s: Tensor| s.cumsum(1)?.tanh()?.cumsum(0);
            options.fori_loop(0, 7, x.clone(), step)?.sum_all()
        })
    }),
    ("loop in a loop", |x| {
        fori_loop(0, 2, x, |_, s: Tensor| map_fn(s, |r: Tensor| r.cumsum(0)?.tanh()?.cumsum(0)))
    }),
];

/// A byte fewer than a place has to have, of the place with that number; whether there are so many places.
fn shorten(plan: &mut Plan, left: &mut usize) -> bool {
    let mut is_it = || {
        *left = left.wrapping_sub(1);
        *left == usize::MAX
    };
    let outputs = plan.graph.outputs.clone();
    for (output, id) in plan.outputs.iter_mut().zip(outputs) {
        if let OutputPlan::Own { bytes, .. } = output
            && is_it()
        {
            *bytes = Bytes::new(plan.graph.ty(id).bytes("test").unwrap().get() - 1);
            return true;
        }
    }
    for b in 0..plan.buffers.len() {
        let holds = |placed: &Option<tonnage_plan::Placed>| {
            placed.as_ref().is_some_and(|p| matches!(&p.at, At::Buffer(id) if id.0 == b))
        };
        let region = |step: &tonnage_plan::Step| {
            let with_arena = match &step.run {
                Run::Loop(of) => !of.body.arena.is_zero(),
                Run::LoopGrad(of) => !of.step.arena.is_zero(),
                _ => false,
            };
            with_arena && step.scratch.is_some_and(|id| id.0 == b)
        };
        let elements = plan.buffers[b].elements;
        let lives = !plan.buffers[b].bytes.is_zero();
        if lives && (plan.places.iter().any(holds) || plan.steps.iter().any(region)) && is_it() {
            plan.buffers[b].bytes = Bytes::new(elements.get() - 1);
            return true;
        }
    }
    plan.steps.iter_mut().any(|step| match &mut step.run {
        Run::Loop(of) => shorten(&mut of.body, left),
        Run::LoopGrad(of) => shorten(&mut of.step, left),
        // The data take the first one.
        Run::Branch { branches, .. } => shorten(&mut branches[0].plan, left),
        _ => false,
    })
}

#[test]
fn a_plan_with_a_place_that_is_too_short_is_an_error_and_never_a_wrong_number() {
    let _context = own_context();
    let given = numbers();
    let sizes = [SIZES[0] as i64, SIZES[1] as i64];
    let x = tensor(given.clone()).unwrap().reshape(sizes).unwrap();
    let array = Array::from_slice(&given, &SIZES, mark(), "test").unwrap();
    let run = |plan: &Plan| execute(plan, std::slice::from_ref(&array), [0; 2], mark());
    for (name, program) in PROGRAMS {
        let f = function(program);
        let plan = f.plan(&x).unwrap();
        let expected = f.call(x.clone()).unwrap().to_vec::<f32>().unwrap();
        let expected: Vec<u8> = expected.iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(bits(&run(&plan).unwrap().0[0]), expected, "{name}");
        let mut places = 0;
        loop {
            let mut wrong = (*plan).clone();
            if !shorten(&mut wrong, &mut places.clone()) {
                break;
            }
            match catch_unwind(AssertUnwindSafe(|| run(&wrong))) {
                Ok(Err(error)) => {
                    assert!(error.to_string().contains("has no room for"), "{name}: {error}");
                }
                Ok(Ok(_)) => panic!("{name}, place {places}: it ran\n{plan}"),
                Err(_) => panic!("{name}, place {places}: a panic\n{plan}"),
            }
            places += 1;
        }
        assert!(places > 0, "{name} has no place to shorten\n{plan}");
    }
}
