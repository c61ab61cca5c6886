// Arithmetic of the ten types. The original: simd/number.rs and remainder.rs.
//
// Integers wrap: they are computed as unsigned numbers of 32 or 64 bits. Division by zero gives 0, as do the remainder by
// zero and a shift by at least the width (a negative number shifted right gives -1). A negative power gives 0, except of 1
// and -1. `p_max` and `p_min` with NaN are NaN; of two zeros, the second.

namespace tn {

// Of an integer: the unsigned type of its width, and the one to compute in.
template <class U, class W, bool S>
struct IntegerOf {
    typedef U Unsigned;
    typedef W Wide;
    static constexpr bool FLOAT = false;
    static constexpr bool SIGNED = S;
    static constexpr u32 BITS = 8 * sizeof(U);
};

struct FloatOf {
    static constexpr bool FLOAT = true;
    static constexpr bool SIGNED = true;
};

template <class T>
struct Number;
template <> struct Number<f32> : FloatOf {};
template <> struct Number<f64> : FloatOf {};
template <> struct Number<i8> : IntegerOf<u8, u32, true> {};
template <> struct Number<u8> : IntegerOf<u8, u32, false> {};
template <> struct Number<i16> : IntegerOf<u16, u32, true> {};
template <> struct Number<u16> : IntegerOf<u16, u32, false> {};
template <> struct Number<i32> : IntegerOf<u32, u32, true> {};
template <> struct Number<u32> : IntegerOf<u32, u32, false> {};
template <> struct Number<i64> : IntegerOf<u64, u64, true> {};
template <> struct Number<u64> : IntegerOf<u64, u64, false> {};

template <class T>
TN_FN bool is_negative(T x) {
    if constexpr (Number<T>::SIGNED) {
        return x < 0;
    } else {
        return false;
    }
}

// What is left of a division that cut its quotient off, as of one that rounded it down.
template <class T>
TN_FN T floored(T left, T b) {
    bool zero = left == 0;
    bool other = !zero & ((left < 0) != (b < 0));
    return select(other, left + b, select(zero, copysign(left, b), left));
}

}  // namespace tn

template <class T>
TN_FN T p_add(T a, T b) {
    if constexpr (tn::Number<T>::FLOAT) {
        return a + b;
    } else {
        typedef typename tn::Number<T>::Wide W;
        return (T)((W)a + (W)b);
    }
}

template <class T>
TN_FN T p_sub(T a, T b) {
    if constexpr (tn::Number<T>::FLOAT) {
        return a - b;
    } else {
        typedef typename tn::Number<T>::Wide W;
        return (T)((W)a - (W)b);
    }
}

template <class T>
TN_FN T p_mul(T a, T b) {
    if constexpr (tn::Number<T>::FLOAT) {
        return a * b;
    } else {
        typedef typename tn::Number<T>::Wide W;
        return (T)((W)a * (W)b);
    }
}

// a * b + c, rounded once.
template <class T>
TN_FN T p_fma(T a, T b, T c) {
    if constexpr (tn::Number<T>::FLOAT) {
        return tn::fma(a, b, c);
    } else {
        return p_add(p_mul(a, b), c);
    }
}

template <class T>
TN_FN T p_neg(T x) {
    if constexpr (tn::Number<T>::FLOAT) {
        return -x;
    } else {
        return p_sub((T)0, x);
    }
}

template <class T>
TN_FN T p_square(T x) {
    return p_mul(x, x);
}

template <class T>
TN_FN T p_abs(T x) {
    if constexpr (tn::Number<T>::FLOAT) {
        return tn::abs(x);
    } else {
        return tn::is_negative(x) ? p_neg(x) : x;
    }
}

// -1, 0 or 1; zeros and NaN stay.
template <class T>
TN_FN T p_sign(T x) {
    return x > 0 ? (T)1 : tn::is_negative(x) ? (T)-1 : x;
}

