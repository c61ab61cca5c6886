//! Fourier transforms, term by term.

use std::f64::consts::PI;

use tonnage_core::Attrs;

use super::Asked;
use crate::plain::{Answer, Plain};

/// The sum of `x[j] e^(sign 2 pi i j k / n)` for each of the first `kept` k, with the sum of sizes.
fn sums(re: &[f64], im: &[f64], sign: f64, kept: usize) -> Vec<(f64, f64, f64)> {
    let n = re.len();
    let size: f64 = re.iter().chain(im).map(|x| x.abs()).sum();
    let one = |k: usize| {
        let term = |j: usize| {
            let (sin, cos) = (sign * 2.0 * PI * ((j * k % n) as f64 / n as f64)).sin_cos();
            (re[j] * cos - im[j] * sin, re[j] * sin + im[j] * cos)
        };
        let add = |a: (f64, f64), b: (f64, f64)| (a.0 + b.0, a.1 + b.1);
        let (re, im) = (0..n).map(term).fold((0.0, 0.0), add);
        (re, im, size)
    };
    (0..kept).map(one).collect()
}

fn by_rows(x: &Plain) -> impl Iterator<Item = &[f64]> {
    x.values.chunks_exact(*x.sizes.last().expect("an axis"))
}

/// Both parts, over a number.
fn parts(like: &Plain, kept: usize, made: Vec<(f64, f64, f64)>, over: f64) -> Vec<Answer> {
    let sizes = [&like.sizes[..like.sizes.len() - 1], &[kept]].concat();
    let scale: Vec<f64> = made.iter().map(|x| x.2 / over).collect();
    let part = |of: fn(&(f64, f64, f64)) -> f64| {
        let values = made.iter().map(|x| of(x) / over).collect();
        Answer::scaled(like.dtype, sizes.clone(), values, scale.clone())
    };
    vec![part(|x| x.0), part(|x| x.1)]
}

fn complex(asked: &Asked, sign: f64) -> Vec<Answer> {
    let [re, im] = asked.inputs else { panic!("two inputs") };
    let n = *re.sizes.last().expect("an axis");
    let rows = by_rows(re).zip(by_rows(im));
    let made = rows.flat_map(|(re, im)| sums(re, im, sign, n)).collect();
    parts(re, n, made, if sign > 0.0 { n as f64 } else { 1.0 })
}

pub fn fft(asked: &Asked) -> Vec<Answer> {
    complex(asked, -1.0)
}

pub fn ifft(asked: &Asked) -> Vec<Answer> {
    complex(asked, 1.0)
}

pub fn rfft(asked: &Asked) -> Vec<Answer> {
    let x = &asked.inputs[0];
    let n = *x.sizes.last().expect("an axis");
    let made = by_rows(x).flat_map(|row| sums(row, &vec![0.0; n], -1.0, n / 2 + 1)).collect();
    parts(x, n / 2 + 1, made, 1.0)
}

pub fn irfft(asked: &Asked) -> Vec<Answer> {
    let Attrs::Shape(shape) = asked.attrs else { panic!("no length") };
    let n = shape[0].known().expect("known");
    let [re, im] = asked.inputs else { panic!("two inputs") };
    let whole = |(re, im): (&[f64], &[f64])| {
        let at = |k: usize| if k <= n / 2 { (k, 1.0) } else { (n - k, -1.0) };
        let own = |k: usize| k == 0 || 2 * k == n;
        let all_re: Vec<f64> = (0..n).map(|k| re[at(k).0]).collect();
        let all_im: Vec<f64> =
            (0..n).map(|k| if own(k) { 0.0 } else { im[at(k).0] * at(k).1 }).collect();
        sums(&all_re, &all_im, 1.0, n)
    };
    let made = by_rows(re).zip(by_rows(im)).flat_map(whole).collect();
    parts(re, n, made, n as f64).into_iter().take(1).collect()
}
