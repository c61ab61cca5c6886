//! What is made of powers of e loses no digits where all logits are large: every such op, at every distance from zero, in
//! every float dtype, along every axis, eagerly, in a function, and under the least budget; values, gradients, tangents.
//!
//! The reference is a plain loop in f64 over the inputs as they were rounded.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{
    Attention, Bytes, DType, Elementwise, ErrorKind, Result, Tensor, function, grad_wrt, jvp,
    tensor, value_and_grad_wrt, vjp,
};

use crate::common::own_context;

const SHIFTS: [f64; 7] = [0.0, 1.0, 1e3, 1e6, 1e7, -1e7, 3e38];
const DTYPES: [DType; 4] = [DType::F64, DType::F32, DType::F16, DType::BF16];
const SIZES: [usize; 3] = [4, 3, 5];
const CLASSES: usize = SIZES[2];

/// A result of a row, and the gradient of the row for gradients of the result.
type Made = (Vec<f64>, Vec<f64>);

struct Op {
    name: &'static str,
    axes: &'static [i64],
    run: fn(&Tensor, i64) -> Result<Tensor>,
    /// Of a row with its number, and the gradients of its results, as many as are used.
    reference: fn(&[f64], usize, &[f64]) -> Made,
    /// Whether results are exact relative to themselves, not only to 1.
    relative: bool,
}

fn log_sum(row: &[f64]) -> (f64, f64) {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let base = if most.is_finite() { most } else { 0.0 };
    (base, row.iter().map(|x| (x - base).exp()).sum::<f64>().ln())
}

