//! `tonnage ops`: the page of ops with what each does to memory, or what the table says about one of them.

use std::process::ExitCode;

use tonnage_ops::page::{OpEntry, entry, page};

/// Arguments of `tonnage ops`.
#[derive(clap::Args)]
pub struct OpsArgs {
    /// An op to tell everything about.
    name: Option<String>,
}

/// Prints the page, or one op.
pub fn run(args: &OpsArgs) -> Result<ExitCode, String> {
    match &args.name {
        None => {
            let all = page();
            let lines: Vec<String> = all.iter().map(OpEntry::to_string).collect();
            let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
            for (line, entry) in lines.iter().zip(&all) {
                let gradient = if entry.gradient().is_ok() { "gradient" } else { "" };
                let memory = entry.memory();
                say!("{line:width$}  {memory:21}  {gradient:8}  {}", entry.op.doc);
            }
            say!("{} ops", all.len());
        }
        Some(name) => {
            let Some(op) = tonnage_ops::find(name) else {
                let near: Vec<&str> =
                    page().iter().map(|e| e.op.name).filter(|op| op.contains(&name[..])).collect();
                let near =
                    if near.is_empty() { String::new() } else { format!(": {}", near.join(", ")) };
                return Err(format!("there is no op `{name}`; `tonnage ops` lists them all{near}"));
            };
            let entry = entry(op);
            say!("{entry}\n{}", op.doc);
            match entry.gradient() {
                Ok(()) => say!("gradient: yes"),
                Err(why) => say!("gradient: none; {why}"),
            }
            say!("memory: {}\nfails: {}", entry.memory(), entry.fails());
        }
    }
    Ok(ExitCode::SUCCESS)
}
