//! A residual network of 20 layers on small pictures (He et al. 2016), trained with momentum.

use tonnage::nn::{BatchNorm, Convolution, Dense, Layer, Mode};
use tonnage::optim::{Optimizer, Sgd};
use tonnage::{Conv, Elementwise, Result, Tensor, parameters};

use super::training::{cross_entropy, trained};
use super::{Limit, Workload, below, f32s, normal};

/// Channels of the three stages; blocks in each.
const STAGES: [usize; 3] = [16, 32, 64];
const BLOCKS: usize = 3;

pub const CNN: Workload = Workload {
    name: "cnn",
    sizes: &[("batch", 64), ("side", 32)],
    make: |sizes, budget| {
        let (batch, side) = (sizes.get("batch"), sizes.get("side"));
        let data = (normal(&[batch, side, side, 3])?, below(10, &[batch])?);
        let rule = Sgd { momentum: 0.9, nesterov: false };
        trained(Net::new(), Optimizer::new(rule, 0.1), data, cross_entropy, budget)
    },
    limit: |sizes| {
        let (batch, side) = (sizes.float("batch"), sizes.float("side"));
        let (mut flops, mut saved, mut from, mut pixels) = (0.0, 0.0, 3.0, side * side);
        let mut conv = |from: f64, to: f64, pixels: f64, window: f64, ways: f64| {
            flops += ways * 2.0 * batch * pixels * window * from * to;
            saved += batch * pixels * to;
        };
        conv(from, 16.0, pixels, 9.0, 2.0);
        from = 16.0;
        for (stage, to) in STAGES.into_iter().enumerate() {
            let to = to as f64;
            if stage > 0 {
                pixels /= 4.0;
                conv(from, to, pixels, 1.0, 3.0);
            }
            for block in 0..BLOCKS {
                conv(if block == 0 { from } else { to }, to, pixels, 9.0, 3.0);
                conv(to, to, pixels, 9.0, 3.0);
            }
            from = to;
        }
        // What a convolution made is written once, and read by its norm and in the backward pass.
        Limit { flops, bytes: f32s(3.0 * saved) }
    },
};

/// A convolution and its norm.
struct Normed {
    conv: Convolution,
    norm: BatchNorm,
}

parameters!(Normed { conv, norm });

impl Normed {
    fn new(to: usize, stride: usize) -> Normed {
        let conv = Convolution::new(to, &[3, 3], Conv::same().stride(stride)).no_bias();
        Normed { conv, norm: BatchNorm::new() }
    }
}

impl Layer for Normed {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        self.norm.forward(&self.conv.forward(x, mode)?, mode)
    }
}

/// Two of them, added to what they read, or to a projection of it.
struct ResidualBlock {
    first: Normed,
    second: Normed,
    skip: Option<Convolution>,
}

parameters!(ResidualBlock { first, second, skip });

impl Layer for ResidualBlock {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let inner = self.second.forward(&self.first.forward(x, mode)?.relu()?, mode)?;
        match &self.skip {
            Some(skip) => (inner + skip.forward(x, mode)?)?.relu(),
            None => (inner + x)?.relu(),
        }
    }
}

struct Net {
    first: Normed,
    blocks: Vec<ResidualBlock>,
    head: Dense,
}

parameters!(Net { first, blocks, head });

impl Net {
    fn new() -> Net {
        let mut blocks = Vec::new();
        for (stage, to) in STAGES.into_iter().enumerate() {
            for block in 0..BLOCKS {
                let stride = if stage > 0 && block == 0 { 2 } else { 1 };
                let project =
                    || Convolution::new(to, &[1, 1], Conv::same().stride(stride)).no_bias();
                blocks.push(ResidualBlock {
                    first: Normed::new(to, stride),
                    second: Normed::new(to, 1),
                    skip: (stride == 2).then(project),
                });
            }
        }
        Net { first: Normed::new(16, 1), blocks, head: Dense::new(10) }
    }
}

impl Layer for Net {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let mut x = self.first.forward(x, mode)?.relu()?;
        for block in &self.blocks {
            x = block.forward(&x, mode)?;
        }
        self.head.forward(&x.mean([1, 2])?, mode)
    }
}
