//! Layers one after another, and layers that training leaves alone.

use tonnage_core::{Result, Source};

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
pub struct Sequential(Vec<LayerAt>);

/// A layer, and the line where it was put.
struct LayerAt {
    layer: Box<dyn Layer>,
    at: Source,
    /// What plans and the ledger call it: its number and its type.
    name: String,
}

/// The last word of a type's name, in lower case.
fn word<L>() -> String {
    let whole = std::any::type_name::<L>();
    let plain = whole.split('<').next().unwrap_or(whole);
    plain.rsplit("::").next().unwrap_or(plain).to_lowercase()
}

impl Sequential {
    /// None yet.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// One more at the end.
    #[must_use]
    #[track_caller]
    pub fn then<L: Layer + 'static>(mut self, layer: L) -> Sequential {
        let name = format!("{}.{}", self.0.len(), word::<L>());
        self.0.push(LayerAt { layer: Box::new(layer), at: Source::here(), name });
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
        let layers = self.0.iter().enumerate();
        layers.for_each(|(i, placed)| walk.part(&i.to_string(), &placed.layer));
    }
}

impl Layer for Sequential {
    #[track_caller]
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        self.0.iter().try_fold(x.clone(), |x, LayerAt { layer, at, name }| {
            // A user's own layer has lines of its own.
            Source::for_layer(name, || match layer.is_user_code() {
                true => layer.forward(&x, mode),
                false => at.stand_for(|| layer.forward(&x, mode)),
            })
        })
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
    fn is_user_code(&self) -> bool {
        self.0.is_user_code()
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        self.0.forward(x, mode)
    }
}
