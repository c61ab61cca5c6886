//! The headers of `kernels/`: the scalar functions behind the primitives, with the CPU's bits.
//!
//! They hold the formulas of `tonnage_simd` once more, as text for a compiler of CUDA C. Invariant: bit for bit the same
//! results as the CPU has at a level with a fused multiply-add, NaN's payload aside; only of sine, cosine and tangent beyond 10^6
//! the last bits may differ, where the CPU asks the platform's library. `tests/formulas` holds it.

/// What a thread computes by itself. Name and text of each header, in the order that they are to be included in: none includes another.
///
/// A kernel calls, for values of dtype `T`:
///
/// * `p_<primitive>`: functions of numbers, by the primitive's name in snake case; those that say yes or no give a `u8` of 0 or 1.
/// * `b_<primitive>`: the same of booleans, which are a `u8` too.
/// * `p_cast<T>(x)`, `b_cast_from(x)`, `b_cast_to<T>(x)`: casts between numbers, to a boolean, and from one.
/// * `f16_load`, `f16_store`, `f16_round`, and the same for `bf16`: 16-bit floats, which registers hold as `f32`.
/// * `random_<distribution>_<dtype>(key0, key1, index)`: an element of a stream; `random_below_<dtype>` takes the bound last.
///
/// Operands of one call have the same type exactly: a literal is cast.
pub const FORMULAS: &[(&str, &str)] = &[
    ("base.cuh", include_str!("../kernels/base.cuh")),
    ("real.cuh", include_str!("../kernels/real.cuh")),
    ("curves.cuh", include_str!("../kernels/curves.cuh")),
    ("exp.cuh", include_str!("../kernels/exp.cuh")),
    ("log.cuh", include_str!("../kernels/log.cuh")),
    ("trig.cuh", include_str!("../kernels/trig.cuh")),
    ("inverse.cuh", include_str!("../kernels/inverse.cuh")),
    ("erf.cuh", include_str!("../kernels/erf.cuh")),
    ("pow.cuh", include_str!("../kernels/pow.cuh")),
    ("sigmoid.cuh", include_str!("../kernels/sigmoid.cuh")),
    ("gelu.cuh", include_str!("../kernels/gelu.cuh")),
    ("gamma.cuh", include_str!("../kernels/gamma.cuh")),
    ("number.cuh", include_str!("../kernels/number.cuh")),
    ("half.cuh", include_str!("../kernels/half.cuh")),
    ("cast.cuh", include_str!("../kernels/cast.cuh")),
    ("random.cuh", include_str!("../kernels/random.cuh")),
    ("prim.cuh", include_str!("../kernels/prim.cuh")),
    ("tile.cuh", include_str!("../kernels/tile.cuh")),
];

/// What the threads of a block do together, and what they tell the host; behind [`FORMULAS`].
pub const COMMON: &[(&str, &str)] = &[
    ("guard.cuh", include_str!("../kernels/guard.cuh")),
    ("rows.cuh", include_str!("../kernels/rows.cuh")),
    ("prefix.cuh", include_str!("../kernels/prefix.cuh")),
    ("order.cuh", include_str!("../kernels/order.cuh")),
];

/// All of them, in their order.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    FORMULAS.iter().chain(COMMON).copied()
}
