// The Gaussian error linear unit by a hyperbolic tangent: x / (1 + e^-t) for t = 2 sqrt(2/pi) (x + 0.044715 x^3). The original:
// simd/float/gelu.rs. The exact one is in sigmoid.cuh.

namespace tn {

// 2 sqrt(2/pi), and that times 0.044715; each with what it lacks.
struct Angle {
    static constexpr f64 LINEAR = 1.5957691216057308;
    static constexpr f64 LINEAR_LOW = -9.96930880911092e-17;
    static constexpr f64 CUBIC = 0.07135481627260025;
    static constexpr f64 CUBIC_LOW = -6.175149918155315e-19;
};

TN_FN f32 gelu_tanh(f32 x) {
    // From here on the share of the lower level is 0.
    constexpr f32 FAR = 10.1f;
    f32 a = abs(x);
    a = select(a > FAR, FAR, a);
    f32 t = a * fma(a * a, (f32)Angle::CUBIC, (f32)Angle::LINEAR);
    // x above 0, and -0 below.
    f32 above = from_bits(least(bits(x), 0x80000000u));
    return fma(-a, sigmoid(-t), above);
}

// t for x = `a` from 0 on, as a sum of two numbers: what is left of it far out is a power of it.
TN_FN Pair<f64> gelu_angle(f64 a) {
    Pair<f64> square = product(a, a);
    Pair<f64> m = product(Angle::CUBIC, square.high);
    m.low = m.low + Angle::CUBIC * square.low + Angle::CUBIC_LOW * square.high;
    bool more = m.high > Angle::LINEAR;
    Pair<f64> s = sum(select(more, m.high, Angle::LINEAR), select(more, Angle::LINEAR, m.high));
    s.low = s.low + m.low + Angle::LINEAR_LOW;
    Pair<f64> angle = product(a, s.high);
    return {angle.high, angle.low + a * s.low};
}

TN_FN f64 gelu_tanh(f64 x) {
    // Beyond this the result is x, or 0.
    constexpr f64 FAR = 22.0;
    f64 a = abs(x);
    Pair<f64> angle = gelu_angle(select(a > FAR, FAR, a));
    return weighted(x, angle.high, angle.low);
}

}  // namespace tn
