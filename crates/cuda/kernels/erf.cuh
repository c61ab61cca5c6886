// The complement of the error function. The original: simd/float/erf.rs. The function itself is in sigmoid.cuh.

namespace tn {

// erfc(a) for a >= 1, down to the subnormal numbers.
template <class T>
TN_FN T erfc_tail(T a) {
    typedef Real<T> R;
    // Far out the result is 0; the bound keeps infinities out of the quotients.
    a = select(a > R::ERFC_ZERO, R::ERFC_ZERO, a);
    T t = quotient(a - R::ERFC_CENTRE, a + R::ERFC_CENTRE);
    // e^(-a^2) with the square in two parts: its rounding error would be magnified by a^2.
    T high = upper(a);
    T low = -((a - high) * (a + high));
    return exp_sum(-(high * high), low, quotient(erfc_poly(t), a));
}

// 1 - erf x, with relative precision far out on the positive side.
template <class T>
TN_FN T erfc(T x) {
    typedef Real<T> R;
    T a = abs(x);
    // 1 - x is exact from 1/2 to 1, where 1 - erf x would lose two bits.
    T near = fma(-x, erf_poly(x * x), R::ONE - x);
    T far = erfc_tail(a);
    far = select(x < R::ZERO, R::TWO - far, far);
    return select(a < R::ONE, near, far);
}

}  // namespace tn
