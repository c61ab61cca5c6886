//! A partial result joined with the same one repeatedly, in a few steps, to the very bits.
//!
//! Sums of what is the same everywhere (fills and functions of them) meet one block a million times. While a sum stays
//! between two powers of two, adding the same number moves it by the same distance each time, once a tie has gone to
//! the even side; so many of those additions are one multiplication, and nothing is rounded in it.

use tonnage_core::tile::Reduction;
use tonnage_core::{Class, DType};

use super::partial::{Bits, join};

/// `sum` joined with `bits` that many times, one after the other.
pub fn repeated(reduction: Reduction, dtype: DType, sum: Bits, bits: Bits, times: usize) -> Bits {
    match (reduction, dtype.class()) {
        (Reduction::Sum | Reduction::Mean, Class::Float) => {
            added(f64::from_bits(sum), f64::from_bits(bits), times).to_bits()
        }
        (Reduction::Sum, _) => sum.wrapping_add(bits.wrapping_mul(times as u64)),
        // Once is as good as often.
        (Reduction::Max | Reduction::Min | Reduction::Any | Reduction::All, _) => {
            if times > 0 {
                join(reduction, dtype, sum, bits)
            } else {
                sum
            }
        }
        (Reduction::Mean | Reduction::Prod, _) => {
            (0..times).fold(sum, |sum, _| join(reduction, dtype, sum, bits))
        }
    }
}

fn added(mut sum: f64, x: f64, mut times: usize) -> f64 {
    while times > 0 {
        let next = sum + x;
        times -= 1;
        if next.to_bits() == sum.to_bits() || next.is_nan() {
            return next;
        }
        sum = next;
        let (second, third) = (sum + x, sum + x + x);
        let step = second - sum;
        let even = third - second == step && step != 0.0;
        let Some(edge) = edge(sum, step).filter(|_| even) else { continue };
        if binade(second) != binade(sum) || binade(third) != binade(sum) {
            continue;
        }
        // One less than there is room for: a quotient may have been rounded up.
        let room = ((edge - sum) / step) as usize;
        let steps = room.saturating_sub(1).min(times);
        sum += steps as f64 * step;
        times -= steps;
    }
    sum
}

/// Sign and exponent.
fn binade(x: f64) -> u64 {
    x.to_bits() >> 52
}

/// The end of a number's powers of two in that direction; none for the smallest and largest, which step by step will do for.
fn edge(x: f64, step: f64) -> Option<f64> {
    let exponent = binade(x) & 0x7ff;
    let grows = (step > 0.0) == (x > 0.0);
    let power = f64::from_bits((exponent + u64::from(grows)) << 52);
    (exponent > 0 && exponent < 0x7fe).then(|| power.copysign(x))
}
