// Powers. The original: simd/float/pow.rs.

namespace tn {

// The sign and the special cases of x^y, given `size` = |x|^y for ordinary arguments.
template <class T>
TN_FN T finish_pow(T x, T y, T size) {
    typedef Real<T> R;
    T a = abs(x);
    T half = R::HALF * y;
    bool integral = floor(y) == y;
    bool odd = integral & (floor(half) != half);
    size = select(a == R::ONE, R::ONE, size);
    // Infinite y: |x| = 1 is done, and otherwise the logarithm's sign has decided already.
    T with_sign = select(odd, copysign(size, x), size);
    T out = select((x < R::ZERO) & !integral & (a != R::infinity()), R::nan(), with_sign);
    out = select(is_nan(x) | is_nan(y), R::nan(), out);
    return select((y == R::ZERO) | (x == R::ONE), R::ONE, out);
}

TN_FN f32 pow(f32 x, f32 y) {
    // e^(y ln |x|) in f64 has bits to spare: the result is all but correctly rounded.
    f32 size = (f32)exp((f64)y * log((f64)abs(x)));
    return finish_pow(x, y, size);
}

// a * b as a sum of two numbers.
TN_FN Pair<f64> product(f64 a, f64 b) {
    f64 p = a * b;
    return {p, fma(a, b, -p)};
}

// a + b as a sum of two numbers, |a| >= |b|.
TN_FN Pair<f64> sum(f64 a, f64 b) {
    f64 s = a + b;
    return {s, b - (s - a)};
}

// ln x as a sum of two numbers, to about 2^-65 of its value: y ln x is as large as 709, and ten bits more than a float has
// are what keeps its power right to the last.
TN_FN Pair<f64> log_double(f64 x) {
    typedef Real<f64> R;
    bool subnormal = x < R::TINY;
    Split<f64> of = split(select(subnormal, x * R::LIFT, x));
    f64 e = of.e - select(subnormal, R::LIFT_SHIFT, 0.0);
    // s = f / (2 + f); ln m = 2 s + 2/3 s^3 + s^5 (...), the first two terms in two numbers.
    f64 f = of.m - 1.0;
    Pair<f64> u = sum(2.0, f);
    f64 s = f / u.high;
    Pair<f64> p = product(s, u.high);
    f64 s_low = ((f - p.high) - p.low - s * u.low) / u.high;
    Pair<f64> z = product(s, s);
    z.low = z.low + 2.0 * s * s_low;
    f64 tail = poly(
        z.high, 0.4, 0.28571428571429364, 0.2222222222165623, 0.18181818335314717, 0.15384594970861956,
        0.1333480424004764, 0.11706248492119405, 0.1172305153847758);
    const f64 third = 0.6666666666666666, third_low = 3.700743415417188e-17;
    Pair<f64> c = sum(third, z.high * tail);
    c.low = c.low + third_low;
    Pair<f64> sz = product(s, z.high);
    sz.low = sz.low + s * z.low + s_low * z.high;
    Pair<f64> t = product(sz.high, c.high);
    t.low = t.low + sz.high * c.low + sz.low * c.high;
    Pair<f64> h = sum(2.0 * s, t.high);
    h.low = h.low + t.low + 2.0 * s_low;
    // e times the high part is exact: its last 21 bits are zero.
    Pair<f64> out = sum(e * R::LN_2_HIGH, h.high);
    bool alone = e == 0.0;
    f64 high = select(alone, h.high, out.high);
    f64 low = select(alone, 0.0, out.low) + h.low + e * R::LN_2_LOW;
    return sum(high, low);
}

TN_FN f64 pow(f64 x, f64 y) {
    typedef Real<f64> R;
    f64 a = abs(x);
    Pair<f64> l = log_double(a);
    // At the ends there is a limit and no digits to care for.
    bool edge = (a == 0.0) | (a == R::infinity());
    l.high = select(edge, select(a == 0.0, -R::infinity(), R::infinity()), l.high);
    Pair<f64> p = product(y, l.high);
    f64 low = p.low + y * l.low;
    bool ordinary = !edge & (abs(p.high) < R::EXP_HIGH + 36.0);
    f64 size = exp_sum(p.high, select(ordinary, low, 0.0), 1.0);
    return finish_pow(x, y, size);
}

}  // namespace tn
