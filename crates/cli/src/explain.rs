//! `tonnage explain`: what training would take and why, what would save the most, a chart, and files for other tools. Runs
//! nothing.

use std::path::PathBuf;
use std::process::ExitCode;

use tonnage::io::can_save;
use tonnage::report::{Picture, Report, is_coloured, save, save_html};
use tonnage::{Budget, Bytes, Plan, Price};

use crate::train::{self, TrainJob, answer};

/// Columns and lines of the chart.
const CHART: (usize, usize) = (80, 14);

/// Arguments of `tonnage explain`.
#[derive(clap::Args)]
// Those of the job are a group of that name already.
#[group(id = "explain")]
pub struct ExplainArgs {
    #[command(flatten)]
    job: train::TrainArgs,
    /// A file to save it as, by the end of its name: .html a page, .csv, .json, .trace.json for Perfetto, .pb.gz for pprof. May be given several
    /// times.
    #[arg(long, value_name = "FILE")]
    save: Vec<PathBuf>,
    /// Print every step.
    #[arg(long)]
    all: bool,
}

/// Explains.
pub fn run(args: &ExplainArgs) -> Result<ExitCode, String> {
    let say = |error: tonnage::Error| error.to_string();
    for path in &args.save {
        can_save(path).map_err(say)?;
    }
    let _scope = train::on_paper(args.job.device.as_deref())?;
    let job = TrainJob::on_paper(&args.job)?;
    train::show_ranks(&args.job, &job)?;
    let plan = match job.plan() {
        Ok(plan) => plan,
        Err(error) => return answer(&error),
    };
    let title = format!("training {}, a step", args.job.name());
    show(&title, &plan, args.job.budget.and_then(Budget::bytes), (args.all, &args.save), || {
        job.prices()
    })
}

/// Says what a plan takes and why, and saves its picture or report. Prices are asked for where a report is saved.
pub fn show(
    title: &str,
    plan: &Plan,
    budget: Option<Bytes>,
    (all, files): (bool, &[PathBuf]),
    prices: impl Fn() -> tonnage::Result<Vec<Price>>,
) -> Result<ExitCode, String> {
    let say = |error: tonnage::Error| error.to_string();
    let explained = plan.explain_on(&tonnage::machine());
    match all {
        true => say!("{explained:#}"),
        false => say!("{explained}"),
    }
    let picture = Picture::of_plan(title, plan);
    say!("{}", picture.chart(CHART.0, CHART.1, budget, is_coloured()).trim_end());
    for path in files {
        match path.extension().is_some_and(|end| end == "html") {
            true => {
                let mut report = Report::new(title).plan(plan).prices(prices().map_err(say)?);
                if let Some(budget) = budget {
                    report = report.budget(budget);
                }
                save_html(path, &report).map_err(say)?;
            }
            false => save(path, &picture).map_err(say)?,
        }
        say!("saved: {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}
