//! What the ranks of a job agree on between steps: whether to go on, and before the first step, that all are about to do the same.
//!
//! In a world of one rank nothing is asked.

use tonnage_core::error::bad_argument;
use tonnage_core::{Error, Result, World};
use tonnage_runtime::processor::Processor;
use tonnage_runtime::random;

use super::fit::Fit;

/// What a rank says of an error to others, at most, in bytes.
const TEXT: usize = 1024;

/// The sum of a number of each rank, in rank order.
pub fn sum(world: &World, own: f64) -> f64 {
    let all = world.gather("fit", &own.to_le_bytes());
    let numbers = all.iter().filter_map(|bytes| bytes.as_slice().try_into().ok());
    numbers.fold(0.0, |sum, bytes| sum + f64::from_le_bytes(bytes))
}

/// Whether all ranks say so.
pub fn all(world: &World, own: bool) -> bool {
    match world.size() {
        1 => own,
        _ => world.gather("fit", &[u8::from(own)]).iter().all(|said| said == &[1]),
    }
}

/// What each rank came to: where one has an error, all have. One that has none is told of the first.
pub fn on_errors<T>(world: &World, own: Result<T>) -> Result<T> {
    if world.size() == 1 {
        return own;
    }
    let text = own.as_ref().err().map(Error::to_string).unwrap_or_default();
    let mut bytes = text.into_bytes();
    bytes.resize(TEXT, 0);
    let said = world.gather("fit", &bytes);
    let failed = said.iter().enumerate().find(|(_, text)| text.first() != Some(&0));
    match (own, failed) {
        (Ok(_), Some((rank, text))) => {
            let text = String::from_utf8_lossy(text);
            let what = format!("rank {rank} cannot start: {}", text.trim_end_matches('\0'));
            Err(bad_argument("fit", what, "all ranks end"))
        }
        (own, _) => own,
    }
}

/// Before the first step: that all ranks are about to do the same, by what they would otherwise differ in later. `plan` is the plan of a step.
pub fn on_start(fit: &Fit, plan: &str, position: impl std::fmt::Debug) -> Result<()> {
    if fit.world.size() == 1 {
        return Ok(());
    }
    let processor = Processor::of_this_machine();
    let own = [
        ("version of Tonnage", hash(env!("CARGO_PKG_VERSION"))),
        ("instruction set", hash(&format!("{} {:?}", processor.vectors, processor.matrix_unit))),
        ("budget", hash(&format!("{:?}", fit.budget_bytes()))),
        ("order of rows (`Fit::seed`)", hash(&fit.seed.to_string())),
        ("random state (`set_seed`)", hash(&format!("{:?}", random::state()))),
        ("checkpoint that it goes on from", hash(&format!("{position:?}"))),
        ("number of steps", hash(&format!("{} {:?}", fit.epochs, fit.most))),
        ("plan of a step", hash(plan)),
    ];
    let bytes: Vec<u8> = own.iter().flat_map(|(_, hash)| hash.to_le_bytes()).collect();
    let said = fit.world.gather("fit", &bytes);
    let differs =
        |at: usize| (0..said.len()).find(|rank| said[*rank][at..at + 8] != said[0][at..at + 8]);
    let found = (0..own.len()).find_map(|i| Some((own[i].0, differs(8 * i)?)));
    match found {
        None => Ok(()),
        Some((what, rank)) => {
            let what = format!("the {what} of rank {rank} is not that of rank 0");
            Err(bad_argument("fit", what, "start all ranks with the same program and options"))
        }
    }
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}
