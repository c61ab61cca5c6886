//! The lengths of a product.

/// A batch of products `[rows, k] x [k, cols]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// How many products.
    pub batch: usize,
    /// Rows of the left operand and of the result.
    pub rows: usize,
    /// Columns of the right operand and of the result.
    pub cols: usize,
    /// What is summed over: columns of the left operand, rows of the right one.
    pub k: usize,
}

impl Size {
    /// A single product.
    pub const fn single(rows: usize, cols: usize, k: usize) -> Size {
        Size { batch: 1, rows, cols, k }
    }

    /// Whether nothing is made.
    pub fn is_empty(&self) -> bool {
        self.batch == 0 || self.rows == 0 || self.cols == 0
    }
}
