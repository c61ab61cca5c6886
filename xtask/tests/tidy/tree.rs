//! The files of the project: every text file that `.gitignore` does not name.
//!
//! The tree is walked rather than asked of git, so that the checks also hold in an unpacked
//! archive, and in a checkout that git refuses because another user owns it.

use std::fs;
use std::io;
use std::path::Path;

/// A text file, with its path from the root of the project, slashes forward.
pub struct File {
    /// `crates/core/src/lib.rs`.
    pub path: String,
    /// All of it.
    pub text: String,
}

impl File {
    /// A file that exists in a test alone.
    pub fn sample(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
    }

    /// One offender at a line, from 1.
    pub fn at(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path)
    }

    /// Rust source of ours.
    pub fn is_rust(&self) -> bool {
        let folders = ["crates/", "examples/", "xtask/"];
        self.path.ends_with(".rs") && folders.iter().any(|folder| self.path.starts_with(folder))
    }
}

/// Every text file of the project, sorted by path.
pub fn files() -> io::Result<Vec<File>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let ignored = Ignored::parse(&fs::read_to_string(root.join(".gitignore"))?)?;
    let mut files = Vec::new();
    walk(&root, "", &ignored, &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// The Rust files among them.
pub fn rust_files() -> io::Result<Vec<File>> {
    Ok(files()?.into_iter().filter(File::is_rust).collect())
}

fn walk(dir: &Path, prefix: &str, ignored: &Ignored, files: &mut Vec<File>) -> io::Result<()> {
    // Tools mark directories that they can make again, such as a build directory, with this file.
    if dir.join("CACHEDIR.TAG").exists() {
        return Ok(());
    }
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if name == ".git" || ignored.matches(&path, &name) {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(&entry.path(), &format!("{path}/"), ignored, files)?;
        } else if kind.is_file()
            && let Ok(text) = String::from_utf8(fs::read(entry.path())?)
        {
            files.push(File { path, text });
        }
    }
    Ok(())
}

/// The patterns of `.gitignore`: names, rooted paths, and one star.
struct Ignored(Vec<String>);

impl Ignored {
    /// Refuses what [`Ignored::matches`] would get wrong.
    fn parse(text: &str) -> io::Result<Ignored> {
        let lines = text.lines().map(str::trim);
        let patterns: Vec<_> = lines.filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
        match patterns.iter().find(|p| p.contains(['!', '?', '[']) || p.matches('*').count() > 1) {
            Some(hard) => Err(io::Error::other(format!(".gitignore: write `{hard}` simpler"))),
            None => Ok(Ignored(patterns.into_iter().map(String::from).collect())),
        }
    }

    fn matches(&self, path: &str, name: &str) -> bool {
        self.0.iter().any(|pattern| {
            let pattern = pattern.trim_end_matches('/');
            let whole = if pattern.contains('/') { path } else { name };
            let pattern = pattern.trim_start_matches('/');
            match pattern.split_once('*') {
                None => whole == pattern,
                Some((head, tail)) => {
                    whole.len() >= head.len() + tail.len()
                        && whole.starts_with(head)
                        && whole.ends_with(tail)
                }
            }
        })
    }
}

#[test]
fn ignored_files_are_not_ours() {
    let ignored = Ignored::parse("# built\n/target\n.venv/\n*.so\n").unwrap();
    assert!(ignored.matches("target", "target"));
    assert!(ignored.matches("a/.venv", ".venv"));
    assert!(ignored.matches("a/b.so", "b.so"));
    assert!(!ignored.matches("a/target", "target"));
    assert!(!ignored.matches("a/so", "so"));
    assert!(Ignored::parse("!kept\n").is_err());
}

#[test]
fn the_walk_finds_files_at_every_depth() {
    let files = files().unwrap();
    for path in [".ci/run", "Cargo.toml", "crates/core/src/lib.rs", "xtask/tests/tidy/tree.rs"] {
        assert!(files.iter().any(|file| file.path == path), "{path} is missing");
    }
}
