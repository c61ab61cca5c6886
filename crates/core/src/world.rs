//! Processes that work together: their ranks, and what moves bytes between them.
//!
//! An [`Engine`] moves bytes and knows nothing of tensors; ops add, in rank order, so that the bits of a sum do not depend on the engine.
//! MPI is one (`crates/world`). A [`World`] of one rank needs none.
//!
//! The invariant: every rank makes the same calls in the same order. Where that fails, nothing can be repaired, so the job ends.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::error::{Error, Result, bad_argument};

/// Bytes up to which one message of the whole takes less time than two of a part.
pub const SMALL: usize = 64 << 10;

/// What moves bytes between ranks.
///
/// Blocks are equal parts of a slice, one for each rank, in rank order. Every method is called by all ranks, in the same order, with the same lengths. `op` is
/// what they are called for; a rank that waits too long names it.
pub trait Engine: Send + Sync {
    /// What it is, with its version.
    fn name(&self) -> String;

    /// The number of this process, from 0.
    fn rank(&self) -> usize;

    /// How many processes there are.
    fn size(&self) -> usize;

    /// Block `r` of `from` goes to rank `r`, and block `r` of `to` comes from it.
    ///
    /// # Errors
    /// Where bytes cannot be moved: other ranks may wait for this one then.
    fn all_to_all(&self, op: &'static str, from: &[u8], to: &mut [u8]) -> Result<()>;

    /// The block of this rank goes to all others, and theirs come here. Blocks have `block` bytes here; the last ones may have fewer, or none.
    ///
    /// # Errors
    /// As [`Engine::all_to_all`] has them.
    fn all_gather(&self, op: &'static str, block: usize, all: &mut [u8]) -> Result<()>;

    /// The bytes of rank `root` come to all others.
    ///
    /// # Errors
    /// As [`Engine::all_to_all`] has them.
    fn broadcast(&self, op: &'static str, root: usize, bytes: &mut [u8]) -> Result<()>;

    /// Waits until all ranks are here.
    ///
    /// # Errors
    /// As [`Engine::all_to_all`] has them.
    fn barrier(&self, op: &'static str) -> Result<()>;

    /// Bytes that this rank sent to others so far.
    fn sent(&self) -> u64;

    /// How long a rank waits for another before it ends the job; `None` is for ever.
    fn set_timeout(&self, timeout: Option<Duration>);

    /// Says why on standard error, and ends this process and all others.
    fn abort(&self, why: &str) -> !;
}

/// The ranks of a job. Clones are the same world.
///
/// ```
/// use tonnage_core::World;
/// let world = World::alone();
/// assert_eq!((world.rank(), world.size()), (0, 1));
/// ```
#[derive(Clone)]
pub struct World(Arc<dyn Engine>);

impl World {
    /// The ranks of an engine.
    pub fn new(engine: impl Engine + 'static) -> World {
        World(Arc::new(engine))
    }

    /// One rank: nothing moves.
    pub fn alone() -> World {
        World::new(Alone)
    }

    /// The first of so many ranks that are not there: plans are made for it, and nothing can be sent.
    ///
    /// ```
    /// use tonnage_core::World;
    /// let world = World::on_paper(1000);
    /// assert_eq!((world.rank(), world.size()), (0, 1000));
    /// assert!(world.engine().barrier("test").is_err());
    /// ```
    pub fn on_paper(ranks: usize) -> World {
        World::new(OnPaper(ranks.max(1)))
    }

    /// The number of this process, from 0.
    pub fn rank(&self) -> usize {
        self.0.rank()
    }

    /// How many processes there are.
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// Elements of a tensor of so many that one rank holds, where each has its block: the last ones may have fewer, or none.
    pub fn block(&self, elements: usize) -> usize {
        elements.div_ceil(self.size())
    }

    /// The elements of a tensor of so many that this rank holds.
    pub fn own_range(&self, elements: usize) -> Range<usize> {
        let block = self.block(elements);
        let first = (self.rank() * block).min(elements);
        first..(first + block).min(elements)
    }

    /// What moves bytes between them.
    pub fn engine(&self) -> &dyn Engine {
        &*self.0
    }

    /// How long a rank waits for another before it ends the job and says which one it waited for; `None`, as at first, is for ever.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        self.0.set_timeout(timeout);
    }

    /// What comes of a collective operation, or the end of the job: the others wait for bytes that do not come.
    pub fn must(&self, moved: Result<()>) {
        if let Err(error) = moved {
            self.0.abort(&error.to_string());
        }
    }

    /// What every rank has to say, in rank order: `own` must be as long on all of them.
    pub fn gather(&self, op: &'static str, own: &[u8]) -> Vec<Vec<u8>> {
        let mut all = vec![0; own.len() * self.size()];
        all[self.rank() * own.len()..][..own.len()].copy_from_slice(own);
        self.must(self.0.all_gather(op, own.len(), &mut all));
        match own.is_empty() {
            true => vec![Vec::new(); self.size()],
            false => all.chunks(own.len()).map(<[u8]>::to_vec).collect(),
        }
    }
}

/// One rank.
struct Alone;

impl Engine for Alone {
    fn name(&self) -> String {
        "one process".into()
    }

    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn all_to_all(&self, _: &'static str, from: &[u8], to: &mut [u8]) -> Result<()> {
        to.copy_from_slice(from);
        Ok(())
    }

    fn all_gather(&self, _: &'static str, _: usize, _: &mut [u8]) -> Result<()> {
        Ok(())
    }

    fn broadcast(&self, _: &'static str, _: usize, _: &mut [u8]) -> Result<()> {
        Ok(())
    }

    fn barrier(&self, _: &'static str) -> Result<()> {
        Ok(())
    }

    fn sent(&self) -> u64 {
        0
    }

    fn set_timeout(&self, _: Option<Duration>) {}

    fn abort(&self, why: &str) -> ! {
        eprintln!("{why}");
        std::process::exit(1)
    }
}

/// Ranks that are not there.
struct OnPaper(usize);

impl OnPaper {
    fn refused(&self, op: &'static str) -> Error {
        let what = format!("{} ranks that are there on paper alone", self.0);
        bad_argument(op, what, "start them by `mpirun`, and use the world that `join` gives")
    }
}

impl Engine for OnPaper {
    fn name(&self) -> String {
        "on paper".into()
    }

    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        self.0
    }

    fn all_to_all(&self, op: &'static str, _: &[u8], _: &mut [u8]) -> Result<()> {
        Err(self.refused(op))
    }

    fn all_gather(&self, op: &'static str, _: usize, _: &mut [u8]) -> Result<()> {
        Err(self.refused(op))
    }

    fn broadcast(&self, op: &'static str, _: usize, _: &mut [u8]) -> Result<()> {
        Err(self.refused(op))
    }

    fn barrier(&self, op: &'static str) -> Result<()> {
        Err(self.refused(op))
    }

    fn sent(&self) -> u64 {
        0
    }

    fn set_timeout(&self, _: Option<Duration>) {}

    fn abort(&self, why: &str) -> ! {
        eprintln!("{why}");
        std::process::exit(1)
    }
}

// A plan prints it, and is the same on every rank.
impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.size();
        write!(f, "{size} rank{}", if size == 1 { "" } else { "s" })
    }
}

