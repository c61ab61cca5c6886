//! Elementwise ops: tile programs of one or a few primitives.

pub mod add;
pub mod cast;
pub mod div;
pub mod equal;
pub mod exp;
pub mod identity;
pub mod less;
pub mod log;
pub mod maximum;
pub mod mul;
pub mod neg;
pub mod relu;
pub mod relu_grad;
pub mod square;
pub mod stop_gradient;
pub mod sub;
pub mod tanh;
pub mod where_;