fn logs(row: &[f64]) -> Vec<f64> {
    let (base, log) = log_sum(row);
    row.iter().map(|x| (x - base) - log).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn softmax(row: &[f64], _: usize, g: &[f64]) -> Made {
    let p: Vec<f64> = logs(row).iter().map(|x| x.exp()).collect();
    let shared = dot(&p, g);
    let back = p.iter().zip(g).map(|(p, g)| p * (g - shared)).collect();
    (p, back)
}

fn log_softmax(row: &[f64], _: usize, g: &[f64]) -> Made {
    let made = logs(row);
    let sum: f64 = g.iter().sum();
    let back = made.iter().zip(g).map(|(y, g)| g - y.exp() * sum).collect();
    (made, back)
}

fn logsumexp(row: &[f64], _: usize, g: &[f64]) -> Made {
    let (base, log) = log_sum(row);
    // Of minus infinities alone no element has a share.
    let share = |x: &f64| if log == f64::NEG_INFINITY { 0.0 } else { ((x - base) - log).exp() };
    (vec![base + log], row.iter().map(|x| g[0] * share(x)).collect())
}

fn target(row: usize, class: usize) -> f64 {
    [0.5, 0.25, 0.125, 0.125, 0.0][(row + class) % CLASSES]
}

fn label(row: usize) -> usize {
    (row * 7 + 1) % CLASSES
}

/// Of targets that are `certain` up to a share that is spread evenly.
fn entropy(row: &[f64], share: f64, certain: impl Fn(usize) -> f64, g: f64) -> Made {
    let made = logs(row);
    let t: Vec<f64> =
        (0..row.len()).map(|i| (1.0 - share) * certain(i) + share / row.len() as f64).collect();
    let sum: f64 = t.iter().sum();
    (vec![-dot(&t, &made)], made.iter().zip(&t).map(|(y, t)| g * (y.exp() * sum - t)).collect())
}

fn sparse(row: &[f64], number: usize, g: &[f64]) -> Made {
    entropy(row, 0.0, |i| f64::from(i == label(number)), g[0])
}

fn sparse_smoothed(row: &[f64], number: usize, g: &[f64]) -> Made {
    entropy(row, 0.25, |i| f64::from(i == label(number)), g[0])
}

fn dense(row: &[f64], number: usize, g: &[f64]) -> Made {
    entropy(row, 0.0, |i| target(number, i), g[0])
}

fn dense_smoothed(row: &[f64], number: usize, g: &[f64]) -> Made {
    entropy(row, 0.25, |i| target(number, i), g[0])
}

/// ln(1 + e^x), and its slope.
fn plus(x: f64) -> (f64, f64) {
    (
        x.max(0.0) + (-x.abs()).exp().ln_1p(),
        if x > 0.0 { 1.0 / (1.0 + (-x).exp()) } else { x.exp() / (1.0 + x.exp()) },
    )
}

fn softplus(row: &[f64], _: usize, g: &[f64]) -> Made {
    row.iter().zip(g).map(|(x, g)| (plus(*x).0, plus(*x).1 * g)).unzip()
}

fn log_sigmoid(row: &[f64], _: usize, g: &[f64]) -> Made {
    row.iter().zip(g).map(|(x, g)| (-plus(-x).0, plus(-x).1 * g)).unzip()
}

/// Yes, no, and in between.
fn chance(row: usize, class: usize) -> f64 {
    [1.0, 0.0, 0.25][(row + class) % 3]
}

fn sigmoid_entropy(row: &[f64], number: usize, g: &[f64]) -> Made {
    let one = |i: usize| {
        let ((no, up), (yes, down), t) = (plus(row[i]), plus(-row[i]), chance(number, i));
        (t * yes + (1.0 - t) * no, g[i] * ((1.0 - t) * up - t * down))
    };
    (0..row.len()).map(one).unzip()
}

fn of_classes(dtype: DType, value: impl Fn(usize, usize) -> f64) -> Result<Tensor> {
    let rows = SIZES[0] * SIZES[1];
    let values = (0..rows * CLASSES).map(|i| value(i / CLASSES, i % CLASSES)).collect();
    made(values, &SIZES, dtype)
}

fn labels() -> Result<Tensor> {
    let all: Vec<i32> = (0..SIZES[0] * SIZES[1]).map(|row| label(row) as i32).collect();
    tensor(all)?.reshape([SIZES[0] as i64, SIZES[1] as i64])
}

fn made(values: Vec<f64>, sizes: &[usize], dtype: DType) -> Result<Tensor> {
    let sizes: Vec<i64> = sizes.iter().map(|n| *n as i64).collect();
    tensor(values)?.reshape(sizes)?.cast(dtype)
}

const ALL: &[i64] = &[0, 1, 2, -1];
const LAST: &[i64] = &[-1];

const OPS: &[Op] = &[
    Op { name: "softmax", axes: ALL, run: |x, a| x.softmax(a), reference: softmax, relative: true },
    Op {
        name: "log_softmax",
        axes: ALL,
        run: |x, a| x.log_softmax(a),
        reference: log_softmax,
        relative: false,
    },
    Op {
        name: "logsumexp",
        axes: ALL,
        run: |x, a| x.logsumexp([a]),
        reference: logsumexp,
        relative: false,
    },
    Op {
        name: "sparse_cross_entropy",
        axes: LAST,
        run: |x, _| x.sparse_cross_entropy(&labels()?),
        reference: sparse,
        relative: false,
    },
    Op {
        name: "sparse_cross_entropy_smoothed",
        axes: LAST,
        run: |x, _| x.sparse_cross_entropy_smoothed(&labels()?, 0.25),
        reference: sparse_smoothed,
        relative: false,
    },
    Op {
        name: "cross_entropy",
        axes: LAST,
        run: |x, _| x.cross_entropy(&of_classes(x.dtype(), target)?),
        reference: dense,
        relative: false,
    },
    Op {
        name: "cross_entropy_smoothed",
        axes: LAST,
        run: |x, _| x.cross_entropy_smoothed(&of_classes(x.dtype(), target)?, 0.25),
        reference: dense_smoothed,
        relative: false,
    },
    Op {
        name: "sigmoid_cross_entropy",
        axes: LAST,
        run: |x, _| x.sigmoid_cross_entropy(&of_classes(x.dtype(), chance)?),
        reference: sigmoid_entropy,
        relative: true,
    },
    Op {
        name: "softplus",
        axes: LAST,
        run: |x, _| x.softplus(),
        reference: softplus,
        relative: true,
    },
    Op {
        name: "log_sigmoid",
        axes: LAST,
        run: |x, _| (-x)?.softplus()?.neg(),
        reference: log_sigmoid,
        relative: true,
    },
];

/// What rounding to the dtype may take, and its least positive number.
fn precision(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::F64 => (f64::EPSILON, f64::MIN_POSITIVE),
        DType::F32 => (f64::from(f32::EPSILON), f64::from(f32::MIN_POSITIVE)),
        DType::F16 => (2f64.powi(-10), 2f64.powi(-24)),
        _ => (2f64.powi(-7), f64::from(f32::MIN_POSITIVE)),
    }
}

