//! Windows over images as ONNX describes them: `[batch, channels, ...]`, kernels, strides, padding by numbers or by rule, rounding up.

use tonnage::{DType, Elementwise, PadMode, Padding, Part, Result, Scalar, Tensor, bind};

use super::pad::around;
use crate::call::Call;

/// Windows over the spatial axes of an image.
pub struct Windows {
    /// Elements of a window.
    pub kernel: Vec<usize>,
    /// From one window to the next.
    pub stride: Vec<usize>,
    /// From one element to the next.
    pub dilation: Vec<usize>,
    /// Padding before and after.
    pub pads: Vec<[usize; 2]>,
    /// How much further the last window stands out.
    pub extra: Vec<usize>,
    /// How many windows.
    pub counts: Vec<usize>,
    /// Lengths of the image.
    pub image: Vec<usize>,
}

/// One number for each spatial axis.
pub fn per_axis(c: &Call, name: &str, axes: usize, otherwise: usize) -> Result<Vec<usize>> {
    match c.ints(name)? {
        None => Ok(vec![otherwise; axes]),
        Some(all) if all.len() == axes => all.into_iter().map(|n| c.length(n)).collect(),
        Some(all) => Err(
            c.refuse(format!("the attribute `{name}` has {} numbers for {axes} axes", all.len()))
        ),
    }
}

impl Windows {
    /// Those of a node over an image of spatial lengths.
    pub fn of(c: &Call, image: &[usize], kernel: Vec<usize>) -> Result<Windows> {
        let axes = image.len();
        if kernel.len() != axes || kernel.contains(&0) {
            return Err(c.refuse(format!("a kernel of {kernel:?} for {axes} spatial axes")));
        }
        let (stride, dilation) =
            (per_axis(c, "strides", axes, 1)?, per_axis(c, "dilations", axes, 1)?);
        if stride.contains(&0) || dilation.contains(&0) {
            return Err(c.refuse("a stride or dilation of 0"));
        }
        let reach: Vec<usize> = (0..axes).map(|at| (kernel[at] - 1) * dilation[at] + 1).collect();
        let given = per_axis(c, "pads", 2 * axes, 0)?;
        let by = c.text("auto_pad", "NOTSET")?;
        let pads: Vec<[usize; 2]> = (0..axes)
            .map(|at| {
                let windows = image[at].div_ceil(stride[at]).saturating_sub(1);
                let total = (windows * stride[at] + reach[at]).saturating_sub(image[at]);
                Ok(match by.as_str() {
                    "NOTSET" | "" => [given[at], given[at + axes]],
                    "VALID" => [0, 0],
                    "SAME_UPPER" => [total / 2, total - total / 2],
                    "SAME_LOWER" => [total - total / 2, total / 2],
                    other => return Err(c.refuse(format!("the attribute `auto_pad` is `{other}`"))),
                })
            })
            .collect::<Result<_>>()?;
        let up = c.flag("ceil_mode")?;
        let (mut counts, mut extra) = (Vec::new(), Vec::new());
        for at in 0..axes {
            let whole = image[at] + pads[at][0] + pads[at][1];
            let Some(rest) = whole.checked_sub(reach[at]) else {
                return Err(c.refuse(format!("windows of {} over {whole} elements", reach[at])));
            };
            let mut count = if up { rest.div_ceil(stride[at]) } else { rest / stride[at] } + 1;
            // A window that begins behind the image is none.
            if up && (count - 1) * stride[at] >= image[at] + pads[at][0] {
                count -= 1;
            }
            extra.push(((count - 1) * stride[at] + reach[at]).saturating_sub(whole));
            counts.push(count);
        }
        Ok(Windows { kernel, stride, dilation, pads, extra, counts, image: image.to_vec() })
    }

    /// Padding as tensor methods take it.
    pub fn padding(&self) -> Padding {
        Padding::Of(self.pads.iter().copied().collect())
    }

    /// The same with what the last window stands out.
    pub fn padding_to_end(&self) -> Padding {
        let each = self.pads.iter().zip(&self.extra);
        Padding::Of(each.map(|(pad, extra)| [pad[0], pad[1] + extra]).collect())
    }

    /// For each element of a window: that element of all windows, as `[batch, channels, windows...]`.
    pub fn taps(&self, x: &Tensor, outside: impl Into<Scalar>) -> Result<Vec<Tensor>> {
        let padded = x.pad(&self.widths(2, 0), PadMode::Constant(outside.into()))?;
        self.parts(&padded, 2)
    }

    /// The same of whole numbers that lie channels-last, as `[batch, windows..., channels]`: with a zero point outside of the image.
    pub fn taps_of(&self, c: &Call, x: &Tensor, zero: Option<&Tensor>) -> Result<Vec<Tensor>> {
        let widths = self.widths(1, 1);
        let padded = match zero {
            Some(zero) if zero.is_symbolic() => {
                around(c, x.clone(), &widths, &zero.cast(x.dtype())?)?
            }
            Some(zero) => {
                let number = bind::outside_of_traces(|| zero.cast(DType::I64)?.to_vec::<i64>())?;
                let number = number.first().copied().unwrap_or(0);
                x.pad(&widths, PadMode::Constant(number.into()))?
            }
            None => x.pad(&widths, PadMode::Constant(0.into()))?,
        };
        self.parts(&padded, 1)
    }

    /// What is added around an image, with that many axes before the spatial ones, and behind them.
    fn widths(&self, before: usize, behind: usize) -> Vec<[usize; 2]> {
        let mut widths = vec![[0, 0]; before];
        let axes = 0..self.kernel.len();
        widths.extend(axes.map(|at| [self.pads[at][0], self.pads[at][1] + self.extra[at]]));
        widths.resize(widths.len() + behind, [0, 0]);
        widths
    }

    /// For each element of a window, that of all windows over an image with all that is outside of it, whose spatial axes begin there.
    fn parts(&self, padded: &Tensor, first: usize) -> Result<Vec<Tensor>> {
        let axes = self.kernel.len();
        let all: usize = self.kernel.iter().product();
        let tap = |number: usize| {
            let (mut rest, mut parts) = (number, vec![Part::ALL; padded.rank()]);
            for at in (0..axes).rev() {
                let start = (rest % self.kernel[at] * self.dilation[at]) as i64;
                rest /= self.kernel[at];
                let span = ((self.counts[at] - 1) * self.stride[at] + 1) as i64;
                parts[first + at] = Part::from(start..start + span).by(self.stride[at] as i64);
            }
            padded.slice(&parts)
        };
        (0..all).map(tap).collect()
    }
}
