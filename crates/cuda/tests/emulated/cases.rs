//! What is tried: every op that is a tile program over its own samples, and programs over layouts, axes and generators of all kinds.

use std::borrow::Cow;

use smallvec::SmallVec;
use tonnage_core::layout::Layout;
use tonnage_core::recipe::{Distribution, Generator, Key};
use tonnage_core::row::{Call, Lower};
use tonnage_core::tile::{Close, Form, Prim, Reduction, TileProgram};
use tonnage_core::{DType, Shape};
use tonnage_cpu::tile::{self, Read, TileSource};
use tonnage_cpu::workers::Alone;
use tonnage_cuda::driver::Status;
use tonnage_cuda::emit::{self, Launch, Operand};
use tonnage_ops::TABLE;

use crate::draw::{Buffer, Random};
use crate::{Trial, assertion, attention, rows};

/// A load of a case.
enum Load {
    Bytes(Buffer, Layout),
    Generator(Generator, Layout),
    Output(usize),
}

/// A program over operands, what the CPU makes of it, and where the kernel writes.
struct Case {
    name: String,
    program: TileProgram,
    domain: Vec<usize>,
    loads: Vec<Load>,
    expected: Vec<Buffer>,
    outputs: Vec<(u64, Buffer)>,
    scratch: Option<(u64, Buffer)>,
}

impl Case {
    fn new(
        name: String,
        program: TileProgram,
        domain: Vec<usize>,
        loads: Vec<Load>,
        random: &mut Random,
    ) -> Case {
        let count: usize = domain.iter().product();
        let results = match &program.close {
            Close::Store => count,
            Close::Reduce { axes, .. } => (0..domain.len())
                .filter(|axis| !axes.contains(axis))
                .map(|axis| domain[axis])
                .product(),
        };
        let bytes = |form: &Form| match form {
            Form::Elements(dtype) => results * dtype.size(),
            Form::Bits => results.div_ceil(8),
        };
        // What is read in place is drawn.
        let mut expected: Vec<Buffer> =
            program.stores.iter().map(|(_, form)| Buffer::new(bytes(form))).collect();
        for (load, form) in loads.iter().zip(&program.loads) {
            if let (Load::Output(output), Form::Elements(dtype)) = (load, form) {
                random.fill(*dtype, expected[*output].bytes_mut());
            }
        }
        let mut outputs: Vec<(u64, Buffer)> = expected
            .iter()
            .map(|from| {
                let mut buffer = Buffer::new(from.bytes().len());
                buffer.bytes_mut().copy_from_slice(from.bytes());
                (buffer.address(), buffer)
            })
            .collect();
        let needed = emit::scratch(&program, &domain).as_usize();
        let scratch = (needed > 0).then(|| {
            let mut buffer = Buffer::new(needed);
            (buffer.address(), buffer)
        });
        let sources: Vec<TileSource> = loads
            .iter()
            .map(|load| match load {
                Load::Bytes(buffer, layout) => {
                    TileSource { layout: Cow::Borrowed(layout), read: Read::Slice(buffer.bytes()) }
                }
                Load::Generator(generator, layout) => {
                    TileSource { layout: Cow::Borrowed(layout), read: Read::Generator(generator) }
                }
                Load::Output(output) => TileSource {
                    layout: Cow::Owned(Layout::contiguous(&domain[..])),
                    read: Read::Output(*output),
                },
            })
            .collect();
        let mut workspace = Buffer::new(tile::scratch(&program, &domain).as_usize());
        {
            let mut outs: SmallVec<[&mut [u8]; 3]> =
                expected.iter_mut().map(Buffer::bytes_mut).collect();
            tile::run(&program, &domain, &sources, &mut outs, workspace.bytes_mut(), &Alone)
                .unwrap();
        }
        drop(sources);
        outputs.iter_mut().for_each(|(address, buffer)| *address = buffer.address());
        Case { name, program, domain, loads, expected, outputs, scratch }
    }
}

impl Trial for Case {
    fn launch(&self) -> Option<Launch> {
        let operands: Vec<Operand> = self
            .loads
            .iter()
            .map(|load| match load {
                Load::Bytes(buffer, layout) => {
                    Operand::Memory(buffer.bytes().as_ptr().expose_provenance() as u64, layout)
                }
                Load::Generator(generator, layout) => Operand::Generator(generator, layout),
                Load::Output(output) => Operand::Output(*output),
            })
            .collect();
        let outputs: Vec<u64> = self.outputs.iter().map(|(address, _)| *address).collect();
        let scratch = self.scratch.as_ref().map(|(address, _)| *address);
        emit::launch(&self.program, &self.domain, &operands, &outputs, scratch).unwrap()
    }

