//! Loops through the public surface: values, memory, bad bodies.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use tonnage::{
    DType, Elementwise, ErrorKind, Loop, Result, Tensor, Variable, cond, constant, fori_loop,
    function, map_fn, random_normal, scan, switch, tensor, while_loop, zeros,
};

use crate::common::{call_checked, close, in_use, own_context};

fn numbers(sizes: &[i64], seed: u64) -> Tensor {
    let count: i64 = sizes.iter().product();
    let value = |i: i64| (((i as u64 * 7919 + seed * 104_729) % 2003) as f64 / 1001.0 - 1.0) as f32;
    tensor((0..count).map(value).collect::<Vec<_>>()).unwrap().reshape(sizes).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec::<f32>().unwrap()
}

#[test]
fn a_scan_stacks_what_its_iterations_return() {
    let _context = own_context();
    let step = |h: Tensor, x: Tensor| -> Result<(Tensor, Tensor)> {
        let next = ((h * 0.5)? + &x)?;
        Ok((next.clone(), (next * x)?))
    };
    for reverse in [false, true] {
        let options = if reverse { Loop::new().reverse() } else { Loop::new() };
        let f = function(move |(h, xs): (Tensor, Tensor)| options.scan(h, xs, step));
        let (h, xs) = (numbers(&[3], 1), numbers(&[5, 3], 2));
        let (last, ys) = call_checked(&f, &(h.clone(), xs.clone()));
        let rows = xs.to_vec2::<f32>().unwrap();
        let mut expected = vec![vec![0.0; 3]; 5];
        let mut state = values(&h);
        for i in 0..5 {
            let i = if reverse { 4 - i } else { i };
            state = state.iter().zip(&rows[i]).map(|(h, x)| h * 0.5 + x).collect();
            expected[i] = state.iter().zip(&rows[i]).map(|(h, x)| h * x).collect();
        }
        assert_eq!(ys.to_vec2::<f32>().unwrap(), expected);
        assert_eq!(values(&last), state);
        // Eager mode says the same.
        let options = if reverse { Loop::new().reverse() } else { Loop::new() };
        let (_, eager) = options.scan(h, xs, step).unwrap();
        assert_eq!(values(&eager), values(&ys));
    }
}

#[test]
fn rows_of_any_view_are_found() {
    let _context = own_context();
    let xs = numbers(&[4, 6], 3);
    let views = [
        xs.t().unwrap(),
        xs.slice(&[tonnage::Part::ALL.by(-1)]).unwrap(),
        xs.t().unwrap().slice(&[tonnage::Part::ALL.by(-2), tonnage::Part::ALL.by(-1)]).unwrap(),
        xs.slice(&[tonnage::Part::ALL, (1..5).into()]).unwrap(),
        constant(0.25f32, [3, 2]).unwrap(),
        tonnage::range(0.0f32, 6.0, 1.0).unwrap().reshape([3, 2]).unwrap(),
        tonnage::range(0.0f32, 6.0, 1.0).unwrap().reshape([3, 2]).unwrap().t().unwrap(),
    ];
    for view in views {
        let f = function(|xs: Tensor| map_fn(xs, |x: Tensor| (x.square()? * 2.0)? + 1.0));
        let ys = call_checked(&f, &view);
        let expected: Vec<f32> = values(&view).iter().map(|x| x * x * 2.0 + 1.0).collect();
        assert_eq!(values(&ys), expected);
        assert_eq!(ys.shape(), view.shape());
    }
}

#[test]
fn loops_of_no_iterations_return_what_they_start_with() {
    let _context = own_context();
    let f = function(|(h, xs): (Tensor, Tensor)| {
        let (last, ys) = scan(h.clone(), xs, |h: Tensor, x: Tensor| Ok(((h + &x)?, x)))?;
        let counted = fori_loop(3, 3, h.clone(), |_, h: Tensor| h * 2.0)?;
        let never = while_loop(h, |_| tensor(false), |h: Tensor| h * 2.0)?;
        Ok((last, ys, counted, never))
    });
    let h = numbers(&[2], 1);
    let (last, ys, counted, never) = call_checked(&f, &(h.clone(), zeros([0, 2]).unwrap()));
    assert_eq!(ys.shape().sizes().unwrap().as_slice(), [0, 2]);
    for result in [last, counted, never] {
        assert_eq!(values(&result), values(&h));
    }
}

