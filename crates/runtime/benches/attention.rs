//! Attention, forward and backward, beside PyTorch's flash attention for CPUs:
//! `PEER_PYTHON=... cargo bench -p tonnage-runtime --bench attention [-- filter]`.

mod peers;

use peers::{LentOp, Torch, race};
use tonnage_core::{Attrs, DType, Scalar, TensorType};

/// Batch, heads of queries and of keys, width.
const SHAPES: [[usize; 4]; 2] = [[2, 8, 8, 64], [1, 16, 4, 128]];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let mut torch = Torch::start();
    println!(
        "{:<8} {:<30} {:>9} {:>8} {:>9} {:>7} {:>7} {:>9}",
        "",
        "batch heads keys' length width",
        "ms",
        "GFLOP/s",
        "torch ms",
        "ratio",
        "median",
        "scratch"
    );
    for [batch, heads, of_keys, width] in SHAPES {
        for length in [256, 512, 1024, 2048, 4096] {
            for causal in [false, true] {
                let ty = |heads: usize, width: usize| {
                    TensorType::new(DType::F32, [batch, heads, length, width])
                };
                let one = TensorType::new(DType::F32, [batch, heads, length]);
                let (q, k, v) = (ty(heads, width), ty(of_keys, width), ty(of_keys, width));
                let scale = Scalar::Float(1.0 / (width as f64).sqrt());
                let attrs = Attrs::Attention { scale, causal, masked: false };
                let scores = (batch * heads * length * length) as f64;
                let scores = if causal { scores / 2.0 } else { scores };
                for (which, op, types, products) in [
                    ("forward", "scaled_dot_product_attention", vec![&q, &k, &v], 2.0),
                    ("back", "attention_grad", vec![&q, &k, &v, &one, &one, &q], 5.0),
                ] {
                    let shape = format!("{batch} {heads} {of_keys} {length} {width}");
                    let name = format!("{which} {shape} {}", causal as u8);
                    if !wanted.iter().all(|word| name.contains(word.as_str())) {
                        continue;
                    }
                    let types: Vec<TensorType> = types.into_iter().cloned().collect();
                    let Some(mut row) = LentOp::new(op, attrs.clone(), &types) else { return };
                    let workload = format!("attention {name}");
                    let raced = race(&mut row, torch.as_mut(), &workload);
                    let against = raced.told();
                    let flops = scores * 2.0 * width as f64 * products;
                    println!(
                        "{which:<8} {:<30} {:>9.3} {:>8.1} {against:>25} {:>9}",
                        format!("{shape}{}", if causal { " causal" } else { "" }),
                        raced.best * 1e3,
                        flops / raced.best / 1e9,
                        row.scratch(),
                    );
                }
            }
        }
    }
}
