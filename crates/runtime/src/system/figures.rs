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
    let total = super::unix::physical_memory()?;
    Some(group_limit().map_or(total, |allowed| allowed.min(total)))
}

/// Bytes that the machine has.
#[cfg(not(unix))]
pub fn machine_memory() -> Option<Bytes> {
    None
}

/// What our control group may use; there is no such file on other systems than Linux.
#[cfg(unix)]
fn group_limit() -> Option<Bytes> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    limit_files(&groups)
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse().ok())
        .map(Bytes::new)
        .min()
}

/// The files that may hold a limit. A container sees its own group at the root of the tree, whatever
/// its name outside; a session sees it at its path. A limit of "max" is no number and thereby none.
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
    fn this_machine_has_memory_and_we_use_some() {
        let (resident, machine) = (resident().unwrap(), machine_memory().unwrap());
        assert!(resident > Bytes::new(100_000) && resident < machine, "{resident} of {machine}");
    }
}
