//! Attention of queries to keys.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::bad_argument;
use tonnage_core::{Dim, Result, Scalar, Source};
use tonnage_ops::nn::attention::forward::ATTENTION;

use crate::dispatch::{OpContext, TensorArgs, apply};
use crate::tensor::Tensor;

/// What queries see, and how sharply.
///
/// ```
/// use tonnage::Attention;
/// let decoder = Attention::new().causal();
/// # let _ = decoder;
/// ```
#[derive(Debug, Clone, Default)]
pub struct Attention {
    mask: Option<Tensor>,
    causal: bool,
    scale: Option<f64>,
}

impl Attention {
    /// Every query sees every key; products are divided by the square root of their width.
    pub fn new() -> Attention {
        Attention::default()
    }

    /// The last query sees all keys, and each one before it one fewer: with as many queries as keys, a query sees its own
    /// key and those before.
    #[must_use]
    pub fn causal(self) -> Attention {
        Attention { causal: true, ..self }
    }

    /// Keys are seen where a boolean mask is true; a mask of numbers is added to the scores. It broadcasts to
    /// `[batch, heads, queries, keys]`.
    #[must_use]
    pub fn mask(self, mask: &Tensor) -> Attention {
        Attention { mask: Some(mask.clone()), ..self }
    }

    /// What products of queries and keys are multiplied by.
    #[must_use]
    pub fn scale(self, scale: f64) -> Attention {
        Attention { scale: Some(scale), ..self }
    }
}

impl Tensor {
    /// For every query of `[batch, heads, queries, width]`, the mean of the values, weighed by how it agrees with their keys:
    /// `softmax(scale * q @ k^T + mask) @ v`.
    ///
    /// Keys and values are `[batch, heads, keys, width]`; their heads may be fewer, if they divide those of the queries, which
    /// then share them in groups. Scores are made block by block and never stored: memory is linear in both lengths, also for
    /// the gradient. A query that sees no key gets zeros.
    ///
    /// ```
    /// use tonnage::{Attention, DType, random_normal};
    /// let q = random_normal([2, 8, 100, 64], DType::F32)?;
    /// let (k, v) = (random_normal([2, 2, 300, 64], DType::F32)?, random_normal([2, 2, 300, 64], DType::F32)?);
    /// let means = q.scaled_dot_product_attention(&k, &v, &Attention::new().causal())?;
    /// assert_eq!(means.shape().to_string(), "[2, 8, 100, 64]");
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn scaled_dot_product_attention(
        &self,
        keys: &Tensor,
        values: &Tensor,
        how: &Attention,
    ) -> Result<Tensor> {
        let source = Source::here();
        let width = self.shape().last().and_then(Dim::known);
        let scale = match (how.scale, width) {
            (Some(scale), _) => scale,
            (None, Some(width)) => 1.0 / (width.max(1) as f64).sqrt(),
            (None, None) => {
                let what = format!("queries of the open shape {}", self.shape());
                return Err(bad_argument(ATTENTION.name, what, "give a scale").at(source));
            }
        };
        let mut inputs: TensorArgs = smallvec![self.into(), keys.into(), values.into()];
        inputs.extend(how.mask.as_ref().map(Into::into));
        let masked = how.mask.is_some();
        let attrs = Attrs::Attention { scale: Scalar::Float(scale), causal: how.causal, masked };
        Ok(apply(&ATTENTION, inputs, attrs, OpContext::at(source))?.swap_remove(0))
    }
}
