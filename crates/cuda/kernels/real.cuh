// What f32 and f64 have in common: constants and bit layouts. The original: simd/float/real.rs and constants.rs.

namespace tn {

template <class T, class B, int M>
struct Layout {
    typedef B Bits;
    static constexpr int MANTISSA = M;
    static constexpr B BIAS = ((B)1 << (8 * sizeof(B) - 2 - M)) - 1;
    static constexpr T ZERO = 0;
    static constexpr T HALF = (T)0.5;
    static constexpr T ONE = 1;
    static constexpr T TWO = 2;
    // artanh(1/2), about.
    static constexpr T TANH_SPLIT = (T)0.55;
    // 2 to the number of mantissa bits: from here on every number is integral.
    static constexpr T INTEGRAL = (T)((B)1 << M);
    // 1.5 * INTEGRAL: adding it leaves the nearest integer in the low bits.
    static constexpr T MAGIC = (T)((B)3 << (M - 1));
    // MAGIC plus twice the exponent's bias: adding it to n leaves in the low bits what `pow2` needs.
    static constexpr T SHIFTER = MAGIC + (T)(2 * BIAS);
    // Below this a function with f(x) = x + O(x^2) gives x.
    static constexpr T SMALL = (T)0.25 / INTEGRAL;
    // 2^p with p above the mantissa's bits, and p: makes subnormal numbers normal.
    static constexpr T LIFT = (T)((B)1 << (M + 2));
    static constexpr T LIFT_SHIFT = (T)(M + 2);
    // Up to here `quadrant` takes quarter turns off.
    static constexpr T TRIG_FAST = (T)1000000.0;
};

template <class T>
struct Real;

template <>
struct Real<f32> : Layout<f32, u32, 23> {
    static constexpr u32 SQRT_HALF = 0x3f3504f3u;
    static constexpr f32 LN_2 = 0.693147180559945309417f;
    static constexpr f32 LOG2_E = 1.44269504088896340736f;
    static constexpr f32 PI = 3.14159265358979323846f;
    static constexpr f32 FRAC_PI_2 = 1.57079632679489661923f;
    static constexpr f32 FRAC_PI_4 = 0.785398163397448309616f;
    static constexpr f32 TAN_PI_8 = 1.41421356237309504880f - 1.0f;
    // What FRAC_PI_2 lacks to pi/2.
    static constexpr f32 FRAC_PI_2_LOW = -4.371139e-8f;
    // The smallest normal number.
    static constexpr f32 TINY = 1.17549435e-38f;
    // From here on x^2 + 1 is x^2.
    static constexpr f32 BIG = 16777216.0f;
    // ln 2 with trailing zeros, so that a small integer times it is exact, and the rest.
    static constexpr f32 LN_2_HIGH = 0.69314575f;
    static constexpr f32 LN_2_LOW = 1.4286068e-6f;
    // Beyond these exp overflows, or is zero.
    static constexpr f32 EXP_HIGH = 90.0f;
    static constexpr f32 EXP_LOW = -104.0f;
    // Beyond these expm1 overflows, or is -1.
    static constexpr f32 EXPM1_HIGH = 89.0f;
    static constexpr f32 EXPM1_LOW = -20.0f;
    // Beyond this tanh is 1.
    static constexpr f32 TANH_ONE = 9.5f;
    // From here on erfc is 0.
    static constexpr f32 ERFC_ZERO = 10.1f;
    static constexpr f32 ERFC_CENTRE = 3.0f;
    // From here on x e^-x is 0.
    static constexpr f32 PRODUCT_FAR = 110.0f;
    // Beyond this gelu by a hyperbolic tangent is x, or 0.
    static constexpr f32 GELU_TANH_FAR = 11.5f;
    static TN_FN f32 infinity() { return from_bits(0x7f800000u); }
    static TN_FN f32 nan() { return from_bits(0x7fc00000u); }
};

template <>
struct Real<f64> : Layout<f64, u64, 52> {
    static constexpr u64 SQRT_HALF = 0x3fe6a09e667f3bcdull;
    static constexpr f64 LN_2 = 0.693147180559945309417;
    static constexpr f64 LOG2_E = 1.44269504088896340736;
    static constexpr f64 PI = 3.14159265358979323846;
    static constexpr f64 FRAC_2_PI = 0.636619772367581343076;
    static constexpr f64 FRAC_PI_2 = 1.57079632679489661923;
    static constexpr f64 FRAC_PI_4 = 0.785398163397448309616;
    static constexpr f64 FRAC_1_SQRT_2 = 0.707106781186547524401;
    static constexpr f64 TAN_PI_8 = 1.41421356237309504880 - 1.0;
    static constexpr f64 FRAC_PI_2_LOW = 6.123233995736766e-17;
    static constexpr f64 TINY = 2.2250738585072014e-308;
    static constexpr f64 BIG = 9007199254740992.0;
    static constexpr f64 LN_2_HIGH = 0.6931471803691238;
    static constexpr f64 LN_2_LOW = 1.9082149292705877e-10;
    static constexpr f64 EXP_HIGH = 711.0;
    static constexpr f64 EXP_LOW = -746.0;
    static constexpr f64 EXPM1_HIGH = 710.0;
    static constexpr f64 EXPM1_LOW = -40.0;
    static constexpr f64 TANH_ONE = 20.0;
    static constexpr f64 ERFC_ZERO = 27.3;
    static constexpr f64 ERFC_CENTRE = 4.0;
    static constexpr f64 PRODUCT_FAR = 755.0;
    static constexpr f64 GELU_TANH_FAR = 22.0;
    static TN_FN f64 infinity() { return from_bits(0x7ff0000000000000ull); }
    static TN_FN f64 nan() { return from_bits(0x7ff8000000000000ull); }
};

template <class T>
TN_FN bool is_nan(T x) {
    return x != x;
}

// The upper half of the mantissa: its square is exact.
template <class T>
TN_FN T upper(T x) {
    typedef typename Real<T>::Bits B;
    return from_bits(bits(x) & ~(((B)1 << (Real<T>::MANTISSA / 2 + 1)) - 1));
}

// Two factors whose product is 2^n, for `shifted` = n + SHIFTER, also where 2^n itself is subnormal or just beyond the
// largest number.
template <class T>
TN_FN Pair<T> pow2(T shifted) {
    typedef typename Real<T>::Bits B;
    constexpr int M = Real<T>::MANTISSA;
    // The low bits are n + 2 BIAS: the exponent fields of the two factors add up to that.
    B n = bits(shifted);
    B low = (n << (M - 1)) & (~(B)0 << M);
    return {from_bits((B)((n << M) - low)), from_bits(low)};
}

// 2^(n-1) for `shifted` = n + SHIFTER and n above the subnormal numbers' exponents.
template <class T>
TN_FN T half_pow2(T shifted) {
    typedef typename Real<T>::Bits B;
    return from_bits((B)((bits(shifted) - (Real<T>::BIAS + 1)) << Real<T>::MANTISSA));
}

template <class T>
struct Split {
    T m, e;
};

// m in [sqrt(1/2), sqrt(2)) and integral e with m * 2^e = x, for positive normal numbers.
template <class T>
TN_FN Split<T> split(T x) {
    typedef typename Real<T>::Bits B;
    constexpr int M = Real<T>::MANTISSA;
    constexpr B BIAS = Real<T>::BIAS;
    // Moving the boundary from 1 to sqrt(1/2) makes the exponent that of the nearest power.
    B moved = bits(x) + ((BIAS << M) - Real<T>::SQRT_HALF);
    B exponent = (moved >> M) - BIAS;
    B mantissa = (moved & (((B)1 << M) - 1)) + Real<T>::SQRT_HALF;
    T e = from_bits((B)(exponent + bits(Real<T>::MAGIC))) - Real<T>::MAGIC;
    return {from_bits(mantissa), e};
}

}  // namespace tn
