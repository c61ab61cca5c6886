//! Where the bytes of a storage come from that are not in its memory, and back.

use std::sync::Arc;

use tonnage_core::recipe::Recipe;
use tonnage_core::{Bytes, Result};

use super::materialize::{bytes_of, materialize};
use crate::buffer::Buffer;
use crate::context::host_ledger;
use crate::evict::EvictedRange;
use crate::ledger::{Ledger, Owner};

/// Where bytes that are not in memory come from.
#[derive(Debug)]
pub(crate) enum StorageOrigin {
    Recipe(Arc<Recipe>),
    /// What left host memory.
    File(EvictedRange),
    /// What left a device's memory, in the host's.
    /// Behind a pointer: every tensor has room for an origin, and few have this one.
    Host(Box<Buffer>),
}

impl StorageOrigin {
    pub(super) fn bytes(&self) -> Bytes {
        match self {
            StorageOrigin::Recipe(recipe) => bytes_of(recipe),
            StorageOrigin::File(evicted) => Bytes::of(evicted.len()),
            StorageOrigin::Host(buffer) => Bytes::of(buffer.len()),
        }
    }
}

/// The bytes of a device's buffer in host memory, for the same owner.
pub(super) fn to_host(buffer: &Buffer, owner: &Owner) -> Result<Buffer> {
    let mut host = Buffer::obtain(&host_ledger(), Bytes::of(buffer.len()), owner.clone())?;
    if let Some(ledger) = buffer.ledger() {
        host.pin(ledger.backend());
    }
    buffer.copy_out(0, host.bytes_mut()?)?;
    Ok(host)
}

/// Bytes that were sent away.
pub(super) fn read_back(origin: &StorageOrigin, ledger: &Ledger, owner: &Owner) -> Result<Buffer> {
    match origin {
        StorageOrigin::Recipe(recipe) => materialize(recipe, ledger, owner.clone()),
        StorageOrigin::File(evicted) => {
            let mut buffer = Buffer::obtain(ledger, Bytes::of(evicted.len()), owner.clone())?;
            evicted.get(buffer.bytes_mut()?).map_err(|error| error.at(owner.source))?;
            Ok(buffer)
        }
        StorageOrigin::Host(host) => {
            let mut buffer = Buffer::obtain(ledger, Bytes::of(host.len()), owner.clone())?;
            buffer.copy_in(0, host.bytes()?)?;
            Ok(buffer)
        }
    }
}
