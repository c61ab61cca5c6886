//! `cuda:0`: an NVIDIA GPU. Tile programs are kernels that are generated; a kernel that it does not have runs on the host.

mod added;

use std::num::NonZero;
use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::error::{Error, Result};
use tonnage_core::layout::Layout;
use tonnage_core::recipe::Generator;
use tonnage_core::row::{Call, Cost, Lower, OpDef};
use tonnage_core::shape::Sizes;
use tonnage_core::tile::TileProgram;
use tonnage_core::{Attrs, Bytes, DType, Device, ErrorKind};
use tonnage_cuda::cache::KernelCache;
use tonnage_cuda::direct::{self, DirectKernels, DirectKey};
use tonnage_cuda::driver::{CopyWay, Gpu, HostMemory, Pin, ProductAddresses, RecordedLaunches};
use tonnage_cuda::emit::{self, OpCall, Operand};
use tonnage_cuda::parts::parts;
use tonnage_cuda::product::Product;
use tonnage_cuda::slots::Slots;
use tonnage_cuda::target::{self, CudaTarget};
use tonnage_ops::OpId;
use tonnage_ops::tile::TileLimits;
use tonnage_plan::{SharedTarget, Target as _};

use added::Added;

use super::host_step::{host_step, host_tile};
use super::{
    Backend, CPU, CopyTicket, DeviceMoment, DirectLaunch, HostPart, KernelLaunch, KernelOutput,
    ReadSource, RowsToFile, TileLaunch, TileToFile, load_layouts,
};
use crate::lend::{Region, RegionMut, Regions};
use crate::system::{HostPin, Memory, cache_folder, process_name};

/// The device.
#[derive(Debug)]
pub struct Cuda {
    gpu: Gpu,
    target: Arc<CudaTarget>,
    /// Where small blocks lie.
    slots: Slots,
    /// Kernels of elementwise ops that were launched before.
    direct: DirectKernels,
}

impl Cuda {
    /// Opens a GPU.
    ///
    /// # Errors
    /// `NoDevice` where it is not there.
    pub fn open(index: u16) -> Result<Arc<Cuda>> {
        let kernels = cache_folder().map(|folder| folder.join("kernels"));
        let gpu = Gpu::open(index, KernelCache::new(kernels))?;
        let target = Arc::new(CudaTarget::of(gpu.info(), CPU.target()));
        Ok(Arc::new(Cuda {
            gpu,
            target,
            slots: Slots::default(),
            direct: DirectKernels::default(),
        }))
    }

    /// Launches a product of matrices, with the step that finishes it where it can take that up: whether it has. Nothing where it is no product that
    /// the library takes.
    fn multiply(
        &self,
        launch: &KernelLaunch<'_>,
        regions: &Regions<'_>,
    ) -> Result<Option<IsFinished>> {
        let (Attrs::Matmul { transpose_a, transpose_b }, [a, b], [out]) =
            (launch.attrs, &launch.inputs[..], &launch.outputs[..])
        else {
            return Ok(None);
        };
        let (ReadSource::Range(left), ReadSource::Range(right)) = (&a.from, &b.from) else {
            return Ok(None);
        };
        // Other ops have the same attributes.
        if launch.op.id != OpId::Matmul as u16 {
            return Ok(None);
        }
        let (left_layout, right_layout) = ((&a.layout, *transpose_a), (&b.layout, *transpose_b));
        let Some(product) = Product::of(out.dtype, left_layout, right_layout, &out.layout.sizes)
        else {
            return Ok(None);
        };
        let product = product.with_rows_apart(out.layout.row_step());
        let at = |number: usize, layout: &Layout| {
            (regions.reads[number].address() + layout.offset * out.dtype.size()) as u64
        };
        let workspace = regions.writes.get(1).map(|region| region.address() as u64);
        let finish = launch.epilogue.and_then(|(run, loads)| {
            let added = Added::of(run, loads, out.dtype, regions)?;
            // Its columns are the step's.
            let is_whole = run.domain.last().is_some_and(|n| *n as u64 == product.cols);
            // Of a product without a sum nothing is launched.
            (product.depth > 0 && (added.bias.is_none() || is_whole)).then_some(added)
        });
        let Added { bias, matrix: added } = finish.unwrap_or_default();
        let (left, right) = (at(*left, &a.layout), at(*right, &b.layout));
        let out = regions.writes[0].address() as u64;
        let at = ProductAddresses { left, right, bias, added, out, workspace };
        for part in parts(&product) {
            self.gpu.multiply(&part.product, part.addresses(at))?;
        }
        Ok(Some(IsFinished(finish.is_some())))
    }

