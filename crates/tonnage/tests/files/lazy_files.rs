//! Tensors that stay in their files: ops read them as they go, give the bits of the tensor in memory, and take what was predicted.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tonnage::io::{FileTensor, Order, TensorFile, read_npy, save_npy, save_raw, save_safetensors};
use tonnage::{
    Bytes, DType, Elementwise, ErrorKind, Part, Result, Tensor, Variable, fori_loop, function,
    memory, random_normal, tensor,
};

use crate::common::{Folder, call_checked, close, in_use, own_context};

/// Numbers in a file, and in memory.
fn both(folder: &Path, name: &str, shape: &[usize]) -> (Tensor, Tensor) {
    let path = folder.join(format!("{name}.npy"));
    save_npy(&path, &random_normal(shape, DType::F32).unwrap()).unwrap();
    (FileTensor::npy(&path).unwrap().lazy(), read_npy(&path).unwrap())
}

fn bits(x: &Tensor) -> Vec<u32> {
    x.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

/// What a computation holds at most beside what is held before and after it.
fn taken<R>(f: impl FnOnce() -> R) -> (R, Bytes) {
    let before = in_use();
    memory::reset_peak("cpu:0").unwrap();
    let made = f();
    (made, memory::info("cpu:0").unwrap().peak - before)
}

#[test]
fn ops_of_a_file_give_the_bits_of_the_tensor_in_memory_and_hold_none_of_it() {
    let _context = own_context();
    let folder = Folder::new("lazy");
    let (lazy, whole) = both(&folder.0, "x", &[700, 1000]);
    assert!(lazy.is_recipe());
    type Op = fn(&Tensor) -> Result<Tensor>;
    let ops: [(&str, Op); 11] = [
        ("sum", |x| x.sum_all()),
        ("mean of rows", |x| x.mean(1)),
        ("sum of columns", |x| x.sum(0)),
        ("sum of long columns", |x| x.reshape([10, 70_000])?.sum(0)),
        ("sum of wide rows", |x| x.reshape([7, 10, 10_000])?.sum(1)),
        ("max", |x| x.max(0)),
        ("chain", |x| ((x * 2.0)? + 1.0)?.square()?.sum(0)),
        ("rows", |x| x.slice(&[Part::from(10..20)])?.sum_all()),
        ("reshaped", |x| x.reshape([1000, 700])?.sum(1)),
        ("few columns", |x| x.matmul(&tonnage::ones([1000, 3])?)),
        ("few rows", |x| tonnage::ones([3, 700])?.matmul(x)),
    ];
    for (name, op) in ops {
        let (got, took) = taken(|| op(&lazy).unwrap());
        assert_eq!(bits(&got), bits(&op(&whole).unwrap()), "{name}");
        assert!(took < Bytes::of(700 << 10), "{name} took {took}");
        assert!(lazy.is_recipe(), "{name}");
    }
}

#[test]
fn products_with_files_on_either_side_give_the_bits_of_those_in_memory() {
    let _context = own_context();
    let folder = Folder::new("lazy-matmul");
    // Sizes around those of panels and blocks, rows that are read together, and all four ways to lie.
    for (i, shape) in [[600, 515], [515, 600], [4099, 33], [300, 300]].into_iter().enumerate() {
        let (lazy, whole) = both(&folder.0, &format!("w{i}"), &shape);
        for rows in [1, 5, 130] {
            let x = random_normal([rows, shape[0]], DType::F32).unwrap() + 0.0;
            let x = x.unwrap();
            let y = (random_normal([rows, shape[1]], DType::F32).unwrap() + 0.0).unwrap();
            let pairs = [
                (x.matmul(&lazy), x.matmul(&whole)),
                (y.matmul(&lazy.t().unwrap()), y.matmul(&whole.t().unwrap())),
                (lazy.matmul(&y.t().unwrap()), whole.matmul(&y.t().unwrap())),
                (
                    lazy.t().unwrap().matmul(&x.t().unwrap()),
                    whole.t().unwrap().matmul(&x.t().unwrap()),
                ),
            ];
            for (way, (got, expected)) in pairs.into_iter().enumerate() {
                assert_eq!(bits(&got.unwrap()), bits(&expected.unwrap()), "{shape:?} {rows} {way}");
            }
            assert!(lazy.is_recipe());
        }
    }
}

#[test]
fn products_in_pieces_have_the_bits_of_the_whole_and_take_a_part_of_the_file() {
    let _context = own_context();
    let folder = Folder::new("lazy-pieces");
    let numbers = |shape: &[usize]| (random_normal(shape, DType::F32).unwrap() + 0.0).unwrap();
    // Rows that are cut, K that is cut, both, in each order, for all threads or for each; with a few rows or columns, and with more.
    let shapes = [[1500, 1100], [90, 40_000], [40_000, 90], [700, 4500]];
    for (i, shape) in shapes.into_iter().enumerate() {
        let (lazy, whole) = both(&folder.0, &format!("w{i}"), &shape);
        for other in [1, 3, 40] {
            let (x, y) = (numbers(&[other, shape[0]]), numbers(&[shape[1], other]));
            type Product = fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>;
            let ways: [Product; 4] = [
                |w, x, _| x.matmul(w),
                |w, _, y| w.matmul(y),
                |w, _, y| y.t()?.matmul(&w.t()?),
                |w, x, _| w.t()?.matmul(&x.t()?)?.relu(),
            ];
            for (way, product) in ways.into_iter().enumerate() {
                // First, so that what they are multiplied with is in memory.
                let expected = product(&whole, &x, &y).unwrap();
                let (got, took) = taken(|| product(&lazy, &x, &y).unwrap());
                assert_eq!(bits(&got), bits(&expected), "{shape:?} {other} {way}");
                let made = got.ty().bytes("product").unwrap();
                let most = Bytes::of(shape[0] * shape[1] * 2).max(Bytes::mib(3)) + made + made;
                assert!(took < most, "{shape:?} {other} {way}: {took}, {made} of them made");
            }
        }
    }
}

#[test]
fn one_matrix_for_a_batch_is_read_once_and_two_files_are_multiplied() {
    let _context = own_context();
    let folder = Folder::new("lazy-shared");
    let (w, whole) = both(&folder.0, "w", &[700, 500]);
    let (v, whole_v) = both(&folder.0, "v", &[500, 300]);
    let (many, all) = both(&folder.0, "many", &[40, 60, 70]);
    let x = (random_normal([6, 500, 9], DType::F32).unwrap() + 0.0).unwrap();
    let y = (random_normal([40, 70, 5], DType::F32).unwrap() + 0.0).unwrap();
    let transposed = |x: &Tensor| x.transpose(&[0, 2, 1]);
    for (got, expected) in [
        (w.matmul(&x), whole.matmul(&x)),
        (
            transposed(&x).unwrap().matmul(&w.t().unwrap()),
            transposed(&x).unwrap().matmul(&whole.t().unwrap()),
        ),
        (w.matmul(&v), whole.matmul(&whole_v)),
        (many.matmul(&y), all.matmul(&y)),
        (
            transposed(&y).unwrap().matmul(&transposed(&many).unwrap()),
            transposed(&y).unwrap().matmul(&transposed(&all).unwrap()),
        ),
    ] {
        assert_eq!(bits(&got.unwrap()), bits(&expected.unwrap()));
    }
    let f = function(move |x: Tensor| w.matmul(&x)?.tanh());
    assert_eq!(bits(&call_checked(&f, &x)), bits(&whole.matmul(&x).unwrap().tanh().unwrap()));
    assert_eq!(f.plan(&x).unwrap().reads(), Bytes::of(700 * 500 * 4));
}

#[test]
fn a_plan_counts_what_iterations_read_and_how_long_that_takes() {
    let _context = own_context();
    let folder = Folder::new("lazy-iterations");
    let (lazy, _) = both(&folder.0, "x", &[300, 400]);
    let once = Bytes::of(300 * 400 * 4);
    let f = function(move |x: Tensor| {
        fori_loop(0, 7, x, |_, x: Tensor| (&lazy * &x)?.sum_all()?.tanh())
    });
    let x = tensor(0.5f32).unwrap();
    let plan = f.plan(&x).unwrap();
    assert_eq!(plan.reads().get(), 7 * once.get(), "{plan}");
    // As long as the disk takes, and computing on top of that.
    let quickest = f.prices(&x).unwrap()[0].fitted.seconds;
    let reading = plan.seconds_of_files(&tonnage::Machine::DEFAULT);
    assert!(reading > 0.0 && quickest > reading, "{quickest} with {reading} of reading");
}

#[test]
fn half_precision_and_batches_of_matrices_are_multiplied_from_files() {
    let _context = own_context();
    let folder = Folder::new("lazy-batch");
    let path = folder.0.join("x.safetensors");
    let batch = random_normal([5, 300, 260], DType::F32).unwrap();
    let half = random_normal([900, 700], DType::F32).unwrap().cast(DType::BF16).unwrap();
    save_safetensors(&path, [("batch", &batch), ("half", &half)], &[]).unwrap();
    let file = TensorFile::open(&path).unwrap();
    let x = (random_normal([5, 7, 300], DType::F32).unwrap() + 0.0).unwrap();
    let (lazy, whole) = (file.lazy("batch").unwrap(), file.read("batch").unwrap());
    assert_eq!(bits(&x.matmul(&lazy).unwrap()), bits(&x.matmul(&whole).unwrap()));
    let (lazy, whole) = (file.lazy("half").unwrap(), file.read("half").unwrap());
    let x =
        (random_normal([8, 900], DType::F32).unwrap() + 0.0).unwrap().cast(DType::BF16).unwrap();
    let f32s = |x: Result<Tensor>| bits(&x.unwrap().cast(DType::F32).unwrap());
    assert_eq!(f32s(x.matmul(&lazy)), f32s(x.matmul(&whole)));
    assert_eq!(f32s(lazy.sum(0)), f32s(whole.sum(0)));
}

#[test]
fn rows_of_a_table_in_a_file_are_read_where_they_are_wanted() {
    let _context = own_context();
    let folder = Folder::new("lazy-gather");
    let (table, whole) = both(&folder.0, "table", &[5000, 128]);
    let rows = tensor([[4999i64, 0, 17], [17, 2500, 1]]).unwrap();
    let (got, took) = taken(|| table.gather(&rows, 0).unwrap());
    assert_eq!(bits(&got), bits(&whole.gather(&rows, 0).unwrap()));
    assert!(took < Bytes::of(64 << 10), "{took}");
    let columns = tensor([3i64, 100]).unwrap();
    assert_eq!(
        bits(&table.gather(&columns, 1).unwrap()),
        bits(&whole.gather(&columns, 1).unwrap())
    );
    let table = FileTensor::npy(folder.0.join("table.npy")).unwrap().lazy();
    let f = function(move |rows: Tensor| table.gather(&rows, 0)?.sum(-1));
    assert_eq!(
        bits(&call_checked(&f, &rows)),
        bits(&whole.gather(&rows, 0).unwrap().sum(-1).unwrap())
    );
    assert_eq!(f.plan(&rows).unwrap().reads(), Bytes::of(6 * 128 * 4));
    let error = f.call(tensor([[0i64, 1, 2], [3, 4, 5000]]).unwrap()).unwrap_err().to_string();
    assert!(error.contains("5000"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_mapped_file_gives_the_same_bits_and_what_cannot_be_mapped_says_so() {
    let _context = own_context();
    let folder = Folder::new("lazy-mapped");
    let (_, whole) = both(&folder.0, "x", &[600, 500]);
    let file = FileTensor::npy(folder.0.join("x.npy")).unwrap();
    let mapped = file.mapped().unwrap();
    let x = (random_normal([7, 600], DType::F32).unwrap() + 0.0).unwrap();
    let rows = tensor([599i64, 0]).unwrap();
    for (got, expected) in [
        (x.matmul(&mapped), x.matmul(&whole)),
        (mapped.sum(0), whole.sum(0)),
        (mapped.t().unwrap().sum(1), whole.t().unwrap().sum(1)),
        (&mapped * 2.0, &whole * 2.0),
        (mapped.gather(&rows, 0), whole.gather(&rows, 0)),
    ] {
        assert_eq!(bits(&got.unwrap()), bits(&expected.unwrap()));
    }
    let captured = mapped.clone();
    let f = function(move |x: Tensor| x.matmul(&captured)?.relu());
    assert_eq!(bits(&call_checked(&f, &x)), bits(&x.matmul(&whole).unwrap().relu().unwrap()));
    let path = folder.0.join("raw");
    save_raw(&path, &whole, Order::default()).unwrap();
    let raw = |at, order| FileTensor::raw(&path, at, DType::F32, &[10], order).unwrap().mapped();
    assert!(raw(3, Order::default()).unwrap_err().to_string().contains("lazy"));
    assert!(raw(0, Order { big_endian: true, ..Order::default() }).is_err());
    assert_eq!(bits(&raw(8, Order::default()).unwrap()), bits(&whole)[2..12]);
}

#[test]
fn other_orders_and_byte_orders_are_converted_on_reading() {
    let _context = own_context();
    let folder = Folder::new("lazy-order");
    let path = folder.0.join("raw");
    let x = random_normal([90, 130, 7], DType::F32).unwrap();
    let x = (x + 0.0).unwrap();
    for order in [
        Order { columns_first: true, big_endian: false },
        Order { columns_first: false, big_endian: true },
        Order { columns_first: true, big_endian: true },
    ] {
        save_raw(&path, &x, order).unwrap();
        let file = FileTensor::raw(&path, 0, DType::F32, &[90, 130, 7], order).unwrap();
        assert_eq!(bits(&file.lazy()), bits(&x), "{order:?}");
        assert_eq!(bits(&(file.lazy() + 1.0).unwrap()), bits(&(&x + 1.0).unwrap()));
        let transposed = |x: &Tensor| {
            x.transpose(&[2, 0, 1])?.slice(&[Part::ALL, Part::from(3..80), Part::ALL.by(-1)])
        };
        assert_eq!(
            bits(&transposed(&file.lazy()).unwrap()),
            bits(&transposed(&x).unwrap()),
            "{order:?}"
        );
    }
}

#[test]
fn reductions_go_through_a_file_in_its_own_order_and_hold_none_of_it() {
    let _context = own_context();
    let folder = Folder::new("lazy-transposed");
    let path = folder.0.join("raw");
    let x = (random_normal([70, 90, 130], DType::F32).unwrap() + 0.0).unwrap();
    let y = (random_normal([70, 90, 130], DType::F32).unwrap() + 0.0).unwrap();
    let order = Order { columns_first: true, big_endian: false };
    save_raw(&path, &x, order).unwrap();
    let transposed = FileTensor::raw(&path, 0, DType::F32, &[70, 90, 130], order).unwrap();
    let (_, same) = both(&folder.0, "straight", &[70, 90, 130]);
    let straight = FileTensor::npy(folder.0.join("straight.npy")).unwrap();
    type Reduction = fn([&Tensor; 3]) -> Result<Tensor>;
    let reductions: [(&str, bool, Reduction); 10] = [
        ("all", true, |[x, ..]| x.sum_all()),
        ("first", false, |[x, ..]| x.sum(0)),
        ("first and second", true, |[x, ..]| x.mean([0, 1])),
        ("last", false, |[x, ..]| x.sum(-1)),
        ("last and first, kept", true, |[x, ..]| x.sum_keep([0, -1])),
        ("largest", true, |[x, ..]| x.max([1, 2])),
        ("transposed back", true, |[x, ..]| x.transpose(&[2, 1, 0])?.sum(0)),
        ("of a chain", false, |[x, ..]| ((x * 2.0)? + 1.0)?.square()?.sum([1, 2])),
        ("beside memory", false, |[x, y, _]| (x * y)?.sum([0, 1])),
        ("of two orders", false, |[x, _, z]| (x * z)?.sum([0, 1])),
    ];
    for (name, in_place, reduction) in reductions {
        let expected = reduction([&x, &y, &same]).unwrap().to_vec::<f32>().unwrap();
        let expected: Vec<f64> = expected.into_iter().map(f64::from).collect();
        let (got, took) = taken(|| reduction([&transposed.lazy(), &y, &straight.lazy()]).unwrap());
        close(&got, &expected, 1e-4);
        // Two axes that are kept would come out in another order: that takes the whole file. So does what is computed first.
        let little = Bytes::new(256 << 10);
        assert_eq!(took < little, in_place, "{name}: {took}");
        let (file, other) = (transposed.lazy(), straight.lazy());
        let f = function(move |x: Tensor| reduction([&file, &x, &other]));
        close(&call_checked(&f, &y), &expected, 1e-4);
        // In a function that is part of the reduction.
        let takes = f.plan(&y).unwrap().obtains();
        let fused = ["of a chain", "beside memory"].contains(&name);
        assert_eq!(takes < little, in_place || fused, "{name}: {takes}");
    }
}

#[test]
fn a_function_reads_its_weights_from_files_in_just_the_memory_predicted() {
    let _context = own_context();
    let folder = Folder::new("lazy-plan");
    let layers: Vec<(Tensor, Tensor)> =
        (0..4).map(|i| both(&folder.0, &format!("w{i}"), &[512, 512])).collect();
    let (bias, _) = both(&folder.0, "b", &[512]);
    let model = |weights: Vec<Tensor>| {
        let bias = bias.clone();
        function(move |x: Tensor| {
            let layer = |x: Tensor, w: &Tensor| (x.matmul(w)? + &bias)?.relu();
            weights.iter().try_fold(x, layer)
        })
    };
    let (lazy, whole): (Vec<Tensor>, Vec<Tensor>) = layers.into_iter().unzip();
    let x = (random_normal([16, 512], DType::F32).unwrap() + 0.0).unwrap();
    let streamed = model(lazy);
    let got = call_checked(&streamed, &x);
    assert_eq!(bits(&got), bits(&model(whole).call(x.clone()).unwrap()));
    // Of 4 MiB of weights, none.
    let peak = streamed.plan(&x).unwrap().peak();
    assert!(peak < Bytes::mib(2), "{peak}");
    let plan = streamed.plan(&x).unwrap();
    assert_eq!(plan.reads(), Bytes::mib(4) + Bytes::of(512 * 4), "{plan}");
}

#[test]
fn an_op_that_needs_a_file_whole_has_it_until_its_last_use() {
    let _context = own_context();
    let folder = Folder::new("lazy-whole");
    let (a, whole_a) = both(&folder.0, "a", &[256, 256]);
    let (b, whole_b) = both(&folder.0, "b", &[256, 256]);
    // Sorting needs all of it at once; one after the other, never both.
    let sorted = |a: Tensor, b: Tensor| {
        function(move |x: Tensor| {
            let first = (a.sort(0, false)?.sum(0)? * &x)?;
            (b.sort(0, false)?.sum(0)? * first)?.sum_all()
        })
    };
    let x = tensor([2.0f32; 256]).unwrap();
    let f = sorted(a, b);
    assert_eq!(
        bits(&call_checked(&f, &x)),
        bits(&sorted(whole_a, whole_b).call(x.clone()).unwrap())
    );
    let peak = f.plan(&x).unwrap().peak();
    assert!(peak < Bytes::of(768 << 10), "{peak}");
}

#[test]
fn a_variable_that_starts_in_a_file_stays_there_until_it_is_written() {
    let _context = own_context();
    let folder = Folder::new("lazy-variable");
    let (lazy, whole) = both(&folder.0, "v", &[512, 512]);
    let before = in_use();
    let v = Variable::new("v", lazy).unwrap();
    let x = (random_normal([4, 512], DType::F32).unwrap() + 0.0).unwrap();
    let read = v.clone();
    let g = function(move |x: Tensor| x.matmul(&read.read()?));
    assert_eq!(bits(&g.call(x.clone()).unwrap()), bits(&x.matmul(&whole).unwrap()));
    assert!(in_use() - before < Bytes::of(512 << 10));
    v.assign_add(&tensor(1.0f32).unwrap().broadcast_to([512, 512]).unwrap()).unwrap();
    assert_eq!(bits(&v.read().unwrap()), bits(&(whole + 1.0).unwrap()));
}

#[test]
fn results_of_files_are_saved_a_piece_at_a_time() {
    let _context = own_context();
    let folder = Folder::new("lazy-save");
    let (lazy, whole) = both(&folder.0, "x", &[500, 1000]);
    let path = folder.0.join("y.npy");
    let (saved, took) = taken(|| save_npy(&path, &((&lazy * 3.0).unwrap() + 1.0).unwrap()));
    saved.unwrap();
    assert!(took <= Bytes::mib(1), "{took}");
    assert_eq!(bits(&read_npy(&path).unwrap()), bits(&((&whole * 3.0).unwrap() + 1.0).unwrap()));
    // From columns to rows: some rows at a time.
    let (raw, transposed) = (folder.0.join("raw"), folder.0.join("transposed.npy"));
    let x = (random_normal([3000, 40, 60], DType::F32).unwrap() + 0.0).unwrap();
    let order = Order { columns_first: true, big_endian: false };
    save_raw(&raw, &x, order).unwrap();
    let file = FileTensor::raw(&raw, 0, DType::F32, &[3000, 40, 60], order).unwrap();
    let (saved, took) = taken(|| save_npy(&transposed, &file.lazy()));
    saved.unwrap();
    assert!(took <= Bytes::mib(16), "{took}");
    assert_eq!(bits(&read_npy(&transposed).unwrap()), bits(&x));
    // Onto itself: the old file is read until the new one is whole.
    let path = folder.0.join("x.npy");
    save_npy(&path, &(&lazy * 2.0).unwrap()).unwrap();
    assert_eq!(bits(&read_npy(&path).unwrap()), bits(&(&whole * 2.0).unwrap()));
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_an_error_of_every_op_and_leaves_nothing() {
    let _context = own_context();
    let folder = Folder::new("lazy-shrinks");
    let (lazy, _) = both(&folder.0, "x", &[1000, 1000]);
    let path = folder.0.join("x.npy");
    let x = (random_normal([4, 1000], DType::F32).unwrap() + 0.0).unwrap();
    let before = in_use();
    OpenOptions::new().write(true).open(&path).unwrap().set_len(2_000_000).unwrap();
    let captured = lazy.clone();
    let f = function(move |x: Tensor| x.matmul(&captured)?.sum_all());
    let v = Variable::new("v", tensor(0.0f32).unwrap()).unwrap();
    let (own, captured) = (v.clone(), lazy.clone());
    let g = function(move |_: Tensor| {
        let sum = captured.sum_all()?;
        own.assign_add(&sum)?;
        Ok(sum)
    });
    let answers: [Result<Tensor>; 6] = [
        lazy.sum_all(),
        lazy.matmul(&x.t().unwrap()),
        lazy.sort(0, false),
        f.call(x.clone()),
        g.call(x.clone()),
        save_npy(folder.0.join("y.npy"), &lazy).map(|()| x.clone()),
    ];
    for answer in answers {
        let error = answer.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::BadFile { .. }), "{error}");
        assert!(error.to_string().contains("x.npy"), "{error}");
    }
    assert_eq!(v.read().unwrap().scalar::<f32>().unwrap(), 0.0);
    assert!(!folder.0.join("y.npy").exists());
    drop((f, g, v));
    assert_eq!(in_use(), before);
    // What is asked for again when it is opened again is what is there.
    assert!(FileTensor::npy(&path).is_err());
    fs::remove_file(&path).unwrap();
}

#[test]
fn a_limit_holds_while_a_file_that_is_larger_goes_through() {
    let _context = own_context();
    let folder = Folder::new("lazy-limit");
    let (lazy, whole) = both(&folder.0, "x", &[4000, 1000]);
    let (sum, rows) = (whole.sum_all().unwrap(), whole.mean(1).unwrap());
    drop(whole);
    let small = (random_normal([1000, 8], DType::F32).unwrap() + 0.0).unwrap();
    let before = in_use();
    memory::set_limit("cpu:0", Some(before + Bytes::mib(6))).unwrap();
    let got = (lazy.sum_all(), lazy.mean(1), lazy.matmul(&small));
    memory::set_limit("cpu:0", None).unwrap();
    assert_eq!(bits(&got.0.unwrap()), bits(&sum));
    assert_eq!(bits(&got.1.unwrap()), bits(&rows));
    assert_eq!(got.2.unwrap().ty().to_string(), "f32[4000, 8]");
}

#[test]
fn a_conversion_tells_how_far_it_is() {
    let _context = own_context();
    let folder = Folder::new("lazy-convert");
    let (_, whole) = both(&folder.0, "x", &[700, 900]);
    let told = Arc::new(AtomicU64::new(0));
    let (sum, to) = (told.clone(), folder.0.join("x.safetensors"));
    let tell = move |bytes: Bytes| {
        sum.fetch_add(bytes.get(), Ordering::Relaxed);
    };
    let file = TensorFile::open(folder.0.join("x.npy")).unwrap();
    file.save_as(&to, None, false, tell).unwrap();
    assert_eq!(told.load(Ordering::Relaxed), 700 * 900 * 4);
    let made = TensorFile::open(&to).unwrap();
    assert_eq!(bits(&made.read(made.names()[0]).unwrap()), bits(&whole));
}
