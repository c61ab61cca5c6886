//! Ops that go through rows, or read and put them where indices say: every one that has a kernel, over its own samples and over rows of all
//! lengths, in all layouts, in place; and with an index out of range.

use tonnage_core::lent::{Data, In, Out};
use tonnage_core::row::{Call, Lower, Mem, OpDef, Sample};
use tonnage_core::{Attrs, DType, ErrorKind, Layout, Scalar, Shape, TensorType};
use tonnage_cpu::kernel::Kernel;
use tonnage_cpu::kernel_of;
use tonnage_cpu::workers::Alone;
use tonnage_cuda::driver::Status;
use tonnage_cuda::emit::{self, Launch, OpCall, Operand};
use tonnage_ops::TABLE;
use tonnage_ops::index::rows::axis;

use crate::Trial;
use crate::cases::{float, same, shown};
use crate::draw::{Buffer, Floats, Random};

/// A call of an op, what the CPU makes of it, and where the kernel writes.
struct RowCase {
    op: &'static OpDef,
    attrs: Attrs,
    /// Buffer and layout; the first without a buffer where it is read from the output.
    inputs: Vec<(Option<Buffer>, Layout, DType)>,
    expected: Vec<(Buffer, DType)>,
    lies: Vec<Layout>,
    outputs: Vec<(u64, Buffer)>,
    scratch: Option<(u64, Buffer)>,
    /// What is added to the first output.
    added: Option<Buffer>,
    /// The index that is out of range, and its position.
    bad: Option<(i64, usize)>,
}

/// How a case is made.
#[derive(Clone, Copy, Default)]
struct How {
    /// Inputs lie in any way.
    views: bool,
    /// The first is read from the output.
    in_place: bool,
    /// One index is out of range.
    bad: bool,
    /// Something is added to what is made.
    added: bool,
    /// From a row to the next, of inputs and of what is made in rows as long as those of the first; 0 where they follow each other closely.
    row_step: usize,
}