#[test]
fn a_loop_counts_from_numbers_and_from_data() {
    let _context = own_context();
    let sums = |start: i64, stop: i64| -> i64 { (start..stop).map(|i| i * i).sum() };
    let body = |i: Tensor, sum: Tensor| sum + (&i * &i)?;
    for (start, stop) in [(0, 5), (-3, 4), (5, 2)] {
        let known = fori_loop(start, stop, tensor(0i64).unwrap(), body).unwrap();
        assert_eq!(known.scalar::<i64>().unwrap(), sums(start, stop));
        let f = function(move |stop: Tensor| fori_loop(start, stop, constant(0i64, ())?, body));
        let data = call_checked(&f, &tensor(stop).unwrap());
        assert_eq!(data.scalar::<i64>().unwrap(), sums(start, stop));
        let f = function(move |(): ()| fori_loop(start, stop, constant(0i64, ())?, body));
        assert_eq!(call_checked(&f, &()).scalar::<i64>().unwrap(), sums(start, stop));
    }
}

#[test]
fn memory_does_not_depend_on_the_number_of_iterations() {
    let _context = own_context();
    let peak = |iterations: i64| {
        let f = function(move |(h, w): (Tensor, Tensor)| {
            fori_loop(0, iterations, h, |_, h: Tensor| h.matmul(&w)?.tanh())
        });
        let args = (numbers(&[64, 64], 1), numbers(&[64, 64], 2));
        call_checked(&f, &args);
        f.plan(&args).unwrap().peak()
    };
    assert_eq!(peak(2), peak(100));
}

#[test]
fn a_loop_of_products_takes_its_operands_and_one_more_state() {
    let _context = own_context();
    let n = 128i64;
    let state = tonnage::Bytes::new((n * n * 4) as u64);
    for iterations in [3i64, 40] {
        let f = function(move |(h, w): (Tensor, Tensor)| {
            fori_loop(0, iterations, h, |_, h: Tensor| h.matmul(&w)?.tanh())
        });
        let (h, w) = (numbers(&[n, n], 1), numbers(&[n, n], 2));
        let plan = f.plan(&(h.clone(), w.clone())).unwrap();
        let gemm = {
            let g = function(|(h, w): (Tensor, Tensor)| h.matmul(&w));
            let plan = g.plan(&(h.clone(), w.clone())).unwrap();
            plan.buffers.iter().filter(|b| b.kind == tonnage::Kind::Scratch).map(|b| b.bytes).sum()
        };
        // Given up, h is one of the two states.
        let before = in_use();
        tonnage::memory::reset_peak("cpu:0").unwrap();
        f.call((h, w.clone())).unwrap();
        let obtained = tonnage::memory::info("cpu:0").unwrap().peak - before;
        let small = tonnage::Bytes::new(8192); // a result starts on a page
        assert!(obtained <= state + gemm + small, "{obtained} for {state} and {gemm}");
        // Kept, it is one more.
        assert!(plan.peak() <= state + state + state + state + gemm + small, "{plan}");
    }
}

#[test]
fn one_of_many_branches_runs() {
    let _context = own_context();
    let f = function(|(i, x): (Tensor, Tensor)| {
        switch(&i, &[&|| (&x).square(), &|| (&x).exp(), &|| -&x])
    });
    let x = tensor([1.0f64, -2.0]).unwrap();
    let expect = |i: i32, expected: [f64; 2]| {
        close(&call_checked(&f, &(tensor(i).unwrap(), x.clone())), &expected, 1e-12);
    };
    expect(0, [1.0, 4.0]);
    expect(1, [1f64.exp(), (-2f64).exp()]);
    for other in [2, 3, 1000, -1, i32::MIN] {
        expect(other, [-1.0, 2.0]);
    }
    let error = switch::<Tensor>(&tensor(1).unwrap(), &[]).unwrap_err().to_string();
    assert!(error.contains("switch: no branches"), "{error}");
    let error = switch(&x, &[&|| -&x]).unwrap_err().to_string();
    assert!(error.contains("switch: ") && error.contains("f64[2]"), "{error}");
}

