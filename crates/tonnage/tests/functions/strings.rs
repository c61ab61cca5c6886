//! Tensors of strings: what they take, what moves them, and that functions, loops and pipelines take them like others.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::data::{Dataset, Padding, Pipeline};
use tonnage::strings::{Strings, Value};
use tonnage::{
    Bytes, DType, Dim, Elementwise, Index, Result, Tensor, cond, function, tensor, while_loop,
};

use crate::common::{call_checked, in_use, own_context};

fn texts(strings: &Strings) -> Vec<String> {
    let all = strings.to_vec().unwrap();
    all.into_iter().map(|text| String::from_utf8(text).unwrap()).collect()
}

#[test]
fn strings_take_their_bytes_and_for_each_an_offset_and_a_size() {
    let _context = own_context();
    let before = in_use();
    let x = Strings::new(&vec!["tonnage"; 1000], [1000]).unwrap();
    let rounded = |n: u64| Bytes::new(n).rounded();
    assert_eq!(in_use() - before, rounded(7000) + rounded(8000) + rounded(8000));
    let one = Strings::scalar("tonnage").unwrap();
    assert_eq!(in_use() - before, rounded(7000) + rounded(8000) + rounded(8000) + rounded(7));
    // A string everywhere takes no more, and what moves elements touches no byte.
    let everywhere = one.each(|part| part.broadcast_to([1 << 40])).unwrap();
    let part = everywhere.each(|part| part.slice(&[(-2..).into()])).unwrap();
    assert_eq!(texts(&part), ["tonnage", "tonnage"]);
    assert_eq!(in_use() - before, rounded(7000) + rounded(8000) + rounded(8000) + rounded(7));
    drop((x, one, everywhere, part));
    assert_eq!(in_use(), before);
}

#[test]
fn new_strings_take_just_their_bytes_while_they_are_made() {
    let _context = own_context();
    let x = Strings::new(&vec!["ab"; 500], [500]).unwrap();
    let before = in_use();
    tonnage::memory::reset_peak("cpu:0").unwrap();
    let twice = Strings::written("twice", [500].into(), &[&x], &[], |strings, _, i, sink| {
        sink.push(strings[0].get(i)?);
        sink.push(strings[0].get(i)?);
        Ok(())
    });
    let rounded = |n: u64| Bytes::new(n).rounded();
    let takes = rounded(2000) + rounded(4000) + rounded(4000);
    assert_eq!(in_use() - before, takes);
    assert_eq!(tonnage::memory::info("cpu:0").unwrap().peak - before, takes);
    assert_eq!(texts(&twice.unwrap()), ["abab"; 500]);
}

#[test]
fn one_trace_serves_any_number_of_bytes() {
    let _context = own_context();
    let f = function(|(x, y): (Strings, Strings)| {
        let equal = x.equal(&y)?;
        let chosen = x.or_where(&(&equal).logical_not()?, &Strings::scalar("same")?)?;
        Ok((equal, x.sizes().clone(), chosen))
    });
    for (a, b) in [(["a", "bb"], ["a", "c"]), (["", ""], ["long", ""]), (["x", "yyyy"], ["x", "y"])]
    {
        let (a, b) = (Strings::new(&a, [2]).unwrap(), Strings::new(&b, [2]).unwrap());
        let (equal, sizes, chosen) = call_checked(&f, &(a.clone(), b.clone()));
        let (a, b) = (texts(&a), texts(&b));
        let same = |i: usize| a[i] == b[i];
        assert_eq!(equal.to_vec::<bool>().unwrap(), [same(0), same(1)]);
        assert_eq!(sizes.to_vec::<i64>().unwrap(), [a[0].len() as i64, a[1].len() as i64]);
        let expected: Vec<&str> =
            (0..2).map(|i| if same(i) { "same" } else { a[i].as_str() }).collect();
        assert_eq!(texts(&chosen), expected);
    }
    assert_eq!(f.traces(), 1);
}

#[test]
fn a_signature_has_open_lengths_of_strings() {
    let f = function(|x: Strings| x.each(|part| part.reverse([0])))
        .signature(Strings::spec([Dim::open("rows")], "bytes"));
    for n in 1..4 {
        let x = Strings::new(&vec!["a"; n], [n]).unwrap();
        assert_eq!(f.call(x).unwrap().shape().sizes().unwrap()[0], n);
    }
    assert_eq!(f.traces(), 1);
    assert!(f.call(Strings::scalar("a").unwrap()).is_err());
}

#[test]
fn rows_of_many_sizes_are_one_trace_in_the_end() {
    let f = function(|x: Strings| x.each(|part| part.reverse([0]))).reduce_retracing();
    for n in 1..10 {
        f.call(Strings::new(&vec!["ab"; n], [n]).unwrap()).unwrap();
    }
    assert_eq!(f.traces(), 3);
}

#[test]
fn loops_and_branches_carry_strings() {
    let f = function(|(x, flag): (Strings, Tensor)| {
        let picked = cond(
            &flag,
            || x.each(|part| part.get(&[Index::At(0)])),
            || x.each(|part| part.get(&[Index::At(1)])),
        )?;
        let body = |(i, word): (Tensor, Strings)| {
            let word = word.each(|part| part.expand_dims(0)?.squeeze([0]))?;
            Ok(((i + 1)?, word))
        };
        Ok(while_loop((tensor(0i32)?, picked), |(i, _)| i.less(3), body)?.1)
    });
    let x = Strings::new(&["yes", "no"], [2]).unwrap();
    assert_eq!(texts(&f.call((x.clone(), tensor(true).unwrap())).unwrap()), ["yes"]);
    assert_eq!(texts(&f.call((x, tensor(false).unwrap())).unwrap()), ["no"]);
}

