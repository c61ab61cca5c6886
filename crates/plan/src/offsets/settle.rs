//! Items pushed down as far as they go.
//!
//! Every item then rests on the floor or on another one, so below the highest there is no byte that no item ever takes:
//! an arena whose packing has gaps is still used in full.

use super::sections::Part;
use super::skyline::Skyline;

/// The same packing with every item pushed down, in units. None is higher than before.
pub(super) fn settled(part: &Part, offsets: &[u64]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..part.len()).collect();
    order.sort_by_key(|&i| offsets[i]);
    let mut floor = Skyline::new(&part.load);
    let mut made = vec![0; part.len()];
    for i in order {
        made[i] = floor.top(part.span[i]).height;
        floor.set(part.span[i], made[i] + part.size[i]);
    }
    made
}
