//! NaN, infinities and the ends of integers, as the ops' words say.

use tonnage_core::attrs::Attrs;
use tonnage_core::{DType, Sizes};

use crate::exec::Engine;
use crate::exec::tensor::Tensor;
use crate::plain::{Plain, held};

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

const FLOATS: [DType; 4] = [DType::F64, DType::F32, DType::F16, DType::BF16];

/// Runs an op on vectors and compares by value, where NaN equals NaN and the sign of 0 counts.
#[track_caller]
fn check(name: &str, dtype: DType, attrs: &Attrs, inputs: &[&[f64]], expected: &[f64]) {
    let tensors = inputs
        .iter()
        .map(|values| Tensor::from_plain(&Plain::new(dtype, vec![values.len()], values.to_vec())));
    let op = tonnage_ops::find(name).expect("a row");
    let made = Engine::plain().run(op, tensors.collect(), attrs, &[], false).expect("a result");
    let got = made[0].plain();
    let same = |(got, expected): (&f64, &f64)| {
        (got.is_nan() && expected.is_nan())
            || got.to_bits() == held(*expected, made[0].dtype).to_bits()
    };
    let all = got.values.len() == expected.len() && got.values.iter().zip(expected).all(same);
    assert!(all, "{name} of {dtype} {inputs:?} is {:?}, not {expected:?}", got.values);
}

#[test]
fn relu_keeps_nan_and_cuts_off_below_zero() {
    for dtype in FLOATS {
        let x = [NAN, INF, -INF, -1.5, 2.5, 0.0];
        check("relu", dtype, &Attrs::None, &[&x], &[NAN, INF, 0.0, 0.0, 2.5, 0.0]);
    }
}

#[test]
fn nan_wins_in_maximum_on_either_side() {
    for dtype in FLOATS {
        let (a, b) = ([NAN, 1.0, INF, -INF, NAN], [1.0, NAN, 2.0, -INF, NAN]);
        check("maximum", dtype, &Attrs::None, &[&a, &b], &[NAN, NAN, INF, -INF, NAN]);
    }
}

fn over_all() -> Attrs {
    Attrs::Reduce { axes: Sizes::from_slice(&[0]), keep_dims: false }
}

#[test]
fn nan_wins_in_max_wherever_it_stands() {
    for dtype in FLOATS {
        for len in [1, 3, 31, 33, 600] {
            for at in [0, len / 2, len - 1] {
                let mut x = vec![1.0; len];
                x[at] = NAN;
                check("max", dtype, &over_all(), &[&x], &[NAN]);
                x[at] = INF;
                check("max", dtype, &over_all(), &[&x], &[INF]);
            }
            check("max", dtype, &over_all(), &[&vec![-INF; len]], &[-INF]);
        }
    }
}

#[test]
fn reductions_of_nothing_give_the_identity() {
    for dtype in FLOATS {
        check("max", dtype, &over_all(), &[&[]], &[-INF]);
        check("sum", dtype, &over_all(), &[&[]], &[0.0]);
    }
    for (dtype, least) in [
        (DType::I8, -128.0),
        (DType::I16, -32768.0),
        (DType::I32, i32::MIN as f64),
        (DType::I64, i64::MIN as f64),
        (DType::U8, 0.0),
        (DType::U64, 0.0),
    ] {
        check("max", dtype, &over_all(), &[&[]], &[least]);
        check("sum", dtype, &over_all(), &[&[]], &[0.0]);
    }
}

#[test]
fn infinities_and_nan_go_through_sums() {
    for dtype in FLOATS {
        check("sum", dtype, &over_all(), &[&[1.0, INF, 2.0]], &[INF]);
        check("sum", dtype, &over_all(), &[&[INF, -INF]], &[NAN]);
        check("sum", dtype, &over_all(), &[&[1.0, NAN]], &[NAN]);
    }
}

#[test]
fn comparisons_with_nan_are_false() {
    for dtype in FLOATS {
        let (a, b) = ([NAN, 1.0, NAN, -INF, 0.0], [1.0, NAN, NAN, INF, -0.0]);
        check("less", dtype, &Attrs::None, &[&a, &b], &[0.0, 0.0, 0.0, 1.0, 0.0]);
        check("equal", dtype, &Attrs::None, &[&a, &b], &[0.0, 0.0, 0.0, 0.0, 1.0]);
    }
}

#[test]
fn softmax_of_huge_values_does_not_overflow_and_minus_infinity_gets_nothing() {
    let along = Attrs::None;
    for dtype in FLOATS {
        check("softmax", dtype, &along, &[&[30000.0, 30000.0]], &[0.5, 0.5]);
        check("softmax", dtype, &along, &[&[-INF, 3.0]], &[0.0, 1.0]);
        check("softmax", dtype, &along, &[&[-INF, -INF]], &[NAN, NAN]);
        check("softmax", dtype, &along, &[&[NAN, 1.0]], &[NAN, NAN]);
    }
}

