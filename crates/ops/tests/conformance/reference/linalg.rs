//! Matrices.

use tonnage_core::Attrs;

use super::{Asked, common, indices};
use crate::plain::{Answer, Plain};

pub fn matmul(asked: &Asked) -> Vec<Answer> {
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
    let ((rows, depth), (_, cols)) = (matrix(a, transpose_a), matrix(b, transpose_b));
    let batches = [a, b].map(|x| x.sizes[..x.sizes.len() - 2].to_vec());
    let batch = common(batches.iter());
    let sizes = [&batch[..], &[rows, cols]].concat();
    let (mut values, mut scale) = (Vec::new(), Vec::new());
    for index in indices(&sizes) {
        let (batch, last) = index.split_at(batch.len());
        let products: Vec<f64> = (0..depth)
            .map(|k| {
                read(a, transpose_a, batch, last[0], k) * read(b, transpose_b, batch, k, last[1])
            })
            .collect();
        values.push(products.iter().sum());
        scale.push(products.iter().map(|x| x.abs()).sum());
    }
    vec![Answer::scaled(a.dtype, sizes, values, scale)]
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
