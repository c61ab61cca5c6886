//! Rows that are put into a table of which some elements are there at a time: a table that lies in a file.
//!
//! Rows go where [`scatter_add`](tonnage_ops::index::scatter_add) and
//! [`scatter_update`](tonnage_ops::index::scatter_update) put them, in the same order, so that the bits are the same.
//! They are put in the order of the table first, so that each part finds its own.
//!
//! Decision: `docs/decisions/variables-in-files.md`.

use tonnage_core::error::Result;
use tonnage_core::lent::In;
use tonnage_core::walk::StridedAxes;
use tonnage_core::{Attrs, Bytes, Element, OpDef};
use tonnage_ops::index::rows::puts_rows;
use tonnage_ops::index::scatter_add::SCATTER_ADD;

use super::indices::Indices;
use super::order::in_order;
use crate::number::{Number, with_sum, with_width};
use crate::strided;
use crate::workers::Workers;

/// Whether that can be done in parts, of a table of that many rows, with that many indices.
pub fn can(op: &OpDef, attrs: &Attrs, rows: usize, indices: usize) -> bool {
    let counted = u32::try_from(rows).is_ok() && u32::try_from(indices).is_ok();
    puts_rows(op, attrs) && counted
}

/// What the order of that many rows takes.
pub fn order_bytes(indices: usize) -> Bytes {
    Bytes::of(indices * size_of::<u64>()).rounded()
}

/// Rows, and where they go.
pub struct RowsInParts<'a> {
    adds: bool,
    rows: &'a In<'a>,
    /// Elements of a row.
    row: usize,
    /// A row of the table, and behind it which of the rows goes there: in the order of the table, and among equals of the
    /// indices.
    order: &'a [u64],
}

impl<'a> RowsInParts<'a> {
    /// For an op that [`can`] be done so, into a table of those sizes.
    ///
    /// # Errors
    /// Where an index points outside of the table.
    pub fn new(
        op: &'static OpDef,
        table: &[usize],
        [indices, rows]: [&'a In<'a>; 2],
        order: &'a mut [u64],
        workers: &dyn Workers,
    ) -> Result<RowsInParts<'a>> {
        let size = table.first().copied().unwrap_or(0);
        let indices = Indices::checked(op.name, indices, size)?;
        indices.each(0, order.len(), |i, index| order[i] = (index as u64) << 32 | i as u64);
        in_order(order, workers)?;
        let row = table.iter().skip(1).product();
        Ok(RowsInParts { adds: *op == SCATTER_ADD, rows, row, order })
    }

    /// Puts what belongs there into some elements of the table, the first of which has that number.
    ///
    /// # Errors
    /// For a dtype that cannot be added.
    pub fn put(&self, first: usize, part: &mut [u8]) -> Result<()> {
        match self.adds {
            true => with_sum!("scatter_add", self.rows.dtype, T => {
                self.each::<T>(first, bytemuck::cast_slice_mut(part), |to, from| *to = to.plus(from));
                Ok(())
            }),
            false => {
                with_width!(self.rows.dtype, T => {
                    self.each::<T>(first, bytemuck::cast_slice_mut(part), |to, from| *to = from);
                });
                Ok(())
            }
        }
    }

    fn each<T: Element>(&self, first: usize, part: &mut [T], put: impl Fn(&mut T, T)) {
        if self.row == 0 {
            return;
        }
        let (data, axes, end) =
            (self.rows.slice::<T>(), StridedAxes::from(&self.rows.layout), first + part.len());
        let row_of = |packed: u64| (packed >> 32) as usize;
        let begin = self.order.partition_point(|at| (row_of(*at) + 1) * self.row <= first);
        for packed in &self.order[begin..] {
            let start = row_of(*packed) * self.row;
            if start >= end {
                return;
            }
            // A part may begin or end within a row.
            let (from, to) = (start.max(first), (start + self.row).min(end));
            let number = (*packed & u64::from(u32::MAX)) as usize;
            let at = number * self.row + from - start;
            strided::combine(axes, data, at, &mut part[from - first..to - first], &put);
        }
    }
}