    fn check(&self, _: &Status) -> Result<(), String> {
        for (k, ((_, form), (expected, (_, made)))) in
            self.program.stores.iter().zip(self.expected.iter().zip(&self.outputs)).enumerate()
        {
            let dtype = match form {
                Form::Elements(dtype) => *dtype,
                Form::Bits => DType::U8,
            };
            // Floats are added up in another order than the CPU's.
            let loose = match &self.program.close {
                Close::Reduce {
                    reduction: Reduction::Sum | Reduction::Mean | Reduction::Prod,
                    ..
                } => Some(1.0),
                _ => None,
            };
            let pairs =
                expected.bytes().chunks(dtype.size()).zip(made.bytes().chunks(dtype.size()));
            for (i, (a, b)) in pairs.enumerate() {
                if !same(dtype, a, b, loose, 1.0) {
                    return Err(format!(
                        "{} over {:?}: output {k}, element {i}: {} and {}\n  {}",
                        self.name,
                        self.domain,
                        shown(dtype, a),
                        shown(dtype, b),
                        self.program
                    ));
                }
            }
        }
        Ok(())
    }
}

pub fn float(dtype: DType, bytes: &[u8]) -> Option<f64> {
    Some(match dtype {
        DType::F64 => f64::from_le_bytes(bytes.try_into().ok()?),
        DType::F32 => f32::from_le_bytes(bytes.try_into().ok()?).into(),
        DType::F16 => half::f16::from_le_bytes(bytes.try_into().ok()?).into(),
        DType::BF16 => half::bf16::from_le_bytes(bytes.try_into().ok()?).into(),
        _ => return None,
    })
}

pub fn shown(dtype: DType, bytes: &[u8]) -> String {
    match float(dtype, bytes) {
        Some(x) => format!("{x:e} ({bytes:x?})"),
        None => format!("{bytes:?}"),
    }
}

/// Whether two elements are the same: in all bits, or, of those that may differ, within so many roundings of numbers of a size.
pub fn same(dtype: DType, a: &[u8], b: &[u8], loose: Option<f64>, size: f64) -> bool {
    if a == b {
        return true;
    }
    let (Some(a), Some(b)) = (float(dtype, a), float(dtype, b)) else { return false };
    let within = match dtype {
        DType::F64 => 1e-12,
        DType::F32 => 1e-5,
        DType::F16 => 2e-3,
        _ => 1.6e-2,
    };
    let close = |times: f64| (a - b).abs() <= times * within * a.abs().max(size);
    a.is_nan() && b.is_nan() || loose.is_some_and(close)
}

const SHAPES: [&[usize]; 9] =
    [&[], &[1], &[5], &[1000], &[4, 64], &[3, 7], &[2, 3, 8], &[5, 1, 16], &[2, 3, 4, 5]];

/// All cases.
pub fn cases() -> Vec<Box<dyn Trial>> {
    let mut random = Random::new();
    let mut programs = Vec::new();
    samples(&mut programs, &mut random);
    layouts(&mut programs, &mut random);
    transposes(&mut programs, &mut random);
    reductions(&mut programs, &mut random);
    generators(&mut programs, &mut random);
    let mut all: Vec<Box<dyn Trial>> = Vec::new();
    all.extend(programs.into_iter().map(|case| Box::new(case) as Box<dyn Trial>));
    assertion::cases(&mut all);
    rows::cases(&mut all, &mut random);
    attention::cases(&mut all, &mut random);
    all
}

