//! The edges of a product: K of 0, epilogues, NaN, and what is refused.

use super::*;

#[test]
fn zero_k_gives_zeros_or_leaves_the_result() {
    for level in levels() {
        for (rows, cols) in [(1, 1), (20, 30), (2, 50), (50, 2)] {
            for add in [false, true] {
                check::<f32>(
                    level,
                    Size { batch: 2, rows, cols, k: 0 },
                    (0, 0),
                    add,
                    2,
                    &mut Numbers(5),
                );
                check::<f16>(
                    level,
                    Size { batch: 2, rows, cols, k: 0 },
                    (0, 0),
                    add,
                    2,
                    &mut Numbers(5),
                );
            }
        }
    }
}

/// Adds `1000 * row + col` and counts visits.
struct Positions;

impl BlockEpilogue<f32> for Positions {
    fn apply(&self, block: &mut OutputBlock<'_, f32>) {
        let at = block.at();
        for i in 0..block.rows() {
            let first = 1e6 * at.batch as f32 + 1000.0 * (at.row + i) as f32 + at.col as f32;
            block.row(i).iter_mut().enumerate().for_each(|(j, c)| *c += first + j as f32);
        }
    }
}

#[test]
fn an_epilogue_sees_every_element_once_at_its_position() {
    for level in levels() {
        for (batch, rows, cols, k) in
            [(2, 100, 90, 800), (3, 1, 1500, 4), (2, 999, 3, 4), (2, 5, 6, 0), (1, 40, 990, 300)]
        {
            let size = Size { batch, rows, cols, k };
            let ones = vec![1f32; batch * k * rows.max(cols)];
            let mut c = vec![0f32; batch * rows * cols];
            with_scratch(scratch_of(level, size, DType::F32, 2), |scratch| {
                let a = Matrix::left(&ones, rows_of_batch(rows, k));
                let b = Matrix::right(&ones, rows_of_batch(k, cols));
                gemm_at(
                    level,
                    size,
                    &a,
                    &b,
                    Target::new(&mut c, size),
                    &Positions,
                    scratch,
                    &Pretend(2),
                )
                .unwrap();
            });
            for (i, &c) in c.iter().enumerate() {
                let (n, row, col) = (i / (rows * cols), i / cols % rows, i % cols);
                assert_eq!(c, (1_000_000 * n + 1000 * row + col + k) as f32, "{level:?} {size:?}");
            }
        }
    }
}

#[test]
fn an_epilogue_comes_before_rounding_to_16_bits() {
    let size = Size::single(20, 20, 3);
    let (a, b) = (vec![f16::from_f32(200.0); 60], vec![f16::from_f32(200.0); 60]);
    let mut c = vec![f16::ZERO; 400];
    struct Scale;
    impl BlockEpilogue<f32> for Scale {
        fn apply(&self, block: &mut OutputBlock<'_, f32>) {
            (0..block.rows()).for_each(|i| block.row(i).iter_mut().for_each(|c| *c /= 1000.0));
        }
    }
    with_scratch(scratch_bytes(size, DType::F16, 1).as_usize(), |scratch| {
        let (a, b) =
            (Matrix::left(&a, Strides::rows_of(3)), Matrix::right(&b, Strides::rows_of(20)));
        gemm(size, &a, &b, Target::new(&mut c, size), &Scale, scratch, &Alone).unwrap();
    });
    assert!(
        c.iter().all(|&c| c == f16::from_f32(120.0)),
        "120000 is no f16: it was not rounded first"
    );
}

#[test]
fn nan_and_infinity_go_the_way_of_plain_arithmetic() {
    for level in levels() {
        for rows in [1, 20] {
            let size = Size::single(rows, 20, 20);
            let (mut a, mut b) = (vec![0f32; rows * 20], vec![1f32; 400]);
            (a[3], b[3 * 20 + 7], b[5]) = (2.0, f32::INFINITY, f32::NAN);
            let mut c = vec![f32::NAN; rows * 20];
            with_scratch(scratch_of(level, size, DType::F32, 1), |scratch| {
                let (a, b) = (
                    Matrix::left(&a, Strides::rows_of(20)),
                    Matrix::right(&b, Strides::rows_of(20)),
                );
                gemm_at(
                    level,
                    size,
                    &a,
                    &b,
                    Target::new(&mut c, size),
                    &NoEpilogue,
                    scratch,
                    &Alone,
                )
                .unwrap();
            });
            assert_eq!((c[0], c[7]), (2.0, f32::INFINITY), "{level:?}");
            assert!(c[5].is_nan(), "zero times NaN is NaN");
            assert!(rows == 1 || c[27].is_nan(), "zero times infinity is NaN");
        }
    }
}

