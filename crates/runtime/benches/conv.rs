//! The convolutions of ResNet-18 and ResNet-20, forward and backward, beside PyTorch:
//! `PEER_PYTHON=... cargo bench -p tonnage-runtime --bench conv [-- filter]`.

mod peers;

use peers::{LentOp, Torch, race};
use tonnage_core::window::{Conv, Window};
use tonnage_core::{Attrs, DType, Shape, TensorType};

/// Size of the image, channels in and out, size of the filters, stride, padding, groups.
const LAYERS: [[usize; 7]; 19] = [
    [224, 3, 64, 7, 2, 3, 1],
    [56, 64, 64, 3, 1, 1, 1],
    [56, 64, 128, 3, 2, 1, 1],
    [28, 128, 128, 3, 1, 1, 1],
    [56, 64, 128, 1, 2, 0, 1],
    [28, 128, 256, 3, 2, 1, 1],
    [14, 256, 256, 3, 1, 1, 1],
    [28, 128, 256, 1, 2, 0, 1],
    [14, 256, 512, 3, 2, 1, 1],
    [7, 512, 512, 3, 1, 1, 1],
    [14, 256, 512, 1, 2, 0, 1],
    // Not of ResNet: a bottleneck's product, and a filter a channel.
    [28, 512, 128, 1, 1, 0, 1],
    [56, 128, 128, 3, 1, 1, 128],
    // Of ResNet-20 on small images: few channels.
    [32, 3, 16, 3, 1, 1, 1],
    [32, 16, 16, 3, 1, 1, 1],
    [32, 16, 32, 3, 2, 1, 1],
    [16, 32, 32, 3, 1, 1, 1],
    [16, 32, 64, 3, 2, 1, 1],
    [8, 64, 64, 3, 1, 1, 1],
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let mut torch = Torch::start();
    println!(
        "{:<8} batch  {:<34} {:>9} {:>8} {:>9} {:>7} {:>7} {:>9}",
        "", "layer", "ms", "GFLOP/s", "torch ms", "ratio", "median", "scratch"
    );
    for batch in [8, 64] {
        for [size, inputs, outputs, taps, stride, padding, groups] in LAYERS {
            let made = (size + 2 * padding - taps) / stride + 1;
            let ty = |shape: [usize; 4]| TensorType::new(DType::F32, shape);
            let image = ty([batch, size, size, inputs]);
            let filter = ty([taps, taps, inputs / groups, outputs]);
            let values = ty([batch, made, made, outputs]);
            let window = Window {
                size: [taps, taps][..].into(),
                stride: [stride, stride][..].into(),
                padding: [[padding; 2]; 2][..].into(),
                dilation: [1, 1][..].into(),
            };
            let attrs = |image: Shape| {
                Attrs::Conv(Box::new(Conv { window: window.clone(), groups, image }))
            };
            let flops =
                2.0 * (batch * made * made * outputs * taps * taps * inputs / groups) as f64;
            for (which, op, types, attrs) in [
                ("forward", "conv", [&image, &filter], attrs(Shape::scalar())),
                ("image", "conv_transpose", [&values, &filter], attrs([size, size].into())),
                ("filter", "conv_filter_grad", [&image, &values], attrs(Shape::scalar())),
            ] {
                let layer = format!("{size} {inputs} {outputs} {taps} {stride} {padding} {groups}");
                let name = format!("{which} {batch} {layer}");
                if !wanted.iter().all(|word| name.contains(word.as_str())) {
                    continue;
                }
                let types = types.map(Clone::clone);
                let Some(mut row) = LentOp::new(op, attrs, &types) else { return };
                let workload = format!("conv {name}");
                let raced = race(&mut row, torch.as_mut(), &workload);
                let against = raced.told();
                println!(
                    "{which:<8} {batch:>5}  {layer:<34} {:>9.3} {:>8.1} {against:>25} {:>9}",
                    raced.best * 1e3,
                    flops / raced.best / 1e9,
                    row.scratch(),
                );
            }
        }
    }
}