    /// Launches an op whose kernel is generated, with the step that finishes it where it can take that up: what it made, and whether it has.
    /// Nothing where it has no kernel.
    fn generated(
        &self,
        launch: &KernelLaunch<'_>,
        regions: &Regions<'_>,
    ) -> Result<Option<(SmallVec<[Sizes; 2]>, IsFinished)>> {
        let Some(first) = launch.inputs.first() else { return Ok(None) };
        let width = |i: usize| launch.inputs.get(i)?.layout.sizes.last().copied();
        if !emit::has_kernel(launch.op, launch.attrs, first.dtype, width) {
            return Ok(None);
        }
        let mut made: SmallVec<[Sizes; 2]> =
            launch.outputs.iter().map(|output| output.layout.sizes.clone()).collect();
        let mut operands: SmallVec<[(Operand, DType); 4]> = SmallVec::new();
        for input in &launch.inputs {
            let operand = match &input.from {
                ReadSource::Range(i) => {
                    Operand::Memory(regions.reads[*i].address() as u64, &input.layout)
                }
                ReadSource::Output(output) => Operand::Output(*output),
                ReadSource::Generator(generator) => Operand::Generator(generator, &input.layout),
            };
            operands.push((operand, input.dtype));
        }
        let written = regions.writes.iter().take(launch.outputs.len());
        let outputs: SmallVec<[u64; 4]> = written.map(|region| region.address() as u64).collect();
        let scratch = regions.writes.get(launch.outputs.len());
        let lies: SmallVec<[Layout; 4]> =
            launch.outputs.iter().map(|output| output.layout.clone()).collect();
        let added = launch.epilogue.filter(|_| emit::adds_to_rows(launch.op));
        let added = added.zip(launch.outputs.first()).and_then(|((run, loads), out)| {
            let added = Added::of(run, loads, out.dtype, regions)?;
            added.matrix.filter(|_| added.bias.is_none())
        });
        let call = OpCall {
            op: launch.op,
            attrs: launch.attrs,
            operands: &operands,
            sizes: &first.layout.sizes,
            lies: &lies,
            outputs: &outputs,
            added,
            scratch: scratch.map(|region| region.address() as u64),
            shared: self.gpu.info().shared as usize,
            capability: self.gpu.info().capability,
        };
        let launched = emit::launch_op(&call)?;
        if let Some(launch) = &launched {
            self.gpu.launch(launch, regions.source)?;
        }
        if launch.decides {
            let mut rows = [0; 4];
            if let Some(count) = launched.as_ref().and_then(emit::row_count) {
                self.gpu.copy_out(count as usize, &mut rows)?;
            }
            if let Some(first) = made.first_mut().and_then(|sizes| sizes.first_mut()) {
                *first = u32::from_le_bytes(rows) as usize;
            }
        }
        // Of no rows nothing is launched, and there is nothing to be added to.
        Ok(Some((made, IsFinished(added.is_some()))))
    }

    fn launch(
        &self,
        program: &TileProgram,
        domain: &[usize],
        operands: &[Operand],
        (regions, outputs): (&Regions<'_>, usize),
    ) -> Result<()> {
        let written: SmallVec<[u64; 4]> =
            regions.writes.iter().map(|region| region.address() as u64).collect();
        let (outs, rest) = written.split_at(outputs.min(written.len()));
        match emit::launch(program, domain, operands, outs, rest.first().copied())? {
            Some(launch) => self.gpu.launch(&launch, regions.source),
            None => Ok(()),
        }
    }
}

/// Whether the epilogue of a kernel has run as part of it.
struct IsFinished(bool);

/// What the loads of a tile program read.
fn operands<'a>(
    loads: &'a [ReadSource],
    layouts: impl IntoIterator<Item = &'a Layout>,
    regions: &Regions<'_>,
) -> SmallVec<[Operand<'a>; 4]> {
    let operand = |(source, layout): (&'a ReadSource, &'a Layout)| match source {
        ReadSource::Range(i) => Operand::Memory(regions.reads[*i].address() as u64, layout),
        ReadSource::Output(output) => Operand::Output(*output),
        ReadSource::Generator(generator) => Operand::Generator(generator, layout),
    };
    loads.iter().zip(layouts).map(operand).collect()
}

impl Memory for Cuda {
    fn device(&self) -> Device {
        self.gpu.device()
    }

    fn block(&self, bytes: Bytes) -> Bytes {
        target::block(bytes)
    }

