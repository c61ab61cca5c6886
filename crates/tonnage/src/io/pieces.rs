//! A tensor's elements in order, a piece at a time: what writing and counting up have in common.

use std::sync::Arc;

use tonnage_core::layout::Layout;
use tonnage_core::recipe::Recipe;
use tonnage_core::{Bytes, ErrorKind, Mark, Result};
use tonnage_runtime::{Array, Buffer, Owner, host_ledger};

/// What a piece takes at most.
pub(super) const PIECE: usize = 1 << 20;

/// What is brought of a file at once that lies in another order, if that is enough for some rows.
const BAND: usize = 16 << 20;

/// Rows of it at least: as many elements are read at once, where it has columns first.
const ROWS: usize = 64;

/// Shows the elements in logical order, in pieces of at most 1 MiB. Those that lie so in memory are shown from there; a recipe is computed, or
/// read from its file, a piece at a time, and from a file in another order some rows at a time; others are copied first, which the ledger sees.
pub(super) fn for_each_piece(
    array: &Array,
    mark: Mark,
    show: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let (count, size) = (array.layout().count(), array.dtype().size());
    let owner = Owner { kind: mark.kind, what: "pieces", name: None, source: mark.source };
    let recipe = array.as_recipe();
    if let Some(recipe) = recipe.as_ref().filter(|recipe| tonnage_ops::tile::in_order(recipe)) {
        let at_once = (PIECE / size).min(count);
        let mut piece = Buffer::obtain(&host_ledger(), Bytes::of(at_once * size), owner.clone())?;
        for first in (0..count).step_by(at_once.max(1)) {
            let piece = &mut piece.bytes_mut()?[..at_once.min(count - first) * size];
            tonnage_runtime::write_part(recipe, first, piece)?;
            show(piece)?;
        }
        return Ok(());
    }
    if let (Some(recipe), [rows, ..]) = (&recipe, array.sizes())
        && recipe.as_stored().is_some()
        && count > 0
    {
        let row = count / rows * size;
        let at_once = (BAND / row).max(ROWS).min(*rows);
        let mut band = Buffer::obtain(&host_ledger(), Bytes::of(at_once * row), owner.clone())?;
        for first in (0..*rows).step_by(at_once) {
            let some = rows_of(recipe, first, at_once.min(rows - first))?;
            let band = &mut band.bytes_mut()?[..some.sizes[0] * row];
            Array::from_recipe(Arc::new(some)).copy_to(band)?;
            band.chunks(PIECE).try_for_each(&mut *show)?;
        }
        return Ok(());
    }
    let copied = match array.is_whole() && recipe.is_none() {
        true => None,
        false => Some(array.copied(mark, "pieces")?),
    };
    let pinned = copied.as_ref().unwrap_or(array).pin("pieces", mark.source)?;
    if let Ok(bytes) = pinned.bytes() {
        return bytes[..count * size].chunks(PIECE).try_for_each(show);
    }
    // A device's memory comes over a piece at a time.
    let all = count * size;
    let mut piece = Buffer::obtain(&host_ledger(), Bytes::of(all.min(PIECE)), owner)?;
    for first in (0..all).step_by(PIECE) {
        let piece = &mut piece.bytes_mut()?[..PIECE.min(all - first)];
        pinned.copy_out(first, piece)?;
        show(piece)?;
    }
    Ok(())
}

/// Some rows of a recipe.
fn rows_of(recipe: &Recipe, first: usize, count: usize) -> Result<Recipe> {
    let part = |layout: &Layout| {
        let mut layout = layout.clone();
        let moved = layout.offset as isize + first as isize * layout.strides.first()?;
        layout.offset = usize::try_from(moved).ok()?;
        *layout.sizes.first_mut()? = count;
        Some(layout)
    };
    let mut sizes = recipe.sizes.clone();
    sizes[0] = count;
    recipe.view(sizes, part).ok_or_else(|| {
        ErrorKind::BadGraph { what: format!("rows {first} of {} are nowhere", recipe.ty()) }.into()
    })
}
