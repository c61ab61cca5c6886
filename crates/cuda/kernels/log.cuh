// The logarithm and what is made of it. The original: simd/float/log.rs.

namespace tn {

// e ln 2 + ln(1 + f) + c.
template <class I, class T>
TN_FN T join(T e, T f, T c) {
    T tail = I::fma(e, Real<T>::LN_2_LOW, log_poly<I>(f) + c);
    return I::fma(e, Real<T>::LN_2_HIGH, f + tail);
}

// ln x: -infinity at either zero, NaN below it.
template <class I = Fused, class T>
TN_FN T log(T x) {
    typedef Real<T> R;
    bool subnormal = x < R::TINY;
    Split<T> of = split(select(subnormal, x * R::LIFT, x));
    T y = join<I>(of.e - select(subnormal, R::LIFT_SHIFT, R::ZERO), of.m - R::ONE, R::ZERO);
    y = select(x == R::infinity(), x, y);
    y = select(x == R::ZERO, -R::infinity(), y);
    return select(x >= R::ZERO, y, R::nan());
}

// ln(1 + x), exact to the last bits near 0; -infinity at -1, NaN below.
template <class T>
TN_FN T log1p(T x) {
    typedef Real<T> R;
    T u = R::ONE + x;
    Split<T> of = split(u);
    // What 1 + x has lost, put back to first order; with e = 0 x itself is at hand.
    T lost = select(x < R::ONE, x - (u - R::ONE), R::ONE - (u - x)) / u;
    bool near = of.e == R::ZERO;
    T f = select(near, x, of.m - R::ONE);
    T y = join<Fused>(of.e, f, select(near, R::ZERO, lost));
    y = select(x == R::infinity(), x, y);
    y = select(u == R::ZERO, -R::infinity(), y);
    y = select(abs(x) < R::SMALL, x, y);
    return select(u >= R::ZERO, y, R::nan());
}

// ln(1 + e^x), which is x for large x.
template <class T>
TN_FN T softplus(T x) {
    return select(x > Real<T>::ZERO, x, Real<T>::ZERO) + log1p(exp(-abs(x)));
}

template <class T>
TN_FN T asinh(T x) {
    typedef Real<T> R;
    T a = abs(x);
    // From BIG on the sum is 2a, which may overflow: ln(2a) = ln(a) + ln 2.
    bool big = a >= R::BIG;
    T v = a + a * a / (R::ONE + sqrt(a * a + R::ONE));
    T y = log1p(select(big, a, v)) + select(big, R::LN_2, R::ZERO);
    return copysign(y, x);
}

// NaN below 1.
template <class T>
TN_FN T acosh(T x) {
    typedef Real<T> R;
    T t = x - R::ONE;
    bool big = x >= R::BIG;
    T v = t + sqrt(R::TWO * t + t * t);
    T y = log1p(select(big, x, v)) + select(big, R::LN_2, R::ZERO);
    return select(x >= R::ONE, y, R::nan());
}

// Infinite at 1 and -1, NaN beyond.
template <class T>
TN_FN T atanh(T x) {
    typedef Real<T> R;
    T a = abs(x);
    T y = R::HALF * log1p(R::TWO * a / (R::ONE - a));
    return copysign(select(a < R::SMALL, a, y), x);
}

}  // namespace tn
