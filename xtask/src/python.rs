//! The Python package: built in the profile of the other tests, put into a virtual environment of its own, and tested
//! with pytest.
//!
//! The library is copied rather than built by maturin, which would build everything once more. NumPy, pytest, mypy and Keras
//! come from where pip finds packages; a machine whose pip finds none says so, and the step is skipped aloud.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::cargo::{Cargo, root, target};
use crate::step::{self, CheckStep, StepOutcome};

/// The row of this command.
pub const COMMAND: crate::Subcommand = crate::Subcommand {
    name: "python",
    doc: "builds the Python package into an environment of its own and tests it",
    words: "",
    run,
};

fn run(_words: &[String]) -> ExitCode {
    match step::run(&[CheckStep { name: "Python", run: tests }], &mut io::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// What the tests import, and what checks types.
pub const PACKAGES: [&str; 4] = ["keras==3.15.1", "mypy", "numpy", "pytest"];

/// Builds, installs, tests.
pub fn tests() -> StepOutcome {
    if let built @ (StepOutcome::Failed(_) | StepOutcome::Skipped(_)) =
        Cargo::new("build --package tonnage-python").run()
    {
        return built;
    }
    let home = target().join("python");
    let python = match environment(&home, &PACKAGES) {
        Ok(python) => python,
        Err(why) => return StepOutcome::Skipped(why),
    };
    if let Err(error) = install(&python) {
        return StepOutcome::Failed(format!("the package could not be put in place: {error}"));
    }
    let tests = root().join("python").join("tests");
    let mut run = Command::new(&python);
    run.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg(&tests).current_dir(&home);
    println!("$ {} -m pytest -q {}", python.display(), tests.display());
    match run.status() {
        Ok(status) if status.success() => StepOutcome::Passed,
        Ok(status) => StepOutcome::Failed(format!("pytest: {status}")),
        Err(error) => StepOutcome::Failed(format!("pytest: {error}")),
    }
}

/// The interpreter of a virtual environment with these packages, made where there is none yet.
pub fn environment(home: &Path, packages: &[&str]) -> Result<PathBuf, String> {
    let python = home.join("bin").join("python");
    let quiet = |command: &mut Command| command.output().is_ok_and(|o| o.status.success());
    if !python.exists() && !quiet(Command::new("python3").args(["-m", "venv"]).arg(home)) {
        return Err("python3 with venv is not installed".into());
    }
    // Asked for by name: to import Keras is to choose what it runs on.
    if quiet(Command::new(&python).args(["-c", ASK_VERSIONS]).args(packages)) {
        return Ok(python);
    }
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
    let why = match pip.output() {
        Ok(done) if done.status.success() => return Ok(python),
        Ok(done) => String::from_utf8_lossy(&done.stderr).lines().last().unwrap_or("").to_string(),
        Err(error) => error.to_string(),
    };
    Err(format!("pip cannot install {}: {why}", packages.join(", ")))
}

/// A program that fails where a package is not installed, or in another version than it is named with.
const ASK_VERSIONS: &str = "
import sys, importlib.metadata
for name, _, version in (package.partition('==') for package in sys.argv[1:]):
    if importlib.metadata.version(name) != (version or importlib.metadata.version(name)):
        sys.exit(1)
";

/// Copies the package and the library into the environment.
pub fn install(python: &Path) -> io::Result<()> {
    let ask = "import sysconfig; print(sysconfig.get_path('platlib'))";
    let asked = Command::new(python).args(["-c", ask]).output()?;
    put(Path::new(String::from_utf8_lossy(&asked.stdout).trim()), "debug")
}

/// Copies the package and the library that was built in a profile's folder to where Python looks for packages.
pub fn put(site: &Path, profile: &str) -> io::Result<()> {
    let package = site.join("tonnage");
    if package.exists() {
        fs::remove_dir_all(&package)?;
    }
    copy(&root().join("python").join("tonnage"), &package)?;
    let names = ["lib_tonnage.so", "lib_tonnage.dylib", "_tonnage.dll"];
    let built = names.iter().map(|name| target().join(profile).join(name)).find(|p| p.exists());
    let built = built.ok_or_else(|| io::Error::other("the library was not built"))?;
    let name = if cfg!(windows) { "_tonnage.pyd" } else { "_tonnage.abi3.so" };
    fs::copy(built, package.join(name)).map(drop)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if name == "__pycache__" {
            continue;
        }
        match path.is_dir() {
            true => copy(&path, &to.join(name))?,
            false => fs::copy(&path, to.join(name)).map(drop)?,
        }
    }
    Ok(())
}
