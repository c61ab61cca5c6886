// The Gaussian error linear unit by a hyperbolic tangent. The original: simd/float/gelu.rs. The exact one is in sigmoid.cuh.

namespace tn {

// 2 sqrt(2/pi), and that times 0.044715; each with what it lacks.
struct Angle {
    static constexpr f64 LINEAR = 1.5957691216057308;
    static constexpr f64 LINEAR_LOW = -9.96930880911092e-17;
    static constexpr f64 CUBIC = 0.07135481627260025;
    static constexpr f64 CUBIC_LOW = -6.175149918155315e-19;
};

// 2 sqrt(2/pi) (a + 0.044715 a^3), for 0 <= a <= GELU_TANH_FAR: what is left of it far out is a power of it.
TN_FN Pair<f32> gelu_angle(f32 of) {
    f64 a = of;
    f64 angle = a * (Angle::CUBIC * (a * a) + Angle::LINEAR);
    f32 high = (f32)angle;
    return {high, (f32)(angle - (f64)high)};
}

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

// x / (1 + e^-t) for t = 2 sqrt(2/pi) (x + 0.044715 x^3).
template <class T>
TN_FN T gelu_tanh(T x) {
    T a = abs(x);
    Pair<T> angle = gelu_angle(select(a > Real<T>::GELU_TANH_FAR, Real<T>::GELU_TANH_FAR, a));
    return weighted(x, angle.high, angle.low);
}

}  // namespace tn
