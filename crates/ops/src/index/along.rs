//! Elements along the last axis: what `take_along_axis`, `put_along_axis` and `top_k` share.

use tonnage_core::row::{AxisMap, AxisOf};

use crate::infer::along;

/// All axes but the last run along those of the first `inputs` inputs; the last is `last`.
pub fn leading_axes(rank: usize, inputs: usize, last: AxisOf) -> Vec<AxisOf> {
    let leading = (0..rank.saturating_sub(1)).map(|axis| {
        let of: Vec<(usize, usize)> = (0..inputs).map(|input| (input, axis)).collect();
        along(&of)
    });
    leading.chain((rank > 0).then_some(last)).collect()
}

/// One output, nothing summed.
pub fn one_output(axes: Vec<AxisOf>) -> AxisMap {
    AxisMap { outputs: vec![axes], summed: Vec::new() }
}
