//! The command line: what it lists, and what it refuses.

use std::io;
use std::process::{Command, Output};

fn xtask(words: &[&str]) -> io::Result<Output> {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(words).output()
}

#[test]
fn help_lists_every_command() {
    let output = xtask(&["help"]).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    for name in ["test", "python", "soak", "help"] {
        let listed = text.lines().any(|line| line.split_whitespace().next() == Some(name));
        assert!(listed, "{name} is not in:\n{text}");
    }
}

#[test]
fn a_command_line_that_means_nothing_is_refused_with_2() {
    for (words, message) in [
        (&[][..], "error: no command given"),
        (&["tset"][..], "error: there is no command `tset`"),
        (&["help", "me"][..], "error: `help` takes no argument, but got `me`"),
    ] {
        let output = xtask(words).unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert_eq!(text.lines().next(), Some(message));
    }
}

#[test]
fn bench_helps_and_refuses_without_building_anything() {
    let empty = std::env::temp_dir().join(format!("tonnage-xtask-{}", std::process::id()));
    for (words, code, said) in [
        (&["bench", "--help"][..], 0, "usage: cargo xtask bench"),
        (&["bench", "gpt", "-h"][..], 0, "usage: cargo xtask bench"),
        (&["bench", "--helpp"][..], 1, "error: there is no option `--helpp`"),
        (&["bench", "compare", "HEAD"][..], 1, "error: say which two to compare"),
        (&["bench", "compare", "none", "HEAD"][..], 1, "error: `none` is neither a commit nor"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(words)
            .env("CARGO_TARGET_DIR", &empty)
            .output()
            .unwrap();
        let text = if code == 0 { output.stdout } else { output.stderr };
        let text = String::from_utf8(text).unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {text}");
        assert!(text.starts_with(said), "{words:?}: {text}");
        assert!(!empty.exists(), "{words:?} built something");
    }
}
