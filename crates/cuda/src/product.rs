//! Products of matrices as cuBLASLt takes them: two matrices and a result, each by the distance of its rows or columns, over one batch.

use smallvec::SmallVec;
use tonnage_core::layout::Layout;
use tonnage_core::{Bytes, DType};

use crate::emit::Axes;

/// The most that the library is given to work in.
const WORKSPACE: Bytes = Bytes::mib(32);

/// Where that has to start, at a multiple of this.
pub const WORKSPACE_ALIGN: u64 = 256;

/// Results that keep all multiprocessors busy.
const MANY: u64 = 1 << 22;

/// Steps of a sum that are worth a part of their own.
const PART: u64 = 1024;

/// An operand: whether its columns, not its rows, are runs of neighbours; how far those lie apart; and how far the matrices of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Matrix {
    /// Whether columns are runs of neighbours.
    pub by_columns: bool,
    /// From a run to the next, in elements.
    pub lead: i64,
    /// From a matrix to the next, in elements.
    pub batch: i64,
}

/// `rows x depth` times `depth x cols`, `batch` times; the result lies in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Product {
    /// Of all three.
    pub dtype: DType,
    /// Rows of the result.
    pub rows: u64,
    /// Columns of the result.
    pub cols: u64,
    /// What is summed over.
    pub depth: u64,
    /// How many products.
    pub batch: u64,
    /// The left operand.
    pub left: Matrix,
    /// The right operand.
    pub right: Matrix,
}

impl Product {
    /// The product of two tensors that may be read as their transposes; nothing where the library cannot take it as it lies.
    pub fn of(
        dtype: DType,
        (left, left_transposed): (&Layout, bool),
        (right, right_transposed): (&Layout, bool),
        out: &[usize],
    ) -> Option<Product> {
        if !dtype.is_float() {
            return None;
        }
        let batch_rank = out.len().checked_sub(2)?;
        let (rows, cols) = (out[batch_rank], out[batch_rank + 1]);
        let sizes = |layout: &Layout, transposed: bool| {
            let rank = layout.sizes.len();
            let axes = (rank.checked_sub(2)?, rank - 1);
            Some(if transposed { (axes.1, axes.0) } else { axes })
        };
        let (left_axes, right_axes) =
            (sizes(left, left_transposed)?, sizes(right, right_transposed)?);
        let depth = left.sizes[left_axes.1];
        let strides = [broadcast(left, batch_rank, out), broadcast(right, batch_rank, out)];
        let all: SmallVec<[usize; 4]> = (0..batch_rank).collect();
        let batches = Axes::merged(&out[..batch_rank], &strides, &all);
        let (batch, steps) = match batches.rank() {
            0 => (1, [0, 0]),
            1 => (batches.sizes[0] as u64, [batches.strides[0][0], batches.strides[1][0]]),
            _ => return None,
        };
        let left = matrix(left, left_axes, steps[0])?;
        let right = matrix(right, right_axes, steps[1])?;
        let (rows, cols, depth) = (rows as u64, cols as u64, depth as u64);
        let mut product = Product { dtype, rows, cols, depth, batch, left, right };
        product.fold_batch();
        Some(product)
    }

    /// A batch of rows times one matrix is one product of more rows.
    fn fold_batch(&mut self) {
        let follows = !self.left.by_columns && self.left.batch == self.left.lead * self.rows as i64;
        if self.batch > 1 && self.right.batch == 0 && follows {
            self.rows *= self.batch;
            self.batch = 1;
        }
    }

    /// Its workspace, with room to align it.
    pub fn workspace(&self) -> Bytes {
        match self.space() {
            Bytes::ZERO => Bytes::ZERO,
            space => space + Bytes::new(WORKSPACE_ALIGN),
        }
    }

    /// What the library may work in. Where results are too few to keep all multiprocessors busy, it cuts long sums into parts, whose
    /// results it adds up: measured on an H200, other products are as fast without.
    pub fn space(&self) -> Bytes {
        let results = self.rows * self.cols * self.batch;
        if results >= MANY {
            return Bytes::ZERO;
        }
        let parts = self.depth.saturating_sub(1) / PART;
        let sums = results * self.dtype.compute().size() as u64;
        WORKSPACE.min(Bytes::new(sums.saturating_mul(parts)))
    }
}

