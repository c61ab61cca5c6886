//! What each kernel takes of a multiprocessor: registers, and no stack frame, for which the driver would obtain memory that no plan knows.
//! The figures are in a file, so that a change of a kernel shows what it costs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use tonnage_cuda::driver::compiler::{KernelSource, version};
use tonnage_cuda::emit::KernelKey;

/// The oldest that is served, and the one with the most units.
const ARCHITECTURES: [(u32, u32); 2] = [(8, 0), (9, 0)];

/// Every so many kernels: all of them take minutes.
const EVERY: usize = 12;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/emulated/registers.txt")
}

/// What the compiler wrote down of the functions of a kernel.
#[derive(Debug, PartialEq, Eq)]
struct Resources {
    /// The most of any function.
    registers: u32,
    /// The largest stack frame.
    frame: u32,
}

/// Attributes of the section `.nv.info`: a format, an attribute, and either two bytes or a length and as many bytes.
const WITH_LENGTH: u8 = 4;
const REGISTERS: u8 = 0x2f;
const FRAME: u8 = 0x11;

fn number<const N: usize>(bytes: &[u8], at: usize) -> usize {
    let bytes = bytes.get(at..at + N).expect("a number within the file");
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}

/// The contents of a section of an ELF file.
fn section<'f>(file: &'f [u8], wanted: &str) -> Option<&'f [u8]> {
    let (table, size) = (number::<8>(file, 0x28), number::<2>(file, 0x3a));
    let (count, names) = (number::<2>(file, 0x3c), number::<2>(file, 0x3e));
    let contents = |at: usize| {
        let header = table + at * size;
        let start = number::<8>(file, header + 24);
        &file[start..start + number::<8>(file, header + 32)]
    };
    let names = contents(names);
    let name = |at: usize| {
        let name = &names[number::<4>(file, table + at * size)..];
        name.split(|byte| *byte == 0).next().unwrap_or_default()
    };
    (0..count).find(|at| name(*at) == wanted.as_bytes()).map(contents)
}

fn resources(binary: &[u8]) -> Resources {
    let info = section(binary, ".nv.info").expect("figures of the compiler");
    let mut found = Resources { registers: 0, frame: 0 };
    let mut at = 0;
    while at + 4 <= info.len() {
        let (format, attribute) = (info[at], info[at + 1]);
        at += 4;
        if format != WITH_LENGTH {
            continue;
        }
        let len = number::<2>(info, at - 2);
        // The function's symbol, and the figure.
        let figure = || number::<4>(info, at + 4) as u32;
        match attribute {
            REGISTERS => found.registers = found.registers.max(figure()),
            FRAME => found.frame = found.frame.max(figure()),
            _ => {}
        }
        at += len;
    }
    found
}

/// The first kernel of each name.
fn named(keys: &[KernelKey]) -> BTreeMap<String, &KernelKey> {
    let mut named = BTreeMap::new();
    for key in keys {
        named.entry(key.to_string()).or_insert(key);
    }
    named
}

/// Compiles kernels for each architecture; every so many of them, or with `TONNAGE_SOAK` all. With `TONNAGE_RECORD` in the environment
/// their figures are written anew, of all kernels or of none.
pub fn compare(keys: &[KernelKey]) {
    let (major, minor) = version().unwrap();
    let some = std::env::var_os("TONNAGE_KERNELS").is_some();
    let recorded = std::env::var_os("TONNAGE_RECORD").is_some() && !some;
    let all = recorded || some || std::env::var_os("TONNAGE_SOAK").is_some();
    let head = format!("# Registers of kernels for sm_80 and sm_90a, by NVRTC {major}.{minor}.");
    let golden = std::fs::read_to_string(path()).unwrap_or_default();
    let known: BTreeMap<&str, &str> =
        golden.lines().filter_map(|line| line.split_once(": ")).collect();
    let is_same_compiler = golden.lines().next() == Some(&head);
    if !is_same_compiler {
        println!("figures are not compared: they are of another compiler than {major}.{minor}");
    }
    let mut text = head + "\n";
    let mut wrong = Vec::new();
    for (name, key) in named(keys).into_iter().step_by(if all { 1 } else { EVERY }) {
        let made = ARCHITECTURES.map(|capability| {
            if !key.runs_on(capability) {
                return "-".to_string();
            }
            let source = KernelSource::new(&key.text(), capability).unwrap();
            let binary = source.compile().unwrap_or_else(|e| panic!("{e}\n{}", key.text()));
            let Resources { registers, frame } = resources(&binary);
            if frame > 0 {
                wrong.push(format!("{name}: a stack frame of {frame} bytes for {capability:?}"));
            }
            registers.to_string()
        });
        let figures = format!("{} {}", made[0], made[1]);
        let _ = writeln!(text, "{name}: {figures}");
        if is_same_compiler && !recorded && known.get(name.as_str()) != Some(&figures.as_str()) {
            let before = known.get(name.as_str()).unwrap_or(&"nothing");
            wrong.push(format!("{name}: {figures} registers, and the file says {before}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if recorded {
        std::fs::write(path(), text).unwrap();
    }
}
