//! `cargo xtask gpu`: what can be shown on a machine with an NVIDIA GPU alone.
//!
//! Every op, functions, budgets and training run on `cuda:0` beside the CPU, bits and bytes compared; then the rates of kernels are measured,
//! and the kernels that were run are written down with hashes of their texts. The tests name those that have changed since.

use std::io;
use std::process::ExitCode;

use crate::Subcommand;
use crate::cargo::{Cargo, root, target};
use crate::python::environment;
use crate::step::{self, CheckStep, StepOutcome};

/// The row of this command.
pub const COMMAND: Subcommand = Subcommand {
    name: "gpu",
    doc: "runs the suites of devices on an NVIDIA GPU, measures kernels, and records which were run",
    words: "",
    run,
};

fn run(_words: &[String]) -> ExitCode {
    let steps = [
        CheckStep { name: "programs and every op on cuda:0", run: suite },
        CheckStep { name: "rates of kernels", run: rates },
        CheckStep { name: "record", run: record },
    ];
    match step::run(&steps, &mut io::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// The compiler of kernels in the version that the file of registers is of; it needs no GPU.
const COMPILER: &str = "nvidia-cuda-nvrtc==13.4.92";

/// Compiles kernels without a GPU: none has a stack frame, and their registers are those of the file.
pub fn kernels() -> StepOutcome {
    let home = target().join("nvrtc");
    match environment(&home, &[COMPILER]) {
        Ok(_) => Cargo::new("test -p tonnage-cuda --test emulated registers")
            .env("VIRTUAL_ENV", &home.to_string_lossy())
            .run(),
        Err(why) => StepOutcome::Skipped(why),
    }
}

fn suite() -> StepOutcome {
    Cargo::new("test --release -p tonnage --test devices --test obtained")
        .env("TONNAGE_TEST_DEVICE", "cuda:0")
        .run()
}

fn rates() -> StepOutcome {
    Cargo::new("bench -p tonnage-cuda --bench hardware").run()
}

fn record() -> StepOutcome {
    let to = root().join("crates/cuda/tests/emulated/hardware.txt");
    Cargo::new("test -p tonnage-cuda --test emulated record")
        .env("TONNAGE_RECORD", &to.to_string_lossy())
        .run()
}
