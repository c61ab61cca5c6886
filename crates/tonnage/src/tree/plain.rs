//! Plain values: no tensors in them, and another value is another trace.

use std::fmt::{Debug, Write};

use tonnage_core::{Result, bf16, f16};

use super::Tree;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A plain value of any type that can be cloned and printed: a configuration, an enum. Its `Debug` text is
/// part of a function's signature, so two values that print alike are the same to it.
///
/// ```
/// use tonnage::{Elementwise, Static, Tensor, function, tensor};
/// #[derive(Debug, Clone)]
/// enum Activation { Relu, Tanh }
/// let f = function(|(x, how): (Tensor, Static<Activation>)| match how.0 {
///     Activation::Relu => x.relu(),
///     Activation::Tanh => x.tanh(),
/// });
/// let x = tensor([-1.0f32, 2.0])?;
/// assert_eq!(f.call((x.clone(), Static(Activation::Relu)))?.to_vec::<f32>()?, [0.0, 2.0]);
/// f.call((x, Static(Activation::Tanh)))?;
/// assert_eq!(f.traces(), 2);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Static<T>(pub T);

macro_rules! plain {
    ($(($($generic:tt)*) $T:ty, |$value:ident, $text:ident| $describe:expr;)*) => {$(
        impl $($generic)* Tree for $T {
            fn for_each(&self, _: &mut dyn FnMut(&Tensor)) {}
            fn map(self, _: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Self> {
                Ok(self)
            }
            fn take(self, _: &mut dyn FnMut(Tensor)) {}
            fn share(&self) -> Self {
                Clone::clone(self)
            }
            fn describe(&self, $text: &mut String) {
                let $value = self;
                // Writing to a string cannot fail.
                let _ = $describe;
            }
        }
    )*};
}

plain! {
    () (), |_value, text| { text.push_str("()"); };
    () bool, |value, text| write!(text, "{value}");
    () char, |value, text| write!(text, "{value:?}");
    () i8, |value, text| write!(text, "{value}i8");
    () i16, |value, text| write!(text, "{value}i16");
    () i32, |value, text| write!(text, "{value}i32");
    () i64, |value, text| write!(text, "{value}i64");
    () i128, |value, text| write!(text, "{value}i128");
    () isize, |value, text| write!(text, "{value}isize");
    () u8, |value, text| write!(text, "{value}u8");
    () u16, |value, text| write!(text, "{value}u16");
    () u32, |value, text| write!(text, "{value}u32");
    () u64, |value, text| write!(text, "{value}u64");
    () u128, |value, text| write!(text, "{value}u128");
    () usize, |value, text| write!(text, "{value}usize");
    // The shortest text that reads back as the same float: 0.0 and -0.0 differ, all NaN are one.
    () f16, |value, text| write!(text, "{value:?}f16");
    () bf16, |value, text| write!(text, "{value:?}bf16");
    () f32, |value, text| write!(text, "{value:?}f32");
    () f64, |value, text| write!(text, "{value:?}f64");
    () String, |value, text| write!(text, "{value:?}");
    () &'static str, |value, text| write!(text, "{value:?}");
    () tonnage_core::DType, |value, text| write!(text, "{value}");
    () tonnage_core::Shape, |value, text| write!(text, "{value}");
    // A variable is itself: its value may change without another trace.
    () Variable, |value, text| write!(text, "variable {} `{}`", value.number(), value.name());
    (<T: Clone + Debug>) Static<T>, |value, text| write!(text, "{:?}", value.0);
}
