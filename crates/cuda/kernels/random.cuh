// Random numbers: element `index` of the stream of a key, for any index. The original: core's philox.rs, simd/philox.rs,
// simd/random.rs, and tile/source.rs for 16-bit floats and narrow integers.
//
// A block of Philox4x32-10 makes four 32-bit elements or two 64-bit ones. The mathematics uses no fused multiply-add, so that
// the numbers are the same on every machine.

// The four words of one counter.
TN_FN void philox_block(u32 key0, u32 key1, u32 c0, u32 c1, u32 c2, u32 c3, u32 out[4]) {
    for (i32 i = 0; i < 10; i++) {
        u64 p0 = (u64)0xd2511f53u * c0;
        u64 p1 = (u64)0xcd9e8d57u * c2;
        c0 = (u32)(p1 >> 32) ^ c1 ^ key0;
        c1 = (u32)p1;
        c2 = (u32)(p0 >> 32) ^ c3 ^ key1;
        c3 = (u32)p0;
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

namespace tn {

struct Words {
    u32 a, b, c, d;
};

// Block `index` of a key's stream; `attempt` and `kind` tell streams of one key apart.
TN_FN Words words(u32 k0, u32 k1, u64 index, u32 attempt, u32 kind) {
    u32 out[4];
    philox_block(k0, k1, (u32)index, (u32)(index >> 32), attempt, kind, out);
    return {out[0], out[1], out[2], out[3]};
}

TN_FN u64 join_words(u32 low, u32 high) { return low | (u64)high << 32; }

// Sine and cosine of r plus n quarter turns, |r| <= pi/4.
template <class T>
TN_FN SinCos<T> quarter(T r, u32 n) {
    SinCos<T> at = sin_cos_reduced<Plain>(r);
    T sin = select((n & 1) == 0, at.sin, at.cos), cos = select((n & 1) == 0, at.cos, at.sin);
    return {select((n & 2) == 0, sin, -sin), select(((n + 1) & 2) == 0, cos, -cos)};
}

template <class T>
struct Normals {
    T first, second;
};

// Box and Muller's pair, from the 32 bits of a radius and the 32 of an angle.
TN_FN Normals<f32> normal_pair(u32 radius, u32 angle) {
    // (0, 1]: the conversion rounds, which is what lets small u reach 2^-33 and z 6.7.
    f32 u = ((f32)radius + 0.5f) * (1.0f / 4294967296.0f);
    f32 r = sqrt(abs(-2.0f * log<Plain>(u)));
    u32 n = (angle + (1u << 29)) >> 30;
    f32 t = (f32)(i32)(angle - (n << 30));
    SinCos<f32> at = quarter(t * (Real<f32>::FRAC_PI_2 / 1073741824.0f), n);
    return {r * at.cos, r * at.sin};
}

// From the 64 bits of a radius and the 64 of an angle.
TN_FN Normals<f64> normal_pair(u64 radius, u64 angle) {
    // (0, 1], from the upper 53 bits.
    f64 u = ((f64)(radius >> 11) + 0.5) * (1.0 / 9007199254740992.0);
    f64 r = sqrt(abs(-2.0 * log<Plain>(u)));
    // A turn in 54 bits: the upper two count quarters, the others lie around 0.
    u64 n = (angle + (1ull << 61)) >> 62;
    f64 t = (f64)((i64)(angle - (n << 62)) >> 10);
    SinCos<f64> at = quarter(t * (Real<f64>::FRAC_PI_2 / 4503599627370496.0), (u32)n);
    return {r * at.cos, r * at.sin};
}

TN_FN bool truncated(f64 x) { return !(abs(x) < 2.0); }

}  // namespace tn

TN_FN u32 random_bits_u32(u32 k0, u32 k1, u64 index) {
    tn::Words of = tn::words(k0, k1, index >> 2, 0, 0);
    u32 even = (index & 2) == 0 ? of.a : of.c, odd = (index & 2) == 0 ? of.b : of.d;
    return (index & 1) == 0 ? even : odd;
}

TN_FN u64 random_bits_u64(u32 k0, u32 k1, u64 index) {
    tn::Words of = tn::words(k0, k1, index >> 1, 0, 0);
    return (index & 1) == 0 ? tn::join_words(of.a, of.b) : tn::join_words(of.c, of.d);
}

TN_FN i32 random_bits_i32(u32 k0, u32 k1, u64 index) { return (i32)random_bits_u32(k0, k1, index); }
TN_FN i64 random_bits_i64(u32 k0, u32 k1, u64 index) { return (i64)random_bits_u64(k0, k1, index); }
// Narrow integers keep the low bits of a word each.
TN_FN u16 random_bits_u16(u32 k0, u32 k1, u64 index) { return (u16)random_bits_u32(k0, k1, index); }
TN_FN i16 random_bits_i16(u32 k0, u32 k1, u64 index) { return (i16)random_bits_u32(k0, k1, index); }
TN_FN u8 random_bits_u8(u32 k0, u32 k1, u64 index) { return (u8)random_bits_u32(k0, k1, index); }
TN_FN i8 random_bits_i8(u32 k0, u32 k1, u64 index) { return (i8)random_bits_u32(k0, k1, index); }

// Whole numbers from 0 up to, without, `below`: the upper half of a double word times that.
TN_FN u64 random_below_u64(u32 k0, u32 k1, u64 index, u64 below) {
    return tn::high_product(random_bits_u64(k0, k1, index), below);
}

TN_FN i64 random_below_i64(u32 k0, u32 k1, u64 index, u64 below) { return (i64)random_below_u64(k0, k1, index, below); }
TN_FN u32 random_below_u32(u32 k0, u32 k1, u64 index, u64 below) { return (u32)random_below_u64(k0, k1, index, below); }
TN_FN i32 random_below_i32(u32 k0, u32 k1, u64 index, u64 below) { return (i32)random_below_u64(k0, k1, index, below); }
TN_FN u16 random_below_u16(u32 k0, u32 k1, u64 index, u64 below) { return (u16)random_below_u64(k0, k1, index, below); }
TN_FN i16 random_below_i16(u32 k0, u32 k1, u64 index, u64 below) { return (i16)random_below_u64(k0, k1, index, below); }
TN_FN u8 random_below_u8(u32 k0, u32 k1, u64 index, u64 below) { return (u8)random_below_u64(k0, k1, index, below); }
TN_FN i8 random_below_i8(u32 k0, u32 k1, u64 index, u64 below) { return (i8)random_below_u64(k0, k1, index, below); }

// In [0, 1), a multiple of 2^-24.
TN_FN f32 random_uniform_f32(u32 k0, u32 k1, u64 index) {
    return (f32)(random_bits_u32(k0, k1, index) >> 8) * (1.0f / 16777216.0f);
}

// In [0, 1), a multiple of 2^-53.
TN_FN f64 random_uniform_f64(u32 k0, u32 k1, u64 index) {
    return (f64)(random_bits_u64(k0, k1, index) >> 11) * (1.0 / 9007199254740992.0);
}

// Rounded downwards, for 1 is none of them.
TN_FN f32 random_uniform_f16(u32 k0, u32 k1, u64 index) {
    return tn::floor(random_uniform_f32(k0, k1, index) * 2048.0f) / 2048.0f;
}

TN_FN f32 random_uniform_bf16(u32 k0, u32 k1, u64 index) {
    return tn::floor(random_uniform_f32(k0, k1, index) * 256.0f) / 256.0f;
}

// The four elements of a block, `index` / 4 of which are before it: what the functions of one element give, for a quarter of the work.
TN_FN void random_bits_u32_block(u32 k0, u32 k1, u64 block, u32 out[4]) {
    tn::Words of = tn::words(k0, k1, block, 0, 0);
    out[0] = of.a;
    out[1] = of.b;
    out[2] = of.c;
    out[3] = of.d;
}

TN_FN void random_bits_i32_block(u32 k0, u32 k1, u64 block, i32 out[4]) {
    tn::Words of = tn::words(k0, k1, block, 0, 0);
    out[0] = (i32)of.a;
    out[1] = (i32)of.b;
    out[2] = (i32)of.c;
    out[3] = (i32)of.d;
}

TN_FN void random_uniform_f32_block(u32 k0, u32 k1, u64 block, f32 out[4]) {
    tn::Words of = tn::words(k0, k1, block, 0, 0);
    out[0] = (f32)(of.a >> 8) * (1.0f / 16777216.0f);
    out[1] = (f32)(of.b >> 8) * (1.0f / 16777216.0f);
    out[2] = (f32)(of.c >> 8) * (1.0f / 16777216.0f);
    out[3] = (f32)(of.d >> 8) * (1.0f / 16777216.0f);
}

TN_FN void random_normal_f32_block(u32 k0, u32 k1, u64 block, f32 out[4]) {
    tn::Words of = tn::words(k0, k1, block, 0, 0);
    tn::Normals<f32> front = tn::normal_pair(of.a, of.b), back = tn::normal_pair(of.c, of.d);
    out[0] = front.first;
    out[1] = front.second;
    out[2] = back.first;
    out[3] = back.second;
}

// Standard normal; the largest there can be is 6.7.
TN_FN f32 random_normal_f32(u32 k0, u32 k1, u64 index) {
    tn::Words of = tn::words(k0, k1, index >> 2, 0, 0);
    bool front = (index & 2) == 0;
    tn::Normals<f32> pair = tn::normal_pair(front ? of.a : of.c, front ? of.b : of.d);
    return (index & 1) == 0 ? pair.first : pair.second;
}

// Standard normal; the largest there can be is 8.6.
TN_FN f64 random_normal_f64(u32 k0, u32 k1, u64 index) {
    tn::Words of = tn::words(k0, k1, index >> 1, 0, 0);
    tn::Normals<f64> pair = tn::normal_pair(tn::join_words(of.a, of.b), tn::join_words(of.c, of.d));
    return (index & 1) == 0 ? pair.first : pair.second;
}

TN_FN f32 random_normal_f16(u32 k0, u32 k1, u64 index) { return f16_round(random_normal_f32(k0, k1, index)); }
TN_FN f32 random_normal_bf16(u32 k0, u32 k1, u64 index) { return bf16_round(random_normal_f32(k0, k1, index)); }

// Standard normal, drawn again where it lies 2 and more from 0: a block of its own for every element and attempt, and of its
// numbers the first that fits.
TN_FN f32 random_truncated_normal_f32(u32 k0, u32 k1, u64 index) {
    for (u32 attempt = 0; attempt < ~0u; attempt++) {
        tn::Words of = tn::words(k0, k1, index, attempt, 1);
        for (u32 half = 0; half < 2; half++) {
            tn::Normals<f32> pair = tn::normal_pair(half == 0 ? of.a : of.c, half == 0 ? of.b : of.d);
            f32 x = tn::truncated(pair.first) ? pair.second : pair.first;
            if (!tn::truncated(x)) {
                return x;
            }
        }
    }
    return 0.0f;
}

TN_FN f64 random_truncated_normal_f64(u32 k0, u32 k1, u64 index) {
    for (u32 attempt = 0; attempt < ~0u; attempt++) {
        tn::Words of = tn::words(k0, k1, index, attempt, 1);
        tn::Normals<f64> pair = tn::normal_pair(tn::join_words(of.a, of.b), tn::join_words(of.c, of.d));
        f64 x = tn::truncated(pair.first) ? pair.second : pair.first;
        if (!tn::truncated(x)) {
            return x;
        }
    }
    return 0.0;
}

TN_FN f32 random_truncated_normal_f16(u32 k0, u32 k1, u64 index) {
    return f16_round(random_truncated_normal_f32(k0, k1, index));
}

TN_FN f32 random_truncated_normal_bf16(u32 k0, u32 k1, u64 index) {
    return bf16_round(random_truncated_normal_f32(k0, k1, index));
}