/// Every op that is a tile program, over its first sample of each combination of dtypes.
fn samples(all: &mut Vec<Case>, random: &mut Random) {
    for op in TABLE {
        let Lower::Tile(make) = op.lower else { continue };
        let mut seen = Vec::new();
        for sample in (op.samples)() {
            let types: Vec<_> = sample.inputs.iter().map(|input| input.ty.clone()).collect();
            let dtypes: Vec<DType> = types.iter().map(|ty| ty.dtype).collect();
            let call = Call {
                op: op.name,
                inputs: &types,
                attrs: &sample.attrs,
                regions: &sample.regions,
            };
            let Ok(program) = make(&call, false) else { continue };
            if seen.contains(&(dtypes.clone(), program.clone())) {
                continue;
            }
            let mut domain = Shape::scalar();
            for (ty, form) in types.iter().zip(&program.loads) {
                if matches!(form, Form::Elements(_)) {
                    domain = domain.broadcast(&ty.shape, op.name).unwrap();
                }
            }
            let Some(domain) = domain.sizes() else { continue };
            let count: usize = domain.iter().product();
            if count == 0 {
                continue;
            }
            seen.push((dtypes, program.clone()));
            let loads = types
                .iter()
                .zip(&program.loads)
                .map(|(ty, form)| match form {
                    Form::Bits => {
                        let (buffer, layout) = random.tensor(DType::U8, &[count.div_ceil(8)]);
                        Load::Bytes(buffer, layout)
                    }
                    Form::Elements(dtype) => {
                        let (buffer, layout) = random.tensor(*dtype, &ty.shape.sizes().unwrap());
                        Load::Bytes(buffer, layout.broadcast_to(&domain).unwrap())
                    }
                })
                .collect();
            all.push(Case::new(
                format!("{} {:?}", op.name, sample.attrs),
                program,
                domain.to_vec(),
                loads,
                random,
            ));
        }
    }
}

/// `a * b + c` of operands that lie in all ways, into one or two outputs, in place too.
fn layouts(all: &mut Vec<Case>, random: &mut Random) {
    for dtype in [DType::F32, DType::BF16, DType::F64, DType::I8] {
        for round in 0..4 {
            for shape in SHAPES {
                let mut program = TileProgram::loading(&[dtype, dtype, dtype]);
                let product = program.push(Prim::Mul, &[0, 1]);
                let sum = program.push(Prim::Add, &[product, 2]);
                program.store(sum, dtype);
                if round == 3 {
                    let less = program.push(Prim::Lt, &[0, 2]);
                    program.store_bits(less);
                }
                let mut loads: Vec<Load> = Vec::new();
                for i in 0..3 {
                    let (buffer, layout) = match (round, i) {
                        (0, _) | (_, 0) => random.tensor(dtype, shape),
                        _ => random.view(dtype, shape),
                    };
                    loads.push(match (round, i) {
                        (2, 0) => Load::Output(0),
                        _ => Load::Bytes(buffer, layout),
                    });
                }
                all.push(Case::new(
                    format!("layouts {dtype:?} {round}"),
                    program,
                    shape.to_vec(),
                    loads,
                    random,
                ));
            }
        }
    }
}

/// Chains whose operands lie across, each over axes of its own, beside such that lie in order, are broadcast, or are read in place.
fn transposes(all: &mut Vec<Case>, random: &mut Random) {
    let orders: [(&[usize], &[&[usize]]); 5] = [
        (&[70, 33], &[&[1, 0]]),
        (&[64, 128], &[&[1, 0], &[1, 0]]),
        (&[2, 65, 40], &[&[0, 2, 1], &[2, 1, 0]]),
        (&[33, 3, 66], &[&[2, 1, 0], &[1, 2, 0], &[0, 1, 2]]),
        (&[2, 32, 3, 35], &[&[0, 3, 2, 1], &[3, 1, 0, 2]]),
    ];
    for dtype in [DType::F32, DType::BF16, DType::F64, DType::I8] {
        for (shape, orders) in orders {
            for in_place in [false, true] {
                let mut program = TileProgram::loading(&vec![dtype; orders.len() + 2]);
                let mut sum = program.push(Prim::Mul, &[0, 1]);
                for i in 0..orders.len() {
                    sum = program.push(Prim::Sub, &[sum, 2 + i as u16]);
                }
                program.store(sum, dtype);
                let last = *shape.last().unwrap();
                let (buffer, bias) = random.tensor(dtype, &[last]);
                let mut loads = vec![Load::Bytes(buffer, bias.broadcast_to(shape).unwrap())];
                loads.push(match in_place {
                    true => Load::Output(0),
                    false => {
                        let (buffer, layout) = random.tensor(dtype, shape);
                        Load::Bytes(buffer, layout)
                    }
                });
                for order in orders {
                    // Lies as if its axes were in that order.
                    let sizes: Vec<usize> = order.iter().map(|axis| shape[*axis]).collect();
                    let (buffer, across) = random.tensor(dtype, &sizes);
                    let mut layout = Layout::contiguous(shape);
                    for (at, axis) in order.iter().enumerate() {
                        layout.strides[*axis] = across.strides[at];
                    }
                    loads.push(Load::Bytes(buffer, layout));
                }
                let name = format!("transposes {dtype:?} {orders:?}");
                all.push(Case::new(name, program, shape.to_vec(), loads, random));
            }
        }
    }
}

