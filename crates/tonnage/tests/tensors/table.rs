//! Ops that are made of others, and what they take: through the public surface, against plain loops.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{
    Axes, Bytes, DType, Elementwise, ErrorKind, GradientTape, Index, PadMode, Part, RandomKey,
    Result, Tensor, concat, einsum, eye, function, memory, meshgrid, ones, random_int,
    random_permutation, random_shuffle, range, set_seed, stack, tensor, zeros,
};

use crate::common::{call_checked, close, in_use, own_context};

/// Numbers that differ, around zero.
fn numbers(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let values: Vec<f64> = (0..count).map(|i| ((i * 37 + 11) % 101) as f64 / 50.0 - 1.0).collect();
    let lengths: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
    tensor(values).unwrap().reshape(&lengths).unwrap()
}

fn values(x: &Tensor) -> Vec<f64> {
    x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

/// The sum of products by a loop over all letters.
fn by_loops(text: &str, operands: &[&Tensor]) -> Vec<f64> {
    let (left, right) = text.split_once("->").unwrap();
    let terms: Vec<Vec<char>> = left.split(',').map(|t| t.chars().collect()).collect();
    let out: Vec<char> = right.chars().collect();
    let mut lengths: Vec<(char, usize)> = Vec::new();
    for (term, x) in terms.iter().zip(operands) {
        for (letter, n) in term.iter().zip(x.shape().sizes().unwrap()) {
            if !lengths.iter().any(|(l, _)| l == letter) {
                lengths.push((*letter, n));
            }
        }
    }
    let length = |letter: &char| lengths.iter().find(|(l, _)| l == letter).unwrap().1;
    let mut sums = vec![0.0; out.iter().map(length).product()];
    let data: Vec<Vec<f64>> = operands.iter().map(|x| values(x)).collect();
    let total: usize = lengths.iter().map(|(_, n)| n).product();
    for mut number in 0..total {
        let mut at = std::collections::HashMap::new();
        for (letter, n) in &lengths {
            at.insert(*letter, number % n);
            number /= n;
        }
        let flat = |letters: &[char]| letters.iter().fold(0, |f, l| f * length(l) + at[l]);
        let product: f64 = terms.iter().zip(&data).map(|(t, d)| d[flat(t)]).product();
        sums[flat(&out)] += product;
    }
    sums
}

#[test]
fn sums_of_products_are_those_of_loops_over_all_letters() {
    let _context = own_context();
    for (text, shapes) in [
        ("ij,jk->ik", vec![vec![2, 3], vec![3, 4]]),
        ("ij,jk->ki", vec![vec![2, 3], vec![3, 4]]),
        ("bij,bjk->bik", vec![vec![2, 2, 3], vec![2, 3, 2]]),
        ("bthd,bshd->bhts", vec![vec![2, 3, 2, 4], vec![2, 5, 2, 4]]),
        ("bhts,bshd->bthd", vec![vec![2, 2, 3, 5], vec![2, 5, 2, 4]]),
        ("i,j->ij", vec![vec![3], vec![4]]),
        ("i,i->", vec![vec![3], vec![3]]),
        ("ij->ji", vec![vec![2, 3]]),
        ("ij->", vec![vec![2, 3]]),
        ("ii->", vec![vec![3, 3]]),
        ("iij->ij", vec![vec![3, 3, 2]]),
        ("ij,kj->i", vec![vec![2, 3], vec![4, 3]]),
        ("ab,bc,cd->ad", vec![vec![2, 3], vec![3, 4], vec![4, 2]]),
        ("ab,cd,bc->ad", vec![vec![2, 3], vec![4, 2], vec![3, 4]]),
        ("abc,cb->a", vec![vec![2, 3, 4], vec![4, 3]]),
    ] {
        let operands: Vec<Tensor> = shapes.iter().map(|s| numbers(s)).collect();
        let borrowed: Vec<&Tensor> = operands.iter().collect();
        let got = einsum(text, &borrowed).unwrap();
        close(&got, &by_loops(text, &borrowed), 1e-12);
    }
}

#[test]
fn letters_that_are_left_out_or_stand_for_many_mean_what_numpy_means() {
    let _context = own_context();
    let (a, b) = (numbers(&[2, 3]), numbers(&[3, 4]));
    close(&einsum("ij,jk", &[&a, &b]).unwrap(), &by_loops("ij,jk->ik", &[&a, &b]), 1e-12);
    let (a, b) = (numbers(&[5, 2, 3]), numbers(&[5, 3, 2]));
    let expected = by_loops("bij,bjk->bik", &[&a, &b]);
    close(&einsum("...ij,...jk->...ik", &[&a, &b]).unwrap(), &expected, 1e-12);
    // One matrix for all of a batch.
    let one = numbers(&[3, 2]);
    let got = einsum("...ij,jk->...ik", &[&a, &one]).unwrap();
    close(&got, &by_loops("bij,jk->bik", &[&a, &one]), 1e-12);
}

#[test]
fn mistakes_in_sums_of_products_say_where() {
    let _context = own_context();
    let (a, b) = (numbers(&[2, 3]), numbers(&[4, 4]));
    for (text, operands, part) in [
        ("ij,jk->ik", vec![&a, &b], "j is 3 long"),
        ("ij->ik", vec![&a], "letter"),
        ("ij->ii", vec![&a], "letter"),
        ("ijk->i", vec![&a], "name every axis"),
        ("i1->i", vec![&a], "'1'"),
        ("ij,jk->ik", vec![&a], "2 terms for 1"),
    ] {
        let error = einsum(text, &operands).unwrap_err();
        assert!(error.to_string().contains(part), "{text}: {error}");
        assert!(matches!(error.kind(), ErrorKind::BadArgument { .. }));
    }
}

#[test]
fn products_over_pairs_of_axes_agree_with_letters() {
    let _context = own_context();
    let (a, b) = (numbers(&[2, 3, 4]), numbers(&[4, 5, 3]));
    let got = a.tensordot(&b, &[1, 2], &[2, 0]).unwrap();
    close(&got, &by_loops("ijk,klj->il", &[&a, &b]), 1e-12);
    close(
        &a.dot(&numbers(&[4, 2])).unwrap(),
        &by_loops("ijk,kl->ijl", &[&a, &numbers(&[4, 2])]),
        1e-12,
    );
    let (x, y) = (numbers(&[3]), numbers(&[4]));
    close(&x.outer(&y).unwrap(), &by_loops("i,j->ij", &[&x, &y]), 1e-12);
    let square = numbers(&[3, 3]);
    close(&square.trace(0).unwrap(), &by_loops("ii->", &[&square]), 1e-12);
    assert!(a.tensordot(&b, &[1], &[2, 0]).is_err());
    assert!(a.outer(&y).is_err());
}

#[test]
fn attention_by_letters_copies_no_operand() {
    let _context = own_context();
    let (q, k) = (numbers(&[2, 16, 4, 8]), numbers(&[2, 16, 4, 8]));
    let f = function(|(q, k): (Tensor, Tensor)| einsum("bthd,bshd->bhts", &[&q, &k]));
    let plan = f.plan(&(q.clone(), k.clone())).unwrap();
    let input = Bytes::of(2 * 16 * 4 * 8 * 8).rounded();
    let scores = Bytes::of(2 * 4 * 16 * 16 * 8).rounded();
    // Beside inputs and result there is the product's own packing space, and no copy.
    let names: Vec<&str> = plan.graph.nodes.iter().map(|n| n.op.name).collect();
    assert!(!names.contains(&"identity"), "{names:?}");
    assert!(plan.peak() >= input + input + scores);
    call_checked(&f, &(q, k));
}

#[test]
fn linear_systems_are_solved_and_matrices_without_an_inverse_refused() {
    let _context = own_context();
    let a = (numbers(&[2, 4, 4]) + (eye(4, DType::F64).unwrap() * 3.0).unwrap()).unwrap();
    let b = numbers(&[2, 4, 2]);
    let x = a.solve(&b).unwrap();
    close(&a.matmul(&x).unwrap(), &values(&b), 1e-10);
    let inverse = a.inv().unwrap();
    let unit = eye(4, DType::F64).unwrap().broadcast_to([2, 4, 4]).unwrap();
    close(&inverse.matmul(&a).unwrap(), &values(&unit), 1e-10);
    let (sign, log) = a.slogdet().unwrap();
    let det = sign.mul(log.exp().unwrap()).unwrap();
    close(&a.det().unwrap(), &values(&det), 1e-10);
    close(&a.matrix_power(3).unwrap(), &values(&a.matmul(&a).unwrap().matmul(&a).unwrap()), 1e-10);
    close(&a.matrix_power(-1).unwrap(), &values(&inverse), 1e-12);
    close(&a.matrix_power(0).unwrap(), &values(&unit), 0.0);
    let flat = ones([3, 3]).unwrap();
    let error = flat.solve(&ones([3, 1]).unwrap()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Singular { column: 1, .. }), "{error}");
    assert_eq!(flat.det().unwrap().to_vec::<f32>().unwrap(), [0.0]);
}

