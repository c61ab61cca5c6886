//! Every sample of every op, eagerly and as a plan.

use std::sync::Arc;

use tonnage::{Bytes, Context};
use tonnage_core::graph::Builder;
use tonnage_core::row::{Lower, OpDef, Sample};
use tonnage_core::{Attrs, DType, Device, Emit, Kind, Value};
use tonnage_ops::index::boolean_mask::BOOLEAN_MASK;
use tonnage_ops::math::comparison::EQUAL;
use tonnage_ops::reduce::truth::ANY;
use tonnage_plan::{PlanOptions, lower, plan};
use tonnage_runtime::eager::{self, Arg};
use tonnage_runtime::placement::ledger_of;
use tonnage_runtime::{Array, Ledger, execute, host_ledger};

use crate::common::draw::{bits, for_every_sample, mark};
use crate::{TRIED, is_close_enough};

/// Copies of the inputs on the device.
fn there(inputs: &[Array], ledger: &Ledger) -> Vec<Array> {
    inputs.iter().map(|array| array.copied_to(ledger, "test").unwrap()).collect()
}

fn eagerly(op: &'static OpDef, sample: &Sample, inputs: &[Array]) -> Result<Vec<Array>, String> {
    let args = inputs.iter().map(Arg::Borrowed).collect();
    let made = eager::apply(op, args, &sample.attrs, &sample.regions, false, mark());
    made.map(|made| made.into_iter().collect()).map_err(|e| e.kind().to_string())
}

/// A graph of the one op, planned and run.
fn planned(op: &'static OpDef, sample: &Sample, inputs: &[Array]) -> Result<Vec<Array>, String> {
    planned_behind(op, sample, inputs, |_, values| Ok(values))
}

/// The same of inputs whose lengths the data decide: all of their rows are selected.
fn decided(op: &'static OpDef, sample: &Sample, inputs: &[Array]) -> Result<Vec<Array>, String> {
    planned_behind(op, sample, inputs, |builder, values| {
        let rows = values.iter().zip(inputs).map(|(value, array)| {
            if array.sizes().is_empty() {
                return Ok(value.clone());
            }
            let mut emit = |op, given, attrs| -> tonnage::Result<Value> {
                Ok(builder.emit(op, given, attrs, Vec::new(), false)?.remove(0))
            };
            let is_itself = emit(&EQUAL, vec![value.clone(); 2], Attrs::None)?;
            let axes = (1..array.sizes().len()).collect();
            let mask = emit(&ANY, vec![is_itself], Attrs::Reduce { axes, keep_dims: false })?;
            emit(&BOOLEAN_MASK, vec![value.clone(), mask], Attrs::None)
        });
        rows.collect()
    })
}

/// A graph of some steps and the one op behind them, planned and run.
fn planned_behind(
    op: &'static OpDef,
    sample: &Sample,
    inputs: &[Array],
    steps: impl Fn(&mut Builder, Vec<Value>) -> tonnage::Result<Vec<Value>>,
) -> Result<Vec<Array>, String> {
    let run = || -> tonnage::Result<Vec<Array>> {
        let mut builder = Builder::new();
        builder.mark(mark());
        let values =
            inputs.iter().map(|array| builder.input(array.ty(), Kind::Input, None)).collect();
        let values = steps(&mut builder, values)?;
        let made = builder.emit(op, values, sample.attrs.clone(), sample.regions.clone(), false)?;
        let place = ledger_of("test", inputs.iter())?;
        let target = place.backend().target();
        let graph = Arc::new(lower(&builder.finish(&made)?, &*target)?);
        let mut seen = Vec::new();
        let specs: Vec<_> =
            inputs.iter().map(|array| execute::spec(array, false, &mut seen)).collect();
        let plan = plan(&graph, &specs, PlanOptions::new(target))?;
        let host = host_ledger();
        let before = host.in_use();
        host.reset_peak();
        let (made, measured) = execute::execute(&plan, inputs, [1, 2], mark())?;
        if !place.is_host() {
            let obtained = host.peak() - before;
            match plan.is_bound {
                true => assert!(obtained <= plan.host_bytes()),
                false => assert_eq!(obtained, plan.host_bytes(), "of the host, and predicted"),
            }
        }
        match plan.is_bound {
            true => assert!(measured.used <= plan.peak()),
            false => assert_eq!(measured.used, plan.peak(), "used and predicted"),
        }
        assert_eq!(measured.obtained, plan.obtains(), "obtained and predicted");
        Ok(made.into_iter().collect())
    };
    run().map_err(|e| e.kind().to_string())
}

