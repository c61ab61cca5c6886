//! Against a naive product. Inputs are multiples of 1/8 below 2: every sum is exact in `f32`, so results must be
//! equal whatever the order of additions, and results of 16 bits must be the exact sum rounded once.

mod bf16_dot;
mod edges;
mod integer;

use tonnage_core::{Bytes, DType, Element, bf16, f16};
use tonnage_cpu::workers::{Alone, Workers};

use tonnage_cpu::linalg::gemm::forced::{GemmLevel, gemm_at, scratch_at};
use tonnage_cpu::linalg::gemm::{
    BlockEpilogue, GemmOutput, Matrix, NoEpilogue, OutputBlock, Packs, Reads, RowLayout, Size,
    Strides, Target, gemm, scratch_bytes, scratch_bytes_within,
};

/// Scratch for matrices in even rows.
fn scratch_of(level: GemmLevel, size: Size, output: DType, threads: usize) -> usize {
    scratch_at(level, size, output, Packs::Blocks, false, threads)
}

/// A deterministic stream of numbers.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = self.0 ^ (self.0 >> 33);
        x.wrapping_mul(0xff51afd7ed558ccd) >> 20
    }

    fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n
    }

    fn fill<T: Sample>(&mut self, len: usize) -> Vec<T> {
        (0..len).map(|_| T::sample(self.next())).collect()
    }
}

/// A dtype under test, with its reference arithmetic.
trait Sample: Element {
    fn sample(bits: u64) -> Self;
    /// `start` plus the sum of products, exactly, then in this dtype.
    fn sum(start: Self, products: impl Iterator<Item = (Self, Self)>) -> Self;
}

macro_rules! samples {
    (float $($t:ty),*) => {$(
        impl Sample for $t {
            fn sample(bits: u64) -> $t {
                <$t as TryFromF64>::of((bits % 31) as f64 / 8.0 - 15.0 / 8.0)
            }
            fn sum(start: $t, products: impl Iterator<Item = ($t, $t)>) -> $t {
                let sum = products.fold(f64::from(start), |s, (x, y)| s + f64::from(x) * f64::from(y));
                <$t as TryFromF64>::of(sum)
            }
        }
    )*};
    (integer $($t:ty),*) => {$(
        impl Sample for $t {
            fn sample(bits: u64) -> $t {
                bits as $t
            }
            fn sum(start: $t, products: impl Iterator<Item = ($t, $t)>) -> $t {
                products.fold(start as i128, |s, (x, y)| s.wrapping_add(x as i128 * y as i128)) as $t
            }
        }
    )*};
}

trait TryFromF64 {
    fn of(x: f64) -> Self;
}

impl TryFromF64 for f64 {
    fn of(x: f64) -> f64 {
        x
    }
}

impl TryFromF64 for f32 {
    fn of(x: f64) -> f32 {
        x as f32
    }
}

impl TryFromF64 for f16 {
    fn of(x: f64) -> f16 {
        f16::from_f64(x)
    }
}

impl TryFromF64 for bf16 {
    fn of(x: f64) -> bf16 {
        bf16::from_f64(x)
    }
}

samples!(float f32, f64, f16, bf16);
samples!(integer i8, i16, i32, i64);

/// Pretends to have threads; runs the second half first.
struct Pretend(usize);

impl Workers for Pretend {
    fn threads(&self) -> usize {
        self.0
    }
    fn join(&self, a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
        b();
        a();
    }
}

/// Threads that run at once, so that none computes what another has begun.
struct Spawned(usize);

impl Workers for Spawned {
    fn threads(&self) -> usize {
        self.0
    }
    fn join(&self, a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
        std::thread::scope(|scope| {
            scope.spawn(a);
            b();
        });
    }
}

fn levels() -> impl Iterator<Item = GemmLevel> {
    GemmLevel::ALL.iter().copied().filter(|level| level.is_available())
}

