//! Kernels never allocate. `exec` counts in every call of every test, on all threads; here are calls that would
//! show a list kept on the heap: ranks, batches and programs beyond what short lists hold in place.

use tonnage_core::attrs::{Attrs, AxisSlice};
use tonnage_core::row::{Sample, Values};
use tonnage_core::tile::{Prim, Reduction, TileProgram};
use tonnage_core::{DType, Layout, TensorType};
use tonnage_cpu::workers::Workers;

use crate::draw::{Random, for_every_sample};
use crate::exec::team::Team;
use crate::exec::tensor::Tensor;
use crate::exec::{Engine, nothing_allocated};

#[test]
#[should_panic(expected = "greedy: the kernel allocated, up to 100 bytes")]
fn a_kernel_that_allocates_is_found() {
    let team = Team::new(2);
    let mut greedy = || drop(std::hint::black_box(vec![1u8; 100]));
    let run = || {
        team.join(&mut || (), &mut greedy);
        Ok(())
    };
    nothing_allocated("greedy", run).unwrap();
}

#[test]
fn no_kernel_allocates_on_any_sample() {
    // On three threads, in place where a row allows, with what is saved for the backward pass.
    for_every_sample(|op, sample, random| {
        let inputs = random.tensors(sample);
        let team = Team::new(3);
        let made = Engine::on(&team, true).run(op, inputs, &sample.attrs, &sample.regions, true);
        made.map(drop).map_err(|e| e.to_string())
    });
}

/// Runs an op on inputs that lie in order and transposed, on one thread and on three.
#[track_caller]
fn check(name: &str, sample: Sample) {
    let op = tonnage_ops::find(name).expect("a row");
    let plain = Random::of(name, 3).inputs(&sample);
    let expected =
        crate::values::expected(op, &sample, &sample.attrs, &plain).expect("a reference");
    for transposed in [false, true] {
        let lay = |t: Tensor| if transposed { transpose(&t) } else { t };
        let inputs: Vec<Tensor> = plain.iter().map(Tensor::from_plain).map(lay).collect();
        for threads in [1, 3] {
            let team = Team::new(threads);
            let mut engine = Engine::on(&team, false);
            let made = engine.run(op, inputs.clone(), &sample.attrs, &[], false).expect("results");
            let made: Vec<_> = made.iter().map(Tensor::plain).collect();
            crate::values::differ(op, &made, &expected).expect("the reference's values");
        }
    }
}

/// The same elements, with the last axis outermost in memory.
fn transpose(tensor: &Tensor) -> Tensor {
    let order: Vec<usize> = (0..tensor.layout.sizes.len()).rev().collect();
    let transposed = Tensor { layout: tensor.layout.transpose(&order), ..tensor.clone() }.copy();
    let layout: Layout = transposed.layout.transpose(&order);
    Tensor { layout, ..transposed }
}

/// A sample of these types.
fn of(types: &[(DType, &[usize])], attrs: Attrs) -> Sample {
    let types: Vec<TensorType> = types.iter().map(|(d, s)| TensorType::new(*d, *s)).collect();
    Sample::of(&types, attrs)
}

const DEEP: &[usize] = &[2, 3, 2, 1, 2, 3, 2];

