//! What a program is told where a GPU is missing, too old, too small, or fails, without a GPU: beside doubles of NVIDIA's libraries, which
//! the host's C++ compiler makes of `crates/cuda/tests/double` and which run kernels on the host. Processes of their own: a driver is
//! loaded once, and is lost when it fails.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

mod replay;
mod tasks;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a child is to do, and where it may keep files.
const TASK: &str = "TONNAGE_TEST_DRIVER";
const FOLDER: &str = "TONNAGE_TEST_DRIVER_FOLDER";

/// Doubles of the driver, the compiler of kernels and the library of products.
struct Doubles {
    folder: PathBuf,
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cuda/tests")
}

impl Doubles {
    /// Makes them; nothing where this machine has no compiler that serves.
    fn new(name: &str) -> Option<Doubles> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            println!("SKIPPED: doubles are for Linux on x86-64");
            return None;
        }
        let folder = std::env::temp_dir().join(format!("tonnage-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let compile = |source: &str, to: &str| {
            let mut command = Command::new("c++");
            command.args(["-std=c++17", "-O2", "-w", "-fPIC", "-shared", "-o"]);
            command.arg(folder.join(to)).arg(sources().join("double").join(source)).arg("-ldl");
            command.status().is_ok_and(|status| status.success())
        };
        if !compile("driver.cc", "libcuda.so.1") || !compile("products.cc", "libcublasLt.so") {
            println!("SKIPPED: no C++ compiler");
            return None;
        }
        std::fs::copy(folder.join("libcuda.so.1"), folder.join("libnvrtc.so")).unwrap();
        Some(Doubles { folder })
    }

    fn command(&self, task: &str, settings: &[(&str, &str)]) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["child", "--exact", "--nocapture", "--test-threads=1"]);
        command.env(TASK, task).env(FOLDER, &self.folder);
        command.env("LD_LIBRARY_PATH", &self.folder).env("DOUBLE_INCLUDE", sources());
        // What the doubles compile is nobody else's.
        command.env("XDG_CACHE_HOME", self.folder.join("cache"));
        command.envs(settings.iter().copied());
        command
    }

    /// What a child prints that runs to its end.
    fn run(&self, task: &str, settings: &[(&str, &str)]) -> String {
        let done = self.command(task, settings).output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{task}: {said}{}", String::from_utf8_lossy(&done.stderr));
        said
    }
}

