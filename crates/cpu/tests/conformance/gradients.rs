//! Gradients against central differences in f64, in a random direction.
//!
//! A rule is given what its row declares and nothing else: for every alternative of `saves`, and for every choice of
//! inputs whose gradients are wanted.

use smallvec::SmallVec;
use tonnage_core::emit::Value;
use tonnage_core::grad::{Record, VjpGraph, backward, vjp_graph};
use tonnage_core::graph::{Builder, Graph};
use tonnage_core::row::{Call, Grad, OpDef, Sample, Save, Saved, Values, saved_values};
use tonnage_core::source::Source;
use tonnage_core::{Emit, ErrorKind, Kind};
use tonnage_ops::GRAD_OPS;

use crate::double::in_f64;
use crate::draw::{Random, for_every_sample};
use crate::exec::Engine;
use crate::exec::tensor::Tensor;
use crate::plain::Plain;

/// Half of the distance between the two points, and how far a rule may be from their difference, as a fraction of
/// what it adds up. A function with kinks close together (a sort) needs the second, shorter and rougher.
const STEPS: [(f64, f64); 2] = [(1e-5, 1e-6), (1e-8, 1e-5)];

/// A function of several tensors, as far as floats among its results go.
pub type Function<'a> = dyn Fn(&[Plain]) -> Result<Vec<Plain>, String> + 'a;

pub fn dot(a: &Plain, b: &Plain) -> f64 {
    a.values.iter().zip(&b.values).map(|(x, y)| x * y).sum()
}

/// Numbers of a type: a seed, or a direction.
pub fn noise(random: &mut Random, like: &Plain) -> Plain {
    let values = like.values.iter().map(|_| random.normal()).collect();
    Plain { values, ..like.clone() }
}

/// The slopes of `seeds . f(inputs)` along `directions`, one for each of the steps.
pub fn slopes(
    f: &Function,
    inputs: &[Plain],
    directions: &[Option<Plain>],
    seeds: &[Option<Plain>],
) -> Result<[f64; 2], String> {
    let side = |step: f64| -> Result<f64, String> {
        let mut moved = inputs.to_vec();
        for (x, d) in moved.iter_mut().zip(directions) {
            if let Some(d) = d {
                x.values.iter_mut().zip(&d.values).for_each(|(x, d)| *x += step * d);
            }
        }
        let made = f(&moved)?;
        Ok(made.iter().zip(seeds).filter_map(|(x, s)| Some(dot(x, s.as_ref()?))).sum())
    };
    let slope = |step: f64| side(step).and_then(|up| Ok((up - side(-step)?) / (2.0 * step)));
    Ok([slope(STEPS[0].0)?, slope(STEPS[1].0)?])
}

/// Compares gradients with the slope.
pub fn agree(
    grads: &[Option<Plain>],
    directions: &[Option<Plain>],
    slopes: [f64; 2],
) -> Result<(), String> {
    let (mut sum, mut scale) = (0.0, 1.0);
    for (grad, direction) in grads.iter().zip(directions) {
        if let (Some(grad), Some(direction)) = (grad, direction) {
            sum += dot(grad, direction);
            scale +=
                grad.values.iter().zip(&direction.values).map(|(a, b)| (a * b).abs()).sum::<f64>();
        }
    }
    let fits =
        |(slope, (_, tolerance)): (f64, (f64, f64))| (sum - slope).abs() <= tolerance * scale;
    let fits = slopes.into_iter().zip(STEPS).any(fits);
    if fits { Ok(()) } else { Err(format!("the rule says {sum}, differences say {slopes:?}")) }
}

/// Which floats have a gradient: every choice of at least one.
pub fn choices(inputs: &[Plain]) -> Vec<Vec<bool>> {
    let floats: Vec<usize> = (0..inputs.len()).filter(|i| inputs[*i].dtype.is_float()).collect();
    let chosen = |mask: usize| {
        let mut needs = vec![false; inputs.len()];
        floats.iter().enumerate().for_each(|(bit, i)| needs[*i] = mask >> bit & 1 == 1);
        needs
    };
    (1..1usize << floats.len()).map(chosen).collect()
}

fn run(
    op: &'static OpDef,
    sample: &Sample,
    inputs: &[Plain],
    aux: bool,
) -> Result<Vec<Tensor>, String> {
    let tensors = inputs.iter().map(Tensor::from_plain).collect();
    let mut engine = Engine::plain();
    let made = engine.run(op, tensors, &sample.attrs, &sample.regions, aux);
    let made = made.map_err(|e| e.to_string())?;
    made.into_iter().map(|t| engine.resident(t).map_err(|e| e.to_string())).collect()
}