#[test]
fn logarithms_of_shares_and_sums_end_where_they_should() {
    for dtype in FLOATS {
        let check = |name, attrs: &Attrs, x: &[f64], y: &[f64]| check(name, dtype, attrs, &[x], y);
        check("log_softmax", &Attrs::None, &[-INF, 3.0], &[-INF, 0.0]);
        for row in [[-INF, -INF], [INF, 1.0], [INF, -INF], [NAN, 1.0], [NAN, -INF]] {
            check("log_softmax", &Attrs::None, &row, &[NAN, NAN]);
        }
        check("logsumexp", &over_all(), &[], &[-INF]);
        check("logsumexp", &over_all(), &[-INF, -INF], &[-INF]);
        check("logsumexp", &over_all(), &[-INF, 3.0], &[3.0]);
        check("logsumexp", &over_all(), &[INF, -INF, 1.0], &[INF]);
        check("logsumexp", &over_all(), &[NAN, 1.0], &[NAN]);
    }
}

#[test]
fn functions_end_where_they_should() {
    for dtype in FLOATS {
        check("exp", dtype, &Attrs::None, &[&[INF, -INF, 0.0, NAN]], &[INF, 0.0, 1.0, NAN]);
        let x = [0.0, -1.0, INF, 1.0, NAN];
        check("log", dtype, &Attrs::None, &[&x], &[-INF, NAN, INF, 0.0, NAN]);
        check("tanh", dtype, &Attrs::None, &[&[INF, -INF, 0.0, NAN]], &[1.0, -1.0, 0.0, NAN]);
        check("div", dtype, &Attrs::None, &[&[1.0, -1.0, 0.0], &[0.0; 3]], &[INF, -INF, NAN]);
    }
}

#[test]
fn integers_wrap_around_and_divide_by_zero_to_zero() {
    check("add", DType::I8, &Attrs::None, &[&[127.0, -128.0], &[1.0, -1.0]], &[-128.0, 127.0]);
    check("neg", DType::I8, &Attrs::None, &[&[-128.0, 5.0]], &[-128.0, -5.0]);
    check("neg", DType::U8, &Attrs::None, &[&[1.0, 0.0]], &[255.0, 0.0]);
    check("mul", DType::U16, &Attrs::None, &[&[65535.0], &[65535.0]], &[1.0]);
    check(
        "div",
        DType::I32,
        &Attrs::None,
        &[&[7.0, -7.0, 7.0], &[0.0, 2.0, -2.0]],
        &[0.0, -3.0, -3.0],
    );
    check("div", DType::I8, &Attrs::None, &[&[-128.0], &[-1.0]], &[-128.0]);
    check("sum", DType::U8, &over_all(), &[&[200.0, 100.0]], &[44.0]);
    check("sum", DType::I8, &over_all(), &[&[100.0, 100.0]], &[-56.0]);
}

#[test]
fn casts_cut_off_saturate_and_wrap() {
    let to = |dtype| Attrs::DType(dtype);
    for dtype in FLOATS {
        let x = [NAN, INF, -INF, 300.0, -1.5, 2.75];
        check("cast", dtype, &to(DType::U8), &[&x], &[0.0, 255.0, 0.0, 255.0, 0.0, 2.0]);
        check("cast", dtype, &to(DType::I8), &[&x], &[0.0, 127.0, -128.0, 127.0, -1.0, 2.0]);
        check("cast", dtype, &to(DType::Bool), &[&x], &[1.0; 6]);
        check("cast", dtype, &to(DType::F64), &[&x], &x);
    }
    check("cast", DType::I32, &to(DType::U8), &[&[300.0, -1.0]], &[44.0, 255.0]);
    check("cast", DType::F64, &to(DType::F16), &[&[70000.0, 1e-9]], &[INF, 0.0]);
}

#[test]
fn nan_goes_through_products() {
    let attrs = Attrs::Matmul { transpose_a: false, transpose_b: false };
    let matrix =
        |values: [f64; 4]| Tensor::from_plain(&Plain::new(DType::F32, vec![2, 2], values.to_vec()));
    let op = tonnage_ops::find("matmul").expect("a row");
    // Zeros are multiplied too: 0 times infinity is NaN.
    let inputs = vec![matrix([0.0, 1.0, 1.0, 0.0]), matrix([INF, 1.0, 1.0, NAN])];
    let made = Engine::plain().run(op, inputs, &attrs, &[], false).expect("a product");
    let got = made[0].plain().values;
    assert!(got[0].is_nan() && got[1].is_nan() && got[2] == INF && got[3].is_nan(), "{got:?}");
}

#[test]
fn the_first_of_indices_beyond_32_bits_is_found_as_well() {
    let far = f64::from(u32::MAX) * 4.0;
    let x = [far, 3.0, far + 4.0, 3.0, far, far + 4.0, 0.0];
    check("first_of", DType::I64, &Attrs::None, &[&x], &[0.0, 1.0, 2.0, 1.0, 0.0, 2.0, 6.0]);
}
