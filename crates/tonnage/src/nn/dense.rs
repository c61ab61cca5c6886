//! The layer that connects everything with everything.

use tonnage_core::Result;

use super::init::Initializer;
use super::param::Param;
use super::{Layer, Mode, width};
use crate::parameters;
use crate::tensor::Tensor;

/// `x @ kernel + bias`, on the last axis.
///
/// ```
/// use tonnage::nn::{Dense, Layer, Mode};
/// let y = Dense::new(10).forward(&tonnage::zeros([2, 5, 3])?, Mode::Inference)?;
/// assert_eq!(y.shape().to_string(), "[2, 5, 10]");
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug)]
pub struct Dense {
    units: usize,
    kernel: Param,
    bias: Option<Param>,
}

impl Dense {
    /// So many numbers out of however many come in.
    #[track_caller]
    pub fn new(units: usize) -> Dense {
        let kernel = Param::new("dense/kernel", Initializer::GlorotUniform);
        Dense { units, kernel, bias: Some(Param::new("dense/bias", Initializer::Zeros)) }
    }

    /// Without a bias.
    #[must_use]
    pub fn no_bias(self) -> Dense {
        Dense { bias: None, ..self }
    }

    /// Another start of the kernel.
    #[must_use]
    pub fn starting(mut self, kernel: Initializer) -> Dense {
        self.kernel.start = kernel;
        self
    }
}

parameters!(Dense { kernel, bias });

impl Layer for Dense {
    fn has_lines(&self) -> bool {
        false
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let (into, dtype) = (width("dense", x)?, x.dtype());
        let y = x.matmul(&self.kernel.read(&[into, self.units], dtype)?)?;
        match &self.bias {
            Some(bias) => y + bias.read(&[self.units], dtype)?,
            None => Ok(y),
        }
    }
}
