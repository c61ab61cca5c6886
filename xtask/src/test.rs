//! `cargo xtask test`: everything that has to hold before a change is merged, cheapest first.
//!
//! All tests run in the dev profile, which has overflow checks and debug assertions. The release profile is
//! what users run, it has neither, and its optimizer is the one that turns a broken `unsafe` promise into a
//! wrong number: so the kernels' own tests run in it too. Everything else in release takes too long for every
//! change and belongs to `cargo xtask soak`.

use std::io;
use std::process::ExitCode;

use crate::Command;
use crate::cargo::Cargo;
use crate::step::{self, Step};
use crate::unsound;

/// The row of this command.
pub const COMMAND: Command =
    Command { name: "test", doc: "checks everything, up to the first failure", run };

const STEPS: &[Step] = &[
    Step { name: "format", run: || Cargo::new("fmt --all --check").run() },
    Step {
        name: "clippy",
        run: || Cargo::new("clippy --workspace --all-targets -- -D warnings").run(),
    },
    Step {
        name: "docs",
        run: || Cargo::new("doc --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings").run(),
    },
    Step { name: "tests", run: || Cargo::new("test --workspace --no-fail-fast").run() },
    Step {
        name: "tests, release",
        run: || Cargo::new("test --release --package tonnage-ops --lib --no-fail-fast").run(),
    },
    Step { name: "AddressSanitizer", run: unsound::address_sanitizer },
    Step { name: "Miri", run: unsound::miri },
];

fn run() -> ExitCode {
    match step::run(STEPS, &mut io::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: can't write the report: {error}");
            ExitCode::FAILURE
        }
    }
}
