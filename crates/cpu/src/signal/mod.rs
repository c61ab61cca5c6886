//! Fourier transforms along the last axis, on real and imaginary parts.
//!
//! Written here rather than taken from `rustfft`: its plans hold tables as long as the signal, which they allocate and keep
//! out of any ledger's sight, and it wants real and imaginary parts interleaved, which here are two tensors. So the
//! tables are made in lent scratch, once a call for all rows (`tables`), and both parts are read as they lie.
//!
//! A length decides how it is transformed (`method`). All of it comes down to rows that lie side by side, a lane each
//! (`lanes`), brought there and back by transposing squares (`transpose`); `plan` puts it together.
//!
//! Decision: `docs/decisions/own-fourier-transforms.md`.

pub mod complex;
pub mod irfft;
mod lanes;
mod method;
mod packed_real;
mod plan;
mod real;
pub mod rfft;
mod small;
mod tables;
mod transpose;
