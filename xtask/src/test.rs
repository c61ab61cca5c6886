//! `cargo xtask test`: everything that has to hold before a change is merged, cheapest first.
//!
//! Nearly all of the time goes into building, and most of that into the vector loops of `tonnage-simd` and `tonnage-cpu`, some thousand
//! of them for each vector width. So each step builds those crates at most once, and only for what it can show:
//!
//! * All tests run in the dev profile, which has overflow checks and debug assertions, and so do the doc examples.
//! * The release profile is what users run, it has neither, and its optimizer is the one that turns a broken `unsafe`
//!   promise into a wrong number. To build it takes too long for every change: `cargo xtask soak` runs all tests in it.
//! * The Python package is built in the dev profile, after the tests, whose crates it takes as they are. A tenth of the cases of the
//!   `onnx` package and some of each of Keras' own suites run over it.
//! * AddressSanitizer watches one module; the crates below it are built without optimization.
//! * Those two have no tests inside of their libraries, for that would build them once more in each profile; they are
//!   in `tests/machine`. A test binary is one link, so tests are modules of few binaries.

use std::io;
use std::process::ExitCode;

use crate::Subcommand;
use crate::cargo::Cargo;
use crate::gpu;
use crate::keras;
use crate::onnx;
use crate::python;
use crate::step::{self, CheckStep};
use crate::unsound;

/// The row of this command.
pub const COMMAND: Subcommand =
    Subcommand { name: "test", doc: "checks everything, up to the first failure", words: "", run };

const STEPS: &[CheckStep] = &[
    CheckStep { name: "format", run: || Cargo::new("fmt --all --check").run() },
    CheckStep {
        name: "clippy",
        run: || Cargo::new("clippy --workspace --all-targets -- -D warnings").run(),
    },
    CheckStep {
        name: "docs",
        run: || Cargo::new("doc --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings").run(),
    },
    CheckStep { name: "tests", run: || Cargo::new("test --workspace --no-fail-fast").run() },
    CheckStep { name: "CUDA kernels", run: gpu::kernels },
    CheckStep { name: "Python", run: python::tests },
    CheckStep { name: "ONNX", run: onnx::slice },
    CheckStep { name: "Keras", run: keras::slice },
    CheckStep { name: "AddressSanitizer", run: unsound::address_sanitizer },
    CheckStep { name: "Miri", run: unsound::miri },
];

fn run(_words: &[String]) -> ExitCode {
    match step::run(STEPS, &mut io::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: can't write the report: {error}");
            ExitCode::FAILURE
        }
    }
}
