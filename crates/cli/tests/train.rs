//! `tonnage train` and `tonnage plan` as a user meets them.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;

use std::fs;
use std::process::{Command, Output};

use common::{said, tonnage};

fn refused(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The word behind another.
fn after<'t>(text: &'t str, word: &str) -> &'t str {
    let rest = text.split_once(word).unwrap().1;
    rest.split([',', '\n', '%']).next().unwrap().trim()
}

#[test]
fn a_model_learns_digits_in_the_memory_that_was_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        said(&tonnage(folder.path(), &["train", "mlp", "--budget", "1MiB", "--epochs", "8"]));
    assert_eq!(after(&text, "predicted"), after(&text, "measured"), "{text}");
    let accuracy: f64 = after(&text, "accuracy").parse().unwrap();
    assert!(accuracy > 92.0, "{text}");
    let report = fs::read_to_string(folder.path().join("tonnage-report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["predicted_peak"], report["measured_peak"]);
    assert_eq!(report["losses"].as_array().unwrap().len(), 8);
    assert!(report["plan"]["peak"].is_number());
}

#[test]
fn a_plan_runs_nothing_and_a_budget_that_is_too_small_is_refused_with_the_least() {
    let folder = tempfile::tempdir().unwrap();
    let text = said(&tonnage(folder.path(), &["plan", "cnn", "--batch", "8"]));
    assert!(text.starts_with("peak ") && text.contains("conv"), "{text}");
    let no = refused(&tonnage(folder.path(), &["train", "mlp", "--budget", "10KiB"]), 1);
    assert!(no.contains("the least that would do is"), "{no}");
    let least = no.split_once("the least that would do is").unwrap().1;
    let least = least.split_once('(').unwrap().1.split(' ').next().unwrap();
    let args = ["train", "mlp", "--steps", "3", "--budget", least];
    let text = said(&tonnage(folder.path(), &args));
    assert_eq!(after(&text, "predicted"), after(&text, "measured"), "{text}");
}

#[test]
fn training_goes_on_from_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let args = ["train", "mlp", "--epochs", "2", "--checkpoint", "saved"];
        said(&tonnage(folder.path(), &[&args[..], more].concat()))
    };
    let whole = said(&tonnage(folder.path(), &["train", "mlp", "--epochs", "2"]));
    run(&["--steps", "30"]);
    let rest = run(&["--resume"]);
    assert_eq!(after(&whole, "accuracy"), after(&rest, "accuracy"));
}

/// Arguments in a line.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

const SMALL: &str = "--width 16 --length 16 --batch 8";

#[test]
fn every_model_learns_in_the_memory_predicted_and_is_the_same_when_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    for (line, measure, most) in [
        ("gpt --layers 1 --steps 60", "loss", 3.2),
        ("gru --steps 200", "loss", 3.2),
        ("recommender --epochs 10 --width 4", "off by", 0.9),
        ("mlp --steps 100", "loss", 1.5),
    ] {
        let model = line.split(' ').next().unwrap();
        let sizes = if matches!(model, "gpt" | "gru") { SMALL } else { "" };
        let train = format!("train {line} {sizes} --checkpoint {model}");
        let text = said(&tonnage(folder.path(), &words(&train)));
        assert_eq!(after(&text, "predicted"), after(&text, "measured"), "{text}");
        let figure = |text: &str| -> f64 {
            let rest = text.split_once(measure).unwrap().1.trim_start();
            rest.split(' ').next().unwrap().parse().unwrap()
        };
        assert!(figure(&text) < most, "{text}");
        let eval = said(&tonnage(folder.path(), &words(&format!("eval --checkpoint {model}"))));
        assert_eq!(figure(&eval), figure(&text), "{eval}{text}");
        let plan = said(&tonnage(folder.path(), &words(&format!("plan {line} {sizes}"))));
        assert!(plan.starts_with(&format!("peak {}", after(&text, "predicted"))), "{plan}{text}");
    }
    let sample = |more: &str| {
        let line = format!("sample --checkpoint gpt --characters 30 {more}");
        said(&tonnage(folder.path(), &words(&line)))
    };
    let text = sample("--prompt Citizen --seed 5");
    assert!(text.starts_with("Citizen") && text.trim_end_matches('\n').chars().count() <= 37);
    assert_eq!(text, sample("--prompt Citizen --seed 5"));
    assert_ne!(text, sample("--prompt Citizen --seed 6"));
    assert_eq!(sample("--temperature 0"), sample("--temperature 0 --seed 6"));
    let refuse = |line: &str| refused(&tonnage(folder.path(), &words(line)), 2);
    assert!(refuse("sample --checkpoint gpt --prompt \u{3b1}").contains("no character"));
    assert!(refuse("sample --checkpoint mlp").contains("no model of text"));
    assert!(refuse("eval --checkpoint nowhere").contains("model.json"));
}

