// The types, what a device does by one instruction, and the pieces that all formulas are made of.
//
// The headers of this folder hold the scalar functions of the CPU (crates/cpu/src/simd), formula by formula, so that
// both devices have the same bits: a change belongs to both. They are included in the order of crates/cuda/src/headers.rs;
// none includes another. What kernels call begins with `p_`, `b_`, `f16_`, `bf16_`, `random_` or `philox_`; the rest is in
// the namespace `tn`.
//
// Decisions: docs/decisions/kernels-as-text.md, docs/decisions/exact-formulas-on-gpus.md.
//
// To be compiled with --fmad=false (a formula says itself where it rounds once) and with subnormal numbers and exact
// division and square roots, which are the defaults. No function has an array that is indexed by a variable: a kernel
// needs no stack.

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

// Another compiler defines these before it includes this file.
#ifndef TN_FN
#define TN_FN __device__ __forceinline__
#define TN_TABLE static __constant__ const

namespace tn {

TN_FN f32 fma(f32 a, f32 b, f32 c) { return __fmaf_rn(a, b, c); }
TN_FN f64 fma(f64 a, f64 b, f64 c) { return __fma_rn(a, b, c); }
TN_FN f32 sqrt(f32 x) { return __fsqrt_rn(x); }
TN_FN f64 sqrt(f64 x) { return __dsqrt_rn(x); }
// a / b, for a b between 2^-100 and 2^100 and a quotient that is a normal number or 0, or for a b of 1: the same bits as a division, by a
// reciprocal that is made exact and a quotient that is corrected, without the branch for all other numbers.
TN_FN f32 quotient(f32 a, f32 b) {
    f32 r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b));
    r = __fmaf_rn(__fmaf_rn(-b, r, 1.0f), r, r);
    const f32 q = __fmul_rn(a, r);
    return __fmaf_rn(__fmaf_rn(-b, q, a), r, q);
}
TN_FN f64 quotient(f64 a, f64 b) { return a / b; }
// 1 / b for a b from 1 to 2^126, and 0 for a finite one beyond: the same bits as a division.
TN_FN f32 reciprocal(f32 b) {
    f32 r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b));
    return __fmaf_rn(__fmaf_rn(-b, r, 1.0f), r, r);
}
// The smaller one.
TN_FN u32 least(u32 a, u32 b) { return ::min(a, b); }
TN_FN u64 least(u64 a, u64 b) { return ::min(a, b); }
TN_FN f32 floor(f32 x) { return ::floorf(x); }
TN_FN f64 floor(f64 x) { return ::floor(x); }
TN_FN f32 ceil(f32 x) { return ::ceilf(x); }
TN_FN f64 ceil(f64 x) { return ::ceil(x); }
// To the nearest, halves to even.
TN_FN f32 round(f32 x) { return ::rintf(x); }
TN_FN f64 round(f64 x) { return ::rint(x); }
// What a quotient that is cut off leaves; exact.
TN_FN f32 fmod(f32 a, f32 b) { return ::fmodf(a, b); }
TN_FN f64 fmod(f64 a, f64 b) { return ::fmod(a, b); }
TN_FN u32 bits(f32 x) { return __float_as_uint(x); }
TN_FN u64 bits(f64 x) { return (u64)__double_as_longlong(x); }
TN_FN f32 from_bits(u32 x) { return __uint_as_float(x); }
TN_FN f64 from_bits(u64 x) { return __longlong_as_double((i64)x); }
// The upper half of a product.
TN_FN u64 high_product(u64 a, u64 b) { return __umul64hi(a, b); }
// For x > 0.
TN_FN u32 leading_zeros(u64 x) { return (u32)__clzll((i64)x); }
// The 16-bit floats: exactly, and to the nearest, halves to even; subnormal numbers are kept.
TN_FN f32 from_f16(u16 x) {
    f32 out;
    asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(x));
    return out;
}
TN_FN u16 to_f16(f32 x) {
    u16 out;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out) : "f"(x));
    return out;
}
TN_FN u16 to_bf16(f32 x) {
    u16 out;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out) : "f"(x));
    return out;
}

}  // namespace tn
#endif

namespace tn {

TN_FN f32 abs(f32 x) { return from_bits(bits(x) & 0x7fffffffu); }
TN_FN f64 abs(f64 x) { return from_bits(bits(x) & 0x7fffffffffffffffull); }
TN_FN f32 copysign(f32 x, f32 sign) {
    return from_bits((bits(x) & 0x7fffffffu) | (bits(sign) & 0x80000000u));
}
TN_FN f64 copysign(f64 x, f64 sign) {
    return from_bits((bits(x) & 0x7fffffffffffffffull) | (bits(sign) & 0x8000000000000000ull));
}

// Of two values that are there: a blend.
template <class T>
TN_FN T select(bool condition, T a, T b) {
    return condition ? a : b;
}

// Products and sums that are rounded once.
struct Fused {
    template <class T>
    static TN_FN T fma(T a, T b, T c) {
        return tn::fma(a, b, c);
    }
};

// Products and sums that are rounded one after the other: for random numbers, which are the same on machines without a
// fused multiply-add.
struct Plain {
    template <class T>
    static TN_FN T fma(T a, T b, T c) {
        return a * b + c;
    }
};

// `c0 + x (c1 + x (c2 + ...))`
template <class I = Fused, class T>
TN_FN T poly(T, T c) {
    return c;
}
template <class I = Fused, class T, class... Rest>
TN_FN T poly(T x, T c, Rest... rest) {
    return I::fma(x, poly<I>(x, rest...), c);
}

// A number as a sum of two: `high` and what it lacks.
template <class T>
struct Pair {
    T high, low;
};

}  // namespace tn
