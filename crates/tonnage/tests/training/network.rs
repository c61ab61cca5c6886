//! Transfers between ranks beside the kernels: an engine without other processes stands for a second rank that has the same numbers.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tonnage::bind;
use tonnage::world::{Engine, World};
use tonnage::{DType, zeros};
use tonnage::{Elementwise, GradientTape, Plan, RandomKey, Result, Tensor, Variable, function};
use tonnage_core::attrs::Attrs;
use tonnage_core::{Builder, Emit, Kind, Mark, Source, TensorType};
use tonnage_ops::linalg::matmul::MATMUL;
use tonnage_ops::math::tanh::TANH;
use tonnage_ops::world::all_reduce::ALL_REDUCE;
use tonnage_plan::{InputSpec, Lane, PlanOptions, lower, plan};
use tonnage_runtime::execute::execute;

use crate::common::own_context;

/// Rank 0 of 2, of which the other has the same numbers. What is asked of it, and on which threads.
#[derive(Default)]
struct Twin {
    seen: Arc<Mutex<Vec<(String, String)>>>,
    /// What this rank sent to both last: the blocks of the other rank's sums are twice that.
    sent: Mutex<Vec<u8>>,
}

impl Twin {
    fn note(&self, what: &str) {
        let thread = std::thread::current().name().unwrap_or_default().to_string();
        self.seen.lock().unwrap().push((what.to_string(), thread));
    }
}

impl Engine for Twin {
    fn name(&self) -> String {
        "a twin".into()
    }

    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        2
    }

    fn all_to_all(&self, op: &'static str, from: &[u8], to: &mut [u8]) -> Result<()> {
        self.note(op);
        let half = from.len() / 2;
        let (own, others) = to.split_at_mut(half);
        own.copy_from_slice(&from[..half]);
        others.copy_from_slice(&from[..half]);
        *self.sent.lock().unwrap() = from.to_vec();
        Ok(())
    }

    fn all_gather(&self, _: &'static str, block: usize, all: &mut [u8]) -> Result<()> {
        let sent = std::mem::take(&mut *self.sent.lock().unwrap());
        let (own, others) = all.split_at_mut(block);
        if sent.is_empty() {
            others.copy_from_slice(&own[..others.len()]); // gathered as it is
            return Ok(());
        }
        for (to, from) in others.chunks_exact_mut(4).zip(sent[block..].chunks_exact(4)) {
            let x = f32::from_ne_bytes(from.try_into().unwrap());
            to.copy_from_slice(&(x + x).to_ne_bytes());
        }
        Ok(())
    }

    fn broadcast(&self, _: &'static str, _: usize, _: &mut [u8]) -> Result<()> {
        Ok(())
    }

    fn barrier(&self, _: &'static str) -> Result<()> {
        Ok(())
    }

    fn sent(&self) -> u64 {
        0
    }

    fn set_timeout(&self, _: Option<Duration>) {}

    fn abort(&self, why: &str) -> ! {
        panic!("{why}")
    }
}

const WIDTH: usize = 300;

/// A step of layers, whose gradients are added up over all ranks.
fn step(world: &World, layers: &[Variable], x: Tensor) -> Result<Tensor> {
    let mut tape = GradientTape::new();
    let mut h = x;
    for layer in layers {
        h = h.matmul(&layer.read()?)?.tanh()?;
    }
    let loss = h.square()?.mean_all()?;
    for (layer, own) in layers.iter().zip(tape.gradient(&loss, layers)?).rev() {
        layer.assign_sub(&own.tensor()?.all_reduce(world)?.mul(0.1)?)?;
    }
    Ok(loss)
}

fn layers() -> Vec<Variable> {
    let first = |i| RandomKey::new(i).normal([WIDTH, WIDTH], DType::F32).unwrap();
    (0..5).map(|i| Variable::new("w", first(i).mul(0.05).unwrap()).unwrap()).collect()
}

/// The transfers of a plan, each with the number of products that run before it is awaited.
fn hidden(plan: &Plan) -> Vec<usize> {
    let steps = plan.explain().steps;
    let begins = (0..steps.len()).filter(|at| steps[*at].lane == Lane::Network);
    let awaited =
        |at: usize| steps.iter().position(|step| step.awaits.contains(&at)).unwrap_or(steps.len());
    let products =
        |at: usize| steps[at + 1..awaited(at)].iter().filter(|step| step.op == "matmul").count();
    begins.map(products).collect()
}

