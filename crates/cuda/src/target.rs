//! What an NVIDIA GPU tells the planner: data and pure functions, so that a run is sized before the card is rented.

use tonnage_core::layout::Layout;
use tonnage_core::recipe::Generator;
use tonnage_core::row::Call;
use tonnage_core::tile::TileProgram;
use tonnage_core::{Attrs, Bytes, DType, OpDef, Scalar, TensorType};
use tonnage_ops::OpId;
use tonnage_ops::linalg::matmul::{MATMUL, transposes};
use tonnage_ops::tile::TileLimits;
use tonnage_plan::{Machine, SharedTarget, Space, Target, TileRead, TileRun, keeps_order};

use crate::driver::GpuInfo;
use crate::emit;
use crate::parts;
use crate::product::{Product, finish};

/// The driver hands out memory in whole multiples of this.
pub const PAGE: u64 = 2 << 20;

/// Blocks below this are rounded to 512 bytes: several lie in one page.
pub const SMALL: u64 = 1 << 20;

/// What small blocks are rounded to.
const SLOT: u64 = 512;

/// The largest tile programs: registers are plenty, but text takes time to compile.
pub const LIMITS: TileLimits = TileLimits { registers: 128, stores: 4, live: 32 };

/// What a block takes that holds that many bytes.
pub fn block(bytes: Bytes) -> Bytes {
    let rounded = |unit| bytes.get().checked_next_multiple_of(unit).unwrap_or(bytes.get());
    Bytes::new(if rounded(SLOT) < SMALL { rounded(SLOT) } else { rounded(PAGE) })
}

/// What attention reaches of the rate of products where warps multiply on their own: powers between its products keep tensor cores waiting.
const OF_MATRIX: f64 = 0.27;

/// A GPU, as far as plans depend on it.
#[derive(Debug, Clone)]
pub struct CudaTarget {
    name: String,
    machine: Machine,
    /// The CPU beside it, which runs what it has no kernel for.
    host: SharedTarget,
}

impl CudaTarget {
    /// That of a GPU that is there, with the rates of the known card that is most like it.
    pub fn of(info: &GpuInfo, host: SharedTarget) -> CudaTarget {
        let multiprocessors = f64::from(info.multiprocessors);
        // f32 on the plain units: 128 a multiprocessor, two operations each, at about 1.7 GHz.
        let flops = multiprocessors * 128.0 * 2.0 * 1.7e9;
        let name = info.name.to_lowercase().replace("nvidia", "").replace([' ', '-'], "");
        let machine = match CudaTarget::named(&name, host.clone()) {
            Some(known) => Machine { flops, ..known.machine },
            None => machine(flops, 4.0 * flops, OF_MATRIX * 4.0 * flops, 1e12),
        };
        CudaTarget { name: info.name.clone(), machine, host }
    }

    /// That of a card by its name, `h200`, `a100` or `rtx4090`, beside a CPU; nothing where none is known.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tonnage_cuda::target::CudaTarget;
    /// use tonnage_plan::{DescribedTarget, SharedTarget, Target};
    /// let cpu: SharedTarget = Arc::new(DescribedTarget::default());
    /// let card = CudaTarget::named("h200", cpu.clone());
    /// assert_eq!(card.map(|card| card.name()), Some("NVIDIA H200".to_string()));
    /// assert!(CudaTarget::named("abacus", cpu).is_none());
    /// ```
    pub fn named(name: &str, host: SharedTarget) -> Option<CudaTarget> {
        // Operations of f32, those of products of 16-bit floats on tensor cores, those of attention, and bytes in a second.
        let (name, flops, matrix, attention, bytes) = match name {
            "h200" => ("NVIDIA H200", 60e12, 720e12, 250e12, 4.2e12),
            "a100" => ("NVIDIA A100", 19e12, 250e12, OF_MATRIX * 250e12, 1.7e12),
            "rtx4090" => ("NVIDIA GeForce RTX 4090", 80e12, 150e12, OF_MATRIX * 150e12, 0.9e12),
            _ => return None,
        };
        let machine = machine(flops, matrix, attention, bytes);
        Some(CudaTarget { name: name.to_string(), machine, host })
    }
}

fn machine(flops: f64, matrix: f64, attention: f64, bytes: f64) -> Machine {
    Machine {
        flops,
        bytes,
        matrix,
        attention,
        // An instruction each, where those of `flops` are two; loads, stores and addresses come on top.
        elementwise: flops / 3.6,
        // A launch takes some microseconds; what is spilled goes over the bus to host memory.
        step: 4e-6,
        fork: 0.0,
        write: 20e9,
        read: 20e9,
        ..Machine::DEFAULT
    }
}

