//! A process of its own, for its resident memory: what the plan predicts is what the system sees. One that runs a model holds
//! at most the predicted peak and 8 MiB more in memory than before it made the model's argument.
//!
//! It starts itself rather than have a harness, once for each model, forward and with gradients and updates, since the
//! high-water mark of a process never falls. Such a process has trained something tiny before, so that it has threads and the
//! pages of its own program (6 MiB of them, which the system shares and drops as it likes); all else counts: tracing,
//! planning, the pages of kernels that are new. Elsewhere than on Linux only the executor's figure is checked.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test, though not in the harness")]

#[path = "training/models/nets.rs"]
#[allow(dead_code, reason = "the sizes of other tests")]
mod nets;

use std::process::{Command, ExitCode};

use nets::Params;
use tonnage::{
    Bytes, DType, Function, GradientTape, Result, Tensor, Variable, Watched, function,
    random_normal, tensor,
};

const SLACK: Bytes = Bytes::mib(8);
/// Less would show nothing: the slack is 8 MiB.
const LEAST: Bytes = Bytes::mib(16);
/// Which model a child runs.
const TASK: &str = "TONNAGE_TEST_RESIDENT";

type Net = fn(&mut Params, Tensor) -> Result<Tensor>;

/// The models, with the shapes of their arguments; whole numbers below a bound where one is given.
const MODELS: [(&str, Net, &[usize], Option<i64>); 10] = [
    ("mlp", nets::mlp, &[131_072, 32], None),
    ("lenet", nets::lenet, &[1024, 28, 28, 1], None),
    ("resnet20", nets::resnet20, &[64, 64, 64, 3], None),
    ("u_net", nets::u_net, &[8, 256, 256, 3], None),
    ("mobile_net", nets::mobile_net, &[32, 128, 128, 3], None),
    ("gpt", |p, x| nets::gpt_of(p, x, [64, 128, 64]), &[64, 128], Some(50)),
    ("bert", |p, x| nets::bert_of(p, x, [64, 128, 64]), &[64, 128], Some(50)),
    ("gru", |p, x| nets::gru_of(p, x, [256, 64, 64]), &[512, 256, 64], None),
    ("recommender", nets::recommender, &[131_072, 4], Some(1000)),
    ("autoencoder", nets::autoencoder, &[131_072, 32], None),
];

fn main() -> ExitCode {
    match std::env::var(TASK) {
        Ok(task) => child(&task),
        Err(_) => all(),
    }
    ExitCode::SUCCESS
}

fn all() {
    let program = std::env::current_exe().unwrap();
    let mut failed = Vec::new();
    for task in MODELS.iter().flat_map(|m| ["forward", "step"].map(|way| format!("{} {way}", m.0)))
    {
        let child = Command::new(&program).env(TASK, &task).output().unwrap();
        print!("{}", String::from_utf8_lossy(&child.stdout));
        if !child.status.success() {
            failed.push(String::from_utf8_lossy(&child.stderr).into_owned());
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn child(task: &str) {
    let (name, way) = task.split_once(' ').unwrap();
    let &(_, net, shape, below) = MODELS.iter().find(|model| model.0 == name).unwrap();
    run(&function(|x: Tensor| step(nets::mlp, x)), &argument(&[16, 32], None));
    let before = status("VmRSS:");
    let x = argument(shape, below);
    let (predicted, used) = match way {
        "forward" => run(&function(move |x: Tensor| net(&mut Params::default(), x)), &x),
        _ => run(&function(move |x: Tensor| step(net, x)), &x),
    };
    let most = status("VmHWM:").saturating_sub(before);
    println!("{task:<20} predicted {predicted:>10}, in memory {most:>10}");
    assert_eq!(used, predicted, "{task}");
    assert!(predicted >= LEAST, "{task}: {predicted} show nothing");
    assert!(most <= predicted + SLACK, "{task}: {most} in memory for {predicted}");
}

/// Two calls: the first makes the parameters. What was predicted, and what kernels were lent.
fn run<F: Fn(Tensor) -> Result<Tensor>>(
    f: &Function<Tensor, Tensor, F>,
    x: &Tensor,
) -> (Bytes, Bytes) {
    f.call(x.clone()).unwrap();
    let (loss, measured) = f.call_measured(x.clone()).unwrap();
    assert!(loss.scalar::<f32>().unwrap().is_finite());
    (f.plan(x).unwrap().peak(), measured.unwrap().used)
}

fn step(net: Net, x: Tensor) -> Result<Tensor> {
    let mut tape = GradientTape::new();
    let mut params = Params::default();
    let loss = net(&mut params, x)?;
    let all: Vec<&dyn Watched> = params.all.iter().map(|v: &Variable| v as &dyn Watched).collect();
    let grads = tape.gradient(&loss, &all)?;
    for (variable, grad) in params.all.iter().zip(grads) {
        variable.assign_sub(&(grad.tensor()? * 0.02)?)?;
    }
    Ok(loss)
}

fn argument(shape: &[usize], below: Option<i64>) -> Tensor {
    match below {
        Some(below) => {
            let count = shape.iter().product::<usize>() as i64;
            let values: Vec<i64> = (0..count).map(|k| k * 7 % below).collect();
            let dims: Vec<i64> = shape.iter().map(|&n| n as i64).collect();
            tensor(values).unwrap().reshape(dims).unwrap()
        }
        // Written tile by tile: a vector would be memory of the process that is no tensor's.
        None => (random_normal(shape, DType::F32).unwrap() + tensor([0.0f32]).unwrap()).unwrap(),
    }
}

fn status(name: &str) -> Bytes {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).unwrap_or("0");
    Bytes::new(kib.trim().parse::<u64>().unwrap() * 1024)
}
