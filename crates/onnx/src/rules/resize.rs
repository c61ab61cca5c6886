//! Images of another size, in every mode.
//!
//! Along an axis each element of the result is a weighted sum of a few elements of the image. Which ones, and by what weights, is known when the sizes are:
//! they are gathered by constants.

use tonnage::{Between, DType, Elementwise, Result, Tensor};

use super::Rule;
use crate::call::{Call, float_tensor, int_tensor, one};
use crate::layout::axis_under;
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "Resize" | "Upsample" => resize,
        _ => return None,
    })
}

/// How an image is resized.
struct Manner {
    mode: String,
    coordinates: String,
    nearest: String,
    cubic: f64,
    exclude_outside: bool,
    antialias: bool,
    outside: f64,
}

/// What happens along an axis.
struct Along {
    from: usize,
    to: usize,
    scale: f64,
    /// The part of the image that is looked at, from 0 to 1.
    roi: [f64; 2],
}

fn manner(c: &Call) -> Result<Manner> {
    // At first there was one way.
    let old = c.node.op == "Upsample" || c.version < 11;
    let usual = if old { "asymmetric" } else { "half_pixel" };
    let mode = c.text("mode", "nearest")?;
    Ok(Manner {
        mode: if mode == "bilinear" { "linear".into() } else { mode },
        coordinates: c.text("coordinate_transformation_mode", usual)?,
        nearest: c.text("nearest_mode", if old { "floor" } else { "round_prefer_floor" })?,
        cubic: c.float("cubic_coeff_a", -0.75)?,
        exclude_outside: c.flag("exclude_outside")?,
        antialias: c.flag("antialias")?,
        outside: c.float("extrapolation_value", 0.0)?,
    })
}

/// What happens along each axis of the image.
fn axes(c: &Call, sizes: &[usize]) -> Result<Vec<(usize, Along)>> {
    let old = c.node.op == "Upsample" || c.version < 11;
    let axes: Vec<usize> = match c.ints("axes")? {
        Some(axes) => axes.iter().map(|a| c.axis(*a, sizes.len())).collect::<Result<_>>()?,
        None => (0..sizes.len()).collect(),
    };
    let scales = match (c.floats("scales")?, old) {
        (Some(scales), _) => Some(scales.iter().map(|x| f64::from(*x)).collect()),
        (None, true) => Some(c.floats_of(1)?),
        (None, false) if c.maybe(2)?.is_some() => Some(c.floats_of(2)?),
        _ => None,
    };
    let scales = scales.filter(|scales: &Vec<f64>| !scales.is_empty());
    let roi = match c.maybe(1)? {
        Some(_)
            if !old && c.text("coordinate_transformation_mode", "")? == "tf_crop_and_resize" =>
        {
            c.floats_of(1)?
        }
        _ => Vec::new(),
    };
    let part = |at: usize| match roi.len() == 2 * axes.len() {
        true => [roi[at], roi[at + axes.len()]],
        false => [0.0, 1.0],
    };
    if let Some(scales) = scales {
        if scales.len() != axes.len() {
            return Err(c.refuse(format!("{} scales for {} axes", scales.len(), axes.len())));
        }
        let along = |(at, axis): (usize, &usize)| {
            let from = sizes[*axis];
            let reach = part(at)[1] - part(at)[0];
            let to = (from as f64 * scales[at] * if roi.is_empty() { 1.0 } else { reach }).floor()
                as usize;
            (*axis, Along { from, to, scale: scales[at], roi: part(at) })
        };
        return Ok(axes.iter().enumerate().map(along).collect());
    }
    let asked: Vec<usize> =
        c.numbers(3)?.into_iter().map(|n| c.length(n)).collect::<Result<_>>()?;
    if asked.len() != axes.len() {
        return Err(c.refuse(format!("{} sizes for {} axes", asked.len(), axes.len())));
    }
    let each = axes.iter().zip(&asked).map(|(axis, to)| *to as f64 / sizes[*axis] as f64);
    let kept = match c.text("keep_aspect_ratio_policy", "stretch")?.as_str() {
        "not_larger" => Some(each.fold(f64::INFINITY, f64::min)),
        "not_smaller" => Some(each.fold(0.0, f64::max)),
        _ => None,
    };
    let along = |(at, axis): (usize, &usize)| {
        let from = sizes[*axis];
        let (to, scale) = match kept {
            Some(scale) => ((scale * from as f64 + 0.5).floor() as usize, scale),
            None => (asked[at], asked[at] as f64 / from as f64),
        };
        (*axis, Along { from, to, scale, roi: part(at) })
    };
    Ok(axes.iter().enumerate().map(along).collect())
}