#[test]
fn no_kernel_allocates_at_a_high_rank() {
    use DType::*;
    check("add", of(&[(F32, DEEP), (F32, &[3, 1, 1, 2, 1, 2])], Attrs::None));
    check("mul", of(&[(F16, DEEP), (F16, DEEP)], Attrs::None));
    check("where", of(&[(Bool, DEEP), (F64, DEEP), (F64, &[2, 3, 2])], Attrs::None));
    for axes in [&[1usize, 3, 5][..], &[0, 2, 4, 6], &[0, 1], &[5, 6]] {
        let over = Attrs::Reduce { axes: axes.into(), keep_dims: false };
        check("sum", of(&[(F32, DEEP)], over.clone()));
        check("max", of(&[(I32, DEEP)], over));
    }
    let part = |len: usize| AxisSlice { start: 1.into(), len: len.into(), step: 1 };
    let slices: Vec<AxisSlice> = [2, 1, 2, 3, 1, 2].into_iter().map(part).collect();
    let shape = [4usize, 2, 5, 4, 3, 3].as_slice().into();
    check("place", of(&[(F32, &[2, 1, 2, 3, 1, 2])], Attrs::Place { slices, shape }));
    let gather = of(&[(F32, DEEP), (I32, &[2, 1, 2])], Attrs::Axis(2)).with(1, Values::Below(2));
    check("gather", gather.clone());
    check("gather_last", gather);
    let rows: &[usize] = &[2, 3, 4, 1, 2, 3, 2];
    let scatter = of(&[(F32, DEEP), (I32, &[4]), (F32, rows)], Attrs::Axis(2));
    check("scatter_add", scatter.clone().with(1, Values::Below(2)));
    check("scatter_update", scatter.with(1, Values::Below(2)));
    check("top_k", of(&[(F32, DEEP)], Attrs::Count(1)));
    let along: &[usize] = &[2, 3, 2, 1, 2, 3, 4];
    let take = of(&[(F32, DEEP), (I32, along)], Attrs::None);
    check("take_along_axis", take.with(1, Values::Below(2)));
    let length = Attrs::Shape([5usize].as_slice().into());
    let put = of(&[(I32, along), (F32, along)], length);
    check("put_along_axis", put.with(0, Values::Below(5)));
    check("boolean_mask", of(&[(F32, DEEP), (Bool, &DEEP[..5])], Attrs::None));
    check("tril", of(&[(F32, DEEP)], Attrs::Diagonal(0)));
    let part = Attrs::Shape([2usize, 2, 1, 1, 2, 2, 1].as_slice().into());
    let slice = of(&[(F32, DEEP), (I32, &[7])], part);
    check("dynamic_slice", slice.with(1, Values::Below(1)));
    let update = of(&[(F32, DEEP), (F32, &[2, 2, 1, 1, 2, 2, 1]), (I32, &[7])], Attrs::None);
    check("dynamic_update", update.with(2, Values::Below(1)));
    let square: &[usize] = &[2, 3, 1, 2, 2, 4, 4];
    check("symmetrize", of(&[(F64, square)], Attrs::None));
    check("cholesky", of(&[(F64, square)], Attrs::None).with(0, Values::PositiveDefinite));
}

#[test]
fn no_kernel_allocates_for_a_large_batch() {
    let attrs = |transpose_a| Attrs::Matmul { transpose_a, transpose_b: false };
    // Batches that no single stride walks, at ranks beyond what short lists hold.
    let (a, b): (&[usize], &[usize]) = (&[5, 1, 3, 2, 1, 4, 3], &[4, 1, 2, 3, 3, 2]);
    check("matmul", of(&[(DType::F32, a), (DType::F32, b)], attrs(false)));
    let (a, b): (&[usize], &[usize]) = (&[40, 1, 3, 4], &[1, 7, 3, 2]);
    check("matmul", of(&[(DType::F32, a), (DType::F32, b)], attrs(true)));
    let (a, b): (&[usize], &[usize]) = (&[2, 3, 2, 3, 4, 5], &[5, 2]);
    check("matmul", of(&[(DType::BF16, a), (DType::BF16, b)], attrs(false)));
    // More segments of a reduction than a short list holds.
    let over = |axes: &[usize]| Attrs::Reduce { axes: axes.into(), keep_dims: false };
    check("sum", of(&[(DType::F32, &[2, 70_000, 3])], over(&[1])));
    check("sum", of(&[(DType::F32, &[70, 1100])], over(&[0])));
    check("sum", of(&[(DType::F32, &[7, 40_000])], over(&[1])));
}

#[test]
fn no_program_that_fits_allocates() {
    // As long and as wide as a program may be: ten loads of every kind, a long chain, a reduction.
    let types = [DType::F32, DType::F16, DType::F64, DType::I32, DType::U8].repeat(2);
    let mut program = TileProgram::loading(&types);
    let mut sum = program.constant(0.0, DType::F64);
    for load in 0..types.len() as u16 {
        let wide = match program.register(load) {
            DType::F64 => load,
            _ => program.push(Prim::Cast(DType::F64), &[load]),
        };
        sum = program.push(Prim::Add, &[sum, wide]);
    }
    while program.loads.len() + program.code.len() < 127 {
        sum = program.push(Prim::Neg, &[sum]);
    }
    program.store(sum, DType::F64);
    assert!(tonnage_cpu::tile::LIMITS.fit(&program));
    let shape: &[usize] = &[3, 5, 2, 3, 1, 7];
    let all: Vec<(DType, &[usize])> = types.iter().map(|d| (*d, shape)).collect();
    check("fused", of(&all, Attrs::Tile(Box::new(program.clone()))));
    program.reduce(Reduction::Sum, &[1, 3, 5]);
    check("fused", of(&all, Attrs::Tile(Box::new(program.clone()))));
    program.push(Prim::Neg, &[sum]);
    program.push(Prim::Neg, &[sum]);
    assert!(!tonnage_cpu::tile::LIMITS.fit(&program), "longer ones are cut before they run");
}