#[test]
fn packing_space_stays_under_4_mib_a_thread_and_grows_with_no_size() {
    for dtype in DType::ALL {
        for n in [1, 3, 100, 1000, 4096, 100_000] {
            for (rows, cols, k) in [(n, n, n), (1, n, n), (n, 1, n), (n, n, 1), (64, n, 4096)] {
                for threads in [1, 2, 16] {
                    let bytes = scratch_bytes(Size::single(rows, cols, k), dtype, threads);
                    assert!(
                        bytes <= Bytes::mib(4 * threads as u64),
                        "{dtype} {rows} {cols} {k}: {bytes}"
                    );
                }
            }
        }
    }
}

#[test]
fn scratch_for_one_thread_serves_many_and_less_is_refused() {
    let size = Size::single(300, 300, 300);
    let ones = vec![1f32; 300 * 300];
    let (a, b) =
        (Matrix::left(&ones, Strides::rows_of(300)), Matrix::right(&ones, Strides::rows_of(300)));
    let mut c = vec![0f32; 300 * 300];
    with_scratch(scratch_bytes(size, DType::F32, 1).as_usize(), |scratch| {
        gemm(size, &a, &b, Target::new(&mut c, size), &NoEpilogue, scratch, &Pretend(4)).unwrap();
    });
    assert!(c.iter().all(|&c| c == 300.0));
    let error = gemm(size, &a, &b, Target::new(&mut c, size), &NoEpilogue, &mut [0; 100], &Alone)
        .unwrap_err();
    assert!(error.to_string().contains("100 B of scratch are too few"), "{error}");
}

#[test]
fn strides_that_leave_a_slice_or_overlap_are_refused() {
    let size = Size::single(8, 8, 8);
    let ones = [1f32; 64];
    let plain = Strides::rows_of(8);
    let try_with = |a: Strides, b: Strides, row_stride: usize, len: usize| {
        let mut c = vec![0f32; len];
        let target = Target {
            data: &mut c,
            batch_stride: 0,
            rows: RowLayout::Every(row_stride),
            add: false,
        };
        let mut scratch = vec![0; scratch_bytes(size, DType::F32, 1).as_usize()];
        gemm(
            size,
            &Matrix::left(&ones, a),
            &Matrix::right(&ones, b),
            target,
            &NoEpilogue,
            &mut scratch,
            &Alone,
        )
    };
    assert!(try_with(plain, plain, 8, 64).is_ok());
    assert!(try_with(Strides { start: 1, ..plain }, plain, 8, 64).is_err());
    assert!(try_with(plain, Strides { row: -8, ..plain }, 8, 64).is_err());
    assert!(try_with(plain, Strides { col: isize::MAX, ..plain }, 8, 64).is_err());
    assert!(try_with(plain, plain, 7, 64).is_err());
    assert!(try_with(plain, plain, 8, 63).is_err());
    assert!(try_with(plain, plain, usize::MAX, 64).is_err());
}

#[test]
fn scratch_within_a_size_is_enough_for_every_smaller_one() {
    let most = |rows, cols, k_len| {
        scratch_bytes_within(Size::single(rows, cols, k_len), DType::F32, 1).as_usize()
    };
    for (rows, cols, k_len) in [(40, 70, 33), (5, 3, 70), (300, 1, 9), (2, 1100, 600)] {
        let lent = most(rows, cols, k_len);
        for r in 1..=rows.min(60) {
            for c in (1..=cols).step_by(7).chain([cols]) {
                for k in (1..=k_len).step_by(5).chain([k_len]) {
                    for level in GemmLevel::ALL {
                        let size = Size::single(r, c, k);
                        let asked = scratch_of(*level, size, DType::F32, 1);
                        assert!(asked <= lent, "{size:?} at {level:?}: {asked} of {lent}");
                    }
                }
            }
        }
    }
}

/// As zeros on machines that are slow with them, and there on every path and level: which one is taken must not show.
#[test]
fn subnormal_numbers_count_the_same_on_every_path_and_level() {
    let tiny = f32::MIN_POSITIVE / 8.0;
    // A few rows, a few columns, tiles of several sizes.
    for (rows, cols, k) in [(1, 64, 40), (64, 1, 40), (3, 70, 300), (40, 48, 40), (90, 70, 33)] {
        for level in GemmLevel::ALL.iter().copied().filter(|level| level.is_available()) {
            let size = Size::single(rows, cols, k);
            let (a, b) = (vec![tiny; rows * k], vec![4.0f32; k * cols]);
            let mut c = vec![1.0f32; rows * cols];
            let mut scratch = vec![0; scratch_of(level, size, DType::F32, 1)];
            let (left, right) = (Strides::rows_of(k), Strides::rows_of(cols));
            let (left, right) = (Matrix::left(&a, left), Matrix::right(&b, right));
            let target = Target::new(&mut c, size);
            gemm_at(level, size, &left, &right, target, &NoEpilogue, &mut scratch, &Alone).unwrap();
            let expected = if cfg!(target_arch = "x86_64") { 0.0 } else { tiny * 4.0 * k as f32 };
            assert!(c.iter().all(|c| *c == expected), "{rows} x {cols} x {k}, {level:?}");
        }
    }
    // Everything around a product is as always.
    assert!(std::hint::black_box(tiny) * std::hint::black_box(0.5) > 0.0);
}
