// The primitives by name, as generated kernels call them; arithmetic is in number.cuh. The original: simd/elementwise.rs.
//
// A boolean is a u8 of 0 or 1; any other byte comes in as 1.

template <class T> TN_FN T p_floor(T x) { return tn::floor(x); }
template <class T> TN_FN T p_ceil(T x) { return tn::ceil(x); }
template <class T> TN_FN T p_round(T x) { return tn::round(x); }
template <class T> TN_FN T p_sqrt(T x) { return tn::sqrt(x); }
template <class T> TN_FN T p_exp(T x) { return tn::exp(x); }
template <class T> TN_FN T p_expm1(T x) { return tn::expm1(x); }
template <class T> TN_FN T p_log(T x) { return tn::log(x); }
template <class T> TN_FN T p_log1p(T x) { return tn::log1p(x); }
template <class T> TN_FN T p_sin(T x) { return tn::sin(x); }
template <class T> TN_FN T p_cos(T x) { return tn::cos(x); }
template <class T> TN_FN T p_tan(T x) { return tn::tan(x); }
template <class T> TN_FN T p_asin(T x) { return tn::asin(x); }
template <class T> TN_FN T p_acos(T x) { return tn::acos(x); }
template <class T> TN_FN T p_atan(T x) { return tn::atan(x); }
template <class T> TN_FN T p_sinh(T x) { return tn::sinh(x); }
template <class T> TN_FN T p_cosh(T x) { return tn::cosh(x); }
template <class T> TN_FN T p_tanh(T x) { return tn::tanh(x); }
template <class T> TN_FN T p_asinh(T x) { return tn::asinh(x); }
template <class T> TN_FN T p_acosh(T x) { return tn::acosh(x); }
template <class T> TN_FN T p_atanh(T x) { return tn::atanh(x); }
template <class T> TN_FN T p_sigmoid(T x) { return tn::sigmoid(x); }
template <class T> TN_FN T p_softplus(T x) { return tn::softplus(x); }
template <class T> TN_FN T p_silu(T x) { return tn::silu(x); }
template <class T> TN_FN T p_gelu(T x) { return tn::gelu(x); }
template <class T> TN_FN T p_gelu_tanh(T x) { return tn::gelu_tanh(x); }
template <class T> TN_FN T p_erf(T x) { return tn::erf(x); }
template <class T> TN_FN T p_erfc(T x) { return tn::erfc(x); }
template <class T> TN_FN T p_lgamma(T x) { return tn::lgamma(x); }
template <class T> TN_FN T p_digamma(T x) { return tn::digamma(x); }

template <class T> TN_FN T p_rsqrt(T x) { return (T)1 / tn::sqrt(x); }
template <class T> TN_FN T p_reciprocal(T x) { return (T)1 / x; }

template <class T> TN_FN T p_atan2(T a, T b) { return tn::atan2(a, b); }
template <class T> TN_FN T p_hypot(T a, T b) { return tn::hypot(a, b); }
template <class T> TN_FN T p_polygamma(T a, T b) { return tn::polygamma(a, b); }

template <class T> TN_FN u8 p_is_nan(T x) { return x != x; }
template <class T> TN_FN u8 p_is_inf(T x) { return tn::abs(x) == tn::Real<T>::infinity(); }
template <class T> TN_FN u8 p_is_finite(T x) { return tn::abs(x) < tn::Real<T>::infinity(); }

template <class T> TN_FN u8 p_eq(T a, T b) { return a == b; }
template <class T> TN_FN u8 p_ne(T a, T b) { return a != b; }
template <class T> TN_FN u8 p_lt(T a, T b) { return a < b; }
template <class T> TN_FN u8 p_le(T a, T b) { return a <= b; }
template <class T> TN_FN u8 p_gt(T a, T b) { return a > b; }
template <class T> TN_FN u8 p_ge(T a, T b) { return a >= b; }

template <class T> TN_FN T p_select(u8 condition, T a, T b) { return condition != 0 ? a : b; }

TN_FN u8 b_not(u8 x) { return x == 0; }
TN_FN u8 b_and(u8 a, u8 b) { return (a != 0) & (b != 0); }
TN_FN u8 b_or(u8 a, u8 b) { return (a != 0) | (b != 0); }
TN_FN u8 b_xor(u8 a, u8 b) { return (a != 0) != (b != 0); }
TN_FN u8 b_max(u8 a, u8 b) { return b_or(a, b); }
TN_FN u8 b_min(u8 a, u8 b) { return b_and(a, b); }
TN_FN u8 b_eq(u8 a, u8 b) { return (a != 0) == (b != 0); }
TN_FN u8 b_ne(u8 a, u8 b) { return b_xor(a, b); }
TN_FN u8 b_lt(u8 a, u8 b) { return (a == 0) & (b != 0); }
TN_FN u8 b_le(u8 a, u8 b) { return (a == 0) | (b != 0); }
TN_FN u8 b_gt(u8 a, u8 b) { return b_lt(b, a); }
TN_FN u8 b_ge(u8 a, u8 b) { return b_le(b, a); }
