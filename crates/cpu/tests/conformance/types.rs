//! Type rules: a bad call is an error and never a panic, and open dims give what known ones give.

use std::sync::Arc;

use tonnage_core::attrs::{Attrs, AxisSlice, PadMode};
use tonnage_core::graph::{Builder, Graph};
use tonnage_core::looping::{Iterations, Loop, LoopGrad};
use tonnage_core::recipe::{Distribution, Key};
use tonnage_core::row::{AxisOf, Call, OpDef, Sample, Types};
use tonnage_core::tile::TileProgram;
use tonnage_core::window::{Average, Between, Conv, Resize, Window};
use tonnage_core::{DType, Dim, Kind, Result, Scalar, Shape, Sizes, Symbol, TensorType, World};

use crate::draw::{Random, for_every_sample, none};
use crate::exec::{Engine, scratch};
use crate::ops::ops;

fn sizes(all: &[usize]) -> Sizes {
    Sizes::from_slice(all)
}

/// Attributes of every kind, most of them wrong for any op.
pub fn all_attrs() -> Vec<Attrs> {
    let slice =
        |start: usize, len: usize, step| AxisSlice { start: start.into(), len: len.into(), step };
    let open = AxisSlice { start: Dim::Known(0), len: Dim::symbol(Symbol::new("k")), step: 1 };
    let (dtype, shape) = (DType::F32, Shape::from([2, 3]));
    let key = Key::Fixed([1, 2]);
    let distributions = [
        Distribution::Uniform,
        Distribution::Normal,
        Distribution::TruncatedNormal,
        Distribution::Bits,
        Distribution::Below(0),
        Distribution::Below(u64::MAX),
    ];
    let looping = |carried, sliced, stacked, iterations| Loop {
        carried,
        sliced,
        stacked,
        iterations,
        reverse: true,
        max_checkpoints: Some(0),
        spills: false,
        key,
        updates: Vec::new(),
    };
    let endless = Iterations::While { most: None };
    let loop_grad = |carried, handed, [seeds, back, stacked]: [usize; 3]| {
        let of = looping(carried, 0, 0, Iterations::Times(2.into()));
        Attrs::LoopGrad(Box::new(LoopGrad { of, handed, seeds, back, stacked }))
    };
    let range =
        |start, step, len: usize, dtype| Attrs::Range { start, step, len: len.into(), dtype };
    let window = |size: &[usize], stride, dilation, padding| Window {
        size: sizes(size),
        stride: size.iter().map(|_| stride).collect(),
        padding: size.iter().map(|_| [padding, 1]).collect(),
        dilation: size.iter().map(|_| dilation).collect(),
    };
    let average = |window| {
        let image = Shape::scalar();
        Attrs::Average(Box::new(Average { window, counts_padding: true, image }))
    };
    let resize = |to: &[usize], image: &[usize]| {
        let (to, image) = (Shape::from(to), Shape::from(image));
        Attrs::Resize(Box::new(Resize { to, between: Between::Linear, image }))
    };
    let conv = |window: Window, groups| {
        let image = Shape::from([4, 4]);
        Attrs::Conv(Box::new(Conv { window, groups, image }))
    };
    let pad = |widths: &[[usize; 2]], padding| Attrs::Pad { widths: widths.to_vec(), padding };
    let mut all = vec![
        Attrs::None,
        Attrs::Reduce { axes: sizes(&[0]), keep_dims: false },
        Attrs::Reduce { axes: sizes(&[7]), keep_dims: true },
        Attrs::Reduce { axes: sizes(&[0, 0]), keep_dims: false },
        Attrs::Reduce { axes: sizes(&[usize::MAX]), keep_dims: false },
        Attrs::Axis(0),
        Attrs::Axis(usize::MAX),
        Attrs::Order(sizes(&[1, 0])),
        Attrs::Order(sizes(&[1, 1])),
        Attrs::Order(sizes(&[usize::MAX, 0])),
        Attrs::Slices(vec![]),
        Attrs::Slices(vec![slice(0, 2, 1), slice(1, 1, 0)]),
        Attrs::Slices(vec![slice(0, 2, 1), slice(usize::MAX, usize::MAX, isize::MIN)]),
        Attrs::Slices(vec![slice(1, 2, -1), open.clone()]),
        Attrs::Place { slices: vec![slice(0, 2, 1)], shape: Shape::from([4]) },
        Attrs::Place { slices: vec![slice(0, 2, 1), open], shape: shape.clone() },
        Attrs::Place { slices: vec![], shape: Shape::scalar() },
        Attrs::Shape(Shape::scalar()),
        Attrs::Shape(Shape::from([3, 2])),
        Attrs::Shape(Shape::from([usize::MAX, usize::MAX, usize::MAX])),
        Attrs::Shape([Dim::symbol(Symbol::new("s")), Dim::Known(3)].into_iter().collect()),
        Attrs::DType(DType::Bool),
        Attrs::DType(DType::BF16),
        Attrs::Fill { value: Scalar::Float(0.5), dtype: DType::I8, shape: shape.clone() },
        Attrs::Fill { value: Scalar::Int(i128::MAX), dtype, shape: shape.clone() },
        range(Scalar::Float(0.5), Scalar::Int(1), 3, DType::I32),
        range(Scalar::Int(0), Scalar::Float(0.5), 3, DType::I32),
        range(Scalar::Int(0), Scalar::Int(i128::MAX), 3, DType::I64),
        range(Scalar::Int(1), Scalar::Int(1), usize::MAX, DType::F64),
        Attrs::Lengths { of: Shape::from([usize::MAX]), dtype: DType::I8 },
        Attrs::Matmul { transpose_a: false, transpose_b: false },
        Attrs::Matmul { transpose_a: true, transpose_b: true },
        Attrs::Axes(sizes(&[0])),
        Attrs::Axes(sizes(&[usize::MAX])),
        Attrs::Axes(sizes(&[1, 0])),
        Attrs::Squeeze { axes: sizes(&[0]), all: false },
        Attrs::Squeeze { axes: sizes(&[]), all: true },
        Attrs::Squeeze { axes: sizes(&[usize::MAX]), all: true },
        Attrs::Squeeze { axes: sizes(&[1, 0]), all: false },
        Attrs::Norm { axes: sizes(&[0]), keep_dims: false, power: Scalar::Float(0.5) },
        Attrs::Norm { axes: sizes(&[9]), keep_dims: true, power: Scalar::Float(f64::NAN) },
        Attrs::Scan { axis: 0, exclusive: false, reverse: true },
        Attrs::Scan { axis: usize::MAX, exclusive: true, reverse: false },
        Attrs::Join { axis: 0, parts: 2 },
        Attrs::Join { axis: 0, parts: 0 },
        Attrs::Join { axis: usize::MAX, parts: 1 },
        Attrs::Split { axis: 0, lengths: vec![1.into(), 2.into()] },
        Attrs::Split { axis: usize::MAX, lengths: vec![usize::MAX.into(), 2.into()] },
        pad(&[[1, 2]], PadMode::Constant(Scalar::Int(i128::MAX))),
        pad(&[[usize::MAX, 1], [0, usize::MAX]], PadMode::Constant(Scalar::Int(0))),
        pad(&[[1, 1], [9, 9]], PadMode::Reflect),
        pad(&[[0, 0], [1, 2]], PadMode::Symmetric),
        Attrs::Repeats(sizes(&[2, usize::MAX])),
        Attrs::Repeat { axis: 0, count: usize::MAX },
        Attrs::Repeat { axis: usize::MAX, count: 1 },
        Attrs::Roll { axis: 0, shift: i64::MIN },
        Attrs::Roll { axis: usize::MAX, shift: 1 },
        Attrs::OneHot { depth: 3.into(), on: Scalar::Float(0.5), off: 0.into(), dtype: DType::I8 },
        Attrs::OneHot { depth: usize::MAX.into(), on: 1.into(), off: 0.into(), dtype },
        Attrs::Linspace { start: 0.into(), stop: 1.into(), len: usize::MAX.into(), dtype },
        Attrs::Linspace { start: 0.into(), stop: 1.into(), len: 3.into(), dtype: DType::I32 },
        Attrs::Eye { rows: usize::MAX.into(), columns: usize::MAX.into(), diagonal: 0, dtype },
        Attrs::Diagonal(0),
        Attrs::Diagonal(i64::MIN),
        Attrs::Diag { rows: 3.into(), columns: 2.into(), diagonal: 0 },
        Attrs::Diag { rows: usize::MAX.into(), columns: 3.into(), diagonal: i64::MIN },
        Attrs::Lengths { of: shape.clone(), dtype: DType::Bool },
        Attrs::Number(Scalar::Float(f64::NAN)),
        Attrs::Number(Scalar::Int(-1)),
        Attrs::Count(0),
        Attrs::Count(1),
        Attrs::Count(usize::MAX),
        Attrs::Descending(true),
        Attrs::Right(false),
        Attrs::Histogram { low: 0.into(), high: 1.into(), bins: 3 },
        Attrs::World(World::alone()),
        Attrs::Blocks { world: World::alone(), shape: Shape::from([2, 5]) },
        Attrs::Blocks { world: World::on_paper(3), shape: Shape::from([usize::MAX, 5]) },
        Attrs::Root { world: World::alone(), root: 0 },
        Attrs::Root { world: World::alone(), root: 1 },
        Attrs::Histogram { low: 1.into(), high: Scalar::Float(f64::NAN), bins: 0 },
        Attrs::Histogram { low: 0.into(), high: 1.into(), bins: usize::MAX },
        Attrs::Window(Box::new(window(&[2, 2], 1, 1, 0))),
        Attrs::Window(Box::new(window(&[0, 2], 0, 1, 0))),
        Attrs::Window(Box::new(window(&[9, 9], 1, 0, usize::MAX))),
        Attrs::Smoothing(Scalar::Float(0.1)),
        Attrs::Smoothing(Scalar::Float(f64::NAN)),
        Attrs::Normalize { epsilon: Scalar::Float(1e-5), centered: true, groups: 1 },
        Attrs::Normalize { epsilon: Scalar::Float(-1.0), centered: true, groups: usize::MAX },
        Attrs::Normalize { epsilon: Scalar::Float(0.0), centered: false, groups: 0 },
        Attrs::Attention { scale: Scalar::Float(0.5), causal: true, masked: false },
        Attrs::Attention { scale: Scalar::Float(f64::NAN), causal: false, masked: true },
        Attrs::Rotary { base: Scalar::Float(10_000.0), neighbours: true, back: false },
        Attrs::Rotary { base: Scalar::Float(-1.0), neighbours: false, back: true },
        resize(&[2, 5], &[]),
        resize(&[0, usize::MAX], &[3]),
        average(window(&[2, 2], 1, 1, 1)),
        average(window(&[3, 3], 1, usize::MAX, 1)),
        conv(window(&[2, 2], 1, 1, 1), 1),
        conv(window(&[2, 2], 0, 1, 0), 1),
        conv(window(&[3, 2], 1, 1, usize::MAX), 1),
        conv(window(&[2, 2], usize::MAX, usize::MAX, 0), 0),
        conv(window(&[], 1, 1, 0), usize::MAX),
        Attrs::Tile(Box::new(TileProgram::loading(&[DType::F32]))),
        Attrs::Tile(Box::new(bad_program())),
        Attrs::Branch { key: None, updates: Vec::new() },
        Attrs::Loop(Box::new(looping(1, 0, 0, endless.clone()))),
        Attrs::Loop(Box::new(looping(3, 1, usize::MAX, endless.clone()))),
        Attrs::Loop(Box::new(looping(usize::MAX, 0, 0, endless))),
        Attrs::Loop(Box::new(looping(0, 1, 1, Iterations::Times(2.into())))),
        Attrs::Loop(Box::new(looping(1, usize::MAX, 1, Iterations::Times(usize::MAX.into())))),
        loop_grad(1, false, [0, 1, 0]),
        loop_grad(1, true, [1, 0, 1]),
        loop_grad(usize::MAX, true, [usize::MAX; 3]),
        loop_grad(2, false, [0; 3]),
    ];
    for distribution in distributions {
        let (dtype, shape) = (DType::I32, shape.clone());
        all.push(Attrs::Seeded { distribution, dtype, shape: shape.clone() });
        all.push(Attrs::Random { key, distribution, dtype, shape });
    }
    all
}

