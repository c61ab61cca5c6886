//! A transformer that says the next character (Vaswani et al. 2017, with norms before each part, as GPT-2 has them): a small one, or GPT-2.

use tonnage::nn::{
    Dense, Embedding, Initializer, Layer, LayerNorm, Mode, MultiHeadAttention, Param, Parameters,
    Walk,
};
use tonnage::{DType, Elementwise, Part, Result, Source, Tensor, parameters};

use super::ModelConfig;

/// The width of a head, where no preset says another.
const HEAD: usize = 16;

/// Characters `[batch, length]` to what comes next at each position, `[batch, length, characters]`.
pub struct Gpt {
    length: usize,
    width: usize,
    dtype: DType,
    tokens: Embedding,
    positions: Param,
    blocks: Vec<TransformerBlock>,
    norm: LayerNorm,
    /// The last product; nothing where it shares the table of tokens.
    head: Option<Dense>,
}

impl Parameters for Gpt {
    fn walk(&self, walk: &mut Walk) {
        walk.part("tokens", &self.tokens);
        walk.part("places", &self.positions); // as checkpoints call it
        walk.part("blocks", &self.blocks);
        walk.part("norm", &self.norm);
        if let Some(head) = &self.head {
            walk.part("head", head);
        }
    }
}

impl Gpt {
    /// Of the vocabulary, width of vectors, number of blocks and length of the context that a configuration says.
    pub fn new(config: &ModelConfig) -> Gpt {
        let start = Initializer::Normal(0.0, 0.02);
        let &ModelConfig { width, layers, length, preset, .. } = config;
        let vocabulary = config.classes();
        let heads = preset.map_or((width / HEAD).max(1), |preset| preset.sizes().heads);
        // GPT-2 has the approximation by the hyperbolic tangent, and one table for what goes in and what comes out.
        let block = || TransformerBlock::new(heads, width, preset.is_some());
        Gpt {
            length,
            width,
            dtype: config.precision.dtype(),
            tokens: Embedding::new(vocabulary, width).starting(start),
            positions: Param::new("gpt/places", start),
            blocks: (0..layers).map(|_| block()).collect(),
            norm: LayerNorm::new(),
            head: preset.is_none().then(|| Dense::new(vocabulary).no_bias()),
        }
    }
}

impl Layer for Gpt {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let seen = x.shape().get(1).and_then(|n| n.known()).unwrap_or(self.length);
        let positions = self.positions.read(&[self.length, self.width], DType::F32)?;
        let positions = positions.slice(&[Part::from(0..seen as i64), Part::ALL])?;
        let mut x = Source::for_layer("embedding", || {
            (self.tokens.forward(x, mode)? + positions)?.cast(self.dtype)
        })?;
        for (i, block) in self.blocks.iter().enumerate() {
            x = Source::for_layer(&format!("blocks.{i}"), || block.forward(&x, mode))?;
        }
        Source::for_layer("head", || {
            let x = self.norm.forward(&x, mode)?;
            match &self.head {
                Some(head) => head.forward(&x, mode),
                None => x.matmul(&self.tokens.table()?.cast(self.dtype)?.transpose(&[1, 0])?),
            }
        })
    }
}

/// Attention to what came before, then two dense layers at each position; each is added to what it read.
struct TransformerBlock {
    before: LayerNorm,
    attention: MultiHeadAttention,
    between: LayerNorm,
    wide: Dense,
    narrow: Dense,
    /// Whether gelu is approximated.
    approximate: bool,
}

parameters!(TransformerBlock { before, attention, between, wide, narrow });

impl TransformerBlock {
    fn new(heads: usize, width: usize, approximate: bool) -> TransformerBlock {
        TransformerBlock {
            before: LayerNorm::new(),
            attention: MultiHeadAttention::new(heads).causal(),
            between: LayerNorm::new(),
            wide: Dense::new(4 * width),
            narrow: Dense::new(width),
            approximate,
        }
    }
}

impl Layer for TransformerBlock {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let x = (x + self.attention.forward(&self.before.forward(x, mode)?, mode)?)?;
        let wide = self.wide.forward(&self.between.forward(&x, mode)?, mode)?;
        let wide = if self.approximate { wide.gelu_tanh()? } else { wide.gelu()? };
        &x + self.narrow.forward(&wide, mode)?
    }
}