#[test]
fn the_cross_product_is_orthogonal_to_both() {
    let _context = own_context();
    let (a, b) = (numbers(&[5, 3]), numbers(&[5, 3]).roll(1, 0).unwrap());
    let c = a.cross(&b).unwrap();
    for x in [&a, &b] {
        close(&x.mul(&c).unwrap().sum(-1).unwrap(), &[0.0; 5], 1e-12);
    }
    assert!(numbers(&[2]).cross(&numbers(&[2])).is_err());
}

#[test]
fn parts_are_taken_as_python_takes_them() {
    let _context = own_context();
    let x = range(0i32, 24, 1).unwrap().reshape([2, 3, 4]).unwrap();
    let shape = |t: Result<Tensor>| t.unwrap().shape().to_string();
    assert_eq!(shape(x.get(&[Index::Rest, 0.into()])), "[2, 3]");
    assert_eq!(shape(x.get(&[Index::New, 1.into(), Index::Rest])), "[1, 3, 4]");
    assert_eq!(shape(x.get(&[Index::Rest])), "[2, 3, 4]");
    assert_eq!(shape(x.get(&[Index::Rest, Index::New])), "[2, 3, 4, 1]");
    let odd = x.get(&[(-1).into(), Part::ALL.by(2).into(), (1..3).into()]).unwrap();
    assert_eq!(odd.to_vec::<i32>().unwrap(), [13, 14, 21, 22]);
    assert!(x.get(&[2.into()]).is_err());
    assert!(x.get(&[Index::Rest, Index::Rest]).is_err());
    assert!(x.get(&[0.into(), 0.into(), 0.into(), 0.into()]).is_err());
    let scope = memory::scope();
    x.get(&[Index::New, 1.into(), Index::Rest]).unwrap();
    assert_eq!(scope.report().count(memory::Action::Allocated), 0);
}

