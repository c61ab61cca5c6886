//! What the tests share: calls whose memory is checked against the plan, byte for byte.
#![allow(dead_code, reason = "no test binary uses all of it")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

pub mod chain;
pub mod dice;
pub mod draw;
pub mod ops;
pub mod prints;
pub mod random;
pub mod refused;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use tonnage::{Bytes, Context, Elementwise, Entered, Function, Result, Tensor, Tree, memory};

/// A context of the test's own, until the guard is dropped: tests that run beside it share no ledger, random keys, limits,
/// listeners or settings with it. A thread that a test starts enters it too.
pub fn own_context() -> Entered {
    Context::new().enter()
}

/// What the harness calls a test of a module, whose path `module_path!()` says: for a test that starts itself as another process.
pub fn test_name(module: &str, test: &str) -> String {
    match module.split_once("::") {
        Some((_, within)) => format!("{within}::{test}"),
        None => test.to_string(),
    }
}

pub fn in_use() -> Bytes {
    memory::info("cpu:0").unwrap().in_use
}

/// A new folder, of a name that no other test has.
pub fn folder(name: &str) -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let own = format!("tonnage-{name}-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(own);
    // One of an earlier process of that number.
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).unwrap();
    path
}

/// A folder of its own, gone at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        Folder(folder(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Calls a function twice and checks that reserved = predicted, and used = predicted (at most that where data decide);
/// returns the first result.
#[track_caller]
pub fn call_checked<A: Tree, R: Tree, F: Fn(A) -> Result<R>>(f: &Function<A, R, F>, args: &A) -> R {
    let plan = f.plan(args).unwrap();
    let mut results = Vec::new();
    for _ in 0..2 {
        let before = in_use();
        memory::reset_peak("cpu:0").unwrap();
        let (result, measured) = f.call_measured(args.share()).unwrap();
        let reserved = memory::info("cpu:0").unwrap().peak - before;
        assert_eq!(reserved, plan.obtains(), "reserved and predicted\n{plan}");
        let used = measured.unwrap().used;
        if plan.is_bound {
            assert!(used <= plan.peak(), "used {used} and predicted {}\n{plan}", plan.peak());
        } else {
            assert_eq!(used, plan.peak(), "used and predicted\n{plan}");
        }
        results.push(result);
    }
    results.swap_remove(0)
}

#[track_caller]
pub fn close(got: &Tensor, expected: &[f64], tolerance: f64) {
    let got: Vec<f64> = match got.dtype() {
        tonnage::DType::F64 => got.to_vec::<f64>().unwrap(),
        _ => got.cast(tonnage::DType::F64).unwrap().to_vec::<f64>().unwrap(),
    };
    assert_eq!(got.len(), expected.len(), "{got:?} {expected:?}");
    for (a, b) in got.iter().zip(expected) {
        assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "{got:?}\n{expected:?}");
    }
}
