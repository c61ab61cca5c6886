//! Programs over numbers that are the same everywhere.

use tonnage_core::tile::{Prim, Reduction, TileProgram};
use tonnage_core::{DType, Scalar};
use tonnage_cpu::tile::uniform;

#[test]
fn a_chain_of_numbers_is_a_number() {
    let mut program = TileProgram::loading(&[DType::F16, DType::F16]);
    let sum = program.push(Prim::Add, &[0, 1]);
    program.store(sum, DType::F16);
    let made = uniform(&program, &[7], &[Scalar::Float(1.0), Scalar::Float(1e-4)]);
    // 1.0001 is no f16: the kernel rounds, and so does this.
    assert_eq!(made, Some(Scalar::Float(1.0)));
}

#[test]
fn a_reduction_adds_up_as_many_as_there_are() {
    let mut program = TileProgram::loading(&[DType::F32]);
    program.store(0, DType::F32);
    program.reduce(Reduction::Sum, &[1]);
    assert_eq!(uniform(&program, &[3, 5], &[Scalar::Float(0.5)]), Some(Scalar::Float(2.5)));
    assert_eq!(uniform(&program, &[3, 0], &[Scalar::Float(0.5)]), Some(Scalar::Float(0.0)));
    assert_eq!(uniform(&program, &[0, 3], &[Scalar::Float(0.5)]), None);
    // Several long ones are left to the call; a single one is quick however long it is.
    assert_eq!(uniform(&program, &[2, 5000], &[Scalar::Float(0.5)]), None);
    let half = 2f64.powi(49);
    assert_eq!(uniform(&program, &[1, 1 << 50], &[Scalar::Float(0.5)]), Some(Scalar::Float(half)));
    program.reduce(Reduction::Prod, &[1]);
    assert_eq!(uniform(&program, &[1, 5000], &[Scalar::Float(0.5)]), None);
}

#[test]
fn a_zero_keeps_its_sign() {
    let mut program = TileProgram::loading(&[DType::F32]);
    program.store(0, DType::F32);
    assert_eq!(uniform(&program, &[3], &[Scalar::Float(-0.0)]), Some(Scalar::Float(-0.0)));
}
