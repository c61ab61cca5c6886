//! Dense layers whose weights stay in files, under a budget that holds a part of them: what a model does that is larger than memory.
//!
//! The files were written a moment ago, so the system's cache has them, as it has those of the peers.

use std::path::PathBuf;

use tonnage::io::{FileTensor, save_npy};
use tonnage::{DType, Elementwise, Result, Tensor, function, random_normal};

use super::training::planned;
use super::{Limit, Workload, f32s, normal};
use crate::measure::PreparedWorkload;
use crate::sizes::WorkloadSizes;

/// What a call may take, where nothing else is said: a twelfth of the weights.
const BUDGET: &str = "96MiB";

/// `x = relu(x @ w)`, a layer a file, read into staging space.
pub const STREAM: Workload =
    workload("stream", |sizes, budget| make(sizes, budget, |w| Ok(w.lazy())));

/// The same where the files are mapped.
pub const STREAM_MAPPED: Workload =
    workload("stream_mapped", |sizes, budget| make(sizes, budget, FileTensor::mapped));

const fn workload(
    name: &'static str,
    make: fn(&WorkloadSizes, Option<&str>) -> Result<PreparedWorkload>,
) -> Workload {
    let limit = |sizes: &WorkloadSizes| {
        let weights = sizes.float("layers") * sizes.float("width").powi(2);
        Limit { flops: 2.0 * sizes.float("batch") * weights, bytes: f32s(weights) }
    };
    Workload { name, sizes: &[("layers", 16), ("width", 4096), ("batch", 64)], make, limit }
}

/// Files that go when the workload does.
struct Files(Vec<PathBuf>);

impl Drop for Files {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn make(
    sizes: &WorkloadSizes,
    budget: Option<&str>,
    open: fn(&FileTensor) -> Result<Tensor>,
) -> Result<PreparedWorkload> {
    let (width, process) = (sizes.get("width"), std::process::id());
    let name = |i: usize| format!("tonnage-stream-{process}-{width}-{i}.npy");
    let paths = (0..sizes.get("layers")).map(|i| std::env::temp_dir().join(name(i)));
    let files = Files(paths.collect());
    let mut weights: Vec<Tensor> = Vec::new();
    for path in &files.0 {
        let values = random_normal([width, width], DType::F32)? * (1.4 / (width as f64).sqrt());
        save_npy(path, &values?)?;
        weights.push(open(&FileTensor::npy(path)?)?);
    }
    let model = function(move |x: Tensor| {
        let _kept = &files;
        weights.iter().try_fold(x, |x, w: &Tensor| x.matmul(w)?.relu())
    });
    planned(model, normal(&[sizes.get("batch"), width])?, Some(budget.unwrap_or(BUDGET)))
}