impl RowCase {
    fn new(
        op: &'static OpDef,
        attrs: &Attrs,
        types: &[TensorType],
        random: &mut Random,
        How { views, in_place, bad, added, row_step }: How,
    ) -> Option<RowCase> {
        let call = Call { op: op.name, inputs: types, attrs, regions: &[] };
        let made = (op.infer)(&call).ok()?;
        let sizes = |ty: &TensorType| ty.shape.sizes();
        // Of a size that the data decide there is room for the most.
        let most = |ty: &TensorType| ty.shape.most();
        let mut expected: Vec<(Buffer, DType)> = Vec::new();
        for ty in &made {
            let count: usize = most(ty)?.iter().product();
            expected.push((Buffer::new(count * ty.dtype.size()), ty.dtype));
        }
        let width = sizes(&types[0])?.last().copied().unwrap_or(0);
        let lies = |ty: &TensorType| {
            let sizes = sizes(ty)?;
            let step = if sizes.last() == Some(&width) { row_step.max(width) } else { 0 };
            Some(Layout::rows_apart(sizes.clone(), step.max(sizes.last().copied().unwrap_or(0))))
        };
        let (mut inputs, mut wrong_one) = (Vec::new(), None);
        for (i, ty) in types.iter().enumerate() {
            let sizes = sizes(ty)?;
            random.indices = points_into(op, attrs, types, i);
            // Variances are above 0.
            let floats = random.floats;
            if (op.name, i) == ("group_norm_grad", 3) {
                random.floats = Floats::Positive;
            }
            if i == 0 && in_place {
                random.fill(ty.dtype, expected[0].0.bytes_mut());
                inputs.push((None, Layout::contiguous(sizes), ty.dtype));
                continue;
            }
            let (mut buffer, layout) = match views {
                true => random.view(ty.dtype, &sizes),
                false if row_step > 0 => {
                    let layout = lies(ty)?;
                    let mut buffer = Buffer::new(layout.end() * ty.dtype.size());
                    random.fill(ty.dtype, buffer.bytes_mut());
                    (buffer, layout)
                }
                false => random.tensor(ty.dtype, &sizes),
            };
            random.floats = floats;
            // One row for each element that is true: for all, or for none.
            if (op.name, i) == ("mask_scatter", 0) {
                let rows = *types[1].shape.sizes()?.first()?;
                if rows != 0 && rows != layout.count() {
                    return None;
                }
                buffer.bytes_mut().fill(u8::from(rows > 0));
            }
            if let Some(limit) = random.indices.take().filter(|_| bad) {
                // Two of them: the first is told.
                let (size, count) = (ty.dtype.size(), layout.count());
                let most = if size == 8 { i64::MAX as u64 } else { (1 << (8 * size - 1)) - 1 };
                // Beyond every axis that it may be for.
                let wrong = (limit as u64 + 1000).min(most);
                if count < 2 || wrong < limit as u64 {
                    return None;
                }
                wrong_one = Some((wrong as i64, count / 2));
                for at in [count / 2, count - 1] {
                    let bytes = &mut buffer.bytes_mut()[at * size..][..size];
                    bytes.copy_from_slice(&wrong.to_le_bytes()[..size]);
                }
            }
            inputs.push((Some(buffer), layout, ty.dtype));
        }
        let apart = row_step > 0 && emit::makes_rows_apart(op, attrs);
        let mut outputs: Vec<(u64, Buffer)> = Vec::new();
        for (ty, (from, _)) in made.iter().zip(&expected) {
            let apart = apart && outputs.is_empty();
            let mut buffer = match apart {
                true => Buffer::new(lies(ty)?.end() * ty.dtype.size()),
                false => Buffer::new(from.bytes().len()),
            };
            let (row, step) = match apart {
                true => (width * ty.dtype.size(), row_step * ty.dtype.size()),
                false => (from.bytes().len().max(1), from.bytes().len().max(1)),
            };
            for (to, from) in buffer.bytes_mut().chunks_mut(step).zip(from.bytes().chunks(row)) {
                to[..row.min(from.len())].copy_from_slice(from);
            }
            outputs.push((0, buffer));
        }
        outputs.iter_mut().for_each(|(address, buffer)| *address = buffer.address());
        let kernel = kernel_of(op)?;
        let mut scratch = Buffer::new(kernel.workspace(&call, &[], 1).as_usize());
        let ins: Vec<In> = inputs
            .iter()
            .map(|(buffer, layout, dtype)| {
                let data = buffer.as_ref().map_or(Data::Output(0), |b| Data::Slice(b.bytes()));
                In { dtype: *dtype, layout: layout.clone(), data }
            })
            .collect();
        let mut outs: Vec<Out> = expected
            .iter_mut()
            .zip(&made)
            .map(|((buffer, dtype), ty)| {
                let sizes = most(ty).unwrap_or_default();
                Out { dtype: *dtype, sizes, data: buffer.bytes_mut() }
            })
            .collect();
        let ran = (kernel.run)(&mut Kernel {
            attrs,
            inputs: &ins,
            outputs: &mut outs,
            scratch: scratch.bytes_mut(),
            workers: &Alone,
            epilogue: None,
        });
        let bad = match ran.map_err(|error| error.kind().clone()) {
            Ok(()) => None,
            Err(ErrorKind::IndexOutOfRange { index, position, .. }) if bad => {
                Some((index, position))
            }
            // A part that leaves the whole.
            Err(ErrorKind::BadArgument { .. }) if bad => wrong_one,
            Err(error) => panic!("{}: {error}", op.name),
        };
        drop(ins);
        let added = added.then(|| {
            let (made, dtype) = &mut expected[0];
            let mut added = Buffer::new(made.bytes().len());
            random.fill(*dtype, added.bytes_mut());
            let pairs =
                made.bytes_mut().chunks_mut(dtype.size()).zip(added.bytes().chunks(dtype.size()));
            pairs.for_each(|(to, by)| add(*dtype, to, by));
            added
        });
        let bytes = emit::op_scratch(op, &call).as_usize();
        let scratch = (bytes > 0).then(|| {
            let mut buffer = Buffer::new(bytes);
            (buffer.address(), buffer)
        });
        let mut lies: Vec<Layout> =
            made.iter().map(|ty| most(ty).map(Layout::contiguous)).collect::<Option<_>>()?;
        if apart {
            lies[0] = Layout::rows_apart(lies[0].sizes.clone(), row_step);
        }
        let attrs = attrs.clone();
        Some(RowCase { op, attrs, inputs, expected, lies, outputs, scratch, added, bad })
    }
}

