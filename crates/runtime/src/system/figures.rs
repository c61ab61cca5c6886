//! What the system says about memory: how much of ours is resident, and how much the machine has.
//! Each answer is `None` where the system does not say.

use tonnage_core::Bytes;

/// Bytes of this process that are in memory now.
///
/// The kernel counts by thread and adds up late, so the figure is exact to some dozens of pages.
#[cfg(target_os = "linux")]
pub fn resident() -> Option<Bytes> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Bytes::new(pages).checked_mul(super::unix::page_size()?)
}

/// Bytes of this process that are in memory now.
#[cfg(not(target_os = "linux"))]
pub fn resident() -> Option<Bytes> {
    None
}

/// Bytes that the machine has, or that our control group is allowed, whichever is less.
#[cfg(unix)]
pub fn machine_memory() -> Option<Bytes> {
    group_limit().or_else(super::unix::physical_memory)
}

/// Bytes that the machine has.
#[cfg(not(unix))]
pub fn machine_memory() -> Option<Bytes> {
    None
}

/// Bytes that the machine could still give away, by what the system says: pages that nobody uses, and those that it can take back.
#[cfg(target_os = "linux")]
pub fn available_memory() -> Option<Bytes> {
    available_in(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

/// Bytes that the machine could still give away.
#[cfg(not(target_os = "linux"))]
pub fn available_memory() -> Option<Bytes> {
    None
}

#[cfg(target_os = "linux")]
fn available_in(meminfo: &str) -> Option<Bytes> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Bytes::new(kib).checked_mul(1024)
}

/// What a container may use; there is none on other systems than Linux, and often none there.
#[cfg(not(unix))]
pub fn group_limit() -> Option<Bytes> {
    None
}

/// What our control group may use, that of a container; there is no such file on other systems than Linux.
#[cfg(unix)]
pub fn group_limit() -> Option<Bytes> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let files = limit_files(&groups);
    let texts = files.iter().filter_map(|path| std::fs::read_to_string(path).ok());
    least_limit(texts, super::unix::physical_memory()?)
}

/// The least of some limits. One of "max" is no number and thereby none, and so is one that the machine never reaches: older systems
/// write a large number where there is none.
#[cfg(unix)]
fn least_limit(texts: impl Iterator<Item = String>, machine: Bytes) -> Option<Bytes> {
    let limits = texts.filter_map(|text| text.trim().parse().ok()).map(Bytes::new);
    limits.min().filter(|limit| *limit < machine)
}

/// The files that may hold a limit. A container sees its own group at the root of the tree, whatever
/// its name outside; a session sees it at its path.
#[cfg(unix)]
fn limit_files(groups: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let path = path.trim_end_matches('/');
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        files.push(format!("{root}/{file}"));
        files.push(format!("{root}{path}/{file}"));
    }
    files
}

/// A process as messages name it: its number, and its name where the system says it.
pub fn process_name(process: u32) -> String {
    match std::fs::read_to_string(format!("/proc/{process}/comm")) {
        Ok(name) => format!("{process} {}", name.trim_end()),
        Err(_) => process.to_string(),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_looked_for_at_its_path_and_at_the_root() {
        assert_eq!(
            limit_files("4:memory:/jobs/7\n1:cpu:/\n0::/user\n"),
            [
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory.max",
                "/sys/fs/cgroup/user/memory.max",
            ]
        );
    }

    #[test]
    fn a_limit_is_the_least_number_that_the_machine_can_reach() {
        let least =
            |texts: &[&str]| least_limit(texts.iter().map(|t| (*t).into()), Bytes::new(100));
        assert_eq!(least(&["max\n", "70\n", "80\n"]), Some(Bytes::new(70)));
        for none in [&[][..], &["max\n"], &["9223372036854771712\n"], &["100\n", "-1\n"]] {
            assert_eq!(least(none), None, "{none:?}");
        }
    }

    #[test]
    fn what_is_available_is_read_from_its_line_and_nowhere_else() {
        let text = "MemTotal:       16 kB\nMemFree:         3 kB\nMemAvailable:    8 kB\n";
        assert_eq!(available_in(text), Some(Bytes::new(8192)));
        for text in ["", "MemFree: 3 kB\n", "MemAvailable: 8\n", "MemAvailable: x kB\n"] {
            assert_eq!(available_in(text), None, "{text}");
        }
        assert!(available_memory().unwrap() <= super::super::unix::physical_memory().unwrap());
    }

    #[test]
    fn this_machine_has_memory_and_we_use_some() {
        let (resident, machine) = (resident().unwrap(), machine_memory().unwrap());
        assert!(resident > Bytes::new(100_000) && resident < machine, "{resident} of {machine}");
    }
}
