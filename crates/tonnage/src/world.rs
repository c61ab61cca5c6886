//! Several processes that work together: the ranks of a job, started by `mpirun` or the like.
//!
//! ```
//! let world = tonnage::world::join()?;
//! println!("rank {} of {}", world.rank(), world.size());
//! # assert_eq!((world.rank(), world.size()), (0, 1));
//! # Ok::<(), tonnage::Error>(())
//! ```

pub use tonnage_world::{Engine, Found, World, find, join, started_ranks};
