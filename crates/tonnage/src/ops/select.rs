//! Parts of a tensor as Python writes them: positions, ranges, new axes, and the rest.

use std::ops::{Range, RangeFrom, RangeFull, RangeTo};

use tonnage_core::attrs::AxisSlice;
use tonnage_core::error::bad_argument;
use tonnage_core::{Dim, ErrorKind, Result, Shape, Source};

use crate::part::Part;
use crate::tensor::Tensor;

/// What is taken of an axis, or put where none is.
#[derive(Debug, Clone, Copy)]
pub enum Index {
    /// One position, from the back where it is negative; the axis is gone.
    At(i64),
    /// A part of the axis.
    Part(Part),
    /// A new axis of length 1.
    New,
    /// All of the axes that nothing else names: Python's `...`.
    Rest,
}

impl From<i64> for Index {
    fn from(at: i64) -> Index {
        Index::At(at)
    }
}

macro_rules! parts {
    ($($T:ty),*) => {$(
        impl From<$T> for Index {
            fn from(part: $T) -> Index {
                Index::Part(part.into())
            }
        }
    )*};
}
parts!(RangeFull, Range<i64>, RangeFrom<i64>, RangeTo<i64>);

impl From<Part> for Index {
    fn from(part: Part) -> Index {
        Index::Part(part)
    }
}

impl Tensor {
    /// Parts of axes, single positions, new axes; without a copy. Axes that nothing names are taken whole.
    ///
    /// ```
    /// use tonnage::{Index, Part, range};
    /// let x = range(0i32, 24, 1)?.reshape(&[2, 3, 4])?;
    /// let part = x.get(&[Index::Rest, (1..3).into()])?; // x[..., 1:3]
    /// assert_eq!(part.shape().to_string(), "[2, 3, 2]");
    /// let last = x.get(&[1.into(), Index::New, Part::ALL.by(-1).into(), (-1).into()])?; // x[1, None, ::-1, -1]
    /// assert_eq!(last.shape().to_string(), "[1, 3]");
    /// assert_eq!(last.to_vec::<i32>()?, [23, 19, 15]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn get(&self, indices: &[Index]) -> Result<Tensor> {
        let source = Source::here();
        let (slices, shape) = self.taken(indices).map_err(|e| e.at(source))?;
        let part = self.slice_at(slices, source)?;
        match part.shape() == shape {
            true => Ok(part),
            false => part.reshape(shape),
        }
    }

    /// A slice of every axis, and the shape without single positions and with new axes.
    fn taken(&self, indices: &[Index]) -> Result<(Vec<AxisSlice>, Shape)> {
        let whole = self.shape();
        let named = indices.iter().filter(|i| matches!(i, Index::At(_) | Index::Part(_))).count();
        let rests = indices.iter().filter(|i| matches!(i, Index::Rest)).count();
        if named > whole.rank() || rests > 1 {
            let what = format!("{named} indices and {rests} rests for the shape {whole}");
            return Err(bad_argument("slice", what, "give at most one an axis, and one rest"));
        }
        let mut left = whole.rank() - named;
        let (mut slices, mut dims): (Vec<AxisSlice>, Vec<Dim>) = (Vec::new(), Vec::new());
        let all = |count: usize, slices: &mut Vec<AxisSlice>, dims: &mut Vec<Dim>| {
            for _ in 0..count {
                let dim = whole[slices.len()].clone();
                slices.push(AxisSlice::all(dim.clone()));
                dims.push(dim);
            }
        };
        for index in indices {
            match index {
                Index::New => dims.push(1.into()),
                Index::Rest => all(std::mem::take(&mut left), &mut slices, &mut dims),
                Index::Part(part) => {
                    let slice = part.resolve("slice", &whole[slices.len()])?;
                    dims.push(slice.len.clone());
                    slices.push(slice);
                }
                Index::At(at) => slices.push(position(slices.len(), &whole, *at)?),
            }
        }
        all(left, &mut slices, &mut dims);
        Ok((slices, dims.into_iter().collect()))
    }
}

fn position(axis: usize, whole: &Shape, at: i64) -> Result<AxisSlice> {
    let start = match (at, whole[axis].known()) {
        (at, Some(n)) => {
            let from_front = if at < 0 { at.saturating_add(n as i64) } else { at };
            match usize::try_from(from_front).ok().filter(|at| *at < n) {
                Some(start) => start.into(),
                None => {
                    let (op, position) = ("slice", axis);
                    return Err(
                        ErrorKind::IndexOutOfRange { op, index: at, position, size: n }.into()
                    );
                }
            }
        }
        // From the front of an open axis it is known, from its back it is as long as the axis less that.
        (at, None) if at >= 0 => Dim::Known(at as usize),
        (at, None) => whole[axis].minus(&Dim::Known(at.unsigned_abs() as usize)),
    };
    Ok(AxisSlice { start, len: 1.into(), step: 1 })
}
