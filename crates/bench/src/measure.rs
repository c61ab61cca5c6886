//! How a workload is measured: memory as the most that was resident above a process that ran a tiny case of it, on a device as the most that
//! its ledger held; time as the median of its steps, the first call by itself.

use std::fs;
use std::sync::Arc;
use std::time::Instant;

use tonnage::{Bytes, Plan, Result, device, memory};

use crate::sizes::WorkloadSizes;
use crate::workloads::Workload;

/// What `run` was told.
pub struct Settings {
    /// What a step may take, where it is limited.
    pub budget: Option<String>,
    /// How long steps are repeated.
    pub seconds: f64,
    /// Where it runs.
    pub device: String,
}

/// A workload that is ready to run.
pub struct PreparedWorkload {
    /// Runs once.
    pub step: Box<dyn FnMut() -> Result<()>>,
    /// What it holds between steps, once it ran: parameters, optimizer state and inputs.
    pub state: Box<dyn Fn() -> Result<Bytes>>,
    /// What is known beforehand, of a planned step.
    pub plan: Option<Box<dyn Fn() -> Result<Arc<Plan>>>>,
    /// Calls in a step: of the smallest ops many, so that the clock is none of what is measured.
    pub calls: usize,
}

/// What was measured.
pub struct Measurement {
    pub first: f64,
    pub step: f64,
    /// What the threads ran in a step, added up, where the system says it: on a machine that others use as well it says more
    /// than the clock.
    pub cpu: Option<f64>,
    pub peak: u64,
    pub state: u64,
    /// What a step takes on top of the state, as its plan says.
    pub predicted: Option<u64>,
    /// Seconds that its plan expects it to take on what it was made for.
    pub expected: Option<f64>,
}

/// Steps that are run after the first, where they are not long.
const LEAST: usize = 5;

/// Steps that are run at most: the times of more would be what a workload of small steps takes.
const MOST: usize = 20_000;

/// Steps end after this many times the seconds that they were to be repeated for, however few there were.
const LONG: f64 = 4.0;

pub fn measure(
    workload: &Workload,
    sizes: &WorkloadSizes,
    settings: &Settings,
) -> Result<Measurement> {
    let device = &settings.device;
    let is_host = device == "cpu:0";
    let _scope = device::scope(device)?;
    let mut tiny = (workload.make)(&sizes.tiny(), None)?;
    (tiny.step)()?;
    drop(tiny);
    memory::reset_peak(device)?;
    let before = if is_host { restart_peak() } else { 0 };
    let mut job = (workload.make)(sizes, settings.budget.as_deref())?;
    // The first call traces and plans.
    let start = Instant::now();
    (job.step)()?;
    let first = start.elapsed().as_secs_f64() / job.calls as f64;
    let plan = job.plan.as_ref().map(|plan| plan()).transpose()?;
    let mut times = Vec::new();
    let (ran, start) = (cpu(), Instant::now());
    loop {
        let step = Instant::now();
        (job.step)()?;
        times.push(step.elapsed().as_secs_f64() / job.calls as f64);
        let elapsed = start.elapsed().as_secs_f64();
        let seconds = if times.len() < LEAST { LONG * settings.seconds } else { settings.seconds };
        if elapsed >= seconds || times.len() == MOST {
            break;
        }
    }
    let calls = (times.len() * job.calls) as f64;
    let cpu = cpu().zip(ran).map(|(now, before)| (now - before) / calls);
    times.sort_by(f64::total_cmp);
    let state = (job.state)()?.get();
    Ok(Measurement {
        first,
        step: times[times.len() / 2],
        cpu,
        peak: match is_host {
            true => highest().saturating_sub(before),
            false => memory::info(device)?.peak_reserved.get(),
        },
        state,
        predicted: plan.as_ref().map(|plan| plan.obtains().get()),
        expected: plan.map(|plan| plan.seconds(&plan.target.machine())),
    })
}

/// Lets the system's mark of the most that was resident start from now, where the system has one; returns what is resident.
pub fn restart_peak() -> u64 {
    // Elsewhere than on Linux the mark counts from the start of the process.
    let _ = fs::write("/proc/self/clear_refs", "5");
    memory::resident().unwrap_or(Bytes::ZERO).get()
}

/// Seconds that the threads of this process ran, where the system says it.
fn cpu() -> Option<f64> {
    let nanoseconds = |thread: std::io::Result<fs::DirEntry>| {
        let line = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        line.split(' ').next()?.parse::<f64>().ok()
    };
    let threads = fs::read_dir("/proc/self/task").ok()?;
    threads.map(nanoseconds).sum::<Option<f64>>().map(|nanoseconds| nanoseconds / 1e9)
}

/// The most that was resident.
pub fn highest() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.map_or_else(|| memory::resident().unwrap_or(Bytes::ZERO).get(), |kib| kib * 1024)
}