impl Along {
    /// Where an element of the result lies in the image.
    fn original(&self, c: &Call, x: usize, manner: &Manner) -> Result<f64> {
        let (x, last) = (x as f64, self.from as f64 - 1.0);
        let width = self.scale * self.from as f64;
        let half = (x + 0.5) / self.scale - 0.5;
        Ok(match manner.coordinates.as_str() {
            "half_pixel" => half,
            "pytorch_half_pixel" => {
                if self.to > 1 {
                    half
                } else {
                    -0.5
                }
            }
            "half_pixel_symmetric" => {
                let adjustment = self.to as f64 / width;
                self.from as f64 / 2.0 * (1.0 - adjustment) + half
            }
            "align_corners" if self.to <= 1 => 0.0,
            "align_corners" => x * last / (width - 1.0),
            "asymmetric" => x / self.scale,
            "tf_crop_and_resize" => {
                let [start, end] = self.roi;
                match self.to > 1 {
                    true => start * last + x * (end - start) * last / (self.to as f64 - 1.0),
                    false => 0.5 * (start + end) * last,
                }
            }
            other => {
                return Err(c.refuse(format!(
                    "the attribute `coordinate_transformation_mode` is `{other}`"
                )));
            }
        })
    }
}

impl Manner {
    /// Weights of the elements around a place, from how far it is behind the one before it (above 0, at most 1).
    fn weights(&self, c: &Call, ratio: f64, scale: f64) -> Result<Vec<f64>> {
        let shrinks = if self.antialias { scale.min(1.0) } else { 1.0 };
        let reach = |n: f64| (n / shrinks).ceil() as i64;
        Ok(match self.mode.as_str() {
            "nearest" => {
                let behind = match self.nearest.as_str() {
                    _ if ratio == 1.0 => true,
                    "round_prefer_floor" => ratio > 0.5,
                    "round_prefer_ceil" => ratio >= 0.5,
                    "floor" => false,
                    "ceil" => true,
                    other => {
                        return Err(c.refuse(format!("the attribute `nearest_mode` is `{other}`")));
                    }
                };
                if behind { vec![0.0, 1.0] } else { vec![1.0, 0.0] }
            }
            "linear" => {
                let n = reach(1.0);
                let at = |i: i64| (1.0 - ((i as f64 - ratio) * shrinks).abs()).max(0.0);
                normalized((1 - n..=n).map(at).collect())
            }
            "cubic" => {
                let (n, a) = (reach(2.0), self.cubic);
                let at = |i: i64| {
                    let x = ((i as f64 - ratio) * shrinks).abs();
                    match x {
                        _ if x <= 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
                        _ if x < 2.0 => ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a,
                        _ => 0.0,
                    }
                };
                normalized((1 - n..=n).map(at).collect())
            }
            other => return Err(c.refuse(format!("the attribute `mode` is `{other}`"))),
        })
    }
}

fn normalized(weights: Vec<f64>) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / sum).collect()
}

fn resize(c: &Call) -> Result<Vec<Value>> {
    let given = c.x(0)?;
    let (manner, dtype, rank) = (manner(c)?, given.dtype(), given.rank());
    let mut axes = axes(c, &c.sizes(&given)?)?;
    axes.retain(|(_, along)| {
        along.from != along.to || along.scale != 1.0 || manner.coordinates == "tf_crop_and_resize"
    });
    if let Some(between) = by_kernel(c, &given, &axes, &manner)? {
        let under = c.last(&given)?;
        let mut to = c.sizes(&under)?[1..rank - 1].to_vec();
        axes.iter().for_each(|(axis, along)| to[axis - 2] = along.to);
        return one(c.first(under.resize(&to[..], between)?)?);
    }
    let under = c.under(&given);
    let is_under = under.is_some();
    let mut x = under.unwrap_or(given);
    let blends = manner.mode != "nearest";
    if blends && !dtype.is_float() {
        x = x.cast(DType::F32)?;
    }
    for (axis, along) in axes {
        let axis = if is_under { axis_under(axis, rank) } else { axis };
        x = resized(c, &x, axis, &along, &manner)?;
    }
    if blends && !dtype.is_float() {
        x = x.round()?.cast(dtype)?;
    }
    one(if is_under { c.first(x)? } else { x })
}

