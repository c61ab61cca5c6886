// The logarithm of the gamma function, and its slopes. The original: simd/float/gamma.rs and gamma_single.rs.
//
// From 0 to 8 the argument is taken down to [1, 2] by the recurrence, where a polynomial has the zeros as factors; from 8 on
// stands Stirling's series, and below 0 the reflection. f32 goes through f64, above 0 with shorter polynomials.

namespace tn {

// lgamma(1 + d) / (d (d - 1)) for s = d - 1/2, d in [0, 1].
TN_FN f64 lgamma_unit(f64 s) {
    return poly(
        s, 0.4831289505409809, -0.14595989591430594, 0.06291140107456485, -0.03130848750105327, 0.01679709863121395,
        -0.009425622444829649, 0.005446457842219553, -0.0032120742206072908, 0.0019229162321227923,
        -0.001164411377219605, 0.0007115202752051298, -0.00043803516132580534, 0.00027130273545114005,
        -0.0001685717945035172, 0.00010541715222185904, -6.793733027397047e-05, 4.281642862794779e-05,
        -2.148770252062576e-05, 1.3584275459130943e-05, -1.8527803997032962e-05, 1.1820969445467145e-05);
}

// x (lgamma(x) - (x - 1/2) ln x + x - ln(2 pi) / 2) for z = 1 / x^2, x >= 8.
TN_FN f64 stirling(f64 z) {
    return poly(
        z, 0.08333333333333333, -0.002777777777773988, 0.0007936507897524059, -0.0005952365845057049,
        0.0008414700852503147, -0.001890382993887715, 0.005065905360156132);
}

// digamma(1 + d) / (1 + d - its root) for s = d - 1/2, d in [0, 1].
TN_FN f64 digamma_unit(f64 s) {
    return poly(
        s, 0.9510558760318328, -0.4236274212814606, 0.24054248424078697, -0.14840492305388092, 0.09498872445289039,
        -0.06192213327548831, 0.040760833940846085, -0.026975796659787055, 0.017907248317313294,
        -0.011908220105959716, 0.007927021796868154, -0.005279937255532708, 0.003518106563802472,
        -0.0023454947397380833, 0.0015633696313653504, -0.0010364584817312839, 0.0006909255761282986,
        -0.00048595039220036254, 0.00032395945401345196, -0.00014480643368061614, 9.653646261410062e-05,
        -0.0001782188548855923, 0.00011881232908510335);
}

// x^2 (ln x - 1 / (2 x) - digamma(x)) for z = 1 / x^2, x >= 8.
TN_FN f64 digamma_far(f64 z) {
    return poly(
        z, 0.08333333333333333, -0.008333333333278636, 0.0039682539119537084, -0.0041666448230497,
        0.007571689620283902, -0.020697987372370493, 0.06362150587634356);
}

// sin(pi r) and cos(pi r) for |r| <= 1/2.
TN_FN SinCos<f64> sin_cos_pi(f64 r) {
    f64 t = abs(r);
    bool steep = t > 0.25;
    SinCos<f64> at = sin_cos_reduced(Real<f64>::PI * select(steep, 0.5 - t, t));
    return {copysign(select(steep, at.cos, at.sin), r), select(steep, at.sin, at.cos)};
}

// d and d - 1 for x = k + d, d in [0, 1]; both exact. Only for x below 8.
struct Fraction {
    f64 d, d_less;
};

TN_FN Fraction fraction(f64 x) {
    f64 whole = floor(select(x < 8.0, x, 8.0));
    return {x - whole, x - (whole + 1.0)};
}

// gamma(x) / gamma(1 + d) for x = k + d from 1 to 8: the product of what the recurrence steps over.
TN_FN f64 steps_down(f64 x) {
    f64 between = 1.0;
    for (i32 k = 1; k < 7; k++) {
        f64 j = k;
        between *= select(x >= j + 1.0, x - j, 1.0);
    }
    return between;
}

// digamma(x) - digamma(1 + d) for x = k + d from 1 to 8, as one fraction. 1 / x where `whole`.
TN_FN f64 parts_down(f64 x, bool whole) {
    f64 over = 0.0, under = 1.0;
    for (i32 k = 1; k < 7; k++) {
        f64 j = k;
        bool steps = x >= j + 1.0;
        over = select(steps, over * (x - j) + under, over);
        under = select(steps, under * (x - j), under);
    }
    return select(whole, 1.0, over) / select(whole, x, under);
}

TN_FN f64 lgamma_positive(f64 x) {
    Fraction of = fraction(x);
    f64 unit = of.d * of.d_less * lgamma_unit(of.d - 0.5);
    // gamma(x) is that of 1 + d, times what lies between; 1 / x of it below 1.
    f64 between = steps_down(x);
    bool least = x < 1.0, large = x >= 8.0;
    f64 ln = log(select(least | large, x, between));
    f64 near = unit + select(least, -ln, ln);
    f64 rest = 1.0 / x;
    // (x - 1/2) ln x - x + ln(2 pi) / 2, with one term less to cancel.
    f64 far = (x - 0.5) * (ln - 1.0) + (0.4189385332046727 + rest * stirling(rest * rest));
    return select(large, far, near);
}

TN_FN f64 digamma_positive(f64 x) {
    f64 d = fraction(x).d;
    // Where digamma is 0, less 1, and what that lacks.
    f64 unit = ((d - 0.46163214496836225) - 9.549995429965697e-17) * digamma_unit(d - 0.5);
    bool least = x < 1.0, large = x >= 8.0;
    f64 part = parts_down(x, least | large);
    f64 near = unit + select(least, -part, part);
    // There the part is 1 / x.
    f64 z = part * part;
    f64 far = log(x) - (0.5 * part + z * digamma_far(z));
    return select(large, far, near);
}

// For x below 0: infinite at the integers and at minus infinity.
TN_FN f64 lgamma_below(f64 x) {
    typedef Real<f64> R;
    f64 a = abs(x);
    f64 y = lgamma_positive(a);
    f64 sin = sin_cos_pi(a - round(a)).sin;
    f64 mirrored = log(R::PI / (a * abs(sin))) - y;
    mirrored = select((sin == 0.0) | (a == R::infinity()), R::infinity(), mirrored);
    // Closer to 0 than that both sides are -ln a.
    return select(a >= R::SMALL, mirrored, y);
}

// For x below 0: NaN at the integers and at minus infinity.
TN_FN f64 digamma_below(f64 x) {
    typedef Real<f64> R;
    f64 a = abs(x);
    f64 y = digamma_positive(a);
    SinCos<f64> at = sin_cos_pi(a - round(a));
    f64 mirrored = y + 1.0 / a + R::PI * (at.cos / at.sin);
    mirrored = select(at.sin == 0.0, R::nan(), mirrored);
    return select(a < R::SMALL, 1.0 / a, mirrored);
}

// (ln(1 + f) - f) / f^2 for 1 + f in [sqrt(1/2), sqrt(2)).
TN_FN f64 single_log_rest(f64 f) {
    return poly(
        f, -0.5000000000445634, 0.33333333619653827, -0.24999997692993609, 0.19999941130866822, -0.16666823826926574,
        0.14289164800185855, -0.1249823881958088, 0.11028403306854524, -0.0993614137651327, 0.09923879802924102,
        -0.09771449356382762, 0.053931296078182256);
}

// lgamma(1 + d) / (d (d - 1)) for s = d - 1/2, d in [0, 1].
TN_FN f64 single_lgamma_unit(f64 s) {
    return poly(
        s, 0.48312895049714205, -0.1459598958869427, 0.06291141368299658, -0.03130849537087994, 0.016796514370089517,
        -0.009425257787561038, 0.005456284864522071, -0.0032182068080868612, 0.0018491879253835115,
        -0.0011184132096307986, 0.0009585090935483713, -0.0005920239037255214);
}

// digamma(1 + d) / (1 + d - its root) for s = d - 1/2, d in [0, 1].
TN_FN f64 single_digamma_unit(f64 s) {
    return poly(
        s, 0.9510558754378758, -0.42362742088558825, 0.240542655036541, -0.14840503688922396, 0.09498081754904339,
        -0.06191686333003683, 0.0408935606644924, -0.027064258800657295, 0.016915223738038547, -0.011247037333869003,
        0.01122315637643749, -0.007476843099039942);
}

// ln x from 0 on, without subnormal numbers: f32 has none of those that f64 has.
TN_FN f64 single_log(f64 x) {
    typedef Real<f64> R;
    Split<f64> of = split(x);
    f64 f = of.m - 1.0;
    f64 y = fma(of.e, R::LN_2, fma(f * f, single_log_rest(f), f));
    y = select(x == R::infinity(), x, y);
    y = select(x == 0.0, -R::infinity(), y);
    return select(x >= 0.0, y, R::nan());
}

// ln gamma(x) for the numbers from 0 on that f32 has.
TN_FN f64 single_lgamma(f64 x) {
    x = abs(x);
    Fraction of = fraction(x);
    f64 unit = of.d * of.d_less * single_lgamma_unit(of.d - 0.5);
    bool least = x < 1.0, large = x >= 8.0;
    f64 ln = single_log(select(least | large, x, steps_down(x)));
    f64 near = unit + select(least, -ln, ln);
    f64 rest = 1.0 / x;
    // The first terms of Stirling's series: from 8 on the next is below 3e-10.
    f64 series = poly(rest * rest, 1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0);
    f64 far = (x - 0.5) * (ln - 1.0) + (0.4189385332046727 + rest * series);
    return select(large, far, near);
}

// The slope of that.
TN_FN f64 single_digamma(f64 x) {
    x = abs(x);
    f64 d = fraction(x).d;
    f64 unit = (d - 0.4616321449683623) * single_digamma_unit(d - 0.5);
    bool least = x < 1.0, large = x >= 8.0;
    f64 part = parts_down(x, least | large);
    f64 near = unit + select(least, -part, part);
    f64 z = part * part;
    f64 series = poly(z, 1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0);
    f64 far = single_log(x) - (0.5 * part + z * series);
    return select(large, far, near);
}

TN_FN f64 lgamma(f64 x) { return x < 0.0 ? lgamma_below(x) : lgamma_positive(abs(x)); }
TN_FN f32 lgamma(f32 x) { return (f32)(x < 0.0f ? lgamma_below(x) : single_lgamma(x)); }
TN_FN f64 digamma(f64 x) { return x < 0.0 ? digamma_below(x) : digamma_positive(abs(x)); }
TN_FN f32 digamma(f32 x) { return (f32)(x < 0.0f ? digamma_below(x) : single_digamma(x)); }

// x^s for whole s below 256, by squares.
TN_FN f64 whole_power(f64 x, f64 s) {
    f64 power = 1.0, square = x, left = s;
    for (i32 i = 0; i < 8; i++) {
        f64 half = floor(left * 0.5);
        power *= select(half * 2.0 != left, square, 1.0);
        square *= square;
        left = half;
    }
    return power;
}

// One more term of the formula of Euler and Maclaurin: two more factors from s on, and a Bernoulli number over the factorial
// of its index, 2 j + 2.
TN_FN f64 maclaurin(f64 z, f64 s, f64 j, f64 coefficient, f64 tail) {
    f64 more = s + 2.0 * j;
    return coefficient + z * (more + 1.0) * (more + 2.0) * tail;
}

// The sum of (x + k)^-s over all k from 0 on, for whole s from 2 on and x >= 0: the first terms, and the rest by that
// formula, whose terms are small where x + k is large beside s; where it is not, the first terms outweigh the rest.
TN_FN f64 power_sum(f64 s, f64 x) {
    f64 sum = 0.0;
    for (i32 k = 0; k < 10; k++) {
        sum += whole_power(1.0 / (x + (f64)k), s);
    }
    f64 a = x + 10.0;
    f64 rest = 1.0 / a;
    f64 power = whole_power(rest, s);
    f64 z = rest * rest;
    f64 tail = -3617.0 / 10670622842880000.0;
    tail = maclaurin(z, s, 6.0, 1.0 / 74724249600.0, tail);
    tail = maclaurin(z, s, 5.0, -691.0 / 1307674368000.0, tail);
    tail = maclaurin(z, s, 4.0, 1.0 / 47900160.0, tail);
    tail = maclaurin(z, s, 3.0, -1.0 / 1209600.0, tail);
    tail = maclaurin(z, s, 2.0, 1.0 / 30240.0, tail);
    tail = maclaurin(z, s, 1.0, -1.0 / 720.0, tail);
    tail = maclaurin(z, s, 0.0, 1.0 / 12.0, tail);
    f64 edge = power * (a / (s - 1.0) + 0.5 + s * rest * tail);
    // Far out all powers are 0.
    return sum + select(power > 0.0, edge, 0.0);
}

// The slope of `digamma` of that order, a whole number from 1 to 170: infinite at 0; NaN below 0 from order 2 on, and for
// any other order.
TN_FN f64 polygamma(f64 order, f64 x) {
    typedef Real<f64> R;
    bool whole = (order >= 1.0) & (order <= 170.0) & (floor(order) == order);
    order = select(whole, order, 1.0);
    bool below = x < 0.0;
    f64 y = power_sum(order + 1.0, select(below, 1.0 - x, x));
    // The first slope below 0 by the reflection; where the sine is 0 there is no slope.
    f64 sin = sin_cos_pi(x - round(x)).sin;
    f64 turns = R::PI / sin;
    f64 mirrored = select((order == 1.0) & (sin != 0.0), turns * turns - y, R::nan());
    f64 factorial = exp(lgamma_positive(order + 1.0));
    bool odd = floor(order * 0.5) * 2.0 != order;
    f64 size = select(order == 1.0, y, y * factorial);
    f64 made = select(below, mirrored, select(odd, size, -size));
    return select(whole, made, R::nan());
}

TN_FN f32 polygamma(f32 order, f32 x) { return (f32)polygamma((f64)order, (f64)x); }

}  // namespace tn
