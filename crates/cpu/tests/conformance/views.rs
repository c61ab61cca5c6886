//! A strided view of an input gives what its contiguous copy gives, bit for bit.

use bytemuck::{cast_slice, cast_slice_mut};
use tonnage_core::layout::Layout;
use tonnage_core::row::{OpDef, Sample, Values};
use tonnage_core::{Sizes, with_element};
use tonnage_cpu::kernel_of;

use crate::draw::{Random, for_every_sample};
use crate::exec::Engine;
use crate::exec::buffer::Buffer;
use crate::exec::tensor::Tensor;
use crate::plain::Plain;
use crate::values;

/// The elements of `tensor` where `layout` says, in a buffer of `len` elements that is junk elsewhere.
fn scattered(tensor: &Tensor, layout: Layout, len: usize) -> Tensor {
    let mut buffer = Buffer::new(len * tensor.dtype.size());
    with_element!(tensor.dtype, T => {
        let from: &[T] = cast_slice(tensor.bytes());
        let into: &mut [T] = cast_slice_mut(buffer.bytes_mut());
        let mut next = 0;
        layout.for_each(|at| {
            into[at] = from[next];
            next += 1;
        });
    });
    let base = Tensor::owning(tensor.dtype, [len].as_slice(), buffer);
    Tensor { layout, ..base }
}

/// Views over other bytes of what `tensor` holds, and, with `repeats`, of elements of it again and again.
fn views(tensor: &Tensor, repeats: bool) -> Vec<(&'static str, Tensor)> {
    let sizes: Sizes = tensor.layout.sizes.clone();
    let (rank, count) = (sizes.len(), tensor.layout.count());
    let mut all = Vec::new();
    let reversed: Vec<usize> = (0..rank).rev().collect();
    let reversed_sizes: Sizes = reversed.iter().map(|a| sizes[*a]).collect();
    let transposed = Layout::contiguous(reversed_sizes).transpose(&reversed);
    all.push(("transposed", scattered(tensor, transposed, count)));

    let mut stepped = Layout::contiguous(sizes.clone());
    stepped.strides.iter_mut().for_each(|s| *s *= 3);
    stepped.offset = 2;
    all.push(("every third, from 2 on", scattered(tensor, stepped, 3 * count + 2)));

    let mut padded = Layout::contiguous(sizes.iter().map(|n| n + 1).collect::<Sizes>());
    let room = padded.count();
    padded.sizes = sizes.clone();
    let mut end = 0;
    padded.for_each(|at| end = end.max(at + 1));
    padded.offset = room - end;
    all.push(("a part of a larger one", scattered(tensor, padded, room)));

    if count > 0 {
        let mut backwards = Layout::contiguous(sizes.clone());
        backwards.strides.iter_mut().for_each(|s| *s = -*s);
        backwards.offset = count - 1;
        all.push(("backwards", scattered(tensor, backwards, count)));
    }
    if repeats && count > 0 {
        for axis in 0..rank {
            let mut layout = tensor.layout.clone();
            layout.strides[axis] = 0;
            all.push(("one axis repeats", Tensor { layout, ..tensor.clone() }));
        }
        let mut layout = tensor.layout.clone();
        layout.strides.iter_mut().for_each(|s| *s = 0);
        all.push(("one element repeats", Tensor { layout, ..tensor.clone() }));
    }
    all
}

fn run(op: &'static OpDef, sample: &Sample, inputs: Vec<Tensor>) -> Result<Vec<Tensor>, String> {
    let mut engine = Engine::plain();
    let made = engine.run(op, inputs, &sample.attrs, &sample.regions, true);
    let made = made.and_then(|made| made.into_iter().map(|t| engine.resident(t)).collect());
    made.map_err(|e| e.to_string())
}

/// Whether inputs that lie in another way give the same: bit for bit, but for kernels that add products up in the
/// order of memory (a product with a few rows reads the other matrix once, as it lies).
fn agree(op: &'static OpDef, sample: &Sample, inputs: Vec<Tensor>) -> Result<bool, String> {
    let copies: Vec<Tensor> = inputs.iter().map(Tensor::copy).collect();
    let plain: Vec<Plain> = copies.iter().map(Tensor::plain).collect();
    let (a, b) = (run(op, sample, inputs)?, run(op, sample, copies)?);
    if a.iter().map(Tensor::bits).eq(b.iter().map(Tensor::bits)) {
        return Ok(true);
    }
    let expected = values::expected(op, sample, &sample.attrs, &plain)?;
    let sums = expected.iter().flat_map(|e| &e.scale).any(|scale| *scale != 0.0);
    let made: Vec<Plain> = a.iter().take(expected.len()).map(Tensor::plain).collect();
    let near = values::differ(op, &made, &expected).is_ok();
    Ok(kernel_of(op).is_some() && sums && near)
}

fn check(op: &'static OpDef, sample: &Sample, random: &mut Random) -> Result<(), String> {
    let inputs = random.tensors(sample);
    for i in 0..inputs.len() {
        let matrix = [Values::PositiveDefinite, Values::Invertible];
        let repeats = !matrix.contains(&sample.inputs[i].values);
        for (what, view) in views(&inputs[i], repeats) {
            let mut inputs = inputs.clone();
            inputs[i] = view;
            if !agree(op, sample, inputs)? {
                return Err(format!("input {i} ({what}) differs from its contiguous copy"));
            }
        }
    }
    // All at once, so that no input lies in order.
    let last = |t: &Tensor| views(t, false).pop().expect("a view").1;
    let same = agree(op, sample, inputs.iter().map(last).collect())?;
    if same { Ok(()) } else { Err("views of all inputs differ from contiguous ones".into()) }
}

#[test]
fn strided_views_give_what_contiguous_copies_give() {
    for_every_sample(check);
}
