//! Products of matrices as cuBLASLt takes them: two matrices and a result, each by the distance of its rows or columns, over one batch; and what
//! they take up of the step behind them.
//!
//! Decision: `docs/decisions/epilogues.md`.

use smallvec::SmallVec;
use tonnage_core::layout::Layout;
use tonnage_core::tile::{Form, Prim, TileProgram};
use tonnage_core::{Bytes, DType};
use tonnage_plan::{TileRead, TileRun};

use crate::emit::Axes;

/// The most that the library is given to work in.
const WORKSPACE: Bytes = Bytes::mib(32);

/// Where that has to start, at a multiple of this.
pub const WORKSPACE_ALIGN: u64 = 256;

/// Results that keep all multiprocessors busy.
const MANY: u64 = 1 << 22;

/// Results that leave most of them idle.
const FEW: u64 = 1 << 17;

/// Steps of a sum that are worth a part of their own, of few results and of more.
const PARTS: [u64; 2] = [256, 1024];

/// Steps of sums whose few results are worth as much workspace as the operands take.
const LONG: u64 = 1 << 14;

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
    /// From a row of the result to the next, in elements.
    pub lead: u64,
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
        let mut product = Product { dtype, rows, cols, depth, batch, left, right, lead: cols };
        product.fold_batch();
        Some(product)
    }

    /// The same, with rows of the result that lie so far apart.
    #[must_use]
    pub fn with_rows_apart(self, step: Option<usize>) -> Product {
        Product { lead: step.map_or(self.lead, |step| step as u64), ..self }
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
        let (is_few, is_long) = (results < FEW, self.depth >= LONG);
        let parts = self.depth.saturating_sub(1) / PARTS[usize::from(!is_few)];
        let sums = (results * self.dtype.compute().size() as u64).saturating_mul(parts);
        let operands = (self.rows + self.cols) * self.depth * self.batch;
        let read = operands.saturating_mul(self.dtype.size() as u64);
        WORKSPACE.min(Bytes::new(if is_few && is_long { sums.max(read) } else { sums }))
    }
}

/// What a product takes up of the elementwise step behind it, by the loads of that step's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Finish {
    /// A number for each column.
    pub bias: Option<usize>,
    /// An element for each of the result.
    pub added: Option<usize>,
}

/// The same of a program that adds to the product and does nothing else: the library does that before it rounds. `is_made` says which loads
/// read the product.
pub fn finish(run: &TileRun, dtype: DType, is_made: impl Fn(usize) -> bool) -> Option<Finish> {
    let program = &run.program;
    let elements = Form::Elements(dtype);
    let [(sum, form)] = program.stores[..] else { return None };
    if form != elements || program.loads.iter().any(|load| *load != elements) {
        return None;
    }
    let mut summands = SmallVec::new();
    collect_summands(program, usize::from(sum), dtype, &mut summands)?;
    let (mut finish, mut products) = (Finish::default(), 0);
    for load in summands {
        if is_made(load) {
            products += 1;
            continue;
        }
        let TileRead::Input(_, layout) = run.reads.get(load)? else { return None };
        let place = match () {
            () if layout.is_contiguous() && layout.sizes == run.domain => &mut finish.added,
            () if is_for_columns(layout) && has_bias(dtype) => &mut finish.bias,
            () => return None,
        };
        if place.replace(load).is_some() {
            return None;
        }
    }
    (products == 1 && finish != Finish::default()).then_some(finish)
}

/// The loads that a register is the sum of, each rounded to that dtype or not.
fn collect_summands(
    program: &TileProgram,
    register: usize,
    dtype: DType,
    summands: &mut SmallVec<[usize; 4]>,
) -> Option<()> {
    let Some(at) = register.checked_sub(program.loads.len()) else {
        summands.push(register);
        // A product, a bias and a matrix.
        return (summands.len() <= 3).then_some(());
    };
    let instr = program.code.get(at)?;
    match instr.prim {
        Prim::Add => {}
        Prim::RoundTo(to) if to == dtype => {}
        _ => return None,
    }
    let mut args = instr.args.iter();
    args.try_for_each(|arg| collect_summands(program, usize::from(*arg), dtype, summands))
}

/// Whether a layout has a number for each column, the same in all rows.
fn is_for_columns(layout: &Layout) -> bool {
    layout.strides.split_last().is_some_and(|(last, others)| {
        others.iter().zip(&layout.sizes).all(|(step, n)| *step == 0 || *n == 1)
            && (*last == 1 || layout.sizes.last() == Some(&1))
    })
}

/// Whether the library adds numbers for each column to products of that dtype.
fn has_bias(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
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
    use tonnage_core::tile::TileProgram;

    use super::*;

    fn layout(sizes: &[usize]) -> Layout {
        Layout::contiguous(sizes)
    }

    /// What a product takes up of `load 0 + load 1 + ...`, where all lie so over a domain of 3 x 4 and one is the product.
    fn taken(dtype: DType, strides: &[[isize; 2]], prim: Prim, made: usize) -> Option<Finish> {
        let mut program = TileProgram::loading(&vec![dtype; strides.len()]);
        let mut sum = 0;
        for load in 1..strides.len() as u8 {
            sum = program.push(prim, &[sum, load.into()]);
            sum = match dtype.compute() == dtype {
                true => sum,
                false => program.push(Prim::RoundTo(dtype), &[sum]),
            };
        }
        program.store(sum, dtype);
        let layout = |strides: &[isize; 2]| Layout {
            sizes: [3, 4].into_iter().collect(),
            strides: strides.iter().copied().collect(),
            offset: 0,
        };
        let reads = strides.iter().enumerate().map(|(i, s)| TileRead::Input(i, layout(s)));
        let run = TileRun::new(program, [3, 4].into_iter().collect(), reads.collect());
        finish(&run, dtype, |load| load == made)
    }

    #[test]
    fn a_product_takes_up_what_is_added_to_it_by_column_or_by_element() {
        let (whole, rows, cols, one) = ([4, 1], [1, 0], [0, 1], [0, 0]);
        let of = |bias, added| Some(Finish { bias, added });
        let (f32, bf16) = (DType::F32, DType::BF16);
        assert_eq!(taken(f32, &[whole, cols], Prim::Add, 0), of(Some(1), None));
        assert_eq!(taken(bf16, &[cols, whole], Prim::Add, 1), of(Some(0), None));
        assert_eq!(taken(f32, &[whole, whole], Prim::Add, 1), of(None, Some(0)));
        assert_eq!(taken(DType::F64, &[whole, whole], Prim::Add, 0), of(None, Some(1)));
        assert_eq!(taken(bf16, &[whole, cols, whole], Prim::Add, 0), of(Some(1), Some(2)));
        assert_eq!(taken(bf16, &[cols, whole, whole], Prim::Add, 2), of(Some(0), Some(1)));
        for (dtype, strides, prim) in [
            (f32, vec![whole, rows], Prim::Add),
            (f32, vec![whole, one], Prim::Add),
            (f32, vec![whole, cols], Prim::Mul),
            (f32, vec![whole, whole, whole], Prim::Add),
            (f32, vec![whole, cols, cols], Prim::Add),
            (f32, vec![whole, cols, whole, whole], Prim::Add),
            (DType::F64, vec![whole, cols], Prim::Add),
        ] {
            assert_eq!(taken(dtype, &strides, prim, 0), None, "{strides:?}");
        }
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
        assert_eq!(space(64, 64, 4096), Bytes::new(15 * 64 * 64 * 4));
        assert_eq!(space(64, 64, 65_536), Bytes::new(128 * 65_536 * 2));
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