#[test]
fn the_gradient_of_parts_is_joined_again() {
    let _context = own_context();
    let x = numbers(&[4, 6]);
    let mut tape = GradientTape::new();
    tape.watch(&x);
    let parts = x.split(&[2, 4], 1).unwrap();
    let y = concat(&[&(&parts[1]).square().unwrap(), &(&parts[0] * 3.0).unwrap()], 1).unwrap();
    let y = y.sum_all().unwrap();
    let g = tape.gradient(&y, &x).unwrap();
    let expected: Vec<f64> =
        values(&x).iter().enumerate().map(|(i, x)| if i % 6 < 2 { 3.0 } else { 2.0 * x }).collect();
    close(&g.tensor().unwrap(), &expected, 1e-12);
}

#[test]
fn reductions_over_chains_make_nothing_of_full_size() {
    let _context = own_context();
    let x = numbers(&[200, 500]);
    let size = Bytes::of(200 * 500 * 8).rounded();
    let small = Bytes::of(64 * 1024);
    type Reduce = fn(&Tensor) -> Result<Tensor>;
    let all: [(&str, Reduce); 5] = [
        ("var", |x| x.var(1)),
        ("std", |x| x.std(0)),
        ("logsumexp", |x| x.logsumexp(1)),
        ("norm", |x| x.norm(1)),
        ("mean", |x| x.square()?.mean(1)),
    ];
    for (name, reduce) in all {
        let f = function(move |x: Tensor| reduce(&x));
        let plan = f.plan(&x).unwrap();
        assert!(plan.peak() <= size + small, "{name} takes {}", plan.peak());
        let got = call_checked(&f, &x);
        assert_eq!(values(&got), values(&reduce(&x).unwrap()), "{name}");
    }
}

#[test]
fn triangles_of_ones_and_unit_matrices_take_no_bytes() {
    let _context = own_context();
    let mask = ones([1000, 1000]).unwrap().tril(0).unwrap();
    assert!(mask.is_recipe());
    assert_eq!(mask.sum_all().unwrap().to_vec::<f32>().unwrap(), [500_500.0]);
    assert!(eye(1000, DType::F32).unwrap().is_recipe());
    let upper = ones([3, 4]).unwrap().triu(1).unwrap();
    assert_eq!(upper.sum(1).unwrap().to_vec::<f32>().unwrap(), [3.0, 2.0, 1.0]);
}

