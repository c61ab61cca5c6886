//! The gamma functions from 0 on with what `f32` needs: the steps of `gamma` in `f64`, with polynomials that are good
//! to 1e-9. Their zeros are factors there too, so that the figure is relative.

use super::curves::poly;
use super::gamma::{fraction, parts_down, steps_down};
use super::real::{MathFloat, select};
use crate::Isa;

/// ln gamma(x) for the numbers from 0 on that `f32` has.
#[inline(always)]
pub(super) fn lgamma<I: Isa>(x: f64) -> f64 {
    let x = x.abs();
    let (d, d_less) = fraction::<I>(x);
    let unit = d * d_less * lgamma_unit::<I>(d - 0.5);
    let (least, large) = (x < 1.0, x >= 8.0);
    let ln = log::<I>(select(least | large, x, steps_down(x)));
    let near = unit + select(least, -ln, ln);
    let rest = 1.0 / x;
    // The first terms of Stirling's series: from 8 on the next is below 3e-10.
    let z = rest * rest;
    let series = poly!(I, z, 1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0);
    let far = (x - 0.5) * (ln - 1.0) + (0.418_938_533_204_672_7 + rest * series);
    select(large, far, near)
}

/// The slope of that.
#[inline(always)]
pub(super) fn digamma<I: Isa>(x: f64) -> f64 {
    let x = x.abs();
    let (d, _) = fraction::<I>(x);
    let unit = (d - 0.461_632_144_968_362_3) * digamma_unit::<I>(d - 0.5);
    let (least, large) = (x < 1.0, x >= 8.0);
    let part = parts_down(x, least | large);
    let near = unit + select(least, -part, part);
    let z = part * part;
    let series = poly!(I, z, 1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0);
    let far = log::<I>(x) - (0.5 * part + z * series);
    select(large, far, near)
}

/// ln x from 0 on, without subnormal numbers: `f32` has none of those that `f64` has.
#[inline(always)]
fn log<I: Isa>(x: f64) -> f64 {
    let (m, e) = x.split();
    let f = m - 1.0;
    let y = e.fma::<I>(f64::LN_2, (f * f).fma::<I>(log_rest::<I>(f), f));
    let y = select(x == f64::INFINITY, x, y);
    let y = select(x == 0.0, -f64::INFINITY, y);
    select(x >= 0.0, y, f64::NAN)
}

/// (ln(1 + f) - f) / f^2 for 1 + f in [sqrt(1/2), sqrt(2)).
#[inline(always)]
fn log_rest<I: Isa>(f: f64) -> f64 {
    poly!(
        I,
        f,
        -0.5000000000445634,
        0.33333333619653827,
        -0.24999997692993609,
        0.19999941130866822,
        -0.16666823826926574,
        0.14289164800185855,
        -0.1249823881958088,
        0.11028403306854524,
        -0.0993614137651327,
        0.09923879802924102,
        -0.09771449356382762,
        0.053931296078182256
    )
}

/// lgamma(1 + d) / (d (d - 1)) for s = d - 1/2, d in [0, 1].
#[inline(always)]
fn lgamma_unit<I: Isa>(s: f64) -> f64 {
    poly!(
        I,
        s,
        0.48312895049714205,
        -0.1459598958869427,
        0.06291141368299658,
        -0.03130849537087994,
        0.016796514370089517,
        -0.009425257787561038,
        0.005456284864522071,
        -0.0032182068080868612,
        0.0018491879253835115,
        -0.0011184132096307986,
        0.0009585090935483713,
        -0.0005920239037255214
    )
}

/// digamma(1 + d) / (1 + d - its root) for s = d - 1/2, d in [0, 1].
#[inline(always)]
fn digamma_unit<I: Isa>(s: f64) -> f64 {
    poly!(
        I,
        s,
        0.9510558754378758,
        -0.42362742088558825,
        0.240542655036541,
        -0.14840503688922396,
        0.09498081754904339,
        -0.06191686333003683,
        0.0408935606644924,
        -0.027064258800657295,
        0.016915223738038547,
        -0.011247037333869003,
        0.01122315637643749,
        -0.007476843099039942
    )
}
