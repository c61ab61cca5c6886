//! Convolutions over one to three axes, channels last.

use tonnage_core::Result;
use tonnage_core::error::ErrorKind;

use super::init::Initializer;
use super::param::Param;
use super::{Layer, Mode, width};
use crate::parameters;
use crate::tensor::Tensor;
use crate::window::Conv;

/// What a filter does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConvKind {
    Forward,
    Transposed,
    /// A filter of its own for each channel.
    Depthwise,
}

/// Filters on every window of `[batch, ..., channels]`, with a bias: one, two or three axes, as the window has.
///
/// ```
/// use tonnage::Conv;
/// use tonnage::nn::{Convolution, Layer, Mode};
/// let image = tonnage::zeros([1, 28, 28, 3])?;
/// let layer = Convolution::new(16, &[3, 3], Conv::same().stride(2));
/// assert_eq!(layer.forward(&image, Mode::Inference)?.shape().to_string(), "[1, 14, 14, 16]");
/// let wider = Convolution::transposed(8, &[2, 2], Conv::same().stride(2));
/// assert_eq!(wider.forward(&image, Mode::Inference)?.shape().to_string(), "[1, 56, 56, 8]");
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug)]
pub struct Convolution {
    kind: ConvKind,
    filters: usize,
    window: Vec<usize>,
    groups: usize,
    how: Conv,
    kernel: Param,
    bias: Option<Param>,
}

impl Convolution {
    /// `filters` filters with a window of these lengths.
    #[track_caller]
    pub fn new(filters: usize, window: &[usize], how: Conv) -> Convolution {
        Convolution::made(ConvKind::Forward, filters, window, how)
    }

    /// A transposed convolution of `filters` filters: the image grows by the stride.
    #[track_caller]
    pub fn transposed(filters: usize, window: &[usize], how: Conv) -> Convolution {
        Convolution::made(ConvKind::Transposed, filters, window, how)
    }

    /// `multiplier` filters for each channel, on that channel alone; two axes.
    #[track_caller]
    pub fn depthwise(multiplier: usize, window: &[usize], how: Conv) -> Convolution {
        Convolution::made(ConvKind::Depthwise, multiplier, window, how)
    }

    #[track_caller]
    fn made(kind: ConvKind, filters: usize, window: &[usize], how: Conv) -> Convolution {
        let groups = how.group_count();
        let kernel = Param::new("conv/kernel", Initializer::GlorotUniform);
        let bias = Some(Param::new("conv/bias", Initializer::Zeros));
        Convolution { kind, filters, window: window.to_vec(), groups, how, kernel, bias }
    }

    /// Without a bias.
    #[must_use]
    pub fn no_bias(self) -> Convolution {
        Convolution { bias: None, ..self }
    }

    /// Another start of the filters.
    #[must_use]
    pub fn starting(mut self, kernel: Initializer) -> Convolution {
        self.kernel.start = kernel;
        self
    }
}

parameters!(Convolution { kernel, bias });

impl Layer for Convolution {
    fn is_user_code(&self) -> bool {
        false
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let (channels, dtype) = (width("convolution", x)?, x.dtype());
        let mut shape = self.window.clone();
        let out = match self.kind {
            ConvKind::Forward => {
                shape.extend([channels / self.groups.max(1), self.filters]);
                self.filters
            }
            ConvKind::Transposed => {
                shape.extend([self.filters, channels]);
                self.filters
            }
            ConvKind::Depthwise => {
                shape.extend([channels, self.filters]);
                channels * self.filters
            }
        };
        let kernel = self.kernel.read(&shape, dtype)?;
        let y = match (self.kind, self.window.len()) {
            (ConvKind::Forward, 1) => x.conv1d(&kernel, &self.how)?,
            (ConvKind::Forward, 2) => x.conv2d(&kernel, &self.how)?,
            (ConvKind::Forward, 3) => x.conv3d(&kernel, &self.how)?,
            (ConvKind::Transposed, 1) => x.conv1d_transpose(&kernel, &self.how)?,
            (ConvKind::Transposed, 2) => x.conv2d_transpose(&kernel, &self.how)?,
            (ConvKind::Transposed, 3) => x.conv3d_transpose(&kernel, &self.how)?,
            (ConvKind::Depthwise, 2) => x.depthwise_conv2d(&kernel, &self.how)?,
            _ => {
                let expected = match self.kind {
                    ConvKind::Depthwise => "2 lengths of the window",
                    _ => "1 to 3 lengths of the window",
                };
                let (op, shape) = ("convolution", self.window.as_slice().into());
                let kind = ErrorKind::RankMismatch { op, shape, expected: expected.into() };
                return Err(kind.into());
            }
        };
        match &self.bias {
            Some(bias) => y + bias.read(&[out], dtype)?,
            None => Ok(y),
        }
    }
}
