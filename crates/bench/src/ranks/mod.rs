//! Several ranks, under `mpirun`; rank 0 prints.
//!
//! `sharding`: what each rank holds, sends and takes, for every sharding. `sums`: a sum over ranks beside `MPI_Allreduce`, by `allreduce`. `steps`: a step of all ranks beside a step of one.

mod allreduce;
mod sharding;
mod steps;
mod sums;

use tonnage::Result;
use tonnage::world::{self, World};

/// Measures ranks, and prints what it found.
pub type Measurement = fn(&World) -> Result<()>;

/// What can be measured of ranks, and how.
pub const ALL: [(&str, Measurement); 3] =
    [("sharding", sharding::print), ("sums", sums::print), ("steps", steps::print)];

/// Prints the figures of these ranks.
pub fn print(of: Measurement) -> Result<()> {
    let world = world::join()?;
    say(&world, &format!("{} ranks, {}", world.size(), world.engine().name()));
    of(&world)
}

/// Prints a line once.
fn say(world: &World, line: &str) {
    if world.rank() == 0 {
        println!("{line}");
    }
}

/// The most of a number of all ranks.
fn most(world: &World, own: f64) -> f64 {
    let all = world.gather("bench", &own.to_le_bytes());
    let numbers = all.iter().filter_map(|bytes| bytes.as_slice().try_into().ok());
    numbers.map(f64::from_le_bytes).fold(0.0, f64::max)
}

/// The number in the middle.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}
