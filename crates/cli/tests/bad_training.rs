//! `tonnage train` and what goes wrong: options, files, checkpoints, disks. A clear error, and nothing lost.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;

use std::fs;
use std::path::Path;

use common::{said, tonnage};

/// What it says where it refuses.
fn refused(folder: &Path, line: &str) -> String {
    let output = tonnage(folder, &line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(2), "{line}: {output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!text.contains("panicked") && !text.contains("report this"), "{line}: {text}");
    text
}

fn ran(folder: &Path, line: &str) -> String {
    said(&tonnage(folder, &line.split_whitespace().collect::<Vec<_>>()))
}

#[test]
fn an_option_that_a_model_has_no_use_for_is_refused_with_those_that_have() {
    let folder = tempfile::tempdir().unwrap();
    for (line, models) in [
        ("mlp --width 8", "gpt, gru, recommender"),
        ("cnn --layers 2", "gpt"),
        ("gru --layers 2", "gpt"),
        ("recommender --length 8", "gpt, gru"),
        ("mlp --length 64", "gpt, gru"),
        ("recommender --precision f32", "mlp, cnn, gpt, gru"),
        ("gru --preset gpt2-124m", "gpt"),
    ] {
        for command in ["train", "plan", "explain"] {
            let text = refused(folder.path(), &format!("{command} {line}"));
            let option = line.split(' ').nth(1).unwrap();
            assert!(text.contains(&format!("`{option}` is for {models}:")), "{text}");
        }
    }
    for option in ["width", "layers", "length", "batch", "accumulate", "patience"] {
        let text = refused(folder.path(), &format!("train gpt --{option} 0"));
        assert!(text.contains("give at least 1"), "{text}");
    }
    for (more, wanted) in
        [("--length 2000", "1024 positions"), ("--width 64", "--width"), ("--layers 2", "--layers")]
    {
        let text = refused(folder.path(), &format!("plan gpt --preset gpt2-124m {more}"));
        assert!(text.contains(wanted), "{text}");
    }
    let text = refused(folder.path(), "train mlp --resume");
    assert!(text.contains("--checkpoint"), "{text}");
}

#[test]
fn files_that_are_missing_empty_cut_short_or_of_another_kind_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("empty.txt"), "").unwrap();
    fs::write(path.join("latin.txt"), [b'a', 0xe4, b'b'].repeat(2000)).unwrap();
    fs::write(path.join("header.csv"), "person,thing,rating\n").unwrap();
    fs::write(path.join("empty.csv"), "").unwrap();
    fs::write(path.join("ragged.csv"), "1,2,3\n1,2\n").unwrap();
    fs::write(path.join("some.npz"), "PK\u{3}\u{4} and nothing else").unwrap();
    fs::write(path.join("empty.npz"), "").unwrap();
    for (name, images, labels) in [
        ("none", &b""[..], &b""[..]),
        ("words", &b"hello"[..], &b"world"[..]),
        // A header that says a gigabyte.
        ("lies", &[0, 0, 8, 3, 64, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 4, 1][..], &b""[..]),
    ] {
        fs::create_dir(path.join(name)).unwrap();
        fs::write(path.join(name).join("images.idx"), images).unwrap();
        fs::write(path.join(name).join("labels.idx"), labels).unwrap();
    }
    for (line, file) in [
        ("gpt --data nowhere.txt", "nowhere.txt"),
        ("gpt --data empty.txt", "empty.txt"),
        ("gpt --data latin.txt", "latin.txt"),
        ("gru --data none", "none"),
        ("recommender --data nowhere.csv", "nowhere.csv"),
        ("recommender --data empty.csv", "empty.csv"),
        ("recommender --data header.csv", "header.csv"),
        ("recommender --data ragged.csv", "ragged.csv"),
        ("recommender --data empty.txt", "empty.txt"),
        ("mlp --data nowhere", "nowhere"),
        ("mlp --data nowhere.npz", "nowhere.npz"),
        ("mlp --data some.npz", "some.npz"),
        ("mlp --data empty.npz", "empty.npz"),
        ("mlp --data empty.csv", "empty.csv"),
        ("cnn --data none", "images.idx"),
        ("cnn --data words", "images.idx"),
        ("cnn --data lies", "images.idx"),
    ] {
        let text = refused(path, &format!("train {line}"));
        assert!(text.contains(file), "{line}: {text}");
    }
}