impl Drop for Doubles {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Does what it is asked for; nothing in the process of the tests.
#[test]
fn child() {
    if let Ok(task) = std::env::var(TASK) {
        tasks::run(&task, Path::new(&std::env::var(FOLDER).unwrap())).unwrap();
    }
}

#[test]
fn a_device_that_is_not_there_says_what_was_looked_for() {
    let Some(doubles) = Doubles::new("missing") else { return };
    let said = |settings: &[(&str, &str)]| doubles.run("open", settings);
    let old = said(&[("DOUBLE_VERSION", "11040")]);
    assert!(
        old.contains("its driver is for CUDA 11.4, and 12.0 is the oldest that serves"),
        "{old}"
    );
    let none = said(&[("DOUBLE_DEVICES", "0")]);
    assert!(none.contains("the driver lists 0"), "{none}");
    let full = said(&[("DOUBLE_MEMORY", "8388608")]);
    assert!(full.contains("CUDA_ERROR_OUT_OF_MEMORY: out of memory"), "{full}");
    // A driver alone does not do.
    std::fs::remove_file(doubles.folder.join("libnvrtc.so")).unwrap();
    let compiler =
        said(&[("CUDA_HOME", "/nowhere"), ("CUDA_PATH", "/nowhere"), ("VIRTUAL_ENV", "/nowhere")]);
    assert!(compiler.contains("NVRTC, which compiles its kernels, was not found"), "{compiler}");
    std::fs::remove_file(doubles.folder.join("libcuda.so.1")).unwrap();
    let driver = said(&[]);
    assert!(
        driver.contains("no NVIDIA driver: libcuda.so.1 is not in the loader's path"),
        "{driver}"
    );
}

#[test]
fn a_card_without_room_says_who_holds_it_and_goes_on() {
    let Some(doubles) = Doubles::new("room") else { return };
    let said = doubles.run("room", &[("DOUBLE_MEMORY", "67108864")]);
    assert!(said.contains("went on: 3 3 3"), "{said}");
    assert!(said.contains("64.00 MiB") && said.contains("held by"), "{said}");
}

#[test]
fn an_index_out_of_range_is_caught_and_the_update_does_not_happen() {
    let Some(doubles) = Doubles::new("index") else { return };
    let said = doubles.run("index", &[]);
    assert!(
        said.contains(
            "caught: assign_rows: index 9 at position 1 is out of range for an axis of 4"
        ),
        "{said}"
    );
    assert!(
        said.contains("before: 1 1 1 1 1 1 1 1") && said.contains("after: 2 2 1 1 2 2 1 1"),
        "{said}"
    );
}

#[test]
fn a_loss_that_is_not_finite_is_caught_on_the_device_and_the_update_does_not_happen() {
    let Some(doubles) = Doubles::new("loss") else { return };
    let said = doubles.run("loss", &[]);
    let caught = "caught: assertion failed: `the loss` has 1 NaN and 0 infinite of 1 elements";
    assert!(said.contains(caught), "{said}");
    assert!(said.contains("before: 1 1\nafter: 2 2\n"), "{said}");
    let eagerly = "eagerly: assertion failed: `x` has 1 NaN and 1 infinite of 3 elements";
    assert!(said.contains(eagerly) && said.contains("went on: 3 3"), "{said}");
}

#[test]
fn what_is_added_to_a_product_is_part_of_it() {
    let Some(doubles) = Doubles::new("added") else { return };
    let said = doubles.run("added", &[]);
    assert!(!said.contains("the same: false"), "{said}");
    let joined: Vec<bool> = said
        .lines()
        .filter(|line| line.contains("the same: true"))
        .map(|line| line.contains("joined: true"))
        .collect();
    let (by_column_or_element, otherwise) = (7, 3);
    assert!(joined[..by_column_or_element].iter().all(|joined| *joined), "{said}");
    assert!(!joined[by_column_or_element..][..otherwise].contains(&true), "{said}");
    // Without a sum it is planned, and each step runs by itself.
    assert_eq!(joined[by_column_or_element + otherwise..], [true; 6], "{said}");
}

#[test]
fn what_a_budget_spills_is_copied_in_a_lane_of_its_own_to_memory_that_is_pinned() {
    let Some(doubles) = Doubles::new("spill") else { return };
    let log = doubles.folder.join("calls");
    let said = doubles.run("spill", &[("DOUBLE_LOG", log.to_str().unwrap())]);
    // The double copies when a copy is awaited and no earlier: one that was forgotten would change a bit.
    assert!(said.contains("the same: true") && !said.contains("the same: false"), "{said}");
    let calls = std::fs::read_to_string(log).unwrap();
    let count = |name: &str| {
        let found =
            calls.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u32>().ok());
        found.unwrap_or(0)
    };
    let (pinned, budgets) = (count("cuMemHostRegister_v2 "), said.matches("the same").count());
    assert!(pinned > 0 && count("cuStreamWaitEvent ") > 0, "{calls}");
    // Of three calls the last has the memory of the one before, pinned as it is.
    assert!(pinned as usize <= 2 * budgets, "{calls}");
    assert_eq!(pinned, count("cuMemHostUnregister ") + count("pinned "), "{calls}");
}

#[test]
fn rows_that_a_mask_selects_are_as_many_as_the_device_says() {
    let Some(doubles) = Doubles::new("rows") else { return };
    let said = doubles.run("rows", &[]);
    assert!(said.contains("taken: 1 2 5 6.\nplanned: 10 20 50 60.\nat: [0, 2]"), "{said}");
    assert!(said.contains("taken: .\nplanned: .\nat: []"), "{said}");
    assert!(said.contains("taken: 1 2 3 4 5 6.\nplanned: 10 20 30 40 50 60."), "{said}");
}

