//! Products of bytes, by the instructions of every level.

use tonnage_cpu::linalg::gemm::forced::{IntegerLevel, integer_product_at};
use tonnage_cpu::linalg::gemm::{
    IntegerMatrix, Size, Strides, integer_product, integer_scratch_bytes,
};
use tonnage_cpu::workers::Alone;

/// Numbers of all sizes, the least and the largest among them.
fn bytes(len: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(|i| if i % 7 == 0 { [0, 127, 128, 255][i / 7 % 4] } else { next() }).collect()
}

/// Where an element lies.
fn place(strides: Strides, row: usize, col: usize) -> usize {
    row * strides.row as usize + col * strides.col as usize
}

#[test]
fn every_level_and_sign_has_the_sums_of_plain_loops() {
    let sizes = [
        (1, 1, 1),
        (3, 5, 7),
        (12, 32, 4),
        (13, 33, 9),
        (25, 300, 70),
        (2, 31, 1030),
        (70, 64, 2050),
    ];
    for (rows, cols, k) in sizes {
        let (a, b) = (bytes(rows * k, 1), bytes(k * cols, 2));
        for (a_signed, b_signed, transposed) in
            [(false, true, false), (true, true, true), (false, false, true), (true, false, false)]
        {
            let wide = |x: u8, signed: bool| if signed { i32::from(x as i8) } else { i32::from(x) };
            let (sa, sb) = match transposed {
                false => (Strides::rows_of(k), Strides::rows_of(cols)),
                true => (Strides::rows_of(rows).transposed(), Strides::rows_of(k).transposed()),
            };
            let left = IntegerMatrix { data: &a, strides: sa, signed: a_signed };
            let right = IntegerMatrix { data: &b, strides: sb, signed: b_signed };
            let size = Size::single(rows, cols, k);
            let mut expected = vec![0i32; rows * cols];
            for i in 0..rows {
                for j in 0..cols {
                    let products = (0..k).map(|k| {
                        wide(a[place(sa, i, k)], a_signed) * wide(b[place(sb, k, j)], b_signed)
                    });
                    expected[i * cols + j] = products.sum();
                }
            }
            let mut scratch = vec![0; integer_scratch_bytes(size, 2).as_usize()];
            for level in IntegerLevel::ALL {
                let mut made = vec![7; rows * cols];
                let done = integer_product_at(
                    *level,
                    size,
                    &left,
                    &right,
                    &mut made,
                    &mut scratch,
                    &Alone,
                );
                assert!(done.is_ok(), "{done:?}");
                assert_eq!(made, expected, "{level:?} {size:?} {a_signed} {b_signed}");
            }
        }
    }
}

#[test]
fn what_leaves_its_slice_is_refused() {
    let data = [0u8; 11];
    let size = Size::single(3, 2, 4);
    let a = IntegerMatrix { data: &data, strides: Strides::rows_of(4), signed: true };
    let b = IntegerMatrix { data: &data, strides: Strides::rows_of(2), signed: true };
    let (mut out, mut scratch) = ([0; 6], vec![0; integer_scratch_bytes(size, 1).as_usize()]);
    assert!(integer_product(size, &a, &b, &mut out, &mut scratch, &Alone).is_err());
    assert!(integer_product(size, &b, &b, &mut out[..5], &mut scratch, &Alone).is_err());
    assert!(integer_product(size, &b, &b, &mut out, &mut scratch[1..], &Alone).is_err());
}