/// Reductions over axes of all kinds, long ones too.
fn reductions(all: &mut Vec<Case>, random: &mut Random) {
    use Reduction::{All, Any, Max, Mean, Min, Prod, Sum};
    let shapes: [(&[usize], &[usize]); 14] = [
        (&[7], &[0]),
        (&[0], &[0]),
        (&[3, 0], &[1]),
        (&[100_000], &[0]),
        (&[4, 9], &[1]),
        (&[4, 9], &[0]),
        (&[5, 300], &[1]),
        (&[3, 5000], &[1]),
        (&[300, 5], &[0]),
        (&[5000, 33], &[0]),
        (&[3, 4, 5], &[0, 2]),
        (&[3, 4, 5], &[1]),
        (&[2, 1, 3], &[1]),
        (&[6, 40, 2, 3], &[1, 3]),
    ];
    for (shape, axes) in shapes {
        for (reduction, dtypes) in [
            (Sum, &[DType::F32, DType::BF16, DType::I32][..]),
            (Mean, &[DType::F32, DType::F16]),
            (Prod, &[DType::F64, DType::I64]),
            (Max, &[DType::F32, DType::BF16, DType::U8, DType::I16]),
            (Min, &[DType::F64, DType::I8]),
            (Any, &[DType::Bool]),
            (All, &[DType::Bool]),
        ] {
            for dtype in dtypes {
                let mut program = TileProgram::loading(&[*dtype]);
                let reg = if *dtype == DType::F32 { program.push(Prim::Square, &[0]) } else { 0 };
                program.store(reg, *dtype);
                program.reduce(reduction, axes);
                let (mut buffer, layout) = random.tensor(*dtype, shape);
                if matches!(reduction, Sum | Mean | Prod) && dtype.is_float() {
                    tame(*dtype, buffer.bytes_mut(), reduction);
                }
                let loads = vec![Load::Bytes(buffer, layout)];
                all.push(Case::new(
                    format!("{reduction:?} {dtype:?} over {axes:?}"),
                    program,
                    shape.to_vec(),
                    loads,
                    random,
                ));
            }
        }
    }
}

/// Numbers whose sums and products have digits to compare.
fn tame(dtype: DType, bytes: &mut [u8], reduction: Reduction) {
    for (i, element) in bytes.chunks_exact_mut(dtype.size()).enumerate() {
        let x = match reduction {
            Reduction::Prod => 1.0 + (i % 7) as f64 * 1e-4,
            _ => (i * 37 % 101) as f64 / 101.0 - 0.25,
        };
        match dtype {
            DType::F64 => element.copy_from_slice(&x.to_le_bytes()),
            DType::F32 => element.copy_from_slice(&(x as f32).to_le_bytes()),
            DType::F16 => element.copy_from_slice(&half::f16::from_f64(x).to_le_bytes()),
            _ => element.copy_from_slice(&half::bf16::from_f64(x).to_le_bytes()),
        }
    }
}

/// Counts and random numbers of every distribution and dtype, over layouts.
fn generators(all: &mut Vec<Case>, random: &mut Random) {
    let key = Key::Fixed([123, 456]);
    let mut made = Vec::new();
    for dtype in DType::ALL {
        let (start, step) = if dtype == DType::Bool { (1, 0) } else { (3, 2) };
        made.push(Generator::Count { start: start.into(), step: step.into(), dtype });
        let distributions: &[Distribution] = match dtype {
            DType::Bool => &[],
            _ if dtype.is_float() => {
                &[Distribution::Uniform, Distribution::Normal, Distribution::TruncatedNormal]
            }
            _ => &[Distribution::Bits, Distribution::Below(100)],
        };
        made.extend(distributions.iter().map(|distribution| Generator::Random {
            key,
            distribution: *distribution,
            dtype,
        }));
    }
    for generator in made {
        let dtype = generator.dtype();
        for shape in [&[33usize][..], &[3, 8]] {
            let mut program = TileProgram::loading(&[dtype]);
            program.store(0, dtype);
            let mut layout = Layout::contiguous(shape);
            layout.offset = 5;
            if shape.len() == 2 {
                layout.strides = [1isize, 3].into_iter().collect();
            }
            let name = format!("{generator:?}");
            all.push(Case::new(
                name,
                program,
                shape.to_vec(),
                vec![Load::Generator(generator.clone(), layout)],
                random,
            ));
        }
    }
}
