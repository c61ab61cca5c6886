//! What this machine has, as Tonnage sees it, and what is missing: for `tonnage doctor`, and for programs that report where they ran.
//!
//! Nothing is measured for it: figures are the system's. The driver of GPUs and an MPI library are loaded, since only they know what they are,
//! and MPI is not initialized.

use serde::Serialize;
use tonnage_core::Bytes;
use tonnage_runtime::backend::{GpuInfo, gpus};
use tonnage_runtime::processor::Processor;
use tonnage_runtime::system;

use crate::calibrate::{SavedFigures, saved_figures};
use crate::{device, world};

/// What this machine has.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Doctor {
    /// The version of Tonnage.
    pub version: &'static str,
    /// The system and the architecture.
    pub system: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// The vector instructions that kernels use: `portable`, `avx2`, `avx512`.
    pub vectors: String,
    /// How wide their vectors are, in bytes.
    pub vector_bytes: usize,
    /// The unit for products of matrices, where there is one that kernels use.
    pub matrix_unit: Option<&'static str>,
    /// Memory of the machine, or what the container may use, whichever is less; `None` where the system does not say.
    pub memory: Option<Bytes>,
    /// What of the machine's memory is free, or can be freed.
    pub available: Option<Bytes>,
    /// The limit of the container, where there is one.
    pub container_limit: Option<Bytes>,
    /// The devices by name.
    pub devices: Vec<String>,
    /// The GPUs among them, in their order: name, memory, compute capability, CUDA version of the driver.
    pub gpus: Vec<GpuInfo>,
    /// Why there is no GPU, where there is none: what was looked for.
    pub no_gpu: Option<String>,
    /// The MPI library, where one is found.
    pub mpi: Option<FoundMpi>,
    /// Where it is not: the names that it was looked for under.
    pub mpi_looked_for: Vec<String>,
    /// The ranks that a launcher started this process among: 1 where none did, and `None` where it does not say.
    pub ranks: Option<usize>,
    /// The figures of this machine, and the file that they are in.
    pub calibration: SavedFigures,
}

/// An MPI library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundMpi {
    /// Its file.
    pub file: std::path::PathBuf,
    /// What it says of itself.
    pub version: String,
    /// Whose handles it takes: `Open MPI`, `MPICH`, or `the standard ABI`.
    pub handles: &'static str,
}

/// Something that is missing, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// What: `calibration`, `gpu`, `mpi`, `vectors`, `memory`.
    pub what: &'static str,
    /// What to do, or what it means that it is missing.
    pub advice: String,
}

/// Looks at this machine.
///
/// ```
/// let doctor = tonnage::doctor();
/// assert!(doctor.cores > 0 && doctor.devices.contains(&"cpu:0".to_string()));
/// for missing in doctor.missing() {
///     println!("{}: {}", missing.what, missing.advice);
/// }
/// ```
pub fn doctor() -> Doctor {
    let (gpus, no_gpu) = match gpus() {
        Ok(gpus) if gpus.is_empty() => (gpus, Some("the NVIDIA driver lists none".to_string())),
        Ok(gpus) => (gpus, None),
        Err(what) => (Vec::new(), Some(what)),
    };
    let (mpi, mpi_looked_for) = match world::find() {
        Ok(world::Found { file, version, handles }) => {
            (Some(FoundMpi { file, version, handles }), Vec::new())
        }
        Err(names) => (None, names),
    };
    let Processor { cores, vectors, vector_bytes, matrix_unit, .. } = Processor::of_this_machine();
    Doctor {
        version: env!("CARGO_PKG_VERSION"),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        cores,
        vectors,
        vector_bytes,
        matrix_unit,
        memory: system::machine_memory(),
        available: system::available_memory(),
        container_limit: system::group_limit(),
        devices: device::list(),
        gpus,
        no_gpu,
        mpi,
        mpi_looked_for,
        ranks: world::started_ranks(),
        calibration: saved_figures(),
    }
}

impl Doctor {
    /// What is missing, with what to do.
    pub fn missing(&self) -> Vec<Missing> {
        let mut all = Vec::new();
        let mut add = |what, advice: String| all.push(Missing { what, advice });
        if self.vectors == "portable" && cfg!(target_arch = "x86_64") {
            add(
                "vectors",
                "kernels use SSE2 alone; run on a processor with AVX2 or AVX-512".into(),
            );
        }
        if self.memory.is_none() {
            add(
                "memory",
                "the system does not say how much there is; set a limit with `memory::set_limit`"
                    .into(),
            );
        }
        if let Some(why) = &self.no_gpu {
            add("gpu", format!("{why}; ops run on the CPU"));
        }
        if self.mpi.is_none() {
            let names = self.mpi_looked_for.join(", ");
            add(
                "mpi",
                format!(
                    "no library can be loaded ({names}); a single process needs none, otherwise install Open MPI or MPICH, or add its folder to \
                     LD_LIBRARY_PATH"
                ),
            );
        }
        match &self.calibration {
            SavedFigures::Used { .. } => {}
            SavedFigures::None { .. } => {
                add(
                    "calibration",
                    "budgets are planned with built-in figures; run `tonnage calibrate`".into(),
                );
            }
            SavedFigures::Other { .. } => {
                let advice = "the file is of another version, processor or number of threads; run `tonnage calibrate`";
                add("calibration", advice.into());
            }
            SavedFigures::Unusable { why } => {
                add("calibration", format!("{why}; run `tonnage calibrate`"));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_comes_with_what_to_do() {
        let mut doctor = doctor();
        doctor.no_gpu = None;
        doctor.mpi = Some(FoundMpi {
            file: "/usr/lib/libmpi.so".into(),
            version: "Open MPI v5".into(),
            handles: "Open MPI",
        });
        doctor.memory = Some(Bytes::mib(1));
        doctor.vectors = "avx2".into();
        doctor.calibration =
            SavedFigures::Used { path: "machine.txt".into(), figures: crate::machine() };
        assert_eq!(doctor.missing(), []);
        doctor.no_gpu = Some("no NVIDIA driver".into());
        doctor.mpi = None;
        doctor.mpi_looked_for = vec!["libmpi.so.40".into(), "libmpi.so.12".into()];
        doctor.memory = None;
        doctor.calibration = SavedFigures::Unusable { why: "it is no file of figures".into() };
        let missing = doctor.missing();
        let what: Vec<&str> = missing.iter().map(|m| m.what).collect();
        assert_eq!(what, ["memory", "gpu", "mpi", "calibration"]);
        assert!(missing[2].advice.contains("(libmpi.so.40, libmpi.so.12)"));
        assert!(missing[3].advice.contains("no file of figures; run `tonnage calibrate`"));
    }
}
