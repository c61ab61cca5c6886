//! A plan to draw: products and functions, with a variable whose name is no plain word.
#![allow(dead_code, reason = "no test binary uses all of it")]
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::sync::Arc;

use tonnage_core::graph::Builder;
use tonnage_core::{Attrs, DType, Emit, Kind, Source, TensorType};
use tonnage_plan::{InputSpec, Plan, PlanOptions, lower, plan};
use tonnage_runtime::machine::target;

/// A name that would be markup, a script and two columns, if nobody took care.
pub const ODD_NAME: &str = "w, \"<script>document.title='run'</script>\"";

/// A chain of that many products.
pub fn chain(layers: usize) -> Plan {
    let mut builder = Builder::new();
    let ty = TensorType::new(DType::F32, [128, 128]);
    let mut x = builder.input(ty.clone(), Kind::Input, None);
    let w = builder.input(ty.clone(), Kind::Variable, Some(ODD_NAME.into()));
    let product = Attrs::Matmul { transpose_a: false, transpose_b: false };
    let mut kept = x.clone();
    for layer in 0..layers {
        Source::for_layer(&format!("layer {layer}"), || {
            let kind = Kind::Activation;
            builder.mark(tonnage_core::Mark { source: Source::here(), kind });
            let inputs = vec![x.clone(), w.clone()];
            let y = builder.apply(&tonnage_ops::linalg::matmul::MATMUL, inputs, product.clone());
            x = builder
                .apply(&tonnage_ops::math::tanh::TANH, vec![y.unwrap()], Attrs::None)
                .unwrap();
            if layer == 0 {
                kept = x.clone();
            }
        });
    }
    let inputs = vec![kept, x];
    let y = builder.apply(&tonnage_ops::linalg::matmul::MATMUL, inputs, product).unwrap();
    let graph = Arc::new(lower(&builder.finish(&[y]).unwrap(), &*target()).unwrap());
    let spec = || InputSpec::contiguous(&ty, "test", false).unwrap();
    plan(&graph, &[spec(), spec()], PlanOptions::new(target())).unwrap()
}

/// A plan of some steps.
pub fn planned() -> Plan {
    chain(6)
}
