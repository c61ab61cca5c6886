//! `tonnage calibrate`: the figures of this machine, measured, saved, and printed. Under `mpirun` those of the network too; rank 0 prints.

use std::process::ExitCode;

use tonnage::{Machine, world};

/// Arguments of `tonnage calibrate`.
#[derive(clap::Args)]
pub struct CalibrateArgs {
    /// Print the figures that are in use, and measure nothing.
    #[arg(long)]
    show: bool,
}

/// Measures and prints.
pub fn run(args: &CalibrateArgs) -> Result<ExitCode, String> {
    let say = |error: tonnage::Error| error.to_string();
    let world = world::join().map_err(say)?;
    let (name, machine) = match args.show {
        true => ("in use", tonnage::machine()),
        false => ("measured", tonnage::calibrate_across(&world).map_err(say)?),
    };
    if world.rank() > 0 {
        return Ok(ExitCode::SUCCESS);
    }
    say!("{:<26} {name:>12} {:>12}", "", "built in");
    let line = |what: &str, of: fn(&Machine) -> f64| {
        say!("{what:<26} {:>12.2} {:>12.2}", of(&machine), of(&Machine::DEFAULT));
    };
    line("GFLOP/s", |m| m.flops / 1e9);
    line("GB/s, memory", |m| m.bytes / 1e9);
    line("microseconds, a step", |m| m.step * 1e6);
    line("microseconds, to share it", |m| m.fork * 1e6);
    line("MB/s, to a file", |m| m.write / 1e6);
    line("MB/s, back from it", |m| m.read / 1e6);
    line("MB/s, to other ranks", |m| m.send / 1e6);
    line("microseconds, a message", |m| m.message * 1e6);
    Ok(ExitCode::SUCCESS)
}
