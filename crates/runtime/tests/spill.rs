//! Spill files among several processes: nobody's file is removed while its process lives, and no file outlasts it for
//! long. Each process is this test, started once more with a role to play.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use tonnage_core::Bytes;
use tonnage_runtime::lend::{ByteRange, Lender};
use tonnage_runtime::spill::{DiskLane, SpillFile, set_folder};

const ROLE: &str = "TONNAGE_TEST_ROLE";

/// What a child does: holds a file until its input ends, or until it is killed.
#[test]
fn role() {
    let Some(role) = std::env::var_os(ROLE) else { return };
    let mut file = SpillFile::create(Bytes::new(65536)).unwrap();
    file.write(0, b"waits").unwrap();
    println!("\nready");
    std::io::stdout().flush().unwrap();
    if role == "hold" {
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    }
    let mut back = [0; 5];
    file.read(0, &mut back).unwrap();
    assert_eq!(&back, b"waits");
}

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("tonnage-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// A process that has its file, and what it says: its end must find somebody who listens.
struct Player {
    process: Child,
    _says: BufReader<ChildStdout>,
}

impl Player {
    fn ends_well(mut self) -> bool {
        drop(self.process.stdin.take());
        self.process.wait().unwrap().success()
    }
}

fn child(folder: &Path, role: &str) -> Player {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "role", "--nocapture"])
        .env(ROLE, role)
        .env("TONNAGE_SPILL_DIR", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut says = BufReader::new(process.stdout.take().unwrap());
    assert!(says.by_ref().lines().any(|line| line.unwrap() == "ready"));
    Player { process, _says: says }
}

fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn what_a_killed_process_leaves_is_removed_by_the_next_and_nothing_else_is() {
    let folder = folder("killed");
    let mut killed = child(&folder, "hold");
    assert_eq!(files(&folder), 1);
    // Another process comes and goes: the file of the first is in use.
    assert!(child(&folder, "pass").ends_well());
    assert_eq!(files(&folder), 1);
    killed.process.kill().unwrap();
    killed.process.wait().unwrap();
    assert_eq!(files(&folder), 1, "kill -9 leaves no time to remove it");
    assert!(child(&folder, "pass").ends_well());
    assert_eq!(files(&folder), 0);
    std::fs::remove_dir(&folder).unwrap();
}

#[test]
fn processes_share_a_folder_and_find_their_own_values() {
    let folder = folder("shared");
    let all: Vec<Player> = (0..3).map(|_| child(&folder, "hold")).collect();
    assert_eq!(files(&folder), 3);
    assert!(all.into_iter().all(Player::ends_well));
    assert_eq!(files(&folder), 0);
    std::fs::remove_dir(&folder).unwrap();
}

#[test]
fn a_file_that_somebody_changes_between_writing_and_reading_is_an_error_of_the_lane() {
    let folder = folder("changed");
    set_folder(&folder);
    let mut bytes = vec![7u8; 8192];
    let mut lender = Lender::default();
    let base = lender.add(&mut bytes[..]);
    let half = |i: usize| ByteRange { base, offset: i * 4096, len: 4096, align: 1 };
    std::thread::scope(|scope| {
        let mut lane =
            DiskLane::start(scope, SpillFile::create(Bytes::new(8192)).unwrap()).unwrap();
        for i in 0..2 {
            lane.begin(i, i as u64 * 4096, lender.loan(half(i), false).unwrap()).unwrap();
        }
        for i in 0..2 {
            lender.take_back(lane.wait(i).unwrap());
        }
        let path = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(5000).unwrap();
        lane.begin(2, 0, lender.loan(half(0), true).unwrap()).unwrap();
        lane.begin(3, 4096, lender.loan(half(1), true).unwrap()).unwrap();
        let error = lane.wait(3).unwrap_err().to_string();
        assert!(error.contains("cut short") && error.contains(&path.display().to_string()));
        lender.take_back(lane.wait(2).unwrap());
        assert_eq!(lane.written, 8192);
    });
    assert_eq!(files(&folder), 0);
    std::fs::remove_dir(&folder).unwrap();
}
