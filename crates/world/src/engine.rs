//! The engine over MPI: which bytes go where, and what becomes of a rank that does not come.
//!
//! Everything is sent from rank to rank, without the collectives of MPI. Those take memory that no plan knows (half of what they add up, in Open MPI and
//! MPICH), and cannot say which rank they wait for; a receive that is not done can.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use smallvec::SmallVec;
use tonnage_core::world::SMALL;
use tonnage_core::{Engine, Result, World};

use crate::mpi::{Mpi, Running, Transfer};
use crate::{Found, no_engine, search};

/// How often a rank that waits asks whether it was interrupted.
const ASK: Duration = Duration::from_millis(100);

/// How much longer a rank waits for the message of a lower rank before it speaks itself.
const TURN: Duration = Duration::from_secs(1);

/// The world of a process that was started as a rank, or alone.
pub fn world(started: Option<Option<usize>>) -> Result<World> {
    let shared = Mpi::shared().filter(Mpi::is_running);
    let (mpi, ranks) = match (shared, started) {
        (Some(mpi), _) => (mpi, None),
        (None, Some(ranks)) => (Mpi::load()?, ranks),
        (None, None) => return Ok(World::alone()),
    };
    let file = mpi.file().display().to_string();
    let engine =
        MpiEngine { running: mpi.start()?, timeout: AtomicU64::new(0), sent: AtomicU64::new(0) };
    let known = engine.size();
    match ranks.is_some_and(|ranks| ranks != known) {
        false => Ok(World::new(engine)),
        true => {
            let what =
                format!("{} ranks were started, and {file} knows of {known}", ranks.unwrap_or(0));
            let help = format!(
                "it is of another MPI than the launcher; name the launcher's library in {}",
                search::VARIABLE
            );
            Err(no_engine(what, &help))
        }
    }
}

/// The library that would be used, or the names that it was looked for under.
pub fn find() -> std::result::Result<Found, Vec<String>> {
    let mpi = Mpi::shared().or_else(|| Mpi::load().ok()).ok_or_else(search::names)?;
    Ok(Found { file: mpi.file().into(), version: mpi.version(), handles: mpi.handles() })
}

struct MpiEngine {
    running: Running,
    /// How long a rank waits, in milliseconds; 0 is for ever.
    timeout: AtomicU64,
    /// Bytes that were sent.
    sent: AtomicU64,
}

type Transfers<'a> = SmallVec<[Transfer<'a>; 16]>;

impl MpiEngine {
    fn exchange(&self, op: &'static str, transfers: &mut [Transfer<'_>]) -> Result<()> {
        let sent = transfers.iter().map(|transfer| match transfer {
            Transfer::Send(_, bytes) => bytes.len() as u64,
            Transfer::Receive(..) => 0,
        });
        self.sent.fetch_add(sent.sum(), Ordering::Relaxed);
        let mut asked = Duration::ZERO;
        let waiting = &mut |waited: Duration, late: &dyn Fn() -> Vec<usize>| {
            self.check(op, waited, late);
            if waited >= asked + ASK
                && let Some(is_interrupted) = crate::INTERRUPT.get()
            {
                asked = waited;
                if is_interrupted() {
                    self.abort(&format!(
                        "{op} was interrupted as it waited for {}",
                        ranks(&late())
                    ));
                }
            }
        };
        let refused = |code: i32| {
            self.abort(&format!("{op} cannot move bytes (MPI's code {code}); all ranks end"))
        };
        self.running.exchange(transfers, waiting, &refused);
        Ok(())
    }

    /// Ends the job where a rank waited too long. The lowest rank of those that wait says so, and the others give it time to.
    fn check(&self, op: &str, waited: Duration, late: &dyn Fn() -> Vec<usize>) {
        let timeout = match self.timeout.load(Ordering::Relaxed) {
            0 => return,
            milliseconds => Duration::from_millis(milliseconds),
        };
        if waited < timeout {
            return;
        }
        let late = late();
        let is_lowest = (0..self.rank()).all(|rank| late.contains(&rank));
        if is_lowest || waited >= timeout + TURN {
            self.abort(&too_late(op, timeout, &late));
        }
    }
}