/// A program that reduces over an axis that does not exist and stores a register that is not defined.
fn bad_program() -> TileProgram {
    let mut program = TileProgram::loading(&[DType::F32]);
    program.store(9, DType::F32);
    program.reduce(tonnage_core::tile::Reduction::Sum, &[5]);
    program
}

/// Inputs of many dtypes and shapes, open ones among them.
fn all_inputs() -> Vec<Vec<TensorType>> {
    let n = Dim::symbol(Symbol::new("n"));
    let data = Dim::symbol(Symbol::bounded("m", n.clone()));
    let shapes: Vec<Shape> = vec![
        Shape::scalar(),
        Shape::from([3]),
        Shape::from([2, 3]),
        Shape::from([3, 2]),
        Shape::from([0, 3]),
        Shape::from([2, 4, 4, 3]),
        [n.clone(), Dim::Known(3)].into_iter().collect(),
        [data, n].into_iter().collect(),
    ];
    let dtypes = [DType::F32, DType::BF16, DType::I32, DType::U8, DType::Bool];
    let types: Vec<TensorType> = dtypes
        .iter()
        .flat_map(|d| shapes.iter().map(|s| TensorType { dtype: *d, shape: s.clone() }))
        .collect();
    let mut all = vec![vec![]];
    all.extend(types.iter().map(|a| vec![a.clone()]));
    all.extend(types.iter().flat_map(|a| types.iter().map(|b| vec![a.clone(), b.clone()])));
    for a in types.iter().step_by(3) {
        for b in types.iter().step_by(4) {
            all.push(vec![TensorType::new(DType::Bool, ()), a.clone(), b.clone()]);
            all.push(vec![a.clone(), b.clone(), a.clone(), b.clone()]);
        }
    }
    all
}

