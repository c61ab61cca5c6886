//! A model that is used: how well it does, and what it says.

use tonnage_core::{DType, Result};

use super::step::Batch;
use crate::data::Dataset;
use crate::function::{Function, function};
use crate::nn::{Layer, Mode};
use crate::ops::Elementwise;
use crate::tensor::Tensor;

/// What [`evaluate`] finds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// The mean loss.
    pub loss: f64,
    /// The share of rows whose largest output is the label's.
    pub accuracy: f64,
}

/// How well a model of classes does on data that it may never have seen: labels are one for each row, or one for each position of it.
#[track_caller]
pub fn evaluate<M: Layer>(
    model: &M,
    data: &Dataset<(Tensor, Tensor)>,
    batch: usize,
) -> Result<Evaluation> {
    let f = function(|(x, y): (Tensor, Tensor)| {
        let logits = model.forward(&x, Mode::Inference)?.cast(DType::F32)?;
        let right = logits.argmax(-1)?.equal((&y).cast(DType::I64)?)?;
        let right = right.cast(DType::F64)?.mean_all()?;
        let loss = logits.sparse_cross_entropy(&y)?.cast(DType::F64)?.mean_all()?;
        Ok((loss, right))
    });
    let [loss, accuracy] = averaged(data, batch, |rows| {
        let (loss, right) = f.call(rows)?;
        Ok([loss.scalar::<f64>()?, right.scalar::<f64>()?])
    })?;
    Ok(Evaluation { loss, accuracy })
}

/// The mean loss of a model on data, as [`Fit`](super::Fit) computes it on what is held out: in inference.
#[track_caller]
pub fn mean_loss<M: Layer>(
    model: &M,
    data: &Dataset<(Tensor, Tensor)>,
    batch: usize,
    loss: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<f64> {
    mean_of(&judge(model, &loss), data, batch)
}

/// The mean loss of a batch, in inference.
pub(super) type Judge<'a> = Function<Batch, Tensor, Box<dyn Fn(Batch) -> Result<Tensor> + 'a>>;

/// The mean loss that a model has of a batch.
pub(super) fn judge<'a, M: Layer, L: Fn(&Tensor, &Tensor) -> Result<Tensor>>(
    model: &'a M,
    loss: &'a L,
) -> Judge<'a> {
    function(Box::new(|(x, y): Batch| {
        loss(&model.forward(&x, Mode::Inference)?, &y)?.cast(DType::F64)?.mean_all()
    }))
}

/// The mean loss over all rows.
pub(super) fn mean_of(judge: &Judge<'_>, data: &Dataset<Batch>, batch: usize) -> Result<f64> {
    let [mean] = averaged(data, batch, |rows| Ok([judge.call(rows)?.scalar::<f64>()?]))?;
    Ok(mean)
}

/// Means over all rows of what is a mean over each batch.
fn averaged<const N: usize>(
    data: &Dataset<(Tensor, Tensor)>,
    batch: usize,
    of: impl Fn((Tensor, Tensor)) -> Result<[f64; N]>,
) -> Result<[f64; N]> {
    let (mut sums, mut seen) = ([0.0; N], 0);
    for rows in data.batches(batch) {
        let here = batch.min(data.len() - seen);
        seen += here;
        let means = of(rows?)?;
        sums.iter_mut().zip(means).for_each(|(sum, mean)| *sum += mean * here as f64);
    }
    Ok(sums.map(|sum| sum / seen.max(1) as f64))
}

/// A model as a function for use: planned once for every size of input, however often it is called.
///
/// ```
/// use tonnage::nn::Dense;
/// use tonnage::train::predictor;
/// let model = Dense::new(3);
/// let says = predictor(&model);
/// for _ in 0..10 {
///     assert_eq!(says.call(tonnage::ones([1, 4])?)?.shape().to_string(), "[1, 3]");
/// }
/// assert_eq!(says.traces(), 1);
/// # Ok::<(), tonnage::Error>(())
/// ```
pub fn predictor<M: Layer>(
    model: &M,
) -> Function<Tensor, Tensor, impl Fn(Tensor) -> Result<Tensor>> {
    function(|x: Tensor| model.forward(&x, Mode::Inference))
}
