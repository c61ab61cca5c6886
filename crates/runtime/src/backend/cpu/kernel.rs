//! A kernel over slices, and with it the tile program that finishes what it makes.

use smallvec::SmallVec;
use tonnage_core::OpDef;
use tonnage_core::error::Result;
use tonnage_core::lent::{Data, In, Out};
use tonnage_core::recipe::Generator;
use tonnage_core::shape::Sizes;
use tonnage_cpu::kernel::{Epilogue, Kernel, KernelDef};
use tonnage_cpu::{kernel_of, tile};

use super::nothing;
use super::tile::sources;
use crate::backend::load_layouts;
use crate::backend::{KernelInput, KernelLaunch, ReadSource};
use crate::lend::Regions;
use crate::pool::pool;

/// The kernel of an op.
///
/// # Errors
/// Where the CPU has none.
pub fn find_kernel(op: &'static OpDef) -> Result<&'static KernelDef> {
    kernel_of(op).ok_or_else(|| no_kernel(op))
}

#[cold]
fn no_kernel(op: &'static OpDef) -> tonnage_core::Error {
    let what = format!("the CPU has no kernel for {}", op.name);
    tonnage_core::ErrorKind::BadGraph { what }.into()
}

/// Runs it; the sizes of its outputs, as it decided them.
pub fn run(launch: KernelLaunch<'_>, regions: Regions<'_>) -> Result<SmallVec<[Sizes; 2]>> {
    let KernelLaunch { attrs, inputs, outputs, epilogue, cost, stop, .. } = launch;
    let kernel = find_kernel(launch.op)?;
    let reads = regions.reads;
    let mut ins: SmallVec<[In; 4]> = SmallVec::new();
    for KernelInput { dtype, layout, from } in &inputs {
        let data = match from {
            ReadSource::Output(output) => Data::Output(*output),
            ReadSource::Range(i) => Data::Slice(reads[*i].bytes()?),
            ReadSource::Generator(Generator::Stored { elements, .. }) => Data::Stored(&*elements.0),
            ReadSource::Generator(_) => Data::Slice(&[]),
        };
        ins.push(In { dtype: *dtype, layout: layout.clone(), data });
    }
    let mut writes = regions.writes.into_iter();
    let mut outs: SmallVec<[Out; 2]> = SmallVec::new();
    for (output, write) in outputs.into_iter().zip(writes.by_ref()) {
        let data = write.into_bytes()?;
        outs.push(Out { dtype: output.dtype, sizes: output.layout.sizes, data });
    }
    let scratch = match writes.next() {
        Some(scratch) => scratch.into_bytes()?,
        None => nothing(),
    };
    let loads =
        epilogue.map(|(run, loads)| sources(loads, load_layouts(run), &reads)).transpose()?;
    let mut finish = epilogue.map(|(run, _)| tile::TileEpilogue::of(&run.program));
    if let (Some(finish), Some(loads)) = (&mut finish, &loads) {
        finish.resolve(loads)?;
    }
    pool().run_until(cost, stop, |workers| {
        (kernel.run)(&mut Kernel {
            attrs,
            inputs: &ins,
            outputs: &mut outs,
            scratch,
            workers,
            epilogue: finish.as_ref().map(|f| f as &dyn Epilogue),
        })
    })?;
    ins.iter().try_for_each(In::check)?;
    Ok(outs.into_iter().map(|out| out.sizes).collect())
}
