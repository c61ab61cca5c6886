//! Jobs of several ranks: a process each, which `mpirun` starts. A test starts its own binary on several ranks, with itself as the only test: on those it is the
//! program of a rank. A binary of its own, since a process is one rank.
//!
//! Without Open MPI, and without a Python registry to install it from, tests say SKIPPED.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

#[path = "../common/open_mpi.rs"]
mod open_mpi;

mod checkpoints;
mod collectives;
mod engine;
mod faults;
mod sharded;
mod training;

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use open_mpi::OpenMpi;
use tonnage::world::{self, World};

/// What a rank of a test is told: which of its programs to run.
const PROGRAM: &str = "TONNAGE_TEST_PROGRAM";

/// A folder of one test, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("tonnage-{}-{}", name.replace("::", "-"), std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The name of the test around, as the harness knows it.
macro_rules! name {
    () => {{
        fn here() {}
        let path = std::any::type_name_of_val(&here);
        path.trim_end_matches("::here").split_once("::").unwrap().1
    }};
}
use name;

/// On a rank, runs the program of a test, and there is nothing more to do.
fn is_rank(run: impl Fn(&World, &str)) -> bool {
    let Ok(program) = std::env::var(PROGRAM) else { return false };
    tonnage::set_threads(1).unwrap();
    run(&world::join().unwrap(), &program);
    true
}

/// Runs a program of a test on so many ranks; nothing where there is no MPI.
fn start(name: &str, program: &str, ranks: usize) -> Option<Output> {
    start_by(name, program, ranks, &|_| ())
}

/// The same with another command, or other variables for it.
fn start_by(
    name: &str,
    program: &str,
    ranks: usize,
    change: &dyn Fn(&mut Command),
) -> Option<Output> {
    // One job at a time: each has more processes than there are cores.
    static MPI: Mutex<Option<Result<OpenMpi, String>>> = Mutex::new(None);
    let mut mpi = MPI.lock().unwrap_or_else(PoisonError::into_inner);
    let mpi = match mpi.get_or_insert_with(OpenMpi::find) {
        Ok(mpi) => mpi,
        Err(why) => {
            println!("SKIPPED {name}: no Open MPI ({why})");
            return None;
        }
    };
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(PROGRAM, program);
    change(&mut command);
    Some(mpi.run(ranks, &mut command))
}

fn is_soak() -> bool {
    std::env::var_os("TONNAGE_SOAK").is_some()
}

/// The numbers of ranks that bits are compared for. Four of them wait for each other's core nearly everywhere, and take as long as two and three together.
fn counts() -> std::ops::RangeInclusive<usize> {
    2..=if is_soak() { 4 } else { 3 }
}

/// A program that ends well on so many ranks.
fn on_ranks(name: &str, counts: impl IntoIterator<Item = usize>, run: impl Fn(&World)) {
    if is_rank(|world, _| run(world)) {
        return;
    }
    for ranks in counts {
        let Some(made) = start(name, "", ranks) else { return };
        ended_well(&made, &format!("{ranks} ranks"));
    }
}

/// What a job that ended well printed.
fn ended_well(made: &Output, what: &str) -> String {
    let (out, err) = (String::from_utf8_lossy(&made.stdout), String::from_utf8_lossy(&made.stderr));
    assert!(made.status.success(), "{what}: {out}\n{err}");
    // A name that no test has runs none, and ends well.
    assert!(!out.contains("running 0 tests"), "{what}: {out}");
    out.into_owned()
}

/// What a job that had to fail said on its way.
fn ended_badly(made: &Output, what: &str) -> String {
    let (out, err) = (String::from_utf8_lossy(&made.stdout), String::from_utf8_lossy(&made.stderr));
    assert!(!made.status.success(), "{what}: {out}\n{err}");
    // What a panic says is printed by the harness of the rank.
    format!("{err}\n{out}")
}
