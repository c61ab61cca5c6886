//! Convolutions, and what is made of them.

use tonnage::{Conv, Elementwise, PadMode, Padding, Result, Tensor, TensorType, concat};

use super::Rule;
use super::windows::{Windows, per_axis};
use crate::call::{Call, one};
use crate::import::Importer;
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "Conv" => |c| {
            let (x, bias) = (c.x(0)?, c.maybe(2)?);
            let made = convolved(c, &x, &filters(c, 1)?, bias)?;
            c.importer.convolutions.note(c, &made);
            one(made)
        },
        "ConvTranspose" => transposed,
        "CausalConvWithState" => causal,
        "Col2Im" => col2im,
        _ => return None,
    })
}

/// Where the axes of filters `[out, in, ...]` are as tensor methods take them, `[..., in, out]`.
fn order(rank: usize) -> Vec<i64> {
    let mut order: Vec<i64> = (2..rank as i64).collect();
    order.extend([1, 0]);
    order
}

/// Filters in the order that tensor methods take, written out once where weights are in memory.
pub fn filters(c: &Call, at: usize) -> Result<Tensor> {
    let ty = c.ty(at)?;
    let order = order(ty.shape.rank().max(2));
    let shape = order.iter().filter_map(|axis| ty.shape.get(*axis as usize).cloned()).collect();
    c.made(&[at], "filters", TensorType { dtype: ty.dtype, shape }, move |all| {
        all[0].transpose(&order)
    })
}

/// A convolution with a factor and a shift for each of its results, by `factor` and `shift` of weights: none where not all of these are weights in memory.
/// Both are given in the order of the convolution's own weights, then those of `with`.
pub fn scaled(
    c: &Call,
    with: &[Tensor],
    factor: impl Fn(&[Tensor]) -> Result<Tensor> + Send + Sync + 'static,
    shift: impl Fn(&[Tensor], Option<&Tensor>) -> Result<Tensor> + Send + Sync + 'static,
) -> Result<Option<Tensor>> {
    let Importer { model, weights, .. } = c.importer;
    let ty = c.ty(1)?;
    let order = order(ty.shape.rank().max(2));
    let shape = order.iter().filter_map(|axis| ty.shape.get(*axis as usize).cloned()).collect();
    let filters = TensorType { dtype: ty.dtype, shape };
    let of: Vec<Tensor> = std::iter::once(c.raw(1)?).chain(with.iter().cloned()).collect();
    let by = move |all: &[Tensor]| {
        all[0].transpose(&order)?.mul(&factor(&all[1..])?.cast(all[0].dtype())?)
    };
    let Some(filters) = weights.made(model, &of, "filters by a factor", filters, by)? else {
        return Ok(None);
    };
    let own = match c.inputs.get(2) {
        Some(Value::Tensor(_)) => Some(c.raw(2)?),
        _ => None,
    };
    let bias = TensorType { dtype: ty.dtype, shape: ty.shape.iter().take(1).cloned().collect() };
    let has_own = own.is_some();
    let of: Vec<Tensor> = own.into_iter().chain(with.iter().cloned()).collect();
    let moved = move |all: &[Tensor]| {
        let (own, with) = all.split_at(usize::from(has_own));
        shift(with, own.first())?.cast(ty.dtype)
    };
    let Some(bias) = weights.made(model, &of, "bias by a factor", bias, moved)? else {
        return Ok(None);
    };
    convolved(c, &c.x(0)?, &filters, Some(bias)).map(Some)
}

fn laid(c: &Call, x: &Tensor, w: &Tensor, how: &Conv) -> Result<Tensor> {
    match x.rank() {
        3 => x.conv1d(w, how),
        4 => x.conv2d(w, how),
        5 => x.conv3d(w, how),
        rank => Err(c.refuse(format!("a convolution over {} axes", rank.saturating_sub(2)))),
    }
}

/// A convolution by the node's attributes, with filters in the order that tensor methods take.
pub fn convolved(c: &Call, x: &Tensor, w: &Tensor, bias: Option<Tensor>) -> Result<Tensor> {
    let (image, filter) = (c.sizes(x)?, c.sizes(w)?);
    if image.len() != filter.len() || image.len() < 3 {
        return Err(c.refuse(format!("an image of {} and filters of {}", x.shape(), w.shape())));
    }
    let windows = Windows::of(c, &image[2..], filter[..filter.len() - 2].to_vec())?;
    let how = Conv::valid()
        .stride(&windows.stride[..])
        .dilation(&windows.dilation[..])
        .padding(windows.padding())
        .groups(c.length(c.int("group", 1)?)?);
    let made = laid(c, &c.last(x)?, w, &how)?;
    c.first(match bias {
        Some(bias) => made.add(&bias)?,
        None => made,
    })
}

