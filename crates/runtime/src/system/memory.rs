//! Memory that is not the host's.

use std::fmt;
use std::num::NonZero;

use tonnage_core::{Bytes, Device, Error, Result};

/// Keeps pages of the host where they are, for a device to copy at full speed. Dropping it lets go of them.
pub trait HostPin: fmt::Debug + Send + Sync {}

/// The memory of a device. Addresses mean something to the device alone.
///
/// What is asked of it happens after all that was launched before: a copy sees what kernels wrote, and bytes that are released may
/// still be read by what waits in the device's queue.
pub trait Memory: fmt::Debug + Send + Sync {
    /// Whose it is.
    fn device(&self) -> Device;

    /// What a block takes that holds that many bytes: the rule of the device's target too.
    fn block(&self, bytes: Bytes) -> Bytes;

    /// That many bytes, by their address; what they hold is not said. `None` where there are no more.
    fn obtain(&self, len: usize) -> Option<NonZero<usize>>;

    /// Gives back a block, whole: its address and length as they were obtained.
    fn release(&self, address: NonZero<usize>, len: usize);

    /// What was obtained from the system and is no block's: the rest of pages that several blocks share.
    fn idle(&self) -> Bytes {
        Bytes::ZERO
    }

    /// What the system says is taken of it, by whomever; `None` where it does not say.
    fn taken(&self) -> Option<Bytes> {
        None
    }

    /// Why it gives no memory, where that is not that it has none: the device failed.
    fn failure(&self) -> Option<Error> {
        None
    }

    /// Gives back what is idle and can be.
    fn give_up(&self) {}

    /// Copies bytes of the host to that address.
    ///
    /// # Errors
    /// Where the device failed, at this or at what was launched before.
    fn copy_in(&self, from: &[u8], to: usize) -> Result<()>;

    /// Copies bytes from that address to the host.
    ///
    /// # Errors
    /// As [`Memory::copy_in`].
    fn copy_out(&self, from: usize, to: &mut [u8]) -> Result<()>;

    /// Copies bytes from one address to another.
    ///
    /// # Errors
    /// As [`Memory::copy_in`].
    fn copy_within(&self, from: usize, to: usize, len: usize) -> Result<()>;
}
