//! The logarithm of the gamma function, and its slopes.
//!
//! Both are written for `f64`, and `f32` goes through it below 0: near the zeros of these functions nothing else
//! would keep its bits; above 0 it has shorter polynomials (`gamma_single`). From 0 to 8 the argument is taken down to [1, 2] by the recurrence, where a
//! polynomial has the zeros as factors; from 8 on stands Stirling's series, and below 0 the reflection.

use super::curves::poly;
use super::exp::exp;
use super::gamma_single;
use super::log::log;
use super::real::{MathFloat, select};
use super::round::{floor, round};
use super::trig::sin_cos_reduced;
use crate::Isa;

/// A float with a gamma function. Above 0, where most arguments are, the functions cost a third of what they do below.
pub trait Gamma: Sized {
    /// ln gamma(x) for x from 0 on: infinite at 0 and at infinity.
    fn lgamma_above<I: Isa>(x: Self) -> Self;
    /// ln |gamma(x)| for x below 0: infinite at the integers and at minus infinity.
    fn lgamma_below<I: Isa>(x: Self) -> Self;
    /// The slope of `lgamma` from 0 on: minus infinity at 0.
    fn digamma_above<I: Isa>(x: Self) -> Self;
    /// The slope of `lgamma` below 0: NaN at the integers and at minus infinity.
    fn digamma_below<I: Isa>(x: Self) -> Self;
    /// The slope of `digamma` of that order, a whole number from 1 to 170: infinite at 0; NaN below 0 from order 2 on,
    /// and for any other order.
    fn polygamma<I: Isa>(order: Self, x: Self) -> Self;
}

impl Gamma for f32 {
    #[inline(always)]
    fn lgamma_above<I: Isa>(x: f32) -> f32 {
        gamma_single::lgamma::<I>(f64::from(x)) as f32
    }
    #[inline(always)]
    fn lgamma_below<I: Isa>(x: f32) -> f32 {
        f64::lgamma_below::<I>(f64::from(x)) as f32
    }
    #[inline(always)]
    fn digamma_above<I: Isa>(x: f32) -> f32 {
        gamma_single::digamma::<I>(f64::from(x)) as f32
    }
    #[inline(always)]
    fn digamma_below<I: Isa>(x: f32) -> f32 {
        f64::digamma_below::<I>(f64::from(x)) as f32
    }
    #[inline(always)]
    fn polygamma<I: Isa>(order: f32, x: f32) -> f32 {
        f64::polygamma::<I>(f64::from(order), f64::from(x)) as f32
    }
}

impl Gamma for f64 {
    #[inline(always)]
    fn lgamma_above<I: Isa>(x: f64) -> f64 {
        // The sign of -0 is no sign here.
        lgamma_positive::<I>(x.abs())
    }
    #[inline(always)]
    fn lgamma_below<I: Isa>(x: f64) -> f64 {
        let a = x.abs();
        let y = lgamma_positive::<I>(a);
        let (sin, _) = sin_cos_pi::<I>(a - round::<I, f64>(a));
        let mirrored = log::<I, f64>(std::f64::consts::PI / (a * sin.abs())) - y;
        let mirrored = select((sin == 0.0) | (a == f64::INFINITY), f64::INFINITY, mirrored);
        // Closer to 0 than that both sides are -ln a.
        select(a >= f64::SMALL, mirrored, y)
    }
    #[inline(always)]
    fn digamma_above<I: Isa>(x: f64) -> f64 {
        digamma_positive::<I>(x.abs())
    }
    #[inline(always)]
    fn digamma_below<I: Isa>(x: f64) -> f64 {
        let a = x.abs();
        let y = digamma_positive::<I>(a);
        let (sin, cos) = sin_cos_pi::<I>(a - round::<I, f64>(a));
        let mirrored = y + 1.0 / a + std::f64::consts::PI * (cos / sin);
        let mirrored = select(sin == 0.0, f64::NAN, mirrored);
        select(a < f64::SMALL, 1.0 / a, mirrored)
    }
    #[inline(always)]
    fn polygamma<I: Isa>(order: f64, x: f64) -> f64 {
        let whole = (1.0..=170.0).contains(&order) & (floor::<I, f64>(order) == order);
        let order = select(whole, order, 1.0);
        let below = x < 0.0;
        let y = power_sum::<I>(order + 1.0, select(below, 1.0 - x, x));
        // The first slope below 0 by the reflection; where the sine is 0 there is no slope.
        let (sin, _) = sin_cos_pi::<I>(x - round::<I, f64>(x));
        let turns = std::f64::consts::PI / sin;
        let mirrored = select((order == 1.0) & (sin != 0.0), turns * turns - y, f64::NAN);
        let factorial = exp::<I, f64>(lgamma_positive::<I>(order + 1.0));
        let odd = floor::<I, f64>(order * 0.5) * 2.0 != order;
        let size = select(order == 1.0, y, y * factorial);
        let made = select(below, mirrored, select(odd, size, -size));
        select(whole, made, f64::NAN)
    }
}