#[test]
fn sums_of_gradients_run_beside_the_backward_pass_with_the_bits_of_eager_ops() {
    let _context = own_context();
    let twin = Twin::default();
    let seen = twin.seen.clone();
    let world = World::new(twin);
    let x = RandomKey::new(9).normal([64, WIDTH], DType::F32).unwrap();
    let (planned, eager) = (layers(), layers());
    let run = function(|x: Tensor| step(&world, &planned, x));
    let plan = run.plan(&x).unwrap();
    let hidden = hidden(&plan);
    assert_eq!(hidden.len(), 5, "{plan:#}");
    assert!(hidden.iter().filter(|products| **products > 0).count() >= 3, "{plan:#}");
    assert!(plan.to_string().contains(", awaits "), "{plan}");
    for _ in 0..3 {
        let (loss, measured) = run.call_measured(x.clone()).unwrap();
        assert_eq!(measured.unwrap().used, plan.peak());
        assert_eq!(
            loss.scalar::<f32>().unwrap(),
            step(&world, &eager, x.clone()).unwrap().scalar::<f32>().unwrap()
        );
    }
    let bits = |layers: &[Variable]| -> Vec<Vec<u32>> {
        let all = layers.iter().map(|w| w.read().unwrap().to_vec::<f32>().unwrap());
        all.map(|values| values.iter().map(|x| x.to_bits()).collect()).collect()
    };
    assert_eq!(bits(&planned), bits(&eager));
    let seen = seen.lock().unwrap();
    let on_lane = seen.iter().filter(|(_, thread)| thread == "tonnage-network").count();
    assert_eq!((on_lane, seen.len()), (15, 30), "{seen:?}");
}

/// A sum that a later step changes in place, with another product and its sum between.
fn planned(world: &World) -> Plan {
    let ty = |rows: usize| TensorType::new(DType::F32, [rows, WIDTH]);
    let mut builder = Builder::new();
    let types = [ty(WIDTH), ty(4 * WIDTH)];
    let [x, a] = [0, 1].map(|i| builder.input(types[i].clone(), Kind::Input, None));
    let of_ranks = || Attrs::World(world.clone());
    let plain = Attrs::Matmul { transpose_a: false, transpose_b: false };
    let mut apply = |op, inputs, attrs| builder.apply(op, inputs, attrs).unwrap();
    let sum = apply(&ALL_REDUCE, vec![x.clone()], of_ranks());
    let product = apply(&MATMUL, vec![a, x], plain);
    let second = apply(&ALL_REDUCE, vec![product], of_ranks());
    let changed = apply(&TANH, vec![sum], Attrs::None);
    let target = tonnage_runtime::machine::target();
    let graph = Arc::new(lower(&builder.finish(&[changed, second]).unwrap(), &*target).unwrap());
    let specs = types.map(|ty| InputSpec::contiguous(&ty, "test", false).unwrap());
    plan(&graph, &specs, PlanOptions::new(target)).unwrap()
}

#[test]
fn a_wait_that_is_forgotten_is_an_error_whatever_the_network_does() {
    let _context = own_context();
    let world = World::new(Twin::default());
    let made = planned(&world);
    assert!(made.steps.iter().any(|step| !step.awaits.is_empty()), "{made}");
    let inputs = [WIDTH, 4 * WIDTH].map(|rows| {
        let value = zeros([rows, WIDTH]).unwrap().add(1.0).unwrap();
        bind::array(&value, "test").unwrap().copied(mark(), "test").unwrap()
    });
    execute(&made, &inputs, [0, 0], mark()).unwrap();
    let mut forgetful = made;
    forgetful.steps.iter_mut().for_each(|step| step.awaits.clear());
    let error = execute(&forgetful, &inputs, [0, 0], mark()).unwrap_err().to_string();
    assert!(error.contains("is on loan"), "{error}");
}

fn mark() -> Mark {
    Mark { source: Source::here(), kind: Kind::Input }
}
