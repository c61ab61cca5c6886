//! Every step of a pipeline beside a model of it over plain lists: of elements, and of rows by their numbers; with the number of elements that it says.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::data::{Count, Dataset, Pipeline};
use tonnage::{
    Bytes, DType, Elementwise, ErrorKind, RandomKey, Result, Tensor, memory, tensor, zeros,
};
use tonnage_core::philox;

use crate::common::dice::Dice;
use crate::common::{Folder, in_use, own_context};

/// The first `n` numbers as elements, and as rows of a tensor.
fn numbers(n: i64) -> [Pipeline<Tensor>; 2] {
    let rows: Vec<i64> = (0..n).collect();
    let data = Dataset::of(match n {
        0 => zeros([0]).unwrap().cast(DType::I64).unwrap(),
        _ => tensor(rows).unwrap(),
    });
    [Pipeline::range(0, Some(n), 1), Pipeline::rows(&data.unwrap())]
}

fn lists(pipeline: &Pipeline<Tensor>) -> Vec<Vec<i64>> {
    pipeline.iter().map(|x| x.unwrap().to_vec().unwrap()).collect()
}

fn flat(pipeline: &Pipeline<Tensor>) -> Vec<i64> {
    lists(pipeline).concat()
}

/// A step, beside what it does to a list.
fn check(
    name: &str,
    step: impl Fn(Pipeline<Tensor>) -> Pipeline<Tensor>,
    model: impl Fn(Vec<i64>) -> Vec<Vec<i64>>,
) {
    for n in 0..8 {
        let wanted = model((0..n).collect());
        for (form, of) in numbers(n).into_iter().enumerate() {
            let made = step(of);
            assert_eq!(lists(&made), wanted, "{name} of {n}, form {form}");
            assert_eq!(lists(&made), wanted, "{name} of {n}, form {form}, a second time");
            if let Some(count) = made.count().known() {
                assert_eq!(count, wanted.len() as u64, "{name} of {n}, form {form}");
            }
        }
    }
}

fn each(list: Vec<i64>) -> Vec<Vec<i64>> {
    list.into_iter().map(|x| vec![x]).collect()
}

#[test]
fn steps_do_what_they_do_to_lists() {
    let _context = own_context();
    for k in 0..4 {
        check("take", |p| p.take(k), |l| each(l.into_iter().take(k).collect()));
        check("skip", |p| p.skip(k), |l| each(l.into_iter().skip(k).collect()));
        check("repeat", |p| p.repeat(k), |l| each(l.repeat(k)));
        check(
            "forever",
            |p| p.repeat_forever().take(9),
            |l| each(l.into_iter().cycle().take(9).collect()),
        );
        let joined = |p: Pipeline<Tensor>| p.clone().take(k).concatenate(p.skip(1));
        check("concatenate", joined, |l| {
            let (first, rest) = (l.iter().take(k), l.iter().skip(1));
            each(first.chain(rest).copied().collect())
        });
        for index in 0..k {
            check(
                "shard",
                |p| p.shard(k, index),
                |l| each(l.into_iter().skip(index).step_by(k).collect()),
            );
        }
    }
    check("shard", |p| p.shard(0, 0), |_| Vec::new());
    for size in 1..5 {
        check("batch", |p| p.batch(size), |l| l.chunks(size).map(<[i64]>::to_vec).collect());
        check(
            "whole_batches",
            |p| p.whole_batches(size),
            |l| l.chunks_exact(size).map(<[i64]>::to_vec).collect(),
        );
        check(
            "batches of a part",
            |p| p.skip(1).take(5).repeat(2).batch(size),
            |l| {
                let part: Vec<i64> = l.into_iter().skip(1).take(5).collect();
                part.repeat(2).chunks(size).map(<[i64]>::to_vec).collect()
            },
        );
        check("unbatch", |p| p.batch(size).unbatch(), each);
    }
    check(
        "filter",
        |p| p.filter(|x| Ok(x.scalar::<i64>()? % 2 == 0)),
        |l| each(l.into_iter().filter(|x| x % 2 == 0).collect()),
    );
    check(
        "take_while",
        |p| p.take_while(|x| Ok(x.scalar::<i64>()? < 3)),
        |l| each(l.into_iter().take_while(|x| *x < 3).collect()),
    );
    check(
        "unique",
        |p| p.map(|x: Tensor| x.floor_div(2i64)).unique(),
        |l| {
            let mut halves: Vec<i64> = l.into_iter().map(|x| x / 2).collect();
            halves.dedup();
            each(halves)
        },
    );
    check(
        "scan",
        |p| p.scan(tensor(0i64).unwrap(), |sum, x: Tensor| Ok((sum.add(&x)?, sum))),
        |l| each(l.iter().scan(0, |sum, x| Some(std::mem::replace(sum, *sum + x))).collect()),
    );
    check("cache", Pipeline::cache, each);
    check(
        "zip",
        |p| p.clone().skip(1).zip(p).map(|(a, b)| a.sub(&b)),
        |l| each(l.iter().skip(1).map(|_| 1).collect()),
    );
}

