//! State of the whole process is listed here, each with what makes it the process's. All else is a context's, so that tests and
//! programs with contexts of their own share nothing.

use crate::none;
use crate::rust::{lines, words};
use crate::tree::{File, rust_files};

/// What a static is made of that changes after the start.
const CHANGING: &[&str] = &["Mutex", "RwLock", "OnceLock", "LazyLock", "PyOnceLock"];

/// A counter of this name gives out numbers that nothing else has, and serves for nothing more.
const COUNTER: &str = "NEXT";

/// The file and the name of each.
const ALLOWED: &[(&str, &str)] = &[
    // The signal that stops the command comes to the process.
    ("crates/cli/src/train/mod.rs", "STOPPED"),
    // Texts that are stored once: what they are does not depend on who asked first.
    ("crates/core/src/layer.rs", "NAMES"),
    ("crates/core/src/source.rs", "LINES"),
    // The allocator is the process's.
    ("crates/counting/src/lib.rs", "ARMED"),
    ("crates/counting/src/lib.rs", "LARGEST"),
    ("crates/counting/src/lib.rs", "LIVE"),
    ("crates/counting/src/lib.rs", "MOST"),
    ("crates/counting/src/lib.rs", "TIMES"),
    // A constant that needs an allocation.
    ("crates/python/src/nest.rs", "SHAPE"),
    // Where the Python program that this runs in has its packages.
    ("crates/cuda/src/driver/library.rs", "PACKAGES"),
    // What the processor can do.
    ("crates/simd/src/level.rs", "LEVEL"),
    ("crates/simd/src/product/amx.rs", "THERE"),
    // Objects of the interpreter, whether it was forked, and its end.
    ("crates/python/src/array.rs", "NDARRAY"),
    ("crates/python/src/callback.rs", "ENDED_BY"),
    ("crates/python/src/callback.rs", "RUNNING"),
    ("crates/python/src/dtype.rs", "ALL"),
    ("crates/python/src/dtype.rs", "STRING"),
    ("crates/python/src/errors.rs", "CLASSES"),
    ("crates/python/src/line.rs", "FOLDERS"),
    ("crates/python/src/line.rs", "GET_FRAME"),
    ("crates/python/src/nest.rs", "LEAF"),
    ("crates/python/src/run.rs", "FORKED"),
    ("crates/python/src/tensor.rs", "SUGAR"),
    // The scripts of characters, which never change.
    ("crates/formats/src/strings/scripts.rs", "RANGES"),
    // Whether there is more than one context or device; the ledger of the first.
    ("crates/runtime/src/context.rs", "ENTERED"),
    ("crates/runtime/src/ledger/mod.rs", "STATE"),
    ("crates/runtime/src/placement.rs", "USED"),
    // Folders and files that belong to the process, and when it started.
    ("crates/runtime/src/lock.rs", "HELD"),
    ("crates/runtime/src/process.rs", "STARTED"),
    ("crates/runtime/src/process.rs", "USED"),
    ("crates/runtime/src/system/files.rs", "PLACE"),
    // Contexts share threads.
    ("crates/runtime/src/pool/mod.rs", "POOL"),
    // A counter.
    ("crates/runtime/src/spill/file_pass.rs", "PASSES"),
    // What the system's pages can do.
    ("crates/runtime/src/system/unix.rs", "ANSWER"),
    // A process is one rank, and MPI ends with it; it is interrupted as a process.
    ("crates/world/src/lib.rs", "INTERRUPT"),
    ("crates/world/src/lib.rs", "JOINED"),
    ("crates/world/src/mpi.rs", "ENDING"),
];

/// The statics of a file that change after the start: line and name.
fn changing(file: &File) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(lines(&file.text)) {
        let declared = line.code.split('=').next().unwrap_or_default();
        let mut all = words(declared).map(|(word, _)| word).skip_while(|word| *word != "static");
        let name = all.by_ref().nth(1);
        let changes = |word: &str| CHANGING.contains(&word) || word.starts_with("Atomic");
        if let (Some(name), true) = (name, all.any(changes)) {
            found.push((number, name.to_owned()));
        }
    }
    found
}

fn is_product(file: &File) -> bool {
    file.path.starts_with("crates/") && file.path.contains("/src/")
}

fn unlisted(file: &File) -> Vec<String> {
    let is_known = |name: &str| name == COUNTER || ALLOWED.contains(&(file.path.as_str(), name));
    let found = changing(file).into_iter().filter(|(_, name)| !is_known(name));
    found
        .map(|(number, name)| file.at(number, &format!("`{name}` is state of the process")))
        .collect()
}

#[test]
fn state_of_the_process_is_listed() {
    let files = rust_files().unwrap();
    let product: Vec<&File> = files.iter().filter(|file| is_product(file)).collect();
    let mut offenders: Vec<String> = product.iter().copied().flat_map(unlisted).collect();
    let all: Vec<(&str, String)> = product
        .iter()
        .flat_map(|file| changing(file).into_iter().map(|(_, name)| (file.path.as_str(), name)))
        .collect();
    let gone =
        ALLOWED.iter().filter(|(path, name)| !all.iter().any(|(p, n)| p == path && n == name));
    offenders.extend(gone.map(|(path, name)| format!("{path}: no `{name}` any more")));
    none(offenders);
}

#[test]
fn a_static_that_is_not_listed_is_found() {
    let text = "static SEEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());\n\
                fn f() {\n    static NEXT: AtomicU64 = AtomicU64::new(0);\n    \
                static ON: std::sync::atomic::AtomicBool = AtomicBool::new(false);\n}\n\
                static TABLE: [u8; 2] = [1, 2]; // no Mutex\nstatic KEPT: OnceLock<u8> = OnceLock::new();\n";
    assert_eq!(
        unlisted(&File::sample("crates/a/src/a.rs", text)),
        [
            "crates/a/src/a.rs:1: `SEEN` is state of the process",
            "crates/a/src/a.rs:4: `ON` is state of the process",
            "crates/a/src/a.rs:7: `KEPT` is state of the process",
        ]
    );
    let pool = File::sample("crates/runtime/src/pool/mod.rs", "static POOL: OnceLock<u8> = x;\n");
    assert!(unlisted(&pool).is_empty());
}
