//! Layers one after another, and layers that training leaves alone.

use tonnage_core::Result;

use super::{Layer, Mode, Parameters, Walk};
use crate::tensor::Tensor;

/// Layers one after another.
///
/// ```
/// use tonnage::nn::{Activation, Dense, Layer, Mode, Parameters, Sequential};
/// let model = Sequential::new().then(Dense::new(32)).then(Activation::Relu).then(Dense::new(10));
/// let y = model.forward(&tonnage::zeros([4, 20])?, Mode::Inference)?;
/// assert_eq!(y.shape().to_string(), "[4, 10]");
/// assert_eq!(model.parameters()[2].path, "2.kernel");
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Default)]
pub struct Sequential(Vec<Box<dyn Layer>>);

impl Sequential {
    /// None yet.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// One more at the end.
    #[must_use]
    pub fn then(mut self, layer: impl Layer + 'static) -> Sequential {
        self.0.push(Box::new(layer));
        self
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Parameters for Sequential {
    fn walk(&self, walk: &mut Walk) {
        self.0.iter().enumerate().for_each(|(i, layer)| walk.part(&i.to_string(), layer));
    }
}

impl Layer for Sequential {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        self.0.iter().try_fold(x.clone(), |x, layer| layer.forward(&x, mode))
    }
}

/// A layer whose parameters training leaves alone. What it computes is the same.
pub struct Frozen<L>(
    /// The layer.
    pub L,
);

impl<L: Parameters> Parameters for Frozen<L> {
    fn walk(&self, walk: &mut Walk) {
        walk.frozen(&self.0);
    }
}

impl<L: Layer> Layer for Frozen<L> {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        self.0.forward(x, mode)
    }
}