#[test]
fn windows_are_lists_of_elements() {
    let _context = own_context();
    for (size, shift, stride, whole) in [
        (1, 1, 1, false),
        (3, 1, 1, true),
        (2, 3, 1, false),
        (2, 4, 2, false),
        (3, 2, 2, true),
        (2, 5, 1, true),
    ] {
        let reach = (size - 1) * stride + 1;
        check(
            &format!("window {size} {shift} {stride} {whole}"),
            |p| {
                p.window(size, shift, stride, whole)
                    .map(|w: Vec<Tensor>| tonnage::stack(&w.iter().collect::<Vec<_>>(), 0))
            },
            |l| {
                let starts = (0..l.len()).step_by(shift);
                let full = starts.filter(|start| !whole || start + reach <= l.len());
                full.map(|start| l[start..].iter().take(reach).step_by(stride).copied().collect())
                    .collect()
            },
        );
    }
}

/// Pipelines in turn, as a list of lists would be taken apart.
fn in_turn(parts: &[Vec<i64>], cycle: usize, block: usize) -> Vec<i64> {
    let mut waiting = parts.iter().cloned();
    let mut places: Vec<Option<Vec<i64>>> = vec![None; cycle];
    let mut all = Vec::new();
    while !places.is_empty() {
        let mut at = 0;
        while at < places.len() {
            if places[at].is_none() {
                places[at] = waiting.next();
            }
            let Some(part) = &mut places[at] else {
                places.remove(at);
                continue;
            };
            let taken: Vec<i64> = part.drain(..block.min(part.len())).collect();
            if taken.len() < block {
                places[at] = None;
            }
            all.extend(taken);
            at += 1;
        }
    }
    all
}

#[test]
fn pipelines_of_elements_come_in_turn_on_any_number_of_threads() {
    let _context = own_context();
    let made = |x: Tensor| {
        let n = x.scalar::<i64>()?;
        Ok(Pipeline::range(10 * n, Some(10 * n + n % 4), 1))
    };
    let parts: Vec<Vec<i64>> = (0..9).map(|n| (10 * n..10 * n + n % 4).collect()).collect();
    for (cycle, block) in [(1, 1), (2, 1), (3, 2), (20, 1), (2, 5)] {
        for threads in [1, 3] {
            let all = Pipeline::range(0, Some(9), 1).interleave_map(cycle, block, threads, made);
            assert_eq!(flat(&all), in_turn(&parts, cycle, block), "{cycle} {block} {threads}");
        }
    }
    assert_eq!(flat(&Pipeline::range(0, Some(9), 1).flat_map(made)), parts.concat());
    let listed =
        Pipeline::interleave((0..9).map(|n| made(tensor(n as i64).unwrap()).unwrap()).collect());
    assert_eq!(flat(&listed), in_turn(&parts, 9, 1));
    assert_eq!(listed.count(), Count::Known(parts.concat().len() as u64));
    let picks = |stop| {
        let choices =
            Pipeline::rows(&Dataset::of(tensor([1i64, 0, 1, 1, 0, 1, 0]).unwrap()).unwrap());
        let of = vec![Pipeline::range(0, Some(2), 1), Pipeline::range(10, Some(12), 1)];
        flat(&Pipeline::choose(of, choices, stop))
    };
    assert_eq!((picks(true), picks(false)), (vec![10, 0, 11], vec![10, 0, 11, 1]));
    let choices = Pipeline::range(2, Some(3), 1);
    let error = Pipeline::choose(numbers(3).to_vec(), choices, true).iter().next().unwrap();
    assert!(error.unwrap_err().to_string().contains("2 is out of range"));
}

/// The orders of a key, drawn from Philox as every version has drawn them.
fn drawn(seed: u64, pass: u32, n: i64, buffer: usize) -> Vec<i64> {
    let words = philox::block([seed as u32, (seed >> 32) as u32], [pass, 0, 0, 4]);
    let mut rest = 0..n;
    let (mut held, mut all) = (Vec::new(), Vec::new());
    for draw in 0.. {
        held.extend(rest.by_ref().take(buffer - held.len()));
        if held.is_empty() {
            break;
        }
        let word = philox::block([words[0], words[1]], [draw, 0, 0, 0x6361_6c6c])[0];
        all.push(held.swap_remove(((u64::from(word) * held.len() as u64) >> 32) as usize));
    }
    all
}

