//! `cargo xtask help`: the list of commands.

use std::process::ExitCode;

use crate::{COMMANDS, Subcommand};

/// The row of this command.
pub const COMMAND: Subcommand = Subcommand { name: "help", doc: "shows this list", words: "", run };

fn run(_words: &[String]) -> ExitCode {
    println!("{}", text());
    ExitCode::SUCCESS
}

/// The list, also shown below a mistake on the command line.
pub fn text() -> String {
    let mut text = "usage: cargo xtask <command>".to_string();
    for command in COMMANDS {
        let typed = format!("{} {}", command.name, command.words);
        text += &format!("\n  {typed:<22}{}", command.doc);
    }
    text
}
