//! What a rank takes of a job that runs on several, as a table: a line for each way to share the model among them.

use tonnage::train::ShardedPlan;

use super::args::TrainArgs;
use super::job::TrainJob;

/// Prints the table, where ranks were asked for.
pub fn show_ranks(args: &TrainArgs, job: &TrainJob) -> Result<(), String> {
    let Some(ranks) = args.ranks else { return Ok(()) };
    let batch = args.batch();
    say!("{ranks} ranks, each with batches of {batch} rows; of a rank:");
    say!("{:<16} {:>12} {:>14} {:>14}", "", "peak", "sent a step", "ms a step");
    for plan in job.shardings().map_err(|e| e.to_string())? {
        let ShardedPlan { sharding, peak, fits, sent, seconds } = plan;
        let over = if fits { "" } else { "  the least; over the budget" };
        let (peak, sent) = (peak.to_string(), sent.to_string());
        say!("{sharding:<16} {peak:>12} {sent:>14} {:>14.2}{over}", seconds * 1e3);
    }
    Ok(())
}
