//! The plan without a budget, of random graphs: hardly longer than the quickest, and no smaller one is as quick.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use std::sync::Arc;

use tonnage_core::grad::{VjpGraph, vjp_graph};
use tonnage_core::graph::{Builder, Graph};
use tonnage_core::looping::{Iterations, Loop};
use tonnage_core::recipe::Key;
use tonnage_core::{Attrs, Bytes, DType, Emit, Kind, TensorType, Value};
use tonnage_cpu::CpuTarget;
use tonnage_ops::control::while_loop::WHILE_LOOP;
use tonnage_ops::linalg::matmul::MATMUL;
use tonnage_ops::math::{add::ADD, mul::MUL, sigmoid::SIGMOID, tanh::TANH};
use tonnage_plan::{
    Frontier, HARDLY_LONGER, InputSpec, Machine, Plan, PlanOptions, SharedTarget, lower,
    lower_with_residuals, plan,
};

const PLAIN: Attrs = Attrs::Matmul { transpose_a: false, transpose_b: false };

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % most
    }
}

/// A program with its gradients, as it runs and with residuals of its loops saved.
struct Program {
    graph: Arc<Graph>,
    residuals: Vec<Arc<Graph>>,
    inputs: Vec<InputSpec>,
    target: SharedTarget,
}

impl Program {
    fn of(traced: &Graph) -> Program {
        let target: SharedTarget = Arc::new(CpuTarget::new(1, Machine::DEFAULT));
        let graph = Arc::new(lower(traced, &*target).unwrap());
        let residuals = lower_with_residuals(traced, &*target).unwrap();
        let types = graph.input_types();
        let inputs = types.iter().map(|ty| InputSpec::contiguous(ty, "test", false).unwrap());
        let inputs = inputs.collect();
        Program { residuals: residuals.into_iter().map(Arc::new).collect(), graph, inputs, target }
    }

    fn options(&self) -> PlanOptions {
        PlanOptions::new(self.target.clone())
    }

    fn frontier(&self) -> Frontier {
        let (graph, residuals) = (&self.graph, &self.residuals);
        Frontier::by_default(graph, residuals, &self.inputs, self.options()).unwrap().unwrap()
    }

    fn default_plan(&self, memory: Option<Bytes>) -> Arc<Plan> {
        let chosen = self.frontier().least_of_quick(memory).unwrap();
        chosen.unwrap_or_else(|| Arc::new(self.as_it_is()))
    }

    fn as_it_is(&self) -> Plan {
        plan(&self.graph, &self.inputs, self.options()).unwrap()
    }
}

/// Layers, of which some are added to earlier ones and some are loops of cells, of random lengths and widths; forward and backward.
fn random(seed: u64) -> Graph {
    let mut dice = Dice(seed);
    let (rows, width) = ([8, 64, 512][dice.below(3)], [8, 16, 64][dice.below(3)]);
    let state = TensorType::new(DType::F32, [rows, width]);
    let weight = TensorType::new(DType::F32, [width, width]);
    let mut builder = Builder::new();
    let mut all = vec![builder.input(state.clone(), Kind::Input, None)];
    let mut weights = 0;
    for _ in 0..2 + dice.below(8) {
        let w = builder.input(weight.clone(), Kind::Variable, None);
        weights += 1;
        let h = all[all.len() - 1].clone();
        let other = all[dice.below(all.len())].clone();
        let next = match dice.below(4) {
            0 => builder.apply(&ADD, vec![h, other], Attrs::None).unwrap(),
            1 => {
                let iterations = [3, 20, 90][dice.below(3)];
                let known = dice.below(5) > 0;
                looped(&mut builder, &mut dice, h, w, (iterations, known))
            }
            _ => {
                let z = builder.apply(&MATMUL, vec![h, w], PLAIN).unwrap();
                let op = if dice.below(2) == 0 { &TANH } else { &SIGMOID };
                builder.apply(op, vec![z], Attrs::None).unwrap()
            }
        };
        all.push(next);
    }
    let forward = builder.finish(&[all[all.len() - 1].clone()]).unwrap();
    let wanted = vec![true; weights + 1];
    let what = VjpGraph { seeded: &[true], outputs: &[], wanted: &wanted, known: &[], sums: &[] };
    vjp_graph(&forward, what, &tonnage_ops::GRAD_OPS).unwrap()
}

