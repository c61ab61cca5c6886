//! Variables: what their making, their updates and their end cost, to the byte.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use memory::Action;
use tonnage::{
    Bytes, Container, DType, ErrorKind, Result, Reuse, Tensor, TensorType, Variable, constant,
    forget_variables, function, get_variable, memory, name_scope, ones, random_normal, tensor,
    zeros,
};

use crate::common::{in_use, own_context};

fn resident(values: &[f32]) -> Tensor {
    tensor(values).unwrap()
}

fn values(variable: &Variable) -> Vec<f32> {
    variable.read().unwrap().to_vec::<f32>().unwrap()
}

/// Runs `f` with so much more than is in use, and lifts the limit again whatever happens.
fn with_limit(more: Bytes, f: impl FnOnce()) {
    memory::set_limit("cpu:0", Some(in_use() + more)).unwrap();
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    memory::set_limit("cpu:0", None).unwrap();
    if let Err(panic) = done {
        std::panic::resume_unwind(panic);
    }
}

fn peak_over(before: Bytes) -> Bytes {
    memory::info("cpu:0").unwrap().peak - before
}

#[test]
fn a_variable_of_most_of_the_limit_is_made_and_updated_within_it() {
    let _context = own_context();
    let bytes = Bytes::mib(9);
    let count = bytes.as_usize() / 4;
    type Make = fn(usize) -> Result<Tensor>;
    let makers: [(&str, Make); 3] = [
        ("zeros", |n| zeros([n])),
        ("random", |n| random_normal([n], DType::F32)),
        ("a chain of both", |n| (random_normal([n], DType::F32)? * 0.5)? + ones([n])?),
    ];
    for (what, make) in makers {
        let start = in_use();
        with_limit(Bytes::mib(10), || {
            memory::reset_peak("cpu:0").unwrap();
            let v = Variable::new("v", make(count).unwrap()).unwrap();
            assert_eq!(v.bytes(), Bytes::ZERO, "{what}: a recipe until it is written");
            v.assign_add(&constant(1.0f32, ()).unwrap()).unwrap();
            assert_eq!(v.bytes(), bytes, "{what}");
            v.assign_sub(&random_normal([count], DType::F32).unwrap()).unwrap();
            v.assign(&random_normal([count], DType::F32).unwrap()).unwrap();
            v.assign(&zeros([count]).unwrap()).unwrap();
            assert_eq!(peak_over(start), bytes, "{what}: straight into its bytes");
            assert_eq!(v.read().unwrap().sum_all().unwrap().scalar::<f32>().unwrap(), 0.0);
        });
        assert_eq!(in_use(), start, "{what}");
    }
}

#[test]
fn a_variable_grows_and_shrinks_by_what_is_there_without_a_copy_of_it() {
    let _context = own_context();
    let count = 1 << 20;
    let v = Variable::new("v", ones([count]).unwrap()).unwrap();
    v.assign_add(&zeros(()).unwrap()).unwrap(); // from here on in bytes of its own
    let by = tensor(vec![0.25f32; count]).unwrap();
    let start = in_use();
    memory::reset_peak("cpu:0").unwrap();
    v.assign_add(&by).unwrap();
    v.assign_sub(&by).unwrap();
    v.assign_sub(&by).unwrap();
    assert_eq!(peak_over(start), Bytes::ZERO);
    assert_eq!(v.read().unwrap().to_vec::<f32>().unwrap(), vec![0.75; count]);
}

#[test]
fn what_has_no_sign_shrinks_too() {
    let _context = own_context();
    let v = Variable::new("v", tensor([5u8, 3, 0]).unwrap()).unwrap();
    v.assign_sub(&tensor([1u8, 3, 1]).unwrap()).unwrap();
    assert_eq!(v.read().unwrap().to_vec::<u8>().unwrap(), [4, 0, 255]);
}

#[test]
fn a_deferred_variable_gets_its_first_value_straight_into_its_bytes() {
    let _context = own_context();
    let start = in_use();
    with_limit(Bytes::mib(10), || {
        memory::reset_peak("cpu:0").unwrap();
        let count = 9 << 18;
        let v = Variable::deferred("v", TensorType::new(DType::F32, [count]));
        assert!(!v.is_initialized());
        assert_eq!((v.bytes(), in_use()), (Bytes::ZERO, start));
        v.assign(&random_normal([count], DType::F32).unwrap()).unwrap();
        assert!(v.is_initialized());
        v.assign_add(&ones([count]).unwrap()).unwrap();
        assert_eq!(peak_over(start), Bytes::mib(9));
        // One number for all, too.
        let w = Variable::deferred("w", TensorType::new(DType::F32, [3]));
        w.assign(&constant(2.0f32, ()).unwrap()).unwrap();
        assert_eq!(values(&w), [2.0; 3]);
        let x = Variable::deferred("x", TensorType::new(DType::F32, [2, 2]));
        x.assign(&resident(&[1.0, 2.0])).unwrap();
        assert_eq!(values(&x), [1.0, 2.0, 1.0, 2.0]);
    });
    assert_eq!(in_use(), start);
}