/// Ways for a batch of `rows` by `cols` matrices to lie in memory, with the elements it takes.
fn layout(which: usize, batch: usize, rows: usize, cols: usize) -> (usize, Strides) {
    let (r, c) = (rows as isize, cols as isize);
    let plain = Strides::rows_of(cols).every(r * c);
    let len = batch * rows * cols;
    match which {
        0 => (len, plain),
        1 => (len, Strides::rows_of(rows).transposed().every(r * c)),
        // Rows and columns with gaps.
        2 => (len * 6 + 9, Strides { start: 9, batch: 6 * r * c, row: 3 * c, col: 2 }),
        3 => (len * 3, Strides { start: 0, batch: 3 * r * c, row: 1, col: 3 * r }),
        // Repeated rows, repeated columns, one matrix for all.
        4 => (cols, Strides { start: 0, batch: 0, row: 0, col: 1 }),
        5 => (rows, Strides { start: 0, batch: 0, row: 1, col: 0 }),
        6 => (rows * cols, plain.every(0)),
        // Reversed.
        _ => (len, Strides { start: len.saturating_sub(1), batch: -r * c, row: -c, col: -1 }),
    }
}
const LAYOUTS: usize = 8;

fn element<T: Copy>(data: &[T], s: Strides, batch: usize, row: usize, col: usize) -> T {
    let at = batch as isize * s.batch + row as isize * s.row + col as isize * s.col;
    data[(s.start as isize + at) as usize]
}

/// Scratch of exactly the bytes that were asked for, at an odd address, with canaries around it.
fn with_scratch(bytes: usize, f: impl FnOnce(&mut [u8])) {
    let mut lent = vec![0xA5; bytes + 128];
    f(&mut lent[1..][..bytes]);
    assert_eq!(lent[0], 0xA5);
    assert!(lent[bytes + 1..].iter().all(|&x| x == 0xA5), "wrote beyond its scratch");
}

/// One product of dtype `T` at a level against the reference; the result's rows and matrices have gaps.
fn check<T>(
    level: GemmLevel,
    size: Size,
    layouts: (usize, usize),
    add: bool,
    threads: usize,
    numbers: &mut Numbers,
) where
    T: Sample + GemmOutput + Reads<<T as GemmOutput>::Compute>,
{
    let Size { batch, rows, cols, k: k_len } = size;
    let (a_len, a_strides) = layout(layouts.0, batch, rows, k_len);
    let (b_len, b_strides) = layout(layouts.1, batch, k_len, cols);
    let (a, b): (Vec<T>, Vec<T>) = (numbers.fill(a_len), numbers.fill(b_len));
    let row_stride = cols + 3;
    let batch_stride = rows * row_stride + 5;
    let old: Vec<T> = numbers.fill(batch * batch_stride);
    let mut c = old.clone();
    with_scratch(scratch_of(level, size, T::DTYPE, threads), |scratch| {
        let (a, b) = (Matrix::left(&a, a_strides), Matrix::right(&b, b_strides));
        let target = Target { data: &mut c, batch_stride, rows: RowLayout::Every(row_stride), add };
        gemm_at(level, size, &a, &b, target, &NoEpilogue, scratch, &Pretend(threads)).unwrap();
    });
    let mut expected = old;
    for n in 0..batch {
        for i in 0..rows {
            for j in 0..cols {
                let c = &mut expected[n * batch_stride + i * row_stride + j];
                let start = if add { *c } else { T::zeroed() };
                let products = (0..k_len)
                    .map(|k| (element(&a, a_strides, n, i, k), element(&b, b_strides, n, k, j)));
                *c = T::sum(start, products);
            }
        }
    }
    let bad = c.iter().zip(&expected).position(|(c, e)| c != e);
    assert!(
        bad.is_none(),
        "{} {level:?} {size:?} {layouts:?} add {add}: element {bad:?}",
        T::DTYPE
    );
}

/// Random sizes and layouts, with and without adding, on 1 to 3 threads.
fn check_random<T>(cases: usize)
where
    T: Sample + GemmOutput + Reads<<T as GemmOutput>::Compute>,
{
    let mut numbers = Numbers(7 + T::DTYPE as u64);
    for level in levels() {
        for _ in 0..cases {
            let mut side = || numbers.below(70);
            let (rows, cols, k) = (side(), side(), side());
            let size = Size { batch: numbers.below(4), rows, cols, k };
            let layouts = (numbers.below(LAYOUTS), numbers.below(LAYOUTS));
            let (add, threads) = (numbers.below(2) == 1, 1 + numbers.below(3));
            check::<T>(level, size, layouts, add, threads, &mut numbers);
        }
    }
}

