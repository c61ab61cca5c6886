//! What a row says about its axes: running it on pieces and joining them gives the whole.

use tonnage_core::row::{AxisOf, Sample};
use tonnage_core::{Call, OpDef, TensorType};

use super::{Array, assert_close, run};

/// Cuts along every axis that the row says can be cut, and adds up over every group that it says sums.
pub fn check_axes(op: &'static OpDef, sample: &Sample, inputs: &[Array]) {
    let types: Vec<TensorType> = inputs.iter().map(|a| a.ty.clone()).collect();
    let map = (op.axes)(&Call::new(&types, &sample.attrs));
    let whole = run(op, inputs, &sample.attrs).unwrap();
    assert_eq!(map.outputs.len(), whole.len(), "{}: outputs in axes", op.name);
    for (output, axes) in map.outputs.iter().enumerate() {
        let sizes = whole[output].sizes();
        assert_eq!(axes.len(), sizes.len(), "{}: axes of output {output}", op.name);
        for (axis, of) in axes.iter().enumerate() {
            let AxisOf::Along(cut) = of else { continue };
            let parts = halves(op, sample, inputs, cut, output);
            let joined = join(&parts, axis);
            let what = format!("{} {types:?} cut along output axis {axis}", op.name);
            assert_close(&[joined], &whole[output..=output], &what);
        }
    }
    for group in &map.summed {
        let mut parts = halves(op, sample, inputs, group, 0);
        let (b, a) = (parts.pop().unwrap(), parts.pop().unwrap());
        let data = a.data.iter().zip(&b.data).map(|(a, b)| a + b).collect();
        let sum = Array { data, ..a };
        assert_close(&[sum], &whole[..1], &format!("{} {types:?} summed over {group:?}", op.name));
    }
}

/// An output of both halves of the inputs along these axes.
fn halves(
    op: &'static OpDef,
    sample: &Sample,
    inputs: &[Array],
    cut: &[(usize, usize)],
    output: usize,
) -> Vec<Array> {
    let len = cut.first().map_or(0, |(input, axis)| inputs[*input].sizes()[*axis]);
    let half = |from: usize, to: usize| {
        let mut parts = inputs.to_vec();
        for (input, axis) in cut {
            parts[*input] = piece(&inputs[*input], *axis, from, to);
        }
        run(op, &parts, &sample.attrs).unwrap().swap_remove(output)
    };
    vec![half(0, len / 2), half(len / 2, len)]
}

fn piece(array: &Array, axis: usize, from: usize, to: usize) -> Array {
    let mut sizes = array.sizes();
    let (inner, len) = (sizes[axis + 1..].iter().product::<usize>(), sizes[axis]);
    let inside = |at: usize| (from..to).contains(&(at / inner.max(1) % len.max(1)));
    let data = array.data.iter().enumerate().filter(|(at, _)| inside(*at)).map(|(_, x)| *x);
    let data = data.collect();
    sizes[axis] = to - from;
    Array::new(array.ty.dtype, &sizes, data)
}

fn join(parts: &[Array], axis: usize) -> Array {
    let mut sizes = parts[0].sizes();
    let outer: usize = sizes[..axis].iter().product();
    let mut data = Vec::new();
    for block in 0..outer {
        for part in parts {
            let len = part.data.len() / outer;
            data.extend_from_slice(&part.data[block * len..(block + 1) * len]);
        }
    }
    sizes[axis] = parts.iter().map(|p| p.sizes()[axis]).sum();
    Array::new(parts[0].ty.dtype, &sizes, data)
}
