//! Graphs by hand, and their text against what it should be.
#![allow(dead_code, reason = "no test binary uses all of it")]
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::{Builder, DType, Emit, Graph, Kind, OpDef, Scalar, TensorType, Value};
use tonnage_ops::{emit, linalg, math, reduce, shape, state};

/// A graph in the making, with short words.
pub struct Make(pub Builder);

impl Make {
    pub fn new() -> Make {
        Make(Builder::new())
    }

    pub fn input(&mut self, dtype: DType, dims: &[usize]) -> Value {
        self.0.input(TensorType::new(dtype, dims), Kind::Input, None)
    }

    pub fn f32(&mut self, dims: &[usize]) -> Value {
        self.input(DType::F32, dims)
    }

    pub fn variable(&mut self, dims: &[usize]) -> Value {
        self.0.input(TensorType::new(DType::F32, dims), Kind::Variable, Some("v".into()))
    }

    pub fn op(&mut self, op: &'static OpDef, inputs: &[&Value], attrs: Attrs) -> Value {
        self.0.apply(op, inputs.iter().map(|v| (*v).clone()).collect(), attrs).unwrap()
    }

    pub fn one(&mut self, op: &'static OpDef, x: &Value) -> Value {
        self.op(op, &[x], Attrs::None)
    }

    pub fn two(&mut self, op: &'static OpDef, a: &Value, b: &Value) -> Value {
        self.op(op, &[a, b], Attrs::None)
    }

    pub fn add(&mut self, a: &Value, b: &Value) -> Value {
        self.two(&math::add::ADD, a, b)
    }

    pub fn sub(&mut self, a: &Value, b: &Value) -> Value {
        self.two(&math::sub::SUB, a, b)
    }

    pub fn mul(&mut self, a: &Value, b: &Value) -> Value {
        self.two(&math::mul::MUL, a, b)
    }

    pub fn div(&mut self, a: &Value, b: &Value) -> Value {
        self.two(&math::div::DIV, a, b)
    }

    pub fn number(&mut self, value: impl Into<Scalar>, dtype: DType) -> Value {
        emit::number(&mut self.0, value, dtype).unwrap()
    }

    pub fn fill(&mut self, value: impl Into<Scalar>, dtype: DType, dims: &[usize]) -> Value {
        let attrs = Attrs::Fill { value: value.into(), dtype, shape: dims.into() };
        self.op(&shape::fill::FILL, &[], attrs)
    }

    pub fn times(&mut self, a: &Value, by: f64) -> Value {
        let by = self.number(by, a.ty().dtype);
        self.mul(a, &by)
    }

    pub fn plus(&mut self, a: &Value, b: f64) -> Value {
        let b = self.number(b, a.ty().dtype);
        self.add(a, &b)
    }

    pub fn exp(&mut self, x: &Value) -> Value {
        self.one(&math::exp::EXP, x)
    }

    pub fn tanh(&mut self, x: &Value) -> Value {
        self.one(&math::tanh::TANH, x)
    }

    pub fn fold(
        &mut self,
        op: &'static OpDef,
        x: &Value,
        axes: &[usize],
        keep_dims: bool,
    ) -> Value {
        self.op(op, &[x], Attrs::Reduce { axes: axes.into(), keep_dims })
    }

    pub fn sum(&mut self, x: &Value, axes: &[usize]) -> Value {
        self.fold(&reduce::sum::SUM, x, axes, false)
    }

    pub fn sum_keep(&mut self, x: &Value, axes: &[usize]) -> Value {
        self.fold(&reduce::sum::SUM, x, axes, true)
    }

    /// The mean over one axis, kept, as people write it.
    pub fn mean(&mut self, x: &Value, axis: usize) -> Value {
        let count = x.ty().shape[axis].known().unwrap();
        let sum = self.sum_keep(x, &[axis]);
        let count = self.number(count as f64, x.ty().dtype);
        self.div(&sum, &count)
    }

    pub fn transpose(&mut self, x: &Value, order: &[usize]) -> Value {
        self.op(&shape::transpose::TRANSPOSE, &[x], Attrs::Order(order.into()))
    }

    pub fn reshape(&mut self, x: &Value, dims: &[usize]) -> Value {
        self.op(&shape::reshape::RESHAPE, &[x], Attrs::Shape(dims.into()))
    }

    pub fn broadcast(&mut self, x: &Value, dims: &[usize]) -> Value {
        self.op(&shape::broadcast_to::BROADCAST_TO, &[x], Attrs::Shape(dims.into()))
    }

    pub fn slice(&mut self, x: &Value, parts: &[(usize, usize, isize)]) -> Value {
        let slices = parts
            .iter()
            .map(|(start, len, step)| tonnage_core::attrs::AxisSlice {
                start: (*start).into(),
                len: (*len).into(),
                step: *step,
            })
            .collect();
        self.op(&shape::slice::SLICE, &[x], Attrs::Slices(slices))
    }

    pub fn matmul(&mut self, a: &Value, b: &Value) -> Value {
        let attrs = Attrs::Matmul { transpose_a: false, transpose_b: false };
        self.op(&linalg::matmul::MATMUL, &[a, b], attrs)
    }

    pub fn cast(&mut self, x: &Value, to: DType) -> Value {
        self.op(&math::cast::CAST, &[x], Attrs::DType(to))
    }

    pub fn assign(&mut self, variable: &Value, x: &Value) -> Value {
        self.two(&state::assign::ASSIGN, variable, x)
    }

    pub fn regions(
        &mut self,
        op: &'static OpDef,
        inputs: &[&Value],
        attrs: Attrs,
        regions: Vec<Graph>,
    ) -> Vec<Value> {
        let inputs = inputs.iter().map(|v| (*v).clone()).collect();
        let regions = regions.into_iter().map(Arc::new).collect();
        self.0.emit(op, inputs, attrs, regions, false).unwrap()
    }

    pub fn finish(self, outputs: &[&Value]) -> Graph {
        let outputs: Vec<Value> = outputs.iter().map(|v| (*v).clone()).collect();
        let graph = self.0.finish(&outputs).unwrap();
        graph.verify().unwrap();
        graph
    }
}

/// A graph's text is that, line by line, whatever the indent of the expected one.
#[track_caller]
pub fn reads(graph: &Graph, expected: &str) {
    graph.verify().unwrap();
    let trim = |text: &str| -> Vec<String> {
        text.lines().map(|l| l.trim().to_string()).filter(|l| !l.is_empty()).collect()
    };
    let (got, expected) = (trim(&graph.to_string()), trim(expected));
    assert!(got == expected, "got\n{graph}\nexpected\n{}", expected.join("\n"));
}
