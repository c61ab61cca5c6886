//! Ranks that are killed at any moment, or stop: nothing is left of the job but the last good checkpoint.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use tonnage::optim::Optimizer;
use tonnage::train::{Checkpoints, Fit, Go, Progress};
use tonnage::world::World;
use tonnage::{Result, set_seed};

use crate::training::{loss, perceptron, points};
use crate::{Folder, PROGRAM, ended_badly, is_rank, is_soak, name, start_by};

const FOLDER: &str = "TONNAGE_TEST_FOLDER";
const STEPS: u64 = 12;

/// Training that saves after every step.
fn saving(folder: &Path) -> Fit {
    Fit::new(9, 8).seed(5).at_most(STEPS).checkpoints(Checkpoints::new(folder), 1)
}

/// One rank gets a signal at one of its steps, while it goes on; or none does.
fn signalled(world: &World, program: &str, folder: &Path) -> Result<()> {
    let mut words = program.split(' ');
    let (signal, mut number) = (words.next().unwrap(), || words.next().unwrap().parse::<u64>());
    let (victim, step, timeout) = (number().unwrap(), number().unwrap(), number().unwrap());
    world.set_timeout(Some(Duration::from_secs(timeout)));
    set_seed(7);
    let (model, optimizer, data) = (perceptron(), Optimizer::adam(0.02), points(320, &[6]));
    let after = |told: &Progress| {
        if world.rank() as u64 == victim && told.position.step == step {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
            fs::write(folder.with_extension("when"), now.as_millis().to_string()).unwrap();
            // It comes while this rank computes, waits for others or saves.
            let own = std::process::id().to_string();
            drop(Command::new("kill").args([signal, &own]).spawn().unwrap());
        }
        Go::On
    };
    let fit = saving(folder).at_most(400).across(world);
    fit.run(&model, &optimizer, &data, loss, after).map(drop)
}

/// Processes that were told this in their environment.
fn left(program: &str) -> Vec<PathBuf> {
    let text = format!("{PROGRAM}={program}\0");
    let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_told = |path: &PathBuf| {
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        environment.windows(text.len()).any(|window| window == text.as_bytes())
    };
    let own = PathBuf::from(format!("/proc/{}", std::process::id()));
    all.filter(|path| *path != own && is_told(path)).collect()
}

#[test]
fn soak_ranks_that_are_killed_leave_no_process_and_a_checkpoint_that_loads() {
    let of_rank = |world: &World, program: &str| {
        let folder = PathBuf::from(std::env::var(FOLDER).unwrap());
        signalled(world, program, &folder).unwrap();
    };
    if is_rank(of_rank) {
        return;
    }
    for round in 0..if is_soak() { 20 } else { 1 } {
        // A process looks for what others left when it first writes to a folder.
        let folder = Folder::new(&format!("{}-{round}", name!()));
        // From the second step on: there is a checkpoint then.
        let (victim, step) = (round % 3, 2 + round * 7 % STEPS);
        let program = format!("-KILL {victim} {step} 5 {}", std::process::id());
        let made = start_by(name!(), &program, 3, &|command| {
            command.env(FOLDER, &folder.0);
        });
        let Some(made) = made else { return };
        let said = ended_badly(&made, &program);
        assert!(said.contains(&format!("rank {victim}")), "{said}");
        // The launcher is gone; its ranks go with it, or soon after.
        let since = Instant::now();
        while !left(&program).is_empty() {
            assert!(since.elapsed() < Duration::from_secs(5), "{:?}", left(&program));
            std::thread::yield_now();
        }
        // One process goes on from what is there.
        set_seed(7);
        let (model, optimizer, data) = (perceptron(), Optimizer::adam(0.02), points(320, &[6]));
        let fit = saving(&folder.0).accumulate(3).at_most(500).resume();
        let history = fit.run(&model, &optimizer, &data, loss, |_| Go::Stop).unwrap();
        assert!(history.position.step > 1, "{program}: {:?}", history.position);
        let names: Vec<_> = fs::read_dir(&folder.0).unwrap().flatten().collect();
        let is_part = |name: &str| name.ends_with(".part");
        let parts = names.iter().filter(|entry| is_part(&entry.file_name().to_string_lossy()));
        assert_eq!(parts.count(), 0, "{program}: {names:?}");
        let _ = fs::remove_file(folder.0.with_extension("when"));
    }
}

#[test]
fn soak_a_rank_that_stops_ends_all_soon_after_the_timeout() {
    let of_rank = |world: &World, program: &str| {
        let folder = PathBuf::from(std::env::var(FOLDER).unwrap());
        signalled(world, program, &folder).unwrap();
    };
    if is_rank(of_rank) {
        return;
    }
    let (folder, timeout) = (Folder::new(name!()), if is_soak() { 5 } else { 1 });
    let made = start_by(name!(), &format!("-STOP 1 2 {timeout}"), 3, &|command| {
        command.env(FOLDER, &folder.0);
    });
    let Some(made) = made else { return };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    let said = ended_badly(&made, "-STOP");
    let ops = ["fit", "all_reduce"];
    let words = |op: &&str| format!("rank 0: {op} waited {timeout} s for rank 1; all ranks end");
    assert!(ops.iter().any(|op| said.contains(&words(op))), "{said}");
    let when: u128 = fs::read_to_string(folder.0.with_extension("when")).unwrap().parse().unwrap();
    fs::remove_file(folder.0.with_extension("when")).unwrap();
    // Other tests run beside the short variant, and take its time.
    assert!(!is_soak() || now - when <= 7000, "{} ms", now - when);
}
