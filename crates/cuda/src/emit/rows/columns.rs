//! Sums over rows, for each element of a row: parts of the rows are added up side by side, and the parts in order.

use smallvec::SmallVec;

use super::super::operand::stored;
use super::super::{THREADS, blocks, c_type};
use super::{NAMES, Writer, uses};

/// Threads side by side that read neighbouring elements of a row, at most.
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

    /// What is launched behind the rows themselves, which are read by so many elements at once.
    pub fn functions(&self, vector: usize, functions: &mut SmallVec<[(&'static str, u32); 2]>) {
        let across = self.width.div_ceil(across(self.width, vector) * vector as u64);
        functions.push(("columns", blocks(across * self.count, 1)));
        functions.push(("finish", blocks(self.width, ACROSS)));
    }
}

/// Threads that stand side by side along rows of so many elements; the others of a block read other rows.
pub fn across(width: u64, vector: usize) -> u64 {
    width.div_ceil(vector as u64).next_power_of_two().min(ACROSS)
}

impl Writer<'_> {
    /// The two functions; `outputs` is the word of the first output.
    pub fn columns(&mut self, outputs: usize) {
        let key = self.key;
        let scratch = outputs + usize::from(key.outputs);
        let parts = scratch + 1;
        let (kept, sums) = (key.kept.len(), key.columns.len());
        self.waits = false;
        let across = u32::from(key.across);
        let deep = THREADS / across;
        self.line("TN_KERNEL(columns) {");
        self.line(&format!("  __shared__ C tree[{sums}][{THREADS} * V];"));
        self.line("  const idx rows = (idx)p.w[0], n = (idx)p.w[1];");
        self.line(&format!(
            "  const idx strips = (n + {across}u * V - 1) / ({across}u * V), parts = (idx)p.w[{parts}], each = (rows + parts - 1) / parts;"
        ));
        self.line(&format!(
            "  for (idx block = blockIdx.x; block < strips * parts; block += gridDim.x) {{\n  const idx part = block / strips, begin = block % strips * ({across}u * V), s = begin + threadIdx.x % {across}u * V;"
        ));
        self.line(
            "  const idx first = part * each, last = first + each < rows ? first + each : rows;",
        );
        self.line(&format!("  C sums[{sums}][V] = {{}};"));
        self.line(&format!(
            "#pragma unroll 4\n  for (idx o = first + threadIdx.x / {across}u; o < last && s < n; o += {deep}u) {{"
        ));
        self.place();
        for (k, name) in key.kept.iter().enumerate() {
            self.line(&format!(
                "  const C {name} = ((const C*)p.w[{scratch}])[(i64)rows * {k} + o];"
            ));
        }
        let mut names = String::new();
        for (i, (class, name)) in key.operands.iter().zip(NAMES).enumerate() {
            let is_used = key.columns.iter().any(|column| uses(column.sum, name));
            if is_used && class.operand.is_row() {
                self.line(&format!("      C r{i}[V];"));
                self.read(i, &format!("r{i}[v] = "));
                names.push_str(&format!("const C {name} = r{i}[v]; "));
            }
        }
        self.line(&format!("#pragma unroll\n  for (int v = 0; v < V; v++) {{ {names}"));
        for (k, column) in key.columns.iter().enumerate() {
            let sum = column.sum;
            self.line(&format!("    {{ const C sum = sums[{k}][v]; sums[{k}][v] = {sum}; }}"));
        }
        self.line("  }\n  }");
        // Threads of a column meet in the order of their rows.
        self.line(&format!(
            "#pragma unroll\n  for (int v = 0; v < V; v++) {{ for (int k = 0; k < {sums}; k++) tree[k][threadIdx.x * V + v] = sums[k][v]; }}"
        ));
        self.line("  __syncthreads();");
        self.line(&format!(
            "  for (idx c = threadIdx.x; c < {across}u * V && begin + c < n; c += {THREADS}u) {{"
        ));
        for k in 0..sums {
            self.line(&format!(
                "    {{ C sum = 0; for (int i = 0; i < {deep}; i++) sum = sum + tree[{k}][i * ({across} * V) + c]; ((C*)p.w[{scratch}])[(i64)rows * {kept} + ((i64)part * {sums} + {k}) * n + begin + c] = sum; }}"
            ));
        }
        self.line("  }\n  __syncthreads();\n  }\n}");
        let ty = c_type(key.dtype);
        let deep = THREADS / ACROSS as u32;
        self.line("TN_KERNEL(finish) {");
        self.line(&format!("  __shared__ C tree[{sums}][{THREADS}];"));
        self.line(&format!(
            "  const idx rows = (idx)p.w[0], n = (idx)p.w[1], parts = (idx)p.w[{parts}];\n  for (idx begin = (idx)blockIdx.x * {ACROSS}u; begin < n; begin += (idx)gridDim.x * {ACROSS}u) {{\n  const idx at = begin + threadIdx.x % {ACROSS}u;"
        ));
        self.line(&format!("  C sums[{sums}] = {{}};"));
        self.line(&format!(
            "#pragma unroll 4\n  for (idx part = threadIdx.x / {ACROSS}u; part < parts && at < n; part += {deep}u) {{"
        ));
        for k in 0..sums {
            self.line(&format!(
                "    sums[{k}] = sums[{k}] + ((const C*)p.w[{scratch}])[(i64)rows * {kept} + ((i64)part * {sums} + {k}) * n + at];"
            ));
        }
        self.line(&format!(
            "  }}\n  for (int k = 0; k < {sums}; k++) tree[k][threadIdx.x] = sums[k];\n  __syncthreads();\n  if (threadIdx.x < {ACROSS}u && at < n) {{"
        ));
        for (k, column) in key.columns.iter().enumerate() {
            let (to, value) = (outputs + column.output, stored(key.dtype, "sum"));
            self.line(&format!(
                "    {{ C sum = 0; for (int i = 0; i < {deep}; i++) sum = sum + tree[{k}][i * {ACROSS} + threadIdx.x]; (({ty}*)p.w[{to}])[at] = {value}; }}"
            ));
        }
        self.line("  }\n  __syncthreads();\n  }\n}");
    }
}