/// Bodies that fit no call, or only some.
fn all_regions() -> Vec<Vec<Arc<Graph>>> {
    let graph = |inputs: usize, outputs: usize, dtype| {
        let mut builder = Builder::new();
        let ty = TensorType::new(dtype, ());
        let x: Vec<_> = (0..inputs).map(|_| builder.input(ty.clone(), Kind::Input, None)).collect();
        let y: Vec<_> = (0..outputs).map(|_| x[0].clone()).collect();
        Arc::new(builder.finish(&y).expect("a graph"))
    };
    let condition = graph(1, 1, DType::Bool);
    vec![
        vec![],
        vec![condition.clone()],
        vec![condition.clone(), condition.clone()],
        vec![condition.clone(), graph(1, 3, DType::Bool)],
        vec![condition.clone(), graph(1, 3, DType::Bool), condition.clone()],
        vec![graph(1, 1, DType::F32), graph(2, 1, DType::F32)],
        vec![condition.clone(), condition.clone(), condition.clone(), condition],
    ]
}

/// Everything that is asked of types alone.
pub fn ask(op: &OpDef, call: &Call) -> Result<Types> {
    let made = (op.infer)(call)?;
    let _ = (op.axes)(call);
    let _ = (op.cost)(call);
    let _ = (op.saves.aux)(call)?;
    let fits = |ty: &TensorType| ty.bytes(op.name).is_ok();
    if call.inputs.iter().chain(&made).all(fits) {
        let _ = scratch(op, call, 3);
    }
    Ok(made)
}

