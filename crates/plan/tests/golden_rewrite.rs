//! What each rewrite makes of a graph, as text.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

mod common;

use common::{Make, reads};
use tonnage_core::attrs::Attrs;
use tonnage_core::{DType, Graph, OpDef, Scalar, Shape};
use tonnage_cpu::CpuTarget;
use tonnage_ops::{control, index, math, random, shape};
use tonnage_plan::{Machine, Rewrite, lower, rewrite};

/// One thread of a CPU.
const ONE: CpuTarget = CpuTarget::new(1, Machine::DEFAULT);

const BRANCH: Attrs = Attrs::Branch { key: None, updates: Vec::new() };

#[track_caller]
fn check(graph: &Graph, which: &[Rewrite], expected: &str) {
    reads(&rewrite(graph, which, &ONE).unwrap(), expected);
}

#[test]
fn functions_of_fills_are_fills_however_large() {
    let mut m = Make::new();
    let big = m.fill(3, DType::F32, &[1000, 1000, 1000]);
    let transposed = m.transpose(&big, &[2, 0, 1]);
    let part = m.slice(&transposed, &[(0, 10, 1), (5, 20, 2), (0, 1000, 1)]);
    let twice = m.times(&part, 2.0);
    let power = m.exp(&twice);
    let whole = m.cast(&power, DType::I32);
    let ones = m.fill(0.5, DType::F32, &[8, 16]);
    let total = m.sum(&ones, &[1]);
    check(
        &m.finish(&[&whole, &total]),
        &[Rewrite::Fold],
        "
        () {
          %0: i32[10, 20, 1000] = fill() with 403
          %1: f32[8] = fill() with 8.0
          return %0, %1
        }
    ",
    );
}

#[test]
fn a_large_reduction_to_one_number_is_that_number_and_to_several_is_left_to_the_call() {
    let mut m = Make::new();
    let big = m.fill(1.0, DType::F32, &[1000, 1000]);
    let (total, rows) = (m.sum(&big, &[0, 1]), m.sum(&big, &[1]));
    check(
        &m.finish(&[&total, &rows]),
        &[Rewrite::Fold],
        "
        () {
          %0: f32[1000, 1000] = fill() with 1.0
          %1: f32[] = fill() with 1000000.0
          %2: f32[1000] = sum(%0) over [1]
          return %1, %2
        }
    ",
    );
}

#[test]
fn the_same_node_is_there_once_and_effects_and_draws_are_not_merged() {
    let mut m = Make::new();
    let (x, v) = (m.f32(&[2, 3]), m.variable(&[2, 3]));
    let (a, b) = (m.exp(&x), m.exp(&x));
    let c = m.add(&a, &b);
    let draw = |m: &mut Make, n| {
        let key = tonnage_core::recipe::Key::PerCall(n);
        let distribution = tonnage_core::recipe::Distribution::Uniform;
        let (dtype, shape) = (DType::F32, [2, 3].into());
        let attrs = Attrs::Random { key, distribution, dtype, shape };
        m.op(&random::distribution::RANDOM_UNIFORM, &[], attrs)
    };
    let (first, again, second) = (draw(&mut m, 0), draw(&mut m, 0), draw(&mut m, 1));
    let drawn = m.add(&first, &again);
    let drawn = m.mul(&drawn, &second);
    let before = m.exp(&v);
    let once = m.assign(&v, &c);
    let after = m.exp(&once);
    let twice = m.assign(&once, &c);
    check(
        &m.finish(&[&drawn, &before, &after, &twice]),
        &[Rewrite::Merge],
        "
        (%0: f32[2, 3], %1: f32[2, 3] `v`) {
          %2: f32[2, 3] = exp(%0)
          %3: f32[2, 3] = add(%2, %2)
          %4: f32[2, 3] = random_uniform() PerCall(0)
          %5: f32[2, 3] = random_uniform() PerCall(1)
          %6: f32[2, 3] = add(%4, %4)
          %7: f32[2, 3] = mul(%6, %5)
          %8: f32[2, 3] = exp(%1)
          %9: f32[2, 3] = assign(%1, %3)
          %10: f32[2, 3] = exp(%9)
          %11: f32[2, 3] = assign(%9, %3)
          return %7, %8, %10, %11
        }
    ",
    );
}

