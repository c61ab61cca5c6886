//! Of classes: how often the right one was said.

use tonnage_core::error::bad_argument;
use tonnage_core::{DType, Result};

use super::{Mean, Metric};
use crate::ops::Elementwise;
use crate::tensor::Tensor;

/// The share of rows whose largest output is the label's: outputs `[.., classes]`, labels `[..]`.
///
/// ```
/// use tonnage::metrics::{Accuracy, Metric};
/// let mut accuracy = Accuracy::default();
/// accuracy.update(&tonnage::tensor([[0.1f32, 0.9], [0.8, 0.2]])?, &tonnage::tensor([1i64, 1])?)?;
/// assert_eq!(accuracy.value(), 0.5);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Accuracy(Mean);

impl Metric for Accuracy {
    fn name(&self) -> String {
        "accuracy".into()
    }

    #[track_caller]
    fn update(&mut self, said: &Tensor, truth: &Tensor) -> Result<()> {
        fits("accuracy", said, truth)?;
        self.0.add(&said.argmax(-1)?.equal(truth.cast(DType::I64)?)?)
    }

    fn value(&self) -> f64 {
        self.0.value()
    }

    fn reset(&mut self) {
        self.0 = Mean::default();
    }
}

/// The share of rows whose label is among the k largest outputs.
///
/// ```
/// use tonnage::metrics::{Metric, TopK};
/// let mut top = TopK::new(2);
/// top.update(&tonnage::tensor([[0.1f32, 0.5, 0.4], [0.7, 0.2, 0.1]])?, &tonnage::tensor([2i64, 2])?)?;
/// assert_eq!((top.value(), top.name()), (0.5, "top 2".into()));
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TopK {
    k: usize,
    mean: Mean,
}

impl TopK {
    /// Among the `k` largest.
    pub fn new(k: usize) -> TopK {
        TopK { k, mean: Mean::default() }
    }
}

impl Metric for TopK {
    fn name(&self) -> String {
        format!("top {}", self.k)
    }

    #[track_caller]
    fn update(&mut self, said: &Tensor, truth: &Tensor) -> Result<()> {
        fits("top_k", said, truth)?;
        let (_, largest) = said.top_k(self.k)?;
        let label = truth.cast(DType::I64)?.expand_dims(-1)?;
        self.mean.add(&largest.cast(DType::I64)?.equal(label)?.any(-1)?)
    }

    fn value(&self) -> f64 {
        self.mean.value()
    }

    fn reset(&mut self) {
        self.mean = Mean::default();
    }
}

/// Whether there is one label for each row of outputs.
fn fits(op: &'static str, said: &Tensor, truth: &Tensor) -> Result<()> {
    let (outputs, labels) = (said.shape(), truth.shape());
    if outputs.rank() == labels.rank() + 1 && outputs[..labels.rank()] == labels[..] {
        return Ok(());
    }
    let what = format!("outputs of {outputs} and labels of {labels}");
    Err(bad_argument(op, what, "give [.., classes] and [..]"))
}
