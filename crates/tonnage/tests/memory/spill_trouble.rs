//! Trouble around spill files, as a training program meets it: a file that somebody cuts or changes, processes that
//! share a folder, one that is killed, a folder that nobody can write, a disk that is full in eager mode. Each is an
//! error with variables as they were, or no trouble at all; and no file stays behind.
//!
//! Other processes are this test, started once more with a role to play.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tonnage::{
    Bytes, Elementwise, Error, ErrorKind, Function, GradientTape, Result, Tensor, Variable,
    Watched, function, host_effect, memory, tensor,
};

use crate::common::{folder, in_use, own_context, test_name};

const ROLE: &str = "TONNAGE_TEST_ROLE";
const WIDTH: usize = 16;
const ROWS: usize = 2048;

fn numbers(rows: usize, columns: usize, seed: usize, scale: f32) -> Tensor {
    let of = |i: usize| ((i * 37 + seed * 11) % 101) as f32 / 50.0 - 1.0;
    let values: Vec<f32> = (0..rows * columns).map(|i| of(i) * scale).collect();
    tensor(values).unwrap().reshape([rows as i64, columns as i64]).unwrap()
}

fn weights() -> Vec<Variable> {
    let of = |i: usize| Variable::new(&format!("w{i}"), numbers(WIDTH, WIDTH, i, 0.3)).unwrap();
    (0..20).map(of).collect()
}

fn values(weights: &[Variable]) -> Vec<Vec<f32>> {
    weights.iter().map(|w| w.read().unwrap().to_vec().unwrap()).collect()
}

/// A step of training in which `between` runs when the forward pass is done, and the backward pass is not.
fn step<B: Fn() + Clone + Send + Sync + 'static>(
    weights: &[Variable],
    between: B,
) -> Function<Tensor, Tensor, impl Fn(Tensor) -> Result<Tensor> + use<B>> {
    let held = weights.to_vec();
    function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        let mut h = x;
        for w in &held {
            h = h.matmul(&w.read()?)?.tanh()?;
        }
        let loss = h.square()?.mean_all()?;
        let between = between.clone();
        host_effect(&[&loss], move |_| {
            between();
            Ok(())
        })?;
        let sources: Vec<&dyn Watched> = held.iter().map(|w| w as &dyn Watched).collect();
        for (w, grad) in held.iter().zip(tape.gradient(&loss, &sources)?) {
            w.assign_sub(&(grad.tensor()? * 0.1)?)?;
        }
        Ok(loss)
    })
    .exact()
}

/// The same within its least budget, for which values wait in a file.
fn tight<B: Fn() + Clone + Send + Sync + 'static>(
    weights: &[Variable],
    between: B,
) -> Function<Tensor, Tensor, impl Fn(Tensor) -> Result<Tensor> + use<B>> {
    let x = numbers(ROWS, WIDTH, 1, 1.0);
    let error = step(weights, between.clone()).budget("1KiB").unwrap().plan(&x).unwrap_err();
    let ErrorKind::OverBudget { least: Some(least), .. } = error.kind() else { panic!("{error}") };
    let step = step(weights, between).budget(*least).unwrap();
    assert!(!step.plan(&x).unwrap().fitted.unwrap().spilled.is_zero());
    step
}

fn files(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn cut(folder: &Path) {
    for path in files(folder) {
        OpenOptions::new().write(true).open(path).unwrap().set_len(1000).unwrap();
    }
}

fn change(folder: &Path) {
    for path in files(folder) {
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let mut at = 0;
        let mut byte = [0];
        while file.read_at(&mut byte, at).unwrap() == 1 {
            file.write_all_at(&[byte[0] ^ 64], at).unwrap();
            at += 4096;
        }
    }
}

fn nothing() {}

#[test]
fn a_file_that_somebody_cuts_or_changes_fails_the_call_and_training_goes_on_as_if_it_had_not_been()
{
    let _context = own_context();
    let folder = folder("troubled");
    memory::set_spill_folder(&folder).unwrap();
    let x = numbers(ROWS, WIDTH, 1, 1.0);
    let (weights, untroubled) = (weights(), weights());
    let (free, fine) = (step(&untroubled, nothing), tight(&weights, nothing));
    // Of a file that was cut, what is written behind that is read first or not: it ends too soon, or has holes.
    for (trouble, says) in
        [(cut as fn(&Path), &["cut short", "was changed"][..]), (change, &["was changed"])]
    {
        let within = folder.clone();
        let troubled = tight(&weights, move || trouble(&within));
        let (before, held) = (values(&weights), in_use());
        let error = troubled.call(x.clone()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Spill { .. }), "{error}");
        assert!(says.iter().any(|says| error.to_string().contains(says)), "{error}");
        assert_eq!((values(&weights), in_use()), (before, held));
        assert_eq!(files(&folder), Vec::<PathBuf>::new());
        let losses = [fine.call(x.clone()).unwrap(), free.call(x.clone()).unwrap()];
        let [less, all] = losses.map(|loss| loss.scalar::<f32>().unwrap());
        assert_eq!(less, all);
    }
    assert_eq!(values(&weights), values(&untroubled));
    std::fs::remove_dir(&folder).unwrap();
}

