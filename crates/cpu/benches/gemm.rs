//! The core of products, layout by layout: `cargo bench -p tonnage-ops --bench gemm [-- filter]`; with
//! `RUSTFLAGS="--cfg compare"` against the `gemm` crate, which is slow to build and therefore not always there.
//! (Beside PyTorch: `matmul` of `tonnage-runtime`.)
//!
//! Each figure is the best of several repetitions, in turn with the other's, so that a busy machine disturbs both alike.

use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder};
use tonnage_core::DType;
use tonnage_cpu::linalg::gemm::{Matrix, NoEpilogue, Size, Strides, Target, gemm, scratch_bytes};
use tonnage_cpu::workers::Workers;

const SIZES: [(usize, usize, usize); 12] = [
    (16, 16, 16),
    (64, 64, 64),
    (256, 256, 256),
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (32, 64, 784),
    (1024, 128, 784),
    (4096, 3072, 768),
    (64, 4096, 4096),
    (1, 4096, 4096),
];

/// Rayon's threads as workers.
struct Pool(usize);

impl Workers for Pool {
    fn threads(&self) -> usize {
        self.0
    }

    fn join(&self, a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
        rayon::join(a, b);
    }
}

/// The best time of one call, for each of two.
fn race(ours: &mut dyn FnMut(), theirs: &mut dyn FnMut(), flops: f64) -> (Duration, Duration) {
    let calls = (5e8 / flops).clamp(1.0, 10_000.0) as u32;
    let repetitions = if flops > 1e10 {
        3
    } else if flops > 1e9 {
        10
    } else {
        40
    };
    let time = |f: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..calls).for_each(|_| f());
        start.elapsed() / calls
    };
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..repetitions {
        best = (best.0.min(time(ours)), best.1.min(time(theirs)));
    }
    best
}

fn strides(rows: usize, cols: usize, transposed: bool) -> Strides {
    if transposed { Strides::rows_of(rows).transposed() } else { Strides::rows_of(cols) }
}

macro_rules! bench {
    ($t:ty, $rows:expr, $cols:expr, $k:expr, $transposed:expr, $threads:expr) => {{
        let (rows, cols, k): (usize, usize, usize) = ($rows, $cols, $k);
        let fill = |len: usize| -> Vec<$t> { (0..len).map(|i| (i % 97) as $t / 97.0).collect() };
        let (a, b) = (fill(rows * k), fill(k * cols));
        let (mut c, mut d) = (fill(rows * cols), fill(rows * cols));
        let (ta, tb) = $transposed;
        let (sa, sb) = (strides(rows, k, ta), strides(k, cols, tb));
        let size = Size::single(rows, cols, k);
        let dtype = if size_of::<$t>() == 4 { DType::F32 } else { DType::F64 };
        let mut scratch = vec![0; scratch_bytes(size, dtype, $threads).as_usize()];
        let flops = 2.0 * rows as f64 * cols as f64 * k as f64;
        let mut ours = || {
            let (a, b) = (Matrix::left(&a, sa), Matrix::right(&b, sb));
            let target = Target::new(&mut c, size);
            let done = gemm(size, &a, &b, target, &NoEpilogue, &mut scratch, &Pool($threads));
            assert!(done.is_ok(), "{done:?}");
        };
        let mut theirs = || yardstick(size, (&a, sa), (&b, sb), &mut d, $threads);
        let (ours, theirs) = race(&mut ours, &mut theirs, flops);
        let (ours, theirs) = (flops / ours.as_secs_f64() / 1e9, flops / theirs.as_secs_f64() / 1e9);
        let (mut other, mut ratio) = (String::new(), String::new());
        if cfg!(compare) {
            let near = |c: $t, d: $t| (c - d).abs() <= 1e-3 * d.abs();
            assert!(c.iter().zip(&d).all(|(c, d)| near(*c, *d)), "results differ");
            (other, ratio) = (format!("{theirs:.1}"), format!("{:.2}", ours / theirs));
        }
        let transposed = match $transposed {
            (false, false) => "",
            (true, false) => "A'",
            (false, true) => "B'",
            (true, true) => "A' B'",
        };
        println!(
            "{:>4} {:>18} {transposed:>6} {:>8} {ours:>8.1} {other:>8} {ratio:>6} {:>10}",
            stringify!($t),
            format!("{rows}x{k}x{cols}"),
            $threads,
            scratch.len(),
        );
    }};
}

/// Nothing to compare with.
#[cfg(not(compare))]
fn yardstick<T>(_: Size, _: (&[T], Strides), _: (&[T], Strides), _: &mut [T], _: usize) {}

#[cfg(compare)]
#[allow(unsafe_code, reason = "the yardstick takes pointers")]
fn yardstick<T: From<u8> + 'static>(
    size: Size,
    (a, sa): (&[T], Strides),
    (b, sb): (&[T], Strides),
    c: &mut [T],
    threads: usize,
) {
    let parallel =
        if threads > 1 { gemm::Parallelism::Rayon(threads) } else { gemm::Parallelism::None };
    let Size { rows, cols, k, .. } = size;
    assert!(a.len() == rows * k && b.len() == k * cols && c.len() == rows * cols);
    // SAFETY: the strides are those of dense matrices of these sizes.
    unsafe {
        gemm::gemm(
            rows,
            cols,
            k,
            c.as_mut_ptr(),
            1,
            cols as isize,
            false,
            a.as_ptr(),
            sa.col,
            sa.row,
            b.as_ptr(),
            sb.col,
            sb.row,
            T::from(0),
            T::from(1),
            false,
            false,
            false,
            parallel,
        );
    }
}

fn pool(threads: usize) -> ThreadPool {
    match ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool,
        Err(error) => {
            eprintln!("no pool: {error}");
            std::process::exit(1);
        }
    }
}

fn main() {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    println!("type        rows x k x cols transp  threads  tonnage     gemm  ratio    scratch");
    for threads in [1, 2] {
        pool(threads).install(|| {
            for (rows, cols, k) in SIZES {
                for transposed in [(false, false), (true, false), (false, true), (true, true)] {
                    let name = format!("{rows}x{k}x{cols} t{threads} {transposed:?}");
                    if name.contains(&wanted) {
                        bench!(f32, rows, cols, k, transposed, threads);
                    }
                }
                let name = format!("f64 {rows}x{k}x{cols} t{threads}");
                if name.contains(&wanted) && rows < 4096 {
                    bench!(f64, rows, cols, k, (false, false), threads);
                }
            }
        });
    }
}
