//! `cargo xtask bench compare A B`: what was kept of two commits, workload by workload.

use super::kept::{self, KeptRow};
use super::tables;

/// Prints what B takes beside A.
pub fn compare(a: &str, b: &str) -> Result<(), String> {
    let [before, after] = [a, b].map(|name| kept::read(&kept::find(name)?));
    let pairs = paired(&before?, &after?);
    if pairs.is_empty() {
        return Err(format!("`{a}` and `{b}` have no workload in common"));
    }
    for (name, row) in [(a, &pairs[0].0), (b, &pairs[0].1)] {
        println!("{name}: {}", row.machine);
    }
    tables::compared_head();
    for (before, after) in &pairs {
        tables::compared(before, after);
    }
    let own = || pairs.iter().filter(|(before, _)| before.program.starts_with("Tonnage"));
    let of = |figure: fn(&KeptRow) -> f64| mean(own().map(|(a, b)| figure(b) / figure(a)));
    println!(
        "\ngeometric means of Tonnage's: time {:.3}, cpu {:.3}, peak {:.3}",
        of(|row| row.figures.step),
        of(|row| row.figures.cpu),
        of(|row| row.figures.peak as f64)
    );
    Ok(())
}

/// Rows of the same workload and program.
fn paired(before: &[KeptRow], after: &[KeptRow]) -> Vec<(KeptRow, KeptRow)> {
    let is_same = |a: &KeptRow, b: &KeptRow| (&a.workload, &a.program) == (&b.workload, &b.program);
    let pair = |b: &KeptRow| Some((before.iter().find(|a| is_same(a, b))?.clone(), b.clone()));
    after.iter().filter_map(pair).collect()
}

/// The geometric mean of those that are numbers: what a system does not tell is 0 on both sides.
fn mean(ratios: impl Iterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> =
        ratios.filter(|ratio| ratio.is_finite() && *ratio > 0.0).map(f64::ln).collect();
    (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::mean;

    #[test]
    fn the_mean_is_geometric_and_leaves_out_what_is_unknown() {
        assert!((mean([0.5, 2.0, f64::NAN, 4.0].into_iter()) - 4.0f64.cbrt()).abs() < 1e-12);
    }
}
