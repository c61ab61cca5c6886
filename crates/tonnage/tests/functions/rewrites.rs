//! Functions give the bits of the eager ops, whatever was rewritten on the way, in just the memory predicted.

#![allow(clippy::eq_op, reason = "what is rewritten is what nobody would write")]
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{
    Bytes, DType, Elementwise, GradientTape, Result, Scan, Tensor, Variable, cond, full, function,
    map_fn, random_normal, tensor, while_loop, zeros,
};

use crate::common::{call_checked, own_context};

/// The bytes of a tensor's elements, in order.
fn bits(t: &Tensor) -> Vec<u64> {
    match t.dtype() {
        DType::F64 => t.to_vec::<f64>().unwrap().iter().map(|x| x.to_bits()).collect(),
        DType::F32 => t.to_vec::<f32>().unwrap().iter().map(|x| u64::from(x.to_bits())).collect(),
        DType::F16 => {
            let values = t.to_vec::<tonnage_core::f16>().unwrap();
            values.iter().map(|x| u64::from(x.to_bits())).collect()
        }
        DType::BF16 => {
            let values = t.to_vec::<tonnage_core::bf16>().unwrap();
            values.iter().map(|x| u64::from(x.to_bits())).collect()
        }
        DType::Bool => t.to_vec::<bool>().unwrap().iter().map(|x| u64::from(*x)).collect(),
        _ => {
            let wide = t.cast(DType::I64).unwrap();
            wide.to_vec::<i64>().unwrap().iter().map(|x| *x as u64).collect()
        }
    }
}

/// Numbers that rules go wrong on, and some that nobody thought of.
fn special(dtype: DType) -> Tensor {
    let mut values: Vec<f64> = vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        -2.0,
        0.5,
        3.0,
        7.0,
        -7.0,
        127.0,
        -128.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        -f64::NAN,
        f64::from_bits(0x7ff8_0123_4560_0000),
        1e-40,
        -1e-40,
        3.4e38,
        6e-8,
        65504.0,
        1e300,
        1e-310,
    ];
    let random = random_normal([40], DType::F64).unwrap().to_vec::<f64>().unwrap();
    values.extend(random.iter().map(|x| x * 5.0));
    let wide = tensor(values).unwrap();
    match dtype {
        DType::F64 => wide,
        // Casting a float cuts it off at the ends of an integer's range, which are then among the values.
        other => wide.cast(other).unwrap(),
    }
}

const FLOATS: [DType; 4] = [DType::F64, DType::F32, DType::F16, DType::BF16];
const INTEGERS: [DType; 4] = [DType::I64, DType::I32, DType::I8, DType::U8];