#[test]
fn what_leaves_a_device_under_a_limit_waits_in_host_memory_that_is_pinned() {
    let Some(doubles) = Doubles::new("evict") else { return };
    let log = doubles.folder.join("calls");
    let said = doubles.run("evict", &[("DOUBLE_LOG", log.to_str().unwrap())]);
    assert!(said.contains("20.00 MiB away, the same: true"), "{said}");
    let calls = std::fs::read_to_string(log).unwrap();
    assert!(calls.contains("cuMemHostRegister_v2 "), "{calls}");
}

#[test]
fn a_product_of_odd_lengths_is_one_of_whole_accesses_and_a_rest() {
    let Some(doubles) = Doubles::new("odd") else { return };
    let log = doubles.folder.join("products");
    let said = doubles.run("odd", &[("DOUBLE_PRODUCTS", log.to_str().unwrap())]);
    assert_eq!(said.matches("near: true").count(), 3, "{said}");
    let products = std::fs::read_to_string(log).unwrap();
    // Logits, the gradient of what goes in, whose short sum comes first, and that of the table's transpose.
    let wanted = [
        "512 x 1024 x 1024, leads 1024 1024 1032, share 0",
        "512 x 1 x 1024, leads 1024 1024 1032, share 0",
        "512 x 1024 x 1, leads 1032 1024 1024, share 0",
        "512 x 1024 x 1024, leads 1032 1024 1024, share 1",
        "1024 x 1024 x 512, leads 1024 1032 1032, share 0",
        "1024 x 1 x 512, leads 1024 1032 1032, share 0",
    ];
    let mut made: Vec<&str> = products.lines().collect();
    let place = |line: &str| made.iter().position(|made| *made == line);
    assert!(place(wanted[2]) < place(wanted[3]), "{products}");
    made.sort_unstable();
    let mut wanted = wanted.to_vec();
    wanted.sort_unstable();
    assert_eq!(made, wanted);
}

#[test]
fn a_kernel_that_cannot_be_compiled_and_products_without_their_library_are_errors_of_what_asked() {
    let Some(doubles) = Doubles::new("unmade") else { return };
    let said = doubles.run("unmade", &[("DOUBLE_REFUSE", "const C LOWEST")]);
    assert!(said.contains("softmax: cuda:0 failed: NVRTC"), "{said}");
    assert_eq!(said.matches("went on: 2 2 2").count(), 2, "{said}");
    std::fs::remove_file(doubles.folder.join("libcublasLt.so")).unwrap();
    let nowhere =
        [("CUDA_HOME", "/nowhere"), ("CUDA_PATH", "/nowhere"), ("VIRTUAL_ENV", "/nowhere")];
    let said = doubles.run("unmade", &nowhere);
    assert!(said.contains("cuBLASLt, which multiplies matrices, was not found"), "{said}");
    assert_eq!(said.matches("went on: 2 2 2").count(), 2, "{said}");
}

#[test]
fn a_call_that_has_no_room_changes_no_variable_and_the_device_goes_on() {
    let Some(doubles) = Doubles::new("no-room") else { return };
    let said = doubles.run("no room", &[("DOUBLE_MEMORY", "67108864")]);
    assert!(said.contains("refused: ") && said.contains("64.00 MiB"), "{said}");
    assert!(said.contains("before: 1 1 1\nafter: 2 2 2\n"), "{said}");
}

