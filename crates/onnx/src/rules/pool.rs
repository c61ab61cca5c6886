//! Pooling over windows and over whole images.

use tonnage::{Axes, DType, Dim, Elementwise, PadMode, Pool, Result, Tensor, stack};

use super::Rule;
use super::activation::spatial;
use super::windows::{Windows, per_axis};
use crate::call::{Call, float_tensor, one};
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "MaxPool" => max_pool,
        "AveragePool" => average_pool,
        "LpPool" => |c| {
            let (x, p) = (c.x(0)?, c.int("p", 2)? as f64);
            let windows = over(c, &x)?;
            let taps = windows.taps(&x.abs()?.pow(p)?, 0.0)?;
            one(summed(&taps)?.pow(1.0 / p)?)
        },
        "GlobalAveragePool" => |c| global(c, |x, axes| x.mean_keep(axes)),
        "GlobalMaxPool" => |c| global(c, |x, axes| x.max_keep(axes)),
        "GlobalLpPool" => |c| {
            let (x, p) = (c.x(0)?, c.int("p", 2)? as f64);
            let axes = spatial(x.rank());
            one(x.abs()?.pow(p)?.sum_keep(axes)?.pow(1.0 / p)?)
        },
        "MaxUnpool" => max_unpool,
        _ => return None,
    })
}

/// Over all pixels.
fn global(c: &Call, run: impl Fn(&Tensor, Axes) -> Result<Tensor>) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    match c.under(&x) {
        Some(under) => {
            let axes: Vec<i64> = (1..x.rank() as i64 - 1).collect();
            one(c.first(run(&under, Axes::from(&axes[..]))?)?)
        }
        None => one(run(&x, spatial(x.rank()))?),
    }
}

fn over(c: &Call, x: &Tensor) -> Result<Windows> {
    let sizes = c.sizes(x)?;
    let kernel = per_axis(c, "kernel_shape", sizes.len().saturating_sub(2), 1)?;
    Windows::of(c, sizes.get(2..).unwrap_or_default(), kernel)
}

fn summed(taps: &[Tensor]) -> Result<Tensor> {
    let mut all = taps.iter().cloned();
    let first = all.next();
    let Some(first) = first else {
        return Err(tonnage_core::error::bad_argument("pool", "no elements", "use a kernel"));
    };
    all.try_fold(first, |sum, tap| sum.add(&tap))
}

/// Windows as tensor methods take them.
fn pool(windows: &Windows) -> Pool {
    Pool::of(&windows.kernel[..]).stride(&windows.stride[..]).dilation(&windows.dilation[..])
}

fn max_pool(c: &Call) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    let windows = over(c, &x)?;
    let least = match x.dtype() {
        dtype if dtype.is_float() => f64::NEG_INFINITY.into(),
        DType::U8 => 0.into(),
        DType::I8 => i8::MIN.into(),
        dtype => return Err(c.refuse(format!("the dtype {dtype}"))),
    };
    let least: tonnage::Scalar = least;
    if !c.wants(1) {
        if x.dtype().is_float() && (3..=5).contains(&x.rank()) {
            let pool = pool(&windows).padding(windows.padding_to_end());
            return one(c.first(c.last(&x)?.max_pool(&pool)?)?);
        }
        let taps = windows.taps(&x, least)?;
        let mut all = taps.into_iter();
        let Some(first) = all.next() else { return Err(c.refuse("an empty kernel")) };
        return one(all.try_fold(first, |most, tap| most.maximum(&tap))?);
    }
    let sizes = c.sizes(&x)?;
    let count: usize = sizes.iter().product();
    let places = match c.flag("storage_order")? {
        false => tonnage::positions(Dim::Known(count), DType::I64)?.reshape(&sizes)?,
        // Columns first within each image.
        true => {
            let mut shape = sizes.clone();
            shape[2..].reverse();
            let mut order: Vec<i64> = (0..sizes.len() as i64).collect();
            order[2..].reverse();
            tonnage::positions(Dim::Known(count), DType::I64)?.reshape(shape)?.transpose(&order)?
        }
    };
    let (values, places) = (windows.taps(&x, least)?, windows.taps(&places, -1)?);
    let values = stack(&values.iter().collect::<Vec<_>>(), -1)?;
    let places = stack(&places.iter().collect::<Vec<_>>(), -1)?;
    let which = values.argmax(-1)?.expand_dims(-1)?;
    let found = places.take_along_axis(&which, -1)?.squeeze(-1)?;
    Ok(vec![values.max(-1)?.into(), found.into()])
}

fn average_pool(c: &Call) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    let windows = over(c, &x)?;
    let counts_padding = c.flag("count_include_pad")?;
    if windows.extra.iter().all(|n| *n == 0) && (3..=5).contains(&x.rank()) {
        let pool = pool(&windows).padding(windows.padding());
        let pool = if counts_padding { pool.count_padding() } else { pool };
        return one(c.first(c.last(&x)?.avg_pool(&pool)?)?);
    }
    let mut sum = summed(&windows.taps(&x, 0.0)?)?;
    for axis in 0..windows.kernel.len() {
        let [before, after] = if counts_padding { windows.pads[axis] } else { [0, 0] };
        let inside = |window: usize| {
            let start = (window * windows.stride[axis]) as i64 - windows.pads[axis][0] as i64;
            let at = |k: usize| start + (k * windows.dilation[axis]) as i64;
            let bounds = -(before as i64)..(windows.image[axis] + after) as i64;
            (0..windows.kernel[axis]).filter(|k| bounds.contains(&at(*k))).count() as f64
        };
        let numbers: Vec<f64> = (0..windows.counts[axis]).map(inside).collect();
        let mut shape = vec![1; x.rank()];
        shape[2 + axis] = numbers.len();
        sum = sum.div(&float_tensor(numbers, &shape, x.dtype())?)?;
    }
    one(sum)
}

/// Values back at the places that they came from, zeros elsewhere.
fn max_unpool(c: &Call) -> Result<Vec<Value>> {
    let (x, places) = (c.x(0)?, c.x(1)?);
    let sizes = c.sizes(&x)?;
    let axes = sizes.len().saturating_sub(2);
    let (kernel, stride) =
        (per_axis(c, "kernel_shape", axes, 1)?, per_axis(c, "strides", axes, 1)?);
    let pads = per_axis(c, "pads", 2 * axes, 0)?;
    let mut to = sizes[..2].to_vec();
    for at in 0..axes {
        let whole = (sizes[2 + at].max(1) - 1) * stride[at] + kernel[at];
        to.push(whole.saturating_sub(pads[at] + pads[at + axes]));
    }
    let (all, count) = (to.iter().product::<usize>(), sizes.iter().product::<usize>());
    let empty = tonnage::full(0, x.dtype(), [all])?.identity()?;
    let places = places.reshape([count, 1])?;
    let made = empty.scatter_nd_update(&places, &x.reshape([count])?)?.reshape(&to)?;
    let Some(asked) = c.maybe_numbers(2)? else { return one(made) };
    let widths: Vec<[usize; 2]> = asked
        .iter()
        .zip(&to)
        .map(|(asked, have)| [0, (*asked as usize).saturating_sub(*have)])
        .collect();
    one(made.pad(&widths, PadMode::Constant(0.0.into()))?)
}
