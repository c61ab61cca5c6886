//! Elementwise ops of something transposed, over domains that are large enough to be walked block by block: every element is the right
//! one, whatever the lengths are.

use tonnage::{DType, Elementwise, Result, Tensor, function, tensor};

use crate::common::dice::{Dice, Seed};
use crate::common::{call_checked, own_context};

#[test]
fn transposed_operands_meet_their_elements() {
    let _context = own_context();
    let f = |(x, y, z): (Tensor, Tensor, Tensor)| -> Result<Tensor> {
        x * y.transpose(&[0, 3, 2, 1])? + z
    };
    let planned = function(f);
    for seed in 0..40 {
        let (_seed, mut dice) = (Seed(seed), Dice(seed));
        let dtype = *dice.pick(&[DType::F32, DType::F64, DType::I8, DType::I16]);
        let (outer, between) = (1 + dice.below(3), 1 + dice.below(2) * dice.below(3));
        // Rows of less than a block, of one, and of several.
        let (short, long) = (17 + dice.below(110), 129 + dice.below(200));
        let cols = *dice.pick(&[16, short, 127, 128, long]);
        let rows = (17_000 / (outer * between * cols)).max(8) + dice.below(20);
        let count = outer * rows * between * cols;
        let mut drawn = |n: usize| (0..n).map(|_| dice.below(7) as i64 - 3).collect::<Vec<_>>();
        let (x, y, z) = (drawn(count), drawn(count), drawn(cols));
        let mut right = Vec::with_capacity(count);
        for (i, x) in x.iter().enumerate() {
            let (col, rest) = (i % cols, i / cols);
            let (b, rest) = (rest % between, rest / between);
            let (row, o) = (rest % rows, rest / rows);
            right.push(x * y[((o * cols + col) * between + b) * rows + row] + z[col]);
        }
        let shaped = |values: Vec<i64>, sizes: &[usize]| {
            tensor(values).unwrap().reshape(sizes).unwrap().cast(dtype).unwrap()
        };
        let args = (
            shaped(x, &[outer, rows, between, cols]),
            shaped(y, &[outer, cols, between, rows]),
            shaped(z, &[cols]),
        );
        let got = call_checked(&planned, &args).cast(DType::I64).unwrap();
        let sizes = [outer, rows, between, cols];
        assert_eq!(got.to_vec::<i64>().unwrap(), right, "{sizes:?} of {dtype}");
    }
}
