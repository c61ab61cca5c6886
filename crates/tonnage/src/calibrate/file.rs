//! The figures as a small text in the user's cache folder.

use std::path::{Path, PathBuf};

use tonnage_plan::Machine;
use tonnage_runtime::pool;

use crate::io::{read_text, save_text};

/// Changes with what the figures mean.
const VERSION: &str = "tonnage machine 2";
const NAME: &str = "machine.txt";

/// Saves figures for later processes.
pub(super) fn store(machine: &Machine) -> Result<(), String> {
    let folder =
        folder().ok_or("there is no cache folder: neither XDG_CACHE_HOME nor HOME is set")?;
    write(&folder, &text(machine, &cpu(), pool().threads()))
}

/// The figures that were saved for this machine; `None` where there are none.
pub(super) fn load() -> Result<Option<Machine>, String> {
    let Some(folder) = folder() else { return Ok(None) };
    read(&folder, &cpu(), pool().threads())
}

fn write(folder: &Path, text: &str) -> Result<(), String> {
    std::fs::create_dir_all(folder)
        .map_err(|e| format!("{} could not be written: {e}", folder.display()))?;
    // Another process sees the old file or the new one, never a part.
    save_text(folder.join(NAME), text).map_err(|e| e.to_string())
}

fn read(folder: &Path, cpu: &str, threads: usize) -> Result<Option<Machine>, String> {
    let path = folder.join(NAME);
    match path.try_exists() {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(e) => return Err(format!("{} could not be read: {e}", path.display())),
    }
    let text = read_text(&path).map_err(|e| e.to_string())?;
    parse(&text, cpu, threads).map_err(|why| format!("{} is ignored: {why}", path.display()))
}

fn text(machine: &Machine, cpu: &str, threads: usize) -> String {
    let Machine { flops, bytes, step, fork, write, read } = machine;
    format!(
        "{VERSION}\ncpu {cpu}\nthreads {threads}\nflops {flops:e}\nbytes {bytes:e}\nstep {step:e}\nfork {fork:e}\nwrite {write:e}\nread {read:e}\n"
    )
}

/// The figures, if they are of this version and machine.
fn parse(text: &str, cpu: &str, threads: usize) -> Result<Option<Machine>, String> {
    let mut lines = text.lines();
    match lines.next() {
        Some(VERSION) => {}
        Some(other) if other.starts_with("tonnage machine ") => return Ok(None),
        _ => return Err("it is no file of figures".into()),
    }
    let mut field = |name: &str| -> Result<String, String> {
        let line = lines.next().and_then(|line| line.split_once(' '));
        match line {
            Some((found, value)) if found == name => Ok(value.to_string()),
            _ => Err(format!("`{name}` is missing")),
        }
    };
    if field("cpu")? != cpu || field("threads")? != threads.to_string() {
        return Ok(None);
    }
    let mut figure = |name: &str| -> Result<f64, String> {
        let value = field(name)?;
        let number: f64 = value.parse().map_err(|_| format!("`{name}` is `{value}`"))?;
        match number.is_finite() && number > 0.0 {
            true => Ok(number),
            false => Err(format!("`{name}` is {number}")),
        }
    };
    Ok(Some(Machine {
        flops: figure("flops")?,
        bytes: figure("bytes")?,
        step: figure("step")?,
        fork: figure("fork")?,
        write: figure("write")?,
        read: figure("read")?,
    }))
}

/// Where caches of this user go, by the rules of the system.
fn folder() -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    // A relative path there is to be ignored, says the standard that the name is of.
    let caches = of("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let caches = caches.or_else(|| match () {
        () if cfg!(windows) => of("LOCALAPPDATA"),
        () if cfg!(target_os = "macos") => of("HOME").map(|home| home.join("Library/Caches")),
        () => of("HOME").map(|home| home.join(".cache")),
    });
    caches.map(|caches| caches.join("tonnage"))
}

/// What the CPU calls itself, on one line.
fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or(std::env::consts::ARCH, |(_, name)| name).trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE: Machine =
        Machine { flops: 1.25e11, bytes: 1.9e10, step: 7.5e-7, fork: 5e-6, write: 3e8, read: 2e9 };

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("tonnage-{name}-{}", std::process::id()))
    }

    #[test]
    fn figures_are_read_back_as_they_were_written() {
        let folder = folder("figures").join("deep");
        assert_eq!(read(&folder, "a cpu", 2), Ok(None));
        write(&folder, &text(&MADE, "a cpu", 2)).unwrap();
        assert_eq!(read(&folder, "a cpu", 2), Ok(Some(MADE)));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        // Another machine that shares the folder, another number of threads, another version.
        assert_eq!(read(&folder, "another cpu", 2), Ok(None));
        assert_eq!(read(&folder, "a cpu", 1), Ok(None));
        assert_eq!(parse("tonnage machine 0\nwhatever", "a cpu", 2), Ok(None));
        std::fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        let good = text(&MADE, "c", 1);
        for (bad, why) in [
            (String::new(), "no file of figures"),
            ("\u{0}\u{1}garbage".into(), "no file of figures"),
            (good.replace("flops 1.25e11", "flops many"), "`flops` is `many`"),
            (good.replace("step 7.5e-7", "step -1"), "`step` is -1"),
            (good.replace("bytes 1.9e10", "bytes NaN"), "`bytes` is NaN"),
            (good.replace("write 3e8", "write inf"), "`write` is inf"),
            (good[..good.len() - 9].to_string(), "`read` is missing"),
        ] {
            let error = parse(&bad, "c", 1).unwrap_err();
            assert!(error.contains(why), "{error}: {bad}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let file = folder("file");
        std::fs::write(&file, "not a folder").unwrap();
        let error = write(&file, "text").unwrap_err();
        assert!(error.contains(&file.display().to_string()), "{error}");
        assert!(read(&file, "c", 1).is_err());
        std::fs::remove_file(&file).unwrap();
    }
}
