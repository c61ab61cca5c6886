//! How long planning takes, by the number of nodes: chains, training steps of a deep network and of a transformer, and
//! towers that meet; pass by pass; and with a budget of half of what lies above the inputs.
//! `cargo bench -p tonnage-plan --bench planning [most]`.
//!
//! What it must stay under: 20 ms for 1,000 nodes, 1 s for 20,000, and no faster growth than n log n; with a budget
//! 1 s for 2,000.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tonnage_core::attrs::Attrs;
use tonnage_core::grad::{VjpGraph, vjp_graph};
use tonnage_core::graph::replay;
use tonnage_core::{Builder, Bytes, DType, Emit, Graph, Kind, OpDef, Result, TensorType, Value};
use tonnage_cpu::CpuTarget;
use tonnage_ops::{GRAD_OPS, emit, math, nn, state};
use tonnage_plan::offsets::{self, Effort, Item};
use tonnage_plan::{Frontier, InputSpec, Machine, PlanOptions, Rewrite, lower, plan, rewrite};

/// `x -> tanh(x * 0.9 + 0.1)` again and again, with a matrix product every ninth time.
/// A CPU of two threads.
fn two(machine: Machine) -> CpuTarget {
    CpuTarget::new(2, machine)
}

fn chain(nodes: usize) -> Result<Graph> {
    let mut b = Builder::new();
    let ty = TensorType::new(DType::F32, [16, 16]);
    let mut x = b.input(ty.clone(), Kind::Input, None);
    let w = b.input(ty, Kind::Constant, None);
    while b.graph().nodes.len() < nodes {
        for _ in 0..8 {
            x = emit::scale(&mut b, x, 0.9)?;
            let small = emit::number(&mut b, 0.1, DType::F32)?;
            x = emit::add(&mut b, x, small)?;
            x = emit::unary(&mut b, &math::tanh::TANH, x)?;
        }
        x = emit::matmul(&mut b, x, w.clone(), false, false)?;
    }
    b.finish(&[x])
}

fn training(nodes: usize) -> Result<Graph> {
    training_on(nodes, 8)
}

/// Forward, backward and update of a network of layers with biases, on that many rows.
fn training_on(nodes: usize, rows: usize) -> Result<Graph> {
    let layers = (nodes / 13).max(1);
    let mut b = Builder::new();
    let ty = |dims: &[usize]| TensorType::new(DType::F32, dims);
    let mut h = b.input(ty(&[rows, 16]), Kind::Input, None);
    let mut weights = Vec::new();
    for _ in 0..layers {
        weights.push(b.input(ty(&[16, 16]), Kind::Variable, None));
        weights.push(b.input(ty(&[16]), Kind::Variable, None));
    }
    for pair in weights.chunks(2) {
        let product = emit::matmul(&mut b, h, pair[0].clone(), false, false)?;
        let sum = emit::add(&mut b, product, pair[1].clone())?;
        h = emit::unary(&mut b, &math::tanh::TANH, sum)?;
    }
    let square = emit::unary(&mut b, &math::square::SQUARE, h)?;
    let loss = emit::sum(&mut b, square, [0, 1].into_iter().collect(), false)?;
    step(b.finish(&[loss])?)
}

/// Forward, backward and update of a transformer: norms, attention written from products and a softmax, and a
/// perceptron of two layers.
fn transformer(nodes: usize) -> Result<Graph> {
    let (tokens, width) = (16, 32);
    let blocks = (nodes / 71).max(1);
    let mut b = Builder::new();
    let ty = |dims: &[usize]| TensorType::new(DType::F32, dims);
    let mut h = b.input(ty(&[tokens, width]), Kind::Input, None);
    let shapes: [&[usize]; 10] = [
        &[width],
        &[width],
        &[width, width],
        &[width, width],
        &[width, width],
        &[width, width],
        &[width],
        &[width],
        &[width, 4 * width],
        &[4 * width, width],
    ];
    let weights: Vec<Value> =
        (0..blocks * 10).map(|i| b.input(ty(shapes[i % 10]), Kind::Variable, None)).collect();
    let norm = Attrs::Normalize { epsilon: 1e-5.into(), centered: true, groups: 1 };
    for w in weights.chunks(10) {
        let normed = |b: &mut Builder, h: &Value, at: usize| {
            let inputs = vec![h.clone(), w[at].clone(), w[at + 1].clone()];
            b.apply(&nn::norm::layer::LAYER_NORM, inputs, norm.clone())
        };
        let x = normed(&mut b, &h, 0)?;
        let [q, k, v] =
            [2, 3, 4].map(|i| emit::matmul(&mut b, x.clone(), w[i].clone(), false, false));
        let scores = emit::matmul(&mut b, q?, k?, false, true)?;
        let scores = emit::scale(&mut b, scores, 0.25)?;
        let shares = b.apply(&nn::softmax::plain::SOFTMAX, vec![scores], Attrs::None)?;
        let mixed = emit::matmul(&mut b, shares, v?, false, false)?;
        let mixed = emit::matmul(&mut b, mixed, w[5].clone(), false, false)?;
        h = emit::add(&mut b, h, mixed)?;
        let x = normed(&mut b, &h, 6)?;
        let wide = emit::matmul(&mut b, x, w[8].clone(), false, false)?;
        let wide = emit::unary(&mut b, &math::gelu::GELU, wide)?;
        let out = emit::matmul(&mut b, wide, w[9].clone(), false, false)?;
        h = emit::add(&mut b, h, out)?;
    }
    let square = emit::unary(&mut b, &math::square::SQUARE, h)?;
    let loss = emit::sum(&mut b, square, [0, 1].into_iter().collect(), false)?;
    step(b.finish(&[loss])?)
}