/// Terms of a sum of powers that are added up one by one.
const SINGLE: i32 = 10;

/// The sum of (x + k)^-s over all k from 0 on, for whole s from 2 on and x >= 0: the first terms, and the rest by the
/// formula of Euler and Maclaurin, whose terms are small where x + k is large beside s; where it is not, the first
/// terms outweigh the rest.
#[inline(always)]
fn power_sum<I: Isa>(s: f64, x: f64) -> f64 {
    let mut sum = 0.0;
    for k in 0..SINGLE {
        sum += whole_power::<I>(1.0 / (x + f64::from(k)), s);
    }
    let a = x + f64::from(SINGLE);
    let rest = 1.0 / a;
    let power = whole_power::<I>(rest, s);
    let z = rest * rest;
    // Bernoulli numbers over factorials, the largest index first; each is multiplied by two more factors from s on.
    let mut tail = 0.0;
    let mut j = COEFFICIENTS.len();
    while j > 0 {
        j -= 1;
        let more = s + (2 * j) as f64;
        let next = z * (more + 1.0) * (more + 2.0);
        tail = COEFFICIENTS[j] + if j + 1 < COEFFICIENTS.len() { next * tail } else { 0.0 };
    }
    let edge = power * (a / (s - 1.0) + 0.5 + s * rest * tail);
    // Far out all powers are 0.
    sum + select(power > 0.0, edge, 0.0)
}

/// Bernoulli's numbers B2, B4, ... over the factorials of their indices.
const COEFFICIENTS: [f64; 8] = [
    1.0 / 12.0,
    -1.0 / 720.0,
    1.0 / 30_240.0,
    -1.0 / 1_209_600.0,
    1.0 / 47_900_160.0,
    -691.0 / 1_307_674_368_000.0,
    1.0 / 74_724_249_600.0,
    -3_617.0 / 10_670_622_842_880_000.0,
];

/// x^s for whole s below 256, by squares.
#[inline(always)]
fn whole_power<I: Isa>(x: f64, s: f64) -> f64 {
    let (mut power, mut square, mut left) = (1.0, x, s);
    for _ in 0..8 {
        let half = floor::<I, f64>(left * 0.5);
        power *= select(half * 2.0 != left, square, 1.0);
        square *= square;
        left = half;
    }
    power
}

/// sin(pi r) and cos(pi r) for |r| <= 1/2.
#[inline(always)]
fn sin_cos_pi<I: Isa>(r: f64) -> (f64, f64) {
    let t = r.abs();
    let steep = t > 0.25;
    let (s, c) = sin_cos_reduced::<I, f64>(std::f64::consts::PI * select(steep, 0.5 - t, t));
    (select(steep, c, s).copysign(r), select(steep, s, c))
}

/// d and d - 1 for x = k + d, d in [0, 1]; both exact. Only for x below 8.
#[inline(always)]
pub(super) fn fraction<I: Isa>(x: f64) -> (f64, f64) {
    let whole = floor::<I, f64>(select(x < 8.0, x, 8.0));
    (x - whole, x - (whole + 1.0))
}

/// gamma(x) / gamma(1 + d) for x = k + d from 1 to 8: the product of what the recurrence steps over.
#[inline(always)]
pub(super) fn steps_down(x: f64) -> f64 {
    let mut between = 1.0;
    // No inclusive range: the loop around would not be vectorized.
    for j in 1..7 {
        let j = f64::from(j);
        between *= select(x >= j + 1.0, x - j, 1.0);
    }
    between
}

/// digamma(x) - digamma(1 + d) for x = k + d from 1 to 8, as one fraction: a division costs more than all else. 1 / x where
/// `whole`.
#[inline(always)]
pub(super) fn parts_down(x: f64, whole: bool) -> f64 {
    let (mut over, mut under) = (0.0, 1.0);
    for j in 1..7 {
        let j = f64::from(j);
        let steps = x >= j + 1.0;
        over = select(steps, over * (x - j) + under, over);
        under = select(steps, under * (x - j), under);
    }
    select(whole, 1.0, over) / select(whole, x, under)
}

