//! How long planning takes, by the number of nodes: chains, a training step of a deep network, and towers
//! that meet; and with a budget of half of what lies above the inputs. `cargo bench -p tonnage-plan --bench planning
//! [most]`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tonnage_core::attrs::Attrs;
use tonnage_core::grad::{VjpGraph, vjp_graph};
use tonnage_core::graph::replay;
use tonnage_core::{Builder, DType, Emit, Graph, Kind, OpDef, Result, TensorType, Value};
use tonnage_ops::{GRAD_OPS, emit, math, state};
use tonnage_plan::{InputSpec, Ladder, Machine, Options, Rewrite, lower, plan, rewrite};

/// `x -> tanh(x * 0.9 + 0.1)` again and again, with a matrix product every ninth time.
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

/// Forward, backward and update of a network of `layers` layers with biases.
fn training(nodes: usize) -> Result<Graph> {
    let layers = (nodes / 24).max(1);
    let mut b = Builder::new();
    let ty = |dims: &[usize]| TensorType::new(DType::F32, dims);
    let mut h = b.input(ty(&[8, 16]), Kind::Input, None);
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
    let forward = b.finish(&[loss])?;
    let wanted: Vec<bool> = (0..forward.inputs.len()).map(|i| i > 0).collect();
    let what = VjpGraph { seeded: &[true], wanted: &wanted, known: &[], sums: &[] };
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

/// Towers of elementwise ops, folds and products over one input, added up two and two.
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
        "{:<10} {:>8} {:>8} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}",
        "graph", "nodes", "steps", "rewrite", "lower", "plan", "lower, each", "all, each", "budget"
    );
    type Make = fn(usize) -> Result<Graph>;
    let graphs: [(&str, Make); 3] = [("chain", chain), ("training", training), ("towers", towers)];
    for (name, make) in graphs {
        for nodes in [100, 300, 1_000, 3_000, 10_000, 20_000, 50_000] {
            if nodes > most {
                continue;
            }
            let graph = make(nodes)?;
            let count = graph.nodes.len();
            let runs = (20_000 / count).clamp(1, 20);
            let (simple, _) = best(runs, || rewrite(&graph, &Rewrite::ALL))?;
            let (lowering, lowered) = best(runs, || lower(&graph))?;
            let lowered = Arc::new(lowered);
            let inputs = lowered
                .input_types()
                .iter()
                .map(|ty| InputSpec::contiguous(ty, "bench", false))
                .collect::<Result<Vec<_>>>()?;
            let options = Options { threads: 2, outputs_given: false };
            let (planning, planned) = best(runs, || plan(&lowered, &inputs, options))?;
            let room = (planned.peak() - planned.inputs).get() / 2;
            let half = planned.inputs + tonnage_core::Bytes::new(room);
            let budgeted = match nodes <= 3_000 {
                true => {
                    let fit =
                        || Ladder::of(&lowered, &inputs, options, &Machine::DEFAULT)?.fit(half);
                    format!("{:.2?}", best(runs.min(3), fit)?.0)
                }
                false => "-".into(),
            };
            let each = |time: Duration| time / count as u32;
            println!(
                "{name:<10} {count:>8} {:>8} {simple:>12.2?} {lowering:>12.2?} {planning:>12.2?} {:>12.2?} {:>12.2?} {budgeted:>12}",
                planned.steps.len(),
                each(lowering),
                each(lowering + planning),
            );
        }
    }
    Ok(())
}