#[test]
fn a_loop_variable_may_grow_up_to_its_bound() {
    let _context = own_context();
    // Throws away what is not positive, iteration by iteration.
    let shrink = |xs: Tensor| {
        let start = (constant(0i32, ())?, xs);
        let (_, kept) = Loop::new().bound(1, 0, 8).while_loop(
            start,
            |(i, _)| i.less(3),
            |(i, xs): (Tensor, Tensor)| {
                let xs = (xs - 1.0)?;
                let positive = constant(0.0f32, ())?.less(&xs)?;
                Ok(((i + 1)?, xs.boolean_mask(&positive)?))
            },
        )?;
        Ok(kept)
    };
    let f = function(shrink);
    let xs = tensor([5.0f32, 1.5, 0.5, 4.0, 2.5, 3.5]).unwrap();
    let kept = call_checked(&f, &xs);
    assert_eq!(values(&kept), [2.0, 1.0, 0.5]);
    assert!(f.plan(&xs).unwrap().is_bound);
    assert_eq!(values(&shrink(xs).unwrap()), [2.0, 1.0, 0.5]);
    let all_gone = call_checked(&f, &tensor([1.0f32, 2.0, 0.0, 0.0, 0.0, 0.0]).unwrap());
    assert_eq!(all_gone.shape().sizes().unwrap().as_slice(), [0]);
    let error = shrink(zeros([9]).unwrap()).unwrap_err().to_string();
    assert!(error.contains("starts with 9 along axis 0, over its bound 8"), "{error}");
}

#[test]
fn a_body_that_changes_a_type_is_told_where() {
    let _context = own_context();
    let x = numbers(&[2], 1);
    let line = line!() + 5;
    let error = while_loop(
        (tensor(0i32).unwrap(), x.clone()),
        |(i, _)| i.less(3),
        |(i, x): (Tensor, Tensor)| {
            let sum = x.sum_all()?;
            Ok(((i + 1)?, sum))
        },
    )
    .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("while_loop: loop variable 1 enters as f32[2] and leaves as f32[]"),
        "{text}"
    );
    assert!(text.contains(&format!("loops.rs:{}", line)), "{text}");
    assert_eq!(error.source_line().unwrap().line(), line - 4, "{text}");
    assert!(matches!(error.kind(), ErrorKind::BadArgument { .. }));
    let error = fori_loop(0, 3, x.clone(), |_, x: Tensor| x.cast(DType::F64)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("fori_loop: loop variable 0 enters as f32[2] and leaves as f64[2]")
    );
    let error = scan(x.clone(), zeros([3, 3]).unwrap(), |h: Tensor, x: Tensor| Ok(((h + x)?, ())))
        .unwrap_err();
    assert!(error.to_string().contains("add: "), "{error}");
    let error = map_fn(tensor(1.0f32).unwrap(), |x: Tensor| Ok(x)).unwrap_err().to_string();
    assert!(error.contains("map_fn: input 0 is a scalar"), "{error}");
    let two = (zeros([3, 2]).unwrap(), zeros([4, 2]).unwrap());
    let error = map_fn(two, |(a, b): (Tensor, Tensor)| a + b).unwrap_err().to_string();
    assert!(error.contains("input 1 has 4 rows, where 3 are expected"), "{error}");
    let error = scan(x, (), |h: Tensor, ()| Ok((h, ()))).unwrap_err().to_string();
    assert!(error.contains("nothing says how many iterations"), "{error}");
}

