//! Gradients that are rows: through sums, scaling, clipping and updates, and where they become whole.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use tonnage::{
    Bytes, DType, Elementwise, Gradient, GradientTape, IndexedSlices, Result, Tensor, Variable,
    clip_by_global_norm, function, global_norm, memory, random_normal, tensor, zeros,
};

use crate::common::{call_checked, close, in_use, own_context};

const ROWS: usize = 200;
const WIDTH: usize = 4;

fn table() -> Variable {
    let values = random_normal([ROWS, WIDTH], DType::F64).unwrap().to_vec::<f64>().unwrap();
    let shape = [ROWS as i64, WIDTH as i64];
    Variable::new("table", tensor(values).unwrap().reshape(shape).unwrap()).unwrap()
}

fn rows(gradient: &Gradient) -> &IndexedSlices {
    match gradient {
        Gradient::Rows(rows) => rows,
        other => panic!("no rows: {other:?}"),
    }
}

fn dense(gradient: &Gradient) -> Vec<f64> {
    gradient.tensor().unwrap().to_vec::<f64>().unwrap()
}

/// The gradient of a function of the table, and the same through a product that makes it whole.
fn both(f: impl Fn(&Tensor) -> Result<Tensor>) -> (Gradient, Vec<f64>) {
    let table = table();
    let run = |through: bool| {
        let mut tape = GradientTape::new();
        let t = table.read().unwrap();
        // Adding zeros of every element leaves the values and makes the gradient dense on the way.
        let t = if through { t.reshape([-1]).unwrap().reshape([200, 4]).unwrap() } else { t };
        let y = f(&t).unwrap();
        tape.gradient(&y, &table).unwrap()
    };
    let (sparse, whole) = (run(false), run(true));
    assert!(matches!(whole, Gradient::Dense(_)), "{whole:?}");
    (sparse, dense(&whole))
}

fn indices() -> Tensor {
    tensor([3i64, 5, 3, 199]).unwrap()
}

#[test]
fn rows_stay_rows_through_sums_and_ops_that_work_on_each_row() {
    let _context = own_context();
    let i = indices();
    let w = tensor(vec![vec![0.5f64; 3]; 4]).unwrap();
    let b = tensor([1.0f64, 2.0, 3.0, 4.0]).unwrap();
    type F<'a> = &'a dyn Fn(&Tensor) -> Result<Tensor>;
    let plain: F = &|t| t.gather(&i, 0)?.square()?.sum_all();
    let twice: F =
        &|t| (t.gather(&i, 0)?.sum_all()? + t.gather(&i, 0)?.square()?.sum_all()?)?.exp();
    let scaled: F = &|t| ((t * 3.0)? / 2.0)?.gather(&i, 0)?.square()?.sum_all();
    let curved: F = &|t| (t.tanh()? + &b)?.gather(&i, 0)?.square()?.sum_all();
    let normed: F = &|t| t.softmax(-1)?.gather(&i, 0)?.square()?.sum_all();
    let mapped: F = &|t| t.matmul(&w)?.gather(&i, 0)?.square()?.sum_all();
    let reduced: F = &|t| t.sum(1)?.gather(&i, 0)?.square()?.sum_all();
    let nested: F = &|t| t.gather(&i, 0)?.gather(&tensor([0i64, 2, 2])?, 0)?.square()?.sum_all();
    let square = tensor([[1i64, 2], [2, 0]]).unwrap();
    let shaped: F = &|t| t.exp()?.gather(&square, 0)?.square()?.sum_all();
    let all = [plain, twice, scaled, curved, normed, mapped, reduced, nested, shaped];
    for (case, f) in all.into_iter().enumerate() {
        let (sparse, whole) = both(f);
        let rows = rows(&sparse);
        assert_eq!(rows.ty().to_string(), "f64[200, 4]", "{case}");
        close(&rows.dense().unwrap(), &whole, 1e-12);
    }
}

/// A value that is read twice, forty times in a row, has 2^40 ways from the rows to the table.
#[test]
fn rows_of_a_value_that_is_read_twice_again_and_again_stay_few() {
    let _context = own_context();
    let i = indices();
    let polynomial = |t: &Tensor| {
        let mut y = t.tanh()?;
        for _ in 0..40 {
            y = ((&y * &y)? + (&y * 0.5)?)?.tanh()?;
        }
        Result::Ok(y)
    };
    let (sparse, whole) = both(|t| polynomial(t)?.gather(&i, 0)?.square()?.sum_all());
    assert_eq!(rows(&sparse).parts().count(), 1);
    close(&rows(&sparse).dense().unwrap(), &whole, 1e-12);
    // Two lists of rows stay two.
    let j = tensor([0i64, 7]).unwrap();
    let (sparse, whole) = both(|t| {
        let y = polynomial(t)?;
        y.gather(&i, 0)?.square()?.sum_all()? + y.gather(&j, 0)?.exp()?.sum_all()?
    });
    assert_eq!(rows(&sparse).parts().count(), 2);
    close(&rows(&sparse).dense().unwrap(), &whole, 1e-12);
}

