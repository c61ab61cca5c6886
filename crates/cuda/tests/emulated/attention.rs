//! Attention of 16-bit floats beside plain loops in f64: heads of all widths, more queries and keys than a tile has, groups, masks, rows that
//! lie apart. What a result may be off by follows from the roundings that it takes: of weights and results to 16 bits.

use tonnage_core::{Attrs, DType, Layout, Scalar};
use tonnage_cuda::driver::Status;
use tonnage_cuda::emit::{self, Launch, OpCall, Operand};
use tonnage_ops::nn::attention::forward::ATTENTION;
use tonnage_ops::nn::attention::grad::ATTENTION_GRAD;

use crate::Trial;
use crate::cases::float;
use crate::draw::{Buffer, Floats, Random};

/// Sizes, and what is hidden.
#[derive(Clone, Copy)]
struct Sizes {
    dtype: DType,
    /// Batch, heads of queries and of keys.
    heads: [usize; 3],
    /// Queries, keys, width of both, width of values.
    lengths: [usize; 4],
    causal: bool,
    mask: Option<Mask>,
    scale: f64,
    rows: Rows,
    /// The compute capability of the device.
    capability: (u32, u32),
}

/// A mask over heads, queries and keys.
#[derive(Clone, Copy, PartialEq)]
enum Mask {
    Hides,
    Added,
}

/// How rows lie.
#[derive(Clone, Copy, PartialEq)]
enum Rows {
    /// One after the other.
    InOrder,
    /// Those of queries, keys and values side by side, heads within: as one product makes them.
    SideBySide,
    /// At odd addresses.
    Odd,
    /// In any way: reversed, apart, one for all.
    Any,
}

/// A result for each element, and what it may be off by.
type Expected = Vec<(f64, f64)>;

struct Case {
    name: String,
    sizes: Sizes,
    grad: bool,
    operands: Vec<(Buffer, Layout, DType)>,
    expected: Vec<(Expected, DType)>,
    outputs: Vec<(u64, Buffer)>,
    lies: Vec<Layout>,
}

/// The numbers of an operand, in the order of its axes.
fn numbers((buffer, layout, dtype): &(Buffer, Layout, DType)) -> Vec<f64> {
    numbers_of(buffer.bytes(), layout, *dtype)
}

fn numbers_of(bytes: &[u8], layout: &Layout, dtype: DType) -> Vec<f64> {
    let size = dtype.size();
    let mut all = Vec::new();
    let sizes: Vec<usize> = layout.sizes.to_vec();
    for i in 0..layout.count() {
        let (mut rest, mut at) = (i, layout.offset as isize);
        for (axis, len) in sizes.iter().enumerate().rev() {
            at += (rest % len) as isize * layout.strides[axis];
            rest /= len;
        }
        let element = &bytes[at as usize * size..][..size];
        all.push(match dtype {
            DType::Bool => f64::from(element[0]),
            _ => float(dtype, element).unwrap(),
        });
    }
    all
}

fn of_numbers(numbers: &[f64], sizes: &[usize]) -> (Buffer, Layout, DType) {
    let mut buffer = Buffer::new(numbers.len() * 4);
    for (to, x) in buffer.bytes_mut().chunks_exact_mut(4).zip(numbers) {
        to.copy_from_slice(&(*x as f32).to_le_bytes());
    }
    (buffer, Layout::contiguous(sizes), DType::F32)
}

