//! Where a row waits between the passes over it: in registers while it is short enough, in shared memory while it fits, and otherwise where it
//! lies, to be read again.

use super::super::{Block, THREADS, c_type};
use super::program::RowOperand;
use super::{ACCESS, RowKey, Writer};

/// Accesses that a thread holds of a row, at most.
const MOST_HELD: usize = 8;

/// Threads that share a row in shared memory, and blocks of them that keep a multiprocessor's loads going.
const SHARING: usize = 512;
const BLOCKS: usize = 2;

/// Shared memory is asked for in multiples of this, so that rows of about one length have one kernel.
const SHARED_STEP: usize = 1 << 10;

/// Copies to shared memory that go on beside other work.
const COPIES: &str = include_str!("../../../kernels/copies.cuh");

/// Where a row waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holding {
    /// In registers: so many accesses a thread.
    Registers(u8),
    /// In so many bytes of shared memory.
    Shared(u32),
    /// Nowhere.
    Nowhere,
}

/// How many threads share a row, and where it waits, where there is something to wait for; `bytes` are those of an element of all operands
/// that are held, and `most` the shared memory that a block may have.
pub fn sharing(
    width: usize,
    vector: usize,
    bytes: usize,
    (most, waits): (usize, bool),
) -> (usize, Holding) {
    let accesses = width.div_ceil(vector).max(1);
    let lanes = accesses.div_ceil(4).next_power_of_two().clamp(1, THREADS as usize);
    let lanes = match lanes {
        // A warp takes twice as much before a block is needed, which meets through shared memory.
        64 => 32,
        lanes => lanes,
    };
    let held = accesses.div_ceil(lanes);
    // Each operand begins at a multiple of the widest access.
    let shared = (width * bytes + 4 * ACCESS).next_multiple_of(SHARED_STEP);
    // What threads need to meet.
    let trees = SHARING * size_of::<f64>();
    match () {
        () if held <= MOST_HELD => (lanes, Holding::Registers(held as u8)),
        () if waits && shared + trees <= most => (SHARING, Holding::Shared(shared as u32)),
        () => (THREADS as usize, Holding::Nowhere),
    }
}

impl RowKey {
    /// The block of threads of one of its functions.
    pub fn block(&self, function: &str) -> Block {
        match self.holding {
            Holding::Shared(bytes) if function == "kernel" => {
                Block { threads: SHARING as u32, shared: bytes }
            }
            _ => Block::DEFAULT,
        }
    }
}

impl Writer<'_> {
    /// What stands before the text of rows in shared memory.
    pub(super) fn begin_held(&mut self) {
        if matches!(self.key.holding, Holding::Shared(_)) {
            self.text.push_str(COPIES);
            self.set_block(SHARING, BLOCKS);
        }
    }

    /// What stands behind it.
    pub(super) fn end_held(&mut self) {
        if matches!(self.key.holding, Holding::Shared(_)) {
            self.set_block(THREADS as usize, 0);
        }
    }

    /// How many threads a block has from here on, and how many blocks a multiprocessor is to hold.
    fn set_block(&mut self, threads: usize, blocks: usize) {
        self.line(&format!("#undef TN_THREADS\n#define TN_THREADS {threads}"));
        self.line(&format!("#undef TN_BLOCKS\n#define TN_BLOCKS {blocks}"));
    }

    /// Brings rows to where they wait.
    pub(super) fn hold(&mut self) {
        match self.key.holding {
            Holding::Registers(held) => self.hold_in_registers(held),
            Holding::Shared(bytes) => self.hold_in_shared_memory(bytes),
            Holding::Nowhere => {}
        }
    }

    fn hold_in_registers(&mut self, held: u8) {
        for i in self.held() {
            self.line(&format!("  C h{i}[{held} * V];"));
        }
        self.line(&format!("#pragma unroll\n  for (int h = 0; h < {held}; h++) {{"));
        self.line("    const idx s = ((idx)h * L + lane) * V;\n    if (s < size) {");
        for i in self.held() {
            self.read(i, &format!("h{i}[h * V + v] = "));
        }
        self.line("    }\n  }");
    }

    /// A thread reads no other elements than it brings, so none waits for another.
    fn hold_in_shared_memory(&mut self, bytes: u32) {
        self.line(&format!("  TN_SHARED(held, {bytes});\n  u8* free = held;"));
        for i in self.held() {
            let class = self.key.operands[i];
            let ty = c_type(class.dtype);
            self.line(&format!("  {ty}* const w{i} = ({ty}*)free;"));
            self.line(&format!(
                "  free += ((u64)n * sizeof({ty}) + {ACCESS} - 1) / {ACCESS} * {ACCESS};"
            ));
            let is_access =
                class.at_once && usize::from(self.key.vector) * class.dtype.size() == ACCESS;
            let copy = match is_access {
                true => format!("copy_async((u16*)(w{i} + s), (const u16*)(x{i} + s), true);"),
                false => {
                    let step = self.word_of(i) + 1;
                    format!(
                        "for (int v = 0; v < V; v++) w{i}[s + v] = x{i}[(i64)(s + v) * (i64)p.w[{step}]];"
                    )
                }
            };
            self.line(&format!(
                "#pragma unroll 4\n  for (idx s = lane * V; s < size; s += (idx)L * V) {copy}"
            ));
        }
        self.line("  wait_for_copies();");
        self.waits = true;
    }

    /// The statement that puts `y` where an element of an operand waits; nothing where it waits in no register.
    pub(super) fn keep(&self, operand: usize) -> String {
        match self.key.holding {
            Holding::Registers(_) => format!("h{operand}[h * V + v] = y;"),
            Holding::Shared(_) | Holding::Nowhere => String::new(),
        }
    }

    /// Lets an expression stand for the elements of an operand; they are made anew where they wait in no register.
    pub(super) fn replace(&mut self, operand: usize, by: &str) {
        if !matches!(self.key.holding, Holding::Registers(_)) {
            self.replaced[operand] = Some(by.to_string());
        }
    }

    /// Operands that are held.
    fn held(&self) -> Vec<usize> {
        let is_held = |i: &usize| self.key.operands[*i].operand == RowOperand::Held;
        (0..self.key.operands.len()).filter(is_held).collect()
    }
}