#[test]
fn both_sides_of_a_product_get_their_gradient_from_the_rows() {
    let _context = own_context();
    let (table, w) = (table(), Variable::new("w", tensor(vec![vec![0.5f64; 3]; 4]).unwrap()));
    let w = w.unwrap();
    let run = |through: bool| {
        let mut tape = GradientTape::new();
        let product = table.read().unwrap().matmul(&w.read().unwrap()).unwrap();
        let product = match through {
            true => product.reshape([-1]).unwrap().reshape([200, 3]).unwrap(),
            false => product,
        };
        let y = product.gather(&indices(), 0).unwrap().square().unwrap();
        tape.gradient(&y, (&table, &w)).unwrap()
    };
    let ((sparse, dw), (_, whole)) = (run(false), run(true));
    assert!(matches!(sparse, Gradient::Rows(_)));
    let expected = dense(&whole);
    close(&dw.tensor().unwrap(), &expected, 1e-12);
}

#[test]
fn scaling_and_clipping_keep_rows_and_give_what_the_whole_would() {
    let _context = own_context();
    let i = indices();
    let (sparse, whole) = both(|t| t.gather(&i, 0)?.square()?.sum_all());
    let norm = whole.iter().map(|x| x * x).sum::<f64>().sqrt();
    close(&sparse.square_sum().unwrap().sqrt().unwrap(), &[norm], 1e-12);
    let check = |made: Result<Gradient>, expected: &dyn Fn(f64) -> f64| {
        let made = made.unwrap();
        let expected: Vec<f64> = whole.iter().map(|x| expected(*x)).collect();
        close(&rows(&made).dense().unwrap(), &expected, 1e-12);
    };
    check(sparse.scale(0.5), &|x| 0.5 * x);
    check(sparse.clip_by_norm(norm / 4.0), &|x| x / 4.0);
    check(sparse.clip_by_norm(norm * 4.0), &|x| x);
    // Rows of the same index are added up before they are clipped.
    check(sparse.clip_by_value(-0.5, 1.5), &|x| x.clamp(-0.5, 1.5));
    check(sparse.clone().plus(sparse.clone()), &|x| 2.0 * x);
    // Together with others.
    let other = Gradient::Dense(tensor([3.0f64, 4.0]).unwrap());
    let all = [sparse.clone(), other, Gradient::Unconnected];
    let total = (norm * norm + 25.0).sqrt();
    close(&global_norm(&all).unwrap(), &[total], 1e-12);
    let (clipped, was) = clip_by_global_norm(&all, 1.0).unwrap();
    close(&was, &[total], 1e-12);
    check(Ok(clipped[0].clone()), &|x| x / total);
    close(&global_norm(&clipped).unwrap(), &[1.0], 1e-12);
    assert!(clipped[2].is_unconnected());
    // Bounds that 0 is not between would change every row: made whole.
    let lifted = sparse.clip_by_value(0.25, 9.0).unwrap();
    let expected: Vec<f64> = whole.iter().map(|x| x.clamp(0.25, 9.0)).collect();
    close(&lifted.tensor().unwrap(), &expected, 1e-12);
}

#[test]
fn updates_touch_the_rows_alone_eager_and_planned() {
    let _context = own_context();
    let step = |table: &Variable, i: &Tensor| -> Result<Tensor> {
        let mut tape = GradientTape::new();
        let loss = table.read()?.gather(i, 0)?.square()?.sum_all()?;
        let grad = tape.gradient(&loss, table)?.clip_by_norm(2.0)?;
        table.assign_sub(&grad.scale(0.1)?)?;
        Ok(loss)
    };
    let (eager, planned, whole) = (table(), table(), table());
    for v in [&planned, &whole] {
        v.assign(&eager.read().unwrap()).unwrap();
    }
    let p = planned.clone();
    let f = function(move |i: Tensor| step(&p, &i));
    let i = indices();
    for _ in 0..3 {
        step(&eager, &i).unwrap();
        f.call(i.clone()).unwrap();
        let mut tape = GradientTape::new();
        let loss = whole.read().unwrap().gather(&i, 0).unwrap().square().unwrap();
        let loss = loss.sum_all().unwrap();
        let grad = tape.gradient(&loss, &whole).unwrap().tensor().unwrap();
        let grad = Gradient::Dense(grad).clip_by_norm(2.0).unwrap();
        whole.assign_sub(&grad.scale(0.1).unwrap()).unwrap();
    }
    let expected = whole.read().unwrap().to_vec::<f64>().unwrap();
    close(&eager.read().unwrap(), &expected, 1e-12);
    close(&planned.read().unwrap(), &expected, 1e-12);
    // Rows can be set, too; and what is no row of the variable is refused.
    eager.assign_rows(&tensor([0i64]).unwrap(), &zeros_f64([1, 4])).unwrap();
    assert_eq!(eager.read().unwrap().to_vec::<f64>().unwrap()[..4], [0.0; 4]);
    let before = eager.read().unwrap().to_vec::<f64>().unwrap();
    let bad = eager.assign_rows(&tensor([200i64]).unwrap(), &zeros_f64([1, 4])).unwrap_err();
    assert!(
        bad.to_string().contains("index 200") && bad.to_string().contains("sparse.rs"),
        "{bad}"
    );
    assert_eq!(eager.read().unwrap().to_vec::<f64>().unwrap(), before);
}

