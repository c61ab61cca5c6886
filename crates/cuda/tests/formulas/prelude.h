// What base.cuh has for a device, for the host's compiler: included before it.
#include <cstdio>
#include <cstring>

#define TN_FN inline
#define TN_TABLE static const

namespace tn {

TN_FN float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TN_FN double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
TN_FN float sqrt(float x) { return __builtin_sqrtf(x); }
TN_FN double sqrt(double x) { return __builtin_sqrt(x); }
template <class T>
TN_FN T quotient(T a, T b) { return a / b; }
TN_FN float reciprocal(float b) { return b > 0x1p126f ? 0.0f : 1.0f / b; }
TN_FN unsigned least(unsigned a, unsigned b) { return a < b ? a : b; }
TN_FN unsigned long long least(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
TN_FN float floor(float x) { return __builtin_floorf(x); }
TN_FN double floor(double x) { return __builtin_floor(x); }
TN_FN float ceil(float x) { return __builtin_ceilf(x); }
TN_FN double ceil(double x) { return __builtin_ceil(x); }
TN_FN float round(float x) { return __builtin_rintf(x); }
TN_FN double round(double x) { return __builtin_rint(x); }
TN_FN float fmod(float a, float b) { return __builtin_fmodf(a, b); }
TN_FN double fmod(double a, double b) { return __builtin_fmod(a, b); }
template <class To, class From>
TN_FN To same_bits(From x) {
    To out;
    memcpy(&out, &x, sizeof out);
    return out;
}
TN_FN unsigned bits(float x) { return same_bits<unsigned>(x); }
TN_FN unsigned long long bits(double x) { return same_bits<unsigned long long>(x); }
TN_FN float from_bits(unsigned x) { return same_bits<float>(x); }
TN_FN double from_bits(unsigned long long x) { return same_bits<double>(x); }
TN_FN unsigned long long high_product(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
TN_FN unsigned leading_zeros(unsigned long long x) { return (unsigned)__builtin_clzll(x); }
TN_FN float from_f16(unsigned short x) {
    unsigned size = x & 0x7fffu;
    // As a float's bits the number is 2^-112 too small, also where it is subnormal.
    unsigned scaled = bits(from_bits(size << 13) * 0x1p112f);
    unsigned special = size << 13 | 0x7f800000u;
    return from_bits((size >= 0x7c00u ? special : scaled) | (x & 0x8000u) << 16);
}
TN_FN unsigned short to_f16(float x) {
    unsigned all = bits(x), size = all & 0x7fffffffu;
    // The bias changes by 112; carries run into the exponent and on to infinity.
    unsigned rounded = (size + (0xfffu + (size >> 13 & 1)) - (112u << 23)) >> 13;
    // Below 2^-14: the unit of a number around 1/2 is that of the subnormal numbers.
    unsigned subnormal = bits(from_bits(size) + 0.5f) - 0x3f000000u;
    unsigned out = size < 0x38800000u ? subnormal : rounded;
    out = size >= 0x47800000u ? 0x7c00u : out;
    // A GPU has one NaN, without a sign.
    return size > 0x7f800000u ? 0x7fffu : (unsigned short)(out | (all >> 16 & 0x8000u));
}
TN_FN unsigned short to_bf16(float x) {
    unsigned all = bits(x);
    unsigned rounded = (all + (0x7fffu + (all >> 16 & 1))) >> 16;
    return (all & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : (unsigned short)rounded;
}

}  // namespace tn
