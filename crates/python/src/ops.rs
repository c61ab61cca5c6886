//! Ops that take more than tensors: axes, lengths, numbers. Python gives them TensorFlow's names and defaults; each
//! here takes all of its arguments, by position.

use pyo3::prelude::*;
use tonnage::strings::{Strings, Value};
use tonnage::{
    Attention, Between, Conv, DType, Dim, Elementwise, PadMode, Padding, Pool, Scalar, Scan, Shape,
    Tensor,
};

use crate::args::{
    AxesArg, Dt, Element, FillArg, InRange, ScalarArg, Several, SeveralValues, ShapeArg, TensorArg,
    ValueArg, Work,
};
use crate::dtype::ElementType;
use crate::results::IntoObject;
use crate::run::run;
use crate::strings::{self, PyValue};
use crate::tensor::PyTensor;

macro_rules! ops {
    ($($name:ident($($arg:ident: $T:ty),*) -> $R:ty = $body:expr;)*) => {
        $(
            #[pyfunction]
            #[allow(clippy::too_many_arguments, reason = "they are what the op takes")]
            fn $name(py: Python<'_>, $($arg: InRange<$T>),*) -> PyResult<<$R as IntoObject>::Object> {
                $(let $arg = $arg.0;)*
                let work = 0usize $(.saturating_add($arg.work()))*;
                run(py, work, move || -> tonnage::Result<$R> { $body }).map(IntoObject::out)
            }
        )*

        /// Adds them all to the module.
        pub fn add_all(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }
    };
}

macro_rules! reduced {
    ($x:expr, $axes:expr, $keep:expr, $reduce:ident, $reduce_keep:ident) => {
        if $keep { $x.0.$reduce_keep($axes.0) } else { $x.0.$reduce($axes.0) }
    };
}

/// Numbers of a seed that is known, of one that is computed, or of the next key.
macro_rules! drawn {
    ($seed:expr, $method:ident, $function:ident, $($arg:expr),*) => {
        match $seed {
            Some(Seed::Known(seed)) => seed.0.$method($($arg),*),
            Some(Seed::Computed(seed)) => tonnage::RandomSeed::new(&seed)?.$method($($arg),*),
            None => tonnage::$function($($arg),*),
        }
    };
}

fn refs(several: &Several) -> Vec<&Tensor> {
    several.0.iter().collect()
}

/// Lengths that must be known by now.
fn shape(lengths: ShapeArg) -> tonnage::Result<Shape> {
    lengths.shape().map_err(crate::errors::carry)
}

/// `N` lengths that must be known by now.
fn known<const N: usize>(op: &'static str, lengths: ShapeArg) -> tonnage::Result<[Dim; N]> {
    <[Dim; N]>::try_from(shape(lengths)?.to_vec()).map_err(|given| {
        let what = format!("{} lengths", given.len());
        tonnage_core::error::bad_argument(op, what, format!("give {N}"))
    })
}

fn conv(
    strides: &[usize],
    same: bool,
    pads: Vec<[usize; 2]>,
    dilations: &[usize],
    groups: usize,
) -> Conv {
    let padding = match (same, pads.is_empty()) {
        (true, _) => Padding::Same,
        (false, true) => Padding::Valid,
        (false, false) => Padding::Of(pads.into_iter().collect()),
    };
    Conv::valid().padding(padding).stride(strides).dilation(dilations).groups(groups)
}

fn pool(size: &[usize], strides: &[usize], same: bool) -> Pool {
    let padding = if same { Padding::Same } else { Padding::Valid };
    Pool::of(size).stride(strides).padding(padding)
}

fn matmul(a: &Tensor, b: &Tensor, transpose_a: bool, transpose_b: bool) -> tonnage::Result<Tensor> {
    let attrs = tonnage_core::attrs::Attrs::Matmul { transpose_a, transpose_b };
    let row = &tonnage_ops::linalg::matmul::MATMUL;
    Ok(tonnage::bind::apply(row, &[a, b], attrs)?.swap_remove(0))
}

