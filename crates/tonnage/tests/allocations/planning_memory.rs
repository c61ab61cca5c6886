//! What planning under a budget takes itself: bounded, and given back.
#![allow(clippy::unwrap_used, reason = "tests")]

use tonnage::{
    Bytes, DType, Elementwise, GradientTape, Result, Tensor, Variable, Watched, function,
    random_normal, set_seed,
};
use tonnage_counting::{live, most};

use crate::one_at_a_time;

/// A step of training of so many layers with attention, of some 57 nodes each.
fn step(weights: &[Vec<Variable>], x: Tensor) -> Result<Tensor> {
    let mut tape = GradientTape::new();
    let mut h = x;
    for layer in weights {
        let [q, k, v, up, down] = &layer[..] else { return Ok(h) };
        let normal = ((&h - h.mean_keep(-1)?)? * 0.9)?;
        let scores = normal.matmul(&q.read()?)?.matmul(&normal.matmul(&k.read()?)?.t()?)?;
        let mixed = scores.softmax(-1)?.matmul(&normal.matmul(&v.read()?)?)?;
        h = (h + mixed)?;
        let deviation = ((&h).square()?.mean_keep(-1)? + 1e-5)?.rsqrt()?;
        let inner = (&h * deviation)?.matmul(&up.read()?)?.gelu_tanh()?;
        h = (h + inner.matmul(&down.read()?)?)?;
    }
    let loss = h.square()?.mean_all()?;
    let all: Vec<&Variable> = weights.iter().flatten().collect();
    let sources: Vec<&dyn Watched> = all.iter().map(|v| *v as &dyn Watched).collect();
    for (variable, grad) in all.iter().zip(tape.gradient(&loss, &sources)?) {
        variable.assign_sub(&(grad.tensor()? * 0.01)?)?;
    }
    Ok(loss)
}

/// What planning may take for each node: 32 MiB for 5,000.
const EACH: usize = (32 << 20) / 5_000;

#[test]
fn planning_takes_at_most_32_mib_for_5000_nodes_and_gives_it_back() {
    let _own = one_at_a_time();
    set_seed(1);
    let weight =
        |sizes: [usize; 2]| Variable::new("w", random_normal(sizes, DType::F32).unwrap()).unwrap();
    // The second has 5,000 nodes.
    for layers in [24, 88] {
        let weights: Vec<Vec<Variable>> = (0..layers)
            .map(|_| [[16, 16], [16, 16], [16, 16], [16, 64], [64, 16]].map(weight).to_vec())
            .collect();
        bounded(&weights);
    }
}

/// Plans under a budget that fits, and under one that is refused after a look at what else would help, which is a
/// frontier each.
fn bounded(weights: &[Vec<Variable>]) {
    let x = Tensor::spec(DType::F32, [8, 32, 16]);
    let make = || {
        let held = weights.to_vec();
        function(move |x| step(&held, x))
    };
    let plain = make().plan(&x).unwrap();
    let nodes = plain.graph.nodes.len();
    assert!(nodes > 1000, "{nodes} nodes");
    for (percent, fits) in [(70, true), (1, false)] {
        let f = make().budget(Bytes::new(plain.peak().get() / 100 * percent)).unwrap();
        let before = live();
        let (planned, taken) = most(|| f.plan(&x));
        assert_eq!(planned.is_ok(), fits);
        drop(planned);
        let (stays, counted) = (live() - before, f.graph_bytes().as_usize() as isize);
        let planning = (taken - stays) as usize;
        assert!(planning <= nodes * EACH, "{planning} bytes for {nodes} nodes at {percent} %");
        assert!(stays <= counted + counted / 50, "{stays} stay, {counted} are counted");
    }
}
