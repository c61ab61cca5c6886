//! Vectors for tokens and positions.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::ErrorKind;
use tonnage_core::{DType, Error, Result, Scalar, Source};
use tonnage_ops::nn::rotary::ROTARY_EMBEDDING;

use crate::dispatch::apply1;
use crate::make;
use crate::tensor::Tensor;

impl Tensor {
    /// The rows of this table `[tokens, ...]` that belong to these tokens, an integer tensor of any shape. A token out of range
    /// is an error; the gradient of the table stays rows.
    #[track_caller]
    pub fn embedding_lookup(&self, tokens: &Tensor) -> Result<Tensor> {
        self.gather(tokens, 0)
    }

    /// Queries or keys `[..., length, width]` with their positions worked in: element `i` and element `i + width / 2` of the vector
    /// at position `p` are rotated, as a point of the plane, by the angle `p / base^(2 i / width)`. Positions count from 0.
    ///
    /// ```
    /// use tonnage::ones;
    /// let rotated = ones([1, 2, 3, 4])?.rotary_embedding(10_000.0)?;
    /// assert_eq!(rotated.to_vec::<f32>()?[..4], [1.0; 4]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn rotary_embedding(&self, base: f64) -> Result<Tensor> {
        let shape = self.shape();
        let Some(length) = shape.rank().checked_sub(2).map(|axis| shape[axis].clone()) else {
            let (op, expected) = (ROTARY_EMBEDDING.name, "2 or more ([..., length, width])".into());
            let kind = ErrorKind::RankMismatch { op, shape, expected };
            return Err(Error::from(kind).at(Source::here()));
        };
        self.rotary_embedding_at(&make::positions(length, DType::I64)?, base, false)
    }

    /// The same at other positions, one for each vector along the axis of lengths: those of a text that goes on. With `neighbours`
    /// element `2 i` is rotated with element `2 i + 1`.
    #[track_caller]
    pub fn rotary_embedding_at(
        &self,
        positions: &Tensor,
        base: f64,
        neighbours: bool,
    ) -> Result<Tensor> {
        let attrs = Attrs::Rotary { base: Scalar::Float(base), neighbours, back: false };
        apply1(&ROTARY_EMBEDDING, smallvec![self.into(), positions.into()], attrs, Source::here())
    }
}