impl Sizes {
    /// An operand of `[batch, heads, length, width]`.
    fn operand(
        &self,
        random: &mut Random,
        heads: usize,
        length: usize,
        width: usize,
    ) -> (Buffer, Layout, DType) {
        let b = self.heads[0];
        let (row, offset) = match self.rows {
            Rows::InOrder => {
                let (buffer, layout) = random.tensor(self.dtype, &[b, heads, length, width]);
                return (buffer, layout, self.dtype);
            }
            Rows::Any => {
                let (buffer, layout) = random.view(self.dtype, &[b, heads, length, width]);
                return (buffer, layout, self.dtype);
            }
            Rows::SideBySide => (heads * width * 3, heads * width),
            Rows::Odd => (heads * width + 3, 1),
        };
        let mut buffer = Buffer::new((b * length * row + offset) * self.dtype.size());
        random.fill(self.dtype, buffer.bytes_mut());
        let strides = [length * row, width, row, 1].map(|stride| stride as isize);
        let strides = strides.into_iter().collect();
        let layout = Layout { sizes: [b, heads, length, width][..].into(), strides, offset };
        (buffer, layout, self.dtype)
    }

    fn mask(&self, random: &mut Random) -> Option<(Buffer, Layout, DType)> {
        let ([_, h, _], [t, s, ..]) = (self.heads, self.lengths);
        let mask = self.mask?;
        let dtype = if mask == Mask::Hides { DType::Bool } else { self.dtype };
        if self.rows == Rows::Any {
            let (buffer, layout) = random.view(dtype, &[h, t, s]);
            return Some((buffer, layout, dtype));
        }
        let (mut buffer, layout) = random.tensor(dtype, &[h, t, s]);
        // A query that sees nothing.
        let row = s * dtype.size();
        match mask {
            Mask::Hides => buffer.bytes_mut()[row..2 * row].fill(0),
            Mask::Added => {
                let hidden = match dtype {
                    DType::F16 => half::f16::NEG_INFINITY.to_le_bytes(),
                    _ => half::bf16::NEG_INFINITY.to_le_bytes(),
                };
                buffer.bytes_mut()[row..2 * row]
                    .chunks_exact_mut(2)
                    .for_each(|to| to.copy_from_slice(&hidden));
            }
        }
        Some((buffer, layout, dtype))
    }

