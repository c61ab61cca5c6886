//! Pipelines: the elements that should come do, in order, and no step holds more than it says.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tonnage::data::{Dataset, Pipeline};
use tonnage::io::{FileTensor, save_npy};
use tonnage::{Bytes, DType, Elementwise, RandomKey, Tensor, memory, range, tensor};

use crate::common::{Folder, in_use, own_context};

fn count(n: i64) -> Pipeline<Tensor> {
    Pipeline::from_fn(move || (0..n).map(|i| tensor(i)))
}

fn all(pipeline: &Pipeline<Tensor>) -> Vec<Vec<i64>> {
    pipeline.iter().map(|x| x.unwrap().to_vec().unwrap()).collect()
}

fn flat(pipeline: &Pipeline<Tensor>) -> Vec<i64> {
    all(pipeline).concat()
}

#[test]
fn steps_give_what_their_names_say() {
    let _context = own_context();
    assert_eq!(flat(&count(5).skip(1).take(3)), [1, 2, 3]);
    assert_eq!(flat(&count(2).repeat(3)), [0, 1, 0, 1, 0, 1]);
    assert_eq!(all(&count(5).batch(2)), [vec![0, 1], vec![2, 3], vec![4]]);
    assert!(all(&count(5).batch(0)).is_empty());
    assert_eq!(flat(&count(4).map(|x: Tensor| x.add(10i64))), [10, 11, 12, 13]);
    let even = |x: &Tensor| Ok(x.scalar::<i64>()? % 2 == 0);
    assert_eq!(flat(&count(5).filter(even)), [0, 2, 4]);
    let mixed = Pipeline::interleave(vec![count(2), count(0), count(4)]);
    assert_eq!(flat(&mixed), [0, 0, 1, 1, 2, 3]);
    let data = Dataset::of((tensor([[1i64, 2], [3, 4]]).unwrap(), tensor([5i64, 6]).unwrap()));
    let rows = Pipeline::rows(&data.unwrap()).batch(2);
    let (x, y) = rows.iter().next().unwrap().unwrap();
    assert_eq!((x.shape().to_string(), y.to_vec::<i64>().unwrap()), ("[2, 2]".into(), vec![5, 6]));
    // Iterated a second time, it starts from the first element.
    assert_eq!(rows.iter().count(), 1);
}

#[test]
fn a_shuffle_gives_every_element_once_and_another_order_each_time() {
    let _context = own_context();
    let make = || count(100).shuffle(20, RandomKey::new(3));
    let once = flat(&make());
    assert_eq!(once, flat(&make()), "a key repeats itself");
    let twice = flat(&make().repeat(2));
    assert_eq!(twice[..100], once);
    assert_ne!(twice[100..], once);
    for half in [&twice[..100], &twice[100..]] {
        let mut sorted = half.to_vec();
        sorted.sort();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        // The element at place i was among the next 20.
        assert!(half.iter().enumerate().all(|(i, x)| *x < i as i64 + 20));
    }
    assert_ne!(once, (0..100).collect::<Vec<_>>());
    // Each time has its number, by which it comes again.
    let shuffled = make();
    let pass = |number: u64| -> Vec<i64> {
        shuffled.pass(number).map(|x| x.unwrap().scalar().unwrap()).collect()
    };
    let all: Vec<Vec<i64>> = (0..3).map(|_| flat(&shuffled)).collect();
    assert_eq!([pass(2), pass(0), pass(1)], [all[2].clone(), all[0].clone(), all[1].clone()]);
    let told = Pipeline::from_passes(|number| (0..2).map(move |i| tensor(10 * number as i64 + i)));
    assert_eq!(flat(&told.repeat(3)), [0, 1, 10, 11, 20, 21]);
}

#[test]
fn elements_of_different_lengths_are_filled_up() {
    let _context = own_context();
    let lengths = |n: i64| Pipeline::from_fn(move || (0..n).map(|i| range(0i64, i + 1, 1)));
    let batches = lengths(3).padded_batch(2, -1i64);
    assert_eq!(all(&batches), [vec![0, -1, 0, 1], vec![0, 1, 2]]);
    let error = lengths(3).batch(2).iter().next().unwrap().unwrap_err().to_string();
    assert!(error.contains("[1]") && error.contains("[2]"), "{error}");
}

/// Elements of 1 MiB each.
fn large(n: usize) -> Pipeline<Tensor> {
    Pipeline::from_fn(move || (0..n).map(|i| tensor(vec![i as f32; 1 << 18])))
}

/// Elements of 1 MiB, and of 2 MiB each fourth time.
fn longer(n: usize) -> Pipeline<Tensor> {
    Pipeline::from_fn(move || {
        (0..n).map(|i| tensor(vec![0f32; if i % 4 == 0 { 1 << 19 } else { 1 << 18 }]))
    })
}

