//! Products of `bf16`, for which some machines have dot-product instructions (AMX): at every level, that one included.

use std::ops::Range;

use tonnage_core::{DType, Result, bf16};
use tonnage_cpu::linalg::gemm::forced::gemm_at;
use tonnage_cpu::linalg::gemm::{
    Bf16Source, DirectMatrix, GemmOperand, Matrix, NoEpilogue, Packs, Size, Strides, Strip, Target,
};

use super::{Numbers, Pretend, check, levels, scratch_of, with_scratch};

fn reals(numbers: &mut Numbers, len: usize) -> Vec<bf16> {
    let value = |bits: u64| (bits % 1_000_003) as f64 / 5e5 - 1.0;
    (0..len).map(|_| bf16::from_f64(value(numbers.next()))).collect()
}

#[test]
fn sizes_that_cross_the_blocks_of_bf16_dots_give_the_naive_sum() {
    let mut numbers = Numbers(11);
    let sizes = [
        (32, 32, 32),
        (33, 31, 63),
        (70, 545, 40),
        (545, 70, 33),
        (40, 40, 1100),
        (70, 545, 1100),
        (67, 1, 300),
        (70, 6, 320),
        (5, 5, 1),
    ];
    for level in levels() {
        for (rows, cols, k) in sizes {
            let size = Size::single(rows, cols, k);
            // The columns of one thread are too many to be packed with all of K.
            let threads = if cols > 512 && k > 1024 { 1 } else { 2 };
            for layouts in [(0, 0), (1, 1), (0, 1), (1, 0)] {
                check::<bf16>(level, size, layouts, k % 2 == 0, threads, &mut numbers);
            }
        }
    }
}

/// Sums are kept in `f32` and rounded once: half a step of `bf16`, and half a step of `f32` an addition.
#[test]
fn products_of_bf16_are_within_the_bound_of_sums_in_f32() {
    let mut numbers = Numbers(12);
    let (rows, cols, k_len) = (37, 45, 700);
    let size = Size::single(rows, cols, k_len);
    let (a, b) = (reals(&mut numbers, rows * k_len), reals(&mut numbers, k_len * cols));
    for level in levels() {
        let mut c = vec![bf16::ZERO; rows * cols];
        with_scratch(scratch_of(level, size, DType::BF16, 1), |scratch| {
            let left = Matrix::left(&a, Strides::rows_of(k_len));
            let right = Matrix::right(&b, Strides::rows_of(cols));
            let target = Target::new(&mut c, size);
            gemm_at(level, size, &left, &right, target, &NoEpilogue, scratch, &Pretend(1)).unwrap();
        });
        for (i, got) in c.iter().enumerate() {
            let products = (0..k_len)
                .map(|k| f64::from(a[i / cols * k_len + k]) * f64::from(b[k * cols + i % cols]));
            let (sum, sizes) = products.fold((0.0, 0.0), |(s, t), x| (s + x, t + x.abs()));
            let bound = sum.abs() / 256.0 + sizes * k_len as f64 / f64::from(1 << 24);
            let off = (f64::from(*got) - sum).abs();
            assert!(off <= bound, "{level:?} element {i}: {got} for {sum}, off by {off}");
        }
    }
}

/// A matrix whose elements are packed, as those of a file are.
struct Elsewhere<'a>(Matrix<'a, bf16>);

impl GemmOperand<f32> for Elsewhere<'_> {
    fn pack(
        &self,
        batch: usize,
        mn_range: Range<usize>,
        k_range: Range<usize>,
        width: usize,
        out: &mut [f32],
    ) {
        self.0.pack(batch, mn_range, k_range, width, out);
    }

    fn direct(&self, _: usize) -> Option<DirectMatrix<'_, f32>> {
        None
    }

    fn bf16_source(&self, _: usize) -> Bf16Source<'_> {
        Bf16Source::Packed
    }

    fn is_k_major(&self) -> bool {
        GemmOperand::<f32>::is_k_major(&self.0)
    }

    fn packs(&self) -> Packs {
        Packs::Blocks
    }

    fn strip(
        &self,
        batch: usize,
        mn_range: Range<usize>,
        k_range: Range<usize>,
        out: &mut [f32],
    ) -> Strip {
        self.0.strip(batch, mn_range, k_range, out)
    }

    fn check(&self, batch: usize, mn_len: usize, k: usize) -> Result<()> {
        GemmOperand::<f32>::check(&self.0, batch, mn_len, k)
    }
}

#[test]
fn neither_threads_nor_where_elements_lie_change_a_bit_of_bf16() {
    let mut numbers = Numbers(13);
    let (rows, cols, k) = (90, 600, 1200);
    let size = Size::single(rows, cols, k);
    let (a, b) = (reals(&mut numbers, rows * k), reals(&mut numbers, k * cols));
    let left = Matrix::left(&a, Strides::rows_of(k));
    let right = Matrix::right(&b, Strides::rows_of(cols));
    for level in levels() {
        let run = |left: &dyn Fn(Target<'_, bf16>, &mut [u8]), threads: usize| {
            let mut c = vec![bf16::ZERO; rows * cols];
            with_scratch(scratch_of(level, size, DType::BF16, threads), |scratch| {
                left(Target::new(&mut c, size), scratch);
            });
            c
        };
        let plain = |threads: usize| {
            let of = |target: Target<'_, bf16>, scratch: &mut [u8]| {
                gemm_at(
                    level,
                    size,
                    &left,
                    &right,
                    target,
                    &NoEpilogue,
                    scratch,
                    &Pretend(threads),
                )
                .unwrap();
            };
            run(&of, threads)
        };
        let alone = plain(1);
        for threads in [2, 3, 7] {
            assert!(plain(threads) == alone, "{level:?} on {threads} threads");
        }
        let packed = |target: Target<'_, bf16>, scratch: &mut [u8]| {
            let (left, right) = (Elsewhere(left), Elsewhere(right));
            gemm_at(level, size, &left, &right, target, &NoEpilogue, scratch, &Pretend(1)).unwrap();
        };
        assert!(run(&packed, 1) == alone, "{level:?} packed");
    }
}

#[test]
fn an_infinity_stays_in_its_row_and_column_of_bf16() {
    let (rows, cols, k) = (35, 34, 33);
    let size = Size::single(rows, cols, k);
    let (mut a, b) = (vec![bf16::ONE; rows * k], vec![bf16::ONE; k * cols]);
    a[34 * k + 32] = bf16::INFINITY;
    a[3 * k] = bf16::NAN;
    for level in levels() {
        let mut c = vec![bf16::ZERO; rows * cols];
        with_scratch(scratch_of(level, size, DType::BF16, 1), |scratch| {
            let left = Matrix::left(&a, Strides::rows_of(k));
            let right = Matrix::right(&b, Strides::rows_of(cols));
            let target = Target::new(&mut c, size);
            gemm_at(level, size, &left, &right, target, &NoEpilogue, scratch, &Pretend(1)).unwrap();
        });
        for (i, got) in c.iter().enumerate() {
            match i / cols {
                34 => assert_eq!(*got, bf16::INFINITY, "{level:?} {i}"),
                3 => assert!(got.is_nan(), "{level:?} {i}"),
                _ => assert_eq!(got.to_f32(), 33.0, "{level:?} {i}"),
            }
        }
    }
}