    /// Both ops over the same numbers.
    fn cases(self, random: &mut Random) -> [Case; 2] {
        let ([b, h, g], [t, s, d, e]) = (self.heads, self.lengths);
        let draw = |random: &mut Random| {
            [(h, t, d), (g, s, d), (g, s, e), (h, t, e)]
                .map(|(heads, length, width)| self.operand(random, heads, length, width))
        };
        let [q, k, v, grad] = draw(random);
        let mask = self.mask(random);
        let [nq, nk, nv, ng] = [&q, &k, &v, &grad].map(numbers);
        let nm = mask.as_ref().map(numbers);
        // Of two roundings to 16 bits, and of sums in f32.
        let (half, single) = (if self.dtype == DType::F16 { 1e-3 } else { 8e-3 }, 2e-6);
        let mut means = vec![(0.0, 0.0); b * h * t * e];
        let (mut lse, mut shared) = (vec![(0.0, 0.0); b * h * t], vec![0.0; b * h * t]);
        let mut dq = vec![(0.0, 0.0); b * h * t * d];
        let mut dk = vec![(0.0, 0.0); b * g * s * d];
        let mut dv = vec![(0.0, 0.0); b * g * s * e];
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let size = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a * b).abs()).sum::<f64>();
        for (bh, i) in (0..b * h).flat_map(|bh| (0..t).map(move |i| (bh, i))) {
            let of_keys = bh / h * g + bh % h / (h / g);
            let query = &nq[(bh * t + i) * d..][..d];
            let key = |j: usize| (of_keys * s + j) * d..(of_keys * s + j + 1) * d;
            let value = |j: usize| (of_keys * s + j) * e..(of_keys * s + j + 1) * e;
            let own = (bh * t + i) * e..(bh * t + i + 1) * e;
            let mut scores = vec![f64::NEG_INFINITY; s];
            let mut largest = 0.0f64;
            for (j, score) in scores.iter_mut().enumerate() {
                let of_mask = nm.as_ref().map_or(1.0, |mask| mask[(bh % h * t + i) * s + j]);
                let hidden = self.causal && j + t > i + s;
                if hidden || self.mask == Some(Mask::Hides) && of_mask == 0.0 {
                    continue;
                }
                largest = largest.max(self.scale.abs() * size(query, &nk[key(j)]));
                *score = self.scale * dot(query, &nk[key(j)]);
                *score += if self.mask == Some(Mask::Added) { of_mask } else { 0.0 };
            }
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = scores.iter().map(|score| (score - most).exp()).sum();
            let nothing = most == f64::NEG_INFINITY;
            let log = if nothing { most } else { most + sum.ln() };
            let weight = |j: usize| if nothing { 0.0 } else { (scores[j] - log).exp() };
            lse[bh * t + i] = (log, single * (1.0 + largest + most.abs()));
            for j in 0..s {
                for (to, x) in means[own.clone()].iter_mut().zip(&nv[value(j)]) {
                    to.0 += weight(j) * x;
                    to.1 += (half + single * largest) * (weight(j) * x).abs();
                }
            }
            let all: Vec<f64> = means[own.clone()].iter().map(|mean| mean.0).collect();
            shared[bh * t + i] = dot(&ng[own.clone()], &all);
            for j in 0..s {
                let to_weight = dot(&ng[own.clone()], &nv[value(j)]);
                let slope = weight(j) * (to_weight - shared[bh * t + i]) * self.scale;
                let lost = size(&ng[own.clone()], &nv[value(j)]) + shared[bh * t + i].abs();
                let off = (half + single * largest) * slope.abs()
                    + single * weight(j) * lost * self.scale.abs();
                for c in 0..d {
                    let (to, from) = (&mut dq[(bh * t + i) * d + c], nk[key(j).start + c]);
                    *to = (to.0 + slope * from, to.1 + off * from.abs());
                    let (to, from) = (&mut dk[key(j).start + c], query[c]);
                    *to = (to.0 + slope * from, to.1 + off * from.abs());
                }
                for c in 0..e {
                    let (to, from) = (&mut dv[value(j).start + c], ng[own.start + c]);
                    let by = weight(j) * from;
                    *to = (to.0 + by, to.1 + (half + single * largest) * by.abs());
                }
            }
        }
        // Of 16 bits and a rest: a gradient that leaves out what logarithms have lost is not near.
        let log = |of: &(f64, f64)| half::bf16::from_f64(of.0).to_f64();
        let logs: Vec<f64> = lse.iter().map(log).collect();
        let rest = |x: &f64, log: &f64| if x.is_finite() { x - log } else { 0.0 };
        let lost: Vec<f64> = lse.iter().zip(&logs).map(|((x, _), log)| rest(x, log)).collect();
        let per_query = [&logs, &lost, &shared].map(|all| of_numbers(all, &[b, h, t]));
        let again = |operand: &(Buffer, Layout, DType)| {
            let mut buffer = Buffer::new(operand.0.bytes().len());
            buffer.bytes_mut().copy_from_slice(operand.0.bytes());
            (buffer, operand.1.clone(), operand.2)
        };
        let (means_lost, dtype) = (lse.iter().map(|log| (0.0, log.1)).collect(), self.dtype);
        let forward = [&q, &k, &v].into_iter().chain(&mask).map(again).collect();
        let made = vec![(means, dtype), (lse, DType::F32), (means_lost, DType::F32)];
        let of_grad: Vec<_> =
            [q, k, v].into_iter().chain(per_query).chain([grad]).chain(mask).collect();
        let grads = vec![(dq, dtype), (dk, dtype), (dv, dtype)];
        [self.case(false, forward, made), self.case(true, of_grad, grads)]
    }

    fn case(
        self,
        grad: bool,
        operands: Vec<(Buffer, Layout, DType)>,
        expected: Vec<(Expected, DType)>,
    ) -> Case {
        let outputs = expected.iter().map(|(all, dtype)| {
            let mut buffer = Buffer::new(all.len() * dtype.size());
            (buffer.address(), buffer)
        });
        let outputs = outputs.collect();
        let ([b, h, g], [t, s, d, e]) = (self.heads, self.lengths);
        let sizes: [&[usize]; 3] = match grad {
            false => [&[b, h, t, e], &[b, h, t], &[b, h, t]],
            true => [&[b, h, t, d], &[b, g, s, d], &[b, g, s, e]],
        };
        let lies = sizes.map(|sizes| match (self.rows, sizes) {
            // Heads within rows, as the product behind them reads them.
            (Rows::SideBySide | Rows::Odd, [_, heads, length, width]) => {
                let strides = [length * heads * width, *width, heads * width, 1];
                let strides = strides.map(|stride| stride as isize).into_iter().collect();
                Layout { sizes: sizes.into(), strides, offset: 0 }
            }
            _ => Layout::contiguous(sizes),
        });
        let op = if grad { "gradient" } else { "means" };
        let Sizes { dtype, heads, lengths, causal, capability, .. } = self;
        let name = format!(
            "{op} of attention, {dtype} {heads:?} {lengths:?} causal {causal} on {capability:?}"
        );
        Case { name, sizes: self, grad, operands, expected, outputs, lies: lies.into() }
    }
}