#[test]
fn random_products_of_every_dtype_at_every_level_equal_the_naive_sum() {
    check_random::<f32>(150);
    check_random::<f64>(100);
    check_random::<f16>(100);
    check_random::<bf16>(100);
    check_random::<i8>(25);
    check_random::<i16>(25);
    check_random::<i32>(50);
    check_random::<i64>(25);
}

#[test]
fn every_pair_of_layouts_gives_the_same_product() {
    let mut numbers = Numbers(1);
    for level in levels() {
        for (a, b) in (0..LAYOUTS).flat_map(|a| (0..LAYOUTS).map(move |b| (a, b))) {
            check::<f32>(
                level,
                Size { batch: 2, rows: 17, cols: 35, k: 9 },
                (a, b),
                false,
                1,
                &mut numbers,
            );
            check::<f64>(
                level,
                Size { batch: 2, rows: 3, cols: 35, k: 19 },
                (a, b),
                true,
                1,
                &mut numbers,
            );
            check::<bf16>(
                level,
                Size { batch: 2, rows: 37, cols: 2, k: 70 },
                (a, b),
                true,
                1,
                &mut numbers,
            );
        }
    }
}

#[test]
fn sizes_that_cross_every_block_give_the_same_product() {
    let mut numbers = Numbers(2);
    let sizes = [
        (1030, 33, 20),
        (20, 1100, 17),
        (6, 70, 1600),
        (60, 60, 800),
        (1, 1100, 1100),
        (1100, 1, 1100),
        (3, 1030, 30),
        (1030, 2, 1030),
        (530, 530, 5),
        (150, 150, 1),
        // Some rows by a large matrix.
        (9, 1100, 500),
        (28, 530, 1030),
        // Many columns: tiles of three vectors.
        (100, 250, 600),
        (71, 301, 1030),
        // A large matrix by some columns.
        (530, 8, 1030),
        (1100, 5, 500),
    ];
    for level in levels() {
        for (i, (rows, cols, k)) in sizes.into_iter().enumerate() {
            let size = Size::single(rows, cols, k);
            for layouts in [(0, 0), (1, 1), (0, 1), (1, 0)] {
                check::<f32>(level, size, layouts, i % 2 == 0, 2, &mut numbers);
            }
            check::<f16>(level, size, (0, 1), true, 3, &mut numbers);
            check::<i32>(level, size, (1, 0), false, 1, &mut numbers);
        }
    }
}

#[test]
fn the_bits_are_the_same_at_every_thread_count() {
    let mut numbers = Numbers(3);
    for level in levels() {
        for (batch, rows, cols, k) in [
            (1, 300, 310, 900),
            (1, 2, 3000, 1100),
            (1, 3000, 1, 1100),
            (1, 3000, 7, 1100),
            (5, 40, 90, 500),
            (1, 64, 2000, 64),
            (1, 19, 1500, 400),
            (1, 1290, 1300, 5),
            (1, 1, 4200, 300),
        ] {
            let size = Size { batch, rows, cols, k };
            let mut reals = |len: usize| -> Vec<f32> {
                (0..len).map(|_| (numbers.next() % 1_000_003) as f32 / 5e5 - 1.0).collect()
            };
            let (a, b) = (reals(batch * rows * k), reals(batch * k * cols));
            for transposed in [false, true] {
                let b_rows = if transposed {
                    rows_of_batch(cols, k).transposed()
                } else {
                    rows_of_batch(k, cols)
                };
                let run = |workers: &dyn Workers| {
                    let mut c = vec![0.5; batch * rows * cols];
                    let bytes = scratch_of(level, size, DType::F32, workers.threads());
                    with_scratch(bytes, |scratch| {
                        let a = Matrix::left(&a, rows_of_batch(rows, k));
                        let b = Matrix::right(&b, b_rows);
                        let target = Target::new(&mut c, size).adding();
                        gemm_at(level, size, &a, &b, target, &NoEpilogue, scratch, workers)
                            .unwrap();
                    });
                    c.into_iter().map(f32::to_bits).collect::<Vec<_>>()
                };
                let alone = run(&Pretend(1));
                for threads in [2, 3, 4, 7] {
                    let (first, all) = (run(&Pretend(threads)), run(&Spawned(threads)));
                    assert!(first == alone, "{level:?} {size:?}, one of {threads} threads first");
                    assert!(all == alone, "{level:?} {size:?} on {threads} threads");
                }
            }
        }
    }
}