#[test]
fn precisions_accumulation_patience_and_logs_do_what_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let run = |line: &str| said(&tonnage(folder.path(), &words(line)));
    for precision in ["bf16", "f16"] {
        let text = run(&format!("train mlp --epochs 4 --precision {precision}"));
        assert_eq!(after(&text, "predicted"), after(&text, "measured"), "{text}");
        assert!(after(&text, "accuracy").parse::<f64>().unwrap() > 85.0, "{text}");
    }
    // Rows in one step are the same, in one batch or in four.
    let whole = run("train mlp --batch 64 --epochs 2 --log whole.csv");
    let parts = run("train mlp --batch 16 --accumulate 4 --epochs 2 --log parts.csv");
    assert_eq!(after(&parts, "predicted"), after(&parts, "measured"), "{parts}");
    let losses = |name: &str| -> Vec<f64> {
        let text = fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(text.starts_with("step,epoch,loss,"), "{text}");
        text.lines().skip(1).map(|l| l.split(',').nth(2).unwrap().parse().unwrap()).collect()
    };
    let (one, other) = (losses("whole.csv"), losses("parts.csv"));
    assert_eq!((one.len(), other.len()), (50, 50), "{whole}");
    for (a, b) in one.iter().zip(&other) {
        assert!((a - b).abs() < 1e-3 * a.abs().max(1.0), "{a} {b}");
    }
    // At a rate of next to nothing the loss hardly falls, and a first epoch without better ends it.
    run("train mlp --epochs 9 --rate 0 --patience 2 --log log.json");
    let log = fs::read_to_string(folder.path().join("log.json")).unwrap();
    let epochs = log.lines().filter(|line| line.contains("\"event\":\"epoch\"")).count();
    assert_eq!(epochs, 3, "{log}");
}

#[test]
fn a_loss_that_is_no_number_is_told_with_its_step() {
    let folder = tempfile::tempdir().unwrap();
    let no = refused(&tonnage(folder.path(), &words("train mlp --optimizer sgd --rate 1e38")), 2);
    assert!(
        no.contains("the loss of step 2 is not finite") && no.contains("the result of `matmul`"),
        "{no}"
    );
}