#[test]
fn segments_are_reduced_in_any_order() {
    let _context = own_context();
    let x = tensor([[1.0f32, 2.0], [3.0, 4.0], [5.0, 0.0]]).unwrap();
    let by = tensor([2, 0, 2]).unwrap();
    let of = |t: Result<Tensor>| t.unwrap().to_vec::<f32>().unwrap();
    assert_eq!(of(x.segment_sum(&by, 3)), [3.0, 4.0, 0.0, 0.0, 6.0, 2.0]);
    assert_eq!(of(x.segment_mean(&by, 3)), [3.0, 4.0, 0.0, 0.0, 3.0, 1.0]);
    let least = f32::NEG_INFINITY;
    assert_eq!(of(x.segment_max(&by, 3)), [3.0, 4.0, least, least, 5.0, 2.0]);
    assert_eq!(of(x.segment_min(&by, 3))[4..], [1.0, 0.0]);
    assert!(x.segment_sum(&tensor([0, 3, 0]).unwrap(), 3).is_err());
    assert!(x.segment_sum(&tensor([0, 1]).unwrap(), 3).is_err());
}

#[test]
fn rows_of_a_batch_are_gathered_together() {
    let _context = own_context();
    let x = numbers(&[2, 3, 4]);
    let by = tensor([[2i64, 0], [1, 1]]).unwrap();
    let rows = x.gather_batched(&by, 1, 1).unwrap();
    assert_eq!(rows.shape().to_string(), "[2, 2, 4]");
    let columns = x.gather_batched(&by, 2, 1).unwrap();
    assert_eq!(columns.shape().to_string(), "[2, 3, 2]");
    let all = values(&x);
    let expected: Vec<f64> = [[[2, 0]; 3], [[1, 1]; 3]]
        .iter()
        .enumerate()
        .flat_map(|(b, rows)| {
            let at = |r: usize, c: usize| all[(b * 3 + r) * 4 + c];
            rows.iter()
                .enumerate()
                .flat_map(|(r, [a, b])| [at(r, *a), at(r, *b)])
                .collect::<Vec<_>>()
        })
        .collect();
    close(&columns, &expected, 0.0);
}

#[test]
fn sorting_along_any_axis_agrees_with_its_indices() {
    let _context = own_context();
    let x = numbers(&[4, 5, 3]);
    for axis in 0..3 {
        for down in [false, true] {
            let (sorted, indices) = (x.sort(axis, down).unwrap(), x.argsort(axis, down).unwrap());
            let taken = x.take_along_axis(&indices, axis).unwrap();
            assert_eq!(values(&sorted), values(&taken), "axis {axis}");
        }
    }
    let nan = tensor([2.0f32, f32::NAN, 1.0]).unwrap();
    assert_eq!(nan.argsort(0, false).unwrap().to_vec::<i32>().unwrap(), [2, 0, 1]);
    assert_eq!(nan.argsort(0, true).unwrap().to_vec::<i32>().unwrap(), [1, 0, 2]);
    let indices = tensor([1.0f32, 3.0, 5.0]).unwrap();
    let found = indices.searchsorted(&tensor([0.0f32, 3.0, 9.0]).unwrap(), true).unwrap();
    assert_eq!(found.to_vec::<i32>().unwrap(), [0, 2, 3]);
}

#[test]
fn a_long_row_is_sorted_on_all_threads_as_on_one() {
    let _context = own_context();
    let all: Vec<f32> =
        (0..50_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 18) as f32).collect();
    let mut indices: Vec<i32> = (0..50_000).collect();
    indices.sort_by(|a, b| all[*a as usize].total_cmp(&all[*b as usize]));
    let sorted: Vec<f32> = indices.iter().map(|i| all[*i as usize]).collect();
    let x = tensor(all).unwrap();
    assert_eq!(x.sort(0, false).unwrap().to_vec::<f32>().unwrap(), sorted);
    assert_eq!(x.argsort(0, false).unwrap().to_vec::<i32>().unwrap(), indices);
    let down: Vec<f32> = sorted.iter().rev().copied().collect();
    assert_eq!(x.sort(0, true).unwrap().to_vec::<f32>().unwrap(), down);
}

