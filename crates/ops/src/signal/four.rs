//! The pass of radix 4, which most of a transform consists of, over lanes.
//!
//! One loop holds all that is done to a lane, and every run of lanes is an argument of its own: so the compiler knows that
//! none overlaps another, and makes vectors of it. Loops of a few instructions each, as the other radices have, it unrolls
//! instead.

use super::stages::{Parts, PartsMut};
use crate::linalg::field::Field;
use crate::simd::Isa;

/// Transforms four lanes, and turns all but the first by `angle(which, lane)`: its cosine and its sine.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "runs that are known to lie apart; see the module")]
fn four<I: Isa, T: Field, const L: usize>(
    (re_0, re_1, re_2, re_3): (&[T; L], &[T; L], &[T; L], &[T; L]),
    (im_0, im_1, im_2, im_3): (&[T; L], &[T; L], &[T; L], &[T; L]),
    angle: impl Fn(usize, usize) -> [T; 2],
    to_re_0: &mut [T; L],
    to_re_1: &mut [T; L],
    to_re_2: &mut [T; L],
    to_re_3: &mut [T; L],
    to_im_0: &mut [T; L],
    to_im_1: &mut [T; L],
    to_im_2: &mut [T; L],
    to_im_3: &mut [T; L],
) {
    for i in 0..L {
        let (even_re, even_im) = (re_0[i] + re_2[i], im_0[i] + im_2[i]);
        let (gap_re, gap_im) = (re_0[i] - re_2[i], im_0[i] - im_2[i]);
        let (odd_re, odd_im) = (re_1[i] + re_3[i], im_1[i] + im_3[i]);
        let (far_re, far_im) = (re_1[i] - re_3[i], im_1[i] - im_3[i]);
        (to_re_0[i], to_im_0[i]) = (even_re + odd_re, even_im + odd_im);
        let ([cos, sin], x, y) = (angle(1, i), gap_re + far_im, gap_im - far_re);
        (to_re_1[i], to_im_1[i]) = (x.fma::<I>(cos, -(y * sin)), x.fma::<I>(sin, y * cos));
        let ([cos, sin], x, y) = (angle(2, i), even_re - odd_re, even_im - odd_im);
        (to_re_2[i], to_im_2[i]) = (x.fma::<I>(cos, -(y * sin)), x.fma::<I>(sin, y * cos));
        let ([cos, sin], x, y) = (angle(3, i), gap_re - far_im, gap_im + far_re);
        (to_re_3[i], to_im_3[i]) = (x.fma::<I>(cos, -(y * sin)), x.fma::<I>(sin, y * cos));
    }
}

/// One run of four parts, from element `start` of the first on, into `to`, where the parts follow each other. All lanes
/// have the same angles. Whole blocks of `L` only.
#[inline(always)]
pub(super) fn run<I: Isa, T: Field, const L: usize>(
    from: Parts<T>,
    start: usize,
    angles: [[T; 4]; 2],
    [to_re, to_im]: PartsMut<T>,
) {
    let (part, run) = (from[0].len() / 4, to_re.len() / 4);
    let lanes = |which: usize, j: usize| from[which][part * j + start..][..run].as_chunks::<L>().0;
    let (re_0, re_1, re_2, re_3) = (lanes(0, 0), lanes(0, 1), lanes(0, 2), lanes(0, 3));
    let (im_0, im_1, im_2, im_3) = (lanes(1, 0), lanes(1, 1), lanes(1, 2), lanes(1, 3));
    let (low, high) = to_re.split_at_mut(2 * run);
    let ((a, b), (c, d)) = (low.split_at_mut(run), high.split_at_mut(run));
    let (low, high) = to_im.split_at_mut(2 * run);
    let ((e, f), (g, h)) = (low.split_at_mut(run), high.split_at_mut(run));
    let [a, b, c, d] = [a, b, c, d].map(|to| to.as_chunks_mut::<L>().0);
    let [e, f, g, h] = [e, f, g, h].map(|to| to.as_chunks_mut::<L>().0);
    for w in 0..run / L {
        four::<I, T, L>(
            (&re_0[w], &re_1[w], &re_2[w], &re_3[w]),
            (&im_0[w], &im_1[w], &im_2[w], &im_3[w]),
            |k, _| [angles[0][k], angles[1][k]],
            &mut a[w],
            &mut b[w],
            &mut c[w],
            &mut d[w],
            &mut e[w],
            &mut f[w],
            &mut g[w],
            &mut h[w],
        );
    }
}

/// The same for `L` lanes with angles of their own, into a block.
#[inline(always)]
pub(super) fn block<I: Isa, T: Field, const L: usize>(
    from: Parts<T>,
    start: usize,
    angles: &[[[T; L]; 4]; 2],
    [to_re, to_im]: [&mut [[T; L]; 4]; 2],
) {
    let part = from[0].len() / 4;
    let lanes = |which: usize, j: usize| from[which][part * j + start..].first_chunk::<L>();
    let (Some(re_0), Some(re_1), Some(re_2), Some(re_3)) =
        (lanes(0, 0), lanes(0, 1), lanes(0, 2), lanes(0, 3))
    else {
        return;
    };
    let (Some(im_0), Some(im_1), Some(im_2), Some(im_3)) =
        (lanes(1, 0), lanes(1, 1), lanes(1, 2), lanes(1, 3))
    else {
        return;
    };
    let ([a, b, c, d], [e, f, g, h]) = (to_re, to_im);
    four::<I, T, L>(
        (re_0, re_1, re_2, re_3),
        (im_0, im_1, im_2, im_3),
        |k, i| [angles[0][k][i], angles[1][k][i]],
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
    );
}