/// What is said of ranks that did not come.
fn too_late(op: &str, timeout: Duration, late: &[usize]) -> String {
    format!("{op} waited {} s for {}; all ranks end", timeout.as_secs_f64(), ranks(late))
}

/// Ranks in words.
fn ranks(which: &[usize]) -> String {
    let numbers: Vec<String> = which.iter().map(usize::to_string).collect();
    format!("rank{} {}", if which.len() == 1 { "" } else { "s" }, numbers.join(", "))
}

impl Engine for MpiEngine {
    fn name(&self) -> String {
        self.running.name()
    }

    fn rank(&self) -> usize {
        self.running.rank()
    }

    fn size(&self) -> usize {
        self.running.size()
    }

    fn all_to_all(&self, op: &'static str, from: &[u8], to: &mut [u8]) -> Result<()> {
        let (rank, block) = (self.rank(), from.len() / self.size());
        if block == 0 {
            return Ok(());
        }
        to[rank * block..][..block].copy_from_slice(&from[rank * block..][..block]);
        let mut transfers = Transfers::new();
        for (other, bytes) in to.chunks_exact_mut(block).enumerate().filter(|(r, _)| *r != rank) {
            transfers.push(Transfer::Receive(other, bytes));
        }
        for (other, bytes) in from.chunks_exact(block).enumerate().filter(|(r, _)| *r != rank) {
            transfers.push(Transfer::Send(other, bytes));
        }
        self.exchange(op, &mut transfers)
    }

    fn all_gather(&self, op: &'static str, block: usize, all: &mut [u8]) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        if block == 0 {
            return Ok(());
        }
        let mut transfers = Transfers::new();
        for (other, bytes) in all.chunks_mut(block).enumerate() {
            if other != rank {
                transfers.push(Transfer::Receive(other, bytes));
                continue;
            }
            let own = &*bytes;
            let others = (0..size).filter(|other| *other != rank);
            transfers.extend(others.map(|other| Transfer::Send(other, own)));
        }
        self.exchange(op, &mut transfers)
    }

    fn broadcast(&self, op: &'static str, root: usize, bytes: &mut [u8]) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let others = || (0..size).filter(move |other| *other != root);
        // Blocks are scattered, and gathered by all; the rest comes from the root, and all of what is small.
        let block = if bytes.len() > SMALL { bytes.len() / size } else { 0 };
        let (blocks, rest) = bytes.split_at_mut(block * size);
        let mut transfers = Transfers::new();
        match rank == root {
            true => {
                let (blocks, rest) = (&*blocks, &*rest);
                for other in others() {
                    transfers.push(Transfer::Send(other, &blocks[other * block..][..block]));
                    transfers.push(Transfer::Send(other, rest));
                }
            }
            false => {
                let own = &mut blocks[rank * block..][..block];
                transfers.push(Transfer::Receive(root, own));
                transfers.push(Transfer::Receive(root, rest));
            }
        }
        self.exchange(op, &mut transfers)?;
        drop(transfers);
        self.all_gather(op, block, blocks)
    }

    fn barrier(&self, op: &'static str) -> Result<()> {
        let mut here: SmallVec<[u8; 16]> = SmallVec::from_elem(0, self.size());
        self.all_gather(op, 1, &mut here)
    }

    fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    fn set_timeout(&self, timeout: Option<Duration>) {
        let milliseconds =
            timeout.map_or(0, |timeout| timeout.as_millis().clamp(1, u64::MAX.into()));
        self.timeout.store(milliseconds as u64, Ordering::Relaxed);
    }

    fn abort(&self, why: &str) -> ! {
        // In one piece, as the lines of all ranks come together.
        let line = format!("rank {}: {why}\n", self.rank());
        drop(std::io::stderr().write_all(line.as_bytes()));
        self.running.abort()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_do_not_come_are_named() {
        let seconds = Duration::from_secs(5);
        let one = too_late("all_reduce", seconds, &[1]);
        assert_eq!(one, "all_reduce waited 5 s for rank 1; all ranks end");
        let two = too_late("fit", Duration::from_millis(1500), &[0, 3]);
        assert_eq!(two, "fit waited 1.5 s for ranks 0, 3; all ranks end");
    }
}
