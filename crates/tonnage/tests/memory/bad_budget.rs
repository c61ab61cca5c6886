//! Budgets and limits that make no sense, and those that look so and do.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{
    Bytes, DType, Elementwise, ErrorKind, Function, Result, Tensor, Variable, function, memory,
    tensor,
};

use crate::common::{in_use, own_context};

/// Uses a variable of 64 KiB.
fn uses_a_variable() -> Function<Tensor, Tensor, impl Fn(Tensor) -> Result<Tensor>> {
    let values: Vec<f32> = (0..16_384).map(|i| i as f32 / 16_384.0).collect();
    let value = tensor(values).unwrap().reshape([128, 128]).unwrap();
    let w = Variable::new("weight", value).unwrap();
    function(move |x: Tensor| x.matmul(&w.read()?)?.tanh()).exact()
}

#[test]
fn a_budget_that_is_no_number_of_bytes_says_what_is_wrong_with_it() {
    let _context = own_context();
    for (text, why) in [
        ("0", "a budget of 0 bytes"),
        ("0.2", "a budget of 0 bytes"),
        ("0 MiB", "a budget of 0 bytes"),
        ("", "does not start with a number"),
        ("abc", "does not start with a number"),
        ("-512MiB", "it is negative"),
        ("512 parsecs", "the unit is none of"),
        ("20000000TiB", "more than 2^64 bytes"),
    ] {
        let before = in_use();
        let f = uses_a_variable();
        let error = f.budget(text).map(|_| ()).unwrap_err();
        let said = error.to_string();
        assert!(said.contains(why) && said.contains("MiB"), "{text}: {said}");
        assert!(said.contains(file!()), "whose line? {said}");
        let spec = Tensor::spec(DType::F32, [8, 128]);
        if !why.contains("0 bytes") {
            assert!(uses_a_variable().max_batch(&spec, text).is_err());
        }
        assert_eq!(in_use(), before, "leaked: {said}");
    }
    assert!(uses_a_variable().budget(0u64).is_err());
}

#[test]
fn units_of_1000_and_of_1024_are_two_things() {
    let _context = own_context();
    let x = tensor(vec![1.0f32; 10 * 1024]).unwrap();
    // 40 KiB in and 40 KiB out, which are 81.92 kB.
    let f = || function(|x: Tensor| x.exp());
    assert!(f().budget("80KiB").unwrap().call(x.clone()).is_ok());
    let error = f().budget("80kB").unwrap().call(x.clone()).unwrap_err();
    let ErrorKind::OverBudget { budget, least, .. } = error.kind() else { panic!("{error}") };
    assert_eq!((*budget, *least), (Bytes::new(80_000), Some(Bytes::new(81_920))));
}

#[test]
fn a_budget_below_the_variables_alone_names_them() {
    let _context = own_context();
    let x = tensor(vec![1.0f32; 16 * 128]).unwrap().reshape([16, 128]).unwrap();
    let peak = uses_a_variable().plan(&x).unwrap().peak();
    let error = uses_a_variable().budget("32KiB").unwrap().call(x).unwrap_err();
    let ErrorKind::OverBudget { shortage, least, .. } = error.kind() else { panic!("{error}") };
    assert_eq!(*least, Some(peak));
    let variable = shortage.holders.iter().find(|h| h.what.contains("variable"));
    assert_eq!(variable.map(|v| v.bytes), Some(Bytes::new(64 * 1024)), "{error}");
}

#[test]
fn more_than_the_machine_has_is_a_bound_like_any_other() {
    let _context = own_context();
    let x = tensor(vec![1.0f32; 16 * 128]).unwrap().reshape([16, 128]).unwrap();
    let f = uses_a_variable();
    let free = f.plan(&x).unwrap().peak();
    let f = f.budget("1000TiB").unwrap();
    assert_eq!(f.plan(&x).unwrap().peak(), free);
    assert!(f.call(x.clone()).is_ok());
    memory::set_limit("cpu:0", Some("1000TiB".parse().unwrap())).unwrap();
    let worked = f.call(x);
    // What no machine has is still refused, as without a limit.
    let refused = tonnage::zeros([1usize << 46]).unwrap().cumsum(0);
    memory::set_limit("cpu:0", None).unwrap();
    assert!(worked.is_ok());
    assert!(matches!(refused.unwrap_err().kind(), ErrorKind::NeverFits { .. }));
}

#[test]
fn a_limit_of_nothing_or_of_no_device_is_refused_and_changes_nothing() {
    let _context = own_context();
    let before = memory::info("cpu:0").unwrap().limit;
    let error = memory::set_limit("cpu:0", Some(Bytes::ZERO)).unwrap_err().to_string();
    assert!(error.contains("a limit of 0 bytes") && error.contains("bad_budget.rs"), "{error}");
    let error = memory::set_limit("gpu:7", Some(Bytes::mib(1))).unwrap_err().to_string();
    assert!(error.contains("there is no device `cuda:7`"), "{error}");
    assert_eq!(memory::info("cpu:0").unwrap().limit, before);
}