#[test]
fn labels_that_are_no_classes_are_refused() {
    use tonnage::io::save_npz;
    use tonnage::{DType, Elementwise, Tensor, tensor, zeros};
    let folder = tempfile::tempdir().unwrap();
    let images = zeros([30, 4, 4]).unwrap();
    let labels = |label: f64| -> Tensor {
        let mut all = vec![1.0; 30];
        all[7] = label;
        tensor(all).unwrap()
    };
    for (label, word) in [
        (-1.0, "labels from -1 to 1"),
        (1e9, "to 1000000000"),
        (0.5, "no whole numbers"),
        (f64::NAN, "no whole numbers"),
    ] {
        let y = labels(label);
        save_npz(folder.path().join("x.npz"), [("x", &images), ("y", &y)]).unwrap();
        let text = refused(folder.path(), "train mlp --data x.npz --batch 3");
        assert!(text.contains(word), "{label}: {text}");
    }
    // A model that knows two classes, and data that have seven.
    let y = labels(0.0).cast(DType::U8).unwrap();
    save_npz(folder.path().join("x.npz"), [("x", &images), ("y", &y)]).unwrap();
    ran(folder.path(), "train mlp --data x.npz --batch 3 --epochs 1 --checkpoint saved");
    let y = labels(6.0).cast(DType::U8).unwrap();
    save_npz(folder.path().join("more.npz"), [("x", &images), ("y", &y)]).unwrap();
    let text = refused(folder.path(), "eval --checkpoint saved --data more.npz");
    assert!(text.contains("[7]") && text.contains("[2]"), "{text}");
}

#[test]
fn checkpoints_of_another_model_and_damaged_ones_are_left_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let train = "train gru --width 8 --length 16 --batch 8 --steps 5 --checkpoint saved";
    ran(path, train);
    let before = ran(path, "eval --checkpoint saved");
    for line in [
        "train mlp --steps 5 --checkpoint saved",
        "train gru --width 9 --length 16 --steps 5 --checkpoint saved --resume",
        "train gru --width 8 --length 16 --precision bf16 --steps 5 --checkpoint saved",
    ] {
        let text = refused(path, line);
        assert!(text.contains("saved: checkpoints of another model"), "{text}");
        assert_eq!(ran(path, "eval --checkpoint saved"), before);
    }
    // Another optimizer has another state.
    let other = refused(path, &format!("{train} --optimizer sgd --resume"));
    assert!(other.contains("unknown") && other.contains("optimizer."), "{other}");
    let file = path.join("saved/step-000000005.safetensors");
    let good = fs::read(&file).unwrap();
    for cut in [0, 7, good.len() / 2, good.len() - 1] {
        fs::write(&file, &good[..cut]).unwrap();
        for line in [format!("{train} --resume"), "eval --checkpoint saved".into()] {
            assert!(refused(path, &line).contains("step-000000005.safetensors"));
        }
    }
    fs::write(&file, &good).unwrap();
    assert_eq!(ran(path, "eval --checkpoint saved"), before);
    for (name, text) in [("checkpoint.json", "{\"version\":1"), ("model.json", "[]")] {
        let whole = fs::read(path.join("saved").join(name)).unwrap();
        fs::write(path.join("saved").join(name), text).unwrap();
        assert!(refused(path, "eval --checkpoint saved").contains(name));
        assert!(refused(path, &format!("{train} --resume")).contains(name));
        fs::write(path.join("saved").join(name), whole).unwrap();
    }
    assert_eq!(ran(path, "eval --checkpoint saved"), before);
}

