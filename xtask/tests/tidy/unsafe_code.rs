//! Where `unsafe` may stand, and that each use says why it is sound.
//!
//! Clippy asks for a comment on blocks; this asks for it on functions, impls, traits and attributes
//! too, and in code that the present target or features leave out.

use crate::none;
use crate::rust::{Line, lines, words};
use crate::tree::{File, rust_files};

/// The only files, and directories of files, that may hold `unsafe`: vectors, the matmul core, lending, the
/// device for tests, the system's pages, MPI, Python's buffer slot; and four that no user runs: a global allocator that counts is an unsafe trait, and three
/// benchmarks call what they compare with.
const ALLOWED: &[&str] = &[
    "crates/bench/src/ranks/allreduce.rs",
    "crates/counting/src/lib.rs",
    "crates/cpu/benches/gemm.rs",
    "crates/cpu/src/linalg/gemm/",
    "crates/cuda/src/driver/",
    "crates/cuda/tests/emulated/",
    "crates/python/src/buffer.rs",
    "crates/python/src/tensor.rs",
    "crates/runtime/benches/ledger.rs",
    "crates/runtime/src/backend/sim/queue.rs",
    "crates/runtime/src/lend/",
    "crates/runtime/src/system/",
    "crates/simd/src/product/",
    "crates/simd/src/prefetch.rs",
    "crates/simd/src/stream.rs",
    "crates/simd/src/vectorize.rs",
    "crates/world/src/mpi.rs",
];

fn is_allowed(path: &str) -> bool {
    ALLOWED.iter().any(|place| match place.ends_with('/') {
        true => path.starts_with(place),
        false => path == *place,
    })
}

/// What follows each `unsafe` of a line.
fn uses(line: &Line) -> impl Iterator<Item = &str> {
    words(&line.code).filter(|(word, _)| *word == "unsafe").map(|(_, after)| after.trim_start())
}

fn misplaced(file: &File) -> Vec<String> {
    if is_allowed(&file.path) {
        return Vec::new();
    }
    let lines = (1..).zip(lines(&file.text)).filter(|(_, line)| uses(line).next().is_some());
    lines
        .map(|(number, _)| file.at(number, "`unsafe` outside the files that may hold it"))
        .collect()
}

/// The type of a function pointer promises nothing by itself: who makes or calls one does.
fn is_pointer_type(after: &str) -> bool {
    let after = after.strip_prefix("extern").unwrap_or(after).trim_start_matches(['"', ' ']);
    after.strip_prefix("fn").is_some_and(|rest| rest.trim_start().starts_with('('))
}

fn is_reason(line: &Line) -> bool {
    line.comment.contains("SAFETY:") || line.comment.contains("# Safety")
}

/// Whether the line, or the comments and attributes that lead to its statement, give the reason.
fn has_reason(lines: &[Line], at: usize) -> bool {
    if is_reason(&lines[at]) {
        return true;
    }
    for line in lines[..at].iter().rev() {
        if is_reason(line) {
            return true;
        }
        let code = line.code.trim();
        let nothing = code.is_empty() && line.comment.is_empty();
        let ended = code.ends_with([';', '{', '}', ',', '(']) && !line.attribute;
        if nothing || ended {
            return false;
        }
    }
    false
}

fn unexplained(file: &File) -> Vec<String> {
    let lines = lines(&file.text);
    let asks = |line: &Line| uses(line).any(|after| !is_pointer_type(after));
    let places = (0..lines.len()).filter(|&at| asks(&lines[at]) && !has_reason(&lines, at));
    places.map(|at| file.at(at + 1, "`unsafe` with no `SAFETY:` or `# Safety` above it")).collect()
}

#[test]
fn unsafe_stands_only_where_the_design_allows_it() {
    none(rust_files().unwrap().iter().flat_map(misplaced).collect());
}

#[test]
fn misplaced_unsafe_is_found() {
    let text = "// unsafe\n#![allow(unsafe_code)]\nfn f() { unsafe { g(\"unsafe\") } }\n";
    let at = |path| misplaced(&File::sample(path, text)).len();
    assert_eq!(at("crates/core/src/bytes.rs"), 1);
    assert_eq!(at("crates/runtime/src/lend/"), 0);
    assert_eq!(at("crates/runtime/src/lend.rs.rs"), 1);
    assert_eq!(at("crates/simd/src/product/exp.rs"), 0);
}

#[test]
fn every_unsafe_says_why_it_is_sound() {
    none(rust_files().unwrap().iter().flat_map(unexplained).collect());
}

#[test]
fn unexplained_unsafe_is_found() {
    let count = |text| unexplained(&File::sample("a.rs", text)).len();
    for bare in [
        "let x = unsafe { f() };",
        "// fine\nlet x = unsafe { f() };",
        "// SAFETY: far away.\nlet y = 1;\nlet x = unsafe { f() };",
        "// SAFETY: far away.\n\nunsafe impl Send for X {}",
        "match x {\n  // SAFETY: a.\n  A => unsafe { a() },\n  B => unsafe { b() },\n}",
        "pub unsafe fn f() {}",
        "unsafe impl Send for fn(u8) {}",
        "#[unsafe(no_mangle)]\nfn f() {}",
    ] {
        assert_eq!(count(bare), 1, "{bare}");
    }
    for explained in [
        "// SAFETY: a.\nlet x = unsafe { f() };",
        "// SAFETY: a.\nlet x: u8 =\n    unsafe { f() };",
        "let x = unsafe { f() }; // SAFETY: a.",
        "/// Does.\n///\n/// # Safety\n///\n/// AVX.\n#[cfg(all(\n a,\n b\n))]\npub unsafe fn f() {}",
        "type F = unsafe fn(u8);\nstruct G(unsafe extern \"C\" fn (u8));",
    ] {
        assert_eq!(count(explained), 0, "{explained}");
    }
}
