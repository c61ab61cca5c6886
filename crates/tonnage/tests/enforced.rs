//! A process of its own, under a limit that the system enforces: given the budget and 8 MiB, beside what it takes without
//! tensors, it trains under the budget and is refused without it.
//!
//! It starts itself rather than have a harness, under a limit that the shell sets on all private memory (`ulimit -d`, from Linux
//! 4.7 on). Elsewhere the ledger's own figures are all that is checked.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test, though not in the harness")]

use std::process::{Command, ExitCode, Output};

use tonnage::{
    Bytes, Elementwise, ErrorKind, Function, GradientTape, Result, Tensor, Variable, Watched,
    function, memory, tensor,
};

const ROWS: usize = 16_384;
const WIDTH: usize = 64;
const LAYERS: usize = 16;
/// About two fifths of what it takes without.
const BUDGET: Bytes = Bytes::mib(40);
const SLACK: Bytes = Bytes::mib(8);
/// What a child is to do.
const TASK: &str = "TONNAGE_TEST_ENFORCED";

fn main() -> ExitCode {
    match std::env::var(TASK).as_deref() {
        Ok("base") => println!("{}", base().get()),
        Ok("budget") => train(Some(BUDGET)),
        Ok("no budget") => train(None),
        Ok(other) => panic!("no task {other}"),
        Err(_) if cfg!(target_os = "linux") => enforced(),
        Err(_) => train(Some(BUDGET)),
    }
    ExitCode::SUCCESS
}

/// Starts itself three times: to learn what it takes, to train within the limit, to be refused.
fn enforced() {
    let base = child("base", None);
    assert!(base.status.success(), "{base:?}");
    let base: u64 = String::from_utf8(base.stdout).unwrap().trim().parse().unwrap();
    let limit = Bytes::new(base) + BUDGET + SLACK;
    let trained = child("budget", Some(limit));
    assert!(trained.status.success(), "with {limit}: {trained:?}");
    // The limit is one: without the budget the same program does not get through.
    let refused = child("no budget", Some(limit));
    let says = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && says.contains("the system refused"), "{refused:?}");
    println!("enforced: {BUDGET} and 8 MiB beside {} held by the system", Bytes::new(base));
}

fn child(task: &str, limit: Option<Bytes>) -> Output {
    let program = std::env::current_exe().unwrap();
    let mut command = match limit {
        None => Command::new(program),
        Some(limit) => {
            let mut shell = Command::new("sh");
            let kib = limit.get() / 1024;
            shell.arg("-c").arg(format!("ulimit -d {kib} && exec \"$0\"")).arg(program);
            shell
        }
    };
    command.env(TASK, task).output().unwrap()
}

struct LinearChain {
    weights: Vec<Variable>,
}

impl LinearChain {
    fn new() -> LinearChain {
        let value = |i: usize| {
            let at = |k: usize| ((k * 7919 + i) % 1013) as f32 / 4000.0 - 0.125;
            let values: Vec<f32> = (0..WIDTH * WIDTH).map(at).collect();
            tensor(values).unwrap().reshape([WIDTH as i64, WIDTH as i64]).unwrap()
        };
        let made = (0..LAYERS).map(|i| Variable::new(&format!("w{i}"), value(i)).unwrap());
        LinearChain { weights: made.collect() }
    }

    fn step(&self) -> Function<Tensor, Tensor, impl Fn(Tensor) -> Result<Tensor> + use<>> {
        let held = self.weights.clone();
        function(move |x: Tensor| {
            let mut tape = GradientTape::new();
            let mut h = x;
            for w in &held {
                h = h.matmul(&w.read()?)?.tanh()?;
            }
            let loss = h.square()?.mean_all()?;
            let sources: Vec<&dyn Watched> = held.iter().map(|w| w as &dyn Watched).collect();
            for (w, grad) in held.iter().zip(tape.gradient(&loss, &sources)?) {
                w.assign_sub(&(grad.tensor()? * 0.1)?)?;
            }
            Ok(loss)
        })
    }
}

fn argument() -> Tensor {
    let at = |k: usize| ((k * 31 + 7) % 257) as f32 / 128.0 - 1.0;
    // By pieces: a vector of all of it would be memory of the process that is no tensor's.
    let rows = |from: usize| -> Tensor {
        let values: Vec<f32> = (from * WIDTH..(from + 1024) * WIDTH).map(at).collect();
        tensor(values).unwrap().reshape([1024, WIDTH as i64]).unwrap()
    };
    let parts: Vec<Tensor> = (0..ROWS).step_by(1024).map(rows).collect();
    let parts: Vec<&Tensor> = parts.iter().collect();
    tonnage::concat(&parts, 0).unwrap()
}

/// What the process takes when all is planned, the threads run, and no call has been made.
fn base() -> Bytes {
    let model = LinearChain::new();
    let step = model.step().budget(BUDGET).unwrap();
    let x = argument();
    step.plan(&x).unwrap();
    drop(x.matmul(&model.weights[0].read().unwrap()).unwrap());
    let info = memory::info("cpu:0").unwrap();
    private().saturating_sub(info.reserved)
}

fn train(budget: Option<Bytes>) {
    let model = LinearChain::new();
    let step = match budget {
        Some(budget) => model.step().budget(budget).unwrap(),
        None => model.step(),
    };
    let x = argument();
    memory::reset_peak("cpu:0").unwrap();
    let before = resident();
    for _ in 0..3 {
        match step.call(x.clone()) {
            Ok(loss) => assert!(loss.scalar::<f32>().unwrap().is_finite()),
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::SystemRefused { .. }), "{error}");
                eprintln!("{error}");
                std::process::exit(3);
            }
        }
    }
    let info = memory::info("cpu:0").unwrap();
    let budget = budget.unwrap_or(Bytes::new(u64::MAX));
    assert!(info.peak_reserved <= budget, "{info}");
    let ran = step.last_run().unwrap();
    assert_eq!(ran.measured.used, ran.peak);
    let held = info.in_use;
    // The high-water mark of what was in memory, less what was there before the calls, tensors apart.
    let most = high_water().saturating_sub(before.saturating_sub(held));
    assert!(most <= budget + SLACK, "{most} in memory for {budget}");
}

/// Private writable memory of this process: what `ulimit -d` counts.
fn private() -> Bytes {
    status("VmData:")
}

fn resident() -> Bytes {
    status("VmRSS:")
}

fn high_water() -> Bytes {
    status("VmHWM:")
}

fn status(name: &str) -> Bytes {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).unwrap_or("0");
    Bytes::new(kib.trim().parse::<u64>().unwrap() * 1024)
}
