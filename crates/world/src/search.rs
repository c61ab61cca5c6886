//! Which files an MPI library may be: named by the user, beside the launcher, or where the system's loader looks.

use std::env;
use std::path::{Path, PathBuf};

/// The variable that names the library, where several are installed.
pub const VARIABLE: &str = "TONNAGE_MPI";

/// How libraries are called: with the standard's own binary interface; Open MPI; MPICH and those that are compatible with it, of which
/// Debian and Cray have names of their own.
pub const NAMES: [&str; 6] = [
    "libmpi_abi.so.1",
    "libmpi_abi.so.0",
    "libmpi.so.40",
    "libmpi.so.12",
    "libmpich.so.12",
    "libmpi_cray.so.12",
];

/// What to give to the system's loader, in the order in which it is tried.
pub fn candidates() -> Vec<PathBuf> {
    candidates_of(env::var_os(VARIABLE).map(PathBuf::from), launcher_folder().as_deref())
}

/// The same, as text.
pub fn names() -> Vec<String> {
    candidates().iter().map(|path| path.display().to_string()).collect()
}

fn candidates_of(named: Option<PathBuf>, launcher: Option<&Path>) -> Vec<PathBuf> {
    if let Some(named) = named {
        return vec![named];
    }
    // The library of the launcher stands beside it in an installation of its own: `bin` and `lib`.
    let prefix = launcher.and_then(Path::parent);
    let beside = prefix.into_iter().flat_map(|prefix| {
        let of = |folder: &'static str| NAMES.map(|name| prefix.join(folder).join(name));
        [of("lib"), of("lib64")].into_iter().flatten()
    });
    beside.filter(|path| path.exists()).chain(NAMES.map(PathBuf::from)).collect()
}

/// The folder of the program that started this process.
#[cfg(target_os = "linux")]
fn launcher_folder() -> Option<PathBuf> {
    let parent = std::os::unix::process::parent_id();
    Some(std::fs::read_link(format!("/proc/{parent}/exe")).ok()?.parent()?.to_path_buf())
}

#[cfg(not(target_os = "linux"))]
fn launcher_folder() -> Option<PathBuf> {
    None
}

/// The file of a loaded library, by the list of what is mapped into this process; the name itself where it is not in it.
pub fn file_of(name: &Path, maps: &str) -> PathBuf {
    let Some(own) = name.file_name().and_then(|own| own.to_str()) else { return name.into() };
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    let is_own = |path: &&Path| {
        let file = path.file_name().and_then(|file| file.to_str());
        let rest = file.and_then(|file| file.strip_prefix(own));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let found = paths.filter(is_own).map(Path::to_path_buf).next();
    found.unwrap_or_else(|| name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_word_comes_first_then_what_stands_beside_the_launcher() {
        let prefix = env::temp_dir().join(format!("tonnage-search-{}", std::process::id()));
        let (bin, lib) = (prefix.join("bin"), prefix.join("lib"));
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::create_dir_all(&lib).unwrap();
        let named = PathBuf::from("/opt/libmpi.so");
        assert_eq!(candidates_of(Some(named.clone()), Some(&bin)), [named]);
        let names = NAMES.map(PathBuf::from);
        assert_eq!(candidates_of(None, None), names);
        assert_eq!(candidates_of(None, Some(&bin)), names);
        let own = lib.join("libmpi.so.40");
        std::fs::write(&own, "").unwrap();
        let found = candidates_of(None, Some(&bin));
        assert_eq!((&found[0], &found[1..]), (&own, &names[..]));
        std::fs::remove_dir_all(&prefix).unwrap();
    }

    #[test]
    fn the_file_of_a_library_is_what_is_mapped_under_its_name() {
        let maps = "7f00-7f01 r--p 0 08:01 1 /usr/lib/libmpi_cxx.so.40.30\n\
                    7f02-7f03 r-xp 0 08:01 2 /opt/lib/libmpi.so.40.40.8\n\
                    7f04-7f05 rw-p 0 00:00 0 [heap]\n";
        for (name, expected) in [
            ("libmpi.so.40", "/opt/lib/libmpi.so.40.40.8"),
            ("/opt/lib/libmpi.so.40", "/opt/lib/libmpi.so.40.40.8"),
            ("libmpi.so.4", "libmpi.so.4"),
            ("libmpi.so.12", "libmpi.so.12"),
            ("..", ".."),
        ] {
            assert_eq!(file_of(Path::new(name), maps), Path::new(expected), "{name}");
        }
    }
}