ops! {
    reduce_sum(x: TensorArg, axes: AxesArg, keep: bool) -> Tensor = reduced!(x, axes, keep, sum, sum_keep);
    reduce_mean(x: TensorArg, axes: AxesArg, keep: bool) -> Tensor = reduced!(x, axes, keep, mean, mean_keep);
    reduce_prod(x: TensorArg, axes: AxesArg, keep: bool) -> Tensor = reduced!(x, axes, keep, prod, prod_keep);
    reduce_max(x: TensorArg, axes: AxesArg, keep: bool) -> Tensor = reduced!(x, axes, keep, max, max_keep);
    reduce_min(x: TensorArg, axes: AxesArg, keep: bool) -> Tensor = reduced!(x, axes, keep, min, min_keep);
    reduce_any(x: TensorArg, axes: AxesArg, keep: bool) -> Tensor = reduced!(x, axes, keep, any, any_keep);
    reduce_all(x: TensorArg, axes: AxesArg, keep: bool) -> Tensor = reduced!(x, axes, keep, all, all_keep);
    reduce_variance(x: TensorArg, axes: AxesArg, keep: bool) -> Tensor = reduced!(x, axes, keep, var, var_keep);
    reduce_std(x: TensorArg, axes: AxesArg, keep: bool) -> Tensor = reduced!(x, axes, keep, std, std_keep);
    reduce_logsumexp(x: TensorArg, axes: AxesArg, keep: bool) -> Tensor =
        reduced!(x, axes, keep, logsumexp, logsumexp_keep);
    count_nonzero(x: ValueArg, axes: AxesArg, keep: bool) -> Tensor = {
        let x = TensorArg(strings::sizes_or_numbers(x.0));
        reduced!(x, axes, keep, count_nonzero, count_nonzero_keep)
    };
    norm(x: TensorArg, axes: AxesArg, keep: bool) -> Tensor = reduced!(x, axes, keep, norm, norm_keep);
    norm_of_power(x: TensorArg, power: f64, axes: AxesArg) -> Tensor = x.0.norm_of_power(power, axes.0);
    argmax(x: TensorArg, axis: i64) -> Tensor = x.0.argmax(axis);
    argmin(x: TensorArg, axis: i64) -> Tensor = x.0.argmin(axis);
    cumsum(x: TensorArg, axis: i64, exclusive: bool, reverse: bool) -> Tensor =
        x.0.cumsum_by(axis, Scan { exclusive, reverse });
    cumprod(x: TensorArg, axis: i64, exclusive: bool, reverse: bool) -> Tensor =
        x.0.cumprod_by(axis, Scan { exclusive, reverse });
    cast(x: ValueArg, dtype: Element) -> Tensor = strings::cast(x.0, dtype.0);
    bitcast(x: TensorArg, dtype: Dt) -> Tensor = x.0.bitcast(dtype.0);
    leaky_relu(x: TensorArg, slope: f64) -> Tensor = x.0.leaky_relu(slope);
    elu(x: TensorArg, alpha: f64) -> Tensor = x.0.elu(alpha);
    polygamma(x: TensorArg, order: usize) -> Tensor = x.0.polygamma(order);
    erfinv(x: TensorArg) -> Tensor = x.0.erfinv();
    ndtri(x: TensorArg) -> Tensor = x.0.ndtri();
    lbeta(x: TensorArg) -> Tensor = x.0.lbeta();
    xdivy(x: TensorArg, y: TensorArg) -> Tensor = x.0.xdivy(&y.0);
    xlog1py(x: TensorArg, y: TensorArg) -> Tensor = x.0.xlog1py(&y.0);
    cumulative_logsumexp(x: TensorArg, axis: i64, exclusive: bool, reverse: bool) -> Tensor =
        x.0.cumulative_logsumexp_by(axis, Scan { exclusive, reverse });
    transpose(x: ValueArg, order: Vec<i64>) -> Value = x.0.each(|x| x.transpose(&order));
    reshape(x: ValueArg, lengths: ShapeArg) -> Value = {
        let to = lengths.of(&x.0.shape()).map_err(crate::errors::carry)?;
        x.0.each(|x| x.reshape(to.clone()))
    };
    broadcast_to(x: ValueArg, lengths: ShapeArg) -> Value = {
        let to = shape(lengths)?;
        x.0.each(|x| x.broadcast_to(to.clone()))
    };
    expand_dims(x: ValueArg, axis: i64) -> Value = x.0.each(|x| x.expand_dims(axis));
    squeeze(x: ValueArg, axes: AxesArg) -> Value = x.0.each(|x| x.squeeze(axes.0.clone()));
    reverse(x: ValueArg, axes: AxesArg) -> Value = x.0.each(|x| x.reverse(axes.0.clone()));
    split_evenly(x: ValueArg, parts: usize, axis: i64) -> Vec<Value> = x.0.each_of_several(|x| x.split_evenly(parts, axis));
    split(x: ValueArg, lengths: Vec<usize>, axis: i64) -> Vec<Value> = x.0.each_of_several(|x| x.split(&lengths, axis));
    unstack(x: ValueArg, axis: i64) -> Vec<Value> = x.0.each_of_several(|x| x.unstack(axis));
    pad(x: ValueArg, widths: Vec<[usize; 2]>, value: FillArg) -> Value = strings::pad(x.0, &widths, value);
    pad_mirrored(x: ValueArg, widths: Vec<[usize; 2]>, symmetric: bool) -> Value = {
        let how = if symmetric { PadMode::Symmetric } else { PadMode::Reflect };
        x.0.each(|x| x.pad(&widths, how))
    };
    tile(x: ValueArg, counts: Vec<usize>) -> Value = x.0.each(|x| x.tile(&counts));
    repeat(x: ValueArg, count: usize, axis: i64) -> Value = x.0.each(|x| x.repeat(count, axis));
    roll(x: ValueArg, shift: i64, axis: i64) -> Value = x.0.each(|x| x.roll(shift, axis));
    one_hot(x: TensorArg, depth: usize, dtype: Dt, on: ScalarArg, off: ScalarArg) -> Tensor =
        x.0.one_hot_of(depth, dtype.0, on.0, off.0);
    tril(x: TensorArg, diagonal: i64) -> Tensor = x.0.tril(diagonal);
    triu(x: TensorArg, diagonal: i64) -> Tensor = x.0.triu(diagonal);
    diag(x: TensorArg, diagonal: i64) -> Tensor = x.0.diag(diagonal);
    diag_part(x: TensorArg, diagonal: i64) -> Tensor = x.0.diag_part(diagonal);
    concat(parts: SeveralValues, axis: i64) -> Value = Value::concat(&parts.0, axis);
    stack(parts: SeveralValues, axis: i64) -> Value = Value::stack(&parts.0, axis);
    meshgrid(vectors: Several) -> Vec<Tensor> = tonnage::meshgrid(&refs(&vectors));
    einsum(text: String, operands: Several) -> Tensor = tonnage::einsum(&text, &refs(&operands));
    where_(condition: TensorArg, yes: ValueArg, no: ValueArg) -> Value = strings::chosen(&condition.0, yes.0, no.0);
    nonzero(x: TensorArg) -> Tensor = x.0.nonzero();
    gather(x: ValueArg, indices: TensorArg, axis: i64, batch: usize) -> Value = x.0.each(|x| match batch {
        0 => x.gather(&indices.0, axis),
        _ => x.gather_batched(&indices.0, axis, batch),
    });
    gather_nd(x: ValueArg, indices: TensorArg, batch: usize) -> Value = x.0.each(|x| match batch {
        0 => x.gather_nd(&indices.0),
        _ => x.gather_nd_batched(&indices.0, batch),
    });
    take_along_axis(x: ValueArg, indices: TensorArg, axis: i64) -> Value = x.0.each(|x| x.take_along_axis(&indices.0, axis));
    scatter_nd_add(x: TensorArg, indices: TensorArg, updates: TensorArg) -> Tensor = x.0.scatter_nd_add(&indices.0, &updates.0);
    scatter_nd_update(x: ValueArg, indices: TensorArg, updates: ValueArg) -> Value =
        strings::over(&[x.0, updates.0], |parts| parts[0].clone().scatter_nd_update(&indices.0, parts[1]));
    scatter_nd_max(x: TensorArg, indices: TensorArg, updates: TensorArg) -> Tensor = x.0.scatter_nd_max(&indices.0, &updates.0);
    scatter_nd_min(x: TensorArg, indices: TensorArg, updates: TensorArg) -> Tensor = x.0.scatter_nd_min(&indices.0, &updates.0);
    top_k(x: TensorArg, k: usize) -> (Tensor, Tensor) = x.0.top_k(k);
    boolean_mask(x: ValueArg, mask: TensorArg) -> Value = x.0.each(|x| x.boolean_mask(&mask.0));
    sort(x: TensorArg, axis: i64, descending: bool) -> Tensor = x.0.sort(axis, descending);
    argsort(x: TensorArg, axis: i64, descending: bool) -> Tensor = x.0.argsort(axis, descending);
    searchsorted(x: TensorArg, values: TensorArg, right: bool) -> Tensor = x.0.searchsorted(&values.0, right);
    unique(x: ValueArg) -> (Value, Tensor) = {
        let (values, places, _) = strings::unique(x.0)?;
        Ok((values, places))
    };
    unique_with_counts(x: ValueArg) -> (Value, Tensor, Tensor) = strings::unique(x.0);
    bincount(x: TensorArg, bins: usize) -> Tensor = x.0.bincount(bins);
    histogram(x: TensorArg, low: f64, high: f64, bins: usize) -> Tensor = x.0.histogram(low, high, bins);
    dynamic_slice(x: ValueArg, start: TensorArg, lengths: ShapeArg) -> Value = {
        let lengths = shape(lengths)?;
        x.0.each(|x| x.dynamic_slice(&start.0, lengths.clone()))
    };
    dynamic_update(x: ValueArg, part: ValueArg, start: TensorArg) -> Value =
        strings::over(&[x.0, part.0], |parts| parts[0].clone().dynamic_update(parts[1], &start.0));
    segment_sum(x: TensorArg, segments: TensorArg, count: usize) -> Tensor = x.0.segment_sum(&segments.0, count);
    segment_mean(x: TensorArg, segments: TensorArg, count: usize) -> Tensor = x.0.segment_mean(&segments.0, count);
    segment_max(x: TensorArg, segments: TensorArg, count: usize) -> Tensor = x.0.segment_max(&segments.0, count);
    segment_min(x: TensorArg, segments: TensorArg, count: usize) -> Tensor = x.0.segment_min(&segments.0, count);
    mat_mul(a: TensorArg, b: TensorArg, ta: bool, tb: bool) -> Tensor = matmul(&a.0, &b.0, ta, tb);
    tensordot(a: TensorArg, b: TensorArg, axes: Vec<i64>, other: Vec<i64>) -> Tensor = a.0.tensordot(&b.0, &axes, &other);
    cholesky(x: TensorArg) -> Tensor = x.0.cholesky();
    triangular_solve(x: TensorArg, right: TensorArg, transposed: bool) -> Tensor =
        x.0.triangular_solve(&right.0, transposed);
    solve(x: TensorArg, right: TensorArg) -> Tensor = x.0.solve(&right.0);
    lstsq(x: TensorArg, right: TensorArg) -> Tensor = x.0.lstsq(&right.0);
    lstsq_regularized(x: TensorArg, right: TensorArg, weight: f64) -> Tensor = x.0.lstsq_regularized(&right.0, weight);
    cholesky_solve(x: TensorArg, right: TensorArg) -> Tensor = x.0.cholesky_solve(&right.0);
    pinv(x: TensorArg, rcond: Option<TensorArg>) -> Tensor = match rcond {
        Some(rcond) => x.0.pinv_by(&rcond.0),
        None => x.0.pinv(),
    };
    inv(x: TensorArg) -> Tensor = x.0.inv();
    det(x: TensorArg) -> Tensor = x.0.det();
    slogdet(x: TensorArg) -> (Tensor, Tensor) = x.0.slogdet();
    logdet(x: TensorArg) -> Tensor = x.0.logdet();
    qr(x: TensorArg) -> (Tensor, Tensor) = x.0.qr();
    eigh(x: TensorArg) -> (Tensor, Tensor) = x.0.eigh();
    svd(x: TensorArg) -> (Tensor, Tensor, Tensor) = x.0.svd();
    matrix_trace(x: TensorArg) -> Tensor = x.0.trace(0);
    cross(x: TensorArg, other: TensorArg) -> Tensor = x.0.cross(&other.0);
    rfft(x: TensorArg, axis: i64) -> (Tensor, Tensor) = x.0.rfft(axis);
    irfft(re: TensorArg, im: TensorArg, n: ShapeArg, axis: i64) -> Tensor = {
        let [n] = known("irfft", n)?;
        re.0.irfft(&im.0, n, axis)
    };
    fft(re: TensorArg, im: TensorArg, axis: i64) -> (Tensor, Tensor) = re.0.fft(&im.0, axis);
    ifft(re: TensorArg, im: TensorArg, axis: i64) -> (Tensor, Tensor) = re.0.ifft(&im.0, axis);
    softmax(x: TensorArg, axis: i64) -> Tensor = x.0.softmax(axis);
    log_softmax(x: TensorArg, axis: i64) -> Tensor = x.0.log_softmax(axis);
    sparse_cross_entropy(x: TensorArg, labels: TensorArg) -> Tensor = x.0.sparse_cross_entropy(&labels.0);
    cross_entropy(x: TensorArg, labels: TensorArg, smoothing: f64) -> Tensor =
        x.0.cross_entropy_smoothed(&labels.0, smoothing);
    sigmoid_cross_entropy(x: TensorArg, labels: TensorArg) -> Tensor = x.0.sigmoid_cross_entropy(&labels.0);
    dropout(x: TensorArg, rate: f64) -> Tensor = x.0.dropout(rate);
    l2_normalize(x: TensorArg, axis: i64, epsilon: f64) -> Tensor = x.0.l2_normalize(axis, epsilon);
    layer_norm(x: TensorArg, scale: TensorArg, bias: TensorArg, epsilon: f64) -> Tensor = x.0.layer_norm(&scale.0, &bias.0, epsilon);
    batch_norm_by(x: TensorArg, mean: TensorArg, variance: TensorArg, scale: TensorArg, bias: TensorArg, epsilon: f64) -> Tensor =
        x.0.batch_norm_by(&mean.0, &variance.0, &scale.0, &bias.0, epsilon);
    attention(q: TensorArg, k: TensorArg, v: TensorArg, mask: Option<TensorArg>, causal: bool, scale: Option<f64>) -> Tensor = {
        let mut how = Attention::new();
        if causal { how = how.causal(); }
        if let Some(mask) = &mask { how = how.mask(&mask.0); }
        if let Some(scale) = scale { how = how.scale(scale); }
        q.0.scaled_dot_product_attention(&k.0, &v.0, &how)
    };
    conv1d(x: TensorArg, f: TensorArg, s: Vec<usize>, same: bool, pads: Vec<[usize; 2]>, d: Vec<usize>, groups: usize) -> Tensor =
        x.0.conv1d(&f.0, &conv(&s, same, pads, &d, groups));
    conv2d(x: TensorArg, f: TensorArg, s: Vec<usize>, same: bool, pads: Vec<[usize; 2]>, d: Vec<usize>, groups: usize) -> Tensor =
        x.0.conv2d(&f.0, &conv(&s, same, pads, &d, groups));
    conv3d(x: TensorArg, f: TensorArg, s: Vec<usize>, same: bool, pads: Vec<[usize; 2]>, d: Vec<usize>, groups: usize) -> Tensor =
        x.0.conv3d(&f.0, &conv(&s, same, pads, &d, groups));
    conv2d_transpose(x: TensorArg, f: TensorArg, to: Vec<usize>, s: Vec<usize>, same: bool) -> Tensor =
        x.0.conv2d_transpose(&f.0, &conv(&s, same, Vec::new(), &[1], 1).lengths(&to[..]));
    depthwise_conv2d(x: TensorArg, f: TensorArg, s: Vec<usize>, same: bool, d: Vec<usize>) -> Tensor =
        x.0.depthwise_conv2d(&f.0, &conv(&s, same, Vec::new(), &d, 1));
    max_pool(x: TensorArg, size: Vec<usize>, strides: Vec<usize>, same: bool) -> Tensor =
        x.0.max_pool(&pool(&size, &strides, same));
    avg_pool(x: TensorArg, size: Vec<usize>, strides: Vec<usize>, same: bool) -> Tensor =
        x.0.avg_pool(&pool(&size, &strides, same));
    resize(x: TensorArg, lengths: ShapeArg, nearest: bool) -> Tensor = {
        let lengths = shape(lengths)?;
        x.0.resize(lengths, if nearest { Between::Nearest } else { Between::Linear })
    };
    space_to_depth(x: TensorArg, block: usize) -> Tensor = x.0.space_to_depth(block);
    depth_to_space(x: TensorArg, block: usize) -> Tensor = x.0.depth_to_space(block);
    space_to_batch(x: TensorArg, block: [usize; 2], pads: [[usize; 2]; 2]) -> Tensor = x.0.space_to_batch(block, pads);
    batch_to_space(x: TensorArg, block: [usize; 2], crops: [[usize; 2]; 2]) -> Tensor = x.0.batch_to_space(block, crops);
    fill(lengths: ShapeArg, value: FillArg, dtype: Element) -> Value = strings::fill(shape(lengths)?, value, dtype.0);
    zeros_like(x: ValueArg) -> Value = x.0.each(|x| x.zeros_like());
    ones_like(x: TensorArg) -> Tensor = x.0.ones_like();
    count(start: ScalarArg, step: ScalarArg, length: ShapeArg, dtype: Dt) -> Tensor = {
        let [len] = known("range", length)?;
        let attrs = tonnage_core::attrs::Attrs::Range { start: start.0, step: step.0, len, dtype: dtype.0 };
        Ok(tonnage::bind::apply(&tonnage_ops::shape::range::RANGE, &[], attrs)?.swap_remove(0))
    };
    linspace(start: f64, stop: f64, len: usize, dtype: Dt) -> Tensor = tonnage::linspace(start, stop, len, dtype.0);
    eye(lengths: ShapeArg, dtype: Dt) -> Tensor = {
        let [rows, columns] = known("eye", lengths)?;
        tonnage::eye_of(rows, columns, 0, dtype.0)
    };
    random_normal(lengths: ShapeArg, dtype: Dt, seed: Option<Seed>) -> Tensor =
        drawn!(seed, normal, random_normal, shape(lengths)?, dtype.0);
    random_truncated_normal(lengths: ShapeArg, dtype: Dt, seed: Option<Seed>) -> Tensor =
        drawn!(seed, truncated_normal, random_truncated_normal, shape(lengths)?, dtype.0);
    random_uniform(low: f64, high: f64, lengths: ShapeArg, dtype: Dt, seed: Option<Seed>) -> Tensor =
        drawn!(seed, uniform_between, random_uniform_between, low, high, shape(lengths)?, dtype.0);
    random_int(low: i64, high: i64, lengths: ShapeArg, dtype: Dt, seed: Option<Seed>) -> Tensor =
        drawn!(seed, int, random_int, low, high, shape(lengths)?, dtype.0);
    random_bits(lengths: ShapeArg, dtype: Dt, seed: Option<Seed>) -> Tensor =
        drawn!(seed, bits, random_bits, shape(lengths)?, dtype.0);
    random_shuffle(x: ValueArg, seed: Option<Seed>) -> Value = match x.0 {
        Value::Numbers(x) => drawn!(seed, shuffle, random_shuffle, &x).map(Value::Numbers),
        Value::Strings(x) => {
            let rows = tonnage::positions(x.sizes().dim(0)?, DType::I64)?;
            let order = drawn!(seed, shuffle, random_shuffle, &rows)?;
            x.each(|part| part.gather(&order, 0)).map(Value::Strings)
        }
    };
    random_categorical(x: TensorArg, samples: usize, seed: Option<Seed>) -> Tensor =
        drawn!(seed, categorical, random_categorical, &x.0, samples);
    random_gamma(x: TensorArg, seed: Option<Seed>) -> Tensor = drawn!(seed, gamma, random_gamma, &x.0);
    random_poisson(x: TensorArg, seed: Option<Seed>) -> Tensor = drawn!(seed, poisson, random_poisson, &x.0);
    stop_gradient(x: ValueArg) -> Value = match x.0 {
        Value::Numbers(x) => x.stop_gradient().map(Value::Numbers),
        strings => Ok(strings),
    };
    identity(x: ValueArg) -> Value = match x.0 {
        Value::Numbers(x) => crate::device::identity(&x).map(Value::Numbers),
        strings => Ok(strings),
    };
    clip(x: TensorArg, low: TensorArg, high: TensorArg) -> Tensor = x.0.clip(&low.0, &high.0);
    clip_by_global_norm(parts: Several, most: f64) -> Vec<Tensor> = clip_all(parts.0, most);
}

