//! What rewrites make of branches and loops, as text.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

mod common;

use common::{Make, reads};
use tonnage_core::attrs::Attrs;
use tonnage_core::looping::{Iterations, Loop};
use tonnage_core::recipe::Key;
use tonnage_core::{DType, Graph};
use tonnage_cpu::CpuTarget;
use tonnage_ops::{control, math};
use tonnage_plan::{Machine, Rewrite, rewrite};

const BRANCH: Attrs = Attrs::Branch { key: None, updates: Vec::new() };

#[track_caller]
fn check(graph: &Graph, which: &[Rewrite], expected: &str) {
    reads(&rewrite(graph, which, &CpuTarget::new(1, Machine::DEFAULT)).unwrap(), expected);
}

#[test]
fn what_nobody_needs_of_a_loop_is_gone() {
    // i counts, s is asked for, t feeds s, and u only keeps itself; of two captures one is read.
    let types: [(DType, &[usize]); 6] = [
        (DType::I32, &[]),
        (DType::F32, &[4]),
        (DType::F32, &[4]),
        (DType::F32, &[4]),
        (DType::F32, &[4]),
        (DType::F32, &[4]),
    ];
    let mut m = Make::new();
    let v: Vec<_> = types.iter().map(|(d, s)| m.input(*d, s)).collect();
    let limit = m.number(5, DType::I32);
    let less = m.two(&math::comparison::LESS, &v[0], &limit);
    let condition = m.finish(&[&less]);
    let mut m = Make::new();
    let v: Vec<_> = types.iter().map(|(d, s)| m.input(*d, s)).collect();
    let one = m.number(1, DType::I32);
    let i = m.add(&v[0], &one);
    let s = m.add(&v[1], &v[2]);
    let t = m.mul(&v[2], &v[4]);
    let u = m.mul(&v[3], &v[5]);
    let body = m.finish(&[&i, &s, &t, &u]);
    let mut m = Make::new();
    let v: Vec<_> = types.iter().map(|(d, s)| m.input(*d, s)).collect();
    let inputs: Vec<_> = v.iter().collect();
    let attrs = Attrs::Loop(Box::new(Loop {
        carried: 4,
        sliced: 0,
        stacked: 0,
        iterations: Iterations::While { most: None },
        reverse: false,
        max_checkpoints: None,
        spills: false,
        key: Key::PerCall(0),
        updates: Vec::new(),
    }));
    let made = m.regions(&control::while_loop::WHILE_LOOP, &inputs, attrs, vec![condition, body]);
    check(&m.finish(&[&made[1]]), &[], "
        (%0: i32[], %1: f32[4], %2: f32[4], %3: f32[4], %4: f32[4], %5: f32[4]) {
          %6: i32[], %7: f32[4], %8: f32[4] = while_loop(%0, %1, %2, %4) carrying 3 (%0: i32[], %1: f32[4], %2: f32[4], %3: f32[4]) {
            %4: i32[] = fill() with 5
            %5: bool[] = less(%0, %4)
            return %5
          } (%0: i32[], %1: f32[4], %2: f32[4], %3: f32[4]) {
            %4: i32[] = fill() with 1
            %5: i32[] = add(%0, %4)
            %6: f32[4] = add(%1, %2)
            %7: f32[4] = mul(%2, %3)
            return %5, %6, %7
          }
          return %7
        }
    ");
}

#[test]
fn what_nobody_needs_of_a_branch_is_gone() {
    let branch = |op| {
        let mut m = Make::new();
        let (x, y) = (m.f32(&[4]), m.f32(&[4]));
        let (a, b) = (m.one(op, &x), m.one(op, &y));
        m.finish(&[&a, &b])
    };
    let mut m = Make::new();
    let (c, x, y) = (m.input(DType::Bool, &[]), m.f32(&[4]), m.f32(&[4]));
    let regions = vec![branch(&math::exp::EXP), branch(&math::tanh::TANH)];
    let made = m.regions(&control::cond::COND, &[&c, &x, &y], BRANCH, regions);
    check(
        &m.finish(&[&made[1]]),
        &[],
        "
        (%0: bool[], %1: f32[4], %2: f32[4]) {
          %3: f32[4] = cond(%0, %2) (%0: f32[4]) {
            %1: f32[4] = exp(%0)
            return %1
          } (%0: f32[4]) {
            %1: f32[4] = tanh(%0)
            return %1
          }
          return %3
        }
    ",
    );
}