fn caught<T>(f: impl FnOnce() -> T) -> std::result::Result<T, ()> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).map_err(|_| ())
}

#[test]
fn a_bad_call_is_an_error_and_never_a_panic() {
    let (attrs, inputs, regions) = (all_attrs(), all_inputs(), all_regions());
    let mut wrong = Vec::new();
    for op in ops() {
        let is_control = matches!(op.lower, tonnage_core::row::Lower::Region(_));
        for attrs in &attrs {
            // A type rule that refuses the attributes has said all there is to say.
            for inputs in &inputs {
                for regions in if is_control { &regions[..] } else { &regions[..1] } {
                    let call = Call { op: op.name, inputs, attrs, regions };
                    if caught(|| ask(op, &call)).is_err() {
                        wrong.push(format!("{} panics on {inputs:?} {attrs:?}", op.name));
                    }
                }
            }
        }
    }
    wrong.truncate(20);
    none(wrong);
}

/// A call of a sample, changed.
fn refused(op: &OpDef, sample: &Sample, types: &[TensorType], attrs: &Attrs) -> bool {
    let call = Call { op: op.name, inputs: types, attrs, regions: &sample.regions };
    !matches!(caught(|| (op.infer)(&call)), Ok(Ok(_)))
}

fn check_count(
    op: &'static OpDef,
    sample: &Sample,
    _: &mut Random,
) -> std::result::Result<(), String> {
    // A closure is lent whatever its user gives.
    if let Attrs::Host { .. } = sample.attrs {
        return Ok(());
    }
    let types: Vec<TensorType> = sample.inputs.iter().map(|i| i.ty.clone()).collect();
    let more = [&types[..], &[TensorType::new(DType::F32, [2])]].concat();
    if !refused(op, sample, &more, &sample.attrs) {
        return Err("one input too many is accepted".into());
    }
    if !types.is_empty() && !refused(op, sample, &types[1..], &sample.attrs) {
        return Err("one input too few is accepted".into());
    }
    Ok(())
}