#[test]
fn new_strings_are_not_made_while_a_function_is_traced_but_constants_are() {
    let f = function(|x: Strings| x.packed());
    assert!(f.call(Strings::scalar("a").unwrap()).is_err());
    let f = function(|x: Tensor| {
        let word = Strings::scalar("word")?.packed()?;
        Ok((x, word.equal(&Strings::scalar("word")?)?))
    });
    assert!(f.call(tensor(1.0f32).unwrap()).unwrap().1.scalar::<bool>().unwrap());
}

#[test]
fn strings_of_several_tensors_are_joined_without_what_nobody_needs() {
    let _context = own_context();
    let many = Strings::new(&vec!["0123456789"; 1000], [1000]).unwrap();
    let row = |i: i64| many.each(|part| part.get(&[Index::At(i)])).unwrap();
    let rows = [Value::Strings(row(3)), Value::Strings(row(7))];
    // Rows of one tensor share its bytes.
    let joined = Value::stack(&rows, 0).unwrap().strings().unwrap();
    assert_eq!(joined.parts().2.shape().count(), Some(10_000));
    assert_eq!(texts(&joined), ["0123456789"; 2]);
    // With others they are brought together first.
    let other = Value::Strings(Strings::scalar("x").unwrap());
    let joined = Value::stack(&[rows[0].clone(), other], 0).unwrap().strings().unwrap();
    assert_eq!(joined.parts().2.shape().count(), Some(11));
    assert_eq!(texts(&joined), ["0123456789", "x"]);
    let numbers = Value::Numbers(tensor(1.0f32).unwrap());
    assert!(Value::concat(&[rows[0].clone(), numbers], 0).is_err());
}

#[test]
fn offsets_outside_of_the_bytes_are_an_error_when_they_are_read() {
    let bytes = tensor([1u8, 2, 3]).unwrap();
    let of = |offset: i64, size: i64| {
        Strings::from_parts(tensor([offset]).unwrap(), tensor([size]).unwrap(), bytes.clone())
    };
    assert_eq!(of(1, 2).unwrap().to_vec().unwrap(), [[2, 3]]);
    for (offset, size) in [(-1, 1), (0, 4), (3, 1), (1, -1), (i64::MAX, 1), (1, i64::MAX)] {
        let error = of(offset, size).unwrap().to_vec().unwrap_err().to_string();
        assert!(error.contains("string 0 is"), "{error}");
    }
    assert!(
        Strings::from_parts(tensor([1.0f32]).unwrap(), tensor([1i64]).unwrap(), bytes).is_err()
    );
}

#[test]
fn pipelines_batch_pad_and_take_apart_strings() {
    let words = Strings::new(&["a", "bb", "ccc", "dddd"], [4]).unwrap();
    let data = Dataset::of((words.clone(), tensor([1i64, 2, 3, 4]).unwrap())).unwrap();
    let all = |of: Pipeline<(Strings, Tensor)>| -> Vec<(Vec<String>, Vec<i64>)> {
        let read = |pair: Result<(Strings, Tensor)>| {
            let (words, numbers) = pair.unwrap();
            (texts(&words), numbers.to_vec::<i64>().unwrap())
        };
        of.iter().map(read).collect()
    };
    let pair = |a: &[&str], b: &[i64]| (a.iter().map(|a| a.to_string()).collect(), b.to_vec());
    let rows = Pipeline::rows(&data);
    let batches = [pair(&["a", "bb", "ccc"], &[1, 2, 3]), pair(&["dddd"], &[4])];
    assert_eq!(all(rows.clone().batch(3)), batches);
    // Elements that are no rows of one tensor.
    let moved = rows.map(|(words, number)| Ok((words.packed()?, (number * 10)?)));
    let batches = moved.clone().batch(3);
    assert_eq!(all(batches.clone())[0], pair(&["a", "bb", "ccc"], &[10, 20, 30]));
    assert_eq!(all(batches.clone().unbatch()).len(), 4);
    assert_eq!(all(batches.part_of_batches(1, 2))[0], pair(&["ccc"], &[30]));
    assert_eq!(all(moved.clone().repeat(2).unique()).len(), 4);
    let lines = moved.batch(1).concatenate(Pipeline::rows(&data).batch(2));
    let filled = lines
        .take(5)
        .padded_batch_with(5, false, |_| Ok(vec![Padding { shape: None, value: 0i64.into() }; 2]));
    let (words, numbers) = filled.iter().next().unwrap().unwrap();
    assert_eq!(words.shape().to_string(), "[5, 2]");
    assert_eq!(texts(&words)[..4], ["a", "", "bb", ""]);
    assert_eq!(texts(&words)[8..], ["a", "bb"]);
    assert_eq!(numbers.dtype(), DType::I64);
}

#[test]
fn elements_of_strings_are_kept_in_a_file() {
    let folder = crate::common::Folder::new("strings");
    let path = folder.0.join("kept");
    let words = Strings::new(&["a", "bb", ""], [3]).unwrap();
    let like = || Strings::scalar("");
    let kept = Pipeline::rows(&Dataset::of(words).unwrap()).cache_file(&path, like);
    for _ in 0..2 {
        let read = kept.iter().map(|word| texts(&word.unwrap()).concat());
        assert_eq!(read.collect::<Vec<_>>(), ["a", "bb", ""]);
    }
}
