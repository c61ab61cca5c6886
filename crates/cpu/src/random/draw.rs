//! Random words for kernels that need an unknown number of them for each element.
//!
//! There is no vector to fill where one element draws twice and its neighbour five times; the functions are those that vectors have, so that
//! other devices give the same bits.

use tonnage_core::lent::In;
use tonnage_core::philox::block;
use tonnage_simd::Isa;
use tonnage_simd::float::{cos, log, sqrt};

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
    #[inline(always)]
    pub fn normal<I: Isa>(&mut self) -> f64 {
        let [radius, angle] = self.uniforms();
        sqrt::<I, f64>(-2.0 * log::<I, f64>(radius)) * cos::<I, f64>(std::f64::consts::TAU * angle)
    }
}
