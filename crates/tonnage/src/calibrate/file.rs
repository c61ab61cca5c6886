//! The figures as a small JSON text in the user's cache folder.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tonnage_plan::Machine;
use tonnage_runtime::pool;
use tonnage_runtime::system::cache_folder;

use crate::io::{read_text, save_text};

/// Changes with what the figures mean.
const VERSION: u64 = 4;
const NAME: &str = "machine.txt";
/// How files began before they were JSON: versions 0 to 2.
const BEFORE: &str = "tonnage machine ";

/// What is there in a file of any version.
#[derive(Deserialize)]
struct Version {
    #[serde(rename = "tonnage machine")]
    version: u64,
}

/// A file of this version.
#[derive(Serialize, Deserialize)]
struct Figures {
    #[serde(rename = "tonnage machine")]
    version: u64,
    cpu: String,
    threads: usize,
    figures: Machine,
}

/// Saves figures for later processes.
pub(super) fn store(machine: &Machine) -> Result<(), String> {
    let folder =
        cache_folder().ok_or("there is no cache folder: neither XDG_CACHE_HOME nor HOME is set")?;
    write(&folder, &text(machine, &cpu(), pool().threads())?)
}

/// The figures that were saved for this machine; `None` where there are none.
pub(super) fn load() -> Result<Option<Machine>, String> {
    let Some(folder) = cache_folder() else { return Ok(None) };
    read(&folder, &cpu(), pool().threads())
}

/// The file that figures are saved in, whether it is there or not.
pub(super) fn path() -> Option<PathBuf> {
    cache_folder().map(|folder| folder.join(NAME))
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

fn text(machine: &Machine, cpu: &str, threads: usize) -> Result<String, String> {
    let file = Figures { version: VERSION, cpu: cpu.into(), threads, figures: *machine };
    serde_json::to_string_pretty(&file).map_err(|e| e.to_string())
}

/// The figures, if they are of this version and machine.
fn parse(text: &str, cpu: &str, threads: usize) -> Result<Option<Machine>, String> {
    if text.starts_with(BEFORE) {
        return Ok(None);
    }
    let unknown = |e| format!("it is no file of figures: {e}");
    let Version { version } = serde_json::from_str(text).map_err(unknown)?;
    if version != VERSION {
        return Ok(None);
    }
    let file: Figures = serde_json::from_str(text).map_err(unknown)?;
    if file.cpu != cpu || file.threads != threads {
        return Ok(None);
    }
    // Figures of a GPU's units are not in the file.
    let Machine {
        flops,
        bytes,
        step,
        fork,
        write,
        read,
        send,
        message,
        matrix: _,
        attention: _,
        elementwise: _,
    } = file.figures;
    let named = [
        ("flops", flops),
        ("bytes", bytes),
        ("step", step),
        ("fork", fork),
        ("write", write),
        ("read", read),
        ("send", send),
        ("message", message),
    ];
    match named.into_iter().find(|(_, figure)| !figure.is_finite() || *figure <= 0.0) {
        Some((name, figure)) => Err(format!("`{name}` is {figure}")),
        None => Ok(Some(file.figures)),
    }
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

    const MADE: Machine = Machine {
        flops: 1.25e11,
        bytes: 1.9e10,
        step: 7.5e-7,
        fork: 5e-6,
        write: 3e8,
        read: 2e9,
        send: 1.5e9,
        message: 2e-6,
        matrix: 0.0,
        attention: 0.0,
    };

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("tonnage-{name}-{}", std::process::id()))
    }

    #[test]
    fn figures_are_read_back_as_they_were_written() {
        let folder = folder("figures").join("deep");
        assert_eq!(read(&folder, "a cpu", 2), Ok(None));
        // The second has figures of as many digits as there can be.
        let long = |figure: f64| f64::from_bits(figure.to_bits() + 12345);
        let Machine { flops, bytes, step, fork, write: written, read: back, send, message, .. } =
            MADE;
        let [flops, bytes, step, fork] = [flops, bytes, step, fork].map(long);
        let [send, message] = [send, message].map(long);
        let (write_rate, read_rate) = (long(written), long(back));
        let long = Machine {
            flops,
            bytes,
            step,
            fork,
            write: write_rate,
            read: read_rate,
            send,
            message,
            ..MADE
        };
        for machine in [MADE, long] {
            write(&folder, &text(&machine, "a cpu", 2).unwrap()).unwrap();
            assert_eq!(read(&folder, "a cpu", 2), Ok(Some(machine)));
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        // Another machine that shares the folder, another number of threads.
        assert_eq!(read(&folder, "another cpu", 2), Ok(None));
        assert_eq!(read(&folder, "a cpu", 1), Ok(None));
        std::fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }

    #[test]
    fn files_of_other_versions_are_as_good_as_none() {
        let old = "tonnage machine 2\ncpu c\nthreads 1\nflops 1.25e11\nbytes 1.9e10\n\
                   step 7.5e-7\nfork 5e-6\nwrite 3e8\nread 2e9\n";
        for other in [
            old,
            &old[..60],
            "tonnage machine 0\nwhatever",
            "{\"tonnage machine\": 3}",
            "{\"tonnage machine\": 5, \"figures\": [1, 2], \"cpu\": null}",
        ] {
            assert_eq!(parse(other, "c", 1), Ok(None), "{other}");
        }
    }

    #[test]
    fn a_field_more_is_no_harm() {
        let good = text(&MADE, "c \"quoted\" \\ \u{e9}", 1).unwrap();
        let more = good.replace("\"threads\"", "\"made by\": [\"a test\"], \"threads\"");
        let more = more.replace("\"step\"", "\"jump\": -1, \"step\"");
        assert!(more.contains("made by") && more.contains("jump"), "{more}");
        assert_eq!(parse(&more, "c \"quoted\" \\ \u{e9}", 1), Ok(Some(MADE)));
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        let good = text(&MADE, "c", 1).unwrap();
        let with = |name: &str, value: &str| {
            let mut file: serde_json::Value = serde_json::from_str(&good).unwrap();
            let was = file["figures"][name].take();
            let other =
                good.replace(&format!("\"{name}\": {was}"), &format!("\"{name}\": {value}"));
            assert_ne!(other, good);
            other
        };
        for (bad, why) in [
            (String::new(), "no file of figures"),
            ("\u{0}\u{1}garbage".into(), "no file of figures"),
            ("[4]".into(), "no file of figures"),
            ("{\"tonnage machine\": 4}".into(), "no file of figures: missing field `cpu`"),
            (with("flops", "\"many\""), "string \"many\""),
            (with("flops", "null"), "null"),
            (with("step", "-1"), "`step` is -1"),
            (with("fork", "0.0"), "`fork` is 0"),
            (with("bytes", "NaN"), "no file of figures"),
            (with("write", "1e999"), "out of range"),
            (good.replace("\"read\"", "\"reed\""), "missing field `read`"),
            (good.replace("\"threads\": 1", "\"threads\": -1"), "-1"),
        ] {
            let error = parse(&bad, "c", 1).unwrap_err();
            assert!(error.contains(why), "{error}: {bad}");
        }
        // Cut anywhere.
        for n in 0..good.len() {
            let error = parse(&good[..n], "c", 1).unwrap_err();
            assert!(error.contains("no file of figures"), "{error}: {n}");
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
