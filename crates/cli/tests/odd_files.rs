//! Every command that opens a file, on what is no file, and on files of any rank and with names of any length: an answer or a clear error, and
//! never a panic or a wait without an end.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output};

use common::tonnage;

fn run(folder: &Path, line: &str) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = tonnage(folder, &line.split(' ').collect::<Vec<_>>());
    (status.code(), String::from_utf8(stderr).unwrap())
}

/// A pipe that nobody writes to would hold up whoever opens it.
#[test]
fn what_is_no_file_is_refused_and_named_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let ends = ["npz", "safetensors", "csv", "json", "txt", "x"];
    let mut odd = Vec::new();
    for end in ends {
        let (pipe, socket, device) =
            (format!("pipe.{end}"), format!("socket.{end}"), format!("device.{end}"));
        assert!(Command::new("mkfifo").arg(path.join(&pipe)).status().unwrap().success());
        drop(UnixListener::bind(path.join(&socket)).unwrap());
        std::os::unix::fs::symlink("/dev/zero", path.join(&device)).unwrap();
        odd.extend([(pipe, "is a pipe"), (socket, "is a socket"), (device, "is a device")]);
    }
    let check = |line: String, name: &str, what: &str| {
        let (code, text) = run(path, &line);
        assert_eq!(code, Some(2), "{line}: {text}");
        assert!(text.contains(name) && text.contains(what), "{line}: {text}");
    };
    for (name, what) in &odd {
        for command in ["inspect", "stats", "pack"] {
            check(format!("{command} {name}"), name, what);
        }
        check(format!("convert {name} out.npy"), name, what);
        let model = match name.rsplit('.').next().unwrap() {
            "txt" | "x" => "gpt",
            "csv" => "recommender",
            "npz" => "mlp",
            _ => continue,
        };
        for command in ["train", "plan", "explain"] {
            check(format!("{command} {model} --data {name}"), name, what);
        }
    }
    fs::create_dir(path.join("folder")).unwrap();
    check("pack folder".into(), "folder", "is a folder");
    check("plan recommender --data folder".into(), "folder", "is a folder");
    for command in ["inspect folder", "stats folder", "convert folder out.npy"] {
        check(command.into(), "folder/model.safetensors.index.json", "cannot be opened");
    }
    // In the places of a checkpoint's files, and of the two files of pictures.
    for (what, from) in
        [("is a pipe", "pipe.x"), ("is a socket", "socket.x"), ("is a device", "device.x")]
    {
        let saved = path.join("saved");
        fs::create_dir(&saved).unwrap();
        fs::rename(path.join(from), saved.join("model.json")).unwrap();
        for line in
            ["eval --checkpoint saved", "sample --checkpoint saved", "train mlp --checkpoint saved"]
        {
            check(line.into(), "model.json", what);
        }
        fs::rename(saved.join("model.json"), saved.join("images.idx")).unwrap();
        fs::write(saved.join("labels.idx"), "").unwrap();
        check("train mlp --data saved".into(), "images.idx", what);
        fs::remove_dir_all(&saved).unwrap();
    }
}

#[test]
fn writing_to_a_pipe_that_nobody_reads_is_an_error_and_to_others_goes_through() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("table.csv"), "id,lower,upper,size\na,0,1,2\n").unwrap();
    fs::write(path.join("x.npy"), npy(1)).unwrap();
    for end in ["npy", "safetensors", "csv", "html", "json"] {
        let pipe = path.join(format!("pipe.{end}"));
        assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
    }
    for line in [
        "convert x.npy pipe.npy",
        "convert x.npy pipe.safetensors",
        "pack table.csv --output pipe.csv",
        "explain mlp --save pipe.html",
        "train mlp --steps 1 --report pipe.json",
        "train mlp --steps 1 --log pipe.csv",
    ] {
        let (code, text) = run(path, line);
        assert_eq!(code, Some(2), "{line}: {text}");
        assert!(text.contains("pipe.") && !text.contains("panicked"), "{line}: {text}");
    }
    let script =
        format!("{} pack table.csv --output /dev/stdout | cat", env!("CARGO_BIN_EXE_tonnage"));
    let output = Command::new("sh").args(["-c", &script]).current_dir(path).output();
    assert!(common::said(&output.unwrap()).contains("a,0,1,2,0"));
}