/// Tensors scaled so that their norm as a whole is at most that; the norm as it was comes last.
fn clip_all(parts: Vec<Tensor>, most: f64) -> tonnage::Result<Vec<Tensor>> {
    let mut sum: Option<Tensor> = None;
    for part in &parts {
        let squares = part.square()?.sum_all()?;
        sum = Some(match sum {
            Some(sum) => (sum + squares)?,
            None => squares,
        });
    }
    let Some(sum) = sum else { return Ok(vec![tonnage::zeros(Shape::scalar())?]) };
    let norm = sum.sqrt()?;
    let scale = norm.zeros_like()?.add(Scalar::Float(most).to_f64())?.div(&norm.maximum(most)?)?;
    let mut made = parts.iter().map(|p| p.mul(&scale)).collect::<tonnage::Result<Vec<_>>>()?;
    made.push(norm);
    Ok(made)
}

/// Which random numbers: two words, as TensorFlow's stateless ops take them, or any other number of them.
pub enum Seed {
    /// With values.
    Known(KnownSeed),
    /// Computed by a function as it runs.
    Computed(Tensor),
}

impl Work for Option<Seed> {}

impl FromPyObject<'_, '_> for Seed {
    type Error = PyErr;
    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Seed> {
        if given.extract::<i64>().is_ok() || given.extract::<Vec<i64>>().is_ok() {
            return given.extract().map(Seed::Known);
        }
        let tensor = crate::convert::tensor(&given, crate::convert::Want::default())?;
        match tensor.is_symbolic() && tensor.dtype().is_integer() {
            true => Ok(Seed::Computed(tensor)),
            false => given.extract().map(Seed::Known),
        }
    }
}