#[test]
fn processes_share_kernels_on_disk_and_a_damaged_file_is_compiled_anew() {
    let Some(doubles) = Doubles::new("kernels") else { return };
    let begin = |settings: &[(&str, &str)]| {
        doubles.command("compute", settings).stdout(Stdio::piped()).spawn().unwrap()
    };
    // Two that find nothing, at once.
    for child in [begin(&[]), begin(&[])] {
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(said.contains("computed: 3 5 7"), "{said}");
    }
    // All is there now: nothing is compiled.
    let never = [("DOUBLE_COMPILER", "/nowhere/compiler")];
    assert!(doubles.run("compute", &never).contains("computed: 3 5 7"));
    let kernels = doubles.folder.join("cache/tonnage/kernels");
    let files = || std::fs::read_dir(&kernels).unwrap().map(|entry| entry.unwrap().path());
    assert!(files().count() > 0 && files().all(|path| path.extension().unwrap() == "cubin"));
    for path in files() {
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    let said = doubles.run("compute", &never);
    assert!(said.contains("refused: ") && said.contains("NVRTC"), "{said}");
    assert!(doubles.run("compute", &[]).contains("computed: 3 5 7"));
    assert!(doubles.run("compute", &never).contains("computed: 3 5 7"));
}

#[test]
fn a_kernel_that_fails_in_a_call_that_spills_ends_the_call_and_leaves_no_memory_pinned_or_held() {
    let Some(doubles) = Doubles::new("fails-late") else { return };
    let said = doubles.run("fails late", &[("DOUBLE_FAIL", "60")]);
    assert!(said.contains("nothing runs on it in this process any more"), "{said}");
    assert!(said.contains("held by the host as before: true"), "{said}");
    assert!(said.contains("on the host: 3 3 3"), "{said}");
}

#[test]
fn a_kernel_that_fails_loses_the_device_and_nothing_else() {
    let Some(doubles) = Doubles::new("fails") else { return };
    let said = doubles.run("fails", &[("DOUBLE_FAIL", "20")]);
    let lost = "nothing runs on it in this process any more";
    assert_eq!(said.matches(lost).count(), 3, "{said}");
    assert!(said.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{said}");
    assert!(said.contains("on the host: 3 3 3") && said.contains("restored: 1 1 1"), "{said}");
}

#[test]
fn steps_are_timed_by_the_clock_of_the_device_those_inside_of_loops_too() {
    let Some(doubles) = Doubles::new("timeline") else { return };
    let said = doubles.run("timeline", &[]);
    assert!(said.contains("x 3 in 1500 us"), "{said}");
}

#[test]
fn a_call_at_the_addresses_of_an_earlier_one_is_launched_as_one() {
    let Some(doubles) = Doubles::new("replay") else { return };
    let log = doubles.folder.join("calls");
    let said = doubles.run("replay", &[("DOUBLE_LOG", log.to_str().unwrap())]);
    for line in ["the same: true", "went on: true", "new numbers: true", "counted: true"] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(said.matches("caught: gather: index 9 at position 1").count(), 2, "{said}");
    assert_eq!(said.matches("as before: true").count(), 1, "{said}");
    let calls = std::fs::read_to_string(log).unwrap();
    let count = |name: &str| {
        let found =
            calls.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u32>().ok());
        found.unwrap_or(0)
    };
    // Of one rate and of another, each from its second call on; two that were told of bad data, and one behind them.
    let (made, launched) = (count("cuGraphInstantiateWithFlags "), count("cuGraphLaunch "));
    assert_eq!((made, launched), (2, 7 + 3 + 3), "{calls}");
    // One is recorded in vain for random numbers, and one for rows that only the device counts.
    assert_eq!(count("cuStreamBeginCapture_v2 "), 4, "{calls}");
}

#[test]
fn training_that_is_killed_goes_on_from_its_checkpoint() {
    let Some(doubles) = Doubles::new("killed") else { return };
    let mut child = doubles.command("train", &[]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // Some steps behind the second checkpoint.
    let _ = lines.map_while(Result::ok).find(|line| line.contains("step 25"));
    child.kill().unwrap();
    child.wait().unwrap();
    let said = doubles.run("go on", &[]);
    assert!(said.contains("restored at step 20: 20 20 20"), "{said}");
    assert!(said.contains("ended at step 30: 30 30 30"), "{said}");
}
