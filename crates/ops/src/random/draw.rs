//! Random words for kernels that need an unknown number of them for each element.
//!
//! An element draws from blocks of its own: which ones depends on the key and its number alone. The functions are the
//! platform's: there is no vector to fill where one element draws twice and its neighbour five times.

use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::kernel::In;
use tonnage_core::{DType, Shape, TensorType};

use crate::simd::philox::block;

/// Refuses a key that is not two words.
pub fn check_key(op: &'static str, key: &TensorType) -> Result<()> {
    if key.dtype != DType::U32 {
        let supported = "u32 for a key";
        return Err(ErrorKind::DTypeUnsupported { op, dtype: key.dtype, supported }.into());
    }
    let needed = Shape::from([2]);
    match key.shape == needed {
        true => Ok(()),
        false => {
            let (left, right) = (key.shape.clone(), needed);
            let help = "a key is two words".into();
            Err(ErrorKind::ShapeMismatch { op, left, right, help }.into())
        }
    }
}

/// The words of a key.
pub fn read_key(key: &In) -> [u32; 2] {
    let (data, layout) = (key.slice::<u32>(), &key.layout);
    [0, 1].map(|i| data.get(layout.position(&[i])).copied().unwrap_or(0))
}

/// Draws for one element.
pub struct Draw {
    key: [u32; 2],
    element: u64,
    next: u32,
}

impl Draw {
    /// For the element of that number.
    pub fn new(key: [u32; 2], element: u64) -> Draw {
        Draw { key, element, next: 0 }
    }

    fn words(&mut self) -> [u32; 4] {
        let counter = [self.element as u32, (self.element >> 32) as u32, self.next, 2];
        self.next = self.next.wrapping_add(1);
        block(self.key, counter)
    }

    /// Two uniform numbers in (0, 1).
    pub fn uniforms(&mut self) -> [f64; 2] {
        let words = self.words();
        let uniform = |low: u32, high: u32| {
            let bits = (u64::from(low) | u64::from(high) << 32) >> 11;
            (bits as f64 + 0.5) / (1u64 << 53) as f64
        };
        [uniform(words[0], words[1]), uniform(words[2], words[3])]
    }

    /// A standard normal number, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let [radius, angle] = self.uniforms();
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}