/// The product of a call whose operands lie like this; nothing where the library does not take it.
fn product_of(call: &Call, left: &Layout, right: &Layout) -> Option<Product> {
    let (transposed_left, transposed_right) = transposes(call).ok()?;
    let out = (MATMUL.infer)(call).ok()?.first()?.shape.most()?;
    let dtype = call.inputs.first()?.dtype;
    Product::of(dtype, (left, transposed_left), (right, transposed_right), &out)
}

/// The same where they lie in order: another order changes the workspace of none.
fn product_in_order(call: &Call) -> Option<Product> {
    let layout = |ty: &TensorType| ty.shape.most().map(Layout::contiguous);
    let [left, right] = [call.inputs.first()?, call.inputs.get(1)?].map(layout);
    product_of(call, &left?, &right?)
}

impl Target for CudaTarget {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn machine(&self) -> Machine {
        self.machine
    }

    fn tile_limits(&self) -> TileLimits {
        LIMITS
    }

    fn block(&self, bytes: Bytes) -> Bytes {
        block(bytes)
    }

    fn cuts_from(&self) -> Option<Bytes> {
        None
    }

    fn scratch(&self, op: &OpDef, call: &Call, _: &[Option<&Layout>]) -> Bytes {
        match op.id == OpId::Matmul as u16 {
            true => product_in_order(call).map_or(Bytes::ZERO, |product| product.workspace()),
            false => emit::op_scratch(op, call),
        }
    }

    fn keeps_bits(&self, op: &OpDef, whole: &Call, _: &Call) -> bool {
        // A library chooses the algorithm of a product by its size.
        keeps_order(op, whole)
    }

    fn spill_space(&self) -> Space {
        Space::Host
    }

    fn row_step(&self, ty: &TensorType) -> Option<usize> {
        parts::row_step(ty)
    }

    fn makes_rows_apart(&self, op: &OpDef, attrs: &Attrs) -> bool {
        op.id == OpId::Matmul as u16 || emit::makes_rows_apart(op, attrs)
    }

    fn host_scratch(&self, op: &OpDef, call: &Call, layouts: &[&Layout]) -> Option<Bytes> {
        let multiplies = match layouts {
            [left, right] if op.id == OpId::Matmul as u16 => {
                product_of(call, left, right).is_some()
            }
            _ => false,
        };
        let dtype = call.inputs.first().map(|ty| ty.dtype);
        let width = |i: usize| call.inputs.get(i)?.shape.last()?.most();
        let generated = dtype.is_some_and(|dtype| emit::has_kernel(op, call.attrs, dtype, width));
        (!multiplies && !generated).then(|| self.host.scratch(op, call, &[]))
    }

    fn host_tile_scratch(&self, run: &TileRun) -> Option<Bytes> {
        // The GPU reads no files.
        let reads_file = run
            .reads
            .iter()
            .any(|read| matches!(read, TileRead::Generator(Generator::Stored { .. }, _)));
        reads_file.then(|| self.host.tile_scratch(&run.program, &run.domain))
    }

    fn tile_scratch(&self, program: &TileProgram, domain: &[usize]) -> Bytes {
        emit::scratch(program, domain)
    }

    fn streamed(&self, _: &OpDef, _: &Call, _: usize, _: &Layout) -> Option<usize> {
        None
    }

    fn takes_epilogue(&self, op: &OpDef, dtype: DType, run: &TileRun, made: &[usize]) -> bool {
        let finish = finish(run, dtype, |load| made.contains(&load));
        finish.is_some_and(|finish| {
            op.id == OpId::Matmul as u16 || emit::adds_to_rows(op) && finish.bias.is_none()
        })
    }

    fn lays_out(&self, op: &OpDef, call: &Call, output: usize) -> bool {
        let width = |i: usize| call.inputs.get(i)?.shape.last()?.known();
        let dtype = call.inputs.first().map(|ty| ty.dtype);
        emit::lays_out(op, output)
            && dtype.is_some_and(|dtype| emit::has_kernel(op, call.attrs, dtype, width))
    }

    fn file_pieces(&self, bytes: Bytes) -> Bytes {
        bytes
    }

    fn rows_in_file(&self, _: &OpDef, _: &Attrs, _: usize, _: usize) -> Option<Bytes> {
        None
    }

    fn uniform(&self, _: &TileProgram, _: &[usize], _: &[Scalar]) -> Option<Scalar> {
        None
    }
}
