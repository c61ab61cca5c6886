//! The project's own commands, run as `cargo xtask <command>`.
//!
//! One file per command, one line per command in [`COMMANDS`]; dispatch and help both read that
//! list. Standard library only, so that a bare machine builds it in a moment.

mod bench;
mod cargo;
mod gpu;
mod help;
mod keras;
mod onnx;
mod python;
mod soak;
mod step;
mod test;
mod unsound;

use std::process::ExitCode;

/// A command, as its file declares it.
struct Subcommand {
    /// The word after `cargo xtask`.
    name: &'static str,
    /// What it does, on one line.
    doc: &'static str,
    /// What may follow its name, where something may.
    words: &'static str,
    /// Does it, with the words that follow.
    run: fn(&[String]) -> ExitCode,
}

/// Every command, in the order that help lists them.
const COMMANDS: &[Subcommand] = &[
    test::COMMAND,
    python::COMMAND,
    keras::COMMAND,
    onnx::COMMAND,
    gpu::COMMAND,
    bench::COMMAND,
    soak::COMMAND,
    help::COMMAND,
];

/// The exit code for a command line that can't be understood, apart from 1 for a failed check.
const MISUSE: u8 = 2;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mistake = match words.as_slice() {
        [] => "no command given".to_string(),
        [name, rest @ ..] => match (COMMANDS.iter().find(|c| c.name == name), rest) {
            (Some(command), [extra, ..]) if command.words.is_empty() => {
                format!("`{}` takes no argument, but got `{extra}`", command.name)
            }
            (Some(command), words) => return (command.run)(words),
            (None, _) => format!("there is no command `{name}`"),
        },
    };
    eprintln!("error: {mistake}\n\n{}", help::text());
    ExitCode::from(MISUSE)
}
