//! The page about a run, for a browser.

use tonnage::report::{Report, save_html};
use tonnage::train::History;
use tonnage::{Budget, Plan, memory};

use super::args::TrainArgs;
use super::job::TrainJob;

/// What is on it.
pub struct Page<'a> {
    pub args: &'a TrainArgs,
    pub job: &'a TrainJob,
    pub plan: &'a Plan,
    pub timeline: memory::Timeline,
}

impl Page<'_> {
    /// Saves it, also of a run that failed: it shows how far that came.
    pub fn save(&self, came_to: Result<&History, &tonnage::Error>) -> Result<(), String> {
        let Page { args, job, plan, timeline } = self;
        let say = |error: tonnage::Error| error.to_string();
        let title = format!("training {}", args.name());
        let mut report = Report::new(&title).plan(plan).timeline(timeline);
        report = report.prices(job.prices().map_err(say)?);
        if let Some(budget) = args.budget.and_then(Budget::bytes) {
            report = report.budget(budget);
        }
        report = match came_to {
            Ok(history) => {
                let report = report.fact("steps", history.position.step);
                if history.steps == 0 { report } else { report.measured(history.measured) }
            }
            Err(error) => report.failed(error),
        };
        save_html(args.page(), &report).map_err(say)
    }
}