/// The elements in f64.
fn exact(x: &Tensor) -> Vec<f64> {
    x.clone().cast(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

/// All that is wrong.
#[derive(Default)]
struct Wrong(Vec<String>);

impl Wrong {
    /// Notes the first element that is not as expected.
    fn check(&mut self, what: &str, got: &Tensor, expected: &[f64], relative: bool) {
        let (eps, least) = precision(got.dtype());
        let got = exact(got);
        assert_eq!(got.len(), expected.len(), "{what}");
        for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
            let scale = expected.abs() + if relative { 0.0 } else { 1.0 };
            let near = (got - expected).abs() <= 16.0 * eps * scale + 4.0 * least;
            let same = got == expected || (got.is_nan() && expected.is_nan());
            if !near && !same {
                return self.0.push(format!("{what}, element {i}: {got}, not {expected}"));
            }
        }
    }

    #[track_caller]
    fn end(self) {
        assert!(self.0.is_empty(), "{} wrong:\n{}", self.0.len(), self.0.join("\n"));
    }
}

/// Where the elements of rows along an axis lie: row by row.
fn rows(axis: i64) -> Vec<Vec<usize>> {
    let axis = axis.rem_euclid(3) as usize;
    let step: usize = SIZES[axis + 1..].iter().product();
    let starts =
        (0..SIZES.iter().product()).filter(|i: &usize| (i / step).is_multiple_of(SIZES[axis]));
    starts.map(|start| (0..SIZES[axis]).map(|i| start + i * step).collect()).collect()
}

fn logits(shift: f64, dtype: DType) -> Tensor {
    let pattern = [0.0, -1.0, 3.0, 20.0, 2.0, -20.0, 1.0];
    let count: usize = SIZES.iter().product();
    made((0..count).map(|i| shift + pattern[i * i % 7]).collect(), &SIZES, dtype).unwrap()
}

/// Numbers that every dtype holds.
fn some(count: usize, by: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * by) % 7) as f64 / 4.0 - 0.75).collect()
}

/// Values and gradients of all rows, as the op lays them out.
fn expected(op: &Op, axis: i64, x: &[f64], g: &[f64]) -> Made {
    let rows = rows(axis);
    let (mut values, mut back) = (vec![0.0; g.len()], vec![0.0; x.len()]);
    for (number, positions) in rows.iter().enumerate() {
        let row: Vec<f64> = positions.iter().map(|at| x[*at]).collect();
        // One result a row, or one an element.
        let to = if g.len() == x.len() { positions.clone() } else { vec![number] };
        let of_row: Vec<f64> = to.iter().map(|at| g[*at]).collect();
        let (made, slopes) = (op.reference)(&row, number, &of_row);
        to.iter().zip(made).for_each(|(at, made)| values[*at] = made);
        positions.iter().zip(slopes).for_each(|(at, slope)| back[*at] = slope);
    }
    (values, back)
}

#[test]
fn no_op_of_powers_loses_digits_beside_large_logits() {
    let _context = own_context();
    let mut wrong = Wrong::default();
    for op in OPS {
        for (dtype, axis) in DTYPES.iter().flat_map(|d| op.axes.iter().map(|a| (*d, *a))) {
            let run = op.run;
            let both = move |(x, g): (Tensor, Tensor)| -> Result<(Tensor, Tensor)> {
                let (y, back) = vjp(|x: Tensor| run(&x, axis), x)?;
                Ok((y, back.call(g)?))
            };
            let some_x = logits(0.0, dtype);
            let shape = run(&some_x, axis).unwrap().shape().sizes().unwrap();
            let count = shape.iter().product();
            let g = some(count, 5);
            let of_g = made(g.clone(), &shape, dtype).unwrap();
            let planned = function(both);
            let refused = function(both).budget(Bytes::new(1)).unwrap();
            let error = refused.call((some_x.clone(), of_g.clone())).unwrap_err();
            let ErrorKind::OverBudget { least: Some(least), .. } = error.kind() else {
                panic!("{}: {error}", op.name);
            };
            let tight = function(both).budget(*least).unwrap();
            for shift in SHIFTS {
                let what = format!("{} of {dtype} at {shift:e} along {axis}", op.name);
                let x = logits(shift, dtype);
                let held = exact(&x);
                let (values, back) = expected(op, axis, &held, &g);
                let call = (x.clone(), of_g.clone());
                let made = [
                    ("eagerly", both(call.clone())),
                    ("in a function", planned.call(call.clone())),
                    ("under the least budget", tight.call(call)),
                ];
                for (how, made) in made {
                    let (y, dx) = made.unwrap();
                    wrong.check(&format!("{what} {how}"), &y, &values, op.relative);
                    wrong.check(&format!("the gradient of {what} {how}"), &dx, &back, false);
                }
                let t = some(held.len(), 3);
                let of_t = self::made(t.clone(), &SIZES, dtype).unwrap();
                let (_, moved) = jvp(|x: Tensor| run(&x, axis), x, of_t).unwrap();
                let moved = exact(&moved);
                let (forward, reverse) = (dot(&moved, &g), dot(&back, &t));
                let (near, eps) = ((forward - reverse).abs(), precision(dtype).0);
                let same = near <= 64.0 * eps || (forward.is_nan() && reverse.is_nan());
                if !same {
                    wrong.0.push(format!("the tangent of {what}: {forward}, not {reverse}"));
                }
            }
        }
    }
    wrong.end();
}

