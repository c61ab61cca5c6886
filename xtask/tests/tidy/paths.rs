//! The repository speaks of the project alone: no path of somebody's machine is in it.

use crate::none;
use crate::tree::{File, files};

/// Directories that exist on one machine, put together so that this file does not hold them.
const MACHINE: [&str; 3] = [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/wo", "rk/")];

/// Whether a path starts after this text: `a/home/b` and `${x}/home/b` are relative.
fn starts_a_path(before: &str) -> bool {
    let within = |c: char| c.is_alphanumeric() || "_-.~$})".contains(c);
    !before.ends_with(within)
}

fn machine_paths(file: &File) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        for prefix in MACHINE {
            let mut places = line.match_indices(prefix);
            if places.any(|(at, _)| starts_a_path(&line[..at])) {
                found.push(file.at(number, &format!("a path under {prefix}")));
            }
        }
    }
    found
}

#[test]
fn no_file_names_a_path_of_one_machine() {
    none(files().unwrap().iter().flat_map(machine_paths).collect());
}

#[test]
fn a_path_of_one_machine_is_found() {
    for prefix in MACHINE {
        let count = |text: String| machine_paths(&File::sample("a.md", &text)).len();
        assert_eq!(count(format!("see {prefix}x\n\"{prefix}y\" file://{prefix}z")), 2);
        assert_eq!(count(format!("https://example.org{prefix}x ~{prefix}y")), 0);
    }
}
