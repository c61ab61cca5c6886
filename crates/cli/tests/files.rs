//! `tonnage inspect`, `tonnage stats`, `tonnage convert`: files of tensors without loading them.

mod common;

use std::fs;
use std::path::PathBuf;

use common::{said, tonnage};
use tonnage::io::{Npz, SafeTensors, read_npy, save_npz, save_safetensors};
use tonnage::{DType, Elementwise, range, tensor};

struct Folder(PathBuf);

impl Folder {
    #[allow(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tonnage-cli-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        let x = tensor([[1.0f32, f32::NAN], [-2.5, f32::INFINITY]]).unwrap();
        let n = range(0i64, 1 << 40, 1 << 38).unwrap();
        let half = range(0i64, 6, 1).unwrap().cast(DType::F16).unwrap();
        let named = [("x", &x), ("numbers", &n), ("half.weight", &half)];
        save_safetensors(path.join("a.safetensors"), named, &[]).unwrap();
        save_npz(path.join("one.npz"), [("x", &n)]).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn tensors_are_listed_with_types_and_bytes() {
    let folder = Folder::new("inspect");
    let text = said(&tonnage(&folder.0, &["inspect", "a.safetensors"]));
    let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..2], ["half.weight", "f16[6]"], "{text}");
    assert_eq!(lines[1][..2], ["numbers", "i64[4]"], "{text}");
    assert_eq!(lines[2][..3], ["x", "f32[2,", "2]"], "{text}");
    assert!(text.ends_with("safetensors: 3 tensors, 60 B\n"), "{text}");
    let missing = tonnage(&folder.0, &["inspect", "none.npy"]);
    assert_eq!(missing.status.code(), Some(2));
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(said.contains("none.npy") && said.contains("look at the path"), "{said}");
}

#[test]
fn least_largest_mean_and_what_is_no_number_are_told() {
    let folder = Folder::new("stats");
    let text = said(&tonnage(&folder.0, &["stats", "a.safetensors"]));
    let line = |name: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.starts_with(name));
        line.unwrap_or_default().split_whitespace().skip(1).map(String::from).collect()
    };
    assert_eq!(line("x"), ["-2.5", "inf", "inf", "1", "1"], "{text}");
    assert_eq!(line("numbers"), ["0", "824633720832", "4.12317e11", "0", "0"], "{text}");
    assert_eq!(line("half.weight"), ["0", "5", "2.5", "0", "0"], "{text}");
    let one = said(&tonnage(&folder.0, &["stats", "a.safetensors", "--tensor", "x"]));
    assert_eq!(one.lines().count(), 2, "{one}");
}

#[test]
fn files_become_files_of_other_formats() {
    let folder = Folder::new("convert");
    let run = |args: &[&str]| tonnage(&folder.0, &[&["convert"], args].concat());
    said(&run(&["a.safetensors", "b.npz", "--deflate"]));
    said(&run(&["b.npz", "c.safetensors"]));
    said(&run(&["c.safetensors", "n.npy", "--tensor", "numbers"]));
    said(&run(&["n.npy", "n.csv"]));
    let back = SafeTensors::open(folder.0.join("c.safetensors")).unwrap();
    let first = SafeTensors::open(folder.0.join("a.safetensors")).unwrap();
    assert!(back.names().eq(first.names()));
    let bits = |file: &SafeTensors| -> Vec<u32> {
        let x = file.read("x").unwrap().to_vec::<f32>().unwrap();
        x.into_iter().map(f32::to_bits).collect()
    };
    assert_eq!(bits(&back), bits(&first));
    let n = read_npy(folder.0.join("n.npy")).unwrap().to_vec::<i64>().unwrap();
    assert_eq!(n, [0, 1 << 38, 2 << 38, 3 << 38]);
    assert_eq!(Npz::open(folder.0.join("b.npz")).unwrap().names().count(), 3);
    for (args, word) in [
        (&["a.safetensors", "d.npy"][..], "one tensor"),
        (&["a.safetensors", "d.h5"], "h5"),
        (&["a.safetensors", "d.npy", "--tensor", "y"], "`y`"),
        (&["n.npy", "d.idx"], "i64"),
    ] {
        let refused = run(args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains(word), "{args:?}: {said}");
    }
    assert!(!folder.0.join("d.npy").exists());
}

#[test]
fn names_are_printed_and_formats_told_as_they_are() {
    let folder = Folder::new("names");
    let x = tensor([1.0f32]).unwrap();
    save_safetensors(folder.0.join("odd.safetensors"), [("a\u{1b}[31m\nb ü", &x)], &[]).unwrap();
    for command in ["inspect", "stats"] {
        let text = said(&tonnage(&folder.0, &[command, "odd.safetensors"]));
        assert!(text.contains("a\\u{1b}[31m\\nb ü") && !text.contains('\u{1b}'), "{text}");
    }
    let high_first = concat!(env!("CARGO_MANIFEST_DIR"), "/../tonnage/tests/files/big_endian.npy");
    assert!(said(&tonnage(&folder.0, &["inspect", high_first])).contains("\nnpy: 1 tensor"));
}
