//! What this machine has, as Tonnage sees it, and what is missing: for `tonnage doctor`, and for programs that report where they ran.
//!
//! Nothing is measured for it: figures are the system's, libraries are looked for by the names of their files, and the driver of GPUs alone is
//! loaded.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tonnage_core::Bytes;
use tonnage_runtime::backend::{GpuInfo, gpus};
use tonnage_runtime::processor::Processor;
use tonnage_runtime::system;

use crate::calibrate::{SavedFigures, saved_figures};
use crate::device;

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
    /// The file of an MPI library, where one is found; it is not loaded.
    pub mpi: Option<PathBuf>,
    /// The figures of this machine, and the file that they are in.
    pub calibration: SavedFigures,
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
        mpi: mpi_library(),
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
            let advice = "no file libmpi.so or libmpi_abi.so is found; a program on one machine needs none, otherwise install MPICH or \
                          Open MPI, or add its folder to LD_LIBRARY_PATH";
            add("mpi", advice.into());
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

/// How files of MPI libraries are called; the one with the standard's own binary interface first.
const MPI: [&str; 4] = ["libmpi_abi.so", "libmpi_abi.dylib", "libmpi.so", "libmpi.dylib"];

/// The file that a loader would take for an MPI library: in the folders of `LD_LIBRARY_PATH`, in the loader's cache, then in the folders
/// that it always looks into.
fn mpi_library() -> Option<PathBuf> {
    let given = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let cache = std::fs::read("/etc/ld.so.cache").unwrap_or_default();
    let always = ["/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"].map(PathBuf::from);
    let given: Vec<PathBuf> = std::env::split_paths(&given).filter(|f| f.is_absolute()).collect();
    MPI.iter().find_map(|name| {
        given
            .iter()
            .find_map(|folder| in_folder(folder, name))
            .or_else(|| in_cache(&cache, name))
            .or_else(|| always.iter().find_map(|folder| in_folder(folder, name)))
    })
}

/// Whether a file is a library of that name, of any version.
fn is_named(path: &Path, name: &str) -> bool {
    let rest = path.file_name().and_then(|file| file.to_str()).and_then(|f| f.strip_prefix(name));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The first library of that name in a folder, in the order of names.
fn in_folder(folder: &Path, name: &str) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    files.filter(|path| is_named(path, name)).min()
}

/// The path of a library in the loader's cache, which holds paths as texts between zeros.
fn in_cache(cache: &[u8], name: &str) -> Option<PathBuf> {
    let texts = cache.split(|byte| *byte == 0).filter(|text| text.first() == Some(&b'/'));
    let mut paths = texts.filter_map(|text| std::str::from_utf8(text).ok()).map(PathBuf::from);
    paths.find(|path| is_named(path, name) && path.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_known_by_the_name_of_its_file_whatever_its_version() {
        for (file, is_one) in [
            ("/a/libmpi.so", true),
            ("/a/libmpi.so.40.30.4", true),
            ("/a/libmpi.so40", false),
            ("/a/libmpi_cxx.so", false),
            ("/a/libmpi_abi.so.1", false),
            ("/a/b/", false),
        ] {
            assert_eq!(is_named(Path::new(file), "libmpi.so"), is_one, "{file}");
        }
    }

    #[test]
    fn a_path_in_the_loaders_cache_counts_where_its_file_is_there() {
        let folder = std::env::temp_dir().join(format!("tonnage-doctor-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("libmpi.so.12");
        let cache = format!("glibc\0\u{1}libmpi.so.12\0/gone/libmpi.so.12\0{}\0", file.display());
        assert_eq!(in_cache(cache.as_bytes(), "libmpi.so"), None);
        std::fs::write(&file, "").unwrap();
        assert_eq!(in_cache(cache.as_bytes(), "libmpi.so"), Some(file.clone()));
        assert_eq!(in_folder(&folder, "libmpi.so"), Some(file));
        assert_eq!((in_folder(&folder, "libmpi_abi.so"), in_cache(b"", "libmpi.so")), (None, None));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_missing_comes_with_what_to_do() {
        let mut doctor = doctor();
        doctor.devices = vec!["cpu:0".into(), "cuda:0".into()];
        doctor.mpi = Some("/usr/lib/libmpi.so".into());
        doctor.memory = Some(Bytes::mib(1));
        doctor.vectors = "avx2".into();
        doctor.calibration =
            SavedFigures::Used { path: "machine.txt".into(), figures: crate::machine() };
        assert_eq!(doctor.missing(), []);
        doctor.devices.pop();
        doctor.mpi = None;
        doctor.memory = None;
        doctor.calibration = SavedFigures::Unusable { why: "it is no file of figures".into() };
        let missing = doctor.missing();
        let what: Vec<&str> = missing.iter().map(|m| m.what).collect();
        assert_eq!(what, ["memory", "gpu", "mpi", "calibration"]);
        assert!(missing[3].advice.contains("no file of figures; run `tonnage calibrate`"));
    }
}
