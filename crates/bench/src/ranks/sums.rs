//! A sum of 64 MiB over ranks, beside `MPI_Allreduce` of the same library in the same processes: in turns, and what each takes of memory. Ours is in rank order, MPI's in an order of its own.

use std::time::Instant;

use tonnage::world::World;
use tonnage::{Bytes, Result, Tensor, function, ones};

use super::allreduce::Allreduce;
use super::{median, most, say};
use crate::measure::{highest, restart_peak};

/// Elements of the sum: 64 MiB of f32.
const SUM: usize = 16 << 20;
/// Rounds; the median of each counts.
const ROUNDS: usize = 15;

/// One way to make the sum; it says whether it could.
type Way<'a> = (&'a str, Box<dyn FnMut() -> Result<bool> + 'a>);

pub fn print(world: &World) -> Result<()> {
    let planned = function(|x: Tensor| x.all_reduce(world));
    // A recipe at first; a tensor with bytes of its own after the first sum.
    let mut own = Some(planned.call(ones([SUM])?)?);
    let given = planned.call(ones([SUM])?)?;
    let (from, mut to, mut in_place) = (vec![1.0f32; SUM], vec![1.0f32; SUM], vec![1.0f32; SUM]);
    // Alone nobody has started MPI.
    let mpi = if world.size() > 1 { Allreduce::find() } else { None };
    let mut ways: Vec<Way<'_>> = vec![
        (
            "planned, in place",
            Box::new(|| {
                if let Some(x) = own.take() {
                    own = Some(planned.call(x)?);
                }
                Ok(true)
            }),
        ),
        ("eager", Box::new(|| given.all_reduce(world).map(|_| true))),
    ];
    match &mpi {
        Some(mpi) => {
            ways.push(("MPI_Allreduce, in place", Box::new(|| Ok(mpi.sum(None, &mut in_place)))));
            ways.push(("MPI_Allreduce", Box::new(|| Ok(mpi.sum(Some(&from), &mut to)))));
        }
        None => say(world, "SKIPPED MPI_Allreduce: no MPI library"),
    }
    let mut all = vec![(0u64, Vec::new()); ways.len()];
    for _ in 0..ROUNDS {
        for ((name, way), (extra, times)) in ways.iter_mut().zip(&mut all) {
            let before = restart_peak();
            world.must(world.engine().barrier("bench"));
            let start = Instant::now();
            if !way()? {
                say(world, &format!("{name}: MPI refuses"));
                return Ok(());
            }
            times.push(most(world, start.elapsed().as_secs_f64()));
            *extra = highest().saturating_sub(before).max(*extra);
        }
    }
    let times: Vec<f64> = all.iter().map(|(_, times)| median(times.clone())).collect();
    for (((name, _), (extra, _)), time) in ways.iter().zip(&all).zip(&times) {
        // The result of the eager sum is new.
        let result = if *name == "eager" { 4 * SUM as u64 } else { 0 };
        let beside = Bytes::new(most(world, extra.saturating_sub(result) as f64) as u64);
        say(world, &format!("{name:<24} {:>8.1} ms, {beside} beside it", time * 1e3));
    }
    if let [planned, eager, mpi_in_place, mpi] = times[..] {
        let (planned, eager) = (planned / mpi_in_place, eager / mpi);
        say(world, &format!("in MPI_Allreduce's time: planned {planned:.2}, eager {eager:.2}"));
    }
    Ok(())
}