fn rows_of_batch(rows: usize, cols: usize) -> Strides {
    Strides::rows_of(cols).every((rows * cols) as isize)
}

#[test]
fn real_numbers_are_summed_to_within_the_error_of_plain_summation() {
    let mut numbers = Numbers(4);
    for (rows, cols, k_len) in [(30, 50, 2000), (1, 70, 2000), (70, 1, 2000), (5, 300, 2000)] {
        let mut reals = |len: usize| -> Vec<f32> {
            (0..len).map(|_| (numbers.next() % 1_000_003) as f32 / 5e5 - 1.0).collect()
        };
        let (a, b) = (reals(rows * k_len), reals(k_len * cols));
        for level in levels() {
            let size = Size::single(rows, cols, k_len);
            let mut c = vec![0f32; rows * cols];
            with_scratch(scratch_of(level, size, DType::F32, 1), |scratch| {
                let (a, b) = (
                    Matrix::left(&a, Strides::rows_of(k_len)),
                    Matrix::right(&b, Strides::rows_of(cols)),
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
            for (i, c) in c.iter().enumerate() {
                let products = (0..k_len).map(|k| {
                    f64::from(a[i / cols * k_len + k]) * f64::from(b[k * cols + i % cols])
                });
                let (sum, size) = products.fold((0.0, 0.0), |(s, t), p: f64| (s + p, t + p.abs()));
                let bound = k_len as f64 * f64::from(f32::EPSILON) / 2.0 * size;
                assert!((f64::from(*c) - sum).abs() <= bound, "{level:?}: {c} for {sum}");
            }
        }
    }
}

#[test]
fn every_f16_is_read_as_its_own_value() {
    for bits in 0..=u16::MAX {
        let x = f16::from_bits(bits);
        let (read, expected): (f32, f32) = (x.read(), x.to_f32());
        assert!(
            read.to_bits() == expected.to_bits() || read.is_nan() && expected.is_nan(),
            "{bits:#x}"
        );
    }
}

/// A chain of additions would stop at the first element: everything behind it is lost in its last bit.
#[test]
fn long_sums_are_added_up_in_parts() {
    const K: usize = 1 << 13;
    let values = |mn_len: usize, large: bool, mn_major: bool| -> (Vec<f32>, Strides) {
        let of = |k: usize| if large && k == 0 { (1 << 24) as f32 } else { 1.0 };
        let all = (0..mn_len * K).map(|i| of(if mn_major { i / mn_len } else { i % K }));
        let strides =
            if mn_major { Strides::rows_of(mn_len).transposed() } else { Strides::rows_of(K) };
        (all.collect(), strides)
    };
    for level in levels() {
        for (rows, cols) in
            [(1, 2), (2, 1), (2, 2), (3, 300), (300, 3), (300, 7), (20, 300), (40, 40)]
        {
            for which in 0..4 {
                let (a, left) = values(rows, true, which & 1 == 1);
                let (b, right) = values(cols, false, which & 2 == 2);
                let size = Size::single(rows, cols, K);
                let mut c = vec![0f32; rows * cols];
                let (a, b) = (Matrix::left(&a, left), Matrix::right(&b, right.transposed()));
                with_scratch(scratch_of(level, size, DType::F32, 1), |scratch| {
                    let target = Target::new(&mut c, size);
                    gemm_at(level, size, &a, &b, target, &NoEpilogue, scratch, &Alone).unwrap();
                });
                let expected = (1 << 24) as f32 + K as f32;
                let far = c.iter().find(|c| (expected - **c).abs() > 1100.0);
                assert_eq!(far, None, "{level:?} {rows} {cols} {which}");
            }
        }
    }
}