    fn obtain(&self, len: usize) -> Option<NonZero<usize>> {
        match Slots::holds(len) {
            true => self.slots.obtain(len, || self.gpu.obtain(target::PAGE as usize)),
            false => self.gpu.obtain(len),
        }
    }

    fn release(&self, address: NonZero<usize>, len: usize) {
        let block = match Slots::holds(len) {
            true => self.slots.release(address, len),
            false => Some(address),
        };
        if let Some(block) = block {
            self.gpu.release(block);
        }
    }

    fn idle(&self) -> Bytes {
        self.slots.idle()
    }

    fn taken(&self) -> Option<Bytes> {
        let (free, all) = self.gpu.memory().ok()?;
        Some(all.saturating_sub(free))
    }

    fn failure(&self) -> Option<Error> {
        self.gpu.failure()
    }

    fn give_up(&self) {
        if let Some(page) = self.slots.give_up() {
            self.gpu.release(page);
        }
    }

    fn copy_in(&self, from: &[u8], to: usize) -> Result<()> {
        self.gpu.copy_in(from, to)
    }

    fn copy_out(&self, from: usize, to: &mut [u8]) -> Result<()> {
        self.gpu.copy_out(from, to)
    }

    fn copy_within(&self, from: usize, to: usize, len: usize) -> Result<()> {
        self.gpu.copy_within(from, to, len)
    }
}

impl Backend for Cuda {
    fn device(&self) -> Device {
        self.gpu.device()
    }

    fn target(&self) -> SharedTarget {
        self.target.clone()
    }

    fn tile_limits(&self) -> TileLimits {
        target::LIMITS
    }

    fn scratch(
        &self,
        op: &'static OpDef,
        call: &Call,
        stored: &[Option<&Layout>],
        _: Cost,
    ) -> Bytes {
        self.target.scratch(op, call, stored)
    }

    fn tile_scratch(&self, program: &TileProgram, domain: &[usize]) -> Bytes {
        self.target.tile_scratch(program, domain)
    }

    fn capacity(&self) -> Option<Bytes> {
        Some(self.gpu.info().memory)
    }

    fn other_processes(&self) -> Vec<(String, Option<Bytes>)> {
        let own = std::process::id();
        let others = self.gpu.processes().into_iter().filter(|process| process.pid != own);
        others.map(|process| (process_name(process.pid), process.bytes)).collect()
    }

    fn tile(&self, launch: &TileLaunch<'_>, regions: Regions<'_>) -> Result<()> {
        let is_stored =
            |source: &ReadSource| matches!(source, ReadSource::Generator(Generator::Stored { .. }));
        if launch.loads.iter().any(is_stored) {
            return host_tile(self, launch, regions);
        }
        let operands = operands(launch.loads, launch.layouts.iter().copied(), &regions);
        self.launch(launch.program, launch.domain, &operands, (&regions, launch.outputs))
    }

    fn has_direct(&self) -> bool {
        true
    }

    fn direct(&self, launch: &DirectLaunch<'_>, regions: &Regions<'_>) -> Result<bool> {
        let DirectLaunch { op, call, lengths, count } = *launch;
        let (Lower::Tile(make), [out]) = (op.lower, &regions.writes[..]) else { return Ok(false) };
        let addresses: SmallVec<[u64; 4]> =
            regions.reads.iter().map(|region| region.address() as u64).collect();
        let out = out.address() as u64;
        let mut key = DirectKey {
            op: std::ptr::from_ref(op).addr(),
            inputs: [None; direct::MOST],
            count: count as u64,
        };
        for ((input, ty), length) in key.inputs.iter_mut().zip(call.inputs).zip(lengths) {
            *input = Some((ty.dtype, *length == 1 && count != 1));
        }
        let all = addresses.iter().copied().chain([out]);
        if call.inputs.len() > direct::MOST
            || !all.clone().all(|at| at.is_multiple_of(direct::ALIGNED))
        {
            return Ok(false);
        }
        let words = direct::words(count as u64, all);
        if let Some(kernel) = self.direct.get(&key) {
            self.gpu.launch_again(kernel, &words, regions.source)?;
            return Ok(true);
        }
        let program = make(call, false)?;
        let layouts: SmallVec<[Layout; 4]> = lengths
            .iter()
            .map(|n| Layout {
                sizes: [count].into_iter().collect(),
                strides: [isize::from(*n == count)].into_iter().collect(),
                offset: 0,
            })
            .collect();
        let operands: SmallVec<[Operand; 4]> = addresses
            .iter()
            .zip(&layouts)
            .map(|(at, layout)| Operand::Memory(*at, layout))
            .collect();
        let Some(launch) = emit::launch(&program, &[count], &operands, &[out], None)? else {
            return Ok(false);
        };
        // An operand that is addressed in another way has words of its own.
        if launch.words[..] != words[..] {
            return Ok(false);
        }
        self.gpu.launch(&launch, regions.source)?;
        if let Some(kernel) = self.gpu.loaded(&launch)? {
            self.direct.put(key, kernel);
        }
        Ok(true)
    }

