//! The workloads, a family a file. Each says its dimensions, how it is made, and what must be computed and moved.

mod arrays;
mod calls;
mod cnn;
mod embed;
mod gpt;
mod gru;
mod loops;
mod mlp;
mod stream;
mod training;

use tonnage::{DType, Result, Tensor, random_int, random_normal, tensor};

use crate::measure::PreparedWorkload;
use crate::sizes::WorkloadSizes;

/// What no implementation comes under: operations that have to be computed, bytes that have to be moved.
pub struct Limit {
    pub flops: f64,
    pub bytes: f64,
}

/// One workload.
pub struct Workload {
    pub name: &'static str,
    /// Its dimensions, which can be changed.
    pub sizes: &'static [(&'static str, usize)],
    /// Makes it, under a budget where one is given.
    pub make: fn(&WorkloadSizes, Option<&str>) -> Result<PreparedWorkload>,
    pub limit: fn(&WorkloadSizes) -> Limit,
}

/// All, in the order of the table.
pub const ALL: &[Workload] = &[
    arrays::SPLAT,
    arrays::RANDOM,
    arrays::CHAIN_POLY,
    arrays::CHAIN_ACT,
    loops::FORWARD,
    loops::GRAD_250,
    loops::GRAD_1000,
    loops::GRAD_4000,
    mlp::MLP,
    cnn::CNN,
    gpt::GPT,
    gpt::GPT2,
    embed::SGD,
    embed::ADAGRAD,
    gru::GRU,
    stream::STREAM,
    stream::STREAM_MAPPED,
    calls::ADD,
    calls::CALL,
];

/// Random numbers in memory.
fn normal(shape: &[usize]) -> Result<Tensor> {
    let values = random_normal(shape, DType::F32)?.to_vec::<f32>()?;
    tensor(values)?.reshape(shape.iter().map(|n| *n as i64).collect::<Vec<_>>())
}

/// Random whole numbers below a bound, in memory.
fn below(bound: usize, shape: &[usize]) -> Result<Tensor> {
    let values = random_int(0, bound as i64, shape, DType::I64)?.to_vec::<i64>()?;
    tensor(values)?.reshape(shape.iter().map(|n| *n as i64).collect::<Vec<_>>())
}

/// Bytes of `count` numbers.
fn f32s(count: f64) -> f64 {
    4.0 * count
}
