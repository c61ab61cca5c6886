//! The kernel of `random_categorical`: memory is that of the result.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::{FromScalar, with_element};

use super::draw::{Draw, read_key};
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::parallel::{rows_at_once, strides};
use crate::strided::{self, Positions};
use crate::workers::for_each_chunk;

/// The kernel of [`RANDOM_CATEGORICAL`](tonnage_ops::random::categorical::RANDOM_CATEGORICAL).
pub static RANDOM_CATEGORICAL: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let Attrs::Count(samples) = *k.attrs else { return Ok(()) };
    let (logits, key) = (&k.inputs[0], read_key(&k.inputs[1]));
    let (layout, last) = (&logits.layout, logits.layout.sizes.len() - 1);
    let (n, step) = (layout.sizes[last], layout.strides[last]);
    let outer = strided::axes(layout, 0..last);
    let starts = Positions::of(outer);
    let out = k.outputs[0].slice::<i64>();
    let at_once = rows_at_once(n);
    with_element!(logits.dtype, T => {
        let data = logits.slice::<T>();
        for_each_chunk(k.workers, out, (samples * at_once).max(1), &|chunk, out| {
            for (i, out) in out.chunks_mut(samples).enumerate() {
                let row = chunk * at_once + i;
                let start = starts.at(row) as isize;
                let logit = |j: usize| data[(start + j as isize * step) as usize].to_scalar().to_f64();
                let classes = || strides(k.workers, 0..n, 1).flatten();
                let most = classes().map(logit).fold(f64::NEG_INFINITY, f64::max);
                // Level with the largest also where both are infinite.
                let weight = |j: usize| match logit(j) {
                    x if x.is_nan() => 0.0,
                    x if x == most => 1.0,
                    x => (x - most).exp(),
                };
                let total: f64 = classes().map(weight).sum();
                for (s, to) in out.iter_mut().enumerate() {
                    let number = (row * samples + s) as u64;
                    let share = Draw::new(key, number).uniforms()[0] * total;
                    let (mut sum, mut class) = (0.0, 0);
                    for j in classes() {
                        let more = weight(j);
                        if more > 0.0 {
                            class = j;
                            sum += more;
                        }
                        if sum >= share {
                            break;
                        }
                    }
                    *to = class as i64;
                }
            }
        })?;
    });
    Ok(())
}