#[test]
fn a_gradients_extra_outputs_join_the_op_that_has_none() {
    let mut m = Make::new();
    let x = m.f32(&[16]);
    let plain = m.one(&math::relu::RELU, &x);
    let kept = m.regions(&math::relu::RELU, &[&x], Attrs::None, Vec::new());
    let id = kept[0].id().unwrap();
    let bits = m.0.aux(id).unwrap();
    let y = m.add(&plain, &kept[0]);
    check(
        &m.finish(&[&y, &bits[0]]),
        &[Rewrite::Merge],
        "
        (%0: f32[16]) {
          %1: f32[16], %2: u8[2] = relu(%0)
          %3: f32[16] = add(%1, %1)
          return %3, %2
        }
    ",
    );
}

#[test]
fn equal_branches_are_merged_however_their_values_are_numbered() {
    let branch = |dead: bool| {
        let mut m = Make::new();
        let x = m.f32(&[4]);
        if dead {
            m.tanh(&x);
        }
        let y = m.exp(&x);
        m.finish(&[&y])
    };
    let mut m = Make::new();
    let (c, x) = (m.input(DType::Bool, &[]), m.f32(&[4]));
    let cond = &control::cond::COND;
    let a = m.regions(cond, &[&c, &x], BRANCH, vec![branch(false), branch(false)]);
    let b = m.regions(cond, &[&c, &x], BRANCH, vec![branch(true), branch(false)]);
    let y = m.add(&a[0], &b[0]);
    check(
        &m.finish(&[&y]),
        &[Rewrite::Merge],
        "
        (%0: bool[], %1: f32[4]) {
          %2: f32[4] = cond(%0, %1) (%0: f32[4]) {
            %1: f32[4] = exp(%0)
            return %1
          } (%0: f32[4]) {
            %1: f32[4] = exp(%0)
            return %1
          }
          %3: f32[4] = add(%2, %2)
          return %3
        }
    ",
    );
}

#[test]
fn views_of_views_are_one_and_views_that_change_nothing_none() {
    let mut m = Make::new();
    let x = m.f32(&[4, 6, 8]);
    let a = m.transpose(&x, &[2, 0, 1]);
    let a = m.transpose(&a, &[1, 2, 0]); // back again
    let b = m.slice(&a, &[(0, 4, 1), (1, 4, 1), (7, 4, -2)]);
    let b = m.slice(&b, &[(1, 2, 2), (0, 4, 1), (3, 2, -1)]);
    let c = m.reshape(&b, &[4, 4]);
    let c = m.reshape(&c, &[16]);
    let c = m.reshape(&c, &[16]);
    let d = m.broadcast(&c, &[3, 16]);
    let d = m.broadcast(&d, &[5, 3, 16]);
    let d = m.slice(&d, &[(0, 5, 1), (0, 3, 1), (0, 16, 1)]);
    let d = m.one(&math::stop_gradient::STOP_GRADIENT, &d);
    check(
        &m.finish(&[&d]),
        &[Rewrite::Views],
        "
        (%0: f32[4, 6, 8]) {
          %1: f32[2, 4, 2] = slice(%0) at [1+2 by 2, 1+4, 1+2 by 2]
          %2: f32[16] = reshape(%1)
          %3: f32[5, 3, 16] = broadcast_to(%2)
          return %3
        }
    ",
    );
}

