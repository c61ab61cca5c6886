//! Where bytes come from and go to: the system's pages, the ledger that counts every one of them, the
//! buffers and arenas that own them, and the threads that work on them.

pub mod arena;
pub mod array;
mod arriving;
pub mod backend;
pub mod buffer;
mod byte_range;
mod cache;
pub mod context;
pub mod eager;
pub mod emit;
pub mod events;
mod evict;
pub mod execute;
mod export;
pub mod interrupt;
pub mod ledger;
pub mod lend;
mod loan;
mod lock;
pub mod machine;
pub mod placement;
pub mod pool;
mod process;
pub mod processor;
pub mod random;
pub mod spill;
pub mod storage;
pub mod system;
mod ticks;
pub mod timeline;

pub use arena::Arena;
pub use array::{Alive, Array};
pub use arriving::{ArrivingArray, StagedArray, StagingBlocks};
pub use buffer::Buffer;
pub use context::{Context, Entered, host_ledger};
pub use export::ExportedArray;
pub use ledger::{Holder, Info, Ledger, Owner, Tally, leak_check};
pub use lock::FolderLock;
pub use placement::{DeviceScope, SoftCopy};
pub use pool::{WorkerPool, pool, set_threads};
pub use process::OwnFiles;
pub use storage::write_part;
