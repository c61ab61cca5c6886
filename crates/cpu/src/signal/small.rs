//! Transforms of a few elements of one row, as loops over lanes are made of.

use crate::linalg::field::Field;
use tonnage_simd::Isa;

/// The transform of R elements; `roots` are the R-th roots of 1.
#[inline(always)]
pub fn small<I: Isa, T: Field, const R: usize>(x: [[T; 2]; R], roots: &[[T; 2]; R]) -> [[T; 2]; R] {
    let mut made = x;
    match R {
        2 => {
            made[0] = add(x[0], x[1]);
            made[1] = sub(x[0], x[1]);
        }
        4 => {
            let four = of_four([x[0], x[1], x[2], x[3]]);
            made[..4].copy_from_slice(&four);
        }
        8 => {
            let even = of_four([x[0], x[2], x[4], x[6]]);
            let odd = of_four([x[1], x[3], x[5], x[7]]);
            let half = T::of(std::f64::consts::FRAC_1_SQRT_2);
            // Rotated by an eighth, a quarter and three eighths of the circle.
            let rotated = [
                odd[0],
                [(odd[1][0] + odd[1][1]) * half, (odd[1][1] - odd[1][0]) * half],
                [odd[2][1], -odd[2][0]],
                [(odd[3][1] - odd[3][0]) * half, -(odd[3][0] + odd[3][1]) * half],
            ];
            for k in 0..4 {
                made[k] = add(even[k], rotated[k]);
                made[k + 4] = sub(even[k], rotated[k]);
            }
        }
        _ => {
            // Elements from both ends: their sums meet the cosines, their differences the sines.
            let mut whole = x[0];
            for j in 1..R / 2 + 1 {
                whole = add(whole, add(x[j], x[R - j]));
            }
            made[0] = whole;
            for k in 1..R / 2 + 1 {
                let (mut even, mut odd) = (x[0], [T::ZERO; 2]);
                for j in 1..R / 2 + 1 {
                    let [cos, sin] = roots[j * k % R];
                    let (sum, gap) = (add(x[j], x[R - j]), sub(x[j], x[R - j]));
                    even = [cos.fma::<I>(sum[0], even[0]), cos.fma::<I>(sum[1], even[1])];
                    odd = [(-sin).fma::<I>(gap[1], odd[0]), sin.fma::<I>(gap[0], odd[1])];
                }
                made[k] = add(even, odd);
                made[R - k] = sub(even, odd);
            }
        }
    }
    made
}

#[inline(always)]
fn add<T: Field>(a: [T; 2], b: [T; 2]) -> [T; 2] {
    [a[0] + b[0], a[1] + b[1]]
}

#[inline(always)]
fn sub<T: Field>(a: [T; 2], b: [T; 2]) -> [T; 2] {
    [a[0] - b[0], a[1] - b[1]]
}

/// The transform of four elements.
#[inline(always)]
fn of_four<T: Field>([a, b, c, d]: [[T; 2]; 4]) -> [[T; 2]; 4] {
    let (even, even_gap) = (add(a, c), sub(a, c));
    let (odd, odd_gap) = (add(b, d), sub(b, d));
    [
        add(even, odd),
        [even_gap[0] + odd_gap[1], even_gap[1] - odd_gap[0]],
        sub(even, odd),
        [even_gap[0] - odd_gap[1], even_gap[1] + odd_gap[0]],
    ]
}
