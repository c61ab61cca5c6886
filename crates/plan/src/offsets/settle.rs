//! Items pushed down as far as they go.
//!
//! Every item then rests on the floor or on another one, so below the highest there is no byte that no item ever takes:
//! an arena whose packing has gaps is still used in full.

use super::sections::Component;
use super::skyline::Skyline;
use crate::sort;

/// The same packing with every item pushed down, in units. None is higher than before.
pub(super) fn settled(component: &Component, offsets: &[u64]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..component.len()).collect();
    sort::by_key(&mut order, |&i| offsets[i]);
    let mut floor = Skyline::new(&component.load);
    let mut made = vec![0; component.len()];
    for i in order {
        made[i] = floor.top(component.span[i]).height;
        floor.set(component.span[i], made[i] + component.size[i]);
    }
    made
}
