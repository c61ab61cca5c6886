//! Ops that layers are made of and that plain programs seldom call.

use pyo3::prelude::*;
use tonnage::{Conv, Padding};

use crate::args::TensorArg;
use crate::run::{MUCH, run};
use crate::tensor::PyTensor;

/// Each channel by its mean and variance over everything else; with both.
#[pyfunction]
pub fn batch_norm(
    py: Python<'_>,
    x: TensorArg,
    scale: TensorArg,
    bias: TensorArg,
    epsilon: f64,
) -> PyResult<(PyTensor, PyTensor, PyTensor)> {
    let made = run(py, MUCH, || x.0.batch_norm(&scale.0, &bias.0, epsilon))?;
    Ok((made.output.into(), made.mean.into(), made.variance.into()))
}

/// Each group of channels of each row by its mean and variance.
#[pyfunction]
pub fn group_norm(
    py: Python<'_>,
    x: TensorArg,
    groups: usize,
    scale: TensorArg,
    bias: TensorArg,
    epsilon: f64,
) -> PyResult<PyTensor> {
    run(py, MUCH, || x.0.group_norm(groups, &scale.0, &bias.0, epsilon)).map(PyTensor::from)
}

/// Each row by the root of its mean square.
#[pyfunction]
pub fn rms_norm(
    py: Python<'_>,
    x: TensorArg,
    scale: TensorArg,
    epsilon: f64,
) -> PyResult<PyTensor> {
    run(py, MUCH, || x.0.rms_norm(&scale.0, epsilon)).map(PyTensor::from)
}

/// The gradient of a convolution by its image, over one to three axes, to an image of these lengths.
#[pyfunction]
pub fn conv_transpose(
    py: Python<'_>,
    x: TensorArg,
    filter: TensorArg,
    lengths: Vec<usize>,
    strides: Vec<usize>,
    same: bool,
    dilations: Vec<usize>,
) -> PyResult<PyTensor> {
    let padding = if same { Padding::Same } else { Padding::Valid };
    let how = Conv::valid()
        .padding(padding)
        .stride(&strides[..])
        .dilation(&dilations[..])
        .lengths(&lengths[..]);
    let made = run(py, MUCH, || match lengths.len() {
        1 => x.0.conv1d_transpose(&filter.0, &how),
        2 => x.0.conv2d_transpose(&filter.0, &how),
        _ => x.0.conv3d_transpose(&filter.0, &how),
    })?;
    Ok(made.into())
}
