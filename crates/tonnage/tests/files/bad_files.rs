//! Whatever a file holds, opening and reading it gives tensors or an error that names it, and takes no more memory than it is long.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::fs;
use std::path::Path;

use tonnage::io::{
    SafeTensors, TensorFile, save_idx, save_npy, save_npz, save_npz_deflated, save_safetensors,
};
use tonnage::{Bytes, ErrorKind, Result, memory, range, tensor};

use crate::common::{Folder, in_use, own_context};

/// Opens a file and reads all that it says it holds, in every way.
fn look(path: &Path) -> Result<()> {
    let file = TensorFile::open(path)?;
    for name in file.names() {
        file.ty(name)?;
        file.stats(name, |_| {})?;
        let lazy = file.lazy(name)?;
        let _ = lazy.sum_all();
        file.read(name)?;
    }
    Ok(())
}

/// Looks at a file; what was wrong with it.
#[track_caller]
fn looked(path: &Path, what: &str) -> Option<String> {
    let before = in_use();
    memory::reset_peak("cpu:0").unwrap();
    let error = look(path).err();
    let took = memory::info("cpu:0").unwrap().peak - before;
    // Deflated elements may be a thousand times as many as their bytes.
    let most = fs::metadata(path).map_or(0, |found| found.len()) * 1100 + (4 << 20);
    assert!(took <= Bytes::new(most), "{what}: {took}");
    assert_eq!(in_use(), before, "{what}");
    if let Some(error) = &error {
        assert!(matches!(error.kind(), ErrorKind::BadFile { .. }), "{what}: {error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{what}: {error}");
    }
    error.map(|error| error.to_string())
}

fn seeds(folder: &Path) -> Vec<(&'static str, Vec<u8>)> {
    let (x, y) = (range(0i64, 30, 1).unwrap().reshape([5, 6]).unwrap(), tensor([1.5f32]).unwrap());
    let path = folder.join("seed");
    let both = || [("x", &x), ("second", &y)];
    let read = |name| (name, fs::read(&path).unwrap());
    save_npy(&path, &x).unwrap();
    let mut all = vec![read("a.npy")];
    save_npz(&path, both()).unwrap();
    all.push(read("a.npz"));
    save_npz_deflated(&path, both()).unwrap();
    all.push(read("b.npz"));
    save_safetensors(&path, both(), &[("note", "text")]).unwrap();
    all.push(read("a.safetensors"));
    save_idx(&path, &y).unwrap();
    all.push(read("a.idx"));
    all.push(("a.csv", b"1,2\n3,4\n".to_vec()));
    all
}

#[test]
fn files_that_are_cut_or_damaged_anywhere_are_tensors_or_errors() {
    let _context = own_context();
    let folder = Folder::new("damaged");
    for (name, bytes) in seeds(&folder.0) {
        let path = folder.0.join(name);
        let check = |bytes: &[u8], what: &str| {
            fs::write(&path, bytes).unwrap();
            looked(&path, &format!("{name}: {what}"))
        };
        assert_eq!(check(&bytes, "as it is"), None);
        // At every length of the shorter ones, and some of the longer ones.
        for n in (0..bytes.len()).step_by(1 + bytes.len() / 80) {
            let refused = check(&bytes[..n], &format!("cut at {n}")).is_some();
            // A table may be cut between rows or digits, and is a table still.
            assert!(refused || name.ends_with("csv"), "{name} cut at {n}");
        }
        for at in 0..bytes.len().min(260) {
            let mut other = bytes.clone();
            other[at] = if at % 2 == 0 { 0xFF } else { bytes[at] ^ 1 };
            check(&other, &format!("{} at {at}", other[at]));
        }
    }
}

fn safetensors(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + data, 1);
    bytes
}

fn npy(dict: &str, data: usize) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dict.len() as u16).to_le_bytes());
    bytes.extend(dict.as_bytes());
    bytes.resize(bytes.len() + data, 1);
    bytes
}

