//! Floats that kernels compute with: `f64` and `f32` as they are, `f16` and `bf16` in `f32`.

use tonnage_core::{bf16, f16};

use crate::linalg::gemm::{Output, Reads};

/// A float dtype that is read into what it is computed in, and rounded from it.
pub trait Float: Output + Reads<<Self as Output>::Compute> {}

impl Float for f64 {}
impl Float for f32 {}
impl Float for f16 {}
impl Float for bf16 {}

/// Runs a block with `$T` bound to a float type; for any other dtype, returns the error that the type rule of `$op`
/// gives too.
macro_rules! with_float {
    ($op:expr, $dtype:expr, $T:ident => $body:expr) => {{
        macro_rules! arm {
            ($rust:ty) => {{
                type $T = $rust;
                $body
            }};
        }
        match $dtype {
            tonnage_core::DType::F64 => arm!(f64),
            tonnage_core::DType::F32 => arm!(f32),
            tonnage_core::DType::F16 => arm!(tonnage_core::f16),
            tonnage_core::DType::BF16 => arm!(tonnage_core::bf16),
            dtype => {
                let supported = "f64, f32, f16 or bf16 (cast first)";
                let kind = tonnage_core::ErrorKind::DTypeUnsupported { op: $op, dtype, supported };
                Err(kind.into())
            }
        }
    }};
}

pub(crate) use with_float;