template <class T>
TN_FN T p_div(T a, T b) {
    if constexpr (tn::Number<T>::FLOAT) {
        return a / b;
    } else if constexpr (tn::Number<T>::SIGNED) {
        // By -1 on its own: the least number divided by it is itself.
        return b == 0 ? (T)0 : b == -1 ? p_neg(a) : (T)(a / b);
    } else {
        return b == 0 ? (T)0 : (T)(a / b);
    }
}

// The quotient rounded down.
template <class T>
TN_FN T p_floor_div(T a, T b) {
    if constexpr (tn::Number<T>::FLOAT) {
        return tn::floor(a / b);
    } else {
        T q = p_div(a, b);
        bool left = p_sub(a, p_mul(q, b)) != 0;
        bool down = b != 0 && left && tn::is_negative(a) != tn::is_negative(b);
        return down ? p_sub(q, (T)1) : q;
    }
}

namespace tn {

TN_FN f64 modulo(f64 a, f64 b) { return floored(fmod(a, b), b); }

TN_FN f32 modulo(f32 a, f32 b) {
    f64 x = a, y = b;
    // A quotient below 2^29 has so few bits that 24 more fit an f64. NaN is far, and so is what an infinity or zero divides.
    bool near = (abs(x) < 536870912.0 * abs(y)) & (abs(b) < Real<f32>::infinity());
    if (!near) {
        return floored(fmod(a, b), b);
    }
    f64 quotient = x / y;
    f64 whole = copysign(floor(abs(quotient)), quotient);
    f64 left = x - whole * y;
    // Where the quotient was rounded up to an integer, a divisor too much was taken away.
    bool over = (left != 0.0) & ((left < 0.0) != (x < 0.0));
    left = select(over, left + copysign(abs(y), x), left);
    // Exact, as what is left has no more bits than the divisor or what was divided.
    return floored((f32)left, b);
}

template <class T>
TN_FN T modulo(T a, T b) {
    if (b == 0) {
        return 0;
    }
    T r = p_sub(a, p_mul(p_div(a, b), b));
    return r != 0 && is_negative(r) != is_negative(b) ? p_add(r, b) : r;
}

template <class T>
TN_FN T pow(T a, T b) {
    if (is_negative(b)) {
        // Only 1 and -1 have an inverse; an even power of -1 has the last bit clear.
        bool minus = a == (T)-1;
        return a == 1 || (minus && (b & 1) == 0) ? (T)1 : minus ? a : (T)0;
    }
    T power = 1, base = a;
    typename Number<T>::Unsigned left = (typename Number<T>::Unsigned)b;
    while (left != 0) {
        power = (left & 1) == 1 ? p_mul(power, base) : power;
        base = p_mul(base, base);
        left >>= 1;
    }
    return power;
}

}  // namespace tn

// The remainder with the divisor's sign.
template <class T>
TN_FN T p_mod(T a, T b) {
    return tn::modulo(a, b);
}

template <class T>
TN_FN T p_pow(T a, T b) {
    return tn::pow(a, b);
}

template <class T>
TN_FN T p_max(T a, T b) {
    return a > b || a != a ? a : b;
}

template <class T>
TN_FN T p_min(T a, T b) {
    return a < b || a != a ? a : b;
}

template <class T>
TN_FN T p_not(T x) {
    return (T)~(typename tn::Number<T>::Wide)x;
}

template <class T>
TN_FN T p_and(T a, T b) {
    return (T)(a & b);
}

template <class T>
TN_FN T p_or(T a, T b) {
    return (T)(a | b);
}

template <class T>
TN_FN T p_xor(T a, T b) {
    return (T)(a ^ b);
}

template <class T>
TN_FN T p_shl(T a, T b) {
    typedef tn::Number<T> N;
    typename N::Unsigned by = (typename N::Unsigned)b;
    return by < N::BITS ? (T)((typename N::Wide)a << by) : (T)0;
}

template <class T>
TN_FN T p_shr(T a, T b) {
    typedef tn::Number<T> N;
    typename N::Unsigned by = (typename N::Unsigned)b;
    // Shifting a signed number by its width less one leaves its sign alone.
    T shifted = (T)(a >> (by < N::BITS ? (u32)by : N::BITS - 1));
    return by < N::BITS || N::SIGNED ? shifted : (T)0;
}
