//! `scatter_nd_update`: a tensor with rows replaced at indices into several leading axes; of rows with the same
//! index the last stays, at any number of threads.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;
use tonnage_core::{DType, Dim, OpDef, Scalar, Shape, TensorType};

use super::gather_nd::GATHER_ND;
use super::nd::{self, NdAxes};
use crate::infer::{self, cost};
use crate::shape::fill::FILL;
use crate::shape::range::RANGE;
use crate::tile::{Ending, pass};
use crate::{OpId, emit};

/// `(table, indices, rows) -> table`; how many leading axes are shared as `Attrs::Count`.
pub static SCATTER_ND_UPDATE: OpDef = OpDef {
    id: OpId::ScatterNdUpdate as u16,
    name: "scatter_nd_update",
    doc: "A tensor with rows replaced at indices into several leading axes; the last of equal ones stays.",
    infer: |call| Ok(smallvec![nd::scatter_type(call)?]),
    axes: nd::scatter_axes,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call| cost(0, call.inputs.iter().chain(call.inputs)),
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0, 2]]),
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples: || nd::samples(true, &DType::ALL),
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (g, indices) = (call.grad()?, call.input(1)?);
    let of_rows = match call.needs[2] {
        true => emit::dense(of_rows(e, call, g.clone(), indices.clone())?),
        false => None,
    };
    let of_table = match call.needs[0] {
        true => {
            let zeros = emit::zeros(e, &call.inputs[2])?;
            let cleared = vec![g, indices, zeros];
            emit::dense(e.apply(&SCATTER_ND_UPDATE, cleared, call.attrs.clone())?)
        }
        false => None,
    };
    Ok(vec![of_table, None, of_rows])
}

/// The gradient at the indices, and 0 for rows that a later one replaced: each index leaves its own number where
/// it points, and the number that is found there is that of the last.
fn of_rows(e: &mut dyn Emit, call: &GradCall, g: Value, indices: Value) -> Result<Value> {
    let NdAxes { batch, depth } = nd::axes(&call.call())?;
    let (table, shape) = (&call.inputs[0].shape, &call.inputs[1].shape);
    let outer: Shape = shape[..shape.rank() - 1].iter().cloned().collect();
    let numbers = Attrs::Range {
        start: Scalar::Int(0),
        step: Scalar::Int(1),
        len: outer.elements(),
        dtype: DType::I64,
    };
    let numbers = e.apply(&RANGE, Vec::new(), numbers)?;
    let numbers = emit::reshape(e, numbers, &outer)?;
    let cells: Shape = table[..batch + depth].iter().cloned().collect();
    let unset = Attrs::Fill { value: Scalar::Int(-1), dtype: DType::I64, shape: cells };
    let unset = e.apply(&FILL, Vec::new(), unset)?;
    let marked = vec![unset, indices.clone(), numbers.clone()];
    let marked = e.apply(&SCATTER_ND_UPDATE, marked, call.attrs.clone())?;
    let found = e.apply(&GATHER_ND, vec![marked, indices.clone()], call.attrs.clone())?;
    let rows = e.apply(&GATHER_ND, vec![g, indices], call.attrs.clone())?;
    // One number for each row.
    let ones: Vec<Dim> = vec![1.into(); table.rank() - batch - depth];
    let broadcast = infer::joined(&[&outer, &ones]);
    let (found, numbers) =
        (emit::reshape(e, found, &broadcast)?, emit::reshape(e, numbers, &broadcast)?);
    let ty: &TensorType = &call.inputs[2];
    pass(e, [rows, found, numbers], Ending::Store(ty.dtype), |p, [row, found, number]| {
        let last = p.two(Prim::Eq, found, number);
        p.or_zero(last, row)
    })
}