fn zeros_f64(shape: [usize; 2]) -> Tensor {
    zeros(shape).unwrap().cast(DType::F64).unwrap()
}

/// Of a table of any size the gradient takes what the batch takes: nothing else is obtained, eager and
/// planned.
#[test]
fn gradient_bytes_follow_the_batch() {
    let _context = own_context();
    let (batch, width) = (1000usize, 64usize);
    let step = |table: &Variable, i: &Tensor| -> Result<()> {
        let mut tape = GradientTape::new();
        let loss = table.read()?.gather(i, 0)?.square()?.sum_all()?;
        let grad = tape.gradient(&loss, table)?;
        table.assign_sub(&grad.scale(0.1)?)
    };
    let peaks: Vec<[u64; 2]> = [20_000usize, 100_000]
        .into_iter()
        .map(|rows| {
            let value = tensor(vec![0.5f32; rows * width]).unwrap();
            let value = value.reshape([rows as i64, width as i64]).unwrap();
            let table = Variable::new("table", value).unwrap();
            let i: Vec<i64> = (0..batch as i64).map(|i| i * 7919 % rows as i64).collect();
            let i = tensor(i).unwrap();
            let before = in_use();
            memory::reset_peak("cpu:0").unwrap();
            step(&table, &i).unwrap();
            let eager = memory::info("cpu:0").unwrap().peak - before;
            assert_eq!(in_use(), before);
            let t = table.clone();
            let f = function(move |i: Tensor| step(&t, &i));
            call_checked(&f, &i);
            let planned = f.plan(&i).unwrap().obtains();
            [eager.get(), planned.get()]
        })
        .collect();
    assert_eq!(peaks[0], peaks[1], "the table does not matter");
    let values = (batch * width * 4) as u64;
    assert!(peaks[0][0] <= 4 * values && peaks[0][1] <= 3 * values, "{peaks:?}");
    // Ten million rows: what a call would take, without the table being there.
    let table = Variable::new("table", zeros([10_000_000, width]).unwrap()).unwrap();
    let t = table.clone();
    let f = function(move |i: Tensor| step(&t, &i));
    let plan = f.plan(&tensor(vec![7i64; batch]).unwrap()).unwrap();
    assert_eq!(plan.obtains().get(), peaks[0][1], "{plan}");
    assert!(plan.inputs >= Bytes::new(10_000_000 * 64 * 4));
}

#[test]
fn where_rows_become_whole_is_told_with_its_bytes() {
    let _context = own_context();
    let table = table();
    let grad = |table: &Variable| -> Result<Tensor> {
        let mut tape = GradientTape::new();
        let all = table.read()?;
        let transposed = all.t()?; // mixes rows and columns: no rows any more
        let loss = (transposed.t()?.gather(&indices(), 0)?).square()?.sum_all()?;
        tape.gradient(&loss, table)?.tensor()
    };
    let scope = memory::scope();
    let eager = grad(&table).unwrap();
    let report = scope.report();
    let whole: Vec<_> = report.events.iter().filter(|e| e.op == "rows_to_dense").collect();
    assert!(!whole.is_empty(), "{report}");
    assert!(whole.iter().any(|e| e.bytes == Bytes::new(200 * 4 * 8)), "{report}");
    assert!(whole[0].source.to_string().contains("sparse.rs"), "{report}");
    drop(scope);
    let t = table.clone();
    let f = function(move |(): ()| grad(&t));
    let plan = f.plan(&()).unwrap().to_string();
    assert!(plan.contains("rows_to_dense"), "{plan}");
    close(&f.call(()).unwrap(), &eager.to_vec::<f64>().unwrap(), 1e-12);
}
