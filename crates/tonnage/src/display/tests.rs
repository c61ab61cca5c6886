//! Printing against NumPy's own text (`cases.txt`, written by `cases.py`), and against the ledger.

use std::fmt;
use std::sync::Arc;

use tonnage_core::layout::{Layout, Slice};
use tonnage_core::recipe::{Distribution, Generator, Key, Recipe};
use tonnage_core::{DType, FromScalar, Kind, Mark, Scalar, Sizes, Source, bf16, with_element};
use tonnage_runtime::{Array, Context, host_ledger};

use super::*;

/// A tensor as its users print it.
struct Printed(Array, PrintOptions);

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        format(&self.0, f, self.1)
    }
}

impl fmt::Debug for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(&self.0, f)
    }
}

fn print(array: &Array) -> Printed {
    Printed(array.clone(), PrintOptions::default())
}

fn resident(dtype: DType, sizes: &[usize], values: impl Iterator<Item = Scalar>) -> Array {
    let mark = Mark { source: Source::here(), kind: Kind::Input };
    with_element!(dtype, T => {
        let values: Vec<T> = values.map(T::from_scalar).collect();
        Array::from_slice(&values, sizes, mark, "case").unwrap()
    })
}

fn scalar(text: &str) -> Scalar {
    match text.parse::<i128>() {
        Ok(int) => Scalar::Int(int),
        Err(_) => Scalar::Float(text.parse().unwrap()),
    }
}

fn dtype(name: &str) -> DType {
    DType::ALL.into_iter().find(|d| d.name() == name).unwrap()
}

fn sizes(text: &str) -> Sizes {
    text.split('x').filter(|size| *size != "-").map(|size| size.parse().unwrap()).collect()
}

/// The tensors that a case describes: in memory, and, where it counts, as a recipe too.
fn arrays(case: &str) -> Vec<Array> {
    let words: Vec<&str> = case.split(' ').collect();
    let (dtype, sizes) = (dtype(words[0]), sizes(words[1]));
    match words[2..] {
        ["list", ref values @ ..] => {
            vec![resident(dtype, &sizes, values.iter().map(|text| scalar(text)))]
        }
        ["count", start, step] => {
            let (start, step) = (scalar(start), scalar(step));
            let value = |i| start.to_f64() + i as f64 * step.to_f64();
            let values = (0..sizes.iter().product()).map(|i: usize| Scalar::Float(value(i)));
            let made = resident(dtype, &sizes, values);
            // Booleans do not count.
            if dtype == DType::Bool {
                return vec![made];
            }
            let counter = Generator::Count { start, step, dtype };
            vec![made, Array::from_recipe(Arc::new(Recipe::generate(counter, sizes)))]
        }
        _ => panic!("no case: {case}"),
    }
}

#[test]
fn tensors_print_as_numpy_prints_them() {
    let mut cases = 0;
    for block in include_str!("cases.txt").split("\n\n").filter(|block| !block.is_empty()) {
        let (case, text) = block.split_once('\n').unwrap();
        let expected: Vec<&str> = text.lines().map(|line| &line[1..]).collect();
        for array in arrays(case) {
            assert_eq!(print(&array).to_string(), expected.join("\n"), "{case}");
        }
        cases += 1;
    }
    assert!(cases > 150, "{cases} cases were read");
}

#[test]
fn the_brain_float_prints_its_own_shortest_digits() {
    let check = |values: &[f32], expected: &str| {
        let values = values.iter().map(|x| Scalar::from(bf16::from_f32(*x)));
        let sizes = [values.len()];
        assert_eq!(print(&resident(DType::BF16, &sizes, values)).to_string(), expected);
    };
    check(&[0.1, 0.2, 3.0], "[0.1 0.2 3. ]");
    check(&[1.0 / 3.0, 2.0 / 3.0], "[0.334 0.668]");
    check(&[1e30, 1.0, -2.5], "[ 1.0e+30  1.0e+00 -2.5e+00]");
    // At 300 the steps are of 2.
    check(&[300.0, 301.0, 303.0], "[3.00e+02 3.00e+02 3.04e+02]");
    check(&[64.0, 65.5, 99.5], "[64.  65.5 99.5]");
    check(&[f32::NAN, f32::NEG_INFINITY], "[ nan -inf]");
}