/// A loss of an input and variables, with its gradients and a step of plain descent.
fn step(forward: Graph) -> Result<Graph> {
    let wanted: Vec<bool> = (0..forward.inputs.len()).map(|i| i > 0).collect();
    let what = VjpGraph { seeded: &[true], outputs: &[], wanted: &wanted, known: &[], sums: &[] };
    let back = vjp_graph(&forward, what, &GRAD_OPS)?;
    let mut b = Builder::new();
    let inputs: Vec<Value> = forward
        .inputs
        .iter()
        .map(|id| b.input(forward.ty(*id).clone(), forward.value(*id).kind, None))
        .collect();
    let mut given = inputs.clone();
    given.push(emit::number(&mut b, 1.0, DType::F32)?);
    let grads = replay(&back, given, &mut b)?;
    let mut outputs = Vec::new();
    for (variable, grad) in inputs[1..].iter().zip(grads) {
        let step = emit::scale(&mut b, grad, -0.01)?;
        outputs.push(apply(&mut b, &state::assign_add::ASSIGN_ADD, variable.clone(), step)?);
    }
    b.finish(&outputs)
}

/// Towers of elementwise ops, reductions and products over one input, added up two and two.
fn towers(nodes: usize) -> Result<Graph> {
    let mut b = Builder::new();
    let ty = TensorType::new(DType::F32, [16, 16]);
    let x = b.input(ty, Kind::Input, None);
    let mut tops = Vec::new();
    while b.graph().nodes.len() < nodes * 9 / 10 {
        let mut y = emit::scale(&mut b, x.clone(), 1.0 + tops.len() as f64)?;
        for _ in 0..4 {
            let total = emit::sum(&mut b, y.clone(), [1].into_iter().collect(), true)?;
            let centred = emit::sub(&mut b, y, total)?;
            let product = emit::matmul(&mut b, centred, x.clone(), false, true)?;
            y = emit::unary(&mut b, &math::exp::EXP, product)?;
        }
        tops.push(y);
    }
    while tops.len() > 1 {
        let mut next = Vec::new();
        for pair in tops.chunks(2) {
            next.push(match pair {
                [p, q] => emit::add(&mut b, p.clone(), q.clone())?,
                rest => rest[0].clone(),
            });
        }
        tops = next;
    }
    b.finish(&tops)
}

fn apply(b: &mut Builder, op: &'static OpDef, x: Value, y: Value) -> Result<Value> {
    b.apply(op, vec![x, y], Attrs::None)
}

fn best<T>(runs: usize, mut f: impl FnMut() -> Result<T>) -> Result<(Duration, T)> {
    let mut least = Duration::MAX;
    let mut made = None;
    for _ in 0..runs.max(1) {
        let start = Instant::now();
        let result = black_box(f()?);
        least = least.min(start.elapsed());
        made = Some(result);
    }
    made.map(|made| (least, made))
        .ok_or_else(|| tonnage_core::ErrorKind::BadGraph { what: "nothing was run".into() }.into())
}