/// A seed with values.
#[derive(Clone, Copy)]
pub struct KnownSeed(tonnage::RandomKey);

impl FromPyObject<'_, '_> for KnownSeed {
    type Error = PyErr;
    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<KnownSeed> {
        Ok(KnownSeed(tonnage::RandomKey::of(&crate::args::integers(&given)?)))
    }
}

/// A key as the two words of a seed.
fn seed_of(key: tonnage::RandomKey) -> [i32; 2] {
    key.words().map(|word| word as i32)
}

/// Seeds that have nothing to do with each other, nor with the one that they are made from.
#[pyfunction]
pub fn split_seed(seed: KnownSeed, count: usize) -> Vec<[i32; 2]> {
    seed.0.split_into(count).map(seed_of).collect()
}

/// A seed of its own for every number.
#[pyfunction]
pub fn fold_in_seed(seed: KnownSeed, number: i64) -> [i32; 2] {
    seed_of(seed.0.fold_in(number as u64))
}

/// Lets random numbers start again from a seed.
#[pyfunction]
pub fn set_seed(seed: u64) {
    tonnage::set_seed(seed);
}

/// The lengths of a tensor, as a tensor that a reshape understands while they are open.
#[pyfunction]
pub fn shape_of(py: Python<'_>, x: ValueArg, dtype: Dt) -> PyResult<PyTensor> {
    let dims: std::sync::Arc<[Dim]> = x.0.shape().iter().cloned().collect();
    let attrs = tonnage_core::attrs::Attrs::Lengths { of: x.0.shape(), dtype: dtype.0 };
    let row = &tonnage_ops::shape::lengths::LENGTHS;
    let known = x.0.shape().sizes();
    let tensor = run(py, 0, || match known {
        // Known lengths are a constant, whose values can be read.
        Some(sizes) => {
            let sizes: Vec<i64> = sizes.iter().map(|n| *n as i64).collect();
            let made = tonnage::tensor(sizes)?;
            if dtype.0 == DType::I64 { Ok(made) } else { known_cast(made, dtype.0) }
        }
        None => Ok(tonnage::bind::apply(row, &[], attrs)?.swap_remove(0)),
    })?;
    Ok(PyTensor { tensor, dims: Some(dims) })
}