#[cfg(unix)]
#[test]
fn ctrl_c_finishes_the_step_saves_and_ends_in_good_order() {
    use std::process::Stdio;
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tonnage"));
    command.args(words("train mlp --epochs 1000000 --checkpoint saved --log log.csv"));
    command.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    // Until some steps were made.
    let lines =
        || fs::read_to_string(folder.path().join("log.csv")).map_or(0, |t| t.lines().count());
    while lines() < 5 {
        std::thread::yield_now();
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let text = said(&output);
    assert!(text.contains("stopped; `--resume` goes on from saved"), "{text}");
    let record = fs::read_to_string(folder.path().join("saved/checkpoint.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let logged = fs::read_to_string(folder.path().join("log.csv")).unwrap();
    let last = logged.lines().last().unwrap().split(',').next().unwrap().to_string();
    assert_eq!(record["position"]["step"].to_string(), last);
    let more = format!(
        "train mlp --epochs 1000000 --steps {} --checkpoint saved --resume",
        last.parse::<u64>().unwrap() + 2
    );
    assert!(said(&tonnage(folder.path(), &words(&more))).contains("learned"));
}

#[test]
fn pictures_text_and_tables_of_ones_own_are_read_in_every_format() {
    use tonnage::io::{Csv, save_npy, save_npz};
    use tonnage::{DType, Elementwise, concat, range};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let pixels = range(0i64, 40 * 16, 1).unwrap().modulo(251i64).unwrap().cast(DType::U8).unwrap();
    let images = pixels.reshape([40, 4, 4]).unwrap();
    let labels = range(0i64, 40, 1).unwrap().modulo(3i64).unwrap().cast(DType::U8).unwrap();
    let both = [("x_train", &images), ("y_train", &labels)];
    save_npz(path.join("pictures.npz"), both).unwrap();
    fs::create_dir(path.join("folder")).unwrap();
    save_npy(path.join("folder/images.npy"), &images).unwrap();
    save_npy(path.join("folder/labels.npy"), &labels).unwrap();
    let flat = images.reshape([40, 16]).unwrap();
    let table = concat(&[&labels.expand_dims(1).unwrap(), &flat], 1).unwrap();
    Csv::new().save(path.join("pictures.csv"), &table, &[]).unwrap();
    let train = |line: &str| tonnage(path, &words(&format!("train {line} --steps 4 --batch 4")));
    let accuracy = |data: &str| {
        let text = said(&train(&format!("mlp --data {data}")));
        after(&text, "accuracy").to_string()
    };
    let first = accuracy("pictures.npz");
    assert_eq!([accuracy("folder"), accuracy("pictures.csv")], [first.clone(), first]);

    fs::create_dir(path.join("texts")).unwrap();
    for name in ["a.txt", "b.txt"] {
        fs::write(path.join("texts").join(name), "to be or not to be, ".repeat(40)).unwrap();
    }
    said(&train("gru --width 8 --length 16 --data texts"));
    let few = refused(&train("gpt --data texts --length 1000"), 2);
    assert!(few.contains("rows of 1000"), "{few}");
    let none = refused(&train("gpt --data folder"), 2);
    assert!(none.contains("put .txt files into it"), "{none}");

    let ratings: String = (0..200).map(|i| format!("{},{},{}\n", i % 7, i % 11, i % 5)).collect();
    fs::write(path.join("ratings.csv"), format!("person,thing,rating\n{ratings}")).unwrap();
    said(&train("recommender --data ratings.csv"));
    fs::write(path.join("bad.csv"), "1,2,3\n-1,2,3\n").unwrap();
    assert!(refused(&train("recommender --data bad.csv"), 2).contains("number people"));
    fs::write(path.join("bad.csv"), "1,2,3\n1,x,3\n").unwrap();
    assert!(refused(&train("recommender --data bad.csv"), 2).contains("line 2, column 2"));
}

#[test]
fn pictures_of_ones_own_are_learned_and_bad_ones_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let train = |args: &[&str]| tonnage(path, &[&["train", "mlp", "--data", "."], args].concat());
    assert!(refused(&train(&[]), 2).contains("images.idx"));
    let mut images = vec![0, 0, 8, 3, 0, 0, 0, 40, 0, 0, 0, 4, 0, 0, 0, 5];
    images.extend((0..40 * 20).map(|i: u32| (i * 7 % 256) as u8));
    fs::write(path.join("images.idx"), &images).unwrap();
    fs::write(path.join("labels.idx"), [0, 0, 8, 1, 0, 0, 0, 3, 0, 1, 2]).unwrap();
    assert!(refused(&train(&[]), 2).contains("as many labels"));
    let mut labels = vec![0, 0, 8, 1, 0, 0, 0, 40];
    labels.extend((0..40).map(|i| i % 3));
    fs::write(path.join("labels.idx"), labels).unwrap();
    said(&train(&["--batch", "6", "--epochs", "1"]));
    assert!(refused(&train(&["--batch", "1000"]), 2).contains("batches of 1000 of 36 rows"));
    fs::write(path.join("images.idx"), &images[..50]).unwrap();
    assert!(refused(&train(&[]), 2).contains("damaged"));
    for bad in [["--budget", "much"], ["--optimizer", "magic"], ["--rate", "-1"], ["--batch", "0"]]
    {
        refused(&tonnage(path, &[&["train", "mlp"], &bad[..]].concat()), 2);
    }
}
