//! The kernel of `random_categorical`: memory is that of the result.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::{FromScalar, with_element};
use tonnage_simd::float::exp;
use tonnage_simd::{Isa, SimdKernel, level};

use super::draw::{Draw, read_key};
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::parallel::{rows_at_once, strides};
use crate::strided::{self, Positions};
use crate::workers::{Workers, for_each_chunk};

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
                let Some(classes) = Classes::of(n, k.workers, &logit) else { return };
                for (s, to) in out.iter_mut().enumerate() {
                    let number = (row * samples + s) as u64;
                    let share = Draw::new(key, number).uniforms()[0] * classes.total;
                    *to = classes.at(share, &logit) as i64;
                }
            }
        })?;
    });
    Ok(())
}

/// Parts of the classes: each is added up on its own, and they in order, so that a device can share them among threads.
const PARTS: usize = 256;

/// Logits whose weights are computed at once.
const AT_ONCE: usize = 64;

/// The weights of a row of classes.
struct Classes {
    n: usize,
    /// Classes of a part.
    each: usize,
    /// The largest logit.
    most: f64,
    /// Of each part.
    sums: [f64; PARTS],
    total: f64,
}

impl Classes {
    /// Those of `n` logits; nothing where the work is stopped.
    fn of(n: usize, workers: &dyn Workers, logit: &dyn Fn(usize) -> f64) -> Option<Classes> {
        let most = strides(workers, 0..n, 1).flatten().map(logit).fold(f64::NEG_INFINITY, f64::max);
        let each = n.div_ceil(PARTS).max(1);
        let (sums, total) = ([0.0; PARTS], 0.0);
        let mut classes = Classes { n, each, most, sums, total };
        for part in 0..n.div_ceil(each) {
            if workers.is_stopped() {
                return None;
            }
            let mut sum = 0.0;
            classes.weights(part, logit, |_, weight| {
                sum += weight;
                false
            });
            classes.sums[part] = sum;
        }
        classes.total = classes.sums.iter().fold(0.0, |total, sum| total + sum);
        Some(classes)
    }

    /// Gives the weights of a part's classes in order, until that is enough.
    fn weights(
        &self,
        part: usize,
        logit: &dyn Fn(usize) -> f64,
        mut enough: impl FnMut(usize, f64) -> bool,
    ) {
        let end = ((part + 1) * self.each).min(self.n);
        for first in (part * self.each..end).step_by(AT_ONCE) {
            let mut weights = [0.0; AT_ONCE];
            let count = AT_ONCE.min(end - first);
            for (j, to) in weights[..count].iter_mut().enumerate() {
                *to = logit(first + j);
            }
            level().run(Weights { of: &mut weights[..count], most: self.most });
            for (j, weight) in weights[..count].iter().enumerate() {
                if enough(first + j, *weight) {
                    return;
                }
            }
        }
    }

    /// The class that a share of all weights falls to: the last one of any weight where rounding leaves it beyond all.
    fn at(&self, share: f64, logit: &dyn Fn(usize) -> f64) -> usize {
        let (mut found, mut before, mut sum) = (0, 0.0, 0.0);
        for (part, own) in self.sums.iter().enumerate().filter(|(_, own)| **own > 0.0) {
            (found, before) = (part, sum);
            sum += own;
            if sum >= share {
                break;
            }
        }
        let (mut class, mut sum) = (0, before);
        self.weights(found, logit, |j, weight| {
            if weight > 0.0 {
                class = j;
                sum += weight;
            }
            weight > 0.0 && sum >= share
        });
        class
    }
}

/// Logits become weights.
struct Weights<'a> {
    of: &'a mut [f64],
    most: f64,
}

impl SimdKernel for Weights<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        for x in self.of {
            let weight = exp::<I, f64>(*x - self.most);
            // Level with the largest also where both are infinite.
            let weight = if *x == self.most { 1.0 } else { weight };
            *x = if x.is_nan() { 0.0 } else { weight };
        }
    }
}