#[test]
fn a_loss_that_is_no_number_leaves_the_last_good_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let train = "train mlp --optimizer sgd --checkpoint saved";
    ran(path, &format!("{train} --epochs 1 --rate 0.01"));
    let before = ran(path, "eval --checkpoint saved");
    let text = refused(path, &format!("{train} --epochs 3 --rate 1e38 --resume"));
    assert!(text.contains("the loss of step") && text.contains("is not finite"), "{text}");
    assert_eq!(ran(path, "eval --checkpoint saved"), before);
}

/// Before anything is learned or searched for, not after.
#[test]
fn a_file_that_cannot_be_written_is_told_before_the_work_starts() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("there")).unwrap();
    fs::create_dir(folder.path().join("page.html")).unwrap();
    fs::write(folder.path().join("table.csv"), "id,lower,upper,size\na,0,1,2\n").unwrap();
    for (line, word) in [
        ("train mlp --steps 2 --report there", "there: cannot be opened"),
        ("train mlp --steps 2 --report no/where", "no/where: cannot"),
        ("train mlp --steps 2 --report table.csv/report", "table.csv/report: cannot"),
        ("train mlp --steps 2 --report page.json", "page.html: cannot be opened"),
        ("train mlp --steps 2 --log no/where", "no/where: cannot"),
        ("train mlp --steps 2 --checkpoint table.csv", "table.csv: cannot"),
        ("explain mlp --save plan.csv --save no/where.html", "no/where.html: cannot"),
        ("pack table.csv --output no/where", "no/where: cannot"),
    ] {
        let output = tonnage(folder.path(), &line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8(output.stderr).unwrap().contains(word), "{line}");
        assert!(output.stdout.is_empty(), "{line}");
    }
    assert!(!folder.path().join("plan.csv").exists());
}

/// What was learned is said all the same.
#[cfg(target_os = "linux")]
#[test]
fn a_report_that_the_disk_has_no_room_for_is_told_after_what_was_learned() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("full")).unwrap();
    let output = tonnage(folder.path(), &["train", "mlp", "--steps", "2", "--report", "full"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("full: cannot be written"));
    assert!(String::from_utf8(output.stdout).unwrap().contains("accuracy"));
}

/// Through a link, so that a mistake harms nothing else.
#[cfg(target_os = "linux")]
#[test]
fn devices_and_links_are_written_to_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("full");
    std::os::unix::fs::symlink("/dev/full", &link).unwrap();
    let text = refused(folder.path(), "train mlp --steps 2 --report full");
    assert!(text.contains("full: cannot be written"), "{text}");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    // So do links to files, whose files are written.
    let (file, link) = (folder.path().join("report.json"), folder.path().join("link.json"));
    fs::write(&file, "").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    ran(folder.path(), "train mlp --steps 2 --report link.json");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&file).unwrap().contains("accuracy"));
}

/// A limit on the length of files is as a disk that fills up: writing fails in the middle.
#[cfg(unix)]
#[test]
fn a_disk_that_fills_up_leaves_the_last_good_checkpoint() {
    use std::process::Command;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let train = "train mlp --epochs 2 --checkpoint saved";
    ran(path, &format!("{train} --steps 20"));
    let before = ran(path, "eval --checkpoint saved");
    let files = || {
        let all = fs::read_dir(path.join("saved")).unwrap();
        let mut names: Vec<_> = all.map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let there = files();
    // 8 blocks of 512 bytes: the page and the tensors have more.
    let script = format!(
        "trap '' XFSZ; ulimit -f 8; exec {} {train} --resume",
        env!("CARGO_BIN_EXE_tonnage")
    );
    let output = Command::new("sh").args(["-c", &script]).current_dir(path).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains(".safetensors: cannot be written"), "{text}");
    assert!(text.contains("make room on the disk"), "{text}");
    assert_eq!(files(), there, "nothing half-written stays");
    assert_eq!(ran(path, "eval --checkpoint saved"), before);
    // With room it goes on.
    assert!(ran(path, &format!("{train} --resume")).contains("learned"));
}
