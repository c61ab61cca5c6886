// The exponential and what is made of it. The original: simd/float/exp.rs.

namespace tn {

template <class T>
struct Reduced {
    T r, shifted;
};

// r and n + SHIFTER with x = r + n ln 2, |r| <= ln(2) / 2; x within the bounds of `exp`.
template <class T>
TN_FN Reduced<T> reduce(T x) {
    typedef Real<T> R;
    T shifted = fma(x, R::LOG2_E, R::SHIFTER);
    T n = shifted - R::SHIFTER;
    return {fma(n, -R::LN_2_LOW, fma(n, -R::LN_2_HIGH, x)), shifted};
}

// NaN stays NaN: each comparison with it is false.
template <class T>
TN_FN T bounded(T x) {
    typedef Real<T> R;
    x = select(x > R::EXP_HIGH, R::EXP_HIGH, x);
    return select(x < R::EXP_LOW, R::EXP_LOW, x);
}

// factor * e^r * 2^n, for `shifted` = n + SHIFTER.
template <class T>
TN_FN T raise(T r, T shifted, T factor) {
    Pair<T> power = pow2(shifted);
    T q = fma(r * r, exp_poly(r), r);
    // The factor inside saves a rounding.
    return fma(q, factor, factor) * power.low * power.high;
}

// factor * e^(x + low) for a `low` of a few bits: what a product's rounding has lost.
template <class T>
TN_FN T exp_sum(T x, T low, T factor) {
    Reduced<T> of = reduce(bounded(x));
    return raise(of.r + low, of.shifted, factor);
}

// factor * e^x. Overflows to infinity and underflows through the subnormal numbers to zero.
template <class T>
TN_FN T exp_times(T x, T factor) {
    Reduced<T> of = reduce(bounded(x));
    return raise(of.r, of.shifted, factor);
}

template <class T>
TN_FN T exp(T x) {
    return exp_times(x, Real<T>::ONE);
}

// e^x - 1, exact to the last bits near 0, where `exp(x) - 1` has none left.
template <class T>
TN_FN T expm1(T x) {
    typedef Real<T> R;
    T within = select(x > R::EXPM1_HIGH, R::EXPM1_HIGH, x);
    within = select(x < R::EXPM1_LOW, R::EXPM1_LOW, within);
    Reduced<T> of = reduce(within);
    // Half of 2^n q + (2^n - 1), for 2^n itself may overflow where the result does not.
    T scale = half_pow2(of.shifted);
    T q = fma(of.r * of.r, exp_poly(of.r), of.r);
    T half = fma(scale, q, scale - R::HALF);
    return select(abs(x) < R::SMALL, x, half + half);
}

template <class T>
TN_FN T sinh(T x) {
    typedef Real<T> R;
    T a = abs(x);
    T e = expm1(select(a < R::ONE, a, R::ONE));
    T small = R::HALF * (e + e / (e + R::ONE));
    // e^a / 2, which is finite a little longer than e^a.
    T h = exp_times(a, R::HALF);
    T large = h - R::HALF * R::HALF / h;
    T y = select(a < R::ONE, small, large);
    return copysign(select(a < R::SMALL, a, y), x);
}

template <class T>
TN_FN T cosh(T x) {
    typedef Real<T> R;
    T h = exp_times(abs(x), R::HALF);
    return h + R::HALF * R::HALF / h;
}

template <class T>
TN_FN T tanh(T x) {
    typedef Real<T> R;
    T a = abs(x);
    T z = a * a;
    T small = fma(a * z, tanh_poly(z), a);
    // 1 - 2 / (e^2a + 1), with e^2a by halved constants: a is not doubled first, and half of it is what one power of 2
    // gives. Beyond TANH_ONE the quotient is below half an ULP of 1.
    T within = select(a > R::TANH_ONE, R::TANH_ONE, a);
    T shifted = fma(within, R::TWO * R::LOG2_E, R::SHIFTER);
    T n = shifted - R::SHIFTER;
    T r = fma(n, -(R::HALF * R::LN_2_HIGH), within);
    r = fma(n, -(R::HALF * R::LN_2_LOW), r);
    T scale = half_pow2(shifted);
    T half = fma(scale, r * tanh_exp(r), scale + R::HALF);
    T large = R::ONE - quotient(R::ONE, half);
    // Where tanh passes 1/2, so that the difference loses nothing.
    return copysign(select(a < R::TANH_SPLIT, small, large), x);
}

// x / (1 + e^-t) for t = `size` + `low` with the sign of x: `size` is not negative, and `low` is a few bits that its
// rounding lost.
template <class T>
TN_FN T weighted(T x, T size, T low) {
    typedef Real<T> R;
    T within = select(size > R::PRODUCT_FAR, R::PRODUCT_FAR, size);
    Reduced<T> of = reduce(-within);
    T r = of.r - low;
    T z = raise(r, of.shifted, R::ONE);
    // x as a factor, not times z: z is subnormal, or zero, where x z is not. The bound keeps infinity times zero away.
    T a = abs(x);
    T small = raise(r, of.shifted, select(a > R::PRODUCT_FAR, R::PRODUCT_FAR, a));
    return select(x < R::ZERO, -small, x) / (R::ONE + z);
}

// x / (1 + e^-x); below 0 down to the subnormal numbers, and -0 at minus infinity.
template <class T>
TN_FN T silu(T x) {
    return weighted(x, abs(x), Real<T>::ZERO);
}

}  // namespace tn