/// Gradients by the row's rule, from what one alternative saves.
fn by_rule(
    op: &'static OpDef,
    case: &Case,
    inputs: &[Tensor],
    needs: &[bool],
    alternative: &[Saved],
    in_place: bool,
) -> Result<Vec<Option<Plain>>, String> {
    let Case { sample, made, plain, seeds, .. } = case;
    let plain = *plain;
    let find = |save: Save| -> Value {
        let tensor = match save {
            Save::Input(i) => &inputs[i],
            Save::Output(i) => &made[i],
            Save::Aux(i) => &made[plain + i],
            Save::Inputs | Save::Ends | Save::Auxes | Save::Declared => {
                panic!("it was spelled out")
            }
        };
        tensor.clone().value()
    };
    let count = inputs.len();
    let types: Vec<_> = inputs.iter().map(Tensor::ty).collect();
    let call = Call { op: op.name, inputs: &types, attrs: &sample.attrs, regions: &sample.regions };
    let saves = saved_values(op, alternative, needs, &call, true).map_err(|e| e.to_string())?;
    let record = Record {
        op,
        attrs: sample.attrs.clone(),
        regions: sample.regions.clone(),
        source: Source::here(),
        inputs: (0..count).collect(),
        needs: needs.into(),
        input_types: inputs.iter().map(Tensor::ty).collect(),
        outputs: (count..count + plain).collect(),
        output_types: made[..plain].iter().map(Tensor::ty).collect(),
        saved: saves.into_iter().map(|k| (k, find(k))).collect::<SmallVec<_>>(),
    };
    let seeds = seeds.iter().enumerate().filter_map(|(i, seed)| {
        let seed = Tensor::from_plain(seed.as_ref()?).value();
        Some((count + i, tonnage_core::grad::Cotangent::Dense(seed)))
    });
    let wanted: Vec<usize> = (0..count).filter(|i| needs[*i]).collect();
    let mut engine = Engine::on(&tonnage_cpu::workers::Alone, in_place);
    let grads = backward(vec![record], seeds.collect(), &wanted, &mut engine, &GRAD_OPS)
        .map_err(|e| e.to_string())?;
    let mut all = vec![None; count];
    for (i, grad) in wanted.into_iter().zip(grads) {
        let Some(grad) = grad else { continue };
        let grad = grad.dense(&mut engine, &GRAD_OPS).map_err(|e| e.to_string())?;
        let grad = engine.resident(Tensor::of(grad)).map_err(|e| e.to_string())?;
        if grad.ty() != inputs[i].ty() {
            return Err(format!("the gradient of {} is {}", inputs[i].ty(), grad.ty()));
        }
        all[i] = Some(grad.plain());
    }
    Ok(all)
}

/// Inputs in f64, with seeds for the floats among the results; nothing where there is nothing to differentiate.
pub struct Case {
    /// In f64.
    pub sample: Sample,
    /// Their values.
    pub inputs: Vec<Plain>,
    /// Its results, aux ones at the end.
    pub made: Vec<Tensor>,
    plain: usize,
    /// Of the floats among the results.
    pub seeds: Vec<Option<Plain>>,
}

impl Case {
    /// The results for other inputs.
    pub fn run(&self, op: &'static OpDef, inputs: &[Plain]) -> Result<Vec<Plain>, String> {
        Ok(run(op, &self.sample, inputs, false)?.iter().map(Tensor::plain).collect())
    }
}

pub fn case(
    op: &'static OpDef,
    sample: &Sample,
    random: &mut Random,
) -> Result<Option<Case>, String> {
    let sample = in_f64(sample);
    let inputs = random.inputs(&sample);
    if matches!(op.grad, Grad::Stop(_)) || inputs.iter().all(|x| !x.dtype.is_float()) {
        return Ok(None);
    }
    let made = run(op, &sample, &inputs, true)?;
    let without = run(op, &sample, &inputs, false)?;
    if made.iter().zip(&without).any(|(a, b)| a.bits() != b.bits()) {
        return Err("its aux outputs change the others".into());
    }
    // The largest of nothing has no slope.
    let endless =
        |t: &Tensor| t.dtype.is_float() && t.plain().values.iter().any(|x| !x.is_finite());
    if without.iter().any(endless) {
        return Ok(None);
    }
    let seed = |t: &Tensor| t.dtype.is_float().then(|| noise(random, &t.plain()));
    let seeds: Vec<_> = without.iter().map(seed).collect();
    let some = seeds.iter().any(Option::is_some);
    Ok(some.then_some(Case { sample, inputs, made, plain: without.len(), seeds }))
}

pub fn directions(random: &mut Random, case: &Case, needs: &[bool]) -> Vec<Option<Plain>> {
    let mut all = Vec::new();
    for ((x, need), input) in case.inputs.iter().zip(needs).zip(&case.sample.inputs) {
        let mut direction = need.then(|| noise(random, x));
        if let (Some(d), Values::PositiveDefinite) = (&mut direction, input.values) {
            // Only symmetric neighbours of a symmetric matrix are in the op's domain.
            let n = *x.sizes.last().expect("a matrix");
            for matrix in d.values.chunks_mut((n * n).max(1)) {
                (0..n * n).for_each(|at| matrix[at % n * n + at / n] = matrix[at]);
            }
        }
        all.push(direction);
    }
    all
}