#[test]
fn a_copy_stays_where_it_was_asked_for_and_goes_where_there_is_one() {
    let mut m = Make::new();
    let x = m.f32(&[4]);
    let mine = m.one(&math::identity::IDENTITY, &x);
    let mine = m.one(&math::identity::IDENTITY, &mine);
    let y = m.exp(&x);
    let copy = m.one(&math::identity::IDENTITY, &y);
    check(
        &m.finish(&[&mine, &copy]),
        &[Rewrite::Views],
        "
        (%0: f32[4]) {
          %1: f32[4] = identity(%0)
          %2: f32[4] = exp(%0)
          return %1, %2
        }
    ",
    );
}

#[test]
fn a_reshape_that_copies_for_a_kernel_stays() {
    let mut m = Make::new();
    let (x, w) = (m.f32(&[2, 6]), m.f32(&[2, 5]));
    let x = m.transpose(&x, &[1, 0]);
    let x = m.reshape(&x, &[12]);
    let x = m.reshape(&x, &[6, 2]);
    let y = m.matmul(&x, &w);
    check(
        &m.finish(&[&y]),
        &[Rewrite::Views],
        "
        (%0: f32[2, 6], %1: f32[2, 5]) {
          %2: f32[6, 2] = transpose(%0) to [1, 0]
          %3: f32[12] = reshape(%2)
          %4: f32[6, 2] = reshape(%3)
          %5: f32[6, 5] = matmul(%4, %1)
          return %5
        }
    ",
    );
}

#[test]
fn identities_of_floats_keep_zeros_and_nans() {
    let mut m = Make::new();
    let x = m.f32(&[3]);
    let a = m.times(&x, 1.0);
    let a = m.plus(&a, -0.0);
    let a = m.one(&math::neg::NEG, &a);
    let a = m.one(&math::neg::NEG, &a);
    let a = m.two(&math::extremum::MAXIMUM, &a, &a);
    let same = m.mul(&a, &x);
    let zero = m.plus(&x, 0.0); // stays: -0 becomes 0
    let half = m.number(8.0, DType::F32);
    let half = m.div(&x, &half);
    let third = m.number(3.0, DType::F32);
    let third = m.div(&x, &third);
    let twice = m.times(&x, 2.0);
    let c = m.cast(&x, DType::F64);
    let c = m.cast(&c, DType::F32);
    check(
        &m.finish(&[&same, &zero, &half, &third, &twice, &c]),
        &[Rewrite::Fold, Rewrite::Identities],
        "
            (%0: f32[3]) {
              %1: f32[3] = square(%0)
              %2: f32[] = fill() with 0.0
              %3: f32[3] = add(%0, %2)
              %4: f32[] = fill() with 0.125
              %5: f32[3] = mul(%0, %4)
              %6: f32[] = fill() with 3.0
              %7: f32[3] = div(%0, %6)
              %8: f32[3] = add(%0, %0)
              return %1, %3, %5, %7, %8, %0
            }
        ",
    );
}

#[test]
fn identities_of_integers_are_those_of_a_ring() {
    let mut m = Make::new();
    let (x, y) = (m.input(DType::I32, &[3]), m.input(DType::I32, &[3]));
    let (three, five) = (m.number(3, DType::I32), m.number(5, DType::I32));
    let a = m.sub(&x, &three);
    let a = m.add(&a, &five);
    let b = m.mul(&x, &three);
    let b = m.mul(&b, &five);
    let c = m.sub(&x, &x);
    let c = m.add(&c, &y);
    let d = m.one(&math::neg::NEG, &y);
    let d = m.add(&x, &d);
    let e = m.two(&math::comparison::EQUAL, &x, &x);
    let f = m.two(&math::comparison::LESS, &x, &x);
    let which = [Rewrite::Fold, Rewrite::Identities, Rewrite::Broadcasts, Rewrite::Order];
    check(
        &m.finish(&[&a, &b, &c, &d, &e, &f]),
        &which,
        "
        (%0: i32[3], %1: i32[3]) {
          %2: i32[] = fill() with 2
          %3: i32[3] = add(%0, %2)
          %4: i32[] = fill() with 15
          %5: i32[3] = mul(%0, %4)
          %6: i32[3] = sub(%0, %1)
          %7: bool[3] = fill() with true
          %8: bool[3] = fill() with false
          return %3, %5, %1, %6, %7, %8
        }
    ",
    );
}

