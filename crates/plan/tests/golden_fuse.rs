//! What fusion makes of common functions: their input and their output, and a few numbers a row.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

mod common;

use std::sync::Arc;

use common::{Make, reads};
use tonnage_core::attrs::Attrs;
use tonnage_core::{Bytes, DType, Graph, Value};
use tonnage_cpu::CpuTarget;
use tonnage_ops::{linalg, math, reduce};
use tonnage_plan::{InputSpec, Machine, Plan, PlanOptions, lower, plan};

/// One thread of a CPU.
const ONE: CpuTarget = CpuTarget::new(1, Machine::DEFAULT);

const ROWS: usize = 256;
const COLS: usize = 512;

fn planned(graph: &Graph) -> Plan {
    let inputs: Vec<InputSpec> = graph
        .input_types()
        .iter()
        .map(|ty| InputSpec::contiguous(ty, "test", false).unwrap())
        .collect();
    plan(&Arc::new(graph.clone()), &inputs, PlanOptions::new(Arc::new(ONE))).unwrap()
}

/// The lowered graph reads like that, and a call obtains its result and at most `more` bytes.
#[track_caller]
fn check(graph: &Graph, more: usize, expected: &str) {
    let lowered = lower(graph, &ONE).unwrap();
    reads(&lowered, expected);
    let plan = planned(&lowered);
    let results: Bytes =
        graph.output_types().iter().map(|ty| ty.bytes("test").unwrap().rounded()).sum();
    // What lives at once, before results are put on pages of their own.
    assert!(plan.bound <= results + Bytes::of(more), "{plan}");
}

/// Room for `n` numbers a row.
fn stats(n: usize) -> usize {
    n * ROWS * 4
}

#[test]
fn softmax_takes_two_numbers_a_row() {
    let mut m = Make::new();
    let x = m.f32(&[ROWS, COLS]);
    let largest = m.fold(&reduce::extremum::MAX, &x, &[1], true);
    let shifted = m.sub(&x, &largest);
    let powers = m.exp(&shifted);
    let total = m.sum_keep(&powers, &[1]);
    let y = m.div(&powers, &total);
    check(
        &m.finish(&[&y]),
        stats(2),
        "
        (%0: f32[256, 512]) {
          %1: f32[256] = max(%0) over [1]
          %2: f32[256, 1] = reshape(%1)
          %3: f32[256, 512] = fused(%0, %2) { r2 = Sub r0, r1; r3 = Exp r2 }
          %4: f32[256] = sum(%3) over [1]
          %5: f32[256, 1] = reshape(%4)
          %6: f32[256, 512] = div(%3, %5)
          return %6
        }
    ",
    );
}

fn log_softmax(m: &mut Make, x: &Value) -> Value {
    let largest = m.fold(&reduce::extremum::MAX, x, &[1], true);
    let shifted = m.sub(x, &largest);
    let powers = m.exp(&shifted);
    let total = m.sum_keep(&powers, &[1]);
    let log = m.one(&math::log::LOG, &total);
    m.sub(&shifted, &log)
}

#[test]
fn log_softmax_takes_two_numbers_a_row() {
    let mut m = Make::new();
    let x = m.f32(&[ROWS, COLS]);
    let y = log_softmax(&mut m, &x);
    check(
        &m.finish(&[&y]),
        stats(3),
        "
        (%0: f32[256, 512]) {
          %1: f32[256] = max(%0) over [1]
          %2: f32[256, 1] = reshape(%1)
          %3: f32[256] = fused(%0, %2) { r2 = Sub r0, r1; r3 = Exp r2; Sum over [1] }
          %4: f32[256, 1] = reshape(%3)
          %5: f32[256, 1] = log(%4)
          %6: f32[256, 512] = fused(%0, %2, %5) { r3 = Sub r0, r1; r4 = Sub r3, r2 }
          return %6
        }
    ",
    );
}