#[test]
fn a_wrong_number_of_inputs_is_refused() {
    for_every_sample(check_count);
}

fn check_attrs(
    op: &'static OpDef,
    sample: &Sample,
    _: &mut Random,
) -> std::result::Result<(), String> {
    let types: Vec<TensorType> = sample.inputs.iter().map(|i| i.ty.clone()).collect();
    let kind = std::mem::discriminant(&sample.attrs);
    // An op without attributes does not look at them.
    if sample.attrs == Attrs::None {
        return Ok(());
    }
    // Some ops take no axis to mean axis 0.
    let means_axis_0 =
        |attrs: &Attrs| *attrs == Attrs::None && matches!(sample.attrs, Attrs::Axis(_));
    let others = all_attrs().into_iter().filter(|attrs| std::mem::discriminant(attrs) != kind);
    let others = others.filter(|attrs| !means_axis_0(attrs));
    match others.into_iter().find(|attrs| !refused(op, sample, &types, attrs)) {
        Some(attrs) => Err(format!("{attrs:?} is accepted")),
        None => Ok(()),
    }
}

#[test]
fn attributes_of_another_op_are_refused() {
    for_every_sample(check_attrs);
}

/// Whatever dtypes a type rule lets through, the op runs on.
fn check_dtypes(
    op: &'static OpDef,
    sample: &Sample,
    random: &mut Random,
) -> std::result::Result<(), String> {
    let floats: usize = sample.inputs.iter().filter_map(|i| i.ty.shape.count()).sum();
    // What a closure makes of another dtype is its own affair.
    let closure = matches!(sample.attrs, Attrs::Host { .. });
    if floats > 64 || !sample.regions.is_empty() || sample.inputs.is_empty() || closure {
        return Ok(());
    }
    for i in 0..sample.inputs.len() {
        for dtype in DType::ALL {
            for others in [None, Some(dtype)] {
                let mut changed = sample.clone();
                changed.inputs[i].ty.dtype = dtype;
                if let Some(dtype) = others {
                    changed.inputs.iter_mut().for_each(|input| input.ty.dtype = dtype);
                }
                let types: Vec<TensorType> = changed.inputs.iter().map(|i| i.ty.clone()).collect();
                if refused(op, &changed, &types, &changed.attrs) {
                    continue;
                }
                let tensors = random.tensors(&changed);
                Engine::plain()
                    .run(op, tensors, &changed.attrs, &[], false)
                    .map_err(|e| format!("{types:?} has a type but does not run: {e}"))?;
            }
        }
    }
    Ok(())
}

