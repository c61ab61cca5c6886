//! Where the peers are: an interpreter for each, named by the environment, and a script with the same workloads.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process;

use super::runs::{ProcessFigures, figures, lines};
use crate::cargo::{root, target};

/// A peer's name, the variable that says which Python has it, its script and the module's name.
const ALL: [(&str, &str, &str, &str); 4] = [
    ("TensorFlow", "TENSORFLOW_PYTHON", "of_tensorflow.py", "tensorflow"),
    ("JAX", "JAX_PYTHON", "of_jax.py", "jax"),
    ("PyTorch", "TORCH_PYTHON", "of_pytorch.py", "torch"),
    // TensorFlow's script, with the line changed that its users change.
    ("Tonnage/Python", "TONNAGE_PYTHON", "of_tensorflow.py", "tonnage"),
];

/// A peer that is there.
pub struct Peer {
    pub name: &'static str,
    pub module: &'static str,
    pub version: String,
    python: PathBuf,
    script: PathBuf,
    /// Workloads and modes.
    modes: Vec<(String, String)>,
}

impl Peer {
    /// How it can run a workload.
    pub fn modes(&self, workload: &str) -> impl Iterator<Item = &str> + use<'_> {
        let workload = workload.to_string();
        self.modes.iter().filter(move |(name, _)| *name == workload).map(|(_, mode)| mode.as_str())
    }

    /// A fresh process.
    pub fn run(&self, workload: &str, mode: &str) -> Result<ProcessFigures, String> {
        let script = self.script.to_string_lossy();
        figures(&lines(&self.python, &[&script, "run", workload, mode])?)
    }

    /// Seconds that importing it takes, and what is resident then above an interpreter that imported nothing: the least
    /// of several processes.
    pub fn import(&self, turns: usize) -> Option<(f64, f64)> {
        let program = format!(
            "import os, time\n\
             page = os.sysconf('SC_PAGE_SIZE')\n\
             held = lambda: int(open('/proc/self/statm').read().split()[1]) * page\n\
             before, start = held(), time.perf_counter()\n\
             import {}\n\
             print('seconds', time.perf_counter() - start)\n\
             print('resident', held() - before)",
            self.module
        );
        let once = |_| {
            let of = super::runs::named(&lines(&self.python, &["-c", &program]).ok()?);
            Some((*of.get("seconds")?, *of.get("resident")?))
        };
        let all: Vec<(f64, f64)> = (0..turns).filter_map(once).collect();
        all.into_iter().reduce(|a, b| (a.0.min(b.0), a.1.min(b.1)))
    }
}

/// Those whose interpreter the environment names, and that can be imported there.
pub fn found() -> Vec<Peer> {
    ALL.into_iter()
        .filter_map(|(name, variable, script, module)| {
            let python = PathBuf::from(env::var_os(variable)?);
            match peer(name, python, script, module) {
                Ok(peer) => Some(peer),
                Err(why) => {
                    eprintln!("{name} is left out: {why}");
                    None
                }
            }
        })
        .collect()
}

fn peer(
    name: &'static str,
    python: PathBuf,
    script: &str,
    module: &'static str,
) -> Result<Peer, String> {
    let ask = format!("import {module}; print({module}.__version__)");
    let version = lines(&python, &["-c", &ask])?.trim().to_string();
    let folder = root().join("crates").join("bench").join("peers");
    let mut script = folder.join(script);
    if module == "tonnage" {
        script = renamed(&folder, &script).map_err(|error| error.to_string())?;
    }
    let list = lines(&python, &[&script.to_string_lossy(), "list"])?;
    let pair = |line: &str| line.split_once(' ').map(|(a, b)| (a.to_string(), b.to_string()));
    Ok(Peer {
        name,
        module,
        version,
        python,
        script,
        modes: list.lines().filter_map(pair).collect(),
    })
}

/// A copy of TensorFlow's script that imports Tonnage, in a folder for what is built.
fn renamed(folder: &std::path::Path, script: &std::path::Path) -> std::io::Result<PathBuf> {
    let home = target().join(format!("bench-{}", process::id()));
    fs::create_dir_all(&home)?;
    fs::copy(folder.join("common.py"), home.join("common.py"))?;
    let text = fs::read_to_string(script)?;
    let copy = home.join("of_tonnage.py");
    fs::write(&copy, text.replace("import tensorflow as tf", "import tonnage as tf"))?;
    Ok(copy)
}
