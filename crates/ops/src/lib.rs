//! The ops of Tonnage. Today: the vector layer that everything elementwise runs on.

pub mod simd;