type Rule = (&'static str, fn(&Tensor) -> Result<Tensor>, &'static [&'static str]);

/// Each rule as a program, and ops that must be gone from its graph.
const OF_FLOATS: &[Rule] = &[
    ("x * 1", |x| x * 1.0, &["mul"]),
    ("1 * x", |x| 1.0 * x, &["mul"]),
    ("x / 1", |x| x / 1.0, &["div"]),
    ("x - 0", |x| x - 0.0, &["sub"]),
    ("x + -0", |x| x + -0.0, &["add"]),
    ("x + 0", |x| x + 0.0, &[]),
    ("x - -0", |x| x - -0.0, &[]),
    ("0 - x", |x| 0.0 - x, &[]),
    ("x * 0", |x| x * 0.0, &[]),
    ("x - x", |x| x - x, &[]),
    ("x / x", |x| x / x, &[]),
    ("x * 2", |x| x * 2.0, &["mul"]),
    ("x * x", |x| x * x, &["mul"]),
    ("x / 2", |x| x / 2.0, &["div"]),
    ("x / -8", |x| x / -8.0, &["div"]),
    ("x / 1024", |x| x / 1024.0, &["div"]),
    ("x / 3", |x| x / 3.0, &[]),
    ("--x", |x| Elementwise::neg((-x)?), &["neg"]),
    ("max(x, x)", |x| x.maximum(x), &["maximum"]),
    ("max(max(x, 1), 1)", |x| x.maximum(1.0)?.maximum(1.0), &[]),
    ("max(max(x, 0), 0)", |x| x.maximum(0.0)?.maximum(0.0), &[]),
    ("x < x", |x| x.less(x), &["less"]),
    ("x == x", |x| x.equal(x), &[]),
    ("where(true)", |x| full(true, DType::Bool, ())?.where_(x, &(x * 3.0)?), &["where", "mul"]),
    ("where(c, x, x)", |x| x.less(1.0)?.where_(x, x), &["where", "less"]),
    ("to f64 and back", |x| x.cast(DType::F64)?.cast(x.dtype()), &["cast"]),
    ("x + full", |x| x + &full(1.5, x.dtype(), x.shape().clone())?, &[]),
    ("a chain of numbers", |x| x * &((full(0.1, x.dtype(), ())? + 0.2)? * 3.0)?, &[]),
];

const OF_INTEGERS: &[Rule] = &[
    ("x + 0", |x| x + 0, &["add"]),
    ("x - 0", |x| x - 0, &["sub"]),
    ("x * 1", |x| x * 1, &["mul"]),
    ("x / 1", |x| x / 1, &["div"]),
    ("x * 0", |x| x * 0, &["mul"]),
    ("x - x", |x| x - x, &["sub"]),
    ("x - 3 + 5", |x| (x - 3)? + 5, &["sub"]),
    ("x * 3 * 5", |x| (x * 3)? * 5, &[]),
    ("x + -x", |x| x + &(-x)?, &["neg", "add", "sub"]),
    ("--x", |x| Elementwise::neg((-x)?), &["neg"]),
    ("x * x", |x| x * x, &["mul"]),
    ("max(x, x)", |x| x.maximum(x), &["maximum"]),
    ("x == x", |x| x.equal(x), &["equal"]),
    ("x < x", |x| x.less(x), &["less"]),
    ("to i64 and back", |x| x.cast(DType::I64)?.cast(x.dtype()), &["cast"]),
    ("where(c, x, x)", |x| x.less(1)?.where_(x, x), &["where", "less"]),
];

fn holds(rules: &[Rule], dtypes: &[DType]) {
    let _context = own_context();
    for dtype in dtypes {
        let x = special(*dtype);
        for (name, f, gone) in rules {
            let planned = function(|x: Tensor| f(&x));
            let got = call_checked(&planned, &x);
            let expected = f(&x).unwrap();
            assert_eq!(bits(&got), bits(&expected), "{name} of {dtype}");
            let graph = planned.graph(&x).unwrap();
            for op in *gone {
                assert!(!graph.contains(&format!("= {op}(")), "{name} of {dtype}: {graph}");
            }
        }
    }
}

#[test]
fn identities_of_floats_keep_every_bit() {
    holds(OF_FLOATS, &FLOATS);
}

#[test]
fn identities_of_integers_keep_every_bit() {
    holds(OF_INTEGERS, &INTEGERS);
}

fn large(rows: usize, cols: usize) -> Tensor {
    let values = random_normal([rows, cols], DType::F32).unwrap().to_vec::<f32>().unwrap();
    tensor(values).unwrap().reshape([rows as i64, cols as i64]).unwrap()
}

/// A function of `[ROWS, COLS]` gives the eager bits, and takes its result and at most `more` bytes besides.
fn gives<F: Fn(&Tensor) -> Result<Tensor>>(more: usize, f: F) {
    let _context = own_context();
    gives_of(&large(ROWS, COLS), more, f);
}

fn gives_of<F: Fn(&Tensor) -> Result<Tensor>>(x: &Tensor, more: usize, f: F) {
    let planned = function(|x: Tensor| f(&x));
    let plan = planned.plan(x).unwrap();
    let got = call_checked(&planned, x);
    let expected = f(x).unwrap();
    assert_eq!(bits(&got), bits(&expected), "{}", plan.graph);
    let result = expected.ty().bytes("test").unwrap().rounded();
    assert!(plan.bound + plan.own_outputs() <= result + Bytes::of(more), "{plan}");
}

/// A number a row, and a column, is a page: pages are what results are cut out at.
const ROWS: usize = 1024;
const COLS: usize = 1024;
/// Two numbers a row, and the partial sums of a reduction.
const STATS: usize = 2 * 4 * ROWS + 1024;

#[test]
fn softmax_written_out_takes_its_input_its_output_and_a_row_of_numbers() {
    gives(STATS, |x| {
        let shifted = (x - &x.max_keep([-1])?)?;
        let powers = shifted.exp()?;
        &powers / &powers.sum_keep([-1])?
    });
}

#[test]
fn log_softmax_written_out_takes_its_input_its_output_and_a_row_of_numbers() {
    gives(STATS, |x| {
        let shifted = (x - &x.max_keep([-1])?)?;
        let log = (&shifted).exp()?.sum_keep([-1])?.log()?;
        shifted - log
    });
}

#[test]
fn layer_norm_written_out_takes_its_input_its_output_and_a_row_of_numbers() {
    gives(2 * STATS, |x| {
        let centred = (x - &(x.sum_keep([-1])? / COLS as f64)?)?;
        let variance = ((&centred * &centred)?.sum_keep([-1])? / COLS as f64)?;
        let spread = (((variance + 1e-5)?.log()? * -0.5)?).exp()?;
        ((centred * &spread)? * 1.5)? + 0.25
    });
}

#[test]
fn batch_norm_written_out_takes_its_input_its_output_and_a_row_of_numbers() {
    gives(2 * STATS + 64 * 1024, |x| {
        let centred = (x - &(x.sum_keep([0])? / ROWS as f64)?)?;
        let variance = ((&centred).square()?.sum_keep([0])? / ROWS as f64)?;
        centred / &(variance + 1e-5)?
    });
}

#[test]
fn losses_written_out_take_numbers_alone() {
    gives(64 * 1024, |x| {
        let off = (x - &(x * 0.5)?)?;
        (&off * &off)?.mean_all()
    });
    gives(4 * STATS + 64 * 1024, |x| {
        let shifted = (x - &x.max_keep([-1])?)?;
        let log = (&shifted).exp()?.sum_keep([-1])?.log()?;
        let logs = (shifted - log)?;
        let labels = x.less(0.0)?.cast(DType::F32)?;
        (labels * &logs)?.sum([-1])?.mean_all()
    });
}

#[test]
fn gelu_written_out_is_one_pass() {
    gives(0, |x| {
        let cube = ((x * x)? * x)?;
        let inner = ((x + &(cube * 0.044715)?)? * 0.797_884_560_802_865_4)?;
        (x * 0.5)? * (inner.tanh()? + 1.0)?
    });
}

#[test]
fn views_in_a_chain_are_read_through() {
    gives(0, |x| {
        let a = ((x * 2.0)? + 1.0)?.tanh()?.t()?;
        let b = (&a * &a)?.exp()?.reshape([16, -1])?;
        (b * 0.5)? + 1.0
    });
    // A transposed argument has to be copied to be reshaped: as many bytes as the chain in between had.
    let _context = own_context();
    let transposed = large(ROWS, COLS).t().unwrap();
    gives_of(&transposed, 4 * ROWS * COLS + 4096, |x| {
        let a = x.exp()?.reshape([-1])?;
        (a * 0.5)? + 1.0
    });
}

#[test]
fn a_chain_over_a_size_that_the_data_decide_is_one_pass() {
    let _context = own_context();
    let f = function(|x: Tensor| {
        let some = x.boolean_mask(&x.less(0.5)?)?;
        (((some * 2.0)? + 1.0)?.exp()? - 1.0)?.tanh()
    });
    let x = large(20, 30).reshape([-1]).unwrap();
    let plan = f.plan(&x).unwrap();
    let fused = plan.graph.nodes.iter().filter(|n| n.op.name == "fused").count();
    assert_eq!(fused, 1, "{}", plan.graph);
    let got = call_checked(&f, &x);
    let some = x.boolean_mask(&x.less(0.5).unwrap()).unwrap();
    let eager = (((some * 2.0).unwrap() + 1.0).unwrap().exp().unwrap() - 1.0).unwrap();
    assert_eq!(bits(&got), bits(&eager.tanh().unwrap()));
}

#[test]
fn a_long_winded_function_and_a_compact_one_have_one_plan() {
    let _context = own_context();
    let (x, w) = (large(20, 30), large(30, 30));
    let long = function(|(x, w): (Tensor, Tensor)| {
        let unused = (&x).exp()?.matmul(&w)?;
        let twice = unused.t()?;
        let one = full(1.0, DType::F32, ())?;
        let x = (x.stop_gradient()? * &one)?;
        let wt = w.t()?.t()?.t()?;
        let first = x.matmul(&wt.t()?)?;
        let second = x.matmul(&w)?;
        let half = (zeros([20, 30])? + 0.5)?;
        let scaled = (&half * &first)?.identity()?;
        let again = (&second * &half)?;
        let sum = (&scaled + &again)?;
        let shifted = (&sum - &sum.max_keep([1])?)?;
        let powers = shifted.exp()?;
        let total = powers.sum([1])?.reshape([20, 1])?.broadcast_to([20, 30])?;
        let _ = (twice * 2.0)?;
        powers / &total
    });
    let compact = function(|(x, w): (Tensor, Tensor)| {
        let y = (x.matmul(&w)? * 0.5)?;
        let y = (y * 2.0)?;
        let powers = (&y - &y.max_keep([1])?)?.exp()?;
        &powers / &powers.sum_keep([1])?
    });
    let arguments = (x, w);
    let (a, b) = (long.plan(&arguments).unwrap(), compact.plan(&arguments).unwrap());
    assert_eq!(a.graph.to_string(), b.graph.to_string());
    assert_eq!(a.peak(), b.peak());
    let (p, q) = (call_checked(&long, &arguments), call_checked(&compact, &arguments));
    assert_eq!(bits(&p), bits(&q));
}

#[test]
fn the_order_of_statements_does_not_matter_where_ops_are_joined() {
    let _context = own_context();
    let x = large(20, 30);
    let one = function(|x: Tensor| {
        let a = (&x).square()?;
        let b = (&x * 3.0)?;
        let c = (&x).tanh()?;
        (a + b)? * c
    });
    let other = function(|x: Tensor| {
        let c = (&x).tanh()?;
        let b = (3.0 * &x)?;
        let a = (&x * &x)?;
        c * (b + a)?
    });
    let (p, q) = (one.plan(&x).unwrap(), other.plan(&x).unwrap());
    assert_eq!(p.graph.to_string(), q.graph.to_string());
    assert_eq!(bits(&call_checked(&one, &x)), bits(&call_checked(&other, &x)));
}

#[test]
fn loop_variables_that_are_never_read_are_not_carried() {
    let _context = own_context();
    let f = function(|x: Tensor| {
        let start = (full(0, DType::I32, ())?, x.clone(), (&x).exp()?, zeros([300, 400])?);
        let made = while_loop(
            start,
            |(i, ..)| i.less(5),
            |(i, a, b, c)| Ok(((i + 1)?, (a * 0.5)?, (&b * &c)?, (&c + &b)?)),
        )?;
        made.1.max([0, 1])
    });
    let x = large(300, 400);
    let plan = f.plan(&x).unwrap();
    assert!(plan.graph.to_string().contains("carrying 1"), "{}", plan.graph);
    assert!(plan.arena <= Bytes::of(300 * 400 * 4).rounded() + Bytes::of(4096), "{plan}");
    let got = call_checked(&f, &x);
    let most = x.to_vec::<f32>().unwrap().into_iter().fold(f32::MIN, f32::max);
    assert_eq!(got.to_vec::<f32>().unwrap(), [most / 32.0]);
}

#[test]
fn results_of_a_branch_that_are_never_read_are_not_made() {
    let _context = own_context();
    let f = function(|x: Tensor| {
        let positive = full(0.0, DType::F32, ())?.less(&x.sum_all()?)?;
        let made =
            cond(&positive, || Ok(((&x).exp()?, (&x * 2.0)?)), || Ok(((&x).tanh()?, (&x * 3.0)?)))?;
        Ok(made.1)
    });
    let x = large(300, 400);
    let graph = f.graph(&x).unwrap();
    assert!(!graph.contains("exp") && !graph.contains("tanh"), "{graph}");
    call_checked(&f, &x);
}

#[test]
fn an_update_through_a_view_of_itself_reads_what_was_there() {
    let _context = own_context();
    let v = Variable::new("v", large(30, 30)).unwrap();
    let w = v.clone();
    let before = v.read().unwrap().to_vec::<f32>().unwrap();
    let transpose = function(move |_: Tensor| {
        w.assign(&w.read()?.t()?)?;
        w.read()?.sum_all()
    });
    transpose.call(tensor(0.0f32).unwrap()).unwrap();
    let after = v.read().unwrap().to_vec::<f32>().unwrap();
    for (i, x) in after.iter().enumerate() {
        assert_eq!(*x, before[i % 30 * 30 + i / 30]);
    }
}

#[test]
fn a_training_step_gives_the_eager_bits() {
    let _context = own_context();
    let step = |w: &Variable, b: &Variable, x: &Tensor| -> Result<Tensor> {
        let mut tape = GradientTape::new();
        let h = (x.matmul(&w.read()?)? + &b.read()?)?;
        let shifted = (&h - &h.max_keep([-1])?)?;
        let logs = (&shifted - &(&shifted).exp()?.sum_keep([-1])?.log()?)?;
        let loss = (logs * &x.less(0.0)?.cast(DType::F32)?)?.mean_all()?;
        let grads = tape.gradient(&loss, &[w, b])?;
        w.assign_sub(&(grads[0].tensor()? * 0.5)?)?;
        b.assign_sub(&(grads[1].tensor()? * 0.5)?)?;
        Ok(loss)
    };
    let x = large(40, 40);
    let (start_w, start_b) = (large(40, 40), large(1, 40).reshape([40]).unwrap());
    let make = |name: &str| {
        let w = Variable::new(&format!("{name}/w"), start_w.clone()).unwrap();
        let b = Variable::new(&format!("{name}/b"), start_b.clone()).unwrap();
        (w, b)
    };
    let (eager, planned) = (make("eager"), make("planned"));
    let (w, b) = planned.clone();
    let f = function(move |x: Tensor| step(&w, &b, &x));
    for _ in 0..2 {
        let expected = step(&eager.0, &eager.1, &x).unwrap();
        let got = f.call(x.clone()).unwrap();
        assert_eq!(bits(&got), bits(&expected));
    }
    for (a, b) in [(&eager.0, &planned.0), (&eager.1, &planned.1)] {
        assert_eq!(bits(&a.read().unwrap()), bits(&b.read().unwrap()));
    }
}

/// A name, and a value made of a matrix.
type Lies = (&'static str, fn(&Tensor) -> Result<Tensor>);

/// What lies in eager mode as it does in a function: by rows, by columns, or backwards.
const LIES: &[Lies] = &[
    ("transposed", |x| x.t()),
    ("transposed, cast to its own dtype", |x| x.t()?.cast(x.dtype())),
    ("transposed, lent to a cast to its own dtype", |x| (&x.t()?).cast(x.dtype())),
    ("reversed", |x| x.reverse([1])),
    ("transposed, then computed", |x| x.t()?.exp()),
    ("computed, then transposed", |x| x.exp()?.t()),
    ("rows of a loop, transposed", |x| map_fn(x.clone(), |row: Tensor| row.exp())?.t()),
    ("running sums along rows", |x| x.cumulative_logsumexp(1)),
    ("running sums along columns", |x| x.cumulative_logsumexp(0)),
    ("running sums from the end", |x| {
        x.cumulative_logsumexp_by(1, Scan { exclusive: false, reverse: true })
    }),
];

#[test]
fn products_of_what_lies_alike_have_the_eager_bits() {
    let _context = own_context();
    let x = large(37, 45);
    for (name, lies) in LIES {
        let [rows, cols] = [0, 1].map(|i| lies(&x).unwrap().shape()[i].known().unwrap());
        for few in 1..=5 {
            let (left, right) = (large(few, rows), large(cols, few));
            let both = |x: Tensor| Ok((left.matmul(&lies(&x)?)?, lies(&x)?.matmul(&right)?));
            let (got, expected) =
                (function(both).call(x.clone()).unwrap(), both(x.clone()).unwrap());
            assert_eq!(bits(&got.0), bits(&expected.0), "{few} rows by what is {name}");
            assert_eq!(bits(&got.1), bits(&expected.1), "{few} columns by what is {name}");
        }
    }
}