fn main() -> Result<()> {
    let most = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(50_000);
    println!(
        "{:<12} {:>7} {:>7} {:>10} {:>10} {:>14} {:>10} {:>10} {:>10} {:>10}",
        "graph",
        "nodes",
        "steps",
        "rewrite",
        "fuse",
        "order, place",
        "arena",
        "all",
        "each",
        "budget"
    );
    type Make = fn(usize) -> Result<Graph>;
    let graphs: [(&str, Make); 4] = [
        ("chain", chain),
        ("perceptron", training),
        ("transformer", transformer),
        ("towers", towers),
    ];
    for (name, make) in graphs {
        let mut curve = Vec::new();
        for nodes in [100, 300, 1_000, 3_000, 5_000, 10_000, 20_000, 50_000] {
            if nodes > most {
                continue;
            }
            let graph = make(nodes)?;
            let count = graph.nodes.len();
            let runs = (20_000 / count).clamp(1, 20);
            let (simple, _) =
                best(runs, || rewrite(&graph, &Rewrite::ALL, &two(Machine::DEFAULT)))?;
            let (lowering, lowered) = best(runs, || lower(&graph, &two(Machine::DEFAULT)))?;
            let lowered = Arc::new(lowered);
            let inputs = lowered
                .input_types()
                .iter()
                .map(|ty| InputSpec::contiguous(ty, "bench", false))
                .collect::<Result<Vec<_>>>()?;
            let options = PlanOptions::new(Arc::new(two(Machine::DEFAULT)));
            let (planning, planned) = best(runs, || plan(&lowered, &inputs, options.clone()))?;
            let items: Vec<Item> = planned
                .buffers
                .iter()
                .map(|b| Item {
                    lower: b.first as u32,
                    upper: b.last as u32 + 1,
                    size: b.bytes.get(),
                })
                .collect();
            let (packing, _) = best(runs, || offsets::pack(&items, Effort::PLAN, &mut || false))?;
            let room = (planned.peak() - planned.inputs).get() / 2;
            let half = planned.inputs + Bytes::new(room);
            let budgeted = match nodes <= 3_000 {
                true => {
                    let fit = || Frontier::of(&lowered, &inputs, options.clone())?.fit(half);
                    format!("{:.2?}", best(runs.min(3), fit)?.0)
                }
                false => "-".into(),
            };
            let all = lowering + planning;
            println!(
                "{name:<12} {count:>7} {:>7} {simple:>10.2?} {:>10.2?} {:>14.2?} {packing:>10.2?} {all:>10.2?} {:>10.2?} {budgeted:>10}",
                planned.steps.len(),
                lowering.saturating_sub(simple),
                planning.saturating_sub(packing),
                all / count as u32,
            );
            curve.push((count as f64, all.as_secs_f64()));
        }
        println!("{name:<12} {}", growth(&curve));
    }
    frontiers(most)
}

/// The power of the number of nodes that the time grows with, from 1,000 nodes on: the slope of the line
/// through the logarithms. That of `n log n` is 1.1 here.
fn growth(curve: &[(f64, f64)]) -> String {
    let points: Vec<(f64, f64)> =
        curve.iter().filter(|(n, _)| *n > 900.0).map(|(n, t)| (n.ln(), t.ln())).collect();
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let spread: f64 = points.iter().map(|p| (p.0 - x) * (p.0 - x)).sum();
    match points.len() {
        0 | 1 => "too few nodes for a curve".into(),
        _ => {
            let slope = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>() / spread;
            format!("grows with n^{slope:.2}")
        }
    }
}

/// A budget: the frontier, with and without a file, and the point for half of the arena.
fn frontiers(most: usize) -> Result<()> {
    println!(
        "{:<10} {:>8} {:>12} {:>12} {:>14}",
        "frontier", "nodes", "recompute", "file", "half, planned"
    );
    for nodes in [500, 1_000, 2_000, 4_000].into_iter().filter(|n| *n <= most) {
        let graph = Arc::new(lower(&training_on(nodes, 8192)?, &two(Machine::DEFAULT))?);
        let inputs = graph
            .input_types()
            .iter()
            .map(|ty| InputSpec::contiguous(ty, "bench", false))
            .collect::<Result<Vec<_>>>()?;
        let of = |machine: Machine| {
            let options = PlanOptions::new(Arc::new(two(machine)));
            best(1, || Frontier::of(&graph, &inputs, options.clone()))
        };
        let (recompute, _) = of(Machine::DEFAULT.without_disk())?;
        let (file, frontier) = of(Machine::DEFAULT)?;
        let plan = frontier.plan(0)?;
        let budget = plan.inputs + Bytes::new(plan.obtains().get() / 2);
        let (fit, _) = best(1, || frontier.fit(budget))?;
        println!("{:<10} {nodes:>8} {recompute:>12.2?} {file:>12.2?} {fit:>14.2?}", "training");
    }
    Ok(())
}