#[test]
fn what_has_a_type_runs() {
    for_every_sample(check_dtypes);
}

/// A type with a symbol put back, and sizes that the data decide at their bound: each inference names those anew.
fn closed(ty: &TensorType, symbol: &Symbol, size: &Dim) -> TensorType {
    let back = |s: &Symbol| (s == symbol).then(|| size.clone());
    ty.substitute(&|s| back(s).or_else(|| Some(s.bound()?.substitute(&back))))
}

/// Axes that can be cut can be open: a symbol in their place, put back, gives the known types.
fn check_open(
    op: &'static OpDef,
    sample: &Sample,
    _: &mut Random,
) -> std::result::Result<(), String> {
    let types: Vec<TensorType> = sample.inputs.iter().map(|i| i.ty.clone()).collect();
    let call = Call { op: op.name, inputs: &types, attrs: &sample.attrs, regions: &sample.regions };
    let known = ask(op, &call).map_err(|e| e.to_string())?;
    let known_aux = (op.saves.aux)(&call).map_err(|e| e.to_string())?;
    let map = (op.axes)(&call);
    let outputs = map.outputs.iter().zip(&known);
    let axes = outputs.flat_map(|(axes, of)| axes.iter().enumerate().map(move |(i, a)| (i, a, of)));
    for (axis, along, of) in axes {
        let AxisOf::Along(group) = along else { continue };
        let symbol = Symbol::new("n");
        let open = Dim::symbol(symbol.clone());
        let mut types = types.clone();
        let mut size = Dim::Known(0);
        for (input, axis) in group {
            size = std::mem::replace(&mut types[*input].shape[*axis], open.clone());
        }
        let attrs = sample.attrs.of_piece(of, axis, &open);
        let call = Call { op: op.name, inputs: &types, attrs: &attrs, regions: &sample.regions };
        let made = ask(op, &call).map_err(|e| format!("axis {axis} open: {e}"))?;
        let aux = (op.saves.aux)(&call).map_err(|e| e.to_string())?;
        for (made, known) in made.iter().chain(&aux).zip(known.iter().chain(&known_aux)) {
            if closed(made, &symbol, &size) != closed(known, &symbol, &size) {
                return Err(format!("axis {axis} open gives {made}, not {known}"));
            }
        }
    }
    Ok(())
}

#[test]
fn open_dims_give_the_types_that_known_ones_give() {
    for_every_sample(check_open);
}

/// The leading dim of all inputs open, whether or not it can be cut: the same types, or an error.
fn check_leading(
    op: &'static OpDef,
    sample: &Sample,
    _: &mut Random,
) -> std::result::Result<(), String> {
    let types: Vec<TensorType> = sample.inputs.iter().map(|i| i.ty.clone()).collect();
    let call = Call { op: op.name, inputs: &types, attrs: &sample.attrs, regions: &sample.regions };
    let known = (op.infer)(&call).map_err(|e| e.to_string())?;
    let symbol = Symbol::new("n");
    let Some(size) = types.first().and_then(|ty| ty.shape.first().cloned()) else { return Ok(()) };
    let mut open = types.clone();
    for ty in &mut open {
        if ty.shape.first() == Some(&size) {
            ty.shape[0] = Dim::symbol(symbol.clone());
        }
    }
    let call = Call { op: op.name, inputs: &open, attrs: &sample.attrs, regions: &sample.regions };
    let Ok(made) = ask(op, &call) else { return Ok(()) };
    let close = |ty: &TensorType| closed(ty, &symbol, &size);
    let same = made.iter().map(close).eq(known.iter().map(close));
    if same { Ok(()) } else { Err(format!("{made:?}, not {known:?}")) }
}

#[test]
fn an_open_leading_dim_gives_the_known_types_or_an_error() {
    for_every_sample(check_leading);
}