/// The last state of so many iterations of a cell; where their number is not known, of a loop that goes on as long as its counter is below.
fn looped(
    builder: &mut Builder,
    dice: &mut Dice,
    h: Value,
    w: Value,
    (iterations, known): (usize, bool),
) -> Value {
    let counter = TensorType::new(DType::F32, [1usize; 0]);
    let types = [counter.clone(), h.ty().clone(), w.ty().clone()];
    let mut inner = Builder::new();
    let v: Vec<Value> = types.iter().map(|ty| inner.input(ty.clone(), Kind::Input, None)).collect();
    let mut next = v[1].clone();
    for _ in 0..1 + dice.below(2) {
        let z = inner.apply(&MATMUL, vec![next, v[2].clone()], PLAIN).unwrap();
        let gate = inner.apply(&SIGMOID, vec![z.clone()], Attrs::None).unwrap();
        let z = inner.apply(&TANH, vec![z], Attrs::None).unwrap();
        next = inner.apply(&MUL, vec![z, gate], Attrs::None).unwrap();
    }
    let one = tonnage_ops::emit::number(&mut inner, 1.0, DType::F32).unwrap();
    let count = inner.apply(&ADD, vec![v[0].clone(), one], Attrs::None).unwrap();
    let body = Arc::new(inner.finish(&[count, next]).unwrap());
    let mut regions = vec![body];
    if !known {
        let mut inner = Builder::new();
        let v: Vec<Value> =
            types.iter().map(|ty| inner.input(ty.clone(), Kind::Input, None)).collect();
        let most = tonnage_ops::emit::number(&mut inner, iterations as f64, DType::F32).unwrap();
        let less = &tonnage_ops::math::comparison::LESS;
        let goes_on = inner.apply(less, vec![v[0].clone(), most], Attrs::None).unwrap();
        regions.insert(0, Arc::new(inner.finish(&[goes_on]).unwrap()));
    }
    let attrs = Attrs::Loop(Box::new(Loop {
        carried: 2,
        sliced: 0,
        stacked: 0,
        iterations: match known {
            true => Iterations::Times(iterations.into()),
            false => Iterations::While { most: None },
        },
        reverse: false,
        max_checkpoints: None,
        spills: false,
        key: Key::PerCall(0),
        updates: Vec::new(),
    }));
    let zero = tonnage_ops::emit::number(builder, 0.0, DType::F32).unwrap();
    let made = builder.emit(&WHILE_LOOP, vec![zero, h, w], attrs, regions, false).unwrap();
    made[1].clone()
}

#[test]
fn the_default_is_the_smallest_plan_that_takes_hardly_longer_than_the_quickest() {
    let (mut changed, mut smaller, mut quicker) = (0, 0, 0);
    for seed in 0..60 {
        let program = Program::of(&random(seed));
        let (chosen, frontier) = (program.default_plan(None), program.frontier());
        let plans: Vec<(Bytes, f64)> = (0..frontier.points())
            .map(|point| (frontier.plan(point).unwrap().peak(), frontier.seconds(point)))
            .collect();
        let longest = plans[0].1 * HARDLY_LONGER;
        let quick = || plans.iter().filter(|(_, seconds)| *seconds <= longest);
        let least = quick().map(|(peak, _)| *peak).min().unwrap();
        assert_eq!(chosen.peak(), least, "seed {seed}: {plans:?}");
        if let Some(fitted) = chosen.fitted {
            assert!(fitted.seconds <= longest, "seed {seed}: {fitted:?}");
            let asked = fitted.micro_batches.is_some() || fitted.in_bf16 > 0 || fitted.segments > 0;
            assert!(!asked && fitted.spilled.is_zero(), "seed {seed}: {fitted:?}");
        }
        let as_it_is = program.as_it_is();
        changed += usize::from(chosen.fitted.is_some());
        smaller += usize::from(chosen.peak() < as_it_is.peak());
        quicker += usize::from(chosen.peak() > as_it_is.peak());
        chosen.graph.verify().unwrap();
        // The same every time.
        assert_eq!(program.default_plan(None).to_string(), chosen.to_string(), "seed {seed}");
    }
    // Of the seeds some keep more states than their loops ask for, and some drop what takes hardly any time to recompute.
    assert!(changed >= 20 && smaller >= 5 && quicker >= 10, "{changed}, {smaller}, {quicker}");
}

#[test]
fn more_states_than_the_machine_has_memory_for_are_not_kept() {
    let mut builder = Builder::new();
    let h = builder.input(TensorType::new(DType::F32, [64, 64]), Kind::Input, None);
    let w = builder.input(TensorType::new(DType::F32, [64, 64]), Kind::Variable, None);
    let last = looped(&mut builder, &mut Dice(1), h, w, (1000, true));
    let forward = builder.finish(&[last]).unwrap();
    let wanted = [true, true];
    let what = VjpGraph { seeded: &[true], outputs: &[], wanted: &wanted, known: &[], sums: &[] };
    let program = Program::of(&vjp_graph(&forward, what, &tonnage_ops::GRAD_OPS).unwrap());
    let (free, few) = (program.default_plan(None), program.as_it_is());
    assert!(free.peak().get() > 8 * few.peak().get(), "{} and {}", free.peak(), few.peak());
    let enough = program.default_plan(Some(free.peak()));
    assert_eq!(enough.peak(), free.peak());
    let less = program.default_plan(Some(free.peak() - Bytes::new(1)));
    assert_eq!((less.peak(), less.fitted), (few.peak(), None));
}

#[test]
fn the_least_plan_is_what_a_refusal_names_and_it_fits() {
    for seed in 0..20 {
        let program = Program::of(&random(seed));
        let frontier = Frontier::of(&program.graph, &program.inputs, program.options()).unwrap();
        let least = frontier.least().unwrap().peak();
        assert_eq!(frontier.fit(Bytes::new(1)).unwrap().unwrap_err().peak(), least, "seed {seed}");
        assert_eq!(frontier.fit(least).unwrap().unwrap().peak(), least, "seed {seed}");
    }
}