/// How the kernel for images does the same; none where it does not.
fn by_kernel(
    c: &Call,
    x: &Tensor,
    axes: &[(usize, Along)],
    manner: &Manner,
) -> Result<Option<Between>> {
    let image = (3..=5).contains(&x.rank()) && x.dtype().is_float() && !axes.is_empty();
    let plain = |(axis, along): &(usize, Along)| {
        let whole = along.scale * along.from as f64;
        let even = (whole - along.to as f64).abs() < 1e-5 * whole;
        *axis > 1 && along.from > 0 && along.to > 0 && even
    };
    if !image || manner.antialias || manner.exclude_outside || !axes.iter().all(plain) {
        return Ok(None);
    }
    let between = match (manner.mode.as_str(), manner.coordinates.as_str()) {
        ("linear", "half_pixel") => Between::Linear,
        ("linear", "pytorch_half_pixel") if axes.iter().all(|(_, along)| along.to > 1) => {
            Between::Linear
        }
        ("linear", "align_corners") => Between::LinearCorners,
        ("nearest", _) if manner.coordinates != "tf_crop_and_resize" => Between::Nearest,
        _ => return Ok(None),
    };
    if between == Between::Nearest {
        for (_, along) in axes {
            for (to, taps) in along.taps(c, manner)?.0.iter().enumerate() {
                let near = (to as f64 + 0.5) * (along.from as f64 / along.to as f64);
                let near = (near as i64).min(along.from as i64 - 1);
                if taps.first().is_none_or(|tap| tap.0 != near) {
                    return Ok(None);
                }
            }
        }
    }
    Ok(Some(between))
}

/// For each element along an axis: which elements it is made of, and their weights.
type Taps = Vec<Vec<(i64, f64)>>;

impl Along {
    /// All of them, and which lie inside of the image.
    fn taps(&self, c: &Call, manner: &Manner) -> Result<(Taps, Vec<bool>)> {
        let last = self.from as i64 - 1;
        let (mut taps, mut inside): (Taps, Vec<bool>) = (Vec::new(), Vec::new());
        for to in 0..self.to {
            let place = self.original(c, to, manner)?;
            inside.push((0.0..=last as f64).contains(&place));
            let before = place.ceil() - 1.0;
            let weights = manner.weights(c, place - before, self.scale)?;
            let first = before as i64 + 1 - (weights.len() / 2) as i64;
            let mut each: Vec<(i64, f64)> =
                weights.into_iter().enumerate().map(|(i, w)| (first + i as i64, w)).collect();
            if manner.exclude_outside {
                each.iter_mut()
                    .filter(|(i, _)| !(0..=last).contains(i))
                    .for_each(|tap| tap.1 = 0.0);
                let sum: f64 = each.iter().map(|tap| tap.1).sum();
                each.iter_mut().for_each(|tap| tap.1 /= sum);
            }
            each.iter_mut().for_each(|tap| tap.0 = tap.0.clamp(0, last));
            // Several taps at the edge are one.
            if manner.mode == "nearest" {
                each.retain(|tap| tap.1 != 0.0);
                each.truncate(1);
            }
            taps.push(each);
        }
        Ok((taps, inside))
    }
}

fn resized(c: &Call, x: &Tensor, axis: usize, along: &Along, manner: &Manner) -> Result<Tensor> {
    let (taps, inside) = along.taps(c, manner)?;
    let count = taps.iter().map(Vec::len).max().unwrap_or(0);
    let mut shape = vec![1; x.rank()];
    shape[axis] = along.to;
    let mut sum: Option<Tensor> = None;
    for tap in 0..count {
        let places: Vec<i64> = taps.iter().map(|each| each.get(tap).map_or(0, |t| t.0)).collect();
        let weights: Vec<f64> =
            taps.iter().map(|each| each.get(tap).map_or(0.0, |t| t.1)).collect();
        if weights.iter().all(|w| *w == 0.0) {
            continue;
        }
        let part = x.gather(&int_tensor(&places, &[along.to])?, axis as i64)?;
        let part = match weights.iter().all(|w| *w == 1.0) {
            true => part,
            false => part.mul(&float_tensor(weights, &shape, x.dtype())?)?,
        };
        sum = Some(match sum {
            None => part,
            Some(sum) => sum.add(&part)?,
        });
    }
    let made = sum.ok_or_else(|| c.refuse("an image without elements"))?;
    if manner.coordinates != "tf_crop_and_resize" || inside.iter().all(|is| *is) {
        return Ok(made);
    }
    let mask: Vec<i64> = inside.iter().map(|is| i64::from(*is)).collect();
    let mask = int_tensor(&mask, &shape)?.not_equal(0)?;
    let outside = tonnage::full(manner.outside, x.dtype(), tonnage::Shape::scalar())?;
    mask.where_(&made, &outside)
}