#[test]
fn a_folder_in_which_nobody_can_make_a_file_is_named() {
    let _context = own_context();
    let x = numbers(ROWS, WIDTH, 1, 1.0);
    let weights = weights();
    let step = tight(&weights, nothing);
    let before = values(&weights);
    // Not even the system's administrator can make a file there.
    let Ok(()) = memory::set_spill_folder("/proc") else { return };
    let error = step.call(x.clone());
    memory::set_spill_folder(std::env::temp_dir()).unwrap();
    let error: Error = error.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Spill { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("/proc"), "{text}");
    assert!(text.contains("set_spill_folder") && text.contains("no_spill"), "{text}");
    assert_eq!(values(&weights), before);
    step.call(x).unwrap();
}

/// Says where it is, and waits until its input ends.
fn hold() {
    println!("\nwithin a call");
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// What a process of its own does.
#[test]
fn role() {
    let _context = own_context();
    let Some(role) = std::env::var_os(ROLE) else { return };
    match role.to_str().unwrap() {
        "hold" => {
            let weights = weights();
            tight(&weights, hold).call(numbers(ROWS, WIDTH, 1, 1.0)).unwrap();
            println!("\n{}", bits(&weights));
        }
        "train" => {
            let weights = weights();
            let step = tight(&weights, nothing);
            for _ in 0..5 {
                step.call(numbers(ROWS, WIDTH, 1, 1.0)).unwrap();
            }
            println!("\n{}", bits(&weights));
        }
        "full" => full_disk(),
        other => panic!("no role {other}"),
    }
}

/// All values as text, exactly.
fn bits(weights: &[Variable]) -> String {
    let mut sum = 0u64;
    for value in values(weights).iter().flatten() {
        sum = sum.wrapping_mul(0x0100_0000_01b3) ^ u64::from(value.to_bits());
    }
    format!("bits {sum:016x}")
}

fn child(role: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", &test_name(module_path!(), "role"), "--nocapture"])
        .env(ROLE, role)
        .env("TONNAGE_SPILL_DIR", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

#[test]
fn two_processes_train_in_one_folder_to_the_bits_of_one_without_a_budget() {
    let _context = own_context();
    let folder = folder("both");
    let expected = {
        let weights = weights();
        let step = step(&weights, nothing);
        for _ in 0..5 {
            step.call(numbers(ROWS, WIDTH, 1, 1.0)).unwrap();
        }
        bits(&weights)
    };
    let both: Vec<_> = (0..2).map(|_| child("train", &folder).spawn().unwrap()).collect();
    for process in both {
        let output = process.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains(&expected), "{expected} in {text}");
    }
    assert_eq!(files(&folder), Vec::<PathBuf>::new());
    std::fs::remove_dir(&folder).unwrap();
}

#[test]
fn what_training_leaves_that_was_killed_is_removed_by_the_next_that_spills_there() {
    let _context = own_context();
    let folder = folder("killed");
    let mut killed = child("hold", &folder).spawn().unwrap();
    let mut says = BufReader::new(killed.stdout.take().unwrap());
    assert!(says.by_ref().lines().any(|line| line.unwrap() == "within a call"));
    assert_eq!(files(&folder).len(), 1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(files(&folder).len(), 1, "kill -9 leaves no time to remove it");
    let output = child("train", &folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(files(&folder), Vec::<PathBuf>::new());
    std::fs::remove_dir(&folder).unwrap();
}

/// In a process in which no file may become long: as on a disk that is full.
fn full_disk() {
    let tensors: Vec<Tensor> = (0..4).map(|i| numbers(256, 128, i, 1.0)).collect();
    let variable = Variable::new("v", numbers(256, 128, 9, 1.0)).unwrap();
    let held = in_use();
    memory::set_limit("cpu:0", Some(held + Bytes::new(64 << 10))).unwrap();
    let error = (&tensors[0] + &tensors[1]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Spill { .. }), "{error}");
    assert!(error.to_string().contains("make room on the disk"), "{error}");
    assert_eq!(in_use(), held);
    memory::set_limit("cpu:0", None).unwrap();
    // Everything is there still, and goes on.
    for (i, tensor) in tensors.iter().enumerate() {
        let same = numbers(256, 128, i, 1.0);
        assert_eq!(tensor.to_vec::<f32>().unwrap(), same.to_vec::<f32>().unwrap());
    }
    variable.assign_add(&tensors[0]).unwrap();
    let sum = (numbers(256, 128, 9, 1.0) + &tensors[0]).unwrap();
    let now = variable.read().unwrap().to_vec::<f32>().unwrap();
    assert_eq!(now, sum.to_vec::<f32>().unwrap());
}

#[test]
fn a_disk_that_is_full_when_a_tensor_should_leave_memory_is_an_error_and_nothing_is_lost() {
    let _context = own_context();
    let folder = folder("eager-full");
    // The shell's limit counts blocks; the signal that comes with it is ignored, as programs that care do.
    let run = "trap '' XFSZ; ulimit -f 1; exec \"$0\" --exact \"$1\"";
    let child = Command::new("sh")
        .args(["-c", run])
        .arg(std::env::current_exe().unwrap())
        .arg(test_name(module_path!(), "role"))
        .env(ROLE, "full")
        .env("TONNAGE_SPILL_DIR", &folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && text.contains("1 passed"), "{text}");
    assert_eq!(files(&folder), Vec::<PathBuf>::new());
    std::fs::remove_dir(&folder).unwrap();
}