#[test]
fn a_key_gives_the_orders_that_it_has_always_given() {
    let _context = own_context();
    for (seed, n, buffer) in [(3, 9, 4), (3, 9, 9), (u64::MAX, 5000, 7000), (1, 1, 1), (1, 0, 1)] {
        for of in numbers(n) {
            let shuffled = of.shuffle(buffer, RandomKey::new(seed));
            for pass in 0..2 {
                let all: Vec<i64> =
                    shuffled.pass(u64::from(pass)).map(|x| x.unwrap().scalar().unwrap()).collect();
                assert_eq!(all, drawn(seed, pass, n, buffer), "{seed} {n} {buffer} {pass}");
            }
        }
    }
}

#[test]
fn an_order_of_all_rows_is_a_tensor_and_rows_that_follow_each_other_are_no_copy() {
    let _context = own_context();
    let data = Dataset::of(tensor(vec![1.0f32; 1000 * 64]).unwrap().reshape([1000, 64]).unwrap());
    let rows = Pipeline::rows(&data.unwrap());
    let before = in_use();
    let most = |of: Pipeline<Tensor>| {
        memory::reset_peak("cpu:0").unwrap();
        of.iter().for_each(|batch| drop(batch.unwrap()));
        assert_eq!(in_use(), before);
        memory::info("cpu:0").unwrap().peak - before
    };
    let batch = Bytes::new(100 * 64 * 4).rounded();
    assert_eq!(most(rows.clone().batch(100)), Bytes::ZERO, "a slice");
    let shuffled = rows.shuffle(1000, RandomKey::new(1)).repeat(2).batch(100);
    let holds = shuffled.holds().unwrap();
    assert_eq!(holds.len(), 1, "{holds:?}");
    assert_eq!((holds[0].step, holds[0].bytes), ("shuffle", Bytes::new(8000).rounded()));
    // The numbers of a batch are a tensor too.
    let seen = most(shuffled);
    let least = holds[0].bytes + batch;
    assert!(seen >= least && seen <= least + Bytes::new(100 * 8).rounded(), "{seen} {least}");
}

