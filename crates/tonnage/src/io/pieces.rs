//! A tensor's elements in order, a piece at a time: what writing and counting up have in common.

use tonnage_core::{Bytes, Mark, Result};
use tonnage_runtime::{Array, Buffer, Ledger, Owner};

/// What a piece takes at most.
pub(super) const PIECE: usize = 1 << 20;

/// Shows the elements in logical order, in pieces of at most 1 MiB. Those that lie so in memory are shown from there; a recipe is computed, or
/// read from its file, a piece at a time; others are copied first, which the ledger sees.
pub(super) fn for_each_piece(
    array: &Array,
    mark: Mark,
    show: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let (count, size) = (array.layout().count(), array.dtype().size());
    if let Some(recipe) = array.as_recipe().filter(|recipe| tonnage_ops::tile::in_order(recipe)) {
        let owner = Owner { kind: mark.kind, what: "pieces", name: None, source: mark.source };
        let at_once = (PIECE / size).min(count);
        let mut piece = Buffer::obtain(Ledger::cpu(), Bytes::of(at_once * size), owner)?;
        for first in (0..count).step_by(at_once.max(1)) {
            let piece = &mut piece.bytes_mut()[..at_once.min(count - first) * size];
            tonnage_runtime::write_part(&recipe, first, piece)?;
            show(piece)?;
        }
        return Ok(());
    }
    let copied = match array.is_whole() && array.as_recipe().is_none() {
        true => None,
        false => Some(array.copied(mark, "pieces")?),
    };
    let pinned = copied.as_ref().unwrap_or(array).pin("pieces", mark.source)?;
    pinned.bytes()[..count * size].chunks(PIECE).try_for_each(show)
}
