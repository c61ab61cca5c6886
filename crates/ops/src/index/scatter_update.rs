//! `scatter_update`: a table with rows put in the place of others.
//!
//! Where an index repeats, the last row in the order of the indices stays, at any number of threads.
//! All indices are checked before anything is written.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{Fails, Grad, Jvp, Keep, Lower, Mem, Remat, Saves, Types, no_scratch};
use tonnage_core::{Attrs, Call, Emit, OpDef, Scalar};

use super::gather_last::GATHER_LAST;
use super::rows::{scatter, scatter_axes, scatter_type};
use super::scatter_add;
use crate::infer::cost;
use crate::number::with_width;

/// `(table, indices, rows) -> table`; the axis as [`Attrs::Axis`], or none for axis 0.
pub static SCATTER_UPDATE: OpDef = OpDef {
    name: "scatter_update",
    doc: "A tensor with rows replaced at indices along one axis; the last of equal indices stays.",
    infer: |call| -> Result<Types> { Ok(smallvec![scatter_type("scatter_update", call)?]) },
    axes: scatter_axes,
    mem: Mem::Reuse(&[0]),
    scratch: no_scratch,
    saves: Saves::one_of(&[&[Keep::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call: &Call| cost(0, call.inputs.iter().chain(call.inputs)),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::OnData,
    lower: Lower::Slices(kernel),
    samples: scatter_add::samples,
};

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (g, indices) = (call.grad()?, call.input(1)?);
    let mut grads = vec![None, None, None];
    if call.needs[2] {
        // A row that was overwritten by a later one has no part in the result.
        let picked = vec![g.clone(), indices.clone()];
        let rows = emit.apply(&GATHER_LAST, picked, call.attrs.clone())?;
        grads[2] = Some(Cotangent::Dense(rows));
    }
    if call.needs[0] {
        let of = call.inputs[2].clone();
        let fill = Attrs::Fill { value: Scalar::Int(0), dtype: of.dtype, shape: of.shape };
        let zeros = emit.apply(call.ops.fill, Vec::new(), fill)?;
        let cleared = emit.apply(&SCATTER_UPDATE, vec![g, indices, zeros], call.attrs.clone())?;
        grads[0] = Some(Cotangent::Dense(cleared));
    }
    Ok(grads)
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_width!(k.outputs[0].dtype, T => {
        scatter::<T>("scatter_update", k, |to, from| *to = from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::rows::axis;
    use crate::testing::{Array, check_gradients, check_samples, run};
    use tonnage_core::DType;

    fn reference(inputs: &[Array], attrs: &Attrs) -> Vec<Array> {
        let at = axis("scatter_update", attrs).unwrap();
        let (sizes, indices) = (inputs[0].sizes(), &inputs[1].data);
        let row: usize = sizes[at + 1..].iter().product();
        let mut data = inputs[0].data.clone();
        for block in 0..sizes[..at].iter().product() {
            for (i, index) in indices.iter().enumerate() {
                let to = (block * sizes[at] + *index as usize) * row;
                let from = (block * indices.len() + i) * row;
                data[to..to + row].copy_from_slice(&inputs[2].data[from..from + row]);
            }
        }
        vec![Array::new(inputs[0].ty.dtype, &sizes, data)]
    }

    #[test]
    fn the_last_row_of_equal_indices_stays() {
        check_samples(&SCATTER_UPDATE, reference);
        let table = Array::new(DType::Bool, &[3], vec![0.0, 1.0, 0.0]);
        let indices = Array::new(DType::U8, &[3], vec![2.0, 1.0, 2.0]);
        let rows = Array::new(DType::Bool, &[3], vec![0.0, 0.0, 1.0]);
        let got = run(&SCATTER_UPDATE, &[table, indices, rows], &Attrs::None).unwrap();
        assert_eq!(got[0].data, [0.0, 0.0, 1.0]);
    }

    #[test]
    fn the_gradient_reaches_the_rows_that_stayed_and_what_was_not_replaced() {
        check_gradients(&SCATTER_UPDATE);
    }
}
