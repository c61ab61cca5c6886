//! Folders of checkpoints and what happens to them: processes that are killed, processes that share a folder, bytes that change. What is
//! restored is what was saved, or an error names the file; nothing stays behind; one process writes at a time; training that is over stays as it is.
//!
//! Other processes are this test, started once more with a role to play.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tonnage::data::Dataset;
use tonnage::io::{SafeTensors, TensorFile, save_npy_rows, save_safetensors};
use tonnage::nn::Dense;
use tonnage::optim::Optimizer;
use tonnage::train::{Checkpoints, Fit, Go, Loading, Position, load};
use tonnage::{Result, Tensor, Variable, tensor};

use crate::common::{folder, own_context, test_name};

const ROLE: &str = "TONNAGE_TEST_ROLE";
const FOLDER: &str = "TONNAGE_TEST_FOLDER";
const VALUES: [f32; 5] = [1.0, -2.0, 0.0, 3.5, 1e-3];

fn names(folder: &Path) -> Vec<String> {
    let all = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        all.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Variables of several types, of none and of many elements.
fn variables(scale: f32) -> Vec<(String, Variable)> {
    let values: Vec<f32> = VALUES.iter().map(|x| x * scale).collect();
    let of = |name: &str, value: Tensor| (name.to_string(), Variable::new(name, value).unwrap());
    vec![
        of("w", tensor(values).unwrap()),
        of("bytes", tensor([(scale * 7.0) as u8, 2, 3]).unwrap()),
        of("none", tonnage::zeros([0, 3]).unwrap()),
    ]
}

fn values(variables: &[(String, Variable)]) -> (Vec<f32>, Vec<u8>) {
    let read = |i: usize| variables[i].1.read().unwrap();
    (read(0).to_vec().unwrap(), read(1).to_vec().unwrap())
}

fn at(step: u64) -> Position {
    Position { step, epoch: 0, batch: step }
}

/// What a child does in a folder.
#[test]
fn role() {
    let Some(role) = std::env::var_os(ROLE) else { return };
    let _context = own_context();
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let checkpoints = Checkpoints::new(&folder).keep(2);
    if role == "hold" {
        checkpoints.save(&variables(1.0), at(1)).unwrap();
        ready();
    } else {
        // In the middle of a file that is not whole yet.
        save_npy_rows(folder.join("rows.npy"), |file| {
            file.put(&tensor([[1.0f32]])?)?;
            ready();
            Ok(())
        })
        .unwrap();
    }
}

/// Tells whoever started this, and waits for its end.
fn ready() {
    println!("\nready");
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn child(folder: &Path, role: &str) -> Child {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &test_name(module_path!(), "role"), "--nocapture"])
        .env(ROLE, role)
        .env(FOLDER, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let says = BufReader::new(process.stdout.as_mut().unwrap());
    assert!(says.lines().any(|line| line.unwrap() == "ready"));
    process
}

fn kill(mut process: Child) {
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn one_process_at_a_time_writes_to_a_folder_and_the_next_is_told_who_does() {
    let _context = own_context();
    let folder = folder("held");
    let holder = child(&folder, "hold");
    let own = variables(2.0);
    let checkpoints = Checkpoints::new(&folder).keep(2);
    let before = names(&folder);
    for refused in [checkpoints.save(&own, at(2)), checkpoints.lock()] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(&format!("process {}", holder.id())), "{error}");
    }
    assert_eq!(names(&folder), before, "nothing was written");
    // Whoever only reads is not held up.
    assert_eq!(checkpoints.restore(&own).unwrap(), Some(at(1)));
    assert_eq!(values(&own), values(&variables(1.0)));
    kill(holder);
    checkpoints.save(&own, at(2)).unwrap();
    // In one process they share it.
    Checkpoints::new(&folder).save(&own, at(3)).unwrap();
    drop(checkpoints);
    let steps = [1, 2, 3].map(|step| format!("step-00000000{step}.safetensors"));
    assert_eq!(names(&folder), [&["checkpoint.json".to_string()], &steps[..]].concat());
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_killed_processes_leave_is_removed_by_the_next_and_nothing_else_is() {
    let _context = own_context();
    let folder = folder("left");
    kill(child(&folder, "write"));
    let left = names(&folder);
    assert!(left.len() == 1 && left[0].ends_with(".part"), "{left:?}");
    let writer = child(&folder, "write");
    let living = names(&folder).into_iter().find(|name| !left.contains(name)).unwrap();
    // A checkpoint that was saved before the record of it, and one that the record no longer named.
    let others =
        ["step-9.safetensors", "step-00000000x.safetensors", "model.safetensors", "a.part"];
    for name in ["step-000000003.safetensors", "step-000000900.safetensors"].iter().chain(&others) {
        fs::write(folder.join(name), "left").unwrap();
    }
    let checkpoints = Checkpoints::new(&folder).keep(2).keep_best();
    for step in 4..8 {
        checkpoints
            .save_scored(&variables(1.0), at(step), Some((step as f64 - 4.5).abs()))
            .unwrap();
    }
    drop(checkpoints);
    let kept = [4, 6, 7].map(|step| format!("step-00000000{step}.safetensors"));
    let mut want: Vec<String> = others.iter().map(|name| name.to_string()).chain(kept).collect();
    want.extend(["checkpoint.json".to_string(), living]);
    want.sort();
    assert_eq!(names(&folder), want);
    kill(writer);
    fs::remove_dir_all(&folder).unwrap();
}

/// Calls `look` with a bit of every byte of a file changed, one at a time; the file is then as it was.
fn with_every_byte_changed(path: &Path, look: impl Fn(usize, &str)) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    for (offset, byte) in fs::read(path).unwrap().into_iter().enumerate() {
        let bit = offset % 8;
        file.write_all_at(&[byte ^ 1 << bit], offset as u64).unwrap();
        look(offset, &format!("byte {offset}, bit {bit} of {}", path.display()));
        file.write_all_at(&[byte], offset as u64).unwrap();
    }
}

