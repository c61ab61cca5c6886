//! Squares and skinny products beside PyTorch:
//! `PEER_PYTHON=... cargo bench -p tonnage-runtime --bench matmul [-- filter]`.

mod peers;

use peers::{LentOp, Torch, race};
use tonnage_core::{Attrs, DType, TensorType};

/// Rows, K and columns.
const SIZES: [(usize, usize, usize); 18] = [
    (256, 256, 256),
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (4096, 64, 4096),
    (64, 4096, 4096),
    (4096, 4096, 64),
    (1, 4096, 4096),
    (4096, 4096, 1),
    (32, 784, 64),
    (1024, 784, 128),
    (4096, 768, 3072),
    (8, 1024, 1024),
    (16, 4096, 4096),
    (4096, 4096, 8),
    (4096, 4096, 6),
    (1024, 16, 1024),
];

fn main() {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    let mut torch = Torch::start();
    println!(
        "{:<24} {:>9} {:>8} {:>9} {:>7} {:>7} {:>9}",
        "rows x k x cols", "ms", "GFLOP/s", "torch ms", "ratio", "median", "scratch"
    );
    for dtype in [DType::F32, DType::BF16] {
        for (rows, k, cols) in SIZES {
            let name = format!("{dtype} {rows}x{k}x{cols}");
            if !name.contains(&wanted) {
                continue;
            }
            let types = [[rows, k], [k, cols]].map(|size| TensorType::new(dtype, size));
            let attrs = Attrs::Matmul { transpose_a: false, transpose_b: false };
            let Some(mut row) = LentOp::new("matmul", attrs, &types) else { return };
            let workload = format!("matmul {dtype} {rows} {k} {cols}");
            let raced = race(&mut row, torch.as_mut(), &workload);
            let rate = 2.0 * (rows * k * cols) as f64 / raced.best / 1e9;
            println!(
                "{name:<24} {:>9.3} {rate:>8.1} {:>25} {:>9}",
                raced.best * 1e3,
                raced.told(),
                row.scratch(),
            );
        }
    }
}
