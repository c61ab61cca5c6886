// The functions that go from one level to another: the logistic one, the error function and `gelu`. The original:
// simd/float/sigmoid.rs. Decision: docs/decisions/exact-formulas-on-gpus.md.

namespace tn {

// A power of 2 by adding up exponents.
struct Exponent {
    // 1.5 * 2^23 and the exponent's bias: adding it to n leaves in the low bits the exponent of 2^n.
    static constexpr f32 SHIFTER = 12583039.0f;
    // 2^n for `shifted` = n + SHIFTER.
    static TN_FN f32 scale(f32 shifted) { return from_bits(bits(shifted) << 23); }
    // A power in two parts: 2^n, from -127 on where that is 0, and the fraction of the exponent.
    static TN_FN Pair<f32> parts(f32 exponent) {
        f32 shifted = exponent + SHIFTER;
        return {scale(shifted), exponent - (shifted - SHIFTER)};
    }
};

// 1 / (1 + e^-x); 0 where that is not a normal number.
TN_FN f32 sigmoid(f32 x) {
    typedef Real<f32> R;
    // Beyond these bounds the sum below is 1, or its reciprocal is no normal number.
    constexpr f32 FAR = 88.0f;
    x = select(x > FAR, FAR, x);
    x = select(x < -FAR, -FAR, x);
    f32 shifted = fma(-x, R::LOG2_E, Exponent::SHIFTER);
    f32 n = shifted - Exponent::SHIFTER;
    f32 r = fma(n, -R::LN_2_LOW, fma(n, -R::LN_2_HIGH, -x));
    f32 power = poly(
        r, 1.0f, 1.0f, 0.49999994f, 0.16666523f, 0.041668292f, 0.008368532f, 0.0013818298f);
    return reciprocal(fma(power, Exponent::scale(shifted), 1.0f));
}

TN_FN f32 erf(f32 x) {
    // From here on erf is 1.
    constexpr f32 FAR = 3.93f;
    f32 a = abs(x);
    a = select(a > FAR, FAR, a);
    // The exponent of erfc(a), as a multiple of a: the relative precision near 0 comes from there.
    f32 exponent = a * poly(
        a, -1.627907f, -0.91844743f, -0.14827925f, 0.027641105f, 0.00021349978f, -0.0023863777f, 0.0009025301f,
        -0.00016674049f, 1.3017554e-05f);
    Pair<f32> of = Exponent::parts(exponent);
    f32 scale = of.high, f = of.low;
    // 2^f - 1.
    f32 less = f * poly(
        f, 0.6931472f, 0.24022649f, 0.055503674f, 0.009618311f, 0.0013387382f, 0.00015382109f);
    return copysign(fma(-less, scale, 1.0f - scale), x);
}

// x times the share of the normal distribution below x, to 2^-24 of x.
TN_FN f32 gelu(f32 x) {
    // There the exponent is -127, and the power 0.
    constexpr f32 FAR = 10.352f;
    f32 a = abs(x);
    a = select(a > FAR, FAR, a);
    // The exponent of the share of the normal distribution beyond a. The polynomial keeps it until 2^-28, and goes down
    // faster than the share from there on.
    f32 exponent = poly(
        a, -1.0f, -1.151108f, -0.4591796f, -0.052591056f, 0.0072079184f, -0.00025099775f, -0.000138144f,
        2.9181352e-05f, -1.9810848e-06f);
    Pair<f32> of = Exponent::parts(exponent);
    f32 f = of.low;
    f32 power = poly(
        f, 1.0f, 0.6931472f, 0.24022648f, 0.0555036f, 0.009618506f, 0.0013390806f, 0.00015326463f);
    // x above 0, and -0 below.
    f32 above = from_bits(least(bits(x), 0x80000000u));
    return fma(-(a * power), of.high, above);
}

TN_FN f64 sigmoid(f64 x) {
    f64 z = exp(-abs(x));
    return quotient(select(x < 0.0, z, 1.0), 1.0 + z);
}

TN_FN f64 erf(f64 x) {
    f64 a = abs(x);
    f64 near = fma(a, erf_poly(a * a), a);
    return copysign(select(a < 1.0, near, 1.0 - erfc_tail(a)), x);
}

// With relative precision also far below 0.
TN_FN f64 gelu(f64 x) {
    typedef Real<f64> R;
    // From here down to minus infinity it is 0.
    constexpr f64 FAR = 38.62;
    f64 u = -(x * R::FRAC_1_SQRT_2);
    // erfc(u) / 2, as `erfc` has it near 0.
    f64 near = 0.5 * x * fma(-u, erf_poly(u * u), 1.0 - u);
    // erfc(v) = e^(-v^2) p / v for v = |x| / sqrt(2): the |x| outside and the v below make sqrt(2). The square is that of
    // x itself, in two parts, so that the rounding of v is not magnified.
    f64 a = abs(x);
    a = select(a > FAR, FAR, a);
    f64 v = a * R::FRAC_1_SQRT_2;
    f64 t = quotient(v - R::ERFC_CENTRE, v + R::ERFC_CENTRE);
    f64 high = upper(a);
    f64 low = -(0.5 * ((a - high) * (a + high)));
    f64 factor = R::FRAC_1_SQRT_2 * erfc_poly(t);
    f64 tail = exp_sum(-(0.5 * (high * high)), low, factor);
    f64 far = select(x < 0.0, -tail, x - tail);
    return select(v < 1.0, near, far);
}

}  // namespace tn
