//! Saving and loading a model of 2 GiB: what the system sees of it, and how fast it is. `cargo bench -p tonnage --bench weights`
//!
//! The high-water mark of a process never falls, so each way is a process of its own. A parameter that starts as a recipe takes nothing, so the model
//! that is loaded into takes no bytes before.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use tonnage::nn::Parameters;
use tonnage::train::{Loading, load_weights, save_weights};
use tonnage::{Bytes, DType, Elementwise, Result, Variable, random_normal, zeros};

/// Layers of 32 MiB.
const LAYERS: usize = 64;
const WIDTH: usize = 8192;
const HEIGHT: usize = 1024;
const TASK: &str = "TONNAGE_BENCH_WEIGHTS";

fn main() -> Result<()> {
    let path = std::env::temp_dir().join("tonnage-weights.safetensors");
    match std::env::var(TASK).as_deref() {
        Ok("save") => return told("save", || save(&path)),
        Ok(_) => return told("load", || load(&path)),
        Err(_) => {}
    }
    for task in ["save", "load"] {
        let program = std::env::current_exe().unwrap_or_default();
        let ended = Command::new(program).env(TASK, task).status();
        if !ended.is_ok_and(|status| status.success()) {
            println!("{task} failed");
        }
    }
    let _ = std::fs::remove_file(path);
    Ok(())
}

fn told(what: &str, run: impl FnOnce() -> Result<f64>) -> Result<()> {
    let seconds = run()?;
    let model = Bytes::new((LAYERS * WIDTH * HEIGHT * 4) as u64);
    let speed = model.get() as f64 / seconds / 1e9;
    match resident() {
        Some(most) => {
            let ratio = most.get() as f64 / model.get() as f64;
            println!(
                "{what}: {model} in {seconds:.1} s ({speed:.2} GB/s), at most {most} resident, {ratio:.3} of it"
            );
        }
        None => println!("{what}: {model} in {seconds:.1} s ({speed:.2} GB/s)"),
    }
    Ok(())
}

fn save(path: &Path) -> Result<f64> {
    let model: Vec<Variable> = (0..LAYERS)
        .map(|i| {
            let layer = Variable::new(&format!("layer{i}"), zeros([HEIGHT, WIDTH])?)?;
            layer.assign_add(&random_normal([HEIGHT, WIDTH], DType::F32)?)?;
            Ok(layer)
        })
        .collect::<Result<_>>()?;
    let start = Instant::now();
    save_weights(path, &model)?;
    Ok(start.elapsed().as_secs_f64())
}

fn load(path: &Path) -> Result<f64> {
    let model: Vec<Variable> = (0..LAYERS)
        .map(|i| Variable::new(&format!("layer{i}"), zeros([HEIGHT, WIDTH])?))
        .collect::<Result<_>>()?;
    let start = Instant::now();
    load_weights(path, &model, Loading::Strict)?;
    let seconds = start.elapsed().as_secs_f64();
    // It is there: a sum is no 0.
    let found = model[LAYERS - 1].read()?.square()?.sum_all()?.scalar::<f32>()?;
    assert!(found > 1.0 && model.count() > 0, "{found}");
    Ok(seconds)
}

/// The most that this process ever had in memory.
fn resident() -> Option<Bytes> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(Bytes::new(kib * 1024))
}