#[test]
fn cross_entropy_takes_its_row_statistics_alone() {
    let mut m = Make::new();
    let (x, labels) = (m.f32(&[ROWS, COLS]), m.f32(&[ROWS, COLS]));
    let logs = log_softmax(&mut m, &x);
    let picked = m.mul(&labels, &logs);
    let each = m.sum(&picked, &[1]);
    let loss = m.sum(&each, &[0]);
    let loss = m.times(&loss, -1.0 / ROWS as f64);
    check(&m.finish(&[&loss]), stats(4), "
        (%0: f32[256, 512], %1: f32[256, 512]) {
          %2: f32[256] = max(%0) over [1]
          %3: f32[256, 1] = reshape(%2)
          %4: f32[256] = fused(%0, %3) { r2 = Sub r0, r1; r3 = Exp r2; Sum over [1] }
          %5: f32[256, 1] = reshape(%4)
          %6: f32[256, 1] = log(%5)
          %7: f32[256] = fused(%0, %3, %6, %1) { r4 = Sub r0, r1; r5 = Sub r4, r2; r6 = Mul r5, r3; Sum over [1] }
          %8: f32[] = sum(%7) over [0]
          %9: f32[] = fill() with -0.00390625
          %10: f32[] = mul(%8, %9)
          return %10
        }
    ");
}

fn rsqrt(m: &mut Make, x: &Value) -> Value {
    // Of rows that there are: exp(-log(x) / 2).
    let log = m.one(&math::log::LOG, x);
    let half = m.times(&log, -0.5);
    m.exp(&half)
}

#[test]
fn layer_norm_takes_two_numbers_a_row() {
    let mut m = Make::new();
    let (x, scale, shift) = (m.f32(&[ROWS, COLS]), m.f32(&[COLS]), m.f32(&[COLS]));
    let mean = m.mean(&x, 1);
    let centred = m.sub(&x, &mean);
    let square = m.one(&math::square::SQUARE, &centred);
    let variance = m.mean(&square, 1);
    let variance = m.plus(&variance, 1e-5);
    let spread = rsqrt(&mut m, &variance);
    let y = m.mul(&centred, &spread);
    let y = m.mul(&y, &scale);
    let y = m.add(&y, &shift);
    check(&m.finish(&[&y]), stats(3), "
        (%0: f32[256, 512], %1: f32[512], %2: f32[512]) {
          %3: f32[256] = sum(%0) over [1]
          %4: f32[256, 1] = reshape(%3)
          %5: f32[] = fill() with 0.001953125
          %6: f32[256, 1] = mul(%4, %5)
          %7: f32[256] = fused(%0, %6) { r2 = Sub r0, r1; r3 = Square r2; Sum over [1] }
          %8: f32[256, 1] = reshape(%7)
          %9: f32[256, 1] = fused(%8) { r1 = Const(Float(0.001953125)); r2 = Mul r0, r1; r3 = Const(Float(9.999999747378752e-6)); r4 = Add r2, r3; r5 = Log r4; r6 = Const(Float(-0.5)); r7 = Mul r5, r6; r8 = Exp r7 }
          %10: f32[256, 512] = fused(%9, %0, %6, %1, %2) { r5 = Sub r1, r2; r6 = Mul r0, r5; r7 = Mul r6, r3; r8 = Add r7, r4 }
          return %10
        }
    ");
}

#[test]
fn batch_norm_takes_two_numbers_a_column() {
    let mut m = Make::new();
    let (x, scale, shift) = (m.f32(&[ROWS, COLS]), m.f32(&[COLS]), m.f32(&[COLS]));
    let mean = m.mean(&x, 0);
    let centred = m.sub(&x, &mean);
    let square = m.mul(&centred, &centred);
    let variance = m.mean(&square, 0);
    let variance = m.plus(&variance, 1e-5);
    let spread = rsqrt(&mut m, &variance);
    let y = m.mul(&centred, &spread);
    let y = m.mul(&scale, &y);
    let y = m.add(&y, &shift);
    check(&m.finish(&[&y]), 3 * COLS * 4 + 64 * 1024, "
        (%0: f32[256, 512], %1: f32[512], %2: f32[512]) {
          %3: f32[512] = sum(%0) over [0]
          %4: f32[1, 512] = reshape(%3)
          %5: f32[] = fill() with 0.00390625
          %6: f32[1, 512] = mul(%4, %5)
          %7: f32[512] = fused(%0, %6) { r2 = Sub r0, r1; r3 = Square r2; Sum over [0] }
          %8: f32[1, 512] = reshape(%7)
          %9: f32[1, 512] = fused(%8) { r1 = Const(Float(0.00390625)); r2 = Mul r0, r1; r3 = Const(Float(9.999999747378752e-6)); r4 = Add r2, r3; r5 = Log r4; r6 = Const(Float(-0.5)); r7 = Mul r5, r6; r8 = Exp r7 }
          %10: f32[256, 512] = fused(%9, %0, %6, %1, %2) { r5 = Sub r1, r2; r6 = Mul r0, r5; r7 = Mul r6, r3; r8 = Add r7, r4 }
          return %10
        }
    ");
}

#[test]
fn rms_norm_takes_a_number_a_row() {
    let mut m = Make::new();
    let (x, scale) = (m.f32(&[ROWS, COLS]), m.f32(&[COLS]));
    let square = m.mul(&x, &x);
    let mean = m.mean(&square, 1);
    let spread = rsqrt(&mut m, &mean);
    let y = m.mul(&x, &spread);
    let y = m.mul(&y, &scale);
    check(&m.finish(&[&y]), stats(2), "
        (%0: f32[256, 512], %1: f32[512]) {
          %2: f32[256] = fused(%0) { r1 = Square r0; Sum over [1] }
          %3: f32[256, 1] = reshape(%2)
          %4: f32[256, 1] = fused(%3) { r1 = Const(Float(0.001953125)); r2 = Mul r0, r1; r3 = Log r2; r4 = Const(Float(-0.5)); r5 = Mul r3, r4; r6 = Exp r5 }
          %5: f32[256, 512] = fused(%4, %0, %1) { r3 = Mul r0, r1; r4 = Mul r3, r2 }
          return %5
        }
    ");
}

#[test]
fn a_mean_squared_error_is_one_pass() {
    let mut m = Make::new();
    let (x, y) = (m.f32(&[ROWS, COLS]), m.f32(&[ROWS, COLS]));
    let off = m.sub(&x, &y);
    let square = m.mul(&off, &off);
    let sum = m.sum(&square, &[0, 1]);
    let loss = m.times(&sum, 1.0 / (ROWS * COLS) as f64);
    check(
        &m.finish(&[&loss]),
        64 * 1024,
        "
        (%0: f32[256, 512], %1: f32[256, 512]) {
          %2: f32[] = fused(%0, %1) { r2 = Sub r0, r1; r3 = Square r2; Sum over [0, 1] }
          %3: f32[] = fill() with 7.62939453125e-6
          %4: f32[] = mul(%2, %3)
          return %4
        }
    ",
    );
}

#[test]
fn gelu_is_one_pass() {
    let mut m = Make::new();
    let x = m.f32(&[ROWS, COLS]);
    let square = m.mul(&x, &x);
    let cube = m.mul(&square, &x);
    let cube = m.times(&cube, 0.044715);
    let inner = m.add(&x, &cube);
    let inner = m.times(&inner, 0.797_884_560_802_865_4);
    let t = m.tanh(&inner);
    let t = m.plus(&t, 1.0);
    let half = m.times(&x, 0.5);
    let y = m.mul(&half, &t);
    check(&m.finish(&[&y]), 0, "
        (%0: f32[256, 512]) {
          %1: f32[256, 512] = fused(%0) { r1 = Square r0; r2 = Mul r1, r0; r3 = Const(Float(0.044714998453855515)); r4 = Mul r2, r3; r5 = Add r4, r0; r6 = Const(Float(0.7978845834732056)); r7 = Mul r5, r6; r8 = Tanh r7; r9 = Const(Float(1.0)); r10 = Add r8, r9; r11 = Const(Float(0.5)); r12 = Mul r0, r11; r13 = Mul r10, r12 }
          return %1
        }
    ");
}

#[test]
fn views_between_elementwise_ops_do_not_stop_a_chain() {
    let mut m = Make::new();
    let (x, row, y) = (m.f32(&[ROWS, COLS]), m.f32(&[COLS]), m.f32(&[COLS, ROWS]));
    let a = m.mul(&x, &row);
    let a = m.exp(&a);
    let a = m.transpose(&a, &[1, 0]);
    let b = m.add(&a, &y);
    let b = m.slice(&b, &[(0, COLS / 2, 2), (0, ROWS, 1)]);
    let b = m.tanh(&b);
    let b = m.transpose(&b, &[1, 0]);
    let c = m.plus(&b, 1.0);
    let z = m.f32(&[ROWS, 4, COLS / 8]);
    let d = m.exp(&z);
    let d = m.mul(&d, &d);
    let d = m.reshape(&d, &[ROWS, COLS / 2]);
    let c = m.mul(&c, &d);
    let total = m.sum(&c, &[0, 1]);
    check(&m.finish(&[&total]), 64 * 1024, "
        (%0: f32[256, 512], %1: f32[512], %2: f32[512, 256], %3: f32[256, 4, 64]) {
          %4: f32[512, 256] = transpose(%0) to [1, 0]
          %5: f32[256, 256] = slice(%4) at [0+256 by 2, 0+256]
          %6: f32[256, 256] = transpose(%5) to [1, 0]
          %7: f32[1, 512] = reshape(%1)
          %8: f32[512, 1] = transpose(%7) to [1, 0]
          %9: f32[256, 1] = slice(%8) at [0+256 by 2, 0+1]
          %10: f32[1, 256] = transpose(%9) to [1, 0]
          %11: f32[256, 256] = slice(%2) at [0+256 by 2, 0+256]
          %12: f32[256, 256] = transpose(%11) to [1, 0]
          %13: f32[256, 256] = reshape(%3)
          %14: f32[] = fused(%6, %10, %12, %13) { r4 = Mul r0, r1; r5 = Exp r4; r6 = Add r5, r2; r7 = Tanh r6; r8 = Const(Float(1.0)); r9 = Add r7, r8; r10 = Exp r3; r11 = Square r10; r12 = Mul r9, r11; Sum over [0, 1] }
          return %14
        }
    ");
}

#[test]
fn what_a_kernel_reads_is_written_once_and_read_from_there() {
    let mut m = Make::new();
    let (x, w) = (m.f32(&[64, 64]), m.f32(&[64, 64]));
    let a = m.plus(&x, 1.0);
    let b = m.matmul(&a, &w);
    let c = m.add(&a, &b);
    check(
        &m.finish(&[&c]),
        1 << 20,
        "
        (%0: f32[64, 64], %1: f32[64, 64]) {
          %2: f32[] = fill() with 1.0
          %3: f32[64, 64] = add(%0, %2)
          %4: f32[64, 64] = matmul(%3, %1)
          %5: f32[64, 64] = add(%4, %3)
          return %5
        }
    ",
    );
}

#[test]
fn an_exponential_is_recomputed_only_if_bytes_are_saved() {
    let both = |rows: usize| {
        let mut m = Make::new();
        let (x, y) = (m.f32(&[rows, 64]), m.f32(&[rows, 64]));
        let power = m.exp(&x);
        let first = m.sum(&power, &[1]);
        let more = m.mul(&power, &y);
        let second = m.sum(&more, &[1]);
        m.finish(&[&first, &second])
    };
    reads(
        &lower(&both(4), &ONE).unwrap(),
        "
        (%0: f32[4, 64], %1: f32[4, 64]) {
          %2: f32[4, 64] = exp(%0)
          %3: f32[4] = sum(%2) over [1]
          %4: f32[4] = fused(%2, %1) { r2 = Mul r0, r1; Sum over [1] }
          return %3, %4
        }
    ",
    );
    reads(
        &lower(&both(4096), &ONE).unwrap(),
        "
        (%0: f32[4096, 64], %1: f32[4096, 64]) {
          %2: f32[4096] = fused(%0) { r1 = Exp r0; Sum over [1] }
          %3: f32[4096] = fused(%0, %1) { r2 = Exp r0; r3 = Mul r2, r1; Sum over [1] }
          return %2, %3
        }
    ",
    );
}

#[test]
fn two_results_of_kernels_are_not_kept_for_a_sum_that_comes_later() {
    let mut m = Make::new();
    let (x, w) = (m.f32(&[64, 64]), m.f32(&[64, 64]));
    let a = m.matmul(&x, &w);
    let b = m.matmul(&a, &w);
    let sum = m.add(&a, &b); // a and b die here
    let c = m.matmul(&sum, &x);
    let d = m.matmul(&c, &w);
    let sum = m.add(&c, &d);
    let e = m.matmul(&x, &x);
    let last = m.mul(&sum, &e);
    check(
        &m.finish(&[&last]),
        1 << 20,
        "
        (%0: f32[64, 64], %1: f32[64, 64]) {
          %2: f32[64, 64] = matmul(%0, %1)
          %3: f32[64, 64] = matmul(%2, %1)
          %4: f32[64, 64] = add(%3, %2)
          %5: f32[64, 64] = matmul(%4, %0)
          %6: f32[64, 64] = matmul(%5, %1)
          %7: f32[64, 64] = add(%6, %5)
          %8: f32[64, 64] = matmul(%0, %0)
          %9: f32[64, 64] = mul(%7, %8)
          return %9
        }
    ",
    );
}

#[test]
fn sixteen_bits_are_rounded_as_if_they_lay_in_memory() {
    let mut m = Make::new();
    let x = m.input(DType::F16, &[8]);
    let y = m.times(&x, 0.1);
    let y = m.exp(&y);
    let y = m.cast(&y, DType::F32);
    let y = m.plus(&y, 1.0);
    check(&m.finish(&[&y]), 0, "
        (%0: f16[8]) {
          %1: f32[8] = fused(%0) { r1 = Const(Float(0.0999755859375)); r2 = Mul r0, r1; r3 = RoundTo(F16) r2; r4 = Exp r3; r5 = RoundTo(F16) r4; r6 = Const(Float(1.0)); r7 = Add r5, r6 }
          return %1
        }
    ");
}

#[test]
fn a_sum_of_broadcasts_is_broadcast_once() {
    let mut m = Make::new();
    let (x, row) = (m.f32(&[ROWS, COLS]), m.f32(&[COLS]));
    let wide = m.broadcast(&row, &[ROWS, COLS]);
    let power = m.exp(&wide);
    let both = m.add(&wide, &power);
    let y = m.mul(&x, &both);
    check(
        &m.finish(&[&y]),
        COLS * 4,
        "
        (%0: f32[256, 512], %1: f32[512]) {
          %2: f32[512] = fused(%1) { r1 = Exp r0; r2 = Add r1, r0 }
          %3: f32[256, 512] = mul(%2, %0)
          return %3
        }
    ",
    );
}

#[test]
fn a_long_chain_is_cut_where_registers_end() {
    let mut m = Make::new();
    let x = m.f32(&[8]);
    let mut y = x.clone();
    for i in 0..100 {
        y = m.plus(&y, f64::from(i) + 0.5);
        y = m.tanh(&y);
    }
    let lowered = lower(&m.finish(&[&y]), &ONE).unwrap();
    let code = |node: &tonnage_core::Node| match &node.attrs {
        Attrs::Tile(program) => program.code.len(),
        _ => 0,
    };
    assert!(lowered.nodes.iter().all(|n| code(n) <= 3 * 64), "{lowered}");
    assert_eq!(lowered.nodes.iter().filter(|n| n.op.name == "fused").count(), lowered.nodes.len());
    assert!(lowered.nodes.len() <= 5, "{lowered}");
}

#[test]
fn transposes_of_gradients_are_attributes() {
    let mut m = Make::new();
    let (x, w, g) = (m.f32(&[8, 16]), m.f32(&[16, 32]), m.f32(&[8, 32]));
    let wt = m.transpose(&w, &[1, 0]);
    let dx = m.matmul(&g, &wt);
    let attrs = Attrs::Matmul { transpose_a: false, transpose_b: true };
    let again = m.op(&linalg::matmul::MATMUL, &[&g, &w], attrs);
    let xt = m.transpose(&x, &[1, 0]);
    let dw = m.matmul(&xt, &g);
    let both = m.add(&dx, &again);
    check(
        &m.finish(&[&both, &dw]),
        1 << 20,
        "
        (%0: f32[8, 16], %1: f32[16, 32], %2: f32[8, 32]) {
          %3: f32[8, 16] = matmul(%2, %1) right transposed
          %4: f32[16, 32] = matmul(%0, %2) left transposed
          %5: f32[8, 16] = add(%3, %3)
          return %5, %4
        }
    ",
    );
}
