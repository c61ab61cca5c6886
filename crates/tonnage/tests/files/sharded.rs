//! Tensors in pieces give what the whole gives, and no more is in memory than the piece in hand.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::io::{FileTensor, read_npy, save_npy};
use tonnage::{
    Axes, Bytes, ChunkRows, DType, Elementwise, Part, Sharded, Tensor, memory, random_normal,
    range, tensor,
};

use crate::common::{Folder, close, in_use, own_context};

fn numbers(x: &Tensor) -> Vec<f64> {
    x.cast(DType::F64).unwrap().to_vec().unwrap()
}

fn whole() -> Tensor {
    (random_normal([37, 20], DType::F32).unwrap() + 0.0).unwrap()
}

/// Cut into rows, some of which are in a file, and into a grid.
fn cut(x: &Tensor, folder: &Folder) -> [Sharded; 2] {
    let part = |rows: std::ops::Range<i64>, columns: std::ops::Range<i64>| {
        x.slice(&[rows.into(), columns.into()]).unwrap()
    };
    let path = folder.0.join("block.npy");
    save_npy(&path, &part(5..30, 0..20)).unwrap();
    let file = FileTensor::npy(&path).unwrap().lazy();
    let rows = [part(0..5, 0..20), file, part(30..37, 0..20)];
    let row = |r: std::ops::Range<i64>| [0..7, 7..8, 8..20].map(|c| part(r.clone(), c)).to_vec();
    let grid = vec![row(0..12), row(12..37)];
    [Sharded::rows(rows).unwrap(), Sharded::grid(grid).unwrap()]
}

#[test]
fn ops_by_blocks_give_what_the_whole_gives() {
    let _context = own_context();
    let folder = Folder::new("sharded-ops");
    let x = whole();
    let right = whole().t().unwrap();
    for own in cut(&x, &folder) {
        assert_eq!(own.ty(), x.ty());
        assert_eq!(numbers(&own.to_tensor().unwrap()), numbers(&x));
        for axes in [Axes::ALL, Axes::from(0), Axes::from(1), Axes::from([-1, 0])] {
            let sum = own.sum(axes.clone()).unwrap();
            assert_eq!(sum.ty(), x.sum(axes.clone()).unwrap().ty());
            close(&sum, &numbers(&x.sum(axes.clone()).unwrap()), 1e-5);
            close(&own.mean(axes.clone()).unwrap(), &numbers(&x.mean(axes.clone()).unwrap()), 1e-6);
            close(&own.max(axes.clone()).unwrap(), &numbers(&x.max(axes.clone()).unwrap()), 0.0);
            close(&own.min(axes.clone()).unwrap(), &numbers(&x.min(axes).unwrap()), 0.0);
        }
        let made = own.map(|block| (block * 2.0)? + 1.0).unwrap();
        close(&made.to_tensor().unwrap(), &numbers(&((&x * 2.0).unwrap() + 1.0).unwrap()), 0.0);
        let product = own.matmul(&right).unwrap().to_tensor().unwrap();
        close(&product, &numbers(&x.matmul(&right).unwrap()), 1e-5);
        let some = tensor([36i64, 0, 5, 5, 29]).unwrap();
        let gathered = own.gather(&some).unwrap();
        close(&gathered, &numbers(&x.gather(&some, 0).unwrap()), 0.0);
        for rows in [0..37, 4..31, 6..7, 12..12] {
            let part = Part::from(rows.start as i64..rows.end as i64);
            let expected = x.slice(&[part]).unwrap();
            let got = own.slice(rows).unwrap().to_tensor().unwrap();
            assert_eq!((got.ty(), numbers(&got)), (expected.ty(), numbers(&expected)));
        }
    }
    let [rows, grid] = cut(&x, &folder);
    for (a, b) in [(&rows, &grid), (&grid, &rows), (&grid, &grid)] {
        let sum = a.zip(b, |a, b| a + b).unwrap().to_tensor().unwrap();
        close(&sum, &numbers(&(&x + &x).unwrap()), 0.0);
    }
}

#[test]
fn files_larger_than_a_limit_go_through_in_chunks_that_fit_it() {
    let _context = own_context();
    let folder = Folder::new("sharded-limit");
    let paths: Vec<_> = (0..3).map(|i| folder.0.join(format!("{i}.npy"))).collect();
    for path in &paths {
        save_npy(path, &random_normal([5000, 500], DType::F32).unwrap()).unwrap();
    }
    let out = folder.0.join("out.npy");
    let own = Sharded::open(&paths, None).unwrap();
    let right = (random_normal([500, 700], DType::F32).unwrap() + 0.0).unwrap();
    // A quarter is a chunk's; products take as much again and more, and up to 5 MiB to pack.
    let (before, limit) = (in_use(), Bytes::mib(24));
    memory::set_limit("cpu:0", Some(before + limit)).unwrap();
    memory::reset_peak("cpu:0").unwrap();
    let mut seen = 0;
    let went = own.map_chunks_to(&out, ChunkRows::Fitting, |chunk| {
        assert_eq!((chunk.rows.start, chunk.of), (seen, 15000));
        seen = chunk.rows.end;
        chunk.tensor.matmul(&right)
    });
    let peak = memory::info("cpu:0").unwrap().peak;
    memory::set_limit("cpu:0", None).unwrap();
    went.unwrap();
    assert_eq!(seen, 15000);
    assert!(peak <= before + limit, "{peak}");
    let made = read_npy(&out).unwrap();
    assert_eq!(made.ty().to_string(), "f32[15000, 700]");
    let last = Part::from(14990..15000);
    let expected = own.slice(14990..15000).unwrap().to_tensor().unwrap().matmul(&right).unwrap();
    // Sums of 500 products, of ten rows and of many: rounded in another order.
    close(&made.slice(&[last]).unwrap(), &numbers(&expected), 1e-4);
    // Whole, as it is.
    own.map(|block| block * 2.0).unwrap().save_npy(&out).unwrap();
    close(
        &read_npy(&out).unwrap().sum_all().unwrap(),
        &numbers(&(own.sum(Axes::ALL).unwrap() * 2.0).unwrap()),
        1e-4,
    );
}

#[test]
fn blocks_that_do_not_fit_together_are_refused_with_both_sides() {
    let _context = own_context();
    let of = |shape: &[usize]| tonnage::zeros(shape).unwrap();
    let refused = |made: tonnage::Result<Sharded>, words: &[&str]| {
        let error = made.unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    refused(Sharded::rows([]), &["no blocks"]);
    refused(Sharded::rows([tensor(1.0f32).unwrap()]), &["rows"]);
    refused(Sharded::rows([of(&[2, 3]), of(&[2, 4])]), &["f32[2, 4]", "f32[2, 3]"]);
    refused(Sharded::rows([of(&[2]), range(0i64, 2, 1).unwrap()]), &["i64[2]", "f32[2]"]);
    refused(Sharded::grid(vec![vec![of(&[2, 3]), of(&[3, 3])]]), &["f32[3, 3]", "f32[2, 3]"]);
    refused(Sharded::grid(vec![vec![of(&[2, 3]); 2], vec![of(&[2, 3])]]), &["2", "1"]);
    let own = Sharded::rows([of(&[2, 3])]).unwrap();
    refused(own.slice(1..3), &["1..3", "f32[2, 3]"]);
    refused(own.map(|block| block.sum(0)), &["f32[2, 3]", "f32[3]"]);
    assert!(own.gather(&tensor([2i64]).unwrap()).is_err());
    assert!(own.gather(&tensor([-1i64]).unwrap()).is_err());
}