/// Adds a number to another.
fn add(dtype: DType, to: &mut [u8], by: &[u8]) {
    let (Some(a), Some(b)) = (float(dtype, to), float(dtype, by)) else { return };
    match dtype {
        DType::F64 => to.copy_from_slice(&(a + b).to_le_bytes()),
        DType::F32 => to.copy_from_slice(&(a as f32 + b as f32).to_le_bytes()),
        DType::F16 => to.copy_from_slice(&half::f16::from_f64(a + b).to_le_bytes()),
        _ => to.copy_from_slice(&half::bf16::from_f64(a + b).to_le_bytes()),
    }
}

impl RowCase {
    /// Rows that lie apart, without what is between them, where nothing was written.
    fn closely(&self, made: &Buffer, step: usize, size: usize) -> Result<Vec<u8>, String> {
        let row = self.lies[0].sizes.last().map_or(0, |width| width * size);
        let mut close = Vec::new();
        for (i, bytes) in made.bytes().chunks(step).enumerate() {
            close.extend_from_slice(&bytes[..row]);
            if bytes[row..].iter().any(|byte| *byte != Buffer::UNTOUCHED) {
                return Err(format!("{}: something is written behind row {i}", self.op.name));
            }
        }
        Ok(close)
    }
}

/// The largest magnitude of a tensor, at least 1.
fn largest(dtype: DType, bytes: &[u8]) -> f64 {
    let elements = bytes.chunks(dtype.size()).filter_map(|x| float(dtype, x));
    elements.map(f64::abs).filter(|x| x.is_finite()).fold(1.0, f64::max)
}

impl Trial for RowCase {
    fn launch(&self) -> Option<Launch> {
        let operands: Vec<(Operand, DType)> = self
            .inputs
            .iter()
            .map(|(buffer, layout, dtype)| match buffer {
                Some(buffer) => {
                    let address = buffer.bytes().as_ptr().expose_provenance() as u64;
                    (Operand::Memory(address, layout), *dtype)
                }
                None => (Operand::Output(0), *dtype),
            })
            .collect();
        let outputs: Vec<u64> = self.outputs.iter().map(|(address, _)| *address).collect();
        let (op, attrs, sizes) = (self.op, &self.attrs, &self.inputs[0].1.sizes[..]);
        let call = OpCall {
            op,
            attrs,
            operands: &operands,
            sizes,
            lies: &self.lies,
            outputs: &outputs,
            added: self.added.as_ref().map(|b| b.bytes().as_ptr().expose_provenance() as u64),
            scratch: self.scratch.as_ref().map(|(address, _)| *address),
            shared: emit::LEAST_SHARED,
            capability: (8, 0),
        };
        emit::launch_op(&call).unwrap()
    }

