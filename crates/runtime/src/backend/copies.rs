//! Copies between a device and host memory that run beside its kernels: the lane of copies.
//!
//! A copy is begun behind all that was launched before it, and [`Backend::await_copy`](super::Backend::await_copy) puts what is launched
//! next behind the copy. Nobody waits on the host for either.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use tonnage_core::bytes::Bytes;
use tonnage_core::error::{ErrorKind, Result};

use super::Backend;
use crate::buffer::Buffer;
use crate::context::host_ledger;
use crate::ledger::Owner;

/// Host memory that copies go to and come from, pinned where the device can. Every copy that has not run holds it.
#[derive(Clone)]
pub struct HostBlock(Arc<Mutex<Buffer>>);

/// Some bytes of it.
#[derive(Debug, Clone)]
pub struct HostPart {
    block: HostBlock,
    range: Range<usize>,
}

/// The number of a copy that was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CopyTicket(pub u64);

impl HostBlock {
    /// So many bytes of host memory for copies of a device.
    ///
    /// # Errors
    /// Where the host has no memory for them.
    pub fn obtain(backend: &dyn Backend, bytes: Bytes, owner: Owner) -> Result<HostBlock> {
        let mut buffer = Buffer::obtain(&host_ledger(), bytes, owner)?;
        buffer.pin(backend);
        Ok(HostBlock(Arc::new(Mutex::new(buffer))))
    }

    /// Whether no copy, and nobody else, holds it.
    pub fn is_idle(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Those bytes of it.
    pub fn part(&self, at: usize, len: usize) -> HostPart {
        HostPart { block: self.clone(), range: at..at + len }
    }
}

impl HostPart {
    /// How many bytes.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// True for no bytes.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Works on the bytes.
    ///
    /// # Errors
    /// Where they leave their block, and what `f` says.
    pub fn with_bytes<R>(&self, f: impl FnOnce(&mut [u8]) -> Result<R>) -> Result<R> {
        let mut buffer = self.block.0.lock().unwrap_or_else(PoisonError::into_inner);
        match buffer.bytes_mut()?.get_mut(self.range.clone()) {
            Some(bytes) => f(bytes),
            None => {
                Err(ErrorKind::BadGraph { what: "a value is spilled to nowhere".into() }.into())
            }
        }
    }
}

impl fmt::Debug for HostBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostBlock")
    }
}
