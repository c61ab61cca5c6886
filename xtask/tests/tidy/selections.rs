//! Whatever packages are chosen, and with tests or without, dependencies have the same features: so all crates of ours are built once,
//! and not again for each selection.

use std::collections::BTreeSet;
use std::io;
use std::process::Command;

use crate::none;

/// The packages of a selection, each with its version and its features.
fn packages(selection: &[&str], edges: &str) -> io::Result<BTreeSet<String>> {
    let tree = Command::new(env!("CARGO"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .args(["tree", "--locked", "--offline", "--prefix", "none", "--format", "{p} {f}"])
        .args(["--edges", edges])
        .args(selection)
        .output()?;
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let text = String::from_utf8_lossy(&tree.stdout);
    // Lines of features alone have no version.
    let lines = text.lines().map(|line| line.trim_end_matches(" (*)").trim_end());
    Ok(lines.filter(|line| line.contains(" v")).map(str::to_string).collect())
}

#[test]
fn every_selection_of_packages_has_the_features_of_the_workspace() {
    let whole = packages(&["--workspace"], "features,normal,build").unwrap();
    let with_tests = packages(&["--workspace"], "features,normal,build,dev").unwrap();
    let mut found: Vec<String> = whole
        .difference(&with_tests)
        .map(|package| format!("{package}: it has other features in tests"))
        .collect();
    for name in ["tonnage-bench", "tonnage-cli", "tonnage-cpu", "tonnage-python"] {
        let chosen = packages(&["--package", name], "features,normal,build").unwrap();
        let other = chosen.difference(&whole);
        found.extend(other.map(|package| format!("{package}: so built for {name} alone")));
    }
    none(found);
}
