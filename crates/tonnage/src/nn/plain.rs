//! Layers without parameters: activations, pooling, other shapes.

use tonnage_core::error::ErrorKind;
use tonnage_core::{Dim, Result, Shape};

use super::{Layer, Mode};
use crate::ops::Elementwise;
use crate::parameters;
use crate::tensor::Tensor;
use crate::window::Pool;

/// Any function of a tensor as a layer.
///
/// ```
/// use tonnage::nn::{Apply, Layer, Mode};
/// use tonnage::{Elementwise, tensor};
/// let y = Apply(|x| x.relu()).forward(&tensor([-1.0f32, 2.0])?, Mode::Inference)?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 2.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
pub struct Apply<F: Fn(&Tensor) -> Result<Tensor>>(
    /// The function.
    pub F,
);

impl<F: Fn(&Tensor) -> Result<Tensor>> super::Parameters for Apply<F> {
    fn walk(&self, _: &mut super::Walk) {}
}

impl<F: Fn(&Tensor) -> Result<Tensor>> Layer for Apply<F> {
    #[track_caller]
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        (self.0)(x)
    }
}

/// A function of each element, or of each row, that people know by name.
///
/// ```
/// use tonnage::nn::{Activation, Dense, Layer, Mode, Sequential};
/// let model = Sequential::new().then(Dense::new(8)).then(Activation::Gelu).then(Dense::new(2));
/// assert_eq!(model.forward(&tonnage::ones([3, 4])?, Mode::Inference)?.shape().to_string(), "[3, 2]");
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// Nothing.
    Linear,
    /// [`Elementwise::relu`]
    Relu,
    /// [`Elementwise::relu6`]
    Relu6,
    /// [`Elementwise::elu`] of 1
    Elu,
    /// [`Elementwise::selu`]
    Selu,
    /// [`Elementwise::gelu`]
    Gelu,
    /// [`Elementwise::silu`]
    Silu,
    /// [`Elementwise::sigmoid`]
    Sigmoid,
    /// [`Elementwise::hard_sigmoid`]
    HardSigmoid,
    /// [`Elementwise::hard_swish`]
    HardSwish,
    /// [`Elementwise::tanh`]
    Tanh,
    /// [`Elementwise::softplus`]
    Softplus,
    /// [`Elementwise::softsign`]
    Softsign,
    /// [`Elementwise::exp`]
    Exp,
    /// [`Tensor::softmax`] of the last axis
    Softmax,
    /// [`Tensor::log_softmax`] of the last axis
    LogSoftmax,
}

parameters!(Activation {});

impl Layer for Activation {
    fn is_user_code(&self) -> bool {
        false
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        match self {
            Activation::Linear => Ok(x.clone()),
            Activation::Relu => x.relu(),
            Activation::Relu6 => x.relu6(),
            Activation::Elu => x.elu(1.0),
            Activation::Selu => x.selu(),
            Activation::Gelu => x.gelu(),
            Activation::Silu => x.silu(),
            Activation::Sigmoid => x.sigmoid(),
            Activation::HardSigmoid => x.hard_sigmoid(),
            Activation::HardSwish => x.hard_swish(),
            Activation::Tanh => x.tanh(),
            Activation::Softplus => x.softplus(),
            Activation::Softsign => x.softsign(),
            Activation::Exp => x.exp(),
            Activation::Softmax => x.softmax(-1),
            Activation::LogSoftmax => x.log_softmax(-1),
        }
    }
}

/// The largest of each window.
#[derive(Debug, Clone)]
pub struct MaxPool(
    /// The windows.
    pub Pool,
);

parameters!(MaxPool {});

impl Layer for MaxPool {
    fn is_user_code(&self) -> bool {
        false
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        x.max_pool(&self.0)
    }
}

/// The mean of each window.
#[derive(Debug, Clone)]
pub struct AvgPool(
    /// The windows.
    pub Pool,
);

parameters!(AvgPool {});

impl Layer for AvgPool {
    fn is_user_code(&self) -> bool {
        false
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        x.avg_pool(&self.0)
    }
}

/// One number for each channel of an image `[batch, ..., channels]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GlobalPool {
    /// The largest.
    Max,
    /// The mean.
    Avg,
}

parameters!(GlobalPool {});

impl Layer for GlobalPool {
    fn is_user_code(&self) -> bool {
        false
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        match self {
            GlobalPool::Max => x.global_max_pool(),
            GlobalPool::Avg => x.global_avg_pool(),
        }
    }
}

/// In training, each element 0 with this probability and larger otherwise, so that the expected value stays. Which ones follows
/// from a random key: no mask is saved.
///
/// ```
/// use tonnage::nn::{Dropout, Layer, Mode};
/// let x = tonnage::ones([1000])?;
/// let left = Dropout(0.5).forward(&x, Mode::Training)?.sum_all()?.scalar::<f32>()?;
/// assert!((900.0..1100.0).contains(&left));
/// assert_eq!(Dropout(0.5).forward(&x, Mode::Inference)?.sum_all()?.scalar::<f32>()?, 1000.0);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout(
    /// The probability.
    pub f64,
);

parameters!(Dropout {});

impl Layer for Dropout {
    fn is_user_code(&self) -> bool {
        false
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        match mode {
            Mode::Training => x.dropout(self.0),
            Mode::Inference => Ok(x.clone()),
        }
    }
}

/// All axes but the first in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flatten;

parameters!(Flatten {});

impl Layer for Flatten {
    fn is_user_code(&self) -> bool {
        false
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let shape = x.shape();
        let Some(batch) = shape.first() else {
            let expected = "1 or more ([batch, ...])".into();
            return Err(ErrorKind::RankMismatch { op: "flatten", shape, expected }.into());
        };
        let rest = shape[1..].iter().fold(Dim::Known(1), |n, d| n.times(d));
        x.reshape([batch.clone(), rest].into_iter().collect::<Shape>())
    }
}

/// Other lengths behind the first axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reshape(
    /// The lengths.
    pub Vec<usize>,
);

parameters!(Reshape {});

impl Layer for Reshape {
    fn is_user_code(&self) -> bool {
        false
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let shape = x.shape();
        let Some(batch) = shape.first() else {
            let expected = "1 or more ([batch, ...])".into();
            return Err(ErrorKind::RankMismatch { op: "reshape", shape, expected }.into());
        };
        let rest = self.0.iter().map(|n| Dim::Known(*n));
        x.reshape(std::iter::once(batch.clone()).chain(rest).collect::<Shape>())
    }
}
