//! Ops of one instruction: what eager mode knows of their results without asking.

use tonnage_core::attrs::Attrs;
use tonnage_core::row::{Call, Lower, OpDef};
use tonnage_core::{DType, TensorType};

use crate::draw::none;
use crate::ops::{are_all, ops};

/// What eager mode relies on where it infers nothing anew.
#[test]
fn one_instruction_over_inputs_of_one_shape_makes_that_shape() {
    let shapes: [&[usize]; 7] = [&[], &[1], &[3], &[1, 1], &[2, 3], &[3, 3], &[2, 1, 4, 3]];
    let mut instructions = 0;
    let mut wrong = Vec::new();
    let is_tile = |op: &&OpDef| matches!(op.lower, Lower::Tile(_));
    for op in ops().into_iter().filter(is_tile) {
        for count in 1..=3 {
            // A third input has the dtype of the second.
            let dtypes = DType::ALL.len();
            for number in 0..dtypes.pow(count.min(2)) {
                let dtype = |i: u32| DType::ALL[number / dtypes.pow(i.min(1)) % dtypes];
                let types = |shape: &[usize]| -> Vec<TensorType> {
                    (0..count).map(|i| TensorType::new(dtype(i), shape)).collect()
                };
                let inferred = |types: &[TensorType]| {
                    let call =
                        Call { op: op.name, inputs: types, attrs: &Attrs::None, regions: &[] };
                    let made = (op.infer)(&call).ok()?;
                    Some((made, tonnage_cpu::tile::direct(op, &call).ok()??))
                };
                // An entry is made by any call that is allowed.
                let Some((_, direct)) = shapes.iter().find_map(|shape| inferred(&types(shape)))
                else {
                    continue;
                };
                instructions += 1;
                for shape in shapes {
                    let expected = [TensorType::new(direct.output(), shape)];
                    if inferred(&types(shape)).is_none_or(|(made, _)| made[..] != expected) {
                        wrong.push(format!("{} of {:?}", op.name, types(shape)));
                    }
                }
            }
        }
    }
    none(wrong);
    assert!(instructions > 100 || !are_all(), "{instructions}");
}
