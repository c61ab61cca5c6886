//! The same bits on one, two and three threads, at sizes that really are shared among them.

use tonnage_core::attrs::Attrs;
use tonnage_core::row::{OpDef, Sample};
use tonnage_core::tile::{Fold, Prim, TileProgram};
use tonnage_core::{DType, TensorType, Workers};

use crate::draw::{Random, for_every_sample};
use crate::exec::Engine;
use crate::exec::team::Team;
use crate::exec::tensor::Tensor;

fn run(
    workers: &dyn Workers,
    op: &'static OpDef,
    sample: &Sample,
    inputs: &[Tensor],
) -> Result<Vec<Vec<u8>>, String> {
    let mut engine = Engine::on(workers, false);
    let made = engine.run(op, inputs.to_vec(), &sample.attrs, &sample.regions, true);
    let made = made.and_then(|made| made.into_iter().map(|t| engine.resident(t)).collect());
    let made: Vec<Tensor> = made.map_err(|e| e.to_string())?;
    Ok(made.iter().map(Tensor::bits).collect())
}

fn check(op: &'static OpDef, sample: &Sample, random: &mut Random) -> Result<(), String> {
    let inputs = random.tensors(sample);
    let one = run(&Team::new(1), op, sample, &inputs)?;
    for threads in [2, 3] {
        if run(&Team::new(threads), op, sample, &inputs)? != one {
            return Err(format!("other bits on {threads} threads"));
        }
    }
    Ok(())
}

#[test]
fn every_sample_gives_the_same_bits_on_any_number_of_threads() {
    for_every_sample(check);
}

/// Checks one op at sizes that are cut for threads.
#[track_caller]
fn large(name: &'static str, types: &[(DType, &[usize])], attrs: Attrs) {
    let types: Vec<TensorType> = types.iter().map(|(d, s)| TensorType::new(*d, *s)).collect();
    let op = tonnage_ops::find(name).expect("a row");
    let sample = Sample::of(&types, attrs);
    check(op, &sample, &mut Random::of(name, 1)).expect("the same bits");
    let inputs = Random::of(name, 1).inputs(&sample);
    crate::values::compare(op, &sample, &inputs).expect("the reference's values");
}

#[test]
fn large_elementwise_work_is_the_same_on_any_number_of_threads() {
    large("add", &[(DType::F32, &[100_003]), (DType::F32, &[100_003])], Attrs::None);
    large("relu", &[(DType::F16, &[70_001])], Attrs::None);
    large("mul", &[(DType::F64, &[97, 701]), (DType::F64, &[97, 1])], Attrs::None);
    large("cast", &[(DType::I8, &[70_001])], Attrs::DType(DType::F64));
}

#[test]
fn large_folds_are_the_same_on_any_number_of_threads() {
    let over = |axes: &[usize]| Attrs::Reduce { axes: axes.into(), keep_dims: false };
    large("sum", &[(DType::F32, &[300_000])], over(&[0]));
    large("sum", &[(DType::F32, &[40_000, 3])], over(&[0]));
    large("sum", &[(DType::F32, &[3, 40_000])], over(&[1]));
    large("sum", &[(DType::F32, &[130, 700])], over(&[0]));
    large("sum", &[(DType::F32, &[200, 300])], over(&[1]));
    large("sum", &[(DType::F32, &[2, 300, 5, 40])], over(&[1, 3]));
    large("sum", &[(DType::F32, &[70, 2, 600])], over(&[0, 2]));
    large("max", &[(DType::I16, &[5, 30_000])], over(&[1]));
    large("max", &[(DType::F64, &[5_000, 20])], over(&[0]));
    let mut squares = TileProgram::loading(&[DType::BF16]);
    let square = squares.push(Prim::Square, &[0]);
    squares.store(square, DType::F32);
    squares.fold(Fold::Sum, &[0]);
    large("fused", &[(DType::BF16, &[60_000, 2])], Attrs::Tile(Box::new(squares)));
}

#[test]
fn large_products_are_the_same_on_any_number_of_threads() {
    let plain = |transpose_a| Attrs::Matmul { transpose_a, transpose_b: false };
    large("matmul", &[(DType::F32, &[150, 90]), (DType::F32, &[90, 130])], plain(false));
    large("matmul", &[(DType::F32, &[3, 60, 50]), (DType::F32, &[3, 60, 70])], plain(true));
    large("matmul", &[(DType::BF16, &[1, 300]), (DType::BF16, &[300, 200])], plain(false));
}
