//! Factorizations of matrices, by other ways than those they are to judge: orthogonalizing twice, and rotating symmetric
//! matrices from both sides.

use super::Asked;
use crate::plain::{Answer, Plain};

/// The matrices of a batch, with their rows and columns.
fn matrices(x: &Plain) -> (Vec<&[f64]>, usize, usize) {
    let [batch @ .., m, n] = &x.sizes[..] else { panic!("no matrix") };
    let count: usize = batch.iter().product();
    let all = (0..count).map(|i| &x.values[i * m * n..(i + 1) * m * n]).collect();
    (all, *m, *n)
}

fn answer(x: &Plain, own: &[usize], values: Vec<f64>, scale: Vec<f64>) -> Answer {
    let sizes = [&x.sizes[..x.sizes.len() - 2], own].concat();
    Answer::scaled(x.dtype, sizes, values, scale)
}

/// Gram and Schmidt's way, twice over, so that columns are orthogonal to the last digit.
pub fn qr(asked: &Asked) -> Vec<Answer> {
    let x = &asked.inputs[0];
    let (all, m, n) = matrices(x);
    let k = m.min(n);
    let (mut qs, mut rs) = (Vec::new(), Vec::new());
    for a in all {
        let mut q = vec![0.0; m * k];
        for j in 0..k {
            let mut column: Vec<f64> = (0..m).map(|i| a[i * n + j]).collect();
            for _ in 0..2 {
                for other in 0..j {
                    let dot: f64 = (0..m).map(|i| column[i] * q[i * k + other]).sum();
                    (0..m).for_each(|i| column[i] -= dot * q[i * k + other]);
                }
            }
            let length = column.iter().map(|x| x * x).sum::<f64>().sqrt();
            (0..m).for_each(|i| q[i * k + j] = column[i] / length);
        }
        for i in 0..k {
            for j in 0..n {
                let dot: f64 = (0..m).map(|row| q[row * k + i] * a[row * n + j]).sum();
                rs.push(if j < i { 0.0 } else { dot });
            }
        }
        qs.extend(q);
    }
    // Errors grow with how close columns are to one another; the samples' are a few times as large as a digit.
    let most = rs.iter().fold(1.0f64, |m, x| m.max(x.abs()));
    let (of_q, of_r) = (vec![20.0; qs.len()], vec![20.0 * most; rs.len()]);
    vec![answer(x, &[m, k], qs, of_q), answer(x, &[k, n], rs, of_r)]
}

/// Eigenvalues and eigenvectors (as columns), in any order: rotations from both sides until nothing is left beside the
/// diagonal.
fn rotated(a: &[f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut a = a.to_vec();
    let mut v: Vec<f64> = (0..n * n).map(|i| f64::from(i / n == i % n)).collect();
    for _ in 0..60 {
        let beside: f64 = (0..n * n).filter(|i| i / n != i % n).map(|i| a[i] * a[i]).sum();
        let all: f64 = a.iter().map(|x| x * x).sum();
        if beside <= 1e-34 * all {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                if a[p * n + q] == 0.0 {
                    continue;
                }
                let slope = (a[q * n + q] - a[p * n + p]) / (2.0 * a[p * n + q]);
                let tan = 1.0f64.copysign(slope) / (slope.abs() + slope.hypot(1.0));
                let cos = 1.0 / tan.hypot(1.0);
                let sin = cos * tan;
                let rotate = |x: &mut [f64], i: usize, j: usize| {
                    (x[i], x[j]) = (cos * x[i] - sin * x[j], sin * x[i] + cos * x[j]);
                };
                (0..n).for_each(|k| rotate(&mut a, k * n + p, k * n + q));
                (0..n).for_each(|k| rotate(&mut a, p * n + k, q * n + k));
                (0..n).for_each(|k| rotate(&mut v, k * n + p, k * n + q));
            }
        }
    }
    ((0..n).map(|i| a[i * n + i]).collect(), v)
}