fn known_cast(tensor: Tensor, dtype: DType) -> tonnage::Result<Tensor> {
    crate::run::eagerly(|| tensor.cast(dtype))
}

/// A tensor of that type without values: what signatures are written in.
#[pyfunction]
pub fn spec(dtype: Element, lengths: ShapeArg, lead: &str) -> PyValue {
    let shape = lengths.with_batch().open(lead);
    match dtype.0 {
        ElementType::Number(dtype) => Value::Numbers(Tensor::spec(dtype, shape)),
        ElementType::String => Value::Strings(Strings::spec(shape, &format!("{lead}bytes"))),
    }
    .into()
}

/// Anything that can be a tensor, as one of that dtype; `hint` is taken where the data can be of it.
#[pyfunction]
#[pyo3(signature = (value, dtype, hint))]
pub fn to_tensor(
    value: &Bound<'_, PyAny>,
    dtype: Option<Element>,
    hint: Option<Element>,
) -> PyResult<Py<PyAny>> {
    let py = value.py();
    if let Ok(tensor) = value.cast::<PyTensor>()
        && dtype.is_none_or(|d| d.0 == ElementType::Number(tensor.get().tensor.dtype()))
    {
        return Ok(tensor.clone().into_any().unbind());
    }
    let number = |element: Element| element.0.number().ok();
    let want = crate::convert::Want { wanted: dtype.and_then(number), hint: hint.and_then(number) };
    let is_of = |element: Option<Element>| element.is_some_and(|e| e.0 == ElementType::String);
    let is_written = strings::is_written(value);
    if is_of(dtype) || is_written && want.wanted.is_none() {
        return strings::object(value);
    }
    let made = if is_written { None } else { Some(strings::value(value, want)?) };
    match made {
        Some(made @ Value::Numbers(_)) => Ok(PyValue::from(made).into_pyobject(py)?.unbind()),
        Some(made) if want.wanted.is_none() => Ok(PyValue::from(made).into_pyobject(py)?.unbind()),
        _ => {
            let text = strings::no_number(value, want.wanted)?;
            Err(pyo3::exceptions::PyTypeError::new_err(text))
        }
    }
}
