//! `axes` holds: an op on pieces, joined or added up, gives the whole.

use tonnage_core::TensorType;
use tonnage_core::attrs::Attrs;
use tonnage_core::layout::Slice;
use tonnage_core::row::{AxisOf, Call, Lower, OpDef, Sample};

use crate::draw::{Random, for_every_sample};
use crate::exec::Engine;
use crate::exec::tensor::Tensor;
use crate::plain::{Answer, Plain, unit};
use crate::values;

/// Elements `start..start + len` along an axis.
fn piece(tensor: &Tensor, axis: usize, start: usize, len: usize) -> Tensor {
    let all = tensor.layout.sizes.iter().map(|n| Slice { start: 0, len: *n, step: 1 });
    let mut slices: Vec<Slice> = all.collect();
    slices[axis] = Slice { start, len, step: 1 };
    Tensor { layout: tensor.layout.slice(&slices), ..tensor.clone() }
}

/// Where an axis is cut: unevenly, into two or three.
fn cuts(len: usize) -> Vec<(usize, usize)> {
    match len {
        0 | 1 => vec![(0, len)],
        2 => vec![(0, 1), (1, 1)],
        _ => vec![(0, 1), (1, len / 2), (1 + len / 2, len - 1 - len / 2)],
    }
}

/// Equal but for roundings, of sums whose terms add up to at most `scale` without their signs.
fn near(a: &Tensor, b: &Tensor, scale: f64) -> bool {
    let slack = 8.0 * unit(a.dtype);
    let close = |(a, b): (&f64, &f64)| {
        let equal = a == b || (a.is_nan() && b.is_nan());
        equal || (a - b).abs() <= slack * b.abs().max(scale)
    };
    a.ty() == b.ty() && a.plain().values.iter().zip(&b.plain().values).all(close)
}

struct Case<'a> {
    op: &'static OpDef,
    sample: &'a Sample,
    inputs: Vec<Tensor>,
}

impl Case<'_> {
    fn run(&self, inputs: Vec<Tensor>, attrs: &Attrs) -> Result<Vec<Tensor>, String> {
        let mut engine = Engine::plain();
        let made = engine.run(self.op, inputs, attrs, &self.sample.regions, false);
        let made = made.and_then(|made| made.into_iter().map(|t| engine.resident(t)).collect());
        made.map_err(|e| e.to_string())
    }

    /// Whether an output must have the same bits in pieces. Sums need not: their tree follows the shape, and a piece
    /// has another.
    fn is_exact(&self, output: usize) -> Result<bool, String> {
        let sums = self.expected()?[output].scale.iter().any(|scale| *scale != 0.0);
        Ok(!sums && !matches!(self.op.lower, Lower::Composite(_)))
    }

    fn expected(&self) -> Result<Vec<Answer>, String> {
        let inputs: Vec<Plain> = self.inputs.iter().map(Tensor::plain).collect();
        values::expected(self.op, self.sample, &self.sample.attrs, &inputs)
    }

    /// The op on each piece along a group of input axes.
    fn on_pieces(
        &self,
        group: &[(usize, usize)],
        cut: Option<(&TensorType, usize)>,
    ) -> Result<Vec<(usize, usize, Vec<Tensor>)>, String> {
        let length = |(input, axis): &(usize, usize)| self.inputs[*input].layout.sizes[*axis];
        let len = length(group.first().ok_or("a group of no axes")?);
        if group.iter().any(|g| length(g) != len) {
            return Err(format!("{group:?} have different lengths"));
        }
        let mut all = Vec::new();
        for (start, len) in cuts(len) {
            let mut inputs = self.inputs.clone();
            for (input, axis) in group {
                inputs[*input] = piece(&inputs[*input], *axis, start, len);
            }
            let attrs = match cut {
                Some((of, axis)) => self.sample.attrs.of_piece(of, axis, &len.into()),
                None => self.sample.attrs.clone(),
            };
            all.push((start, len, self.run(inputs, &attrs)?));
        }
        Ok(all)
    }
}

fn check(op: &'static OpDef, sample: &Sample, random: &mut Random) -> Result<(), String> {
    let types: Vec<TensorType> = sample.inputs.iter().map(|i| i.ty.clone()).collect();
    let call = Call { op: op.name, inputs: &types, attrs: &sample.attrs, regions: &sample.regions };
    let (made, map) = ((op.infer)(&call).map_err(|e| e.to_string())?, (op.axes)(&call));
    let ranks: Vec<usize> = made.iter().map(|ty| ty.shape.rank()).collect();
    let mapped: Vec<usize> = map.outputs.iter().map(Vec::len).collect();
    if ranks != mapped {
        return Err(format!("outputs have ranks {ranks:?}, the axis map says {mapped:?}"));
    }
    let case = Case { op, sample, inputs: random.tensors(sample) };
    let whole = case.run(case.inputs.clone(), &sample.attrs)?;
    for (output, axes) in map.outputs.iter().enumerate() {
        for (axis, of) in axes.iter().enumerate() {
            let AxisOf::Along(group) = of else { continue };
            let exact = case.is_exact(output)?;
            let scale = match exact {
                true => 1.0,
                false => case.expected()?[output].scale.iter().fold(1.0, |a: f64, b| a.max(*b)),
            };
            for (start, len, parts) in case.on_pieces(group, Some((&made[output], axis)))? {
                let part = piece(&whole[output], axis, start, len);
                let same = match exact {
                    true => parts[output].bits() == part.bits(),
                    false => near(&parts[output], &part, scale),
                };
                if !same {
                    return Err(format!("axis {axis} of output {output}, {len} from {start}"));
                }
            }
        }
    }
    for group in &map.summed {
        let parts = case.on_pieces(group, None)?;
        let answers = case.expected()?;
        for (output, whole) in whole.iter().enumerate() {
            let whole = whole.plain();
            for (i, expected) in whole.values.iter().enumerate() {
                let terms: Vec<f64> =
                    parts.iter().map(|(_, _, made)| made[output].plain().values[i]).collect();
                let sum = crate::plain::held(terms.iter().sum(), whole.dtype);
                let scale: f64 = terms.iter().map(|x| x.abs()).sum::<f64>().max(1.0);
                let scale = scale.max(answers[output].scale[i]);
                if (sum - expected).abs() > 8.0 * unit(whole.dtype) * scale {
                    return Err(format!("pieces of {group:?} add up to {sum}, not {expected}"));
                }
            }
        }
    }
    Ok(())
}

#[test]
fn pieces_along_mapped_axes_give_the_whole() {
    for_every_sample(check);
}
