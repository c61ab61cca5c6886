//! Results over the bytes of an input, for every row whose kernel may do that: never where the same value is another
//! input too, since a kernel reads that when the output is half written.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::sync::Arc;

use tonnage_core::row::{Lower, Mem, OpDef, Sample};
use tonnage_core::{Builder, Emit, Kind, Value};
use tonnage_cpu::CpuTarget;
use tonnage_ops::TABLE;
use tonnage_plan::{InputSpec, Machine, PlanOptions, StepMemory, plan};

/// Whether an op takes over the bytes of an input that its caller gives up; with that value as a second input too, where
/// `also` says.
fn takes_over(op: &'static OpDef, sample: &Sample, input: usize, also: Option<usize>) -> bool {
    let mut builder = Builder::new();
    let types = sample.inputs.iter().map(|i| i.ty.clone());
    let mut inputs: Vec<Value> = types.map(|ty| builder.input(ty, Kind::Input, None)).collect();
    if let Some(also) = also {
        inputs[also] = inputs[input].clone();
    }
    let made = builder.emit(op, inputs, sample.attrs.clone(), sample.regions.clone(), false);
    let graph = Arc::new(builder.finish(&made.unwrap()).unwrap());
    let types = graph.input_types();
    let specs = types.iter().map(|ty| InputSpec::contiguous(ty, "test", true).unwrap());
    let options = PlanOptions::new(Arc::new(CpuTarget::new(1, Machine::DEFAULT)));
    let made = plan(&graph, &specs.collect::<Vec<_>>(), options).unwrap();
    made.steps.iter().any(|step| matches!(step.memory, StepMemory::InPlace(_)))
}

#[test]
fn a_kernel_never_writes_over_what_is_another_of_its_inputs_too() {
    let (mut asked, mut allowed) = (Vec::new(), 0);
    let kernels = TABLE.iter().filter(|op| matches!(op.lower, Lower::Kernel));
    for op in kernels {
        let Mem::Reuse(candidates) = op.mem else { continue };
        for sample in (op.samples)() {
            let ty = |i: usize| sample.inputs.get(i).map(|input| &input.ty);
            for input in candidates.iter().copied().filter(|i| ty(*i).is_some()) {
                allowed += usize::from(takes_over(op, &sample, input, None));
                let same = (0..sample.inputs.len()).filter(|i| *i != input && ty(*i) == ty(input));
                for also in same {
                    let wrong = takes_over(op, &sample, input, Some(also));
                    assert!(!wrong, "{} of one value as inputs {input} and {also}", op.name);
                    asked.push(op.name);
                }
            }
        }
    }
    asked.dedup();
    // The test would prove nothing where nothing is ever written over, or no row takes two inputs of a type.
    assert!(allowed > 0 && asked.len() > 3, "{allowed} in place, asked of {asked:?}");
}
