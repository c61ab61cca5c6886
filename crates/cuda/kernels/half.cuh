// The two 16-bit floats, which registers hold as the f32 that they are. The original: simd/half.rs.
//
// Rounding is to nearest, half to even; subnormal numbers are kept; a NaN stays one, with its sign and the upper bits of its
// payload.

// Exactly.
TN_FN f32 f16_load(u16 x) {
    u32 size = x & 0x7fffu;
    // As an f32's bits the number is 2^-112 too small, also where it is subnormal.
    u32 scaled = tn::bits(tn::from_bits(size << 13) * tn::from_bits(239u << 23));
    // Infinity and NaN; a signalling NaN becomes a quiet one.
    u32 special = (size << 13) | 0x7f800000u | (size > 0x7c00u ? 0x00400000u : 0u);
    return tn::from_bits((size >= 0x7c00u ? special : scaled) | (x & 0x8000u) << 16);
}

TN_FN u16 f16_store(f32 x) {
    u32 bits = tn::bits(x);
    u32 size = bits & 0x7fffffffu;
    // The bias changes by 112; carries run into the exponent and on to infinity.
    u32 rounded = (size + (0xfffu + (size >> 13 & 1)) - (112u << 23)) >> 13;
    // Below 2^-14: the unit of a number around 1/2 is that of the subnormal numbers.
    u32 subnormal = tn::bits(tn::from_bits(size) + 0.5f) - 0x3f000000u;
    u32 nan = 0x7e00u | (size >> 13 & 0x3ffu);
    u32 out = size < 0x38800000u ? subnormal : rounded;
    out = size >= 0x47800000u ? 0x7c00u : out;
    out = size > 0x7f800000u ? nan : out;
    return (u16)(out | (bits >> 16 & 0x8000u));
}

// Exactly.
TN_FN f32 bf16_load(u16 x) {
    u32 quiet = (x & 0x7fffu) > 0x7f80u ? 0x00400000u : 0u;
    return tn::from_bits((u32)x << 16 | quiet);
}

TN_FN u16 bf16_store(f32 x) {
    u32 bits = tn::bits(x);
    u32 rounded = (bits + (0x7fffu + (bits >> 16 & 1))) >> 16;
    return (u16)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded);
}