#[test]
fn every_buffer_is_counted_and_bounded() {
    let _context = own_context();
    let before = in_use();
    let most = |pipeline: Pipeline<Tensor>| {
        memory::reset_peak("cpu:0").unwrap();
        pipeline.iter().for_each(|element| drop(element.unwrap()));
        memory::info("cpu:0").unwrap().peak - before
    };
    let one: Bytes = "1MiB".parse().unwrap();
    assert!(most(large(20)) < one + one, "one at a time");
    let shuffled = most(large(20).shuffle(5, RandomKey::new(1)));
    assert_eq!(shuffled, "5MiB".parse().unwrap(), "what the buffer says, and no more");
    let ahead = most(large(20).prefetch(3));
    assert!(ahead < "7MiB".parse().unwrap(), "{ahead}");
    let mapped = most(large(20).parallel_map(2, |x: Tensor| x.sum_all()));
    assert!(mapped < "7MiB".parse().unwrap(), "{mapped}");
    assert_eq!(in_use(), before);
    // What is told before anything is held is what is held at most, beside the element in hand.
    let key = RandomKey::new(1);
    for (pipeline, in_hand, exact) in [
        (large(20).shuffle(5, key), 1, Some(5)),
        (large(20).batch(4), 4, Some(8)),
        (large(20).padded_batch(4, 0.0), 4, Some(8)),
        (longer(20).padded_batch(4, 0.0), 8, None),
        (large(20).prefetch(3), 1, None),
        (large(20).parallel_map(2, |x: Tensor| x.mul(2.0)), 1, None),
        (
            large(30).shuffle(6, key).map(|x: Tensor| x.mul(2.0)).batch(3).prefetch(2).repeat(2),
            3,
            None,
        ),
        (Pipeline::interleave(vec![large(9).shuffle(3, key), large(9).shuffle(2, key)]), 1, None),
    ] {
        let holds = pipeline.holds().unwrap();
        let bound: Bytes = holds.iter().map(|one| one.bytes).sum();
        assert_eq!(in_use(), before, "nothing is held for it");
        let seen = most(pipeline);
        assert!(seen.get() <= bound.get() + in_hand * one.get(), "{seen} and {holds:?}");
        if let Some(exact) = exact {
            assert_eq!(seen.get(), exact * one.get(), "{holds:?}");
        }
        while in_use() != before {
            std::thread::yield_now();
        }
    }
}

#[test]
fn threads_keep_the_order_pass_errors_on_and_end_with_their_iterator() {
    let _context = own_context();
    let before = in_use();
    let slow = |x: Tensor| {
        // The first ones take longest.
        let iterations = 2000 / (1 + x.scalar::<i64>()?);
        (0..iterations).try_fold(x.clone(), |y, _| y.add(0i64))
    };
    assert_eq!(flat(&count(50).parallel_map(3, slow)), (0..50).collect::<Vec<_>>());
    assert_eq!(flat(&count(50).prefetch(4)), (0..50).collect::<Vec<_>>());
    assert_eq!(flat(&count(50).prefetch(0)), (0..50).collect::<Vec<_>>());
    let bad = |x: Tensor| if x.scalar::<i64>()? == 3 { x.reshape([7]) } else { Ok(x) };
    let made: Vec<bool> =
        count(6).parallel_map(2, bad).prefetch(2).iter().map(|x| x.is_ok()).collect();
    assert_eq!(made, [true, true, true, false, true, true]);

    // What nobody takes is not made: at most what is held ahead.
    let made = Arc::new(AtomicUsize::new(0));
    let seen = made.clone();
    let counted = move |x: Tensor| {
        seen.fetch_add(1, Ordering::SeqCst);
        Ok(x)
    };
    let mut elements = count(1_000_000).parallel_map(2, counted).prefetch(3).iter();
    for i in 0..10 {
        assert_eq!(elements.next().unwrap().unwrap().scalar::<i64>().unwrap(), i);
    }
    drop(elements);
    assert!(made.load(Ordering::SeqCst) < 10 + 3 + 2 * 2 + 3, "{made:?}");
    // The threads give up what they hold when they notice.
    while in_use() != before {
        std::thread::yield_now();
    }
    let panics = |_: Tensor| -> tonnage::Result<Tensor> { panic!("on purpose") };
    let ended = count(4).parallel_map(2, panics).iter().map(|x| x.is_err()).collect::<Vec<_>>();
    assert_eq!(ended, [true], "one error, and an end");
}

#[test]
fn a_file_goes_through_the_memory_of_a_piece() {
    let _context = own_context();
    let folder = Folder::new("pipeline");
    let path = folder.0.join("x.npy");
    let numbers = range(0i64, 100 * 1024, 1).unwrap().cast(DType::F64).unwrap();
    save_npy(&path, &numbers.reshape([100, 1024]).unwrap()).unwrap();
    memory::reset_peak("cpu:0").unwrap();
    let before = in_use();
    let rows = Pipeline::file(FileTensor::npy(&path).unwrap(), 8);
    let mut sum = 0.0;
    let mut seen = 0;
    for row in rows.iter() {
        sum += row.unwrap().sum_all().unwrap().scalar::<f64>().unwrap();
        seen += 1;
    }
    assert_eq!((seen, sum), (100, (100.0 * 1024.0 - 1.0) * 100.0 * 1024.0 / 2.0));
    let peak = memory::info("cpu:0").unwrap().peak - before;
    assert!(peak < "192KiB".parse().unwrap(), "{peak}");
}