#[test]
fn a_precision_of_the_formatter_limits_the_digits() {
    let array = resident(DType::F64, &[2], [1.23456, 20.0].into_iter().map(Scalar::from));
    assert_eq!(format!("{:.3}", print(&array)), "[ 1.235 20.   ]");
    let one = resident(DType::F64, &[], [1.23456].into_iter().map(Scalar::from));
    assert_eq!(format!("{:.2} {}", print(&one), print(&one)), "1.23 1.23456");
}

#[test]
fn options_say_where_to_cut_and_wrap() {
    let array = resident(DType::I32, &[8], (0..8).map(Scalar::from));
    let options = PrintOptions { threshold: 7, edge: 2, ..PrintOptions::default() };
    assert_eq!(Printed(array.clone(), options).to_string(), "[0 1 ... 6 7]");
    let options = PrintOptions { width: 8, ..PrintOptions::default() };
    assert_eq!(Printed(array, options).to_string(), "[0 1 2\n 3 4 5\n 6 7]");
}

#[test]
fn debug_says_type_and_state() {
    let row = resident(DType::F32, &[3], (1..4).map(Scalar::from));
    assert_eq!(format!("{:?}", print(&row)), "Tensor(f32[3], resident, [1. 2. 3.])");
    let fill = Recipe::fill(Scalar::from(2), DType::I64, Sizes::from_slice(&[2, 2]));
    let fill = Array::from_recipe(Arc::new(fill));
    assert_eq!(format!("{:?}", print(&fill)), "Tensor(i64[2, 2], recipe,\n[[2 2]\n [2 2]])");
    let empty = resident(DType::F32, &[0, 3], std::iter::empty());
    assert_eq!(format!("{:?}", print(&empty)), "Tensor(f32[0, 3], resident, [])");
}

#[test]
fn views_print_what_they_show() {
    let base = resident(DType::I32, &[40, 50], (0..2000).map(Scalar::from));
    let transposed = base.view(base.layout().transpose(&[1, 0]));
    let copy = (0..2000).map(|i| Scalar::from(i % 40 * 50 + i / 40));
    let copy = resident(DType::I32, &[50, 40], copy);
    assert_eq!(print(&transposed).to_string(), print(&copy).to_string());
    let part = base
        .layout()
        .slice(&[Slice { start: 39, len: 2, step: -2 }, Slice { start: 1, len: 3, step: 20 }]);
    let expected = "[[1951 1971 1991]\n [1851 1871 1891]]";
    assert_eq!(print(&base.view(part)).to_string(), expected);
}

#[test]
fn printing_a_recipe_takes_no_memory_and_leaves_it_a_recipe() {
    let _context = Context::new().enter();
    let sizes = Sizes::from_slice(&[1000, 1000, 1000]);
    let fill = Recipe::fill(Scalar::from(1.5), DType::F32, sizes.clone());
    let random = Generator::Random {
        key: Key::Fixed([1, 2]),
        distribution: Distribution::Uniform,
        dtype: DType::F32,
    };
    for recipe in [fill, Recipe::generate(random, sizes.clone())] {
        let array = Array::from_recipe(Arc::new(recipe));
        let (in_use, peak) = (host_ledger().in_use(), host_ledger().peak());
        let text = print(&array).to_string();
        assert_eq!((host_ledger().in_use(), host_ledger().peak()), (in_use, peak));
        assert!(array.as_recipe().is_some());
        assert_eq!(text.matches("...").count(), 1 + 6 * (1 + 6), "{text}");
    }
}

#[test]
fn the_shown_elements_of_a_random_recipe_are_those_it_has_when_it_is_resident() {
    let random = Generator::Random {
        key: Key::Fixed([3, 4]),
        distribution: Distribution::Normal,
        dtype: DType::F64,
    };
    let recipe = Recipe::generate(random, Sizes::from_slice(&[30, 2, 40]));
    let array = Array::from_recipe(Arc::new(recipe));
    let values = array.to_vec::<f64>().unwrap();
    let copy = resident(DType::F64, array.sizes(), values.into_iter().map(Scalar::from));
    let shown = print(&array).to_string();
    assert!(array.as_recipe().is_some());
    assert_eq!(shown, print(&copy).to_string());
    assert_eq!(copy.layout(), &Layout::contiguous(Sizes::from_slice(&[30, 2, 40])));
}