#[test]
fn what_is_kept_is_made_once_and_only_a_whole_pass_is_kept() {
    let _context = own_context();
    let folder = Folder::new("kept");
    let made = std::sync::Arc::new(std::sync::atomic::AtomicI64::new(0));
    let source = |fails: bool| {
        let made = made.clone();
        numbers(4)[0].clone().map(move |x: Tensor| {
            let first = made.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            match fails && first == 1 {
                true => x.reshape([7]),
                false => Ok(x),
            }
        })
    };
    let count = || made.swap(0, std::sync::atomic::Ordering::SeqCst);
    let file = |name: &str| folder.0.join(name);
    let like = || tensor(0i64);
    for (name, cached) in [
        ("memory", Box::new(Pipeline::cache) as Box<dyn Fn(Pipeline<Tensor>) -> Pipeline<Tensor>>),
        ("file", Box::new(|p: Pipeline<Tensor>| p.cache_file(file("whole"), like))),
    ] {
        let kept = cached(source(false));
        drop(kept.iter().next());
        assert_eq!((flat(&kept), count()), (vec![0, 1, 2, 3], 5), "{name}");
        assert_eq!((flat(&kept), count()), (vec![0, 1, 2, 3], 0), "{name}");
    }
    for (name, kept) in
        [("memory", source(true).cache()), ("file", source(true).cache_file(file("half"), like))]
    {
        let passed: Vec<bool> = kept.iter().map(|x| x.is_ok()).collect();
        assert_eq!((passed, count()), (vec![true, false, true, true], 4), "{name}");
        // The one that failed is made again.
        made.store(2, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(flat(&kept), [0, 1, 2, 3], "{name}");
        assert_eq!(count(), 6, "{name}");
    }
}

#[test]
fn errors_come_where_they_happen_and_those_to_ignore_do_not() {
    let _context = own_context();
    let odd = |x: Tensor| match x.scalar::<i64>()? % 2 {
        0 => Ok(x),
        _ => x.reshape([7]),
    };
    let failing = || numbers(6)[0].clone().map(odd);
    let came = |p: Pipeline<Tensor>| p.iter().map(|x| x.is_ok()).collect::<Vec<_>>();
    assert_eq!(came(failing().prefetch(2)), [true, false, true, false, true, false]);
    assert_eq!(flat(&failing().ignore_errors(|_| true)), [0, 2, 4]);
    let none = |e: &tonnage::Error| matches!(e.kind(), ErrorKind::Asserted { .. });
    assert_eq!(came(failing().ignore_errors(none)).len(), 6);
    // Those that are passed over fail as others do.
    assert_eq!(came(failing().skip(3)), [false, false, true, false]);
    assert_eq!(came(failing().shard(4, 0)), [true, false, false, true, false]);
    let windows = failing().window(1, 3, 1, false).iter().map(|x| x.is_ok()).collect::<Vec<_>>();
    assert_eq!(windows, [true, false, false, true, false]);
    let mut unordered = flat(&numbers(50)[0].clone().unordered_map(3, Ok));
    unordered.sort();
    assert_eq!(unordered, (0..50).collect::<Vec<_>>());
    let first = |p: Pipeline<Tensor>| -> Result<Tensor> { p.iter().next().unwrap() };
    let error = first(numbers(2)[0].clone().unbatch()).unwrap_err().to_string();
    assert!(error.contains("i64") && error.contains("scalar components"), "{error}");
    let one = || tensor(1i64).unwrap();
    for uneven in [vec![vec![one()], vec![one(), one()]], vec![vec![one(), one()], vec![one()]]] {
        let error = Pipeline::from_elements(uneven).batch(2).iter().next().unwrap().unwrap_err();
        assert!(error.to_string().contains("nested alike"), "{error}");
    }
    let long = Pipeline::from_elements(vec![zeros([3]).unwrap()]);
    let to = |n: usize| {
        first(long.clone().padded_batch_with(1, false, move |_| {
            Ok(vec![tonnage::data::Padding { shape: Some(vec![Some(n)]), value: 0.0.into() }])
        }))
    };
    assert_eq!(to(5).unwrap().shape().to_string(), "[1, 5]");
    assert!(to(2).unwrap_err().to_string().contains("smaller size"));
}

#[test]
fn parts_of_batches_have_every_row_once_whatever_the_lengths() {
    let _context = own_context();
    let mut dice = Dice(9);
    // Each is a time through the data of its own, and of the same number on all ranks.
    let lists = |of: &Pipeline<Tensor>| -> Vec<Vec<i64>> {
        of.pass(3).map(|x| x.unwrap().to_vec().unwrap()).collect()
    };
    for _ in 0..60 {
        let (rows, batch, ranks) = (dice.below(30), dice.below(9) + 1, dice.below(6) + 1);
        let (times, buffer, seed) = (dice.below(3) + 1, dice.below(40), dice.next());
        let (is_whole, before) = (dice.below(2) == 0, dice.below(2) == 0);
        for of in numbers(rows as i64) {
            // Every rank makes the same batches, by the same seed.
            let shuffled = match buffer {
                0 => of,
                _ => of.shuffle(buffer, RandomKey::new(seed)),
            };
            let batched = |of: Pipeline<Tensor>| match is_whole {
                true => of.whole_batches(batch),
                false => of.batch(batch),
            };
            let all = match before {
                true => batched(shuffled.repeat(times)),
                false => batched(shuffled).repeat(times),
            };
            let what = format!(
                "{rows} rows, batches of {batch} on {ranks} ranks, {times} times, shuffled in {buffer}, {is_whole}, {before}"
            );
            let whole = lists(&all);
            let own: Vec<Vec<Vec<i64>>> =
                (0..ranks).map(|rank| lists(&all.clone().part_of_batches(rank, ranks))).collect();
            for rank in &own {
                assert_eq!(rank.len(), whole.len(), "as many batches on each rank: {what}");
            }
            for (i, batch) in whole.iter().enumerate() {
                let parts: Vec<&Vec<i64>> = own.iter().map(|rank| &rank[i]).collect();
                let joined: Vec<i64> = parts.iter().copied().flatten().copied().collect();
                assert_eq!(joined, *batch, "in rank order: {what}");
                let lengths = || parts.iter().map(|part| part.len());
                assert!(lengths().max().unwrap() <= lengths().min().unwrap() + 1, "{what}");
            }
            // Where it is not split, each rank has all rows, in parts as small.
            let every = all.clone().parts_of_batches(ranks);
            assert_eq!(lists(&every).len(), whole.len() * ranks, "{what}");
            assert_eq!(lists(&every).concat(), whole.concat(), "{what}");
            let counts = [all.count(), all.clone().part_of_batches(0, ranks).count()];
            assert_eq!(counts[0], counts[1], "{what}");
        }
    }
    let none = Pipeline::range(0, Some(3), 1).part_of_batches(0, 2);
    let error = none.iter().next().unwrap().unwrap_err().to_string();
    assert!(error.contains("give batches: one first length for all"), "{error}");
}
