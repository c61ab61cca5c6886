//! The steps that look for undefined behaviour: AddressSanitizer and Miri.
//!
//! Both watch the one module that makes slices of offsets, `lend` of `tonnage-runtime`. Both need
//! a nightly toolchain, which a bare machine may lack: then they are skipped, with the reason. Once
//! the package is there, a filter that matches no test is a failure, so a renamed module can't
//! switch the check off unseen.

use crate::cargo::{self, Cargo};
use crate::step::StepOutcome;

const PACKAGE: &str = "tonnage-runtime";
const MANIFEST: &str = "crates/runtime/Cargo.toml";
const MODULE: &str = "lend::";

/// The module's tests with every load and store checked.
pub fn address_sanitizer() -> StepOutcome {
    let Some(version) = Cargo::new("+nightly --version --verbose").stdout() else {
        return StepOutcome::Skipped("no nightly toolchain is installed".into());
    };
    let Some(host) = host(&version) else {
        return StepOutcome::Failed("`cargo +nightly --version --verbose` names no host".into());
    };
    // Without an explicit target the flags would reach build scripts and macros too; without a
    // directory of its own, every such run would throw the usual build away.
    let directory = cargo::target().join("asan");
    let build = format!("+nightly test --package {PACKAGE} --lib --target {host}");
    watched(|arguments| {
        Cargo::new(&format!("{build} {arguments}"))
            .env("RUSTFLAGS", "-Zsanitizer=address")
            // Kernels are built for it and not run: optimizing them would take minutes.
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
            .env("CARGO_TARGET_DIR", &directory.to_string_lossy())
    })
}

/// The module's tests in the interpreter that knows the aliasing rules.
pub fn miri() -> StepOutcome {
    if Cargo::new("+nightly miri --version").stdout().is_none() {
        return StepOutcome::Skipped("Miri is not installed for a nightly toolchain".into());
    }
    let build = format!("+nightly miri test --package {PACKAGE} --lib");
    watched(|arguments| Cargo::new(&format!("{build} {arguments}")))
}

/// Runs the module's tests by a call of cargo that takes these last arguments.
fn watched(call: impl Fn(&str) -> Cargo) -> StepOutcome {
    if !cargo::root().join(MANIFEST).exists() {
        return StepOutcome::Skipped(format!("there is no package {PACKAGE} yet"));
    }
    // Built aloud first: the list below is read quietly, and a build is long and may fail.
    match call("--no-run").run() {
        StepOutcome::Passed => {}
        broken => return broken,
    }
    let list = call(&format!("-- --list {MODULE}")).stdout().unwrap_or_default();
    if !list.lines().any(|line| line.ends_with(": test")) {
        return StepOutcome::Failed(format!("{PACKAGE} has no test in `{MODULE}`"));
    }
    call(&format!("-- {MODULE}")).run()
}

/// The target triple in what `--version --verbose` prints.
fn host(version: &str) -> Option<&str> {
    version.lines().find_map(|line| line.strip_prefix("host: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_read_from_the_version() {
        assert_eq!(
            host("cargo 1.0.0\nhost: x86_64-unknown-linux-gnu\nos: x\n"),
            Some("x86_64-unknown-linux-gnu")
        );
        assert_eq!(host("cargo 1.0.0\n"), None);
    }
}
