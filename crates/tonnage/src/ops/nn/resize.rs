//! Images of another size.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::window::{Between, Resize};
use tonnage_core::{Result, Shape, Source};
use tonnage_ops::nn::resize::forward::RESIZE;

use crate::dispatch::apply1;
use crate::tensor::Tensor;

impl Tensor {
    /// An image `[batch, ..., channels]` of other spatial lengths. Both images cover the same, each pixel in the middle of its
    /// area: [`Between::Nearest`] takes the nearest one, [`Between::Linear`] draws straight lines between them (along two axes:
    /// bilinear).
    ///
    /// ```
    /// use tonnage::{Between, tensor};
    /// let image = tensor([1.0f32, 3.0])?.reshape([1, 2, 1])?;
    /// assert_eq!(image.resize([4], Between::Nearest)?.to_vec::<f32>()?, [1.0, 1.0, 3.0, 3.0]);
    /// assert_eq!(image.resize([4], Between::Linear)?.to_vec::<f32>()?, [1.0, 1.5, 2.5, 3.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn resize(&self, lengths: impl Into<Shape>, between: Between) -> Result<Tensor> {
        let resize = Resize { to: lengths.into(), between, image: Shape::scalar() };
        let attrs = Attrs::Resize(Box::new(resize));
        apply1(&RESIZE, smallvec![self.into()], attrs, Source::here())
    }
}
