//! Budgets, spills, training and checkpoints on the device.

use tonnage::data::Dataset;
use tonnage::device;
use tonnage::nn::{Activation, Dense, Parameters, Sequential};
use tonnage::optim::Optimizer;
use tonnage::train::{Checkpoints, Fit, Go};
use tonnage::{
    Bytes, Context, DType, Elementwise, GradientTape, Loop, RandomKey, Result, Tensor, function,
    memory, set_seed, tensor,
};

use crate::common::Folder;
use crate::common::chain::{drawn, weights};

fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

/// The gradient of a chain of layers, under a budget by levers that keep every bit.
fn chain(device: &str, budget: Option<Bytes>) -> Result<(Vec<u32>, Bytes, Bytes)> {
    let _context = Context::new().enter();
    let _scope = device::scope(device).unwrap();
    let weights = weights(6, 64, 3);
    let x = drawn([256, 64], 1.0);
    let step = function({
        let weights = weights.clone();
        move |x: Tensor| -> Result<Vec<Tensor>> {
            let mut tape = GradientTape::new();
            let mut h = x;
            for w in &weights {
                h = h.matmul(&w.read()?)?.tanh()?;
            }
            let loss = h.square()?.sum_all()?;
            tape.gradient(&loss, &weights)?.into_iter().map(|g| g.tensor()).collect()
        }
    })
    .exact()
    .budget(budget.unwrap_or(Bytes::mib(1 << 20)))
    .unwrap();
    let plan = step.plan(&x)?;
    let host = memory::info("cpu:0").unwrap().in_use;
    memory::reset_peak("cpu:0").unwrap();
    let made = step.call(x)?;
    let ran = step.last_run().unwrap();
    if device != "cpu:0" {
        let obtained = memory::info("cpu:0").unwrap().peak - host;
        assert_eq!(obtained, plan.host_bytes(), "of host memory, and predicted");
        assert_eq!(ran.measured.spilled.is_zero(), plan.host_spill.is_zero());
        let text = plan.to_string();
        assert_eq!(text.contains("to host memory, and reads it back"), !plan.host_spill.is_zero());
    }
    assert_eq!(ran.measured.used, plan.peak(), "used and predicted");
    assert_eq!(ran.measured.obtained, plan.obtains(), "obtained and predicted");
    Ok((made.iter().flat_map(bits).collect(), plan.peak(), ran.measured.spilled))
}

#[test]
fn budgets_hold_on_the_device_and_what_is_spilled_waits_in_host_memory() {
    let (free, peak, _) = chain("cpu:0", None).unwrap();
    let (mut spilled, mut refused) = (0, 0);
    for percent in (40..=100).step_by(4) {
        let budget = Bytes::new(peak.get() * percent / 100);
        match (chain("cpu:0", Some(budget)), chain("sim:0", Some(budget))) {
            (Ok((here, _, by_cpu)), Ok((there, at_most, by_device))) => {
                assert!(at_most <= budget, "{percent} percent");
                assert_eq!((&here, &there), (&free, &free), "{percent} percent");
                assert_eq!(by_cpu, by_device);
                spilled += u32::from(!by_device.is_zero());
            }
            (Err(_), Err(error)) => {
                assert!(error.to_string().contains("in use on sim:0"), "{error}");
                refused += 1;
            }
            (here, there) => panic!("{percent} percent: {:?} and {:?}", here.err(), there.err()),
        }
    }
    assert!(spilled > 0 && refused > 0, "{spilled} spilled, {refused} refused");
}

/// The gradient of a loop, and how long the file of its states is.
fn loop_gradient(device: &str, options: &Loop) -> (Vec<u32>, Bytes) {
    let _context = Context::new().enter();
    let _scope = device::scope(device).unwrap();
    set_seed(4);
    let (x, w) = (drawn([8, 16], 1.0), drawn([16, 16], 0.2));
    let step = function({
        let options = options.clone();
        move |(x, w): (Tensor, Tensor)| -> Result<(Tensor, Tensor)> {
            let mut tape = GradientTape::new();
            tape.watch(&x);
            tape.watch(&w);
            let iteration = |_, h: Tensor| h.matmul(&w)?.tanh();
            let h = options.clone().fori_loop(0, 12, x.clone(), iteration)?;
            let found = tape.gradient(&h.sum_all()?, &[&x, &w])?;
            Ok((found[0].tensor()?, found[1].tensor()?))
        }
    });
    let plan = step.plan(&(x.clone(), w.clone())).unwrap();
    let host = memory::info("cpu:0").unwrap().in_use;
    memory::reset_peak("cpu:0").unwrap();
    let (dx, dw) = step.call((x, w)).unwrap();
    assert_eq!(step.last_run().unwrap().measured.used, plan.peak());
    if device != "cpu:0" {
        let obtained = memory::info("cpu:0").unwrap().peak - host;
        assert_eq!(obtained, plan.host_bytes(), "of host memory, and predicted");
        assert_eq!(plan.host_bytes().is_zero(), plan.on_disk().is_zero());
    }
    assert_eq!(dx.device().to_string(), device);
    ([bits(&dx), bits(&dw)].concat(), plan.on_disk())
}

#[test]
fn gradients_of_loops_run_on_the_device_and_states_on_their_way_to_a_file_are_predicted() {
    for options in [Loop::new(), Loop::new().spill()] {
        let (here, there) = (loop_gradient("cpu:0", &options), loop_gradient("sim:0", &options));
        assert_eq!(here, there);
    }
    assert!(!loop_gradient("sim:0", &Loop::new().spill()).1.is_zero());
}

fn points(rows: usize) -> Dataset<(Tensor, Tensor)> {
    let x = RandomKey::new(3).normal([rows, 2], DType::F32).unwrap();
    let x = tensor(x.to_vec::<f32>().unwrap()).unwrap().reshape([rows as i64, 2]).unwrap();
    let y = x.sum(1).unwrap().greater(0.0).unwrap().cast(DType::I64).unwrap();
    Dataset::of((x, y)).unwrap()
}

fn trained(device: &str, folder: &Folder) -> Vec<Vec<u32>> {
    let _context = Context::new().enter();
    let _scope = device::scope(device).unwrap();
    set_seed(1);
    let model = Sequential::new().then(Dense::new(24)).then(Activation::Tanh).then(Dense::new(2));
    let (optimizer, data) = (Optimizer::adam(0.02), points(200));
    let fit = Fit::new(3, 50).checkpoints(Checkpoints::new(&folder.0), 2);
    let loss = |logits: &Tensor, labels: &Tensor| logits.sparse_cross_entropy(labels);
    let history = fit.run(&model, &optimizer, &data, loss, |_| Go::On).unwrap();
    assert_eq!(history.predicted, history.measured);
    let all = model.parameters();
    for parameter in &all {
        assert_eq!(parameter.variable.read().unwrap().device().to_string(), device);
    }
    all.iter().map(|p| bits(&p.variable.read().unwrap())).collect()
}

#[test]
fn a_training_job_on_the_device_has_the_bits_of_the_cpu_and_its_checkpoints_are_the_same() {
    let (here, there) = (Folder::new("device-here"), Folder::new("device-there"));
    assert_eq!(trained("cpu:0", &here), trained("sim:0", &there));
    // What one wrote the other goes on from: it is finished, and nothing changes.
    assert_eq!(trained("cpu:0", &there), trained("sim:0", &here));
}
