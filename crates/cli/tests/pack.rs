//! `tonnage pack` as a user meets it: the binary, files and exit codes.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

const GOOD: &str = "id,lower,upper,size\na,0,3,4\nb,3,9,4\nc,0,9,4\nd,9,21,4\ne,0,21,4\n";

struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn pack(&self, text: impl AsRef<[u8]>, args: &[&str]) -> Output {
        fs::write(self.path("in.csv"), text).unwrap();
        self.run("in.csv", args)
    }

    fn run(&self, file: &str, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_tonnage"))
            .current_dir(self.0.path())
            .args(["pack", file])
            .args(args)
            .output()
            .unwrap()
    }
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The error of a bad input: one line, exit code 2, nothing on the other stream.
fn mistake(output: &Output) -> String {
    let error = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert_eq!(out(output), "");
    error
}

#[test]
fn prints_the_arena_and_the_bound() {
    let output = Folder::new().pack(GOOD, &[]);
    assert_eq!(output.status.code(), Some(0));
    let text = out(&output);
    assert!(
        text.contains("arena: 12 (12 B)\nlower bound: 12 (12 B)\nproved smallest: yes\n"),
        "{text}"
    );
}

#[test]
fn writes_the_table_with_offsets_and_leaves_nothing_else() {
    let folder = Folder::new();
    let text = "size,note,id,upper,lower\n64,\"x, y\",first,2,0\n32,,second,3,1\n";
    assert_eq!(folder.pack(text, &["--output", "out.csv"]).status.code(), Some(0));
    let written = fs::read_to_string(folder.path("out.csv")).unwrap();
    let mut lines = written.lines();
    assert_eq!(lines.next(), Some("size,note,id,upper,lower,offset"));
    let (first, second) = (lines.next().unwrap(), lines.next().unwrap());
    assert!(first.starts_with("64,\"x, y\",first,2,0,") && second.starts_with("32,,second,3,1,"));
    let offset = |line: &str| line.rsplit(',').next().unwrap().parse::<u64>().unwrap();
    let (a, b) = (offset(first), offset(second));
    assert!(a + 64 <= b || b + 32 <= a, "{written}");
    assert_eq!(fs::read_dir(folder.0.path()).unwrap().count(), 2);
}

#[test]
fn an_output_that_exists_is_replaced() {
    let folder = Folder::new();
    fs::write(folder.path("out.csv"), "old").unwrap();
    assert_eq!(folder.pack(GOOD, &["--output", "out.csv"]).status.code(), Some(0));
    assert!(fs::read_to_string(folder.path("out.csv")).unwrap().starts_with("id,lower"));
}

#[test]
fn a_capacity_is_met_or_refused() {
    let folder = Folder::new();
    assert_eq!(folder.pack(GOOD, &["--capacity", "12"]).status.code(), Some(0));
    assert_eq!(folder.pack(GOOD, &["--capacity", "1KiB"]).status.code(), Some(0));
    let refused = folder.pack(GOOD, &["--capacity", "11", "--output", "out.csv"]);
    assert_eq!(refused.status.code(), Some(1));
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(error, "no packing within 11 bytes: 12 are live at once\n");
    assert!(!folder.path("out.csv").exists());
}

/// A rectangle of 4096 steps and 2^20 bytes, cut into so many pieces that fill it without a gap.
fn puzzle(count: usize) -> String {
    let mut state = 7u64;
    let mut draw = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut pieces = vec![(0u64, 4096u64, 1u64 << 20)];
    while pieces.len() < count {
        let (lower, upper, size) = pieces.remove(draw(pieces.len() as u64) as usize);
        if (draw(2) == 0 || size < 16) && upper - lower > 8 {
            let cut = lower + 2 + draw(upper - lower - 4);
            pieces.extend([(lower, cut, size), (cut, upper, size)]);
        } else if size >= 16 {
            let cut = 4 + draw(size - 8);
            pieces.extend([(lower, upper, cut), (lower, upper, size - cut)]);
        } else {
            pieces.push((lower, upper, size));
        }
    }
    let rows = pieces.iter().enumerate().map(|(i, (l, u, size))| format!("{i},{l},{u},{size}\n"));
    format!("id,lower,upper,size\n{}", rows.collect::<String>())
}

