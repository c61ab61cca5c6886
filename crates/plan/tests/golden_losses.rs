//! What the rewrite of losses makes of a graph, as text.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

mod common;

use common::{Make, reads};
use tonnage_core::attrs::Attrs;
use tonnage_core::{DType, Scalar};
use tonnage_cpu::CpuTarget;
use tonnage_ops::nn::softmax;
use tonnage_plan::{Machine, Rewrite, rewrite};

/// One thread of a CPU.
const ONE: CpuTarget = CpuTarget::new(1, Machine::DEFAULT);

#[test]
fn logits_of_16_bits_have_no_copy_in_f32_for_their_loss() {
    let which = [Rewrite::Losses, Rewrite::Merge];
    let rounded_to = |dtype: DType| {
        let mut m = Make::new();
        let (x, labels) = (m.input(DType::BF16, &[4, 8]), m.input(DType::I32, &[4]));
        let g = m.f32(&[4]);
        let wide = m.cast(&x, DType::F32);
        let how = Attrs::Smoothing(Scalar::Float(0.0));
        let losses = m.op(&softmax::cross_entropy::CROSS_ENTROPY, &[&wide, &labels], how.clone());
        let grad = &softmax::cross_entropy_grad::CROSS_ENTROPY_GRAD;
        let made = m.op(grad, &[&wide, &labels, &g], how);
        let made = m.cast(&made, dtype);
        m.finish(&[&losses, &made])
    };
    reads(
        &rewrite(&rounded_to(DType::BF16), &which, &ONE).unwrap(),
        "
        (%0: bf16[4, 8], %1: i32[4], %2: f32[4]) {
          %3: f32[4] = cross_entropy(%0, %1) smoothed by 0.0
          %4: bf16[4, 8] = cross_entropy_grad(%0, %1, %2) smoothed by 0.0
          return %3, %4
        }
    ",
    );
    // Rounded to something else than the logits are, the gradient is made in f32.
    let kept = rewrite(&rounded_to(DType::F16), &which, &ONE).unwrap();
    assert_eq!(kept.nodes.len(), 4);
}