#[test]
fn a_choice_that_is_known_is_made() {
    let mut m = Make::new();
    let (c, x, y) = (m.input(DType::Bool, &[3]), m.f32(&[3]), m.f32(&[3]));
    let yes = m.number(true, DType::Bool);
    let a = m.op(&math::where_::WHERE, &[&yes, &x, &y], Attrs::None);
    let b = m.op(&math::where_::WHERE, &[&c, &y, &y], Attrs::None);
    let branch = |op| {
        let mut m = Make::new();
        let x = m.f32(&[3]);
        let y = m.one(op, &x);
        m.finish(&[&y])
    };
    let regions = vec![branch(&math::exp::EXP), branch(&math::tanh::TANH)];
    let d = m.regions(&control::cond::COND, &[&yes, &x], BRANCH, regions);
    check(
        &m.finish(&[&a, &b, &d[0]]),
        &Rewrite::ALL,
        "
        (%0: bool[3], %1: f32[3], %2: f32[3]) {
          %3: f32[3] = exp(%1)
          return %1, %2, %3
        }
    ",
    );
}

#[test]
fn broadcasts_that_the_op_does_itself_are_not_written() {
    let mut m = Make::new();
    let (x, row) = (m.f32(&[4, 6]), m.f32(&[6]));
    let wide = m.broadcast(&row, &[4, 6]);
    let a = m.mul(&x, &wide);
    let ones = m.fill(1.5, DType::F32, &[4, 6]);
    let a = m.add(&a, &ones);
    let lifted = m.reshape(&row, &[1, 6]);
    let a = m.add(&a, &lifted);
    let b = m.add(&wide, &wide);
    check(
        &m.finish(&[&a, &b]),
        &[Rewrite::Broadcasts, Rewrite::Merge],
        "
            (%0: f32[4, 6], %1: f32[6]) {
              %2: f32[4, 6] = mul(%0, %1)
              %3: f32[] = fill() with 1.5
              %4: f32[4, 6] = add(%2, %3)
              %5: f32[4, 6] = add(%4, %1)
              %6: f32[6] = add(%1, %1)
              %7: f32[4, 6] = broadcast_to(%6)
              return %5, %7
            }
        ",
    );
}

#[test]
fn operands_stand_in_one_order_and_reductions_in_one_form() {
    let mut m = Make::new();
    let (x, y) = (m.f32(&[4, 6]), m.f32(&[4, 6]));
    let a = m.add(&x, &y);
    let b = m.add(&y, &x);
    let two = m.number(2.0, DType::F32);
    let a = m.mul(&two, &a);
    let b = m.mul(&b, &two);
    let c = m.two(&math::extremum::MAXIMUM, &y, &x); // of zeros the second comes out
    let (kept, plain) = (m.sum_keep(&a, &[1]), m.sum(&b, &[1]));
    check(
        &m.finish(&[&kept, &plain, &c]),
        &[Rewrite::Order, Rewrite::Merge],
        "
        (%0: f32[4, 6], %1: f32[4, 6]) {
          %2: f32[4, 6] = add(%0, %1)
          %3: f32[] = fill() with 2.0
          %4: f32[4, 6] = mul(%2, %3)
          %5: f32[4, 6] = maximum(%1, %0)
          %6: f32[4] = sum(%4) over [1]
          %7: f32[4, 1] = reshape(%6)
          return %7, %6, %5
        }
    ",
    );
}

