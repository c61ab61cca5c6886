// Inverse trigonometric functions, and the angle and length of a pair. The original: simd/float/inverse.rs.

namespace tn {

// asin(s) for z = s^2, s <= 1/2.
template <class T>
TN_FN T asin_reduced(T s, T z) {
    return fma(s * z, asin_poly(z), s);
}

// NaN beyond 1.
template <class T>
TN_FN T asin(T x) {
    typedef Real<T> R;
    T a = abs(x);
    // Near 1, from the half angle: asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)).
    bool near = a <= R::HALF;
    T z = select(near, a * a, R::HALF * (R::ONE - a));
    T p = asin_reduced(select(near, a, sqrt(z)), z);
    T y = select(near, p, R::FRAC_PI_2 - (p + p - R::FRAC_PI_2_LOW));
    return copysign(y, x);
}

// NaN beyond 1.
template <class T>
TN_FN T acos(T x) {
    typedef Real<T> R;
    T a = abs(x);
    bool near = a <= R::HALF;
    T z = select(near, a * a, R::HALF * (R::ONE - a));
    T p = asin_reduced(select(near, x, sqrt(z)), z);
    T twice = p + p;
    T low = R::FRAC_PI_2_LOW;
    T far = select(x < R::ZERO, R::PI - (twice - (low + low)), twice);
    return select(near, R::FRAC_PI_2 - (p - low), far);
}

// atan(q) for 0 <= q <= 1.
template <class T>
TN_FN T atan_unit(T q) {
    typedef Real<T> R;
    // tan(pi/8), as sqrt(2) - 1, to a few bits: where it lies exactly does not matter.
    bool steep = q > R::TAN_PI_8;
    T t = select(steep, (q - R::ONE) / (q + R::ONE), q);
    T z = t * t;
    T y = fma(t * z, atan_poly(z), t);
    return select(steep, R::FRAC_PI_4 + (y + R::HALF * R::FRAC_PI_2_LOW), y);
}

template <class T>
TN_FN T atan(T x) {
    typedef Real<T> R;
    T a = abs(x);
    bool large = a > R::ONE;
    T y = atan_unit(select(large, R::ONE / a, a));
    return copysign(select(large, R::FRAC_PI_2 - (y - R::FRAC_PI_2_LOW), y), x);
}

// The angle of the point (x, y), from -pi to pi.
template <class T>
TN_FN T atan2(T y, T x) {
    typedef Real<T> R;
    T a = abs(y), b = abs(x);
    bool swap = a > b;
    T quotient = select(swap, b, a) / select(swap, a, b);
    // 0/0 lies on the axis; infinity over infinity on the diagonal.
    quotient = select((a == R::ZERO) & (b == R::ZERO), R::ZERO, quotient);
    quotient = select((a == R::infinity()) & (b == R::infinity()), R::ONE, quotient);
    T low = R::FRAC_PI_2_LOW;
    T r = atan_unit(quotient);
    r = select(swap, R::FRAC_PI_2 - (r - low), r);
    // The sign of x counts also for -0.
    bool left = copysign(R::ONE, x) < R::ZERO;
    r = select(left, R::PI - (r - (low + low)), r);
    return select(is_nan(x) | is_nan(y), R::nan(), copysign(r, y));
}

// sqrt(x^2 + y^2) without overflow on the way; infinite where either is.
template <class T>
TN_FN T hypot(T x, T y) {
    typedef Real<T> R;
    T a = abs(x), b = abs(y);
    T least = select(a < b, a, b), most = select(a < b, b, a);
    T q = least / most;
    T h = most * sqrt(q * q + R::ONE);
    h = select(most == R::ZERO, R::ZERO, h);
    h = select(is_nan(x) | is_nan(y), R::nan(), h);
    return select((a == R::infinity()) | (b == R::infinity()), R::infinity(), h);
}

}  // namespace tn
