//! `scatter_add`: a table with rows added at indices.
//!
//! Rows at equal indices add up in the order of the indices, at any number of threads; integers wrap;
//! 16-bit floats are added in f32 and rounded at each addition. All indices are checked before anything
//! is written.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{
    Fails, Grad, Jvp, Keep, Lower, Mem, Remat, Sample, Saves, Types, Values, no_scratch,
};
use tonnage_core::{Attrs, Call, DType, Emit, OpDef, TensorType};

use super::gather::GATHER;
use super::rows::{axis, rows_shape, scatter, scatter_axes, scatter_type};
use crate::infer::{cost, elements, number};
use crate::number::{Number, with_number};

/// `(table, indices, rows) -> table`; the axis as [`Attrs::Axis`], or none for axis 0.
pub static SCATTER_ADD: OpDef = OpDef {
    name: "scatter_add",
    doc: "A tensor with rows added at indices along one axis; equal indices add up.",
    infer,
    axes: scatter_axes,
    mem: Mem::Reuse(&[0]),
    scratch: no_scratch,
    saves: Saves::one_of(&[&[Keep::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call| {
        cost(call.inputs.get(2).map_or(0, elements), call.inputs.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::OnData,
    lower: Lower::Slices(kernel),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let table = scatter_type("scatter_add", call)?;
    number("scatter_add", &table)?;
    Ok(smallvec![table])
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    let rows = match call.needs[2] {
        true => {
            let picked = vec![g.clone(), call.input(1)?];
            Some(Cotangent::Dense(emit.apply(&GATHER, picked, call.attrs.clone())?))
        }
        false => None,
    };
    Ok(vec![Some(Cotangent::Dense(g)), None, rows])
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_number!("scatter_add", k.outputs[0].dtype, T => {
        scatter::<T>("scatter_add", k, |to, from| *to = to.plus(from))
    })
}

/// Shared with `scatter_update`: tables, index dtypes and shapes of every kind.
pub(super) fn samples() -> Vec<Sample> {
    let of = |dtype, table: &[usize], index, indices: &[usize], attrs: Attrs| {
        let below = Values::Below(table[axis("scatter", &attrs).unwrap_or(0)]);
        let (table, indices) = (TensorType::new(dtype, table), TensorType::new(index, indices));
        let rows = rows_shape("scatter", &table, &indices, &attrs).unwrap_or_default();
        let rows = TensorType::new(dtype, rows);
        Sample::of(&[table, indices, rows], attrs).with(1, below)
    };
    vec![
        of(DType::F64, &[5, 3], DType::I32, &[7], Attrs::None),
        of(DType::F64, &[5, 2, 2], DType::I64, &[2, 3], Attrs::Axis(0)),
        of(DType::F64, &[3, 4, 2], DType::I64, &[6], Attrs::Axis(1)),
        of(DType::F32, &[7], DType::I32, &[], Attrs::None),
        of(DType::F32, &[1025, 3], DType::U16, &[1023], Attrs::None),
        of(DType::F32, &[9, 1024], DType::I16, &[33], Attrs::None),
        of(DType::F32, &[2, 1024, 9], DType::I16, &[1025], Attrs::Axis(1)),
        of(DType::F16, &[6, 2], DType::I8, &[9], Attrs::None),
        of(DType::BF16, &[2, 6], DType::U32, &[3], Attrs::Axis(1)),
        of(DType::I64, &[4, 2], DType::U64, &[9], Attrs::None),
        of(DType::I8, &[4, 2], DType::U8, &[3], Attrs::None),
        of(DType::F32, &[4, 0], DType::I32, &[5], Attrs::None),
        of(DType::F32, &[4, 2], DType::I32, &[0], Attrs::None),
        of(DType::F32, &[0, 2], DType::I32, &[0], Attrs::None),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Array, check_gradients, check_samples, run};
    use tonnage_core::ErrorKind;
    use tonnage_core::kernel::{Data, In, Out};
    use tonnage_core::workers::Alone;
    use tonnage_core::{Layout, Sizes};

    fn reference(inputs: &[Array], attrs: &Attrs) -> Vec<Array> {
        let at = axis("scatter_add", attrs).unwrap();
        let (sizes, indices) = (inputs[0].sizes(), &inputs[1].data);
        let row: usize = sizes[at + 1..].iter().product();
        let mut data = inputs[0].data.clone();
        for block in 0..sizes[..at].iter().product() {
            for (i, index) in indices.iter().enumerate() {
                let to = (block * sizes[at] + *index as usize) * row;
                let from = (block * indices.len() + i) * row;
                (0..row).for_each(|j| data[to + j] += inputs[2].data[from + j]);
            }
        }
        vec![Array::new(inputs[0].ty.dtype, &sizes, data)]
    }

    #[test]
    fn rows_at_equal_indices_add_up() {
        check_samples(&SCATTER_ADD, reference);
    }

    #[test]
    fn the_gradient_of_the_rows_is_picked_from_the_tables() {
        check_gradients(&SCATTER_ADD);
    }

    #[test]
    fn a_call_that_fails_leaves_a_table_in_place_untouched() {
        let mut table = [1.0f32, 2.0, 3.0];
        let (indices, rows) = ([0i32, 3], [10.0f32, 20.0]);
        let lent = |dtype, size, data| In {
            dtype,
            layout: Layout::contiguous(Sizes::from_slice(&[size])),
            data,
        };
        let inputs = [
            lent(DType::F32, 3, Data::Output(0)),
            lent(DType::I32, 2, Data::Slice(bytemuck::cast_slice(&indices))),
            lent(DType::F32, 2, Data::Slice(bytemuck::cast_slice(&rows))),
        ];
        let mut outputs = [Out {
            dtype: DType::F32,
            sizes: Sizes::from_slice(&[3]),
            data: bytemuck::cast_slice_mut(&mut table),
        }];
        let error = kernel(&mut Kernel {
            attrs: &Attrs::None,
            inputs: &inputs,
            outputs: &mut outputs,
            scratch: &mut [],
            workers: &Alone,
        })
        .unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::IndexOutOfRange { index: 3, position: 1, .. }));
        assert_eq!(table, [1.0, 2.0, 3.0]);
    }

    #[test]
    fn rows_of_another_shape_or_dtype_are_refused() {
        let table = Array::new(DType::F32, &[3, 2], vec![0.0; 6]);
        let indices = Array::new(DType::I32, &[2], vec![0.0, 1.0]);
        let kind = |rows: Array| {
            let inputs = [table.clone(), indices.clone(), rows];
            run(&SCATTER_ADD, &inputs, &Attrs::None).unwrap_err().kind().clone()
        };
        let short = kind(Array::new(DType::F32, &[2], vec![0.0; 2]));
        assert!(matches!(short, ErrorKind::ShapeMismatch { .. }));
        let wide = kind(Array::new(DType::F64, &[2, 2], vec![0.0; 4]));
        assert!(matches!(wide, ErrorKind::DTypeMismatch { .. }));
    }
}