    fn check(&self, status: &Status) -> Result<(), String> {
        let said = (status.launch > 0).then_some((status.index, status.position as usize));
        if said != self.bad {
            let sizes: Vec<_> = self.inputs.iter().map(|(_, layout, _)| &layout.sizes).collect();
            return Err(format!("{} of {sizes:?}: {:?} and {said:?}", self.op.name, self.bad));
        }
        // An update does not happen; what another op had made by then is nobody's.
        if self.bad.is_some() && !matches!(self.op.mem, Mem::Update(_)) {
            return Ok(());
        }
        for (k, ((expected, dtype), (_, made))) in
            self.expected.iter().zip(&self.outputs).enumerate()
        {
            let made = match self.lies[k].row_step() {
                Some(step) => self.closely(made, step * dtype.size(), dtype.size())?,
                None => made.bytes().to_vec(),
            };
            // Sums of products that cancel are as exact as the largest of them.
            let size = match self.op.name.contains("attention") {
                true => largest(*dtype, expected.bytes()),
                false => 1.0,
            };
            let pairs = expected.bytes().chunks(dtype.size()).zip(made.chunks(dtype.size()));
            for (i, (a, b)) in pairs.enumerate() {
                // What is drawn has the CPU's bits.
                let loose = (!self.op.name.starts_with("random")).then_some(SUMS);
                if !same(*dtype, a, b, loose, size) {
                    let layouts: Vec<&Layout> = self.inputs.iter().map(|(_, l, _)| l).collect();
                    let (a, b) = (shown(*dtype, a), shown(*dtype, b));
                    return Err(format!(
                        "{} of {layouts:?}: element {i}: {a} and {b}",
                        self.op.name
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Lengths of rows: less than an access, whole ones, all that is held, and more.
const WIDTHS: [usize; 9] = [1, 3, 8, 64, 129, 1000, 1024, 4096, 9000];

/// From so many samples on, an op's are tried in other ways now and then.
const MANY: usize = 12;

/// How much further apart than a rounded sum results may be: what is divided by a deviation near 0 shows its last digits.
const SUMS: f64 = 16.0;

/// What the numbers of an input point into, where they do.
fn points_into(
    op: &'static OpDef,
    attrs: &Attrs,
    types: &[TensorType],
    input: usize,
) -> Option<usize> {
    let table = &types[0].shape.sizes()?;
    let along = || table.get(axis(op.name, attrs).ok()?).copied();
    match (op.name, input) {
        ("gather" | "scatter_add" | "scatter_update" | "assign_rows" | "assign_add_rows", 1) => {
            along()
        }
        ("take_along_axis", 1) => table.last().copied(),
        ("put_along_axis", 0) => match attrs {
            Attrs::Shape(shape) => shape.sizes()?.first().copied(),
            _ => None,
        },
        (
            "gather_nd" | "scatter_nd_add" | "scatter_nd_update" | "scatter_nd_max"
            | "scatter_nd_min",
            1,
        ) => {
            let (Attrs::Count(batch), depth) = (attrs, *types[1].shape.sizes()?.last()?) else {
                return None;
            };
            table[*batch..batch + depth].iter().copied().min()
        }
        ("dynamic_slice", 1) => {
            let Attrs::Shape(part) = attrs else { return None };
            table.iter().zip(part.sizes()?).map(|(n, part)| (n + 1).saturating_sub(part)).min()
        }
        ("dynamic_update", 2) => {
            let part = types[1].shape.sizes()?;
            table.iter().zip(part).map(|(n, part)| (n + 1).saturating_sub(part)).min()
        }
        ("cross_entropy" | "cross_entropy_grad", 1) => table.last().copied(),
        ("rows_to_dense", 0) => match attrs {
            Attrs::Shape(shape) => shape.sizes()?.first().copied(),
            _ => None,
        },
        ("first_of", 0) => Some(20),
        _ => None,
    }
}

/// Attention over tiles of every size: widths of heads, more queries and keys than a tile has, groups, later keys hidden.
fn heads(grad: bool) -> Vec<(Attrs, Vec<TensorType>)> {
    let shapes = [
        (DType::F32, [1, 2, 2], [70, 90, 64, 64], true),
        (DType::F32, [1, 2, 1], [40, 35, 80, 48], false),
        (DType::F32, [1, 1, 1], [20, 37, 256, 256], true),
        (DType::F64, [1, 2, 2], [19, 35, 64, 96], true),
    ];
    let of = |(dtype, [b, h, g], [t, s, d, e], causal): (DType, [usize; 3], [usize; 4], bool)| {
        let ty = |dtype, sizes: &[usize]| TensorType::new(dtype, sizes);
        let mut types =
            vec![ty(dtype, &[b, h, t, d]), ty(dtype, &[b, g, s, d]), ty(dtype, &[b, g, s, e])];
        if grad {
            let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
            types.extend([(); 3].map(|()| ty(wide, &[b, h, t])));
            types.push(ty(dtype, &[b, h, t, e]));
        }
        (Attrs::Attention { scale: Scalar::Float(0.02), causal, masked: false }, types)
    };
    shapes.into_iter().map(of).collect()
}

/// Of wide heads the scores would be large, and their exponentials show the last digits: the scale keeps them as they are.
fn of_width(attrs: &Attrs, width: usize) -> Attrs {
    match *attrs {
        Attrs::Attention { causal, masked, .. } => {
            let scale = Scalar::Float(1.0 / width as f64);
            Attrs::Attention { scale, causal, masked }
        }
        _ => attrs.clone(),
    }
}

/// A type with rows of another width, where they are as wide as those of the first, and of another float.
fn widened(ty: &TensorType, first: &TensorType, width: usize, float: DType) -> TensorType {
    let mut dims: Vec<_> = ty.shape.iter().cloned().collect();
    if let Some(last) = dims.last_mut().filter(|last| Some(&**last) == first.shape.last()) {
        *last = width.into();
    }
    let dtype = if ty.dtype.is_float() { float } else { ty.dtype };
    TensorType { dtype, shape: dims.into_iter().collect::<Shape>() }
}

/// All cases.
pub fn cases(all: &mut Vec<Box<dyn Trial>>, random: &mut Random) {
    for op in TABLE {
        if !matches!(op.lower, Lower::Kernel) {
            continue;
        }
        let samples = (op.samples)();
        random.floats = match op.name {
            "softmax" | "log_softmax" => Floats::Masked,
            _ => Floats::Small,
        };
        let types = |sample: &Sample| -> Vec<TensorType> {
            sample.inputs.iter().map(|input| input.ty.clone()).collect()
        };
        let has = |attrs: &Attrs, types: &[TensorType]| {
            let width = |i: usize| types.get(i)?.shape.last()?.known();
            types.first().is_some_and(|ty| emit::has_kernel(op, attrs, ty.dtype, width))
        };
        let in_place = match op.mem {
            Mem::Reuse(inputs) => inputs.contains(&0),
            Mem::Update(input) => input == 0,
            _ => false,
        };
        let mut add_as = |attrs: &Attrs, types: &[TensorType], how: How| {
            if let Some(case) = RowCase::new(op, attrs, types, random, how) {
                all.push(Box::new(case));
            }
        };
        let mut add = |attrs: &Attrs, types: &[TensorType], other_ways: bool| {
            let points = (0..types.len()).any(|i| points_into(op, attrs, types, i).is_some());
            let ways = [
                (How::default(), true),
                (How { views: true, ..How::default() }, true),
                (How { in_place: true, ..How::default() }, in_place),
                (How { added: true, ..How::default() }, emit::adds_to_rows(op)),
                (How { bad: true, ..How::default() }, points),
                (How { bad: true, in_place: true, ..How::default() }, points && in_place),
            ];
            let ways = ways.into_iter().filter(|(_, is_used)| *is_used);
            for (how, _) in ways.take(if other_ways { usize::MAX } else { 1 }) {
                add_as(attrs, types, how);
            }
        };
        // Of many samples, some lie in other ways: text takes time to compile.
        let all_ways = samples.len() <= MANY || std::env::var_os("TONNAGE_SOAK").is_some();
        let with_kernels = samples.iter().filter(|sample| has(&sample.attrs, &types(sample)));
        for (i, sample) in with_kernels.enumerate() {
            add(&sample.attrs, &types(sample), all_ways || i % 4 == 0);
        }
        let Some(sample) = samples.iter().find(|sample| has(&sample.attrs, &types(sample))) else {
            continue;
        };
        let first = types(sample);
        for (k, width) in WIDTHS.into_iter().enumerate() {
            // The last axis of every input that has one is the row's.
            let float = [DType::F32, DType::BF16, DType::F64][k % 3];
            let anew: Vec<TensorType> =
                first.iter().map(|ty| widened(ty, &first[0], width, float)).collect();
            let attrs = of_width(&sample.attrs, width);
            // In 16 bits attention rounds its weights: `attention` has those.
            let rounds = op.name.contains("attention") && anew[0].dtype.size() == 2;
            if has(&attrs, &anew) && !rounds {
                add(&attrs, &anew, all_ways || k % 4 == 0);
            }
        }
        if op.name.contains("attention") {
            for (attrs, types) in heads(op.name == "attention_grad") {
                add(&attrs, &types, true);
            }
        }
        // More indices than a block of threads sorts, few and many of them equal.
        for (rows, count) in [(3usize, 5000usize), (70_000, 9000)] {
            let table = TensorType::new(DType::F32, &[rows, 3][..]);
            let index = |dtype| TensorType::new(dtype, &[count][..]);
            let put = TensorType::new(DType::F32, &[count, 3][..]);
            match op.name {
                "scatter_add" | "assign_rows" => {
                    add(&Attrs::None, &[table, index(DType::I32), put], true);
                }
                "rows_to_dense" => {
                    add(&Attrs::Shape(table.shape.clone()), &[index(DType::I64), put], true);
                }
                "first_of" => add(&Attrs::None, &[index(DType::I64)], true),
                _ => {}
            }
        }
        // Rows that begin where a whole access may, and do not end there.
        let in_rows =
            op.name.starts_with("cross_entropy") || emit::makes_rows_apart(op, &sample.attrs);
        let odd = [(DType::BF16, 129), (DType::BF16, 20_001), (DType::F32, 1027), (DType::F64, 5)];
        for (float, width) in odd.into_iter().filter(|_| in_rows) {
            let anew: Vec<TensorType> =
                first.iter().map(|ty| widened(ty, &first[0], width, float)).collect();
            let row_step = width.next_multiple_of(16) + 16;
            add_as(&sample.attrs, &anew, How { row_step, ..How::default() });
        }
    }
}
