//! Data in, tensors, data out.

use std::sync::Arc;

use tonnage_core::layout::Layout;
use tonnage_core::recipe::Generator;
use tonnage_core::{Scalar, Source};
use tonnage_runtime::Context;

use super::*;

fn mark() -> Mark {
    Mark { source: Source::here(), kind: Kind::Input }
}

fn check<N: Nested>(data: N, sizes: &[usize], values: &[N::Element]) {
    let array = to_array(&data, mark()).unwrap();
    assert_eq!((array.sizes(), array.dtype()), (sizes, N::Element::DTYPE));
    assert_eq!(array.to_vec::<N::Element>().unwrap(), values);
}

#[test]
fn data_of_any_nesting_become_a_tensor_of_that_shape() {
    check(2.5f64, &[], &[2.5]);
    check([1i64, 2, 3], &[3], &[1, 2, 3]);
    check(vec![1u8, 2], &[2], &[1, 2]);
    check(&[1.0f32, 2.0][..], &[2], &[1.0, 2.0]);
    check([[1i32, 2, 3], [4, 5, 6]], &[2, 3], &[1, 2, 3, 4, 5, 6]);
    check(vec![vec![1u16, 2], vec![3, 4]], &[2, 2], &[1, 2, 3, 4]);
    check(&[&[1i8, 2][..], &[3, 4]], &[2, 2], &[1, 2, 3, 4]);
    check(vec![[vec![1u32], vec![2]], [vec![3], vec![4]]], &[2, 2, 1], &[1, 2, 3, 4]);
    check([[[[1u64]], [[2]]]], &[1, 2, 1, 1], &[1, 2]);
    check([f16::ONE], &[1], &[f16::ONE]);
    check(&&[&bf16::ONE, &bf16::ONE], &[2], &[bf16::ONE; 2]);
    check([[true, false], [false, true]], &[2, 2], &[true, false, false, true].map(Bool::from));
    check(vec![&true], &[1], &[Bool(1)]);
}

#[test]
fn what_is_empty_has_the_lengths_that_its_type_says_and_else_none() {
    check(Vec::<f32>::new(), &[0], &[]);
    check(Vec::<[f32; 3]>::new(), &[0, 3], &[]);
    check(Vec::<Vec<[bool; 2]>>::new(), &[0, 0, 2], &[]);
    check([[0u8; 0]; 2], &[2, 0], &[]);
    check(vec![Vec::<i32>::new(), Vec::new()], &[2, 0], &[]);
    check([[[1.0; 2]; 0]; 3], &[3, 0, 2], &[]);
}

#[test]
fn ragged_data_are_refused_with_the_place_and_both_lengths_before_any_byte_is_asked_for() {
    let message = |result: Result<Sizes>| match result.unwrap_err().kind() {
        ErrorKind::BadArgument { op: "tensor", what, .. } => what.clone(),
        other => panic!("{other}"),
    };
    assert_eq!(
        message(vec![vec![1, 2], vec![3, 4], vec![5]].shape()),
        "ragged data: [2] has length 1, but [0] has length 2"
    );
    assert_eq!(
        message([[vec![1], vec![1]], [vec![1], vec![1, 2]]].shape()),
        "ragged data: [1, 1] has length 2, but [0, 0] has length 1"
    );
    assert_eq!(
        message(vec![vec![], vec![[1, 2]]].shape()),
        "ragged data: [1] has length 1, but [0] has length 0"
    );
    let error = to_array(&[vec![1.0], vec![]], mark()).unwrap_err();
    assert!(error.source_line().is_some_and(|line| line.file().ends_with("tests.rs")));
}

#[test]
fn a_tensor_of_data_is_entered_as_an_input_at_the_line_that_made_it() {
    let _context = Context::new().enter();
    let mark = mark();
    let array = to_array(&vec![0u8; 1 << 20], mark).unwrap();
    let text = format!("input tensor at {}", mark.source);
    let holders = host_ledger().holders(usize::MAX);
    assert!(holders.iter().any(|h| h.owner.to_string() == text), "{holders:?}");
    drop(array);
}

