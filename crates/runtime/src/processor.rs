//! What the processor of this machine has, as far as kernels use it.

use tonnage_cpu::linalg::gemm::matrix_unit;
use tonnage_simd::level;

/// The processor, as kernels use it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Processor {
    /// Cores that this process may use.
    pub cores: usize,
    /// The vector instructions of the kernels: `portable`, `avx2`, `avx512`.
    pub vectors: String,
    /// How wide their vectors are, in bytes.
    pub vector_bytes: usize,
    /// The unit for products of matrices, where there is one that kernels use.
    pub matrix_unit: Option<&'static str>,
}

impl Processor {
    /// That of this machine.
    pub fn of_this_machine() -> Processor {
        Processor {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            vectors: level().to_string(),
            vector_bytes: level().bytes(),
            matrix_unit: matrix_unit(),
        }
    }
}