impl PartialEq for World {
    fn eq(&self, other: &World) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for World {}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.size().hash(state);
    }
}

impl Serialize for World {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.size() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_of_one_rank_leaves_bytes_as_they_are() {
        let world = World::alone();
        let (mut all, mut to) = (vec![1, 2, 3], vec![0; 3]);
        world.must(world.engine().all_to_all("test", &[1, 2, 3], &mut to));
        world.must(world.engine().all_gather("test", 3, &mut all));
        world.must(world.engine().broadcast("test", 0, &mut all));
        world.must(world.engine().barrier("test"));
        assert_eq!((all, to), (vec![1, 2, 3], vec![1, 2, 3]));
        assert_eq!(world.gather("test", &[7, 8]), [[7, 8]]);
        assert_eq!(world.gather("test", &[]), [[]]);
    }

    #[test]
    fn blocks_of_all_ranks_are_the_whole_whatever_its_length() {
        for (ranks, elements) in [(1, 5), (3, 0), (3, 1), (3, 7), (4, 8), (4, 5), (1000, 24)] {
            let world = World::on_paper(ranks);
            let block = world.block(elements);
            assert!(block * ranks >= elements && block * ranks < elements + ranks);
            assert_eq!(world.own_range(elements), 0..block.min(elements), "{ranks} of {elements}");
        }
    }

    #[test]
    fn two_worlds_are_the_same_where_their_engine_is() {
        let (one, other) = (World::alone(), World::alone());
        assert_eq!(one, one.clone());
        assert_ne!(one, other);
        assert_eq!(format!("{one:?}"), "1 rank");
    }
}