#[test]
fn transposes_become_attributes_of_a_product() {
    let mut m = Make::new();
    let (x, w) = (m.f32(&[5, 4, 3]), m.f32(&[6, 3]));
    let (xt, wt) = (m.transpose(&x, &[0, 2, 1]), m.transpose(&w, &[1, 0]));
    let a = m.matmul(&x, &wt);
    let attrs = Attrs::Matmul { transpose_a: true, transpose_b: true };
    let b = m.op(&tonnage_ops::linalg::matmul::MATMUL, &[&xt, &w], attrs);
    let y = m.add(&a, &b);
    check(
        &m.finish(&[&y]),
        &[Rewrite::Matmul, Rewrite::Merge],
        "
        (%0: f32[5, 4, 3], %1: f32[6, 3]) {
          %2: f32[5, 4, 6] = matmul(%0, %1) right transposed
          %3: f32[5, 4, 6] = add(%2, %2)
          return %3
        }
    ",
    );
}

#[test]
fn sizes_that_one_mask_decides_are_one_size_and_others_are_not() {
    let mut m = Make::new();
    let (x, keep, other) = (m.f32(&[8]), m.input(DType::Bool, &[8]), m.input(DType::Bool, &[8]));
    let a = m.op(&index::boolean_mask::BOOLEAN_MASK, &[&x, &keep], Attrs::None);
    let b = m.op(&index::boolean_mask::BOOLEAN_MASK, &[&x, &keep], Attrs::None);
    let c = m.op(&index::boolean_mask::BOOLEAN_MASK, &[&x, &other], Attrs::None);
    let places = m.op(&index::nonzero::NONZERO, &[&keep], Attrs::None);
    assert_eq!((a.ty(), &a.ty().shape[0]), (b.ty(), &places.ty().shape[0]));
    assert_ne!(a.ty(), c.ty());
    let (d, e) = (m.exp(&a), m.exp(&b));
    let f = m.add(&d, &e);
    let graph = m.finish(&[&f, &c]);
    check(
        &graph,
        &[Rewrite::Merge],
        "
        (%0: f32[8], %1: bool[8], %2: bool[8]) {
          %3: f32[true_count] = boolean_mask(%0, %1)
          %4: f32[true_count] = boolean_mask(%0, %2)
          %5: f32[true_count] = exp(%3)
          %6: f32[true_count] = add(%5, %5)
          return %6, %4
        }
    ",
    );
    lower(&graph, &ONE).unwrap();
}

#[test]
fn what_decides_a_size_stays_where_only_the_size_is_read() {
    type Sized = fn(Shape) -> Attrs;
    let reads: [(&'static OpDef, Sized); 3] = [
        (&shape::lengths::LENGTHS, |of| Attrs::Lengths { of, dtype: DType::I64 }),
        (&shape::fill::FILL, |shape| Attrs::Fill {
            value: Scalar::Int(1),
            dtype: DType::F32,
            shape,
        }),
        (&shape::range::RANGE, |shape| Attrs::Range {
            start: Scalar::Int(0),
            step: Scalar::Int(1),
            len: shape[0].clone(),
            dtype: DType::I64,
        }),
    ];
    for (op, attrs) in reads {
        let mut m = Make::new();
        let (x, keep) = (m.f32(&[8]), m.input(DType::Bool, &[8]));
        let kept = m.op(&index::boolean_mask::BOOLEAN_MASK, &[&x, &keep], Attrs::None);
        let made = m.op(op, &[], attrs(kept.ty().shape.clone()));
        let mut graph = lower(&m.finish(&[&made]), &ONE).unwrap();
        let names: Vec<&str> = graph.nodes.iter().map(|node| node.op.name).collect();
        assert_eq!(names, ["boolean_mask", op.name]);
        assert_eq!(graph.part(&graph.outputs.clone()).graph.nodes.len(), 2, "{}", op.name);
        assert_eq!(graph.size_deciders()[1].as_slice(), [0]);
        graph.outputs.clear();
        graph.prune();
        assert!(graph.nodes.is_empty(), "nothing needs the size any more");
    }
}