const QUERIES: usize = 3;
const KEYS: usize = 5;
const WIDTH: usize = 2;

/// Gradients of queries, keys and values, and of what is added to the scores.
fn attended(q: &[f64], k: &[f64], v: &[f64], mask: &[f64], g: &[f64]) -> [Vec<f64>; 5] {
    let (mut means, mut dq) = (vec![0.0; q.len()], vec![0.0; q.len()]);
    let (mut dk, mut dv, mut dm) = (vec![0.0; k.len()], vec![0.0; v.len()], vec![0.0; mask.len()]);
    for i in 0..QUERIES {
        let at = |x: &[f64], i: usize| x[i * WIDTH..(i + 1) * WIDTH].to_vec();
        let of_mask = &mask[i * KEYS..(i + 1) * KEYS];
        let scores: Vec<f64> = (0..KEYS).map(|j| dot(&at(q, i), &at(k, j)) + of_mask[j]).collect();
        let p: Vec<f64> = match scores.iter().all(|s| *s == f64::NEG_INFINITY) {
            true => vec![0.0; KEYS],
            false => logs(&scores).iter().map(|x| x.exp()).collect(),
        };
        let dp: Vec<f64> = (0..KEYS).map(|j| dot(&at(g, i), &at(v, j))).collect();
        let shared = dot(&p, &dp);
        for j in 0..KEYS {
            let ds = p[j] * (dp[j] - shared);
            dm[i * KEYS + j] = ds;
            for d in 0..WIDTH {
                means[i * WIDTH + d] += p[j] * v[j * WIDTH + d];
                dq[i * WIDTH + d] += ds * k[j * WIDTH + d];
                dk[j * WIDTH + d] += ds * q[i * WIDTH + d];
                dv[j * WIDTH + d] += p[j] * g[i * WIDTH + d];
            }
        }
    }
    [means, dq, dk, dv, dm]
}

#[test]
fn attention_loses_no_digits_beside_large_scores() {
    let _context = own_context();
    let mut wrong = Wrong::default();
    let numbers =
        |count: usize, by: usize| (0..count).map(|i| ((i * by) % 5) as f64 - 2.0).collect();
    let [q, k, v, g]: [Vec<f64>; 4] = [
        numbers(QUERIES * WIDTH, 3),
        numbers(KEYS * WIDTH, 2),
        numbers(KEYS * WIDTH, 4),
        numbers(QUERIES * WIDTH, 1),
    ];
    for dtype in DTYPES {
        for shift in SHIFTS {
            let mask = made(vec![shift; QUERIES * KEYS], &[QUERIES, KEYS], dtype).unwrap();
            let held = exact(&mask);
            let of = |x: &[f64], n: usize| made(x.to_vec(), &[1, 1, n, WIDTH], dtype).unwrap();
            let inputs = (of(&q, QUERIES), of(&k, KEYS), of(&v, KEYS), mask);
            let of_g = of(&g, QUERIES);
            let loss = |(q, k, v, mask): (Tensor, Tensor, Tensor, Tensor)| -> Result<Tensor> {
                let how = Attention::new().scale(1.0).mask(&mask);
                (q.scaled_dot_product_attention(&k, &v, &how)? * &of_g)?.sum_all()
            };
            let how = Attention::new().scale(1.0).mask(&inputs.3);
            let means = inputs.0.scaled_dot_product_attention(&inputs.1, &inputs.2, &how).unwrap();
            let (_, grads) = value_and_grad_wrt(loss, |all| all.clone())(inputs.clone()).unwrap();
            let planned = function(grad_wrt(loss, |all| all.clone())).call(inputs).unwrap();
            let expected = attended(&q, &k, &v, &held, &g);
            let what = format!("{dtype} at {shift:e}");
            wrong.check(&format!("means of {what}"), &means, &expected[0], false);
            for (dq, dk, dv, dm) in [grads, planned] {
                for (i, grad) in [dq, dk, dv, dm].iter().enumerate() {
                    wrong.check(&format!("gradient {i} of {what}"), grad, &expected[i + 1], false);
                }
            }
        }
    }
    wrong.end();
}