    fn kernel(
        &self,
        launch: KernelLaunch<'_>,
        regions: Regions<'_>,
    ) -> Result<SmallVec<[Sizes; 2]>> {
        let (made, is_finished) = match self.generated(&launch, &regions)? {
            Some(made) => made,
            None => {
                let Some(is_finished) = self.multiply(&launch, &regions)? else {
                    return host_step(self, launch, regions);
                };
                let sizes = |output: &KernelOutput| output.layout.sizes.clone();
                (launch.outputs.iter().map(sizes).collect(), is_finished)
            }
        };
        if let (IsFinished(false), Some((run, loads))) = (is_finished, launch.epilogue) {
            let operands = operands(loads, load_layouts(run), &regions);
            self.launch(&run.program, &run.domain, &operands, (&regions, 1))?;
        }
        Ok(made)
    }

    fn tile_to_file(&self, _: &TileToFile<'_>, _: Regions<'_>) -> Result<()> {
        Err(no_files(self.gpu.device()))
    }

    fn rows_to_file(&self, _: RowsToFile<'_>, _: Regions<'_>) -> Result<()> {
        Err(no_files(self.gpu.device()))
    }

    fn copy(&self, elements: Option<(&Layout, usize)>, regions: Regions<'_>) -> Result<()> {
        let (Some(from), Some(to)) = (regions.reads.first(), regions.writes.first()) else {
            return Ok(());
        };
        let Some((layout, size)) = elements else {
            return self.gpu.copy_within(from.address(), to.address(), from.len());
        };
        let dtype = match size {
            8 => DType::U64,
            4 => DType::U32,
            2 => DType::U16,
            _ => DType::U8,
        };
        let mut program = TileProgram::loading(&[dtype]);
        program.store(0, dtype);
        let operand = Operand::Memory(from.address() as u64, layout);
        self.launch(&program, &layout.sizes, &[operand], (&regions, 1))
    }

    fn read(&self, from: Region<'_>, to: &mut [u8]) -> Result<()> {
        self.gpu.copy_out(from.address(), to)
    }

    fn write(&self, from: &[u8], to: RegionMut<'_>) -> Result<()> {
        self.gpu.copy_in(from, to.address())
    }

    fn moment(&self) -> Option<DeviceMoment> {
        self.gpu.moment()
    }

    fn pin(&self, bytes: &mut [u8]) -> Option<Box<dyn HostPin>> {
        self.gpu.pin(bytes).map(|pin| Box::new(pin) as Box<dyn HostPin>)
    }

    fn begin_copy_out(&self, from: Region<'_>, to: HostPart) -> Result<CopyTicket> {
        self.gpu.begin_copy(from.address(), Arc::new(to), CopyWay::Out).map(CopyTicket)
    }

    fn begin_copy_in(&self, from: HostPart, to: RegionMut<'_>) -> Result<CopyTicket> {
        self.gpu.begin_copy(to.address(), Arc::new(from), CopyWay::In).map(CopyTicket)
    }

    fn await_copy(&self, copy: CopyTicket) -> Result<()> {
        self.gpu.await_copy(copy.0)
    }

    fn records(&self) -> bool {
        true
    }

    fn record(&self, launch: &mut dyn FnMut() -> Result<()>) -> Option<RecordedLaunches> {
        self.gpu.record(launch)
    }

    fn replay(&self, recorded: &RecordedLaunches) -> Result<()> {
        self.gpu.replay(recorded)
    }

    fn wait(&self) -> Result<()> {
        self.gpu.wait()
    }
}

impl HostPin for Pin {}

impl HostMemory for HostPart {
    fn range(&self) -> Result<(usize, usize)> {
        self.with_bytes(|bytes| Ok((bytes.as_mut_ptr().expose_provenance(), bytes.len())))
    }
}

fn no_files(device: Device) -> Error {
    let what = "variables in files are the host's: move them to the CPU first".to_string();
    ErrorKind::DeviceFailed { device, what }.into()
}