fn transposed(c: &Call) -> Result<Vec<Value>> {
    let (x, w) = (c.x(0)?, filters(c, 1)?);
    let (image, filter) = (c.sizes(&x)?, c.sizes(&w)?);
    let axes = image.len().saturating_sub(2);
    if image.len() != filter.len() || !(1..=3).contains(&axes) {
        return Err(c.refuse(format!("a convolution over {axes} axes")));
    }
    let (stride, dilation) = (per_axis(c, "strides", axes, 1)?, per_axis(c, "dilations", axes, 1)?);
    let more = per_axis(c, "output_padding", axes, 0)?;
    let given = per_axis(c, "pads", 2 * axes, 0)?;
    let by = c.text("auto_pad", "NOTSET")?;
    let asked = c.ints("output_shape")?;
    let (mut lengths, mut pads, mut behind) = (Vec::new(), Vec::new(), vec![[0, 0]; axes + 2]);
    for at in 0..axes {
        let reach = (filter[at].max(1) - 1) * dilation[at] + 1;
        let full = stride[at] * (image[2 + at].max(1) - 1) + reach;
        let asked = match (&asked, by.as_str()) {
            (Some(asked), _) => {
                let from = asked.len().saturating_sub(axes);
                Some(c.length(asked.get(from + at).copied().unwrap_or(0))?)
            }
            (None, "SAME_UPPER" | "SAME_LOWER") => Some(image[2 + at] * stride[at]),
            _ => None,
        };
        let pad = match asked {
            None if by == "VALID" => [0, 0],
            None => [given[at], given[at + axes]],
            Some(to) => {
                let total = (full + more[at]).saturating_sub(to);
                match by.as_str() {
                    "SAME_UPPER" => [total / 2, total - total / 2],
                    _ => [total - total / 2, total / 2],
                }
            }
        };
        let length = match asked {
            Some(to) => to,
            None => (full + more[at]).saturating_sub(pad[0] + pad[1]),
        };
        // Where the result goes on behind the last window there are zeros.
        let reached = full.saturating_sub(pad[0] + pad[1]);
        let covered = length.min(reached + stride[at] - 1);
        behind[1 + at] = [0, length - covered];
        lengths.push(covered);
        pads.push(pad);
    }
    let how = Conv::valid()
        .stride(&stride[..])
        .dilation(&dilation[..])
        .padding(Padding::Of(pads.into_iter().collect()))
        .groups(c.length(c.int("group", 1)?)?)
        .lengths(&lengths[..]);
    let x = c.last(&x)?;
    let mut made = match axes {
        1 => x.conv1d_transpose(&w, &how)?,
        2 => x.conv2d_transpose(&w, &how)?,
        _ => x.conv3d_transpose(&w, &how)?,
    };
    if behind.iter().any(|pair| *pair != [0, 0]) {
        made = made.pad(&behind, PadMode::Constant(0.0.into()))?;
    }
    if let Some(bias) = c.maybe(2)? {
        made = made.add(&bias)?;
    }
    one(c.first(made)?)
}

/// A depthwise convolution of what came before and what comes now; the end of both is the next state.
fn causal(c: &Call) -> Result<Vec<Value>> {
    let (x, w) = (c.x(0)?, filters(c, 1)?);
    let (image, filter) = (c.sizes(&x)?, c.sizes(&w)?);
    let [batch, channels, _] = image[..] else {
        return Err(c.refuse(format!("an input of {}", x.shape())));
    };
    let before = filter.first().copied().unwrap_or(1).max(1) - 1;
    let state = match c.maybe(3)? {
        Some(state) => state,
        None => tonnage::full(0, x.dtype(), [batch, channels, before])?,
    };
    let joined = concat(&[&state, &x], 2)?;
    let how = Conv::valid().groups(channels);
    let mut made = c.last(&joined)?.conv1d(&w, &how)?;
    if let Some(bias) = c.maybe(2)? {
        made = made.add(&bias)?;
    }
    made = match c.text("activation", "none")?.as_str() {
        "none" => made,
        "silu" | "swish" => made.silu()?,
        other => return Err(c.refuse(format!("the activation `{other}`"))),
    };
    let length = c.sizes(&joined)?[2] as i64;
    let next = joined.slice(&[
        tonnage::Part::ALL,
        tonnage::Part::ALL,
        (length - before as i64..length).into(),
    ])?;
    Ok(vec![c.first(made)?.into(), next.into()])
}

/// Columns of windows added up where they overlap: a transposed convolution by filters that are one at one place each.
fn col2im(c: &Call) -> Result<Vec<Value>> {
    let (x, image, block) = (c.x(0)?, c.numbers(1)?, c.numbers(2)?);
    let axes = image.len();
    let (image, block): (Vec<usize>, Vec<usize>) =
        (image.iter().map(|n| *n as usize).collect(), block.iter().map(|n| *n as usize).collect());
    let windows = Windows::of(c, &image, block.clone())?;
    let sizes = c.sizes(&x)?;
    let taps: usize = block.iter().product();
    let channels = sizes[1] / taps.max(1);
    let mut to = vec![sizes[0] * channels, taps];
    to.extend(&windows.counts);
    let columns = c.last(&x.reshape([sizes[0] * channels, taps, sizes[2]])?.reshape(to)?)?;
    let mut shape = block;
    shape.extend([1, taps]);
    let filter = tonnage::eye(taps, x.dtype())?.reshape(shape)?;
    let how = Conv::valid()
        .stride(&windows.stride[..])
        .dilation(&windows.dilation[..])
        .padding(windows.padding())
        .lengths(&image[..]);
    let made = match axes {
        1 => columns.conv1d_transpose(&filter, &how)?,
        2 => columns.conv2d_transpose(&filter, &how)?,
        3 => columns.conv3d_transpose(&filter, &how)?,
        _ => return Err(c.refuse(format!("an image of {axes} axes"))),
    };
    let mut to = vec![sizes[0], channels];
    to.extend(&image);
    one(made.reshape(to)?)
}
