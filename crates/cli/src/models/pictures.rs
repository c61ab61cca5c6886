//! Models of pictures `[rows, height, width, channels]`.

use tonnage::nn::{Activation, Apply, Convolution, Dense, Dropout, Flatten, MaxPool, Sequential};
use tonnage::{Conv, DType, Elementwise, Pool};

/// Two dense layers.
pub fn mlp(classes: usize, dtype: DType) -> Sequential {
    start(dtype)
        .then(Flatten)
        .then(Dense::new(128))
        .then(Activation::Relu)
        .then(Dense::new(classes))
}

/// Two convolutions and two dense layers.
pub fn cnn(classes: usize, dtype: DType) -> Sequential {
    start(dtype)
        .then(Convolution::new(16, &[3, 3], Conv::same()))
        .then(Activation::Relu)
        .then(Convolution::new(32, &[3, 3], Conv::same()))
        .then(Activation::Relu)
        .then(MaxPool(Pool::of(2)))
        .then(Flatten)
        .then(Dropout(0.25))
        .then(Dense::new(64))
        .then(Activation::Relu)
        .then(Dense::new(classes))
}

/// Layers compute in the dtype of what comes in.
fn start(dtype: DType) -> Sequential {
    match dtype {
        DType::F32 => Sequential::new(),
        _ => Sequential::new().then(Apply(move |x: &tonnage::Tensor| x.cast(dtype))),
    }
}
