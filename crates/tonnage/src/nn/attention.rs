//! Attention with several heads.

use tonnage_core::error::bad_argument;
use tonnage_core::{Dim, Result, Shape};

use super::dense::Affine;
use super::{Layer, Mode, width};
use crate::ops::Attention;
use crate::parameters;
use crate::tensor::Tensor;

/// Queries, keys and values of `[batch, length, width]` by kernels of their own, attention in heads, and a kernel on what
/// comes out. As a [`Layer`] it is self-attention.
///
/// ```
/// use tonnage::nn::{Layer, Mode, MultiHeadAttention};
/// let layer = MultiHeadAttention::new(4).causal();
/// let y = layer.forward(&tonnage::zeros([2, 7, 32])?, Mode::Inference)?;
/// assert_eq!(y.shape().to_string(), "[2, 7, 32]");
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug)]
pub struct MultiHeadAttention {
    heads: usize,
    key_heads: usize,
    causal: bool,
    query: Affine,
    key: Affine,
    value: Affine,
    output: Affine,
}

parameters!(MultiHeadAttention { query, key, value, output });

impl MultiHeadAttention {
    /// `heads` heads, which the width is divided into.
    #[track_caller]
    pub fn new(heads: usize) -> MultiHeadAttention {
        MultiHeadAttention {
            heads,
            key_heads: heads,
            causal: false,
            query: Affine::new("attention"),
            key: Affine::new("attention"),
            value: Affine::new("attention"),
            output: Affine::new("attention"),
        }
    }

    /// Each position sees itself and those before.
    #[must_use]
    pub fn causal(self) -> MultiHeadAttention {
        MultiHeadAttention { causal: true, ..self }
    }

    /// Fewer heads of keys and values, each shared by a group of heads of queries.
    #[must_use]
    pub fn key_heads(self, key_heads: usize) -> MultiHeadAttention {
        MultiHeadAttention { key_heads, ..self }
    }

    /// Without biases.
    #[must_use]
    pub fn no_bias(mut self) -> MultiHeadAttention {
        for part in [&mut self.query, &mut self.key, &mut self.value, &mut self.output] {
            part.bias = None;
        }
        self
    }

    /// Attention of `x` to `to`, both `[batch, length, width]`; a mask broadcasts to `[batch, heads, queries, keys]`.
    #[track_caller]
    pub fn attend(&self, x: &Tensor, to: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        let whole = width("attention", x)?;
        let (heads, key_heads) = (self.heads, self.key_heads);
        if heads == 0 || key_heads == 0 || whole % heads != 0 || heads % key_heads != 0 {
            let what = format!("a width of {whole}, {heads} heads, {key_heads} of keys");
            let help = "the heads must divide the width, and those of keys the heads";
            return Err(bad_argument("attention", what, help));
        }
        let each = whole / heads;
        let q = by_head(&self.query.of(x, whole)?, heads, each)?;
        let k = by_head(&self.key.of(to, key_heads * each)?, key_heads, each)?;
        let v = by_head(&self.value.of(to, key_heads * each)?, key_heads, each)?;
        let mut how = Attention::new();
        if self.causal {
            how = how.causal();
        }
        if let Some(mask) = mask {
            how = how.mask(mask);
        }
        let seen = q.scaled_dot_product_attention(&k, &v, &how)?;
        let joined = seen.transpose(&[0, 2, 1, 3])?.reshape(x.shape())?;
        self.output.of(&joined, whole)
    }
}

/// `[batch, length, heads * each]` as `[batch, heads, length, each]`.
#[track_caller]
fn by_head(x: &Tensor, heads: usize, each: usize) -> Result<Tensor> {
    let shape = x.shape();
    let [batch, length, _] = &shape[..] else {
        let what = format!("an input of {shape}");
        return Err(bad_argument("attention", what, "give [batch, length, width]"));
    };
    let apart = [batch.clone(), length.clone(), Dim::Known(heads), Dim::Known(each)];
    x.reshape(apart.into_iter().collect::<Shape>())?.transpose(&[0, 2, 1, 3])
}

impl Layer for MultiHeadAttention {
    fn is_user_code(&self) -> bool {
        false
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        self.attend(x, x, None)
    }
}
