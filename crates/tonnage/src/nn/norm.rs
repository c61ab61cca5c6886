//! Layers that bring numbers to a common size.

use tonnage_core::Result;

use super::init::Initializer;
use super::param::Param;
use super::{Layer, Mode, width};
use crate::parameters;
use crate::tensor::Tensor;
use crate::world;

/// Over the batch: each channel has a mean of 0 and a deviation of 1 in training; in inference, means over the batches
/// that were seen take their place.
///
/// ```
/// use tonnage::nn::{BatchNorm, Layer, Mode};
/// use tonnage::tensor;
/// let (norm, x) = (BatchNorm::new(), tensor([[1.0f32], [3.0]])?);
/// let y = norm.forward(&x, Mode::Training)?.to_vec::<f32>()?;
/// assert!((y[0] + 1.0).abs() < 1e-3 && (y[1] - 1.0).abs() < 1e-3);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug)]
pub struct BatchNorm {
    momentum: f64,
    epsilon: f64,
    scale: Param,
    bias: Param,
    mean: Param,
    variance: Param,
}

impl BatchNorm {
    /// With means in which the old have a share of 0.99.
    #[track_caller]
    #[allow(clippy::new_without_default, reason = "a default would not know the user's line")]
    pub fn new() -> BatchNorm {
        BatchNorm {
            momentum: 0.99,
            epsilon: 1e-3,
            scale: Param::new("batch_norm/scale", Initializer::Ones),
            bias: Param::new("batch_norm/bias", Initializer::Zeros),
            mean: Param::fixed("batch_norm/mean", Initializer::Zeros),
            variance: Param::fixed("batch_norm/variance", Initializer::Ones),
        }
    }

    /// The share of the old in the means over batches.
    #[must_use]
    pub fn momentum(self, momentum: f64) -> BatchNorm {
        BatchNorm { momentum, ..self }
    }

    /// What is added to variances.
    #[must_use]
    pub fn epsilon(self, epsilon: f64) -> BatchNorm {
        BatchNorm { epsilon, ..self }
    }
}

parameters!(BatchNorm { scale, bias, mean, variance });

impl Layer for BatchNorm {
    fn is_user_code(&self) -> bool {
        false
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let (shape, dtype) = ([width("batch_norm", x)?], x.dtype());
        let (scale, bias) = (self.scale.read(&shape, dtype)?, self.bias.read(&shape, dtype)?);
        let mean = self.mean.variable(&shape, dtype)?;
        let variance = self.variance.variable(&shape, dtype)?;
        if mode == Mode::Inference {
            let (mean, variance) = (mean.read()?, variance.read()?);
            return x.batch_norm_by(&mean, &variance, &scale, &bias, self.epsilon);
        }
        let made = x.batch_norm(&scale, &bias, self.epsilon)?;
        for (variable, new) in [(mean, made.mean), (variance, made.variance)] {
            // The batches of all ranks one after another, as one process sees them: ranks keep the same means.
            let new = new.stop_gradient()?;
            variable.assign(&world::running_mean(variable.read()?, new, self.momentum)?)?;
        }
        Ok(made.output)
    }
}

/// Each row along the last axis: a mean of 0 and a deviation of 1.
#[derive(Debug)]
pub struct LayerNorm {
    epsilon: f64,
    scale: Param,
    bias: Param,
}

impl LayerNorm {
    /// With 1e-5 added to variances.
    #[track_caller]
    #[allow(clippy::new_without_default, reason = "a default would not know the user's line")]
    pub fn new() -> LayerNorm {
        let scale = Param::new("layer_norm/scale", Initializer::Ones);
        LayerNorm { epsilon: 1e-5, scale, bias: Param::new("layer_norm/bias", Initializer::Zeros) }
    }

    /// What is added to variances.
    #[must_use]
    pub fn epsilon(self, epsilon: f64) -> LayerNorm {
        LayerNorm { epsilon, ..self }
    }
}

parameters!(LayerNorm { scale, bias });

impl Layer for LayerNorm {
    fn is_user_code(&self) -> bool {
        false
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let (shape, dtype) = ([width("layer_norm", x)?], x.dtype());
        let (scale, bias) = (self.scale.read(&shape, dtype)?, self.bias.read(&shape, dtype)?);
        x.layer_norm(&scale, &bias, self.epsilon)
    }
}

/// Each row along the last axis: a mean square of 1.
#[derive(Debug)]
pub struct RmsNorm {
    epsilon: f64,
    scale: Param,
}

impl RmsNorm {
    /// With 1e-6 added to mean squares.
    #[track_caller]
    #[allow(clippy::new_without_default, reason = "a default would not know the user's line")]
    pub fn new() -> RmsNorm {
        RmsNorm { epsilon: 1e-6, scale: Param::new("rms_norm/scale", Initializer::Ones) }
    }

    /// What is added to mean squares.
    #[must_use]
    pub fn epsilon(self, epsilon: f64) -> RmsNorm {
        RmsNorm { epsilon, ..self }
    }
}

parameters!(RmsNorm { scale });

impl Layer for RmsNorm {
    fn is_user_code(&self) -> bool {
        false
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        x.rms_norm(&self.scale.read(&[width("rms_norm", x)?], x.dtype())?, self.epsilon)
    }
}

/// Each group of channels of each image: a mean of 0 and a deviation of 1.
#[derive(Debug)]
pub struct GroupNorm {
    groups: usize,
    epsilon: f64,
    scale: Param,
    bias: Param,
}

impl GroupNorm {
    /// `groups` groups of channels, with 1e-5 added to variances.
    #[track_caller]
    pub fn new(groups: usize) -> GroupNorm {
        let scale = Param::new("group_norm/scale", Initializer::Ones);
        let bias = Param::new("group_norm/bias", Initializer::Zeros);
        GroupNorm { groups, epsilon: 1e-5, scale, bias }
    }

    /// What is added to variances.
    #[must_use]
    pub fn epsilon(self, epsilon: f64) -> GroupNorm {
        GroupNorm { epsilon, ..self }
    }
}

parameters!(GroupNorm { scale, bias });

impl Layer for GroupNorm {
    fn is_user_code(&self) -> bool {
        false
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let (shape, dtype) = ([width("group_norm", x)?], x.dtype());
        let (scale, bias) = (self.scale.read(&shape, dtype)?, self.bias.read(&shape, dtype)?);
        x.group_norm(self.groups, &scale, &bias, self.epsilon)
    }
}