#[test]
fn what_the_data_decide_has_its_size() {
    let _context = own_context();
    let x = tensor([3, 0, 3, 7]).unwrap();
    let (values, indices, counts) = x.unique_with_counts().unwrap();
    assert_eq!(values.to_vec::<i32>().unwrap(), [3, 0, 7]);
    assert_eq!(indices.to_vec::<i32>().unwrap(), [0, 1, 0, 2]);
    assert_eq!(counts.to_vec::<i64>().unwrap(), [2, 1, 1]);
    assert_eq!(x.nonzero().unwrap().to_vec::<i64>().unwrap(), [0, 2, 3]);
    assert_eq!(x.bincount(8).unwrap().to_vec::<i64>().unwrap(), [1, 0, 0, 2, 0, 0, 0, 1]);
    assert!(x.bincount(7).is_err());
}

#[test]
fn a_window_moves_along_a_cache_in_place() {
    let _context = own_context();
    let cache = (zeros([4, 3]).unwrap() + tensor(0.0f32).unwrap()).unwrap();
    let row = tensor([[1.0f32; 3]]).unwrap();
    let start = tensor([2, 0]).unwrap();
    let before = in_use();
    let cache = cache.dynamic_update(&row, &start).unwrap();
    assert_eq!(in_use(), before, "it works in place");
    assert_eq!(cache.sum(1).unwrap().to_vec::<f32>().unwrap(), [0.0, 0.0, 3.0, 0.0]);
    let part = cache.dynamic_slice(&tensor([1, 1]).unwrap(), [2, 2]).unwrap();
    assert_eq!(part.to_vec::<f32>().unwrap(), [0.0, 0.0, 1.0, 1.0]);
    assert!(cache.dynamic_slice(&tensor([3, 0]).unwrap(), [2, 2]).is_err());
}

#[test]
fn space_goes_into_depth_and_batch_and_comes_back() {
    let _context = own_context();
    let x = numbers(&[2, 4, 6, 3]);
    let deep = x.space_to_depth(2).unwrap();
    assert_eq!(deep.shape().to_string(), "[2, 2, 3, 12]");
    assert_eq!(values(&deep.depth_to_space(2).unwrap()), values(&x));
    let many = x.space_to_batch([2, 3], [[1, 1], [0, 0]]).unwrap();
    assert_eq!(many.shape().to_string(), "[12, 3, 2, 3]");
    let back = many.batch_to_space([2, 3], [[1, 1], [0, 0]]).unwrap();
    assert_eq!(values(&back), values(&x));
    assert!(x.space_to_depth(4).is_err());
}

#[test]
fn joining_and_cutting_undo_each_other() {
    let _context = own_context();
    let x = numbers(&[3, 4]);
    let parts = x.unstack(0).unwrap();
    let again = stack(&parts.iter().collect::<Vec<_>>(), 0).unwrap();
    assert_eq!(values(&again), values(&x));
    let parts = x.split_evenly(2, 1).unwrap();
    assert_eq!(values(&concat(&[&parts[0], &parts[1]], 1).unwrap()), values(&x));
    assert!(x.split_evenly(3, 1).is_err());
    assert!(concat(&[], 0).is_err());
    assert!(concat(&[&x, &numbers(&[3, 4, 1])], 0).is_err());
    let padded = x.pad(&[[1, 0], [0, 2]], PadMode::Constant(5.into())).unwrap();
    assert_eq!(padded.shape().to_string(), "[4, 6]");
    let grid = meshgrid(&[&numbers(&[2]), &numbers(&[3])]).unwrap();
    assert_eq!(grid[1].shape().to_string(), "[2, 3]");
}

#[test]
fn keys_repeat_their_numbers_and_seeds_theirs() {
    let _context = own_context();
    let key = RandomKey::new(5);
    let logits = numbers(&[3, 4]);
    let drawn = |key: &RandomKey| {
        vec![
            values(&key.normal([4], DType::F64).unwrap()),
            values(&key.truncated_normal([4], DType::F32).unwrap()),
            values(&key.uniform_between(-2.0, 3.0, [4], DType::F32).unwrap()),
            values(&key.int(-3, 4, [6], DType::I16).unwrap()),
            values(&key.permutation(6).unwrap()),
            values(&key.categorical(&logits, 5).unwrap()),
            values(&key.gamma(&ones([4]).unwrap()).unwrap()),
            values(&key.poisson(&ones([4]).unwrap()).unwrap()),
            values(&key.bernoulli(&ones([4]).unwrap()).unwrap()),
            values(&key.shuffle(&logits).unwrap()),
        ]
    };
    assert_eq!(drawn(&key), drawn(&key));
    assert_ne!(drawn(&key)[0], drawn(&key.split()[0])[0]);
    let all = drawn(&key);
    assert!(all[2].iter().all(|x| (-2.0..3.0).contains(x)));
    assert!(all[3].iter().all(|x| (-3.0..4.0).contains(x)));
    assert!(all[5].iter().all(|x| (0.0..4.0).contains(x)));
    let mut indices = all[4].clone();
    indices.sort_by(f64::total_cmp);
    assert_eq!(indices, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);

    set_seed(3);
    let first = values(&random_int(0, 1000, [8], DType::I64).unwrap());
    let other = values(&random_permutation(8).unwrap());
    set_seed(3);
    assert_eq!(values(&random_int(0, 1000, [8], DType::I64).unwrap()), first);
    assert_eq!(values(&random_permutation(8).unwrap()), other);
    assert!(random_int(4, 4, [2], DType::I64).is_err());
    assert!(random_shuffle(&tensor(1.0f32).unwrap()).is_err());
}

