//! What a loop, a branch or a piece of a batch returns may be a part of a value that it computed. A part of a few bytes
//! and the whole value round to the same size, and still the whole must not be written where the part goes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use tonnage::{
    Bytes, DType, Elementwise, ErrorKind, Part, Result, Tensor, cond, fori_loop, function, map_fn,
    scan, stack, tensor, while_loop,
};

use crate::common::{call_checked, own_context};

/// A value of one vector, by the kind of step that computes it.
type Value = (&'static str, fn(&Tensor) -> Result<Tensor>);

const VALUES: [Value; 8] = [
    ("kernel", |r| r.cumsum(0)),
    ("kernel with workspace", |r| r.sort(0, true)),
    ("tile program", |r| (r * r)? + r),
    ("kernel over a copy", |r| stack(&[r, r], 0)?.cumsum(1)),
    ("reduction", |r| stack(&[r, r], 1)?.sum([1])),
    ("reduction to one more axis", |r| r.expand_dims(0)?.sum_keep([0])),
    ("in place of a kernel's result", |r| r.cumsum(0)?.neg()),
    ("copy of a view", |r| stack(&[r, r], 0)?.t()?.reshape([-1])),
];

/// Some of the first elements of a value, as a view of it.
fn front(value: &Tensor, count: usize) -> Result<Tensor> {
    match value.rank() {
        2 => value.slice(&[(0..1).into(), Part::from(0..count as i64)])?.reshape([-1]),
        _ => value.slice(&[Part::from(0..count as i64)]),
    }
}

fn rows(count: usize, width: usize, dtype: DType) -> Tensor {
    let value = |i: usize| ((i * 7 + 3) % 11) as f64 - 4.0;
    let all: Vec<f64> = (0..count * width).map(value).collect();
    let sizes = [count as i64, width as i64];
    tensor(all).unwrap().reshape(sizes).unwrap().cast(dtype).unwrap()
}

fn numbers(t: &Tensor) -> Vec<f64> {
    t.cast(DType::F64).unwrap().to_vec().unwrap()
}

/// A loop or branch around a body that goes from a vector to a vector.
type Region = (&'static str, fn(&Tensor, &dyn Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor>);

const REGIONS: [Region; 6] = [
    ("map_fn", |xs, body| map_fn(xs.clone(), |x: Tensor| body(&x))),
    ("rows of scan", |xs, body| {
        let start = tensor(0i64)?;
        let step = |n: Tensor, x: Tensor| Ok(((n + 1)?, body(&x)?));
        Ok(scan(start, xs.clone(), step)?.1)
    }),
    ("state of scan", |xs, body| {
        // The state is what the row before gave: the last row's is what is left.
        let like = body(&xs.get(&[0.into()])?)?;
        let (last, before) = scan(like, xs.clone(), |s: Tensor, x: Tensor| Ok((body(&x)?, s)))?;
        let rest = before.slice(&[Part::from(1..)])?;
        tonnage::concat(&[&rest, &last.expand_dims(0)?], 0)
    }),
    ("state of while_loop", |xs, body| {
        let all = xs.unstack(0)?;
        let made = all.iter().map(|x| {
            let start = (tensor(0i64)?, (body(x)? * 0)?);
            let once = |(n, _): (Tensor, Tensor)| Ok(((n + 1)?, body(x)?));
            Ok(while_loop(start, |(n, _): (Tensor, Tensor)| n.less(1), once)?.1)
        });
        stack(&made.collect::<Result<Vec<_>>>()?.iter().collect::<Vec<_>>(), 0)
    }),
    ("cond in map_fn", |xs, body| {
        map_fn(xs.clone(), |x: Tensor| {
            let positive = x.get(&[0.into()])?.cast(DType::F64)?.greater(0.0)?;
            cond(&positive, || body(&x), || body(&x))
        })
    }),
    ("map_fn in fori_loop", |xs, body| {
        let like = stack(&[&body(&xs.get(&[0.into()])?)?], 0)?;
        let like = (like.broadcast_to([xs.dim(0)?, like.dim(1)?])? * 0)?;
        fori_loop(0, 2, like, |_, _| map_fn(xs.clone(), |x: Tensor| body(&x)))
    }),
];

#[test]
fn a_region_returns_the_front_part_of_what_it_computed() {
    let _context = own_context();
    for (name, value) in VALUES {
        for (around, region) in REGIONS {
            for (width, count, dtype) in [
                (2, 1, DType::F32),
                (6, 3, DType::F32),
                (7, 6, DType::F64),
                (16, 15, DType::F32),
                (17, 1, DType::F32),
                (9, 4, DType::I32),
                (31, 30, DType::I16),
                (1, 1, DType::F32),
            ] {
                let xs = rows(3, width, dtype);
                let body = move |r: &Tensor| front(&value(r)?, count);
                let expected: Vec<f64> = (xs.unstack(0).unwrap().iter())
                    .flat_map(|x| numbers(&body(x).unwrap()))
                    .collect();
                let what = format!("{name} in {around}: {count} of {width} {dtype}");
                let eager = region(&xs, &body).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert_eq!(numbers(&eager), expected, "eager, {what}");
                let f = function(move |xs: Tensor| region(&xs, &body));
                assert_eq!(numbers(&call_checked(&f, &xs)), expected, "function, {what}");
            }
        }
    }
}

/// The least budget that a refusal names.
fn least(error: &tonnage::Error) -> Bytes {
    match error.kind() {
        ErrorKind::OverBudget { least: Some(least), .. } => *least,
        other => panic!("{other:?}"),
    }
}

#[test]
fn pieces_of_a_batch_return_the_front_part_of_what_they_computed() {
    let _context = own_context();
    let (mut in_pieces, count) = (0, 6);
    for (rows_in, width) in [(3, 7), (2, 5), (5, 3), (4, 33)] {
        for k in 1..3 {
            let make = move || {
                function(move |x: Tensor| {
                    let sums = x.sort(2, false)?.sum([1])?.abs()?;
                    sums.slice(&[Part::ALL, Part::from(0..k)])
                })
            };
            let x = rows(count * rows_in, width, DType::F32)
                .reshape([count as i64, rows_in as i64, width as i64])
                .unwrap();
            let expected = numbers(&make().call(x.clone()).unwrap());
            let mut budget = make().plan(&x).unwrap().peak();
            loop {
                let f = make().budget(budget).unwrap();
                let plan = match f.plan(&x) {
                    Ok(plan) => plan,
                    Err(error) => {
                        let least = least(&error);
                        assert!(make().budget(least).unwrap().call(x.clone()).is_ok());
                        break;
                    }
                };
                in_pieces += usize::from(plan.fitted.is_some_and(|f| f.micro_batches.is_some()));
                assert_eq!(numbers(&call_checked(&f, &x)), expected, "{budget}\n{plan}");
                budget = Bytes::new(plan.peak().get() - 1);
            }
        }
    }
    assert!(in_pieces > 8, "only {in_pieces} of the plans cut the batch");
}