#[test]
fn a_planned_call_writes_a_variable_where_it_stands() {
    let _context = own_context();
    let start = in_use();
    with_limit(Bytes::mib(10), || {
        memory::reset_peak("cpu:0").unwrap();
        let v = Variable::new("v", zeros([9 << 18]).unwrap()).unwrap();
        let w = v.clone();
        let f = function(move |by: Tensor| w.assign_add(&by));
        for _ in 0..3 {
            f.call(constant(2.0f32, ()).unwrap()).unwrap();
        }
        assert_eq!(peak_over(start), Bytes::mib(9));
        assert_eq!(v.read().unwrap().max(0).unwrap().scalar::<f32>().unwrap(), 6.0);
    });
    assert_eq!(in_use(), start);
}

#[test]
fn a_value_that_was_read_stays_what_it_was() {
    let _context = own_context();
    let v = Variable::new("v", resident(&[1.0, 2.0])).unwrap();
    let snapshot = v.read().unwrap();
    let view = snapshot.reshape([2, 1]).unwrap();
    drop(snapshot);
    {
        let scope = memory::scope();
        v.assign_add(&resident(&[10.0, 10.0])).unwrap();
        let report = scope.report();
        assert_eq!(report.count(Action::InPlace), 0, "the view holds the bytes\n{report}");
    }
    assert_eq!(view.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert_eq!(values(&v), [11.0, 12.0]);
    drop(view);
    let by = resident(&[1.0, 1.0]);
    let scope = memory::scope();
    v.assign_add(&by).unwrap();
    v.assign(&by).unwrap();
    let report = scope.report();
    assert_eq!(report.count(Action::InPlace), 2, "{report}");
    assert_eq!(report.count(Action::Allocated), 0, "{report}");
}

#[test]
fn a_value_that_was_read_stays_what_it_was_in_planned_calls_too() {
    let _context = own_context();
    let v = Variable::new("v", resident(&[1.0, 2.0])).unwrap();
    let snapshot = v.read().unwrap();
    let w = v.clone();
    // What it was, a view of what it was, and what it is: in one call.
    let f = function(move |by: Tensor| {
        let before = w.read()?;
        let transposed = before.reshape([2, 1])?;
        w.assign_add(&by)?;
        Ok((before, transposed, w.read()?))
    });
    let (before, transposed, now) = f.call(resident(&[10.0, 10.0])).unwrap();
    assert_eq!(before.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert_eq!(transposed.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert_eq!(now.to_vec::<f32>().unwrap(), [11.0, 12.0]);
    // And they keep it in the next one.
    f.call(resident(&[100.0, 100.0])).unwrap();
    assert_eq!(snapshot.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert_eq!(before.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert_eq!(transposed.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert_eq!(now.to_vec::<f32>().unwrap(), [11.0, 12.0]);
    assert_eq!(values(&v), [111.0, 112.0]);
}

#[test]
fn a_variable_can_be_assigned_from_itself() {
    let _context = own_context();
    let v = Variable::new("v", resident(&[1.0, 2.0, 3.0, 4.0])).unwrap();
    let transposed = |v: &Variable| v.read()?.reshape([2, 2])?.t()?.reshape([4]);
    v.assign(&transposed(&v).unwrap()).unwrap();
    assert_eq!(values(&v), [1.0, 3.0, 2.0, 4.0]);
    v.assign_add(&v.read().unwrap()).unwrap();
    assert_eq!(values(&v), [2.0, 6.0, 4.0, 8.0]);
    let w = v.clone();
    let f = function(move |(): ()| {
        w.assign(&transposed(&w)?)?;
        w.assign_add(&w.read()?)
    });
    f.call(()).unwrap();
    assert_eq!(values(&v), [4.0, 8.0, 12.0, 16.0]);
    // Two variables change places.
    let (a, b) = (Variable::new("a", resident(&[1.0])), Variable::new("b", resident(&[2.0])));
    let (a, b) = (a.unwrap(), b.unwrap());
    let (c, d) = (a.clone(), b.clone());
    let swap = function(move |(): ()| {
        let (x, y) = (c.read()?, d.read()?);
        c.assign(&y)?;
        d.assign(&x)
    });
    swap.call(()).unwrap();
    assert_eq!((values(&a), values(&b)), (vec![2.0], vec![1.0]));
}

#[test]
fn scopes_name_variables_and_find_them_again() {
    let _context = own_context();
    let make = |reuse| {
        name_scope("net", || name_scope("layer", || get_variable("w", reuse, || ones([2]))))
    };
    let error = make(Reuse::Always).unwrap_err();
    assert!(error.to_string().contains("no variable `net/layer/w`"), "{error}");
    let first = make(Reuse::Never).unwrap();
    assert_eq!(first.name(), "net/layer/w");
    first.assign(&resident(&[5.0, 6.0])).unwrap();
    assert_eq!(values(&make(Reuse::Always).unwrap()), [5.0, 6.0], "the same variable");
    assert_eq!(values(&make(Reuse::Auto).unwrap()), [5.0, 6.0]);
    assert!(matches!(make(Reuse::Never).unwrap_err().kind(), ErrorKind::NameTaken { .. }));
    // A value that is not needed is not asked for.
    let found = name_scope("net/layer", || get_variable("w", Reuse::Auto, || panic!("asked")));
    assert_eq!(values(&found.unwrap()), [5.0, 6.0]);
    // Another scope, another variable; a scope ends with its closure, even by an error.
    let failed: Result<()> = name_scope("gone", || Err(tensor(vec![vec![1], vec![]]).unwrap_err()));
    failed.unwrap_err();
    let other = get_variable("w", Reuse::Auto, || zeros([1])).unwrap();
    assert_eq!(other.name(), "w");
    forget_variables();
    assert!(make(Reuse::Always).is_err());
}

#[test]
fn a_container_frees_everything_that_was_made_in_it() {
    let _context = own_context();
    let start = in_use();
    let container = Container::new("model");
    let inner = Container::new("inner");
    let (a, b, c) = container
        .enter(|| {
            let a = Variable::new("a", resident(&[1.0; 1000]))?;
            let b = get_variable("b", Reuse::Never, || tensor([2.0f32; 100]))?;
            let c = inner.enter(|| get_variable("b", Reuse::Never, || tensor([3.0f32; 10])))?;
            Ok((a, b, c))
        })
        .unwrap();
    let outside = Variable::new("outside", resident(&[9.0])).unwrap();
    let kept = b.read().unwrap();
    assert_eq!(container.variables().len(), 2);
    assert_eq!(inner.variables().len(), 1);
    container.close().unwrap();
    container.close().unwrap();
    assert!(matches!(a.read().unwrap_err().kind(), ErrorKind::Closed { .. }));
    assert!(matches!(b.assign_add(&kept).unwrap_err().kind(), ErrorKind::Closed { .. }));
    assert_eq!(values(&c), [3.0; 10], "of another container");
    assert_eq!(values(&outside), [9.0]);
    assert_eq!(kept.to_vec::<f32>().unwrap(), [2.0; 100], "a tensor outlives its variable");
    drop((kept, outside));
    assert_eq!(in_use(), start + c.bytes());
    drop(inner); // dropped is closed
    assert!(c.read().is_err());
    assert_eq!(in_use(), start);
}

#[test]
fn the_ledger_knows_a_variable_by_its_name() {
    let _context = own_context();
    let v = name_scope("net", || Variable::new("weights", resident(&[0.0; 5000]))).unwrap();
    let named = || {
        let info = memory::info("cpu:0").unwrap();
        let mine = |h: &&memory::Holder| h.owner.name.as_deref() == Some("net/weights");
        info.holders.iter().find(mine).map(|h| (h.bytes, h.owner.kind))
    };
    assert_eq!(named(), Some((v.bytes(), tonnage::Kind::Variable)));
    // Whoever makes its bytes anew, they are its own: after an update beside a snapshot, from a recipe,
    // and for a planned call.
    let snapshot = v.read().unwrap();
    v.assign_add(&ones([5000]).unwrap()).unwrap();
    drop(snapshot);
    assert_eq!(named(), Some((v.bytes(), tonnage::Kind::Variable)));
    v.assign(&zeros([5000]).unwrap()).unwrap();
    assert_eq!(named(), Some((v.bytes(), tonnage::Kind::Variable)));
    let snapshot = v.read().unwrap();
    let w = v.clone();
    function(move |by: Tensor| w.assign_add(&by)).call(constant(1.0f32, ()).unwrap()).unwrap();
    drop(snapshot);
    assert_eq!(named(), Some((v.bytes(), tonnage::Kind::Variable)));
}
