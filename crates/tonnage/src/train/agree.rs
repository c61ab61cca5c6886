//! What the ranks of a job agree on between steps: whether to go on, and before the first step, that all are about to do the same.
//!
//! In a world of one rank nothing is asked.

use tonnage_core::error::bad_argument;
use tonnage_core::{Error, Result, World};
use tonnage_runtime::random;

use super::fit::Fit;
use crate::world;

/// The sum of a number of each rank, in rank order.
pub fn sum(world: &World, own: f64) -> f64 {
    let all = world.gather("fit", &own.to_le_bytes());
    let numbers = all.iter().filter_map(|bytes| bytes.as_slice().try_into().ok());
    numbers.fold(0.0, |sum, bytes| sum + f64::from_le_bytes(bytes))
}

/// Whether all ranks say so.
pub fn all(world: &World, own: bool) -> bool {
    world::all(world, "fit", own)
}

/// An error that all ranks have.
#[derive(Debug)]
pub struct Failed {
    error: Error,
    /// Whether this rank is the first that failed; others are told.
    is_own: bool,
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Error {
        failed.error
    }
}

impl Failed {
    /// The error of one process; of several, the rank whose it is ends all, and the others wait for that.
    pub fn end(self, world: &World) -> Error {
        if world.size() > 1 {
            match self.is_own {
                true => world.engine().abort(&self.error.to_string()),
                false => world.must(world.engine().barrier("the end of all ranks")),
            }
        }
        self.error
    }
}

/// What each rank came to: where one has an error, all have. One that has none is told of the first, and what it cannot do.
pub fn on_errors<T>(world: &World, cannot: &str, own: Result<T>) -> std::result::Result<T, Failed> {
    if world.size() == 1 {
        return own.map_err(|error| Failed { error, is_own: true });
    }
    let text = own.as_ref().err().map(Error::to_string).unwrap_or_default();
    let said = texts(world, &text);
    let first = said.iter().enumerate().find(|(_, text)| !text.is_empty());
    match (own, first) {
        (Ok(own), None) => Ok(own),
        (Ok(_), Some((rank, text))) => {
            let error =
                bad_argument("fit", format!("rank {rank} {cannot}: {text}"), "all ranks end");
            Err(Failed { error, is_own: false })
        }
        (Err(error), first) => {
            let is_own = first.is_none_or(|(rank, _)| rank == world.rank());
            Err(Failed { error, is_own })
        }
    }
}

/// A text of each rank, in rank order.
pub fn texts(world: &World, own: &str) -> Vec<String> {
    let lengths = world.gather("fit", &(own.len() as u64).to_le_bytes());
    let lengths: Vec<usize> = lengths.iter().map(|bytes| number(bytes) as usize).collect();
    let mut bytes = own.as_bytes().to_vec();
    bytes.resize(lengths.iter().copied().max().unwrap_or(0), 0);
    let said = world.gather("fit", &bytes);
    let said = said.iter().zip(lengths).map(|(bytes, length)| &bytes[..length.min(bytes.len())]);
    said.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
}

/// The number that rank 0 has.
pub fn first(world: &World, own: u64) -> u64 {
    world.gather("fit", &own.to_le_bytes()).first().map_or(own, |bytes| number(bytes))
}

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Before the first step: that all ranks are about to do the same, by what they would otherwise differ in later. `plan` is the plan of a step.
pub fn on_start(fit: &Fit, plan: &str, position: impl std::fmt::Debug) -> Result<()> {
    let own = [
        ("budget", format!("{:?}", fit.asked_budget())),
        ("order of rows (`Fit::seed`)", fit.seed.to_string()),
        ("random state (`set_seed`)", format!("{:?}", random::state())),
        ("checkpoint that it goes on from", format!("{position:?}")),
        ("number of steps", format!("{} {:?}", fit.epochs, fit.most)),
        ("plan of a step", plan.to_string()),
    ];
    world::agree(&fit.world, "fit", &own)
}
