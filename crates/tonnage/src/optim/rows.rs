//! Steps of a gradient that is rows. The whole sum of an index stands where it last occurs, which is the row that stays where rows are put;
//! rows are then taken in pieces, so that what is gathered of a variable and its state is a piece of each.

use tonnage_core::{Bytes, DType, Dim, Result, Source};

use crate::make;
use crate::ops::Elementwise;
use crate::part::{Axes, Part};
use crate::tape::IndexedSlices;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// What a piece of the rows takes, about.
const PIECE: Bytes = Bytes::mib(6);

/// Indices, and a row for each: the whole sum where an index last occurs, and anything where it occurs before that.
pub(super) struct RowSums {
    indices: Tensor,
    sums: Tensor,
    /// Where each index last occurs, as far as there are pieces.
    last: Option<Tensor>,
    rows: usize,
    pieces: usize,
}

/// Some neighbours among the indices.
pub(super) struct RowPiece {
    indices: Tensor,
    /// Their rows.
    pub sums: Tensor,
    /// Which of them do not occur again behind the piece or in it.
    last: Option<Tensor>,
}

impl RowSums {
    /// Of a gradient of that variable; none where it has no part.
    pub fn of(
        gradient: &IndexedSlices,
        variable: &Variable,
        source: Source,
    ) -> Result<Option<RowSums>> {
        let Some((indices, last, sums)) = gradient.last_sums(source)? else {
            let whole = gradient.whole_sums(source)?;
            return Ok(whole.map(|(indices, sums)| RowSums {
                indices,
                sums,
                last: None,
                rows: 0,
                pieces: 1,
            }));
        };
        let (ty, rows) = (sums.ty(), sums.shape().first().and_then(Dim::known).unwrap_or(0));
        // Rows of one number have no pieces: what looks at their indices would take as much.
        let bytes = if ty.shape.rank() > 1 { ty.bytes("rows")? } else { Bytes::ZERO };
        let pieces = bytes.get().div_ceil(PIECE.get()).clamp(1, rows.max(1) as u64) as usize;
        let last = match pieces {
            1 => None,
            // No piece is written before all indices have been looked at.
            _ => Some((last + checked(variable, &indices)?)?),
        };
        Ok(Some(RowSums { indices, sums, last, rows, pieces }))
    }

    /// The pieces, in their order.
    pub fn pieces(&self) -> impl Iterator<Item = Result<RowPiece>> {
        (0..self.pieces).map(|piece| {
            let Some(last) = &self.last else {
                let (indices, sums) = (self.indices.clone(), self.sums.clone());
                return Ok(RowPiece { indices, sums, last: None });
            };
            let at = |piece: usize| (self.rows * piece / self.pieces) as i64;
            let (start, stop) = (at(piece), at(piece + 1));
            let part = |x: &Tensor| x.slice(&[Part::from(start..stop)]);
            let here = make::range(start, stop, 1)?;
            let last = part(last)?.equal(&here)?;
            let (indices, sums) = (part(&self.indices)?, part(&self.sums)?);
            Ok(RowPiece { indices, sums, last: Some(last) })
        })
    }
}

impl RowPiece {
    /// The rows of a variable.
    pub fn read(&self, variable: &Variable) -> Result<Tensor> {
        variable.read()?.gather(&self.indices, 0)
    }

    /// Puts rows into a variable. Those of an index that occurs again stay as they are until then.
    pub fn write(&self, variable: &Variable, rows: &Tensor) -> Result<()> {
        match &self.last {
            None => variable.assign_rows(&self.indices, rows),
            Some(last) => {
                let mut last = last.clone();
                for _ in 1..rows.rank() {
                    last = last.expand_dims(-1)?;
                }
                let rows = last.where_(rows, &self.read(variable)?)?;
                variable.assign_rows(&self.indices, &rows)
            }
        }
    }
}

/// Zeros, behind a look at all indices: no elements of the rows are read for it.
fn checked(variable: &Variable, indices: &Tensor) -> Result<Tensor> {
    let table = variable.read()?;
    let mut none = vec![Part::from(..); table.rank()];
    if let Some(last) = none.last_mut() {
        *last = Part::from(0..0);
    }
    let nothing = table.slice(&none)?.gather(indices, 0)?;
    let axes = Axes(Some((1..nothing.rank() as i64).collect()));
    nothing.sum(axes)?.cast(DType::I64)
}
