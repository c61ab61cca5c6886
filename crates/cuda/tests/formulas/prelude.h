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

}  // namespace tn
