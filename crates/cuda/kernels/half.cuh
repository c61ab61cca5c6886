// The two 16-bit floats, which registers hold as the f32 that they are. The original: simd/half.rs.
//
// Rounding is to nearest, half to even; subnormal numbers are kept; a NaN stays one, of whatever sign and payload.

TN_FN f32 f16_load(u16 x) { return tn::from_f16(x); }
TN_FN u16 f16_store(f32 x) { return tn::to_f16(x); }
TN_FN f32 bf16_load(u16 x) { return tn::from_bits((u32)x << 16); }
TN_FN u16 bf16_store(f32 x) { return tn::to_bf16(x); }
