//! The kernels that were run on hardware: `cargo xtask gpu` writes them down with hashes of their texts, and a test names those that have
//! changed since.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use tonnage_cuda::driver;
use tonnage_cuda::emit::KernelKey;
use tonnage_cuda::headers;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/emulated/hardware.txt")
}

/// A hash that is the same on every machine and with every compiler (FNV-1a).
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Kernels by name, each with a hash of all texts that have it; and the headers that they share.
fn hashes(keys: &[KernelKey]) -> BTreeMap<String, u64> {
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for key in keys {
        texts.entry(key.to_string()).or_default().insert(key.text());
    }
    let shared = headers::all().map(|(_, header)| header.to_string()).collect();
    texts.insert("headers".to_string(), shared);
    let whole = |texts: BTreeSet<String>| hash(&texts.into_iter().collect::<String>());
    texts.into_iter().map(|(name, texts)| (name, whole(texts))).collect()
}

/// Prints what has changed since the record. It is written anew where `TONNAGE_RECORD` says: a file, since the machine that has the GPU
/// may have no sources.
pub fn compare(keys: &[KernelKey]) {
    let now = hashes(keys);
    if let Some(to) = std::env::var_os("TONNAGE_RECORD") {
        let gpus = driver::list().unwrap_or_default();
        let gpu = gpus.first().expect("a GPU that the kernels were run on");
        let (major, minor) = gpu.driver;
        let mut text = format!(
            "# Kernels that were run on hardware, by `cargo xtask gpu`, with hashes of their texts.\n# {}, driver for CUDA {major}.{minor}\n",
            gpu.name
        );
        for (name, hash) in &now {
            let _ = writeln!(text, "{hash:016x} {name}");
        }
        std::fs::write(to, text).unwrap();
        return;
    }
    let record = std::fs::read_to_string(path()).unwrap_or_default();
    let lines = record.lines().filter(|line| !line.starts_with('#'));
    let known: BTreeMap<&str, &str> =
        lines.filter_map(|line| line.split_once(' ').map(|(hash, name)| (name, hash))).collect();
    let is_stale = |(name, hash): &(&String, &u64)| {
        known.get(name.as_str()) != Some(&format!("{hash:016x}").as_str())
    };
    let stale: Vec<&String> = now.iter().filter(is_stale).map(|(name, _)| name).collect();
    for name in &stale {
        println!("STALE: {name}");
    }
    println!("{} of {} kernels as they were run on hardware", now.len() - stale.len(), now.len());
}
