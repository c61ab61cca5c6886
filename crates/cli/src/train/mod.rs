//! `tonnage train` and `tonnage plan`: a small model learns, under a budget; or is told what that would take.

mod args;
mod job;
mod page;
mod ranks;
mod report;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tonnage::device::{self, DeviceScope};
use tonnage::io::can_save;
use tonnage::train::{EarlyStopping, Go, Log, Progress, Sharding};
use tonnage::world::{self, World};
use tonnage::{ErrorKind, memory};

pub use args::TrainArgs;
pub use job::{TrainJob, described};
use page::Page;
pub use ranks::show_ranks;
pub use report::found;

/// Whether somebody pressed Ctrl-C.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Says no where a budget is too small, and that the question was wrong otherwise.
pub fn answer(error: &tonnage::Error) -> Result<ExitCode, String> {
    match error.kind() {
        ErrorKind::OverBudget { .. } => {
            eprintln!("{error}");
            Ok(ExitCode::from(1))
        }
        _ => Err(error.to_string()),
    }
}

/// The same where every rank has an error: rank 0 says it, and the others wait until it is said.
fn answer_of_all(world: &World, error: &tonnage::Error) -> Result<ExitCode, String> {
    if world.size() == 1 {
        return answer(error);
    }
    if world.rank() == 0 {
        eprintln!("{error}");
    }
    world.must(world.engine().barrier("train"));
    Ok(ExitCode::from(1))
}

/// What a command makes is made on this device until what is returned is dropped.
pub fn on_device(name: Option<&str>) -> Result<Option<DeviceScope>, String> {
    name.map(device::scope).transpose().map_err(|e| e.kind().to_string())
}

/// The same for a command that runs nothing: a card that need not be here will do.
pub fn on_paper(name: Option<&str>) -> Result<Option<DeviceScope>, String> {
    match name {
        Some(card) if device::plan_for(card).is_ok() => Ok(None),
        other => on_device(other),
    }
}

/// `tonnage plan`: runs nothing.
pub fn plan(args: &TrainArgs) -> Result<ExitCode, String> {
    let _scope = on_paper(args.device.as_deref())?;
    let job = TrainJob::on_paper(args)?;
    show_ranks(args, &job)?;
    match job.plan() {
        Ok(plan) => {
            say!("{plan}");
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => answer(&error),
    }
}

/// `tonnage train`: on one rank, or on all that a launcher started. Rank 0 speaks and writes for all.
pub fn run(args: &TrainArgs) -> Result<ExitCode, String> {
    if let Some(ranks) = args.ranks {
        return Err(format!(
            "`--ranks {ranks}` is for `plan` and `explain`: start ranks by `mpirun -n {ranks}`"
        ));
    }
    let world = world::join().map_err(|e| e.to_string())?;
    world.set_timeout(args.timeout.map(Duration::from_secs));
    let speaks = world.rank() == 0;
    let _scope = on_device(args.device.as_deref())?;
    // Now, and not when all is learned.
    for path in [&args.report, &args.page()].into_iter().filter(|_| speaks) {
        can_save(path).map_err(|e| e.to_string())?;
    }
    let job = TrainJob::across(args, &world)?;
    let plan = match job.plan() {
        Ok(plan) => plan,
        Err(error) => return answer_of_all(&world, &error),
    };
    if let Some(folder) = args.checkpoint.as_ref().filter(|_| speaks) {
        job.describe(folder)?;
    }
    // The step that runs is finished, and a checkpoint saved; a second Ctrl-C ends it at once.
    let stop = || {
        if STOPPED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(stop).map_err(|e| format!("Ctrl-C cannot be caught ({e})"))?;
    let bar = if speaks { bar() } else { ProgressBar::hidden() };
    let after = |progress: &Progress| {
        show(&bar, progress);
        if STOPPED.load(Ordering::Relaxed) { Go::Stop } else { Go::On }
    };
    let log = match args.log.as_ref().filter(|_| speaks) {
        None => None,
        Some(path) if path.extension().is_some_and(|e| e == "csv") => Some(Log::csv(path)),
        Some(path) => Some(Log::json(path)),
    };
    let log = log.transpose().map_err(|e| e.to_string())?;
    let after = (after, log, args.patience.map(EarlyStopping::new));
    let loss = |said: &_, truth: &_| job.task.loss(said, truth);
    let recording = memory::record("cpu:0").map_err(|e| e.to_string())?;
    let made = job.fit.run_with(&job.model, &job.optimizer, &job.data.learn, loss, after);
    bar.finish_and_clear();
    let page = Page { args, job: &job, plan: &plan, timeline: recording.finish() };
    let history = match made {
        Ok(history) => history,
        Err(error) => {
            // Why it failed is what matters: where the disk is full, the page cannot be written either.
            if speaks && let Err(also) = page.save(Err(&error)) {
                eprintln!("{also}");
            }
            return answer_of_all(&world, &error);
        }
    };
    let stopped = world.gather("train", &[u8::from(STOPPED.load(Ordering::Relaxed))]);
    let stopped = stopped.iter().position(|said| said == &[1]);
    // All ranks gather the parameters, where they hold blocks of them.
    if speaks || history.sharding == Sharding::Weights {
        let found = found(job.task, &*job.model, &job.data.held_out).map_err(|e| e.to_string())?;
        if speaks {
            report::write(args, &job, &plan, (&history, found), &page)?;
        }
    }
    let Some(rank) = stopped else { return Ok(ExitCode::SUCCESS) };
    let who = match world.size() {
        1 => "stopped".to_string(),
        _ => {
            format!("rank {rank} was interrupted, all stopped after step {}", history.position.step)
        }
    };
    match args.checkpoint.as_ref().filter(|_| speaks) {
        Some(folder) => say!("{who}; `--resume` goes on from {}", folder.display()),
        None if speaks => say!("{who}; with `--checkpoint FOLDER` it could go on from here"),
        None => {}
    }
    if world.size() == 1 {
        return Ok(ExitCode::SUCCESS);
    }
    // The first that ends with another status ends all: when everything is said and written.
    world.must(world.engine().barrier("train"));
    Ok(ExitCode::from(130))
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let template = "{bar:24} {pos}/{len} {msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

fn show(bar: &ProgressBar, progress: &Progress) {
    let Progress { position, steps, loss, rows_per_second, held, measured, predicted } = progress;
    bar.set_length(steps.unwrap_or(position.step));
    bar.set_position(position.step);
    bar.set_message(format!(
        "loss {loss:.4}, {rows_per_second:.0} rows/s, {held} held, peak {measured} of {predicted} predicted"
    ));
}