/// A name, and what a file of that name holds that lies.
fn lies() -> Vec<(&'static str, Vec<u8>)> {
    let one = |dtype: &str, shape: &str, offsets: &str| {
        format!(r#"{{"x":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}}}"#)
    };
    let of = |dtype: &str, shape: &str, offsets: &str, data: usize| {
        safetensors(&one(dtype, shape, offsets), data)
    };
    let dict = |descr: &str, shape: &str| {
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}")
    };
    let two = r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"y":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#;
    let mut not_text = of("F32", "[1]", "[0,4]", 4);
    not_text[10] = 0xFF;
    vec![
        ("sizes that are not the offsets'.safetensors", of("F32", "[3]", "[0,8]", 8)),
        ("offsets beyond the end.safetensors", of("F32", "[2]", "[0,8]", 4)),
        ("offsets that go back.safetensors", of("F32", "[2]", "[8,0]", 8)),
        ("offsets that are negative.safetensors", of("F32", "[2]", "[-8,0]", 8)),
        ("offsets that overlap.safetensors", safetensors(two, 12)),
        ("offsets that leave a hole.safetensors", of("F32", "[2]", "[4,12]", 12)),
        (
            "offsets that overflow.safetensors",
            of("F32", "[2]", "[18446744073709551608,18446744073709551616]", 8),
        ),
        (
            "a shape that overflows.safetensors",
            of("F32", "[4294967296,4294967296,4294967296]", "[0,8]", 8),
        ),
        ("a shape that is negative.safetensors", of("F32", "[-2]", "[0,8]", 8)),
        ("an unknown dtype.safetensors", of("F33", "[2]", "[0,8]", 8)),
        ("a dtype that is none of ours.safetensors", of("F8_E4M3", "[8]", "[0,8]", 8)),
        ("more behind the end.safetensors", of("F32", "[2]", "[0,8]", 9)),
        ("deep brackets.safetensors", safetensors(&"[".repeat(100_000), 0)),
        ("deep braces.safetensors", safetensors(&r#"{"a":"#.repeat(50_000), 0)),
        ("a name that is no text.safetensors", not_text),
        ("no header.safetensors", safetensors("", 0)),
        ("a header beyond the end.safetensors", u64::MAX.to_le_bytes().to_vec()),
        ("a shape beyond the end.npy", npy(&dict("<f4", "(1000000000000,)"), 16)),
        ("a shape that overflows.npy", npy(&dict("<f8", "(4294967296, 4294967296, 16)"), 16)),
        ("a shape of too many digits.npy", npy(&dict("<f4", "(99999999999999999999999,)"), 16)),
        ("a negative shape.npy", npy(&dict("<f4", "(-4,)"), 16)),
        ("an unknown dtype.npy", npy(&dict("<c8", "(2,)"), 16)),
        ("deep tuples.npy", npy(&dict("<f4", &"(".repeat(10_000)), 16)),
        ("a header of another length.npy", npy("{}", 16)),
        ("too many axes for its length.idx", vec![0, 0, 8, 200, 0, 0, 0, 1]),
        ("lengths that overflow.idx", [&[0, 0, 14, 3][..], &[0xFF; 12]].concat()),
        ("another kind.idx", vec![0, 0, 10, 1, 0, 0, 0, 1, 1]),
        ("no archive.npz", b"PK\x03\x04 and then nothing".to_vec()),
        ("nothing at all.npy", vec![]),
        ("something else.bin", b"hello, world".to_vec()),
    ]
}

#[test]
fn files_that_lie_are_refused_and_named() {
    let _context = own_context();
    let folder = Folder::new("lies");
    for (name, bytes) in lies() {
        let path = folder.0.join(name);
        fs::write(&path, bytes).unwrap();
        assert!(looked(&path, name).is_some(), "{name}");
    }
    assert!(looked(&folder.0.join("not there.npy"), "not there").is_some());
}

/// A zip that begins with an empty file of that name.
fn zip(name: &str) -> Vec<u8> {
    let length = (name.len() as u16).to_le_bytes();
    [&b"PK\x03\x04"[..], &[0; 22], &length[..], &[0; 2], name.as_bytes(), &[7; 300]].concat()
}

#[test]
fn files_of_other_programs_are_called_what_they_are() {
    let _context = own_context();
    let folder = Folder::new("foreign");
    let begins = |start: &[u8]| [start, &[0; 600]].concat();
    let table = [
        (begins(b"\x89HDF\r\n\x1a\n"), "is an HDF5 file"),
        (zip("metadata.json"), "is a file of Keras 3"),
        (zip("config.json"), "is a file of Keras 3"),
        (zip("archive/data.pkl"), "is a file of PyTorch"),
        (zip("model/data.pkl"), "is a file of PyTorch"),
        (begins(b"\x80\x02\x8a\x0al\xfc"), "is a pickle"),
        (begins(b"\x80\x04\x95"), "is a pickle"),
        (begins(b"GGUF\x03"), "is a GGUF file"),
        (begins(b"\x1f\x8b\x08"), "is compressed with gzip"),
        (begins(b"\x28\xb5\x2f\xfd"), "is compressed with zstd"),
    ];
    for (bytes, what) in &table {
        for name in ["a", "a.keras", "a.h5", "a.weights.h5", "a.safetensors", "a.npz", "a.pt"] {
            let path = folder.0.join(name);
            fs::write(&path, bytes).unwrap();
            for error in
                [looked(&path, what), SafeTensors::open(&path).err().map(|e| e.to_string())]
            {
                let error = error.unwrap();
                assert!(error.contains(what) && error.contains("not supported yet"), "{error}");
            }
        }
    }
    let saved = folder.0.join("model");
    fs::create_dir(&saved).unwrap();
    fs::write(saved.join("saved_model.pb"), b"x").unwrap();
    assert!(looked(&saved, "folder").unwrap().contains("is a SavedModel of TensorFlow"));
}

#[test]
fn an_index_that_leads_out_of_its_folder_is_refused() {
    let _context = own_context();
    let folder = Folder::new("out");
    let inside = folder.0.join("inside");
    fs::create_dir(&inside).unwrap();
    let x = tensor([1.0f32]).unwrap();
    save_safetensors(folder.0.join("secret.safetensors"), [("x", &x)], &[]).unwrap();
    let index = inside.join("model.safetensors.index.json");
    let absolute = folder.0.join("secret.safetensors");
    for file in [
        "../secret.safetensors",
        "a/../../secret.safetensors",
        "..",
        "",
        &absolute.display().to_string(),
    ] {
        fs::write(&index, format!(r#"{{"weight_map":{{"x":{file:?}}}}}"#)).unwrap();
        assert!(look(&inside).is_err() && look(&index).is_err(), "{file}");
    }
    fs::write(&index, b"{\"weight_map\":{\"\xFF\":\"x\"}}").unwrap();
    assert!(look(&inside).unwrap_err().to_string().contains("index.json"));
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

/// What fuzzers do to a file: bits, bytes and numbers changed, parts left out, doubled, and taken from another file.
fn mutated(bytes: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    const NUMBERS: [&str; 7] =
        ["0", "-1", "1e9", "4294967296", "9223372036854775807", "18446744073709551616", "\"2\""];
    let mut made = bytes.to_vec();
    for _ in 0..1 + dice.below(4) {
        let at = dice.below(made.len());
        let end = (at + 1 + dice.below(16)).min(made.len());
        match dice.below(7) {
            0 if !made.is_empty() => made[at] ^= 1 << dice.below(8),
            1 if !made.is_empty() => made[at] = [0, 0xFF, b'"', b'[', b'}', b','][dice.below(6)],
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
            5 => {
                // A number in the text becomes another one.
                let digits = made.iter().skip(at).position(u8::is_ascii_digit);
                let Some(first) = digits.map(|n| at + n) else { continue };
                let count = made[first..].iter().take_while(|b| b.is_ascii_digit()).count();
                let number = NUMBERS[dice.below(NUMBERS.len())].bytes();
                made.splice(first..first + count, number);
            }
            _ => made.truncate(at),
        }
    }
    made
}

/// The files that fuzzing starts from.
fn corpus() -> Vec<(String, String, Vec<u8>)> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let mut all = Vec::new();
    for target in ["npy", "safetensors", "index"] {
        let mut found: Vec<_> = fs::read_dir(seeds.join(target)).unwrap().collect();
        found.sort_by_key(|entry| entry.as_ref().unwrap().file_name());
        for entry in found {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            all.push((target.to_string(), name, fs::read(entry.path()).unwrap()));
        }
    }
    all
}

#[test]
fn thousands_of_mutated_headers_are_tensors_or_errors() {
    let _context = own_context();
    let folder = Folder::new("mutated");
    let shard = folder.0.join("model-00001-of-00001.safetensors");
    let all = corpus();
    assert!(all.len() >= 12, "{} seeds", all.len());
    let (mut dice, mut refused, mut read) = (Dice(0x9E37_79B9_7F4A_7C15), 0, 0);
    for (target, name, bytes) in &all {
        let path = folder.0.join(match target.as_str() {
            "index" => "model.safetensors.index.json".to_string(),
            end => format!("a.{end}"),
        });
        if let Some((.., two)) = all.iter().find(|(_, name, _)| name == "two") {
            fs::write(&shard, two).unwrap();
        }
        for turn in 0..250 {
            let other = &all[dice.below(all.len())].2;
            let made = if turn == 0 { bytes.clone() } else { mutated(bytes, other, &mut dice) };
            fs::write(&path, &made).unwrap();
            let what = || format!("{target}/{name}, turn {turn}: {:?}", made.escape_ascii());
            let before = in_use();
            memory::reset_peak("cpu:0").unwrap();
            match look(&path) {
                Ok(()) => read += 1,
                Err(error) => {
                    refused += 1;
                    let kind = error.kind();
                    assert!(matches!(kind, ErrorKind::BadFile { .. }), "{}: {error}", what());
                }
            }
            let took = memory::info("cpu:0").unwrap().peak - before;
            assert!(took <= Bytes::mib(4), "{}: {took}", what());
            assert_eq!(in_use(), before, "{}", what());
        }
    }
    // Both happen: files that are no longer ones, and files that still are.
    assert!(refused > 1000 && read > 100, "{refused} refused, {read} read");
}
