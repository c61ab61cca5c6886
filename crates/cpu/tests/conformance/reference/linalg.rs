//! Matrices.

use tonnage_core::{Attrs, DType};

use super::{Asked, common, indices};
use crate::plain::{Answer, Plain};

pub fn matmul(asked: &Asked) -> Vec<Answer> {
    product(asked, asked.inputs[0].dtype)
}

/// The same of bytes, with sums of 32 bits.
pub fn matmul_integer(asked: &Asked) -> Vec<Answer> {
    product(asked, DType::I32)
}

fn product(asked: &Asked, dtype: DType) -> Vec<Answer> {
    let Attrs::Matmul { transpose_a, transpose_b } = *asked.attrs else { panic!("no transposes") };
    let (a, b) = (&asked.inputs[0], &asked.inputs[1]);
    let read = |x: &Plain, transposed: bool, batch: &[usize], i: usize, j: usize| {
        let last = if transposed { [j, i] } else { [i, j] };
        let skip = batch.len() + 2 - x.sizes.len();
        let own = batch[skip..].iter().zip(&x.sizes).map(|(i, n)| if *n == 1 { 0 } else { *i });
        x.at(&own.chain(last).collect::<Vec<_>>())
    };
    let matrix = |x: &Plain, transposed: bool| {
        let (rows, cols) = (x.sizes[x.sizes.len() - 2], x.sizes[x.sizes.len() - 1]);
        if transposed { (cols, rows) } else { (rows, cols) }
    };
    let ((rows, inner), (_, cols)) = (matrix(a, transpose_a), matrix(b, transpose_b));
    let batches = [a, b].map(|x| x.sizes[..x.sizes.len() - 2].to_vec());
    let batch = common(batches.iter());
    let sizes = [&batch[..], &[rows, cols]].concat();
    let (mut values, mut scale) = (Vec::new(), Vec::new());
    for index in indices(&sizes) {
        let (batch, last) = index.split_at(batch.len());
        let products: Vec<f64> = (0..inner)
            .map(|k| {
                read(a, transpose_a, batch, last[0], k) * read(b, transpose_b, batch, k, last[1])
            })
            .collect();
        values.push(products.iter().sum());
        scale.push(products.iter().map(|x| x.abs()).sum());
    }
    vec![Answer::scaled(dtype, sizes, values, scale)]
}

