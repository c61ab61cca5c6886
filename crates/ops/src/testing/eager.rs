//! Applying rows one by one in tests, and their gradient rules against finite differences.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tonnage_core::emit::{Emit, Mark, Value};
use tonnage_core::grad::{Cotangent, GradOps, Record, backward};
use tonnage_core::row::{
    AxisMap, Cost, Fails, Grad, Jvp, Keep, Lower, Mem, Remat, Saves, no_scratch,
};
use tonnage_core::{Attrs, DType, Graph, OpDef, Result, Source, TensorType};

use super::{Array, How, draw, run, run_as};

/// Runs every op as it is applied.
struct Eager;

fn value(array: Array) -> Value {
    Value::held(array.ty.clone(), Arc::new(array))
}

fn array(value: &Value) -> Array {
    let held = value.clone().into_held().expect("a value of this emitter");
    held.downcast_ref::<Array>().expect("an array").clone()
}

impl Emit for Eager {
    fn emit(
        &mut self,
        op: &'static OpDef,
        inputs: Vec<Value>,
        attrs: Attrs,
        _: Vec<Arc<Graph>>,
        aux: bool,
    ) -> Result<Vec<Value>> {
        let inputs: Vec<Array> = inputs.iter().map(array).collect();
        let outputs = run_as(op, &inputs, &attrs, How { aux, ..How::default() })?;
        Ok(outputs.into_iter().map(value).collect())
    }

    fn mark(&mut self, mark: Mark) -> Mark {
        mark
    }
}

/// The gradient of `sum(first output * weights)` with respect to every float input, along a random
/// direction, against a central difference; for the samples in f64.
pub fn check_gradients(op: &'static OpDef) {
    let samples: Vec<_> =
        (op.samples)().into_iter().filter(|s| s.inputs.iter().any(is_f64)).collect();
    assert!(!samples.is_empty(), "{} has no sample in f64", op.name);
    for sample in samples {
        let inputs = draw(&sample);
        let types: Vec<TensorType> = inputs.iter().map(|a| a.ty.clone()).collect();
        let wanted: Vec<usize> =
            (0..inputs.len()).filter(|i| inputs[*i].ty.dtype.is_float()).collect();
        let outputs = run(op, &inputs, &sample.attrs).unwrap();
        let weights = Array { data: wave(outputs[0].data.len(), 0.7), ..outputs[0].clone() };
        let grads = gradients(op, &inputs, &sample.attrs, &weights, &wanted).unwrap();

        let (mut expected, mut found) = (0.0, 0.0);
        for (number, (input, grad)) in wanted.iter().zip(grads).enumerate() {
            let direction = wave(inputs[*input].data.len(), 1.3 + number as f64);
            let loss = |h: f64| -> f64 {
                let mut moved = inputs.clone();
                moved[*input].data.iter_mut().zip(&direction).for_each(|(x, d)| *x += h * d);
                let outputs = run(op, &moved, &sample.attrs).unwrap();
                outputs[0].data.iter().zip(&weights.data).map(|(y, w)| y * w).sum()
            };
            expected += (loss(1e-6) - loss(-1e-6)) / 2e-6;
            if let Some(grad) = grad {
                assert_eq!(grad.ty, inputs[*input].ty, "gradient of {}", op.name);
                found += grad.data.iter().zip(&direction).map(|(g, d)| g * d).sum::<f64>();
            }
        }
        let near = (expected - found).abs() <= 1e-5 * (1.0 + expected.abs());
        assert!(near, "{} {types:?}: gradient {found}, differences {expected}", op.name);
    }
}

fn is_f64(input: &tonnage_core::row::SampleInput) -> bool {
    input.ty.dtype == DType::F64
}

/// Numbers that follow no pattern of the shapes at hand.
fn wave(len: usize, step: f64) -> Vec<f64> {
    (0..len).map(|i| (1.0 + i as f64 * step).sin() + 0.3).collect()
}

fn gradients(
    op: &'static OpDef,
    inputs: &[Array],
    attrs: &Attrs,
    weights: &Array,
    wanted: &[usize],
) -> Result<Vec<Option<Array>>> {
    let values: Vec<Value> = inputs.iter().cloned().map(value).collect();
    let keeps = op.saves.alternatives[0];
    let aux = keeps.iter().any(|k| matches!(k, Keep::Aux(_)));
    let plain = run(op, inputs, attrs)?.len();
    let outputs = Eager.emit(op, values.clone(), attrs.clone(), Vec::new(), aux)?;
    let kept = keeps
        .iter()
        .map(|keep| match keep {
            Keep::Input(i) => (*keep, values[*i].clone()),
            Keep::Output(i) => (*keep, outputs[*i].clone()),
            Keep::Aux(i) => (*keep, outputs[plain + i].clone()),
        })
        .collect();
    let record = Record {
        op,
        attrs: attrs.clone(),
        regions: Vec::new(),
        source: Source::here(),
        inputs: (0..inputs.len()).collect(),
        input_types: inputs.iter().map(|a| a.ty.clone()).collect(),
        outputs: (0..plain).map(|i| inputs.len() + i).collect(),
        output_types: outputs[..plain].iter().map(|v| v.ty().clone()).collect(),
        kept,
    };
    let seed = Cotangent::Dense(value(weights.clone()));
    let grads = backward(vec![record], vec![(inputs.len(), seed)], wanted, &mut Eager, &OPS)?;
    grads
        .into_iter()
        .map(|g| g.map(|g| Ok(array(&g.dense(&mut Eager, &OPS)?))).transpose())
        .collect()
}

static OPS: GradOps =
    GradOps { add: &ADD, fill: &FILL, scatter_add: &crate::index::scatter_add::SCATTER_ADD };

static ADD: OpDef = plain(
    "add",
    |call| Ok(smallvec![call.inputs[0].clone()]),
    Lower::Slices(|k| {
        let (a, b) = (k.inputs[0].slice::<f64>(), k.inputs[1].slice::<f64>());
        let out = k.outputs[0].slice::<f64>();
        out.iter_mut().zip(a.iter().zip(b)).for_each(|(o, (a, b))| *o = a + b);
        Ok(())
    }),
);

static FILL: OpDef = plain(
    "fill",
    |call| match call.attrs {
        Attrs::Fill { dtype, shape, .. } => Ok(smallvec![TensorType::new(*dtype, shape)]),
        other => panic!("{other:?}"),
    },
    Lower::Slices(|k| {
        let Attrs::Fill { value, .. } = k.attrs else { panic!("{:?}", k.attrs) };
        k.outputs[0].slice::<f64>().fill(value.to_f64());
        Ok(())
    }),
);

/// A row as far as gradients of other rows lean on it here.
const fn plain(
    name: &'static str,
    infer: fn(&tonnage_core::Call) -> Result<SmallVec<[TensorType; 1]>>,
    lower: Lower,
) -> OpDef {
    OpDef {
        name,
        doc: "For tests.",
        infer,
        axes: |_| AxisMap::default(),
        mem: Mem::Alloc,
        scratch: no_scratch,
        saves: Saves::NOTHING,
        remat: Remat::Cheap,
        cost: |_| Cost::default(),
        grad: Grad::Stop("for tests"),
        jvp: Jvp::Stop("for tests"),
        fails: Fails::Never,
        lower,
        samples: Vec::new,
    }
}
