//! What the fuzz targets share: bytes become a file, which is opened and read in every way. Whatever it holds, that gives tensors or an error.

use std::fs;
use std::path::{Path, PathBuf};

use tonnage::io::TensorFile;

/// Opens a file of these bytes under that name and reads all that it says it holds.
///
/// # Panics
/// Where no file can be written.
pub fn look(name: &str, bytes: &[u8]) {
    let path = folder().join(name);
    fs::write(&path, bytes).expect("a file can be written");
    read(&path);
}

/// Looks at a model of these bytes under that name, opens it, plans it for open lengths of 2, and calls it with zeros.
///
/// # Panics
/// Where no file can be written.
pub fn model(name: &str, bytes: &[u8]) {
    let path = folder().join(name);
    fs::write(&path, bytes).expect("a file can be written");
    let _ = tonnage_onnx::outline(&path);
    let Ok(model) = tonnage_onnx::load(&path) else { return };
    let open = model.open();
    let lengths: Vec<(&str, usize)> = open.iter().map(|name| (name.as_str(), 2)).collect();
    let Ok(specs) = model.specs(&lengths) else { return };
    let Ok(plan) = model.plan(&specs) else { return };
    // What takes more is no mistake of the file.
    if plan.peak().get() < 1 << 24 {
        let zeros = specs.iter().map(|spec| tonnage::full(0, spec.dtype(), spec.shape()));
        let _ = zeros.collect::<tonnage::Result<Vec<_>>>().and_then(|inputs| model.call(inputs));
    }
}

/// A folder of this process, in memory where the system has one there.
fn folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    let folder = base.join(format!("tonnage-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

fn read(path: &Path) {
    let Ok(file) = TensorFile::open(path) else { return };
    for name in file.names() {
        let _ = file.ty(name);
        let _ = file.stats(name, |_| {});
        let _ = file.lazy(name).and_then(|lazy| lazy.sum_all());
        let _ = file.read(name);
    }
}
