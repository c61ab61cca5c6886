//! What an op is, and what a plan is, say nothing of how a device runs them: no threads, no vectors, no lent slices.

use crate::none;
use crate::rust::{lines, words};
use crate::tree::{File, rust_files};

/// Crates that know no device.
const WITHOUT_DEVICES: [&str; 2] = ["crates/ops/src/", "crates/plan/src/"];

/// Words of code that belongs to a device's crate.
const WORDS: [&str; 7] = ["threads", "Workers", "simd", "arch", "bytemuck", "lent", "tonnage_cpu"];

/// Host callbacks are lent host memory on every device: their samples have closures.
const CALLBACKS: &str = "crates/ops/src/host/";

fn device_words(file: &File) -> Vec<String> {
    let here = WITHOUT_DEVICES.iter().any(|folder| file.path.starts_with(folder));
    if !here || file.path.starts_with(CALLBACKS) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (number, line) in (1..).zip(lines(&file.text)) {
        let wrong = words(&line.code).filter(|(word, _)| WORDS.contains(word));
        found.extend(wrong.map(|(word, _)| {
            file.at(number, &format!("`{word}` belongs to the crate of a device"))
        }));
    }
    found
}

#[test]
fn definitions_and_plans_name_no_slice_thread_or_vector() {
    none(rust_files().unwrap().iter().flat_map(device_words).collect());
}

#[test]
fn a_thread_in_a_definition_is_found() {
    let at = |path: &str, text: &str| device_words(&File::sample(path, text)).len();
    assert_eq!(at("crates/ops/src/math/add.rs", "fn scratch(threads: usize) {}\n"), 1);
    assert_eq!(at("crates/plan/src/place.rs", "use tonnage_cpu::workers::Workers;\n"), 2);
    assert_eq!(at("crates/ops/src/math/add.rs", "// at any number of threads\n"), 0);
    assert_eq!(at("crates/cpu/src/parallel.rs", "fn share(threads: usize) {}\n"), 0);
    assert_eq!(at("crates/ops/src/host/mod.rs", "use tonnage_core::lent::In;\n"), 0);
}
