//! Tables of vectors.

use tonnage_core::Result;

use super::init::Initializer;
use super::param::Param;
use super::{Layer, Mode};
use crate::parameters;
use crate::tensor::Tensor;

/// A row of a table for each number. Its gradient is rows, up to the optimizer.
///
/// ```
/// use tonnage::nn::{Embedding, Layer, Mode};
/// use tonnage::tensor;
/// let y = Embedding::new(1000, 16).forward(&tensor([[3i64, 7, 3]])?, Mode::Inference)?;
/// assert_eq!(y.shape().to_string(), "[1, 3, 16]");
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug)]
pub struct Embedding {
    count: usize,
    width: usize,
    table: Param,
}

impl Embedding {
    /// A table of `count` rows of `width` numbers, in f32.
    #[track_caller]
    pub fn new(count: usize, width: usize) -> Embedding {
        let table = Param::new("embedding/table", Initializer::Normal(0.0, 0.05));
        Embedding { count, width, table }
    }

    /// Another start.
    #[must_use]
    pub fn starting(mut self, table: Initializer) -> Embedding {
        self.table.start = table;
        self
    }

    /// The table itself, for a last layer that shares it.
    #[track_caller]
    pub fn table(&self) -> Result<Tensor> {
        self.table.read(&[self.count, self.width], tonnage_core::DType::F32)
    }
}

parameters!(Embedding { table });

impl Layer for Embedding {
    fn is_user_code(&self) -> bool {
        false
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        self.table()?.gather(x, 0)
    }
}