/// The lower triangle L of `L * L^T`, matrix by matrix; zeros above.
pub fn cholesky(asked: &Asked) -> Vec<Answer> {
    let x = &asked.inputs[0];
    let n = x.sizes.last().copied().expect("a matrix");
    let (mut values, mut scale) = (Vec::new(), Vec::new());
    for a in x.values.chunks_exact((n * n).max(1)) {
        let mut l = vec![0.0f64; n * n];
        for i in 0..n {
            for j in 0..=i {
                let dot: f64 = (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum();
                let rest = a[i * n + j] - dot;
                l[i * n + j] = if i == j { rest.sqrt() } else { rest / l[j * n + j] };
            }
        }
        let largest = l.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        scale.extend(l.iter().map(|_| largest * n as f64));
        values.extend(l);
    }
    vec![Answer::scaled(x.dtype, x.sizes.clone(), values, scale)]
}

/// X with A X = B, or its transpose, where A is the lower triangle of the left.
pub fn triangular_solve(asked: &Asked) -> Vec<Answer> {
    let Attrs::Matmul { transpose_a, .. } = *asked.attrs else { panic!("no transposes") };
    let (a, b) = (&asked.inputs[0], &asked.inputs[1]);
    let (n, width) = (b.sizes[b.sizes.len() - 2], b.sizes[b.sizes.len() - 1]);
    let mut values = b.values.clone();
    let mut scale = vec![0.0; values.len()];
    for at in 0..b.sizes[..b.sizes.len() - 2].iter().product::<usize>() {
        let matrix = &a.values[at * n * n..(at + 1) * n * n];
        let x = &mut values[at * n * width..(at + 1) * n * width];
        let read =
            |i: usize, j: usize| if transpose_a { matrix[j * n + i] } else { matrix[i * n + j] };
        let order: Vec<usize> = if transpose_a { (0..n).rev().collect() } else { (0..n).collect() };
        for (step, i) in order.iter().enumerate() {
            for column in 0..width {
                let known: f64 =
                    order[..step].iter().map(|j| read(*i, *j) * x[j * width + column]).sum();
                x[i * width + column] = (x[i * width + column] - known) / read(*i, *i);
            }
        }
        let largest = x.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        scale[at * n * width..(at + 1) * n * width].fill(largest * n as f64);
    }
    vec![Answer::scaled(b.dtype, b.sizes.clone(), values, scale)]
}

/// Every element, by its row and column, and the element across the diagonal where there is one.
fn by_place(asked: &Asked, f: impl Fn(usize, usize, f64, f64) -> f64) -> Vec<Answer> {
    let x = &asked.inputs[0];
    let value = |index: &Vec<usize>| {
        let (i, j) = (index[index.len() - 2], index[index.len() - 1]);
        let mut across = index.clone();
        across.swap(index.len() - 2, index.len() - 1);
        let there = across.iter().zip(&x.sizes).all(|(i, n)| i < n);
        f(i, j, x.at(index), if there { x.at(&across) } else { 0.0 })
    };
    vec![Answer::new(x.dtype, x.sizes.clone(), indices(&x.sizes).iter().map(value).collect())]
}

fn diagonal(asked: &Asked) -> i64 {
    let Attrs::Diagonal(diagonal) = *asked.attrs else { panic!("no diagonal") };
    diagonal
}

pub fn tril(asked: &Asked) -> Vec<Answer> {
    let most = diagonal(asked);
    by_place(asked, |i, j, x, _| if j as i64 - i as i64 <= most { x } else { 0.0 })
}

pub fn triu(asked: &Asked) -> Vec<Answer> {
    let least = diagonal(asked);
    by_place(asked, |i, j, x, _| if j as i64 - i as i64 >= least { x } else { 0.0 })
}

pub fn half_tril(asked: &Asked) -> Vec<Answer> {
    by_place(asked, |i, j, x, _| match j.cmp(&i) {
        std::cmp::Ordering::Less => x,
        std::cmp::Ordering::Equal => x / 2.0,
        std::cmp::Ordering::Greater => 0.0,
    })
}

pub fn symmetrize(asked: &Asked) -> Vec<Answer> {
    by_place(asked, |_, _, x, across| (x + across) / 2.0)
}

/// Rows exchanged, factors taken away: what is left of a matrix above its diagonal, the right side with it, and the
/// sign of the exchanges.
fn eliminate(a: &[f64], n: usize, b: &[f64], width: usize) -> (Vec<f64>, Vec<f64>, f64) {
    let (mut a, mut b, mut sign) = (a.to_vec(), b.to_vec(), 1.0);
    for column in 0..n {
        let size = |row: &usize| a[row * n + column].abs();
        let best = (column..n).max_by(|x, y| size(x).total_cmp(&size(y))).expect("a row");
        if best != column {
            sign = -sign;
            (0..n).for_each(|j| a.swap(column * n + j, best * n + j));
            (0..width).for_each(|j| b.swap(column * width + j, best * width + j));
        }
        for row in column + 1..n {
            let factor = a[row * n + column] / a[column * n + column];
            (column..n).for_each(|j| a[row * n + j] -= factor * a[column * n + j]);
            (0..width).for_each(|j| b[row * width + j] -= factor * b[column * width + j]);
        }
    }
    (a, b, sign)
}

fn solution(a: &[f64], n: usize, b: &[f64], width: usize) -> Vec<f64> {
    let (a, mut x, _) = eliminate(a, n, b, width);
    for row in (0..n).rev() {
        for j in 0..width {
            let known: f64 = (row + 1..n).map(|k| a[row * n + k] * x[k * width + j]).sum();
            x[row * width + j] = (x[row * width + j] - known) / a[row * n + row];
        }
    }
    x
}

/// For each matrix of a batch, and what belongs to it.
fn each(x: &Plain, of: impl Fn(usize, usize, &[f64]) -> Vec<f64>) -> Vec<f64> {
    let n = *x.sizes.last().expect("a matrix");
    let batch: usize = x.sizes[..x.sizes.len() - 2].iter().product();
    (0..batch).flat_map(|at| of(at, n, &x.values[at * n * n..(at + 1) * n * n])).collect()
}

pub fn solve(asked: &Asked) -> Vec<Answer> {
    let Attrs::Matmul { transpose_a, .. } = *asked.attrs else { panic!("no transposes") };
    let (a, b) = (&asked.inputs[0], &asked.inputs[1]);
    let width = *b.sizes.last().expect("a matrix");
    let values = each(a, |at, n, matrix| {
        let transposed: Vec<f64> = (0..n * n).map(|i| matrix[i % n * n + i / n]).collect();
        let matrix = if transpose_a { &transposed } else { matrix };
        solution(matrix, n, &b.values[at * n * width..(at + 1) * n * width], width)
    });
    let largest = values.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let scale = vec![4.0 * largest; values.len()];
    vec![Answer::scaled(b.dtype, b.sizes.clone(), values, scale)]
}

pub fn inv(asked: &Asked) -> Vec<Answer> {
    let a = &asked.inputs[0];
    let values = each(a, |_, n, matrix| {
        let ones: Vec<f64> = (0..n * n).map(|i| f64::from(i / n == i % n)).collect();
        solution(matrix, n, &ones, n)
    });
    let scale = vec![4.0; values.len()];
    vec![Answer::scaled(a.dtype, a.sizes.clone(), values, scale)]
}

pub fn det(asked: &Asked) -> Vec<Answer> {
    let a = &asked.inputs[0];
    let values = each(a, |_, n, matrix| {
        let (u, _, sign) = eliminate(matrix, n, &[], 0);
        vec![(0..n).fold(sign, |p, i| p * u[i * n + i])]
    });
    let n = *a.sizes.last().expect("a matrix");
    let scale = values.iter().map(|x| x.abs() * n as f64).collect();
    vec![Answer::scaled(a.dtype, &a.sizes[..a.sizes.len() - 2], values, scale)]
}

pub fn slogdet(asked: &Asked) -> Vec<Answer> {
    let a = &asked.inputs[0];
    let of = |sign_only: bool| {
        each(a, |_, n, matrix| {
            let (u, _, sign) = eliminate(matrix, n, &[], 0);
            let diagonal = || (0..n).map(|i| u[i * n + i]);
            vec![match sign_only {
                true => diagonal().fold(sign, |s, x| s * x.signum()),
                false => diagonal().map(|x| x.abs().ln()).sum(),
            }]
        })
    };
    let (signs, logs) = (of(true), of(false));
    let n = *a.sizes.last().expect("a matrix");
    let scale = vec![n as f64; logs.len()];
    let sizes = &a.sizes[..a.sizes.len() - 2];
    vec![Answer::new(a.dtype, sizes, signs), Answer::scaled(a.dtype, sizes, logs, scale)]
}