#[test]
fn a_condition_that_writes_is_refused() {
    let _context = own_context();
    let v = Variable::new("v", tensor(1.0f32).unwrap()).unwrap();
    let error = while_loop(
        tensor(0i32).unwrap(),
        |i| {
            v.assign(&tensor(2.0f32)?)?;
            i.less(3)
        },
        |i: Tensor| i + 1,
    );
    assert!(error.unwrap_err().to_string().contains("the condition writes a variable"));
    assert_eq!(v.read().unwrap().scalar::<f32>().unwrap(), 1.0);
}

#[test]
fn variables_are_written_in_bodies_in_eager_mode_and_in_functions() {
    let _context = own_context();
    let v = Variable::new("v", numbers(&[100, 100], 1)).unwrap();
    let before = values(&v.read().unwrap());
    let w = v.clone();
    let iteration = move |i: Tensor, (): ()| w.assign(&(w.read()? * (i + 1)?.cast(DType::F32)?)?);
    let expected: Vec<f32> = before.iter().map(|x| x * 1.0 * 2.0 * 3.0).collect();
    let held = in_use();
    tonnage::memory::reset_peak("cpu:0").unwrap();
    fori_loop(0, 3, (), iteration.clone()).unwrap();
    let peak = tonnage::memory::info("cpu:0").unwrap().peak - held;
    assert!(peak < tonnage::Bytes::new(1024), "the variable lives once, not {peak} more");
    assert_eq!(values(&v.read().unwrap()), expected);
    let f = function(move |(): ()| fori_loop(0, 3, (), iteration.clone()));
    call_checked(&f, &());
    let plan = f.plan(&()).unwrap();
    assert!(plan.obtains() < tonnage::Bytes::new(1024), "{plan}");
    let expected: Vec<f32> =
        expected.iter().map(|x| x * 1.0 * 2.0 * 3.0).map(|x| x * 1.0 * 2.0 * 3.0).collect();
    assert_eq!(values(&v.read().unwrap()), expected);
}

#[test]
fn a_branch_writes_a_variable_in_place() {
    let _context = own_context();
    let v = Variable::new("v", numbers(&[100, 100], 1)).unwrap();
    let before = values(&v.read().unwrap());
    let w = v.clone();
    let f = function(move |(yes, x): (Tensor, Tensor)| {
        cond(&yes, || w.assign_add(&x), || Ok(()))?;
        cond(&yes, || w.assign(&w.read()?.t()?), || Ok(()))
    });
    let x = tensor(2.0f32).unwrap();
    call_checked(&f, &(tensor(false).unwrap(), x.clone()));
    assert_eq!(values(&v.read().unwrap()), before);
    f.call((tensor(true).unwrap(), x)).unwrap();
    let got = v.read().unwrap().to_vec2::<f32>().unwrap();
    assert_eq!(got[3][7], before[703] + 2.0);
    let v = Variable::new("u", numbers(&[100, 100], 1)).unwrap();
    let w = v.clone();
    let f = function(move |(yes, x): (Tensor, Tensor)| cond(&yes, || w.assign_add(&x), || Ok(())));
    let args = (tensor(true).unwrap(), tensor(1.0f32).unwrap());
    assert!(f.plan(&args).unwrap().obtains() < tonnage::Bytes::new(1024));
    call_checked(&f, &args);
}

#[test]
fn a_body_that_fails_leaves_variables_as_they_were() {
    let _context = own_context();
    let v = Variable::new("v", tensor([1.0f32, 2.0, 3.0]).unwrap()).unwrap();
    let w = v.clone();
    let f = function(move |picks: Tensor| {
        scan((), picks, |(), pick: Tensor| {
            w.assign_add(&w.read()?.gather(&pick, 0)?)?;
            Ok(((), ()))
        })
    });
    f.call(tensor([0i64, 1]).unwrap()).unwrap();
    let written = [1.0, 2.0, 3.0f32].map(|x| (x + 1.0) + (2.0 + 1.0));
    assert_eq!(values(&v.read().unwrap()), written);
    let error = f.call(tensor([0i64, 7]).unwrap()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::IndexOutOfRange { .. }), "{error}");
    assert_eq!(values(&v.read().unwrap()), written, "as it was");
    f.call(tensor([0i64, 1]).unwrap()).unwrap();
}

