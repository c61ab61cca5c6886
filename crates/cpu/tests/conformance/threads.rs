//! The same bits on one, two and three threads, at sizes that really are shared among them.

use tonnage_core::attrs::Attrs;
use tonnage_core::row::{OpDef, Sample};
use tonnage_core::tile::{Prim, Reduction, TileProgram};
use tonnage_core::{DType, TensorType};
use tonnage_cpu::workers::Workers;

use crate::draw::{Random, for_every_sample};
use crate::exec::Engine;
use crate::exec::team::Team;
use crate::exec::tensor::Tensor;
use crate::plain::Plain;

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
fn large_reductions_are_the_same_on_any_number_of_threads() {
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
    squares.reduce(Reduction::Sum, &[0]);
    large("fused", &[(DType::BF16, &[60_000, 2])], Attrs::Tile(Box::new(squares)));
}

#[test]
fn large_products_are_the_same_on_any_number_of_threads() {
    let plain = |transpose_a| Attrs::Matmul { transpose_a, transpose_b: false };
    large("matmul", &[(DType::F32, &[150, 90]), (DType::F32, &[90, 130])], plain(false));
    large("matmul_integer", &[(DType::U8, &[150, 90]), (DType::I8, &[90, 330])], plain(false));
    large("matmul_integer", &[(DType::I8, &[350, 90]), (DType::I8, &[90, 30])], plain(false));
    large("matmul", &[(DType::F32, &[3, 60, 50]), (DType::F32, &[3, 60, 70])], plain(true));
    large("matmul", &[(DType::BF16, &[1, 300]), (DType::BF16, &[300, 200])], plain(false));
}

#[test]
fn transforms_of_awkward_lengths_are_the_same_on_any_number_of_threads() {
    for sizes in [&[3, 509][..], &[35, 127], &[2, 1331], &[17, 250]] {
        large("fft", &[(DType::F64, sizes), (DType::F64, sizes)], Attrs::None);
        large("rfft", &[(DType::F64, sizes)], Attrs::None);
    }
}

/// The transform of a tone is two elements, whatever the length: no loop over all pairs need say so.
#[track_caller]
fn tone(n: usize, pitch: usize) {
    let ty = TensorType::new(DType::F64, [n]);
    let sample = Sample::of(&[ty.clone(), ty], Attrs::None);
    let turn = |j: usize| 2.0 * std::f64::consts::PI * (j * pitch % n) as f64 / n as f64;
    let plain = |values: Vec<f64>| Plain { dtype: DType::F64, sizes: vec![n], values };
    let parts = [plain((0..n).map(|j| turn(j).cos()).collect()), plain(vec![0.0; n])];
    let inputs = parts.each_ref().map(Tensor::from_plain);
    let op = tonnage_ops::find("fft").expect("a row");
    let one = run(&Team::new(1), op, &sample, &inputs).expect("a transform");
    assert_eq!(run(&Team::new(2), op, &sample, &inputs).expect("a transform"), one);
    for (k, bytes) in one[0].as_chunks().0.iter().enumerate() {
        let x = f64::from_ne_bytes(*bytes);
        let exact = if k == pitch || k == n - pitch { n as f64 / 2.0 } else { 0.0 };
        assert!((x - exact).abs() < 1e-8, "element {k} of {n} is {x}, not {exact}");
    }
}

#[test]
fn a_row_that_threads_share_is_transformed_into_its_tones() {
    tone(1 << 18, 77);
    tone(540_000, 12_345);
    tone(131_101, 4_000);
}
