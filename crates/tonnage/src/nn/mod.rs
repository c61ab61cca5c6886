//! Layers: plain structs with parameters, which are made when the first input comes.
//!
//! A layer is called in eager mode or inside of a function. Parameters start as recipes, so that building a model takes no
//! bytes, and `plan` knows what it will take.

mod attention;
mod conv;
mod dense;
mod embedding;
mod init;
mod norm;
mod param;
mod parameters;
mod plain;
mod recurrent;
mod sequential;
mod summary;

pub use attention::MultiHeadAttention;
pub use conv::Convolution;
pub use dense::Dense;
pub use embedding::Embedding;
pub use init::Initializer;
pub use norm::{BatchNorm, GroupNorm, LayerNorm, RmsNorm};
pub use param::Param;
pub use parameters::{Parameter, Parameters, Walk};
pub use plain::{Activation, Apply, AvgPool, Dropout, Flatten, GlobalPool, MaxPool, Reshape};
pub use recurrent::{Bidirectional, Recurrent};
pub use sequential::{Frozen, Sequential};
pub use summary::{Summary, summary};

use tonnage_core::error::{ErrorKind, bad_argument};
use tonnage_core::{Dim, Result};

use crate::tensor::Tensor;

/// What a model is called for: some layers do something else while it learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// It learns.
    Training,
    /// It is used.
    Inference,
}

/// Something that makes a tensor of a tensor, with parameters. A user's own is a struct with [`parameters!`](crate::parameters)
/// and this.
///
/// ```
/// use tonnage::nn::{Dense, Layer, Mode, Parameters};
/// use tonnage::{Elementwise, Result, Tensor, ones, parameters};
/// struct Residual { inner: Dense }
/// parameters!(Residual { inner });
/// impl Layer for Residual {
///     fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
///         x + self.inner.forward(x, mode)?.relu()?
///     }
/// }
/// let layer = Residual { inner: Dense::new(4) };
/// assert_eq!(layer.forward(&ones([2, 4])?, Mode::Inference)?.shape().to_string(), "[2, 4]");
/// assert_eq!(layer.count(), 20);
/// # Ok::<(), tonnage::Error>(())
/// ```
pub trait Layer: Parameters {
    /// What it makes of its input.
    ///
    /// Ops in a user's own layer are told by their lines in it. The layers of this crate pass on the line of whoever calls
    /// them: their `forward` is `#[track_caller]`, which this declaration must not be, since it would hold for all of them.
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor>;

    /// Whether the lines of its ops are a user's. Those of a layer of this crate are not: what it does is done for the line
    /// where it was put.
    #[doc(hidden)]
    fn is_user_code(&self) -> bool {
        true
    }
}

impl<L: Layer + ?Sized> Layer for &L {
    fn is_user_code(&self) -> bool {
        (**self).is_user_code()
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        (**self).forward(x, mode)
    }
}

impl<L: Layer + ?Sized> Layer for Box<L> {
    fn is_user_code(&self) -> bool {
        (**self).is_user_code()
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        (**self).forward(x, mode)
    }
}

/// The length of the last axis, which parameters are made for.
fn width(op: &'static str, x: &Tensor) -> Result<usize> {
    let shape = x.shape();
    let Some(last) = shape.last() else {
        let expected = "1 or more".into();
        return Err(ErrorKind::RankMismatch { op, shape, expected }.into());
    };
    Dim::known(last).ok_or_else(|| {
        let what = format!("an input of {shape}, whose last axis is open");
        bad_argument(op, what, "fix its length in the signature")
    })
}
