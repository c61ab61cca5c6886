// Casts between all dtypes, by the rule of Rust's `as`. The original: simd/cast.rs, and core's rounding.rs.
//
// A float to an integer is cut off towards zero and held at the ends, NaN gives 0; an integer to a narrower one keeps its low
// bits; anything to a boolean is whether it is not 0 (NaN is true). Rounding is to nearest, half to even, and once: on its way
// to 16 bits a number goes through f32 rounded to odd.

template <class To, class From>
TN_FN To p_cast(From x) {
    if constexpr (tn::Number<From>::FLOAT && !tn::Number<To>::FLOAT) {
        typedef tn::Number<To> N;
        constexpr u32 VALUE_BITS = N::SIGNED ? N::BITS - 1 : N::BITS;
        constexpr u64 GREATEST = ~(u64)0 >> (64 - VALUE_BITS);
        // One more than the greatest: a power of two, which floats have.
        constexpr From END = (From)2 * (From)((u64)1 << (VALUE_BITS - 1));
        constexpr From LEAST = N::SIGNED ? -END : (From)0;
        if (!(x >= LEAST)) {
            return x != x ? (To)0 : (To)(N::SIGNED ? GREATEST + 1 : 0);
        }
        return x >= END ? (To)GREATEST : (To)x;
    } else {
        return (To)x;
    }
}

// Whether it is not 0.
template <class From>
TN_FN u8 b_cast_from(From x) {
    return x != 0;
}

template <class To>
TN_FN To b_cast_to(u8 x) {
    return (To)(x != 0);
}

namespace tn {

// The nearest f32 that is the number itself or has its last bit set. NaN stays NaN; what is beyond the largest number is
// the largest, whose last bit is set.
TN_FN f32 to_odd(f64 x) {
    f32 near = (f32)x;
    f64 back = near;
    // The neighbour towards zero where it was rounded away from zero.
    u32 odd = (bits(near) - (abs(back) > abs(x) ? 1u : 0u)) | 1u;
    return back == x || x != x ? near : from_bits(odd);
}

// An integer as an f64 that is the integer itself, or has its last bit set.
TN_FN f64 unsigned_to_odd(u64 x) {
    // 53 bits fit. Above, the low 11 go, and leave the lowest of the others set if one of them was.
    u64 odd = (x & ~(u64)0x7ff) | (((x & 0x7ff) + 0x7ff) & 0x800);
    return (f64)(x >> 53 == 0 ? x : odd);
}

TN_FN f64 integer_to_odd(i64 x) {
    f64 size = unsigned_to_odd(x < 0 ? (u64)0 - (u64)x : (u64)x);
    return x < 0 ? -size : size;
}

// On the way to 16 bits: what f32 does not hold is rounded to odd.
TN_FN f32 before_half(f32 x) { return x; }
TN_FN f32 before_half(f64 x) { return to_odd(x); }
TN_FN f32 before_half(i64 x) { return to_odd(integer_to_odd(x)); }
TN_FN f32 before_half(u64 x) { return to_odd(unsigned_to_odd(x)); }
TN_FN f32 before_half(i32 x) { return to_odd((f64)x); }
TN_FN f32 before_half(u32 x) { return to_odd((f64)x); }
TN_FN f32 before_half(i16 x) { return (f32)x; }
TN_FN f32 before_half(u16 x) { return (f32)x; }
TN_FN f32 before_half(i8 x) { return (f32)x; }
TN_FN f32 before_half(u8 x) { return (f32)x; }

}  // namespace tn

// To a 16-bit float, and that as f32.
template <class From>
TN_FN f32 f16_round(From x) {
    return f16_load(f16_store(tn::before_half(x)));
}

template <class From>
TN_FN f32 bf16_round(From x) {
    return bf16_load(bf16_store(tn::before_half(x)));
}
