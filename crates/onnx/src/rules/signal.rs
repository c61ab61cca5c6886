//! Spectra, and windows over signals.

use tonnage::{DType, Elementwise, PadMode, Part, Result, Tensor, stack};

use super::Rule;
use crate::call::{Call, float_tensor, one};
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "HannWindow" => |c| window(c, &[0.5, 0.5, 0.0]),
        "HammingWindow" => |c| window(c, &[25.0 / 46.0, 21.0 / 46.0, 0.0]),
        "BlackmanWindow" => |c| window(c, &[0.42, 0.5, 0.08]),
        "MelWeightMatrix" => mel,
        "DFT" => dft,
        "STFT" => stft,
        _ => return None,
    })
}

fn output_dtype(c: &Call) -> Result<DType> {
    c.dtype(c.int("output_datatype", 1)?)
}

/// A sum of cosines.
fn window(c: &Call, terms: &[f64; 3]) -> Result<Vec<Value>> {
    let size = c.length(c.number(0)?)?;
    let period = if c.int("periodic", 1)? != 0 { size as f64 } else { size as f64 - 1.0 };
    let at = |n: usize| {
        let angle = 2.0 * std::f64::consts::PI * n as f64 / period;
        terms[0] - terms[1] * angle.cos() + terms[2] * (2.0 * angle).cos()
    };
    one(float_tensor((0..size).map(at).collect(), &[size], output_dtype(c)?)?)
}

fn mel(c: &Call) -> Result<Vec<Value>> {
    let (bins, length, rate) = (c.length(c.number(0)?)?, c.number(1)?, c.number(2)? as f64);
    let edge = |at: usize| -> Result<f64> {
        let hertz = c.floats_of(at)?.first().copied().unwrap_or(0.0);
        Ok(2595.0 * (1.0 + hertz / 700.0).log10())
    };
    let (low, high) = (edge(3)?, edge(4)?);
    let step = (high - low) / (bins as f64 + 2.0);
    let place = |n: usize| {
        let hertz = 700.0 * (10f64.powf((low + step * n as f64) / 2595.0) - 1.0);
        ((length as f64 + 1.0) * hertz / rate).floor().max(0.0) as usize
    };
    let rows = c.length(length / 2 + 1)?;
    let mut all = vec![0.0; rows * bins];
    for bin in 0..bins {
        let (left, center, right) = (place(bin), place(bin + 1), place(bin + 2));
        let mut put = |row: usize, value: f64| {
            if row < rows {
                all[row * bins + bin] = value;
            }
        };
        match center == left {
            true => put(center, 1.0),
            false => {
                (left..=center).for_each(|at| put(at, (at - left) as f64 / (center - left) as f64))
            }
        }
        (center..right).for_each(|at| put(at, (right - at) as f64 / (right - center) as f64));
    }
    one(float_tensor(all, &[rows, bins], output_dtype(c)?)?)
}

/// Real and imaginary part, which lie along the last axis.
fn parts(c: &Call, x: &Tensor) -> Result<(Tensor, Tensor)> {
    let last = x.rank() as i64 - 1;
    let part = |at: i64| {
        let mut parts = vec![Part::ALL; x.rank()];
        parts[last as usize] = (at..at + 1).into();
        x.slice(&parts)?.squeeze(last)
    };
    let real = part(0)?;
    match c.sizes(x)?.last() {
        Some(2) => Ok((real, part(1)?)),
        _ => {
            let zeros = real.zeros_like()?;
            Ok((real, zeros))
        }
    }
}

/// As long as the transform along an axis: cut, or with zeros behind.
fn fitted(c: &Call, x: &Tensor, axis: usize, length: usize) -> Result<Tensor> {
    let own = c.sizes(x)?[axis];
    if own >= length {
        let mut parts = vec![Part::ALL; x.rank()];
        parts[axis] = (0..length as i64).into();
        return x.slice(&parts);
    }
    let mut widths = vec![[0, 0]; x.rank()];
    widths[axis] = [0, length - own];
    x.pad(&widths, PadMode::Constant(0.0.into()))
}

fn dft(c: &Call) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    let axis = match (c.version >= 20, c.maybe(2)?) {
        (true, Some(_)) => c.number(2)?,
        (true, None) => -2,
        (false, _) => c.int("axis", 1)?,
    };
    let axis = c.axis(axis, x.rank())?;
    let (inverse, onesided) = (c.flag("inverse")?, c.flag("onesided")?);
    let own = c.sizes(&x)?[axis];
    let length = match c.maybe(1)? {
        Some(_) => c.length(c.number(1)?)?,
        None if inverse && onesided => 2 * own.max(1) - 2,
        None => own,
    };
    let (real, imaginary) = parts(c, &x)?;
    let along = axis as i64;
    if inverse && onesided {
        let half = length / 2 + 1;
        let (real, imaginary) = (fitted(c, &real, axis, half)?, fitted(c, &imaginary, axis, half)?);
        return one(real.irfft(&imaginary, length, along)?.expand_dims(-1)?);
    }
    let (real, imaginary) = (fitted(c, &real, axis, length)?, fitted(c, &imaginary, axis, length)?);
    let (real, imaginary) = match inverse {
        true => real.ifft(&imaginary, along)?,
        false => real.fft(&imaginary, along)?,
    };
    let (mut real, mut imaginary) = (real, imaginary);
    if onesided {
        let half = length / 2 + 1;
        (real, imaginary) = (fitted(c, &real, axis, half)?, fitted(c, &imaginary, axis, half)?);
    }
    one(stack(&[&real, &imaginary], -1)?)
}

fn stft(c: &Call) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    let step = c.length(c.number(1)?)?.max(1);
    let window = c.maybe(2)?;
    let length = match (c.maybe(3)?, &window) {
        (Some(_), _) => c.length(c.number(3)?)?,
        (None, Some(window)) => c.sizes(window)?[0],
        (None, None) => return Err(c.refuse("neither a window nor the length of a frame")),
    };
    let wide = if x.rank() == 2 { x.expand_dims(-1)? } else { x };
    let signal = c.sizes(&wide)?[1];
    let Some(rest) = signal.checked_sub(length) else {
        return Err(c.refuse("frames that are longer than the signal"));
    };
    let (real, imaginary) = parts(c, &wide)?;
    let places: Vec<i64> = (0..=rest / step)
        .flat_map(|frame| (0..length).map(move |at| (frame * step + at) as i64))
        .collect();
    let places = crate::call::int_tensor(&places, &[rest / step + 1, length])?;
    let framed = |x: &Tensor| -> Result<Tensor> {
        let frames = x.gather(&places, 1)?;
        let Some(window) = &window else { return Ok(frames) };
        let short = length.saturating_sub(c.sizes(window)?[0]);
        let window =
            window.pad(&[[short / 2, short - short / 2]], PadMode::Constant(0.0.into()))?;
        frames.mul(&window.cast(frames.dtype())?)
    };
    let (real, imaginary) = framed(&real)?.fft(&framed(&imaginary)?, 2)?;
    let (mut real, mut imaginary) = (real, imaginary);
    if c.int("onesided", 1)? != 0 {
        let half = length / 2 + 1;
        (real, imaginary) = (fitted(c, &real, 2, half)?, fitted(c, &imaginary, 2, half)?);
    }
    one(stack(&[&real, &imaginary], -1)?)
}
