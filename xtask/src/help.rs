//! `cargo xtask help`: the list of commands.

use std::process::ExitCode;

use crate::{COMMANDS, Command};

/// The row of this command.
pub const COMMAND: Command = Command { name: "help", doc: "shows this list", run };

fn run() -> ExitCode {
    println!("{}", text());
    ExitCode::SUCCESS
}

/// The list, also shown below a mistake on the command line.
pub fn text() -> String {
    let mut text = "usage: cargo xtask <command>".to_string();
    for command in COMMANDS {
        text += &format!("\n  {:<8}{}", command.name, command.doc);
    }
    text
}
