//! Reading a report: where the memory of a step goes, by kind, what would save the most, a chart, and files for other tools.
//!
//! `cargo run --release -p tonnage-examples reading_a_report` prints
//!
//!     peak ...
//!     by kind:
//!       704.00 KiB  activation x 11
//!     ...
//!     peak ... at step 26 of 73
//!     saved: report.html, report.csv, report.trace.json

use tonnage::report::{Picture, Report, save, save_html};
use tonnage::{DType, Elementwise, GradientTape, Result, Tensor, Variable, function, random_normal, set_seed};

pub fn main() -> Result<()> {
    set_seed(1);
    let w = Variable::new("w", (random_normal([32, 32], DType::F32)? * 0.2)?)?;
    let step = function(|x: Tensor| {
        let mut tape = GradientTape::new();
        let mut h = x;
        for _ in 0..12 {
            h = h.matmul(&w.read()?)?.tanh()?;
        }
        let loss = h.square()?.mean_all()?;
        w.assign_sub(&(tape.gradient(&loss, &[&w])?[0].tensor()? * 0.1)?)?;
        Ok(loss)
    });
    let x = Tensor::spec(DType::F32, [512, 32]);
    let plan = step.plan(&x)?;

    // In words: the peak by kind and by line, every step, and the lines that would pay most to change.
    println!("{}", plan.explain());

    // As a picture: what is live at each step.
    let picture = Picture::of_plan("twelve layers", &plan);
    println!("{}", picture.chart(72, 10, None, false).trim_end());

    // For a browser (the arena, what less memory costs, the table), a spreadsheet, and Perfetto.
    let folder = std::env::temp_dir().join(format!("tonnage-report-{}", std::process::id()));
    std::fs::create_dir_all(&folder).ok();
    save_html(folder.join("report.html"), &Report::new("twelve layers").plan(&plan).prices(step.prices(&x)?))?;
    save(folder.join("report.csv"), &picture)?;
    save(folder.join("report.trace.json"), &picture)?;
    println!("saved: report.html, report.csv, report.trace.json");
    std::fs::remove_dir_all(&folder).ok();
    Ok(())
}