/// Whether the same bytes came out; of a device with kernels of its own, floats that are as close as another order of sums makes them,
/// beside the largest: terms of a sum may cancel.
fn alike(dtype: DType, here: &[u8], there: &[u8]) -> bool {
    let size = dtype.size();
    let float = |bytes: &[u8]| match dtype {
        DType::F64 => Some((f64::from_le_bytes(bytes.try_into().unwrap()), 1e-12)),
        DType::F32 => Some((f32::from_le_bytes(bytes.try_into().unwrap()).into(), 1e-5)),
        DType::F16 => Some((half::f16::from_le_bytes(bytes.try_into().unwrap()).into(), 2e-3)),
        DType::BF16 => Some((half::bf16::from_le_bytes(bytes.try_into().unwrap()).into(), 1.6e-2)),
        _ => None,
    };
    let sizes = here.chunks_exact(size).filter_map(|a| float(a).map(|(x, _)| x.abs()));
    let largest = sizes.filter(|x| x.is_finite()).fold(1.0, f64::max);
    let one = |(a, b): (&[u8], &[u8])| {
        let (Some((x, within)), Some((y, _))) = (float(a), float(b)) else { return a == b };
        let close = (x - y).abs() <= within * largest;
        a == b || is_close_enough() && (close || x.is_nan() && y.is_nan())
    };
    here.len() == there.len() && here.chunks_exact(size).zip(there.chunks_exact(size)).all(one)
}

/// Both fail alike, or give the same bits. What has no bytes lies nowhere, and so does what is made of it alone.
fn same(
    here: Result<Vec<Array>, String>,
    there: Result<Vec<Array>, String>,
    inputs: &[Array],
) -> Result<(), String> {
    match (here, there) {
        (Ok(here), Ok(there)) => {
            for (here, there) in here.iter().zip(&there) {
                // What runs late fails late.
                if here.ty() != there.ty() || !alike(here.ty().dtype, &bits(here), &bits(there)) {
                    return Err("other bits".into());
                }
                let placed = inputs.iter().any(|input| input.device().is_some());
                let is_there = !placed || there.device().is_none_or(|d| d == *TRIED);
                if !is_there {
                    return Err("a result that is not on the device".into());
                }
            }
            Ok(())
        }
        (Err(here), Err(there)) if here == there => Ok(()),
        (here, there) => Err(format!("{:?} and {:?}", here.err(), there.err())),
    }
}

/// Runs every sample here and on the device, in that way; on a device that leaves kernels to the host, too.
fn everywhere(run: impl Fn(&'static OpDef, &Sample, &[Array]) -> Result<Vec<Array>, String>) {
    on_each(&Context::new(), &run);
    if *TRIED == Device::SIM {
        let context = Context::new();
        context.sim().without_kernels(true);
        on_each(&context, &run);
    }
}

fn on_each(
    context: &Context,
    run: &impl Fn(&'static OpDef, &Sample, &[Array]) -> Result<Vec<Array>, String>,
) {
    let _entered = context.enter();
    let ledger = context.ledger(*TRIED).unwrap();
    for_every_sample(|op, sample, inputs| {
        if matches!(op.lower, Lower::Transfer(_)) {
            return Ok(());
        }
        // Before the first run: an update writes its input.
        let copies = there(inputs, ledger);
        tonnage::set_seed(1);
        let here = run(op, sample, inputs);
        tonnage::set_seed(1);
        same(here, run(op, sample, &copies), &copies)?;
        drop(copies);
        match ledger.in_use() == Bytes::ZERO {
            true => Ok(()),
            false => Err(format!("{} are left", ledger.in_use())),
        }
    });
}

#[test]
fn every_op_gives_the_bits_of_the_cpu_eagerly_and_leaves_nothing_behind() {
    everywhere(eagerly);
}

#[test]
fn every_op_in_a_plan_gives_the_bits_of_the_cpu_and_takes_what_was_predicted() {
    everywhere(planned);
}

#[test]
fn every_op_behind_sizes_that_the_data_decide_gives_the_bits_of_the_cpu() {
    everywhere(decided);
}