impl Trial for Case {
    fn launch(&self) -> Option<Launch> {
        let operands: Vec<(Operand, DType)> = self
            .operands
            .iter()
            .map(|(buffer, layout, dtype)| {
                let address = buffer.bytes().as_ptr().expose_provenance() as u64;
                (Operand::Memory(address, layout), *dtype)
            })
            .collect();
        let outputs: Vec<u64> = self.outputs.iter().map(|(address, _)| *address).collect();
        let Sizes { causal, mask, scale, .. } = self.sizes;
        let attrs =
            Attrs::Attention { scale: Scalar::Float(scale), causal, masked: mask.is_some() };
        let sizes = &self.operands[0].1.sizes[..];
        let op = if self.grad { &ATTENTION_GRAD } else { &ATTENTION };
        let call = OpCall {
            op,
            attrs: &attrs,
            operands: &operands,
            sizes,
            lies: &self.lies,
            outputs: &outputs,
            added: None,
            scratch: None,
            shared: emit::LEAST_SHARED,
            capability: self.sizes.capability,
        };
        emit::launch_op(&call).unwrap()
    }

    fn check(&self, _: &Status) -> Result<(), String> {
        let made = self.outputs.iter().zip(&self.lies);
        for (output, ((expected, dtype), ((_, made), layout))) in
            self.expected.iter().zip(made).enumerate()
        {
            let elements = made.bytes().chunks_exact(dtype.size());
            let found = numbers_of(made.bytes(), layout, *dtype);
            assert_eq!(elements.len(), found.len());
            for (i, (found, (x, off))) in found.into_iter().zip(expected).enumerate() {
                let close = found == *x || (found - x).abs() <= off + 1e-6;
                if !close {
                    return Err(format!(
                        "{}: output {output}, element {i}: {found} for {x}, which may be off by {off}",
                        self.name
                    ));
                }
            }
        }
        Ok(())
    }
}

