//! A gated recurrent layer that says the next character.

use tonnage::nn::{Dense, Embedding, Layer, Mode, Recurrent};
use tonnage::{DType, Elementwise, Result, Tensor, parameters};

/// Characters `[batch, length]` to what comes next at each position, `[batch, length, characters]`.
pub struct Gru {
    dtype: DType,
    tokens: Embedding,
    layer: Recurrent,
    head: Dense,
}

parameters!(Gru { tokens, layer, head });

impl Gru {
    /// Of this vocabulary, and this width of the state.
    pub fn new(vocabulary: usize, width: usize, dtype: DType) -> Gru {
        let tokens = Embedding::new(vocabulary, width);
        Gru {
            dtype,
            tokens,
            layer: Recurrent::gru(width).sequences(),
            head: Dense::new(vocabulary),
        }
    }
}

impl Layer for Gru {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let x = self.tokens.forward(x, mode)?.cast(self.dtype)?;
        self.head.forward(&self.layer.forward(&x, mode)?, mode)
    }
}