/// Steps along the batch's axes.
fn broadcast(layout: &Layout, batch_rank: usize, out: &[usize]) -> SmallVec<[i64; 4]> {
    let own = layout.sizes.len() - 2;
    (0..batch_rank)
        .map(|axis| match (axis + own).checked_sub(batch_rank) {
            Some(at) if layout.sizes[at] == out[axis] => layout.strides[at] as i64,
            _ => 0,
        })
        .collect()
}

fn matrix(layout: &Layout, (row, col): (usize, usize), batch: i64) -> Option<Matrix> {
    let (rows, cols) = (layout.sizes[row] as i64, layout.sizes[col] as i64);
    let (row_step, col_step) = (layout.strides[row] as i64, layout.strides[col] as i64);
    if batch < 0 {
        return None;
    }
    // An axis of length 1 has no step to speak of.
    if (col_step == 1 || cols <= 1) && (row_step >= cols || rows <= 1) {
        let lead = if rows <= 1 { cols } else { row_step };
        return Some(Matrix { by_columns: false, lead: lead.max(1), batch });
    }
    if (row_step == 1 || rows <= 1) && (col_step >= rows || cols <= 1) {
        let lead = if cols <= 1 { rows } else { col_step };
        return Some(Matrix { by_columns: true, lead: lead.max(1), batch });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(sizes: &[usize]) -> Layout {
        Layout::contiguous(sizes)
    }

    #[test]
    fn a_batch_of_rows_times_one_matrix_is_one_product() {
        let (a, b) = (layout(&[8, 16, 32]), layout(&[32, 64]));
        let product = Product::of(DType::F32, (&a, false), (&b, false), &[8, 16, 64]).unwrap();
        assert_eq!((product.batch, product.rows, product.cols, product.depth), (1, 128, 64, 32));
    }

    #[test]
    fn long_sums_of_few_results_have_a_workspace() {
        let space = |rows, cols, depth| {
            let (a, b) = (layout(&[rows, depth]), layout(&[depth, cols]));
            Product::of(DType::BF16, (&a, false), (&b, false), &[rows, cols]).unwrap().space()
        };
        assert_eq!(space(1024, 1024, 1024), Bytes::ZERO);
        assert_eq!(space(64, 64, 4096), Bytes::new(3 * 64 * 64 * 4));
        assert_eq!(space(768, 768, 65_536), WORKSPACE);
        assert_eq!(space(65_536, 768, 3072), Bytes::ZERO);
    }

    #[test]
    fn transposes_are_read_as_they_lie() {
        let (a, b) = (layout(&[32, 16]), layout(&[64, 32]));
        let product = Product::of(DType::BF16, (&a, true), (&b, true), &[16, 64]).unwrap();
        assert_eq!(product.left, Matrix { by_columns: true, lead: 16, batch: 0 });
        assert_eq!(product.right, Matrix { by_columns: true, lead: 32, batch: 0 });
    }

    #[test]
    fn batches_that_broadcast_in_one_axis_of_two_are_left_to_others() {
        let (a, b) = (layout(&[4, 1, 8, 8]), layout(&[1, 5, 8, 8]));
        assert!(Product::of(DType::F32, (&a, false), (&b, false), &[4, 5, 8, 8]).is_none());
        let (a, b) = (layout(&[4, 5, 8, 8]), layout(&[4, 5, 8, 8]));
        let product = Product::of(DType::F32, (&a, false), (&b, false), &[4, 5, 8, 8]).unwrap();
        assert_eq!((product.batch, product.left.batch), (20, 64));
    }

    #[test]
    fn whole_numbers_and_odd_steps_are_left_to_others() {
        let a = layout(&[8, 8]);
        assert!(Product::of(DType::I32, (&a, false), (&a, false), &[8, 8]).is_none());
        let apart = Layout {
            sizes: [8, 8].into_iter().collect(),
            strides: [16, 2].into_iter().collect(),
            offset: 0,
        };
        assert!(Product::of(DType::F32, (&apart, false), (&a, false), &[8, 8]).is_none());
    }
}
