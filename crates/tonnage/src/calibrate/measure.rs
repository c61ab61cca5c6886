//! The measuring: each figure the best of a few runs, since whatever else the machine does only ever makes one worse.

use std::io::{Read, Seek, Write};
use std::time::Instant;

use tonnage_core::{Result, World};
use tonnage_plan::Machine;

use crate::{Tensor, function, make};

/// Runs of each.
const RUNS: usize = 5;
/// Of the product: 2 * 512^3 operations are a few milliseconds, and what a kernel is at its best with.
const SIDE: usize = 512;
/// Of what is moved: four times the cache of a core and more, so that memory answers.
const MOVED: usize = 4 << 20;
/// Of products that are just worth sharing among threads.
const SHARED: usize = 96;
/// Steps of the chain of small ones.
const STEPS: usize = 200;
/// Of the file.
const FILE: usize = 8 << 20;
/// Of what goes to each other rank.
const SENT: usize = 2 << 20;

/// The figures of this machine; those of the network as `before` has them, where there are no other ranks to send to.
pub(super) fn machine(world: &World, before: &Machine) -> Result<Machine> {
    let (write, read) = disk();
    let (flops, step) = (flops()?, step()?);
    let (bytes, fork) = (bytes()?, fork(flops, step)?);
    let (send, message) = network(world, (before.send, before.message))?;
    Ok(Machine { flops, bytes, step, fork, write, read, send, message, ..Machine::DEFAULT })
}

/// Bytes that go to other ranks in a second, and seconds that a message takes: those of the slowest rank, so that all plan with the same.
fn network(world: &World, before: (f64, f64)) -> Result<(f64, f64)> {
    if world.size() == 1 {
        return Ok(before);
    }
    let (engine, others) = (world.engine(), (world.size() - 1) as f64);
    let exchange = |block: usize| {
        let (from, mut to) = (vec![1; block * world.size()], vec![0; block * world.size()]);
        best(|| engine.all_to_all("calibrate", &from, &mut to))
    };
    let (short, long) = (exchange(1)?, exchange(SENT)?);
    let own = [(long - short).max(1e-9) / (SENT as f64 * others), short / others];
    let all = world.gather("calibrate", bytemuck::bytes_of(&own));
    let slowest = |at: usize| {
        let of = |said: &Vec<u8>| said.get(8 * at..8 * at + 8)?.try_into().ok();
        all.iter().filter_map(of).map(f64::from_le_bytes).fold(0.0, f64::max)
    };
    Ok((1.0 / slowest(0), slowest(1)))
}

/// The least time of some runs, in seconds; never nothing.
fn best(mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best.max(1e-9))
}

/// Numbers of ordinary size; not drawn, since that would change what the program draws next.
fn numbers(count: usize) -> Result<Tensor> {
    let values: Vec<f32> = (0..count).map(|i| ((i * 37 + 11) % 101) as f32 / 50.0 - 1.0).collect();
    make::tensor(values)
}

fn flops() -> Result<f64> {
    let square = || numbers(SIDE * SIDE)?.reshape([SIDE as i64, SIDE as i64]);
    let (a, b) = (square()?, square()?);
    let seconds = best(|| a.matmul(&b).map(drop))?;
    Ok(2.0 * (SIDE * SIDE * SIDE) as f64 / seconds)
}

fn bytes() -> Result<f64> {
    let (a, b) = (numbers(MOVED)?, numbers(MOVED)?);
    let seconds = best(|| (&a + &b).map(drop))?;
    Ok((3 * 4 * MOVED) as f64 / seconds)
}

fn step() -> Result<f64> {
    // A scan is a kernel of its own, whatever stands around it.
    let chain = function(|x: Tensor| {
        let mut x = x;
        for _ in 0..STEPS {
            x = x.cumsum(0)?;
        }
        Ok(x)
    });
    chain.run_eagerly(false);
    let x = make::tensor([0.0f32; 4])?;
    let seconds = best(|| chain.call(x.clone()).map(drop))?;
    Ok(seconds / STEPS as f64)
}

/// What a chain of products that are just worth sharing takes beyond their arithmetic.
fn fork(flops: f64, step: f64) -> Result<f64> {
    let chain = function(|(x, w): (Tensor, Tensor)| {
        let mut x = x;
        for _ in 0..STEPS {
            x = x.matmul(&w)?;
        }
        Ok(x)
    });
    chain.run_eagerly(false);
    let square = || numbers(SHARED * SHARED)?.reshape([SHARED as i64, SHARED as i64]);
    let (x, w) = (square()?, (square()? * (1.0 / SHARED as f64))?);
    let seconds = best(|| chain.call((x.clone(), w.clone())).map(drop))? / STEPS as f64;
    let work = 2.0 * (SHARED * SHARED * SHARED) as f64 / flops;
    // A machine that shares for nothing, or of one thread, has a figure too.
    Ok((seconds - work - step).max(1e-8))
}

/// Bytes to a file, on the disk, and bytes that come back from where the system still has them. Where no file can be
/// made, the figures that are built in.
fn disk() -> (f64, f64) {
    let path = std::env::temp_dir().join(format!("tonnage-calibrate-{}", std::process::id()));
    let run = || -> std::io::Result<(f64, f64)> {
        let mut file =
            std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        let mut bytes: Vec<u8> = (0..FILE).map(|i| (i * 7 % 251) as u8).collect();
        let a_second = |start: Instant| FILE as f64 / start.elapsed().as_secs_f64().max(1e-9);
        let start = Instant::now();
        file.write_all(&bytes)?;
        file.sync_data()?;
        let write = a_second(start);
        let start = Instant::now();
        file.rewind()?;
        file.read_exact(&mut bytes)?;
        Ok((write, a_second(start)))
    };
    let measured = run();
    let _ = std::fs::remove_file(&path);
    measured.unwrap_or((Machine::DEFAULT.write, Machine::DEFAULT.read))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_some_machine() {
        let machine = super::machine(&World::alone(), &Machine::DEFAULT).unwrap();
        // From a slow board, in a debug build, to a machine of the far future.
        let between = |x: f64, low: f64, high: f64| x > low && x < high;
        assert!(between(machine.flops, 1e6, 1e15), "{machine:?}");
        assert!(between(machine.bytes, 1e6, 1e14), "{machine:?}");
        assert!(between(machine.step, 1e-9, 1e-2), "{machine:?}");
        assert!(between(machine.fork, 1e-9, 1e-1), "{machine:?}");
        assert!(between(machine.write, 1e4, 1e12), "{machine:?}");
        assert!(between(machine.read, 1e4, 1e13), "{machine:?}");
        let network = (machine.send, machine.message);
        assert_eq!(network, (Machine::DEFAULT.send, Machine::DEFAULT.message));
    }
}
