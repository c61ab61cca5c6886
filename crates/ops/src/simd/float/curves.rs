//! The polynomials, of the degree that each float needs.
//!
//! They interpolate at Chebyshev nodes of the interval named, which costs no more than a quarter
//! ULP against the best polynomial of that degree.

use super::real::Real;
use crate::simd::Isa;

/// `c0 + x (c1 + x (c2 + ...))`, unrolled where it is written.
macro_rules! poly {
    ($I:ty, $x:expr, $c:expr) => { $c };
    ($I:ty, $x:expr, $c:expr, $($rest:expr),+) => {
        $x.fma::<$I>(poly!($I, $x, $($rest),+), $c)
    };
}

/// Polynomials on small intervals, for the functions beside this file to build on.
pub trait Curves: Sized {
    /// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2.
    fn exp_poly<I: Isa>(r: Self) -> Self;
    /// ln(1 + f) - f for 1 + f in [sqrt(1/2), sqrt(2)).
    fn log_poly<I: Isa>(f: Self) -> Self;
    /// (sin(r) / r - 1) / z for z = r^2, |r| <= pi / 4.
    fn sin_poly<I: Isa>(z: Self) -> Self;
    /// (cos(r) - 1 + z / 2) / z^2 for z = r^2, |r| <= pi / 4.
    fn cos_poly<I: Isa>(z: Self) -> Self;
    /// (tanh(r) / r - 1) / z for z = r^2, |r| <= 5/8.
    fn tanh_poly<I: Isa>(z: Self) -> Self;

    /// (atan(q) / q - 1) / z for z = q^2, |q| <= tan(pi/8).
    fn atan_poly<I: Isa>(z: Self) -> Self;
    /// (asin(s) / s - 1) / z for z = s^2, |s| <= 1/2.
    fn asin_poly<I: Isa>(z: Self) -> Self;
    /// erf(x) / x - 1 for z = x^2, |x| <= 1/2.
    fn erf_poly<I: Isa>(z: Self) -> Self;
    /// erfc(x) e^(x^2) (1 + 2x) for t = (x - ERFC_CENTRE) / (x + ERFC_CENTRE), x >= 1/2.
    fn erfc_poly<I: Isa>(t: Self) -> Self;
    /// Where `erfc_poly` has its 0.
    const ERFC_CENTRE: Self;
}

impl Curves for f32 {
    #[inline(always)]
    fn exp_poly<I: Isa>(r: f32) -> f32 {
        poly!(I, r, 0.5, 0.16666667, 0.041666463, 0.0083333105, 0.0013933686, 0.0001989103)
    }
    #[inline(always)]
    fn log_poly<I: Isa>(f: f32) -> f32 {
        let z = f * f;
        let p = poly!(
            I,
            f,
            0.3333333,
            -0.24999997,
            0.20000716,
            -0.16667803,
            0.14249058,
            -0.12425687,
            0.116854206,
            -0.114797354,
            0.069716126
        );
        z * (f.fma::<I>(p, -0.5))
    }
    #[inline(always)]
    fn sin_poly<I: Isa>(z: f32) -> f32 {
        poly!(I, z, -0.16666667, 0.008333332, -0.00019840086, 2.7249864e-6)
    }
    #[inline(always)]
    fn cos_poly<I: Isa>(z: f32) -> f32 {
        poly!(I, z, 0.041666664, -0.0013888302, 2.4547891e-5)
    }
    #[inline(always)]
    fn tanh_poly<I: Isa>(z: f32) -> f32 {
        poly!(I, z, -0.33333334, 0.13333304, -0.053959258, 0.021768918, -0.008343945, 0.0022927448)
    }
    #[inline(always)]
    fn atan_poly<I: Isa>(z: f32) -> f32 {
        poly!(I, z, -0.3333333, 0.1999954, -0.14263956, 0.10743731, -0.06451928)
    }
    #[inline(always)]
    fn asin_poly<I: Isa>(z: f32) -> f32 {
        poly!(I, z, 0.16666666, 0.07500094, 0.044599403, 0.031100664, 0.017149232, 0.03369086)
    }
    #[inline(always)]
    fn erf_poly<I: Isa>(z: f32) -> f32 {
        poly!(I, z, 0.12837917, -0.37612608, 0.112828314, -0.026757732, 0.0047190827)
    }
    #[inline(always)]
    fn erfc_poly<I: Isa>(t: f32) -> f32 {
        poly!(
            I,
            t,
            1.2769784,
            -0.09276378,
            -0.1660309,
            0.16404943,
            -0.05421019,
            -0.008012014,
            0.008654272,
            0.0011681333,
            -0.0012586409,
            -0.00025033043
        )
    }
    const ERFC_CENTRE: f32 = 2.0;
}

