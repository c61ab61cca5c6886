//! Where a load reads from, and how a tile of it is brought into a register.

use std::borrow::Cow;

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use tonnage_core::layout::Layout;
use tonnage_core::recipe::{Distribution, Generator, Key};
use tonnage_core::walk::{Even, EvenRows};
use tonnage_core::{Class, DType, FromScalar, with_element};

use super::stored;
use crate::strided;
use tonnage_simd::cast::cast;
use tonnage_simd::philox::Stream;
use tonnage_simd::{level, random};

/// What a load reads.
#[derive(Debug, Clone, Copy)]
pub enum Read<'a> {
    /// Bytes that are lent.
    Slice(&'a [u8]),
    /// The bytes of the output of that number: in place.
    Output(usize),
    /// Values that are made as they are read.
    Generator(&'a Generator),
}

/// What a load reads, and where the element at each index of the domain lies.
#[derive(Debug, Clone)]
pub struct TileSource<'a> {
    /// Over the domain's sizes; of bits, which lie in the domain's order: unused.
    pub layout: Cow<'a, Layout>,
    /// What is read.
    pub read: Read<'a>,
}

/// How a load reads its elements in the domain's order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    rows: EvenRows<'a>,
    uniform: bool,
}

impl<'a> Reader<'a> {
    pub fn new(layout: &'a Layout) -> Reader<'a> {
        let mut axes = layout.sizes.iter().zip(&layout.strides);
        let uniform = axes.all(|(n, stride)| *n == 1 || *stride == 0);
        Reader { rows: EvenRows::new(layout), uniform }
    }

    /// True where every index reads the same element.
    pub fn is_uniform(&self) -> bool {
        self.uniform
    }

    /// The position of the first element, where all follow it in order.
    pub fn contiguous(&self) -> Option<usize> {
        let runs = self.rows.runs();
        (runs.even() == Some(1)).then(|| runs.start())
    }

    /// Calls `visit` for rows of even runs among elements `start..start + len`.
    fn for_each(&self, start: usize, len: usize, mut visit: impl FnMut(Even)) {
        match self.uniform {
            // Also where the domain is empty and a length of 1 was broadcast to it.
            true => {
                let at = self.rows.runs().start();
                visit(Even { at, rows: 1, row_step: 0, count: len, step: 0 });
            }
            false => self.rows.for_each(start, len, visit),
        }
    }

    /// Copies elements `start..` of the domain from `from` into `out`, as they lie there.
    pub fn gather(&self, dtype: DType, from: &[u8], start: usize, out: &mut [u8]) {
        // By size: a copy does not care what the bits mean.
        match dtype.size() {
            8 => self.gather_as::<u64>(from, start, out),
            4 => self.gather_as::<u32>(from, start, out),
            2 => self.gather_as::<u16>(from, start, out),
            _ => self.gather_as::<u8>(from, start, out),
        }
    }

    fn gather_as<T: Pod>(&self, from: &[u8], start: usize, out: &mut [u8]) {
        let (from, out): (&[T], &mut [T]) = (cast_slice(from), cast_slice_mut(out));
        let mut filled = 0;
        self.for_each(start, out.len(), |even| {
            let count = even.rows * even.count;
            strided::copy_even(from, even, &mut out[filled..filled + count]);
            filled += count;
        });
    }

    /// Makes elements `start..` of the domain, in the generator's own dtype.
    pub fn generate(&self, generator: &Generator, start: usize, out: &mut [u8]) {
        let size = generator.dtype().size();
        let mut rest = out;
        self.for_each(start, rest.len() / size, |even| {
            let (all, behind) =
                std::mem::take(&mut rest).split_at_mut(even.rows * even.count * size);
            rest = behind;
            let row = even.count * size;
            // A row that repeats is made once.
            let made = if even.row_step == 0 { row } else { all.len() };
            for (i, part) in all[..made].chunks_exact_mut(row).enumerate() {
                run(generator, even.row(i), even.step, size, part);
            }
            strided::repeat_start(all, made);
        });
    }
}

/// Values of a generator at an even step.
fn run(generator: &Generator, at: usize, step: isize, size: usize, part: &mut [u8]) {
    if let Generator::Stored { elements, .. } = generator {
        return stored::read(&*elements.0, size, (at, step), part);
    }
    match step {
        1 => values(generator, at as u64, part),
        0 => {
            values(generator, at as u64, &mut part[..size]);
            repeat(size, part);
        }
        _ => {
            for (i, x) in part.chunks_exact_mut(size).enumerate() {
                let at = at as isize + i as isize * step;
                values(generator, at as u64, x);
            }
        }
    }
}

/// The first element, of that many bytes, everywhere. By type: a length that is known at run time alone is a call each.
pub(super) fn repeat(size: usize, elements: &mut [u8]) {
    fn all<T: Pod>(elements: &mut [u8]) {
        if let [first, rest @ ..] = cast_slice_mut::<u8, T>(elements) {
            rest.fill(*first);
        }
    }
    match size {
        8 => all::<u64>(elements),
        4 => all::<u32>(elements),
        2 => all::<u16>(elements),
        _ => all::<u8>(elements),
    }
}

macro_rules! counted {
    ($T:ident, $first:expr, $step:expr, $start:expr, $out:expr) => {{
        let (first, step) = ($first.to_i128() as $T, $step.to_i128() as $T);
        let first = first.wrapping_add(step.wrapping_mul($start as $T));
        for (i, x) in cast_slice_mut::<u8, $T>($out).iter_mut().enumerate() {
            *x = first.wrapping_add(step.wrapping_mul(i as $T));
        }
    }};
}

/// Values of a generator from a position on, in its own dtype.
pub fn values(generator: &Generator, start: u64, out: &mut [u8]) {
    match *generator {
        Generator::Count { start: first, step, dtype } => match (dtype.class(), dtype.size()) {
            (Class::Float, _) => with_element!(dtype, T => {
                let (first, step) = (first.to_f64(), step.to_f64());
                for (i, x) in cast_slice_mut::<u8, T>(out).iter_mut().enumerate() {
                    let value = first + step * (start + i as u64) as f64;
                    *x = T::from_scalar(value.into());
                }
            }),
            // Whole numbers wrap around, so each width counts in its own low bits.
            (_, 8) => counted!(u64, first, step, start, out),
            (_, 4) => counted!(u32, first, step, start, out),
            (_, 2) => counted!(u16, first, step, start, out),
            _ => counted!(u8, first, step, start, out),
        },
        Generator::Random { key, distribution, dtype } => {
            random_values(key, distribution, dtype, start, out);
        }
        Generator::Stored { ref elements, .. } => elements.0.read(start, out),
        Generator::Given { .. } => out.fill(0), // the executor puts in what the call brings
    }
}

fn random_values(key: Key, distribution: Distribution, dtype: DType, start: u64, out: &mut [u8]) {
    let key = match key {
        Key::Fixed(key) => key,
        Key::PerCall(n) => [n, 0], // the executor fixes these before anything is read
    };
    let level = level();
    let stream = Stream { key, nonce: [0, 0] };
    match (distribution, dtype) {
        (Distribution::Uniform, DType::F64) => {
            random::uniform_f64(level, stream, start, cast_slice_mut(out));
        }
        (Distribution::Normal, DType::F64) => {
            random::normal_f64(level, stream, start, cast_slice_mut(out));
        }
        (Distribution::Uniform, DType::F32) => {
            random::uniform_f32(level, stream, start, cast_slice_mut(out));
        }
        (Distribution::Normal, DType::F32) => {
            random::normal_f32(level, stream, start, cast_slice_mut(out));
        }
        (Distribution::TruncatedNormal, DType::F64) => {
            random::truncated_normal_f64(stream, start, cast_slice_mut(out));
        }
        (Distribution::TruncatedNormal, DType::F32) => {
            random::truncated_normal_f32(stream, start, cast_slice_mut(out));
        }
        (Distribution::Bits, _) => bits(stream, dtype, start, out),
        (Distribution::Below(below), _) => {
            // As many bytes of each as the dtype has: what does not fit them was refused.
            let mut wide = [0u64; 64];
            for (i, part) in out.chunks_mut(64 * dtype.size()).enumerate() {
                let wide = &mut wide[..part.len() / dtype.size()];
                random::below_u64(level, stream, start + 64 * i as u64, below, wide);
                cast(DType::U64, dtype)(level, part, cast_slice(wide));
            }
        }
        (_, half) => {
            // 16-bit floats are rounded f32 numbers, a few at a time; uniform ones downwards, for 1 is none of them.
            let mut wide = [0f32; 64];
            let steps = if half == DType::F16 { 2f32.powi(11) } else { 2f32.powi(8) };
            for (i, part) in out.chunks_mut(64 * half.size()).enumerate() {
                let wide = &mut wide[..part.len() / half.size()];
                let at = start + 64 * i as u64;
                match distribution {
                    Distribution::Normal => random::normal_f32(level, stream, at, wide),
                    Distribution::TruncatedNormal => random::truncated_normal_f32(stream, at, wide),
                    _ => {
                        random::uniform_f32(level, stream, at, wide);
                        wide.iter_mut().for_each(|x| *x = (*x * steps).floor() / steps);
                    }
                }
                cast(DType::F32, half)(level, part, cast_slice(wide));
            }
        }
    }
}

fn bits(stream: Stream, dtype: DType, start: u64, out: &mut [u8]) {
    match dtype.size() {
        8 => random::bits_u64(level(), stream, start, cast_slice_mut(out)),
        4 => random::bits_u32(level(), stream, start, cast_slice_mut(out)),
        size => {
            // Narrow integers keep the low bits of a word each.
            for (i, x) in out.chunks_exact_mut(size).enumerate() {
                let mut word = [0u32];
                random::bits_u32(level(), stream, start + i as u64, &mut word);
                x.copy_from_slice(&word[0].to_le_bytes()[..size]);
            }
        }
    }
}
