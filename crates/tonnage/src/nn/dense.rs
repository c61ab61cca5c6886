//! The layer that connects everything with everything.

use tonnage_core::Result;

use super::init::Initializer;
use super::param::Param;
use super::{Layer, Mode, Parameters, Walk, width};
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
    affine: Affine,
}

/// A kernel and a bias, for as many numbers as are asked for at the first call.
#[derive(Debug)]
pub(super) struct Affine {
    pub kernel: Param,
    pub bias: Option<Param>,
}

parameters!(Affine { kernel, bias });

impl Affine {
    /// Of a layer of that name.
    #[track_caller]
    pub fn new(layer: &str) -> Affine {
        let kernel = Param::new(&format!("{layer}/kernel"), Initializer::GlorotUniform);
        Affine { kernel, bias: Some(Param::new(&format!("{layer}/bias"), Initializer::Zeros)) }
    }

    /// `x @ kernel + bias`
    #[track_caller]
    pub fn of(&self, x: &Tensor, units: usize) -> Result<Tensor> {
        let (into, dtype) = (width("dense", x)?, x.dtype());
        let y = x.matmul(&self.kernel.read(&[into, units], dtype)?)?;
        match &self.bias {
            Some(bias) => y + bias.read(&[units], dtype)?,
            None => Ok(y),
        }
    }
}

impl Dense {
    /// `units` outputs, of however many inputs.
    #[track_caller]
    pub fn new(units: usize) -> Dense {
        Dense { units, affine: Affine::new("dense") }
    }

    /// Without a bias.
    #[must_use]
    pub fn no_bias(mut self) -> Dense {
        self.affine.bias = None;
        self
    }

    /// Another start of the kernel.
    #[must_use]
    pub fn starting(mut self, kernel: Initializer) -> Dense {
        self.affine.kernel.start = kernel;
        self
    }
}

impl Parameters for Dense {
    fn walk(&self, walk: &mut Walk) {
        self.affine.walk(walk);
    }
}

impl Layer for Dense {
    fn is_user_code(&self) -> bool {
        false
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        self.affine.of(x, self.units)
    }
}