#[test]
fn what_is_not_found_in_time_is_no_answer_and_says_so() {
    let folder = Folder::new();
    let args = ["--capacity", "1MiB", "--time-limit", "0", "--output", "out.csv"];
    let refused = folder.pack(puzzle(400), &args);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{error}");
    assert!(error.starts_with("no packing within 1048576 bytes found in 0."), "{error}");
    assert!(!folder.path("out.csv").exists());
    // Without a capacity there is always an answer, and its bound is what is known.
    let text = out(&folder.pack(puzzle(400), &["--time-limit", "0"]));
    assert!(text.contains("lower bound: 1048576 (1.00 MiB)\nproved smallest: no\n"), "{text}");
}

#[test]
fn steps_may_be_any_64_bit_clock() {
    let text = "id,lower,upper,size\na,0,18446744073709551615,8\nb,4294967296,4294967297,8\n";
    assert!(out(&Folder::new().pack(text, &[])).contains("arena: 16 "));
}

#[test]
fn line_ends_quotes_marks_and_spaces_do_not_matter() {
    let text = "\u{feff}\"id\", lower ,upper,size\r\n\"a \"\"b\"\"\",0, 2,8\r\n\r\n'c',1,3,8\r\n";
    assert!(out(&Folder::new().pack(text, &[])).contains("buffers: 2\narena: 16 "));
}

#[test]
fn a_table_without_buffers_takes_nothing() {
    assert!(out(&Folder::new().pack("id,lower,upper,size\n", &[])).contains("arena: 0 "));
}

#[test]
fn mistakes_name_the_file_and_the_line() {
    let head = "id,lower,upper,size\n";
    for (text, what) in [
        (String::new(), "in.csv:1: empty"),
        ("\n\n".to_string(), "in.csv:1: empty"),
        ("id,lower,upper\na,0,1\n".to_string(), "in.csv:1: no column `size`"),
        ("id,size,lower,upper,size\n".to_string(), "in.csv:1: two columns `size`"),
        ("id,lower,upper,size,offset\n".to_string(), "in.csv:1: there is a column `offset`"),
        (format!("{head}a,0,1,8\nb,0,x,8\n"), "in.csv:3: upper `x` is not a whole number"),
        (format!("{head}a,0,1,\n"), "in.csv:2: size `` is not a whole number"),
        (format!("{head}a,0,1,1.5\n"), "in.csv:2: size `1.5` is not a whole number"),
        (format!("{head}a,-1,1,8\n"), "in.csv:2: lower `-1` is negative"),
        (
            format!("{head}a,0,1,99999999999999999999\n"),
            "in.csv:2: size `99999999999999999999` is 2^64",
        ),
        (format!("{head}a,3,2,8\n"), "in.csv:2: upper 2 is below lower 3"),
        (format!("{head}a,0,1\n"), "in.csv:2: 3 fields where the header has 4"),
        (format!("{head}a,0,1,8,9\n"), "in.csv:2: 5 fields where the header has 4"),
        (format!("{head}a,0,1,8\n\na,0,1,8\n"), "in.csv:4: id `a` was used on line 2"),
        (format!("{head}\"a,0,1,8\n"), "in.csv: line 2, column 1: a quote is never closed"),
        (format!("{head}\"a\"b,0,1,8\n"), "in.csv: line 2, column 1: text follows a closing quote"),
        (
            format!("{head}a,0,1,{0}\nb,0,1,{0}\n", u64::MAX),
            "in.csv: pack: the sizes add up to 2^63",
        ),
    ] {
        let error = mistake(&Folder::new().pack(&text, &[]));
        assert!(error.contains(what), "{text:?} gave {error}");
    }
    let error = mistake(&Folder::new().pack(b"id,lower,upper,size\n\xff,0,1,8\n", &[]));
    assert!(error.contains("in.csv: line 2 is no UTF-8 text"), "{error}");
}

#[test]
fn files_that_cannot_be_read_or_written_are_named() {
    let folder = Folder::new();
    assert!(mistake(&folder.run("missing.csv", &[])).contains("missing.csv"));
    assert!(mistake(&folder.run(".", &[])).contains("error: .:"));
    let error = mistake(&folder.pack(GOOD, &["--output", "no/such/out.csv"]));
    assert!(error.contains("no/such/out.csv"), "{error}");
}

#[test]
fn bad_arguments_are_refused() {
    for args in [["--time-limit", "-1"], ["--time-limit", "soon"], ["--capacity", "lots"]] {
        assert_eq!(Folder::new().pack(GOOD, &args).status.code(), Some(2), "{args:?}");
    }
}