#[inline(always)]
fn lgamma_positive<I: Isa>(x: f64) -> f64 {
    let (d, d_less) = fraction::<I>(x);
    let s = d - 0.5;
    let unit = d * d_less * lgamma_unit::<I>(s);
    // gamma(x) is that of 1 + d, times what lies between; 1 / x of it below 1.
    let between = steps_down(x);
    let (least, large) = (x < 1.0, x >= 8.0);
    let ln = log::<I, f64>(select(least | large, x, between));
    let near = unit + select(least, -ln, ln);
    let rest = 1.0 / x;
    // (x - 1/2) ln x - x + ln(2 pi) / 2, with one term less to cancel.
    let far =
        (x - 0.5) * (ln - 1.0) + (0.418_938_533_204_672_7 + rest * stirling::<I>(rest * rest));
    select(large, far, near)
}

/// lgamma(1 + d) / (d (d - 1)) for s = d - 1/2, d in [0, 1].
#[inline(always)]
fn lgamma_unit<I: Isa>(s: f64) -> f64 {
    poly!(
        I,
        s,
        0.4831289505409809,
        -0.14595989591430594,
        0.06291140107456485,
        -0.03130848750105327,
        0.01679709863121395,
        -0.009425622444829649,
        0.005446457842219553,
        -0.0032120742206072908,
        0.0019229162321227923,
        -0.001164411377219605,
        0.0007115202752051298,
        -0.00043803516132580534,
        0.00027130273545114005,
        -0.0001685717945035172,
        0.00010541715222185904,
        -6.793733027397047e-05,
        4.281642862794779e-05,
        -2.148770252062576e-05,
        1.3584275459130943e-05,
        -1.8527803997032962e-05,
        1.1820969445467145e-05
    )
}

/// x (lgamma(x) - (x - 1/2) ln x + x - ln(2 pi) / 2) for z = 1 / x^2, x >= 8.
#[inline(always)]
fn stirling<I: Isa>(z: f64) -> f64 {
    poly!(
        I,
        z,
        0.08333333333333333,
        -0.002777777777773988,
        0.0007936507897524059,
        -0.0005952365845057049,
        0.0008414700852503147,
        -0.001890382993887715,
        0.005065905360156132
    )
}

/// Where digamma is 0, less 1, and what that lacks.
const ROOT: (f64, f64) = (0.46163214496836225, 9.549995429965697e-17);

#[inline(always)]
fn digamma_positive<I: Isa>(x: f64) -> f64 {
    let (d, _) = fraction::<I>(x);
    let unit = ((d - ROOT.0) - ROOT.1) * digamma_unit::<I>(d - 0.5);
    let (least, large) = (x < 1.0, x >= 8.0);
    let part = parts_down(x, least | large);
    let near = unit + select(least, -part, part);
    // There the part is 1 / x.
    let z = part * part;
    let far = log::<I, f64>(x) - (0.5 * part + z * digamma_far::<I>(z));
    select(large, far, near)
}

/// digamma(1 + d) / (1 + d - its root) for s = d - 1/2, d in [0, 1].
#[inline(always)]
fn digamma_unit<I: Isa>(s: f64) -> f64 {
    poly!(
        I,
        s,
        0.9510558760318328,
        -0.4236274212814606,
        0.24054248424078697,
        -0.14840492305388092,
        0.09498872445289039,
        -0.06192213327548831,
        0.040760833940846085,
        -0.026975796659787055,
        0.017907248317313294,
        -0.011908220105959716,
        0.007927021796868154,
        -0.005279937255532708,
        0.003518106563802472,
        -0.0023454947397380833,
        0.0015633696313653504,
        -0.0010364584817312839,
        0.0006909255761282986,
        -0.00048595039220036254,
        0.00032395945401345196,
        -0.00014480643368061614,
        9.653646261410062e-05,
        -0.0001782188548855923,
        0.00011881232908510335
    )
}

/// x^2 (ln x - 1 / (2 x) - digamma(x)) for z = 1 / x^2, x >= 8.
#[inline(always)]
fn digamma_far<I: Isa>(z: f64) -> f64 {
    poly!(
        I,
        z,
        0.08333333333333333,
        -0.008333333333278636,
        0.0039682539119537084,
        -0.0041666448230497,
        0.007571689620283902,
        -0.020697987372370493,
        0.06362150587634356
    )
}