impl Curves for f64 {
    #[inline(always)]
    fn exp_poly<I: Isa>(r: f64) -> f64 {
        poly!(
            I,
            r,
            0.5,
            0.1666666666666667,
            0.04166666666666667,
            0.008333333333326112,
            0.001388888888888373,
            0.0001984126987490126,
            2.4801587325605324e-5,
            2.7557255297969643e-6,
            2.755727357010214e-7,
            2.5105259538448494e-8,
            2.0914717341716378e-9
        )
    }
    #[inline(always)]
    fn log_poly<I: Isa>(f: f64) -> f64 {
        // ln(1 + f) = 2 artanh(s): half the terms of a polynomial in f, for one division.
        let s = f / (2.0 + f);
        let z = s * s;
        let half = 0.5 * f * f;
        let w = z * poly!(
            I,
            z,
            0.666666666666667,
            0.39999999999899505,
            0.285714286259756,
            0.22222211134776942,
            0.18182889126583235,
            0.15331721556629094,
            0.14616450227999722
        );
        s.fma::<I>(half + w, -half)
    }
    #[inline(always)]
    fn sin_poly<I: Isa>(z: f64) -> f64 {
        poly!(
            I,
            z,
            -0.16666666666666666,
            0.008333333333333331,
            -0.0001984126984126506,
            2.7557319219335453e-6,
            -2.5052106231157904e-8,
            1.605853141458901e-10,
            -7.586685070091267e-13
        )
    }
    #[inline(always)]
    fn cos_poly<I: Isa>(z: f64) -> f64 {
        poly!(
            I,
            z,
            0.041666666666666664,
            -0.0013888888888887395,
            2.4801587298763433e-5,
            -2.7557317270560326e-7,
            2.0876146024689747e-9,
            -1.1382614868556325e-11
        )
    }
    #[inline(always)]
    fn tanh_poly<I: Isa>(z: f64) -> f64 {
        poly!(
            I,
            z,
            -0.3333333333333333,
            0.13333333333333042,
            -0.05396825396789699,
            0.021869488519008305,
            -0.008863235103240878,
            0.0035921217511549622,
            -0.0014557754120478055,
            0.0005896606577757043,
            -0.0002375906496055562,
            9.257116129556769e-5,
            -3.12011014257974e-5,
            6.485163482793113e-6
        )
    }
    #[inline(always)]
    fn atan_poly<I: Isa>(z: f64) -> f64 {
        poly!(
            I,
            z,
            -0.3333333333333333,
            0.19999999999999804,
            -0.14285714285659828,
            0.11111111105155437,
            -0.09090908753500393,
            0.07692296375018166,
            -0.06666424885487231,
            0.05878928994948492,
            -0.052304542493924897,
            0.04551593123658399,
            -0.03457055948759698,
            0.01628575409147857
        )
    }
    #[inline(always)]
    fn asin_poly<I: Isa>(z: f64) -> f64 {
        poly!(
            I,
            z,
            0.16666666666666669,
            0.07499999999998433,
            0.04464285714635545,
            0.030381944138529803,
            0.022372172942209625,
            0.017352392719417624,
            0.01397121299584485,
            0.01147917719077423,
            0.010322815852320064,
            0.005457500096744011,
            0.017400897906395946,
            -0.01485191657576524,
            0.0287578719503479
        )
    }
    #[inline(always)]
    fn erf_poly<I: Isa>(z: f64) -> f64 {
        poly!(
            I,
            z,
            0.1283791670955126,
            -0.3761263890318375,
            0.1128379167095487,
            -0.02686617064499972,
            0.0052239776220169365,
            -0.0008548326510724796,
            0.00012055286202005714,
            -1.4923003368152099e-05,
            1.637123442577e-06,
            -1.462091340945175e-07
        )
    }
    #[inline(always)]
    fn erfc_poly<I: Isa>(t: f64) -> f64 {
        poly!(
            I,
            t,
            1.2530080582697296,
            -0.13562110612458084,
            -0.04756229435343384,
            0.12964515870271817,
            -0.11927366341637591,
            0.06830802734557402,
            -0.023770514892453878,
            0.002529391787416037,
            0.0018886900308933137,
            -0.0007798319787670749,
            -0.00010515741491655,
            0.00012509749095168397,
            4.9387975342434404e-06,
            -2.00929833045886e-05,
            -7.012462973163499e-07,
            3.4525197016153044e-06,
            3.0307407103093377e-07,
            -5.840747551910045e-07,
            -8.42551957399924e-08,
            7.124245030572795e-08,
            8.635681414307825e-09
        )
    }
    const ERFC_CENTRE: f64 = 3.0;
}

pub(super) use poly;
