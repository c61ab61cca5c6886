//! The crowded window around the peak first, exactly; then everything else around it.
//!
//! A large training step is tight in a few sections only. Most items there span the whole window: they are a
//! block whose inner order does not matter to it, and what is left is a small instance. The heuristics
//! decide its items one by one among thousands, and miss by a fraction of a percent; the search
//! on the whole instance cannot see that only a few of them matter.

use super::greedy;
use super::sections::{Component, split};
use super::{Item, search::SearchOutcome};
use crate::sort;

/// Items that a window may have, beside those that span it: more are no small instance.
const MOST: usize = 160;

/// A packing within `ceiling` units, where one comes of solving a window around the peak with `solve`.
pub(super) fn pack(
    component: &Component,
    ceiling: u64,
    solve: &mut dyn FnMut(&Component, u64) -> SearchOutcome,
) -> Option<Vec<u64>> {
    let sections = component.load.len();
    let peak = (0..sections).max_by_key(|&s| component.load[s])?;
    // The window grows until the rest fits around it, or it is not small any more.
    let (mut reach, mut work) = (4, greedy::work(component));
    while reach < sections && work > 0 {
        let window = (peak.saturating_sub(reach) as u32, (peak + reach).min(sections) as u32);
        reach *= 2;
        let (mut block, mut inner) = (Vec::new(), Vec::new());
        for (i, &span) in component.span.iter().enumerate() {
            if span.0 <= window.0 && window.1 <= span.1 {
                block.push(i as u32);
            } else if span.0 < window.1 && window.0 < span.1 {
                inner.push(i as u32);
            }
        }
        if inner.len() > MOST {
            return None;
        }
        // Longer ones below, so that they nest outside of the window too.
        sort::by_key(&mut block, |&i| std::cmp::Reverse(component.steps[i as usize]));
        let mut fixed = Vec::with_capacity(block.len() + inner.len());
        let mut height = 0;
        for i in block {
            fixed.push((i, height));
            height += component.size[i as usize];
        }
        let offsets = window_offsets(component, window, &inner, ceiling - height, solve)?;
        fixed.extend(inner.iter().zip(offsets).map(|(&i, offset)| (i, height + offset)));
        sort::by_key(&mut fixed, |&(_, offset)| offset);
        if let Some(packed) = greedy::around(component, ceiling, &fixed, &mut work) {
            return Some(packed);
        }
    }
    None
}

/// Offsets for the parts of items that lie in a window.
fn window_offsets(
    component: &Component,
    window: (u32, u32),
    inner: &[u32],
    capacity: u64,
    solve: &mut dyn FnMut(&Component, u64) -> SearchOutcome,
) -> Option<Vec<u64>> {
    let clip = |&i: &u32| {
        let (first, last) = component.span[i as usize];
        Item {
            lower: first.max(window.0),
            upper: last.min(window.1),
            size: component.size[i as usize],
        }
    };
    let items: Vec<Item> = inner.iter().map(clip).collect();
    let mut offsets = vec![0; items.len()];
    for piece in split(&items) {
        // The piece counts in a unit of its own.
        let within = capacity / piece.unit;
        let plain = greedy::best(&piece, within);
        let packed = match piece.height(&plain) <= within {
            true => plain,
            false => match solve(&piece, within) {
                SearchOutcome::Found(packed) => packed,
                SearchOutcome::None | SearchOutcome::Unknown => return None,
            },
        };
        piece.store(&packed, &mut offsets);
    }
    Some(offsets)
}