/// With the sign convention that the element of largest size is positive.
fn with_sign_convention(column: Vec<f64>) -> (Vec<f64>, f64) {
    let best = column.iter().fold(0.0f64, |best, x| if x.abs() > best.abs() { *x } else { best });
    let sign = if best < 0.0 { -1.0 } else { 1.0 };
    (column.into_iter().map(|x| x * sign).collect(), sign)
}

/// How far the number `i` of a list is from the others.
fn gap(values: &[f64], i: usize) -> f64 {
    let others = (0..values.len()).filter(|j| *j != i);
    others.map(|j| (values[j] - values[i]).abs()).fold(f64::INFINITY, f64::min)
}

pub fn eigh(asked: &Asked) -> Vec<Answer> {
    let x = &asked.inputs[0];
    let (all, n, _) = matrices(x);
    let (mut values, mut of_values) = (Vec::new(), Vec::new());
    let (mut vectors, mut of_vectors) = (Vec::new(), Vec::new());
    for a in all {
        let even: Vec<f64> = (0..n * n).map(|i| (a[i] + a[i % n * n + i / n]) / 2.0).collect();
        let (found, columns) = rotated(&even, n);
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|i, j| found[*i].total_cmp(&found[*j]));
        let largest = found.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        values.extend(order.iter().map(|i| found[*i]));
        of_values.extend(vec![4.0 * largest; n]);
        let column =
            |i: &usize| with_sign_convention((0..n).map(|row| columns[row * n + i]).collect()).0;
        let sorted: Vec<Vec<f64>> = order.iter().map(column).collect();
        // An eigenvector is rotated as far as the matrix's error is large beside the gap to the next eigenvalue.
        let rotations: Vec<f64> = order.iter().map(|i| 1.0 + largest / gap(&found, *i)).collect();
        for row in 0..n {
            vectors.extend(sorted.iter().map(|column| column[row]));
            of_vectors.extend(rotations.iter().map(|rotation| 4.0 * rotation));
        }
    }
    vec![answer(x, &[n], values, of_values), answer(x, &[n, n], vectors, of_vectors)]
}

/// From the eigenvectors of the symmetric matrix with A and its transpose beside a diagonal of zeros.
pub fn svd(asked: &Asked) -> Vec<Answer> {
    let x = &asked.inputs[0];
    let (all, m, n) = matrices(x);
    let (k, both) = (m.min(n), m + n);
    let (mut us, mut ss, mut vs) = (Vec::new(), Vec::new(), Vec::new());
    let (mut of_u, mut of_s, mut of_v) = (Vec::new(), Vec::new(), Vec::new());
    for a in all {
        let mut even = vec![0.0; both * both];
        for (i, j) in (0..m * n).map(|at| (at / n, at % n)) {
            even[i * both + m + j] = a[i * n + j];
            even[(m + j) * both + i] = a[i * n + j];
        }
        let (found, columns) = rotated(&even, both);
        let mut order: Vec<usize> = (0..both).collect();
        order.sort_by(|i, j| found[*j].total_cmp(&found[*i]));
        order.truncate(k);
        let values: Vec<f64> = order.iter().map(|i| found[*i]).collect();
        let largest = values.iter().fold(0.0f64, |m, x| m.max(*x));
        let part = |i: usize, rows: std::ops::Range<usize>| -> Vec<f64> {
            rows.map(|row| columns[row * both + i] * 2f64.sqrt()).collect()
        };
        let rotation = |i: usize| 8.0 * (1.0 + largest / gap(&found, i).min(found[i]));
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for i in &order {
            let (u, sign) = with_sign_convention(part(*i, 0..m));
            left.push(u);
            right.push(part(*i, m..both).into_iter().map(|x| x * sign).collect::<Vec<_>>());
        }
        for (rows, columns, to, scale) in
            [(m, &left, &mut us, &mut of_u), (n, &right, &mut vs, &mut of_v)]
        {
            for row in 0..rows {
                to.extend(columns.iter().map(|column| column[row]));
                scale.extend(order.iter().map(|i| rotation(*i)));
            }
        }
        of_s.extend(vec![4.0 * largest; k]);
        ss.extend(values);
    }
    vec![answer(x, &[m, k], us, of_u), answer(x, &[k], ss, of_s), answer(x, &[n, k], vs, of_v)]
}
