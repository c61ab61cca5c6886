//! The arrows between crates: each may use those before it, and nothing points back.

use crate::none;
use crate::tree::{File, files};

/// The crates in the order that data flows. Those on one line don't know each other. `counting` serves tests
/// alone.
const ORDER: [&[&str]; 9] = [
    &["core", "counting"],
    &["ops", "simd", "world"],
    &["plan"],
    &["cpu", "cuda"],
    &["runtime"],
    &["report"],
    &["tonnage"],
    &["formats", "onnx"],
    &["bench", "cli", "python"],
];

fn place(name: &str) -> Option<usize> {
    ORDER.iter().position(|row| row.contains(&name))
}

/// The directory under `crates/` of a package of ours.
fn directory(package: &str) -> Option<&str> {
    if package == "tonnage" { Some(package) } else { package.strip_prefix("tonnage-") }
}

/// The packages of ours that a manifest uses, each with its line. Tests may use any: they are not
/// part of what others build on.
fn used(manifest: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (number, line) in (1..).zip(manifest.lines().map(str::trim)) {
        if let Some(header) = line.strip_prefix('[') {
            let mut parts = header.trim_end_matches(']').split('.');
            inside = parts.any(|part| matches!(part, "dependencies" | "build-dependencies"));
            // What is left of `[dependencies.name]` is the name.
            found.extend(parts.filter(|_| inside).filter_map(directory).map(|name| (number, name)));
            continue;
        }
        if !inside {
            continue;
        }
        let key = line.split(['=', '.', ' ']).next().unwrap_or("").trim_matches('"');
        let renamed = line.split_once("package").and_then(|(_, rest)| rest.split('"').nth(1));
        found.extend(directory(renamed.unwrap_or(key)).map(|name| (number, name)));
    }
    found
}

fn wrong_arrows(file: &File) -> Vec<String> {
    let inner = file.path.strip_prefix("crates/").and_then(|p| p.strip_suffix("/Cargo.toml"));
    let Some(name) = inner else { return Vec::new() };
    let Some(here) = place(name) else {
        return vec![file.at(1, "this crate has no place in the order of crates")];
    };
    let mut found = Vec::new();
    for (line, other) in used(&file.text) {
        if place(other).is_none_or(|there| there >= here) {
            found.push(file.at(line, &format!("`{name}` may not use `{other}`")));
        }
    }
    found
}

#[test]
fn crates_use_only_those_before_them() {
    none(files().unwrap().iter().flat_map(wrong_arrows).collect());
}

#[test]
fn an_arrow_that_points_back_is_found() {
    let check = |name: &str, text: &str| {
        wrong_arrows(&File::sample(&format!("crates/{name}/Cargo.toml"), text))
    };
    for arrow in [
        "[dependencies]\nserde = \"1\"\ntonnage-plan.workspace = true",
        "[dependencies]\n\ntonnage-plan = { path = \"../plan\" }",
        "[dependencies]\n\nplanner = { package = \"tonnage-plan\", path = \"../plan\" }",
        "[target.'cfg(unix)'.dependencies]\n\ntonnage-plan.workspace = true",
        "[build-dependencies]\n\ntonnage-plan.workspace = true",
        "[package]\n\n[dependencies.tonnage-plan]\npath = \"../plan\"",
    ] {
        let found = check("ops", arrow);
        assert_eq!(found, ["crates/ops/Cargo.toml:3: `ops` may not use `plan`"], "{arrow}");
        assert!(check("runtime", arrow).is_empty(), "{arrow}");
    }
    assert!(check("core", "[dev-dependencies]\ntonnage-ops.workspace = true").is_empty());
    assert_eq!(check("cli", "[dependencies]\ntonnage-python.workspace = true").len(), 1);
    assert_eq!(check("cli", "[dependencies]\ntonnage.workspace = true").len(), 0);
    assert_eq!(check("surprise", "").len(), 1);
}