/// The places of a text in a file: where its key changes a checksum is not found, and all else is as it was.
fn offsets(path: &Path, text: &str) -> std::ops::Range<usize> {
    let bytes = fs::read(path).unwrap();
    let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
    at..at + text.len()
}

#[test]
fn a_bit_that_changes_anywhere_in_a_checkpoint_is_an_error_and_changes_nothing() {
    let _context = own_context();
    let folder = folder("bits");
    let (saved, own) = (variables(1.0), variables(2.0));
    let checkpoints = Checkpoints::new(&folder).keep_best();
    checkpoints.save_scored(&saved, at(9), Some(0.5)).unwrap();
    checkpoints.save(&saved, at(10)).unwrap();
    for (file, key) in
        [("step-000000010.safetensors", "tonnage.checksums"), ("checkpoint.json", "checksum")]
    {
        let path = folder.join(file);
        let key = offsets(&path, key);
        with_every_byte_changed(&path, |offset, what| {
            let blank = variables(2.0);
            match checkpoints.restore(&own) {
                Err(error) => {
                    assert!(error.to_string().contains(file), "{what}: {error}");
                    assert_eq!(values(&own), values(&blank), "{what}");
                }
                Ok(position) => {
                    assert!(key.contains(&offset), "{what} loads as if nothing had happened");
                    assert_eq!(position, Some(at(10)), "{what}");
                    assert_eq!(values(&own), values(&saved), "{what}");
                    for (own, blank) in own.iter().zip(&blank) {
                        own.1.assign(&blank.1.read().unwrap()).unwrap();
                    }
                }
            }
        });
    }
    assert_eq!(checkpoints.restore(&own).unwrap(), Some(at(10)));
    assert_eq!(values(&own), values(&saved));
    fs::remove_dir_all(&folder).unwrap();
}