/// 0, 1, 2, ... in memory, transposed in memory, and as a recipe, all of these sizes.
fn counts(sizes: [usize; 3]) -> [Array; 3] {
    let n = sizes.iter().product::<usize>() as i32;
    let whole = Array::from_slice(&(0..n).collect::<Vec<_>>(), &sizes, mark(), "test").unwrap();
    let [a, b, c] = sizes;
    let base = Layout::contiguous(Sizes::from_slice(&[a, c, b]));
    let mut transposed = vec![0; n as usize];
    let mut next = 0;
    base.transpose(&[0, 2, 1]).for_each(|at| {
        transposed[at] = next;
        next += 1;
    });
    let transposed = Array::from_slice(&transposed, &[a, c, b], mark(), "test").unwrap();
    let transposed = transposed.view(base.transpose(&[0, 2, 1]));
    let counter =
        Generator::Count { start: Scalar::Int(0), step: Scalar::Int(1), dtype: DType::I32 };
    let recipe = Recipe::generate(counter, Sizes::from_slice(&sizes));
    [whole, transposed, Array::from_recipe(Arc::new(recipe))]
}

#[test]
fn tensors_come_out_as_vectors_of_their_rank() {
    // More rows than are read at once, rows longer than that, and none.
    for sizes in [[2, 3, 4], [3000, 3, 4], [2, 9, 2000], [2, 0, 3], [2, 3, 0], [0, 2, 3]] {
        let [a, b, c] = sizes;
        let value = |i: usize, j: usize, k: usize| ((i * b + j) * c + k) as i32;
        let matrix = |i| (0..b).map(|j| (0..c).map(|k| value(i, j, k)).collect()).collect();
        let expected: Vec<Vec<Vec<i32>>> = (0..a).map(matrix).collect();
        for array in counts(sizes) {
            assert_eq!(to_vec3::<i32>(&array).unwrap(), expected, "{sizes:?}");
            let flat: Vec<i32> = expected.iter().flatten().flatten().copied().collect();
            assert_eq!(to_vec::<i32>(&array).unwrap(), flat);
        }
    }
    let rows = to_array(&[[true, false], [true, true]], mark()).unwrap();
    assert_eq!(to_vec2::<bool>(&rows).unwrap(), [[true, false], [true, true]]);
    assert_eq!(to_vec::<bool>(&rows).unwrap(), [true, false, true, true]);
}

#[test]
fn a_tensor_of_one_element_comes_out_as_a_scalar_whatever_its_rank() {
    assert_eq!(scalar::<f32>(&to_array(&1.5f32, mark()).unwrap()).unwrap(), 1.5);
    assert_eq!(scalar::<i8>(&to_array(&[[[-3i8]]], mark()).unwrap()).unwrap(), -3);
    assert!(scalar::<bool>(&to_array(&[true], mark()).unwrap()).unwrap());
    let fill = Recipe::fill(Scalar::from(2), DType::U16, Sizes::new());
    assert_eq!(scalar::<u16>(&Array::from_recipe(Arc::new(fill))).unwrap(), 2);
}

#[test]
fn reading_as_something_else_is_an_error_that_says_what_to_do() {
    let row = to_array(&[1.0f32, 2.0], mark()).unwrap();
    assert_eq!(
        scalar::<f32>(&row).unwrap_err().to_string(),
        "scalar: f32[2] has 2 elements; it takes just one; use `to_vec` for more"
    );
    assert_eq!(
        to_vec::<f64>(&row).unwrap_err().to_string(),
        "to_vec: dtypes f32 and f64 do not agree; read it as f32, or `cast` it to f64 first"
    );
    let rank = to_vec2::<f32>(&row).unwrap_err();
    assert_eq!(rank.to_string(), "to_vec2: [2] has rank 1, but rank 2 is needed");
    let dtype = to_vec3::<bool>(&row).unwrap_err();
    assert!(matches!(dtype.kind(), ErrorKind::DTypeMismatch { op: "to_vec3", .. }));
}
