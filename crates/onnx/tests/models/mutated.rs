//! The files that fuzzing starts from (`fuzz/seeds/onnx`), and thousands of mutations of them: a model or an error, and memory as before.

use std::fs;
use std::path::Path;

use tonnage::{Context, Tensor, memory};
use tonnage_onnx::{load, outline};

use crate::write::Folder;

fn seeds() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/onnx");
    let mut all: Vec<(String, Vec<u8>)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
        })
        .collect();
    all.sort();
    all
}

/// What the fuzz target does: looks at what is in it, opens it, plans it for open lengths of 2, and calls it with zeros where it is small.
fn looked(path: &Path) -> tonnage::Result<()> {
    let (outline, model) = (outline(path), load(path));
    assert_eq!(outline.is_ok(), model.is_ok(), "{outline:?} {}", path.display());
    let (outline, model) = (outline?, model?);
    assert_eq!((&outline.inputs[..], &outline.outputs[..]), (model.inputs(), model.outputs()));
    let ops: usize = outline.ops.iter().map(|(_, count)| count).sum();
    assert_eq!((outline.nodes, ops), (model.nodes(), model.nodes()));
    let open = model.open();
    let lengths: Vec<(&str, usize)> = open.iter().map(|name| (name.as_str(), 2)).collect();
    let specs = model.specs(&lengths)?;
    let plan = model.plan(&specs)?;
    if plan.peak().get() < 1 << 24 {
        let zeros = specs.iter().map(|spec| tonnage::full(0, spec.dtype(), spec.shape()));
        model.call(zeros.collect::<tonnage::Result<Vec<Tensor>>>()?)?;
    }
    Ok(())
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

/// Bits and bytes changed, parts left out, doubled, and taken from another file.
fn mutated(bytes: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut made = bytes.to_vec();
    for _ in 0..1 + dice.below(3) {
        let at = dice.below(made.len());
        let end = (at + 1 + dice.below(12)).min(made.len());
        match dice.below(6) {
            0 if !made.is_empty() => made[at] ^= 1 << dice.below(8),
            1 if !made.is_empty() => made[at] = [0, 1, 0x7F, 0x80, 0xFF][dice.below(5)],
            2 => drop(made.drain(at.min(end)..end)),
            3 => {
                let part = made[at.min(end)..end].to_vec();
                made.splice(at..at, part);
            }
            4 => {
                let from = dice.below(other.len());
                let part = other[from..(from + 24).min(other.len())].to_vec();
                made.splice(at..at, part);
            }
            _ => made.truncate(at),
        }
    }
    made
}

#[test]
fn the_seeds_of_fuzzing_are_models() {
    let folder = Folder::new();
    let all = seeds();
    assert!(all.len() >= 5, "{} seeds", all.len());
    for (name, bytes) in all {
        looked(&folder.put("a.onnx", &bytes)).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn soak_thousands_of_mutated_models_are_models_or_errors() {
    let turns = if std::env::var_os("TONNAGE_SOAK").is_some() { 20_000 } else { 300 };
    // Tests that run beside it have a ledger of their own.
    let _context = Context::new().enter();
    let folder = Folder::new();
    let all = seeds();
    let (mut dice, mut refused, mut ran) = (Dice(0x9E37_79B9_7F4A_7C15), 0, 0);
    for (name, bytes) in &all {
        for turn in 0..turns {
            let other = &all[dice.below(all.len())].1;
            let made = mutated(bytes, other, &mut dice);
            let path = folder.put("a.onnx", &made);
            let before = memory::info("cpu:0").unwrap().in_use;
            match looked(&path) {
                Ok(()) => ran += 1,
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().is_empty());
                }
            }
            let after = memory::info("cpu:0").unwrap().in_use;
            assert_eq!(after, before, "{name}, turn {turn}: {}", made.escape_ascii());
        }
    }
    assert!(refused > turns && ran > turns / 10, "{refused} refused, {ran} ran");
}