fn check(op: &'static OpDef, sample: &Sample, random: &mut Random) -> Result<(), String> {
    let Some(case) = case(op, sample, random)? else { return Ok(()) };
    let tensors: Vec<Tensor> = case.inputs.iter().map(Tensor::from_plain).collect();
    let before: Vec<_> = tensors.iter().chain(&case.made).map(Tensor::bits).collect();
    let f = |inputs: &[Plain]| case.run(op, inputs);
    for needs in choices(&case.inputs) {
        let directions = directions(random, &case, &needs);
        // Its gradient is zero by decree.
        let slopes = match op.name {
            "stop_gradient" => [0.0; 2],
            _ => slopes(&f, &case.inputs, &directions, &case.seeds)?,
        };
        for alternative in op.saves.alternatives {
            let mut both = Vec::new();
            for in_place in [false, true] {
                let grads = by_rule(op, &case, &tensors, &needs, alternative, in_place)
                    .map_err(|e| format!("{needs:?} from {alternative:?}: {e}"))?;
                agree(&grads, &directions, slopes)
                    .map_err(|e| format!("{needs:?} from {alternative:?}: {e}"))?;
                both.push(grads);
            }
            if both[0] != both[1] {
                return Err("working in place changes the gradient".into());
            }
        }
    }
    let after: Vec<_> = tensors.iter().chain(&case.made).map(Tensor::bits).collect();
    if before != after {
        return Err("the rule wrote to something that it was lent".into());
    }
    Ok(())
}

#[test]
fn rules_agree_with_differences() {
    for_every_sample(check);
}

/// The op alone, as a graph.
pub fn graph_of(op: &'static OpDef, sample: &Sample) -> tonnage_core::Result<Graph> {
    let mut builder = Builder::new();
    let inputs: Vec<Value> = sample
        .inputs
        .iter()
        .map(|input| builder.input(input.ty.clone(), Kind::Input, None))
        .collect();
    let outputs = builder.emit(op, inputs, sample.attrs.clone(), sample.regions.clone(), false)?;
    builder.finish(&outputs)
}

fn floats(graph: &Graph) -> (Vec<bool>, Vec<bool>) {
    let float = |ty: &tonnage_core::TensorType| ty.dtype.is_float();
    let (inputs, outputs) = (graph.input_types(), graph.output_types());
    (inputs.iter().map(float).collect(), outputs.iter().map(float).collect())
}

/// A gradient is a graph of ops with gradients: it can be differentiated again.
fn check_twice(op: &'static OpDef, sample: &Sample, random: &mut Random) -> Result<(), String> {
    let Some(case) = case(op, sample, random)? else { return Ok(()) };
    let text = |e: tonnage_core::Error| e.to_string();
    let graph = graph_of(op, &case.sample).map_err(text)?;
    let (wanted, seeded) = floats(&graph);
    let what = VjpGraph { seeded: &seeded, outputs: &[], wanted: &wanted, known: &[], sums: &[] };
    let once = vjp_graph(&graph, what, &GRAD_OPS).map_err(text)?;
    once.verify().map_err(text)?;
    let (wanted, seeded) = floats(&once);
    let what = VjpGraph { seeded: &seeded, outputs: &[], wanted: &wanted, known: &[], sums: &[] };
    let twice = match vjp_graph(&once, what, &GRAD_OPS) {
        // A row that says why is enough.
        Err(e) if matches!(e.kind(), ErrorKind::NoGradient { .. }) => return Ok(()),
        other => other.map_err(text)?,
    };
    twice.verify().map_err(text)?;

    let replay = |graph: &Graph, inputs: &[Plain]| -> Result<Vec<Plain>, String> {
        let tensors = inputs.iter().map(Tensor::from_plain).collect();
        let made = Engine::plain().replay(graph, tensors).map_err(text)?;
        Ok(made.iter().map(Tensor::plain).collect())
    };
    let inputs: Vec<Plain> =
        case.inputs.iter().chain(case.seeds.iter().flatten()).cloned().collect();
    let grads = replay(&once, &inputs)?;
    let seeds: Vec<Option<Plain>> = grads.iter().map(|g| Some(noise(random, g))).collect();
    let (own, seeded) = wanted.split_at(case.inputs.len());
    let mut directions = directions(random, &case, own);
    let more = inputs[own.len()..].iter().zip(seeded);
    directions.extend(more.map(|(x, w)| w.then(|| noise(random, x))));
    let slopes = slopes(&|inputs| replay(&once, inputs), &inputs, &directions, &seeds)?;
    let all: Vec<Plain> = inputs.iter().chain(seeds.iter().flatten()).cloned().collect();
    let mut second = replay(&twice, &all)?.into_iter();
    let second: Vec<Option<Plain>> =
        wanted.iter().map(|w| if *w { second.next() } else { None }).collect();
    agree(&second, &directions, slopes)
}

#[test]
fn gradients_of_gradients_agree_with_differences() {
    for_every_sample(check_twice);
}
