// Sine, cosine, tangent. The original: simd/float/trig.rs, with `quadrant` of constants.rs.
//
// Up to TRIG_FAST = 10^6 the bits are the CPU's. It leaves larger arguments to the platform's library, which a device does
// not have: here they are reduced with as many bits of 2/pi as they need, and the last bit may differ.

namespace tn {

// pi/2 in parts of 33 bits and the rest: `n` times a part is exact for n below 2^20.
struct HalfPi {
    static constexpr f64 A = 1.5707963267341256;
    static constexpr f64 B = 6.077100506303966e-11;
    static constexpr f64 C = 2.0222662487959506e-21;
};

// r in [-pi/4, pi/4], what r lacks, and the low bits of n, with r + n * pi/2 = x.
template <class T>
struct Quadrant {
    T r, low;
    u32 n;
};

TN_FN Quadrant<f32> quadrant(f32 of) {
    // In f64, where two parts of pi/2 do for every f32 up to the limit.
    f64 x = of;
    f64 shifted = x * Real<f64>::FRAC_2_PI + Real<f64>::MAGIC;
    f64 n = shifted - Real<f64>::MAGIC;
    f64 r = (x - n * HalfPi::A) - n * (HalfPi::B + HalfPi::C);
    f32 high = (f32)r;
    return {high, (f32)(r - (f64)high), (u32)bits(shifted)};
}

TN_FN Quadrant<f64> quadrant(f64 x) {
    f64 shifted = x * Real<f64>::FRAC_2_PI + Real<f64>::MAGIC;
    f64 n = shifted - Real<f64>::MAGIC;
    // The first difference is exact, the others leave a little.
    f64 a = x - n * HalfPi::A, b = n * HalfPi::B, c = n * HalfPi::C;
    f64 ab = a - b;
    f64 r = ab - c;
    return {r, ((a - ab) - b) + ((ab - r) - c), (u32)bits(shifted)};
}

template <class T>
struct SinCos {
    T sin, cos;
};

// sin r + sin_low and cos r + cos_low, for |r| <= pi/4.
template <class I, class T>
TN_FN SinCos<T> parts(T r, T sin_low, T cos_low) {
    typedef Real<T> R;
    T z = r * r;
    T sin = I::fma(r * z, sin_poly<I>(z), sin_low) + r;
    // 1 - z/2 loses bits that `rest` brings back.
    T half = R::HALF * z;
    T one_less = R::ONE - half;
    T rest = (R::ONE - one_less) - half;
    T cos = one_less + I::fma(z * z, cos_poly<I>(z), rest + cos_low);
    return {sin, cos};
}

template <class I = Fused, class T>
TN_FN SinCos<T> sin_cos_reduced(T r) {
    // Adding -0 changes nothing.
    return parts<I>(r, -Real<T>::ZERO, -Real<T>::ZERO);
}

// The bits of 2/pi, after a word of zeros.
TN_TABLE u64 TWO_OVER_PI[20] = {
    0x0000000000000000ull, 0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull,
    0xfe5163abdebbc561ull, 0xb7246e3a424dd2e0ull, 0x06492eea09d1921cull, 0xfe1deb1cb129a73eull,
    0xe88235f52ebb4484ull, 0xe99c7026b45f7e41ull, 0x3991d639835339f4ull, 0x9c845f8bbdf9283bull,
    0x1ff897ffde05980full, 0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull, 0x4f463f669e5fea2dull,
    0x7527bac7ebe5f17bull, 0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull, 0x56033046fc7b6babull,
};

TN_FN u64 shifted_word(u64 word, u64 next, u32 shift) {
    return shift == 0 ? word : (word << shift) | (next >> (64 - shift));
}

// `quadrant` for |x| > TRIG_FAST: a product of the 53 bits of x with those 192 bits of 2/pi that count for it. Bits of
// weight 4 and more are whole turns; 2^-61 of a quarter turn is the closest that a float comes to a multiple of one.
TN_FN Quadrant<f64> quadrant_far(f64 x) {
    u64 of = bits(x);
    u32 exponent = (u32)(of >> 52) & 0x7ffu;
    u64 m = (of & 0xfffffffffffffull) | 0x10000000000000ull;
    // x = m 2^(exponent - 1075): the first bit that counts is that of weight 2.
    u32 start = exponent - (1075 - 62);
    u32 word = start >> 6, shift = start & 63;
    u64 t0 = TWO_OVER_PI[word], t1 = TWO_OVER_PI[word + 1];
    u64 t2 = TWO_OVER_PI[word + 2], t3 = TWO_OVER_PI[word + 3];
    u64 w2 = shifted_word(t0, t1, shift), w1 = shifted_word(t1, t2, shift);
    u64 w0 = shifted_word(t2, t3, shift);
    u64 low = high_product(m, w0), middle = m * w1;
    u64 p0 = low + middle;
    u64 p1 = m * w2 + high_product(m, w1) + (p0 < low ? 1 : 0);
    // Two bits of quarter turns; the rest as a signed fraction of one, the nearest whole number taken off.
    u32 n = (u32)(p1 >> 62) + (u32)(p1 >> 61 & 1);
    u64 f1 = (p1 << 2) | (p0 >> 62), f0 = p0 << 2;
    bool negative = f1 >> 63 != 0;
    f1 = negative ? ~f1 + (f0 == 0 ? 1 : 0) : f1;
    f0 = negative ? (u64)0 - f0 : f0;
    u32 zeros = leading_zeros(f1 | 1);
    u64 h = shifted_word(f1, f0, zeros), l = f0 << zeros;
    // The fraction as two floats of 53 bits, times pi/2.
    f64 scale = from_bits((u64)(1023 - 53 - zeros) << 52);
    f64 a = (f64)(h >> 11) * scale;
    f64 b = (f64)((h & 0x7ff) << 42 | l >> 22) * (scale * (1.0 / (f64)(1ull << 53)));
    f64 r = a * Real<f64>::FRAC_PI_2;
    f64 rest = fma(a, Real<f64>::FRAC_PI_2, -r);
    rest = rest + fma(a, Real<f64>::FRAC_PI_2_LOW, b * Real<f64>::FRAC_PI_2);
    f64 high = r + rest;
    rest = rest - (high - r);
    bool minus = negative != (of >> 63 != 0);
    // -x is -n quarter turns and -r.
    n = of >> 63 != 0 ? 0u - n : n;
    // An infinity has no angle.
    high = select(exponent == 0x7ff, Real<f64>::nan(), minus ? -high : high);
    return {high, minus ? -rest : rest, n};
}

template <class T>
TN_FN SinCos<T> parts_of(Quadrant<T> of) {
    return parts<Fused>(of.r, of.low, -(of.r * of.low));
}

template <class T>
TN_FN T sin_of(T x, Quadrant<T> of) {
    SinCos<T> at = parts_of(of);
    T y = select((of.n & 1) == 0, at.sin, at.cos);
    return select(abs(x) < Real<T>::SMALL, x, select((of.n & 2) == 0, y, -y));
}

template <class T>
TN_FN T cos_of(T, Quadrant<T> of) {
    SinCos<T> at = parts_of(of);
    T y = select((of.n & 1) == 0, at.cos, at.sin);
    return select(((of.n + 1) & 2) == 0, y, -y);
}

template <class T>
TN_FN T tan_of(T x, Quadrant<T> of) {
    SinCos<T> at = parts_of(of);
    bool odd = (of.n & 1) == 1;
    T y = select(odd, -at.cos, at.sin) / select(odd, at.sin, at.cos);
    return select(abs(x) < Real<T>::SMALL, x, y);
}

// True where `quadrant` cannot reduce. NaN is not: it stays NaN all the way.
template <class T>
TN_FN bool beyond(T x) {
    return abs(x) > Real<T>::TRIG_FAST;
}

TN_FN f64 sin(f64 x) { return sin_of(x, beyond(x) ? quadrant_far(x) : quadrant(x)); }
TN_FN f64 cos(f64 x) { return cos_of(x, beyond(x) ? quadrant_far(x) : quadrant(x)); }
TN_FN f64 tan(f64 x) { return tan_of(x, beyond(x) ? quadrant_far(x) : quadrant(x)); }

// Far out by way of f64, as the CPU does.
TN_FN f32 sin(f32 x) { return beyond(x) ? (f32)sin_of((f64)x, quadrant_far(x)) : sin_of(x, quadrant(x)); }
TN_FN f32 cos(f32 x) { return beyond(x) ? (f32)cos_of((f64)x, quadrant_far(x)) : cos_of(x, quadrant(x)); }
TN_FN f32 tan(f32 x) { return beyond(x) ? (f32)tan_of((f64)x, quadrant_far(x)) : tan_of(x, quadrant(x)); }

}  // namespace tn
