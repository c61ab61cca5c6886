//! Where CUDA's libraries are: in the loader's path, in the folders that CUDA is installed to, and in the packages that Python programs bring.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cudarc::cublaslt::sys as cublaslt;
use cudarc::nvrtc::sys as nvrtc;

/// Finds the compiler of kernels, NVRTC.
pub fn find_compiler() -> Result<(), String> {
    // SAFETY: loads the library, whose start-up code is what every program with CUDA runs.
    let is_there = || unsafe { nvrtc::is_culib_present() };
    if is_there() || preload("libnvrtc.so") && is_there() {
        return Ok(());
    }
    let folders: Vec<String> =
        folders().iter().map(|folder| folder.display().to_string()).collect();
    Err(format!(
        "NVRTC, which compiles its kernels, was not found: libnvrtc.so is neither in the loader's path nor in {}; `pip install nvidia-cuda-nvrtc` brings it",
        if folders.is_empty() { "a folder of CUDA".to_string() } else { folders.join(", ") }
    ))
}

/// Finds the library of products, cuBLASLt.
pub fn find_products() -> Result<(), String> {
    // SAFETY: as of `find_compiler`.
    let is_there = || unsafe { cublaslt::is_culib_present() };
    if is_there() || preload("libcublasLt.so") && is_there() {
        return Ok(());
    }
    Err("cuBLASLt, which multiplies matrices, was not found: libcublasLt.so is neither in the loader's path nor in a folder of CUDA; `pip install nvidia-cublas` brings it".into())
}

/// Loads the first library whose name begins so from the known folders, for good: the loader finds it by its name from then on.
fn preload(name: &str) -> bool {
    for folder in folders() {
        let Ok(entries) = folder.read_dir() else { continue };
        let mut found: Vec<PathBuf> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| {
                let file = path.file_name().and_then(|name| name.to_str());
                file.is_some_and(|file| file.starts_with(name))
            })
            .collect();
        // The plain name first, then the newest version.
        found.sort();
        for path in found.iter().rev() {
            // SAFETY: as of `find_compiler`.
            if let Ok(library) = unsafe { libloading::Library::new(path) } {
                std::mem::forget(library);
                return true;
            }
        }
    }
    false
}

/// Folders with packages of the Python program that this runs in.
static PACKAGES: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// Says where the packages of a Python program are, whose libraries are found there; the first that says so is heard.
pub fn set_packages(folders: Vec<PathBuf>) {
    let _ = PACKAGES.set(folders);
}

/// The folders of libraries that NVIDIA's packages have among these.
fn of_packages(packages: &Path) -> Vec<PathBuf> {
    let found = packages.join("nvidia").read_dir().into_iter().flatten().flatten();
    found.map(|package| package.path().join("lib")).collect()
}

/// Folders that CUDA's libraries may be in, in the order in which they are looked through.
fn folders() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(root) = env::var_os(variable) {
            found.push(PathBuf::from(root).join("lib64"));
        }
    }
    found.push(PathBuf::from("/usr/local/cuda/lib64"));
    for packages in PACKAGES.get().into_iter().flatten() {
        found.extend(of_packages(packages));
    }
    if let Some(environment) = env::var_os("VIRTUAL_ENV") {
        let pythons = PathBuf::from(environment).join("lib");
        for python in pythons.read_dir().into_iter().flatten().flatten() {
            found.extend(of_packages(&python.path().join("site-packages")));
        }
    }
    found.retain(|folder| folder.is_dir());
    found
}
