//! Transformers that say the next token, trained with AdamW: one of f32, and GPT-2 as it was published, in bf16.

use tonnage::nn::{
    Dense, Embedding, Initializer, Layer, LayerNorm, Mode, MultiHeadAttention, Param, Parameters,
    Walk,
};
use tonnage::optim::Optimizer;
use tonnage::{DType, Elementwise, Result, Tensor, parameters};

use super::training::{cross_entropy, trained};
use super::{Limit, Workload, below, f32s};
use crate::sizes::WorkloadSizes;

/// The width of a head.
const HEAD: usize = 64;

pub const GPT: Workload = Workload {
    name: "gpt",
    sizes: &[("batch", 8), ("length", 256), ("width", 384), ("layers", 6), ("tokens", 8192)],
    make: |sizes, budget| {
        let [batch, length, width, layers, tokens] =
            ["batch", "length", "width", "layers", "tokens"].map(|name| sizes.get(name));
        let data = (below(tokens, &[batch, length])?, below(tokens, &[batch, length])?);
        let model = BenchGpt::new((length, width, layers, tokens), DType::F32);
        trained(model, Optimizer::adamw(3e-4, 0.01), data, cross_entropy, budget)
    },
    limit: |sizes| {
        let (flops, weights) = computed(sizes);
        let [batch, length, width, tokens] =
            ["batch", "length", "width", "tokens"].map(|name| sizes.float(name));
        let all = weights + width * (tokens + length);
        Limit { flops, bytes: f32s(6.0 * all + 2.0 * batch * length * tokens) }
    },
};

/// The smallest GPT-2, which computes in bf16 and keeps its parameters in f32 too; one table for what goes in and what comes out.
pub const GPT2: Workload = Workload {
    name: "gpt2",
    sizes: &[("batch", 64), ("length", 1024), ("width", 768), ("layers", 12), ("tokens", 50_304)],
    make: |sizes, budget| {
        let [batch, length, width, layers, tokens] =
            ["batch", "length", "width", "layers", "tokens"].map(|name| sizes.get(name));
        let data = (below(tokens, &[batch, length])?, below(tokens, &[batch, length])?);
        let model = BenchGpt::new((length, width, layers, tokens), DType::BF16);
        let optimizer = Optimizer::adamw(3e-4, 0.01).master_weights();
        trained(model, optimizer, data, cross_entropy, budget)
    },
    limit: |sizes| {
        let (flops, weights) = computed(sizes);
        // A step reads and writes parameters and moments of f32, and the bf16 that it computes in.
        Limit { flops, bytes: weights * (6.0 * 4.0 + 2.0 * 2.0) }
    },
};

/// Operations of a step, and weights of its products.
fn computed(sizes: &WorkloadSizes) -> (f64, f64) {
    let [batch, length, width, layers, tokens] =
        ["batch", "length", "width", "layers", "tokens"].map(|name| sizes.float(name));
    let weights = layers * 12.0 * width * width + width * tokens;
    // Half of what attention could see is masked. Its backward pass recomputes the scores.
    let attention = layers * batch * length * length * width * 2.0 / 2.0;
    (6.0 * batch * length * weights + attention * (2.0 + 5.0), weights)
}

struct BenchGpt {
    length: usize,
    width: usize,
    /// What it computes in.
    dtype: DType,
    tokens: Embedding,
    positions: Param,
    blocks: Vec<DecoderBlock>,
    norm: LayerNorm,
    /// The last product; that of 16 bits shares the table of tokens.
    head: Option<Dense>,
}

impl Parameters for BenchGpt {
    fn walk(&self, walk: &mut Walk) {
        walk.part("tokens", &self.tokens);
        walk.part("positions", &self.positions);
        walk.part("blocks", &self.blocks);
        walk.part("norm", &self.norm);
        if let Some(head) = &self.head {
            walk.part("head", head);
        }
    }
}

impl BenchGpt {
    fn new(
        (length, width, layers, tokens): (usize, usize, usize, usize),
        dtype: DType,
    ) -> BenchGpt {
        let start = Initializer::Normal(0.0, 0.02);
        BenchGpt {
            length,
            width,
            dtype,
            tokens: Embedding::new(tokens, width).starting(start),
            positions: Param::new("gpt/places", start),
            blocks: (0..layers).map(|_| DecoderBlock::new(width)).collect(),
            norm: LayerNorm::new(),
            head: (dtype == DType::F32).then(|| Dense::new(tokens).no_bias()),
        }
    }
}

impl Layer for BenchGpt {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let positions = self.positions.read(&[self.length, self.width], DType::F32)?;
        let mut x = (self.tokens.forward(x, mode)? + positions)?.cast(self.dtype)?;
        for block in &self.blocks {
            x = block.forward(&x, mode)?;
        }
        let x = self.norm.forward(&x, mode)?;
        match &self.head {
            Some(head) => head.forward(&x, mode),
            None => x.matmul(&self.tokens.table()?.cast(self.dtype)?.transpose(&[1, 0])?),
        }
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