#[test]
fn a_captured_constant_is_read_and_not_made() {
    let _context = own_context();
    let f = function(|x: Tensor| {
        let ones = constant(1.0f32, [200, 200])?;
        fori_loop(0, 4, x, |_, x: Tensor| x + &ones)
    });
    let x = numbers(&[200, 200], 1);
    let plan = f.plan(&x).unwrap();
    assert!(plan.obtains() < tonnage::Bytes::new(200 * 200 * 4 + 8192), "{plan}");
    let expected: Vec<f32> = values(&x).iter().map(|x| x + 1.0 + 1.0 + 1.0 + 1.0).collect();
    assert_eq!(values(&call_checked(&f, &x)), expected);
    // A random one is the same in every iteration.
    let f = function(|x: Tensor| {
        let noise = random_normal([50], DType::F32)?;
        Ok((fori_loop(0, 2, x, |_, x: Tensor| x + &noise)?, (noise * 2.0)?))
    });
    let (sum, twice) = f.call(zeros([50]).unwrap()).unwrap();
    assert_eq!(values(&sum), values(&twice));
}

#[test]
fn what_a_loop_carries_through_a_branch_is_there_once() {
    let _context = own_context();
    // A value that a branch leaves as it is, beside what the other branch makes of it: in place, in another order, of both branches,
    // and with the old value read by the branch or after it.
    type Branches = fn(&Tensor, &Tensor, &Tensor) -> Result<(Tensor, Tensor)>;
    let table: [(&str, u64, Branches); 5] = [
        ("in place", 2, |i, a, b| {
            cond(i, || Ok(((a * 0.5)?, (b + 1.0)?)), || Ok((a.clone(), b.clone())))
        }),
        ("the other way around", 2, |i, a, b| {
            cond(i, || Ok((a.clone(), b.clone())), || Ok(((a * 0.5)?, (b + 1.0)?)))
        }),
        ("each its own", 2, |i, a, b| {
            cond(i, || Ok(((a * 0.5)?, b.clone())), || Ok((a.clone(), (b + 1.0)?)))
        }),
        ("swapped", 6, |i, a, b| {
            cond(i, || Ok((b.clone(), a.clone())), || Ok((a.clone(), b.clone())))
        }),
        ("read afterwards", 4, |i, a, b| {
            let (c, d) = cond(i, || Ok(((a * 0.5)?, (b + 1.0)?)), || Ok((a.clone(), b.clone())))?;
            Ok(((c + a)?, (d + b)?))
        }),
    ];
    let size = 4 << 14;
    for (what, most, branches) in table {
        let f = function(move |(a, b): (Tensor, Tensor)| {
            // Made here, so that the loop may write over them.
            let start = ((a * 2.0)?, (b * 3.0)?);
            fori_loop(0, 5, start, |i, (a, b): (Tensor, Tensor)| {
                branches(&i.less(&constant(3i64, ())?)?, &a, &b)
            })
        });
        let (a, b) = (numbers(&[1 << 14], 1), numbers(&[1 << 14], 2));
        let (c, d) = call_checked(&f, &(a.clone(), b.clone()));
        let (mut x, mut y) = ((&a * 2.0).unwrap(), (&b * 3.0).unwrap());
        for i in 0..5i64 {
            (x, y) = branches(&tensor(i < 3).unwrap(), &x, &y).unwrap();
        }
        assert_eq!((values(&c), values(&d)), (values(&x), values(&y)), "{what}");
        let obtains = f.plan(&(a, b)).unwrap().obtains().get();
        assert!(obtains < most * size + 16_384, "{what}: {obtains} bytes for {most} of {size}");
    }
}