/// A pipe that the command is started with has somebody who writes to it.
#[test]
fn a_table_comes_through_a_pipe_that_the_command_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let table = "printf 'id,lower,upper,size\\na,0,2,10\\nb,1,3,5\\n'";
    let script = format!("{table} | {} pack /dev/stdin", env!("CARGO_BIN_EXE_tonnage"));
    let output = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output();
    let text = common::said(&output.unwrap());
    assert!(text.contains("arena: 15 "), "{text}");
}

fn npy(rank: usize) -> Vec<u8> {
    let text =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}\n", "1,".repeat(rank));
    let mut file = b"\x93NUMPY\x02\x00".to_vec();
    file.extend((text.len() as u32).to_le_bytes());
    file.extend(text.bytes().chain(2.5f32.to_le_bytes()));
    file
}

fn safetensors(name: &str, rank: usize) -> Vec<u8> {
    let shape = vec!["1"; rank].join(",");
    let text =
        format!("{{\"{name}\":{{\"dtype\":\"F32\",\"shape\":[{shape}],\"data_offsets\":[0,4]}}}}");
    let mut file = (text.len() as u64).to_le_bytes().to_vec();
    file.extend(text.bytes().chain(2.5f32.to_le_bytes()));
    file
}

fn idx(rank: usize) -> Vec<u8> {
    let mut file = vec![0, 0, 0x0d, rank as u8];
    file.extend([0, 0, 0, 1].repeat(rank));
    file.extend(2.5f32.to_be_bytes());
    file
}

#[test]
fn tensors_of_any_rank_and_names_of_any_length_are_listed_read_and_converted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut files = Vec::new();
    for rank in [0, 2, 33, 255, 256, 100_000] {
        fs::write(path.join(format!("r{rank}.npy")), npy(rank)).unwrap();
        fs::write(path.join(format!("r{rank}.safetensors")), safetensors("x", rank)).unwrap();
        files.extend([(format!("r{rank}.npy"), rank), (format!("r{rank}.safetensors"), rank)]);
        if rank < 256 {
            fs::write(path.join(format!("r{rank}.idx")), idx(rank)).unwrap();
            files.push((format!("r{rank}.idx"), rank));
        }
    }
    for length in [65_535, 65_536] {
        let name = format!("n{length}.safetensors");
        fs::write(path.join(&name), safetensors(&"n".repeat(length), 2)).unwrap();
        files.push((name, 2));
    }
    // Archives of them, as they are and deflated.
    for rank in [33, 100_000] {
        for (name, deflate) in [("plain", ""), ("packed", " --deflate")] {
            let line = format!("convert r{rank}.npy {name}{rank}.npz{deflate}");
            assert_eq!(run(path, &line), (Some(0), String::new()), "{line}");
            files.push((format!("{name}{rank}.npz"), rank));
        }
    }
    for (file, rank) in &files {
        for command in ["inspect", "stats"] {
            let line = format!("{command} {file}");
            let text = common::said(&tonnage(path, &[command, file]));
            let shape = format!("f32[{}]", vec!["1"; *rank].join(", "));
            assert!(text.contains(if command == "stats" { "2.5" } else { &shape }), "{line}");
        }
        for to in ["npy", "safetensors", "idx", "csv"] {
            let line = format!("convert {file} out.{to}");
            // What a format cannot hold is an error.
            let most = match to {
                "idx" => 255,
                "csv" => 2,
                _ => usize::MAX,
            };
            let (code, text) = run(path, &line);
            let holds = *rank <= most && (to != "csv" || *rank > 0);
            assert_eq!(code, Some(if holds { 0 } else { 2 }), "{line}: {}", text.len());
            assert!(!text.contains("panicked"), "{line}");
        }
    }
}