/// All cases.
pub fn cases(all: &mut Vec<Box<dyn Trial>>, random: &mut Random) {
    use DType::{BF16, F16};
    use Rows::{Any, InOrder, Odd, SideBySide};
    random.floats = Floats::Small;
    let of = |dtype, heads, lengths, causal, mask, scale, rows| Sizes {
        dtype,
        heads,
        lengths,
        causal,
        mask,
        scale,
        rows,
        capability: (8, 0),
    };
    let (hides, added) = (Some(Mask::Hides), Some(Mask::Added));
    let sizes = [
        // Of GPT-2: one product makes queries, keys and values.
        of(BF16, [2, 2, 2], [150, 150, 64, 64], true, None, 0.125, SideBySide),
        of(F16, [1, 2, 1], [200, 135, 64, 64], false, None, 0.125, InOrder),
        // More queries than keys, more keys than queries; groups.
        of(F16, [1, 2, 2], [140, 75, 64, 64], true, None, 0.3, InOrder),
        of(BF16, [1, 4, 2], [70, 210, 32, 64], true, None, -0.3, InOrder),
        // All widths.
        of(BF16, [1, 2, 2], [66, 70, 128, 128], true, None, 0.1, InOrder),
        of(F16, [1, 1, 1], [70, 66, 256, 256], true, None, 0.05, InOrder),
        of(BF16, [1, 1, 1], [40, 40, 192, 136], false, None, 0.1, InOrder),
        of(BF16, [1, 1, 1], [65, 129, 24, 40], true, None, 0.2, InOrder),
        // Rows that no access of 16 bytes reads.
        of(BF16, [1, 2, 1], [67, 68, 64, 64], true, None, 0.2, Odd),
        of(F16, [1, 1, 1], [20, 30, 5, 3], false, None, 0.5, InOrder),
        of(BF16, [1, 1, 1], [5, 3, 80, 72], true, None, 0.0, Odd),
        of(BF16, [2, 2, 1], [20, 37, 16, 24], true, None, 0.3, Any),
        of(F16, [1, 4, 2], [37, 20, 48, 16], false, added, 0.3, Any),
        of(BF16, [2, 2, 2], [17, 33, 20, 20], true, hides, 0.3, Any),
        // One query; nobody there.
        of(BF16, [2, 4, 2], [1, 150, 64, 64], true, None, 0.1, InOrder),
        of(F16, [1, 2, 2], [5, 0, 8, 8], false, None, 0.1, InOrder),
        of(F16, [1, 1, 1], [5, 2, 8, 8], true, None, 0.1, InOrder),
        // Masks.
        of(BF16, [1, 2, 2], [70, 90, 64, 64], false, hides, 0.2, InOrder),
        of(F16, [2, 2, 1], [70, 90, 64, 48], true, added, -0.2, InOrder),
        of(BF16, [1, 1, 1], [66, 66, 128, 128], true, hides, 0.1, Odd),
        of(F16, [1, 1, 1], [33, 80, 256, 200], false, added, 0.1, InOrder),
    ];
    // By groups of warps: of GPT-2; masks; groups, more keys than queries and the other way round; wide heads; odd addresses; one query.
    let by_groups = [
        of(BF16, [1, 2, 2], [310, 310, 64, 64], true, None, 0.125, SideBySide),
        of(F16, [1, 2, 1], [200, 135, 64, 64], false, None, 0.125, InOrder),
        of(F16, [1, 2, 2], [330, 75, 64, 64], true, None, 0.3, InOrder),
        of(BF16, [1, 4, 2], [70, 290, 64, 64], true, None, -0.3, SideBySide),
        of(BF16, [1, 2, 2], [200, 260, 128, 128], true, None, 0.1, InOrder),
        of(F16, [1, 1, 1], [140, 70, 64, 128], true, None, 0.2, Odd),
        of(BF16, [1, 2, 1], [70, 140, 128, 64], false, None, -0.1, InOrder),
        of(BF16, [1, 2, 1], [67, 68, 64, 64], true, None, 0.2, Odd),
        of(BF16, [2, 4, 2], [1, 150, 64, 64], true, None, 0.1, InOrder),
        of(F16, [1, 2, 2], [5, 0, 64, 64], false, None, 0.1, InOrder),
        of(F16, [1, 1, 1], [200, 2, 64, 64], true, None, 0.0, InOrder),
        of(BF16, [1, 2, 2], [70, 200, 64, 64], false, hides, 0.2, InOrder),
        of(F16, [2, 2, 1], [190, 90, 64, 64], true, added, -0.2, Any),
        of(BF16, [1, 1, 1], [66, 166, 128, 128], true, hides, 0.1, Odd),
    ]
    .map(|sizes| Sizes { capability: (9, 0), ..sizes });
    for sizes in sizes.into_iter().chain(by_groups) {
        for case in sizes.cases(random) {
            all.push(Box::new(case));
        }
    }
}
