//! A transformer that says the next token, trained with AdamW.

use tonnage::nn::{
    Dense, Embedding, Initializer, Layer, LayerNorm, Mode, MultiHeadAttention, Param,
};
use tonnage::optim::Optimizer;
use tonnage::{DType, Elementwise, Result, Tensor, parameters};

use super::training::{cross_entropy, trained};
use super::{Limit, Workload, below, f32s};

/// The width of a head.
const HEAD: usize = 64;

pub const GPT: Workload = Workload {
    name: "gpt",
    sizes: &[("batch", 8), ("length", 256), ("width", 384), ("layers", 6), ("tokens", 8192)],
    make: |sizes, budget| {
        let [batch, length, width, layers, tokens] =
            ["batch", "length", "width", "layers", "tokens"].map(|name| sizes.get(name));
        let data = (below(tokens, &[batch, length])?, below(tokens, &[batch, length])?);
        let model = BenchGpt::new(length, width, layers, tokens);
        trained(model, Optimizer::adamw(3e-4, 0.01), data, cross_entropy, budget)
    },
    limit: |sizes| {
        let [batch, length, width, layers, tokens] =
            ["batch", "length", "width", "layers", "tokens"].map(|name| sizes.float(name));
        let weights = layers * 12.0 * width * width + width * tokens;
        // Half of what attention could see is masked. Its backward pass recomputes the scores.
        let attention = layers * batch * length * length * width * 2.0 / 2.0;
        let flops = 6.0 * batch * length * weights + attention * (2.0 + 5.0);
        let all = weights + width * (tokens + length);
        Limit { flops, bytes: f32s(6.0 * all + 2.0 * batch * length * tokens) }
    },
};

struct BenchGpt {
    length: usize,
    width: usize,
    tokens: Embedding,
    positions: Param,
    blocks: Vec<DecoderBlock>,
    norm: LayerNorm,
    head: Dense,
}

parameters!(BenchGpt { tokens, positions, blocks, norm, head });

impl BenchGpt {
    fn new(length: usize, width: usize, layers: usize, tokens: usize) -> BenchGpt {
        let start = Initializer::Normal(0.0, 0.02);
        BenchGpt {
            length,
            width,
            tokens: Embedding::new(tokens, width).starting(start),
            positions: Param::new("gpt/places", start),
            blocks: (0..layers).map(|_| DecoderBlock::new(width)).collect(),
            norm: LayerNorm::new(),
            head: Dense::new(tokens).no_bias(),
        }
    }
}

impl Layer for BenchGpt {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let positions = self.positions.read(&[self.length, self.width], DType::F32)?;
        let mut x = (self.tokens.forward(x, mode)? + positions)?;
        for block in &self.blocks {
            x = block.forward(&x, mode)?;
        }
        self.head.forward(&self.norm.forward(&x, mode)?, mode)
    }
}

/// Attention to what came before, then two dense layers at each position; each is added to what it read.
struct DecoderBlock {
    before: LayerNorm,
    attention: MultiHeadAttention,
    between: LayerNorm,
    wide: Dense,
    narrow: Dense,
}

parameters!(DecoderBlock { before, attention, between, wide, narrow });

impl DecoderBlock {
    fn new(width: usize) -> DecoderBlock {
        DecoderBlock {
            before: LayerNorm::new(),
            attention: MultiHeadAttention::new((width / HEAD).max(1)).causal(),
            between: LayerNorm::new(),
            wide: Dense::new(4 * width),
            narrow: Dense::new(width),
        }
    }
}

impl Layer for DecoderBlock {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let x = (x + self.attention.forward(&self.before.forward(x, mode)?, mode)?)?;
        let wide = self.wide.forward(&self.between.forward(&x, mode)?, mode)?.gelu_tanh()?;
        &x + self.narrow.forward(&wide, mode)?
    }
}
