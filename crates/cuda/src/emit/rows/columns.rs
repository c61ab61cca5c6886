//! Sums over rows, for each element of a row: parts of the rows are added up side by side, and the parts in order.

use smallvec::SmallVec;

use super::super::operand::{load, stored};
use super::super::{THREADS, blocks, c_type};
use super::program::RowOperand;
use super::{NAMES, Writer, uses};

/// Columns that a block of threads takes; its threads are as many times 8.
const ACROSS: u64 = 32;

/// Rows that are worth a part, and the most parts.
const ROWS: u64 = 64;
const MOST: u64 = 128;

/// How rows are cut into parts: by their number alone.
#[derive(Debug, Clone, Copy)]
pub struct Parts {
    /// How many.
    pub count: u64,
    width: u64,
}

impl Parts {
    pub fn of(rows: u64, width: u64) -> Parts {
        Parts { count: (rows / ROWS).clamp(1, MOST), width }
    }

    /// Numbers that the parts of so many sums take.
    pub fn numbers(&self, sums: usize) -> u64 {
        self.count * self.width * sums as u64
    }

    /// What is launched behind the rows themselves.
    pub fn functions(&self, functions: &mut SmallVec<[(&'static str, u32); 2]>) {
        let across = self.width.div_ceil(ACROSS);
        functions.push(("columns", blocks(across * self.count, 1)));
        functions.push(("finish", blocks(self.width, u64::from(THREADS))));
    }
}

impl Writer<'_> {
    /// The two functions; `outputs` is the word of the first output.
    pub fn columns(&mut self, outputs: usize) {
        let key = self.key;
        let scratch = outputs + usize::from(key.outputs);
        let parts = scratch + 1;
        let (kept, sums) = (key.kept.len(), key.columns.len());
        self.line("TN_KERNEL(columns) {");
        self.line(&format!("  __shared__ C tree[{sums}][{THREADS}];"));
        self.line("  const idx rows = (idx)p.w[0], n = (idx)p.w[1];");
        self.line(&format!(
            "  const idx across = (n + {ACROSS}u - 1) / {ACROSS}u, parts = (idx)p.w[{parts}], each = (rows + parts - 1) / parts;"
        ));
        self.line(&format!(
            "  for (idx block = blockIdx.x; block < across * parts; block += gridDim.x) {{\n  const idx part = block / across, at = block % across * {ACROSS}u + threadIdx.x % {ACROSS}u;"
        ));
        self.line(
            "  const idx first = part * each, last = first + each < rows ? first + each : rows;",
        );
        for k in 0..sums {
            self.line(&format!("  C sum{k} = 0;"));
        }
        self.line(&format!(
            "  for (idx o = first + threadIdx.x / {ACROSS}u; o < last && at < n; o += {THREADS}u / {ACROSS}u) {{"
        ));
        self.place();
        for (k, name) in key.kept.iter().enumerate() {
            self.line(&format!(
                "  const C {name} = ((const C*)p.w[{scratch}])[(i64)rows * {k} + o];"
            ));
        }
        for (i, (class, name)) in key.operands.iter().zip(NAMES).enumerate() {
            let is_used = key.columns.iter().any(|column| uses(column.sum, name));
            if is_used && class.operand != RowOperand::Number(name) {
                let step = self.word_of(i) + 1;
                let value = load(class.dtype, &format!("x{i}[(i64)at * (i64)p.w[{step}]]"));
                self.line(&format!("  const C {name} = {value};"));
            }
        }
        for (k, column) in key.columns.iter().enumerate() {
            let sum = column.sum;
            self.line(&format!("  {{ const C sum = sum{k}; sum{k} = {sum}; }}"));
        }
        self.line("  }");
        // Threads of a column meet in the order of their rows.
        let deep = THREADS / ACROSS as u32;
        for k in 0..sums {
            self.line(&format!("  tree[{k}][threadIdx.x] = sum{k};"));
        }
        self.line("  __syncthreads();");
        self.line(&format!("  if (threadIdx.x < {ACROSS}u && at < n) {{"));
        for k in 0..sums {
            self.line(&format!(
                "    {{ C sum = 0; for (int i = 0; i < {deep}; i++) sum = sum + tree[{k}][i * {ACROSS} + threadIdx.x]; ((C*)p.w[{scratch}])[(i64)rows * {kept} + ((i64)part * {sums} + {k}) * n + at] = sum; }}"
            ));
        }
        self.line("  }\n  __syncthreads();\n  }\n}");
        let ty = c_type(key.dtype);
        self.line("TN_KERNEL(finish) {");
        self.line(&format!(
            "  const idx rows = (idx)p.w[0], n = (idx)p.w[1], parts = (idx)p.w[{parts}];\n  for (idx at = (idx)blockIdx.x * {THREADS}u + threadIdx.x; at < n; at += (idx)gridDim.x * {THREADS}u) {{"
        ));
        for (k, column) in key.columns.iter().enumerate() {
            let (to, value) = (outputs + column.output, stored(key.dtype, "sum"));
            self.line(&format!(
                "    {{ C sum = 0; for (idx part = 0; part < parts; part++) sum = sum + ((const C*)p.w[{scratch}])[(i64)rows * {kept} + ((i64)part * {sums} + {k}) * n + at]; (({ty}*)p.w[{to}])[at] = {value}; }}"
            ));
        }
        self.line("  }\n}");
    }
}