/// Every way in which a tensor comes out of a file as a whole; a file that another program wrote has no checksum, and is read.
#[test]
fn a_bit_that_changes_in_a_tensor_shows_wherever_it_is_read_whole() {
    let _context = own_context();
    let folder = folder("read");
    let path = folder.join("w.safetensors");
    let wrote = tensor(VALUES).unwrap();
    save_safetensors(&path, [("w", &wrote)], &[("by", "a test")]).unwrap();
    let own = [("w".to_string(), Variable::new("w", tonnage::zeros([5]).unwrap()).unwrap())];
    type Way<'a> = (&'a str, Box<dyn Fn() -> Result<()> + 'a>);
    let ways: [Way<'_>; 5] = [
        ("read", Box::new(|| SafeTensors::open(&path)?.read("w").map(drop))),
        ("check", Box::new(|| SafeTensors::open(&path)?.check())),
        ("read of any format", Box::new(|| TensorFile::open(&path)?.read("w").map(drop))),
        ("load", Box::new(|| load(&SafeTensors::open(&path)?, &own, Loading::Strict).map(drop))),
        (
            "convert",
            Box::new(|| {
                TensorFile::open(&path)?.save_as(folder.join("w.npy"), None, false, |_| {})
            }),
        ),
    ];
    ways.iter().for_each(|(_, way)| way().unwrap());
    let length = fs::metadata(&path).unwrap().len() as usize;
    with_every_byte_changed(&path, |offset, what| {
        if offset >= length - 4 * VALUES.len() {
            for (name, way) in &ways {
                let error = way().expect_err(what).to_string();
                assert!(error.contains("`w` is not as it was saved"), "{name}, {what}: {error}");
            }
        }
    });
    // Notes may come from a file that was read: its checksums are not those of this one.
    let file = SafeTensors::open(&path).unwrap();
    let notes = [("tonnage.checksums", file.note("tonnage.checksums").unwrap())];
    let other = tensor([0.0f32]).unwrap();
    save_safetensors(&path, [("w", &other)], &notes).unwrap();
    assert_eq!(
        SafeTensors::open(&path).unwrap().read("w").unwrap().to_vec::<f32>().unwrap(),
        [0.0]
    );
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn checkpoints_of_earlier_versions_have_no_checksum_and_are_restored() {
    let _context = own_context();
    let folder = folder("old");
    let header = r#"{"__metadata__":{"format":"tonnage checkpoint"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
    let header = format!("{header:0$}", header.len().next_multiple_of(8));
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes().chain([1.0f32, 2.0].into_iter().flat_map(f32::to_le_bytes)));
    fs::write(folder.join("step-000000007.safetensors"), bytes).unwrap();
    let record = r#"{"version": 1, "position": {"step": 7, "epoch": 1, "batch": 2}, "random": [3, 4],
        "file": "step-000000007.safetensors", "earlier": []}"#;
    fs::write(folder.join("checkpoint.json"), record).unwrap();
    let own = [("w".to_string(), Variable::new("w", tonnage::zeros([2]).unwrap()).unwrap())];
    let position = Checkpoints::new(&folder).restore(&own).unwrap().unwrap();
    assert_eq!(position, Position { step: 7, epoch: 1, batch: 2 });
    assert_eq!(own[0].1.read().unwrap().to_vec::<f32>().unwrap(), [1.0, 2.0]);
    fs::remove_dir_all(&folder).unwrap();
}

/// The best checkpoint and its score stay through any number of runs that find nothing to do, whenever checkpoints are saved and
/// whatever ended the training.
#[test]
fn resuming_training_that_is_over_changes_nothing() {
    let _context = own_context();
    let folder = folder("over");
    let x = tonnage::ones([32, 2]).unwrap();
    let data = Dataset::of((x.clone(), x)).unwrap();
    let loss = |said: &Tensor, truth: &Tensor| said.squared_difference(truth)?.mean(-1);
    let mut number = 0;
    for every in [0, 3] {
        for held_out in [false, true] {
            for most in [None, Some(3), Some(4)] {
                for best in [false, true] {
                    number += 1;
                    let folder = folder.join(number.to_string());
                    let run = |resume: bool| {
                        let checkpoints = Checkpoints::new(&folder).keep(2);
                        let checkpoints = if best { checkpoints.keep_best() } else { checkpoints };
                        let mut fit = Fit::new(2, 8).checkpoints(checkpoints, every);
                        fit = if held_out { fit.held_out(&data) } else { fit };
                        fit = if resume { fit.resume() } else { fit };
                        fit = most.map_or(fit.clone(), |steps| fit.at_most(steps));
                        let (model, optimizer) = (Dense::new(2), Optimizer::sgd(0.1));
                        fit.run(&model, &optimizer, &data, loss, |_| Go::On).unwrap()
                    };
                    let steps = most.unwrap_or(8);
                    assert_eq!(run(false).steps, steps);
                    let contents = || -> Vec<(String, Vec<u8>)> {
                        let read = |name: String| {
                            let bytes = fs::read(folder.join(&name)).unwrap();
                            (name, bytes)
                        };
                        names(&folder).into_iter().map(read).collect()
                    };
                    let before = contents();
                    for _ in 0..2 {
                        let history = run(true);
                        assert_eq!((history.steps, history.position.step), (0, steps));
                    }
                    assert!(contents() == before, "every {every}, {held_out}, {most:?}, {best}");
                }
            }
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}
