//! `tonnage doctor`: what this machine has, what is missing, and what to do about it.

use std::process::ExitCode;

use serde::Serialize;
use tonnage::{Bytes, Doctor, Missing, SavedFigures};

/// Arguments of `tonnage doctor`.
#[derive(clap::Args)]
pub struct DoctorArgs {
    /// Print JSON, for programs.
    #[arg(long)]
    json: bool,
}

/// What the JSON holds.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    machine: &'a Doctor,
    missing: &'a [Missing],
}

/// Looks at the machine and prints.
pub fn run(args: &DoctorArgs) -> Result<ExitCode, String> {
    let machine = tonnage::doctor();
    let missing = machine.missing();
    if args.json {
        let answer = Answer { machine: &machine, missing: &missing };
        let text = serde_json::to_string_pretty(&answer).map_err(|error| error.to_string())?;
        say!("{text}");
        return Ok(ExitCode::SUCCESS);
    }
    say!("Tonnage {} on {}", machine.version, machine.system);
    for (what, found) in lines(&machine) {
        say!("{what:<16} {found}");
    }
    match missing.is_empty() {
        true => say!("\nnothing is missing"),
        false => say!("\nmissing:"),
    }
    for Missing { what, advice } in &missing {
        say!("  {what:<14} {advice}");
    }
    Ok(ExitCode::SUCCESS)
}

/// What there is, a line each.
fn lines(machine: &Doctor) -> Vec<(&'static str, String)> {
    let bytes = |bytes: Option<Bytes>, otherwise: &str| match bytes {
        Some(bytes) => bytes.to_string(),
        None => otherwise.into(),
    };
    let mpi = match &machine.mpi {
        Some(mpi) => format!("{}: {}, handles of {}", mpi.file.display(), mpi.version, mpi.handles),
        None => "none found".into(),
    };
    let calibration = match &machine.calibration {
        SavedFigures::Used { path, figures } => format!(
            "{}: {:.0} GFLOP/s, {:.1} GB/s of memory",
            path.display(),
            figures.flops / 1e9,
            figures.bytes / 1e9
        ),
        SavedFigures::Unusable { why } => why.clone(),
        SavedFigures::Other { path } => format!("{}: not of this machine", path.display()),
        // Among others, that there is no file.
        _ => "no file".into(),
    };
    let mut lines = vec![
        ("cores", machine.cores.to_string()),
        ("vectors", format!("{}, {} bytes", machine.vectors, machine.vector_bytes)),
        ("matrix unit", machine.matrix_unit.unwrap_or("none").into()),
        ("memory", bytes(machine.memory, "unknown")),
        ("available", bytes(machine.available, "unknown")),
        ("container limit", bytes(machine.container_limit, "none")),
        ("devices", machine.devices.join(", ")),
        ("MPI library", mpi),
        ("ranks", machine.ranks.map_or_else(|| "started by a launcher".into(), |n| n.to_string())),
        ("calibration", calibration),
    ];
    for gpu in &machine.gpus {
        let (capability, driver) = (gpu.capability, gpu.driver);
        let text = format!(
            "{}, {}, compute capability {}.{}, driver for CUDA {}.{}",
            gpu.name, gpu.memory, capability.0, capability.1, driver.0, driver.1
        );
        lines.push(("GPU", text));
    }
    lines
}