#[test]
fn a_function_shuffles_anew_in_every_call() {
    let _context = own_context();
    let f = function(|x: Tensor| random_shuffle(&x));
    let x = range(0i32, 100, 1).unwrap();
    let (a, b) = (f.call(x.clone()).unwrap(), f.call(x.clone()).unwrap());
    assert_ne!(values(&a), values(&b));
    let total: f64 = values(&a).iter().sum();
    assert_eq!(total, 4950.0);
}

#[test]
fn bounds_may_be_numbers_or_tensors() {
    let _context = own_context();
    let x = tensor([-2.0f32, 0.5, 3.0]).unwrap();
    assert_eq!(x.clip(-1.0, 1.0).unwrap().to_vec::<f32>().unwrap(), [-1.0, 0.5, 1.0]);
    let high = tensor([5.0f32, 0.0, 2.0]).unwrap();
    assert_eq!(x.clip(-1.0, &high).unwrap().to_vec::<f32>().unwrap(), [-1.0, 0.0, 2.0]);
    assert_eq!(x.fma(2.0, 1.0).unwrap().to_vec::<f32>().unwrap(), [-3.0, 2.0, 7.0]);
    assert_eq!(x.max(Axes::ALL).unwrap().to_vec::<f32>().unwrap(), [3.0]);
}

#[test]
fn sorting_goes_from_minus_infinity_to_nan() {
    let _context = own_context();
    let inf = f32::INFINITY;
    let order = [-inf, f32::MIN, -1.5, -1e-45, 0.0, 1e-45, 2.0, f32::MAX, inf];
    let mut mixed: Vec<f32> = order.iter().rev().copied().collect();
    mixed.insert(3, f32::NAN);
    mixed.push(-f32::NAN);
    for dtype in [DType::F32, DType::F64] {
        let x = tensor(mixed.clone()).unwrap().cast(dtype).unwrap();
        let sorted = values(&x.sort(0, false).unwrap());
        assert_eq!(sorted[..9], order.map(f64::from), "{dtype}");
        assert!(sorted[9].is_nan() && sorted[10].is_nan(), "{dtype}: {sorted:?}");
    }
    // Both zeros are one number: their places stay in order.
    let zeros = tensor([0.0f64, -0.0, -1.0]).unwrap();
    assert_eq!(zeros.argsort(0, false).unwrap().to_vec::<i32>().unwrap(), [2, 0, 1]);
    let whole = tensor([i64::MAX, -1, 0, i64::MIN, 1]).unwrap().sort(0, false).unwrap();
    assert_eq!(whole.to_vec::<i64>().unwrap(), [i64::MIN, -1, 0, 1, i64::MAX]);
}

#[test]
fn systems_around_the_sizes_of_blocks_are_solved() {
    let _context = own_context();
    for n in [1usize, 2, 5, 47, 48, 49, 97, 150] {
        let element = |i: usize| ((i * i + 3 * i + 1) as f64).sin();
        let a: Vec<f64> = (0..n * n).map(element).collect();
        let expected: Vec<f64> = (0..n).map(|i| element(3 * i + 1)).collect();
        let right = |i: usize| (0..n).map(|j| a[i * n + j] * expected[j]).sum::<f64>();
        let right: Vec<f64> = (0..n).map(right).collect();
        let a = tensor(a).unwrap().reshape([n, n]).unwrap();
        let x = a.solve(&tensor(right).unwrap().reshape([n, 1]).unwrap()).unwrap();
        for (x, expected) in values(&x).iter().zip(&expected) {
            assert!((x - expected).abs() < 1e-8, "{n}: {x} is not {expected}");
        }
    }
}
