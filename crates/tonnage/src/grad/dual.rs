//! Forward passes: tangents that go along with tensors while a function runs, or is traced.
//!
//! A tangent lives as long as the tensor that it belongs to: a loop of any length holds the tangents of
//! what it holds. What becomes of a tangent in an op is in the op's row (`core/src/grad/forward.rs`).
//!
//! Decision: `docs/decisions/forward-mode.md`.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::grad::{JvpCall, push_forward};
use tonnage_core::graph::Graph;
use tonnage_core::{Mark, OpDef, Result, Value};
use tonnage_ops::GRAD_OPS;
use tonnage_runtime::Alive;

use super::level;
use crate::dispatch::{TensorArg, TensorArgs, TensorEmit, hold, unhold};
use crate::tape;
use crate::tensor::{Tensor, TensorRepr};
use crate::trace;

thread_local! {
    static OPEN: Cell<usize> = const { Cell::new(0) };
    static PASSES: RefCell<Vec<Rc<RefCell<Tangents>>>> = const { RefCell::new(Vec::new()) };
}

/// The tangents of one forward pass, while it is open.
pub(crate) struct ForwardPass(Rc<RefCell<Tangents>>);

struct Tangents {
    level: u64,
    /// The trace that it was opened in; none where ops run at once. Bodies and branches inside of that
    /// go forwards as a whole, with the op that runs them.
    trace: Option<u64>,
    of: HashMap<u64, (Option<Alive>, Tensor)>,
    /// How many there may be before the dead ones are looked for.
    room: usize,
}

impl ForwardPass {
    pub fn open() -> ForwardPass {
        let pass = Rc::new(RefCell::new(Tangents {
            level: level::next(),
            trace: trace::current().map(|t| t.number()),
            of: HashMap::new(),
            room: 0,
        }));
        PASSES.with_borrow_mut(|all| all.push(pass.clone()));
        OPEN.set(OPEN.get() + 1);
        ForwardPass(pass)
    }

    /// From here on `tensor` has that tangent.
    pub fn set(&self, tensor: &Tensor, tangent: Tensor) {
        self.0.borrow_mut().set(tensor, tangent);
    }

    /// The tangent of a tensor, if it has one.
    pub fn get(&self, tensor: &Tensor) -> Option<Tensor> {
        self.0.borrow().get(tensor)
    }
}

impl Drop for ForwardPass {
    fn drop(&mut self) {
        PASSES.with_borrow_mut(|all| all.retain(|pass| !Rc::ptr_eq(pass, &self.0)));
        OPEN.set(OPEN.get() - 1);
    }
}

impl Tangents {
    fn get(&self, tensor: &Tensor) -> Option<Tensor> {
        self.of.get(&tensor.id()).map(|(_, tangent)| tangent.clone())
    }

    fn set(&mut self, tensor: &Tensor, tangent: Tensor) {
        if self.of.len() >= self.room {
            // A few are looked through each time; of many, only when there are twice as many again.
            self.of.retain(|_, (alive, _)| alive.as_ref().is_none_or(Alive::is_alive));
            self.room = if self.of.len() < 32 { 0 } else { 2 * self.of.len() };
        }
        let alive = match tensor.repr() {
            TensorRepr::Array(array) => Some(array.alive()),
            _ => None, // a number of a graph, which takes no memory
        };
        self.of.insert(tensor.id(), (alive, tangent));
    }
}

/// Whether no forward pass is open: what nearly every call asks first.
#[inline]
pub(crate) fn quiet() -> bool {
    OPEN.get() == 0
}

/// Whether any of these has a tangent in an open pass.
pub(crate) fn moves(inputs: &[Tensor]) -> bool {
    !quiet() && innermost(&inputs.iter().map(TensorArg::Borrowed).collect()).is_some()
}

/// The innermost pass of those that listen in which an input has a tangent.
fn innermost(inputs: &TensorArgs) -> Option<Rc<RefCell<Tangents>>> {
    let here = trace::current().map(|t| t.number());
    let listening = level::listening();
    PASSES.with_borrow(|all| {
        let moves = |pass: &&Rc<RefCell<Tangents>>| {
            let pass = pass.borrow();
            let has = |t: &Tensor| t.dtype().is_float() && pass.of.contains_key(&t.id());
            listening.contains(&pass.level)
                && pass.trace == here
                && inputs.iter().any(|input| has(input.tensor()))
        };
        all.iter().rev().find(moves).cloned()
    })
}

/// An op's results, aux ones at the end where they were asked for, with their tangents noted; gives the
/// inputs back where no pass has a tangent of any.
pub(crate) fn apply<'a>(
    op: &'static OpDef,
    inputs: TensorArgs<'a>,
    attrs: &Attrs,
    regions: &[Arc<Graph>],
    aux: bool,
    mark: Mark,
) -> std::result::Result<Result<SmallVec<[Tensor; 1]>>, TensorArgs<'a>> {
    match innermost(&inputs) {
        Some(pass) => Ok(follow(&pass, op, inputs, attrs, regions, aux, mark)),
        None => Err(inputs),
    }
}

fn follow(
    pass: &Rc<RefCell<Tangents>>,
    op: &'static OpDef,
    inputs: TensorArgs,
    attrs: &Attrs,
    regions: &[Arc<Graph>],
    aux: bool,
    mark: Mark,
) -> Result<SmallVec<[Tensor; 1]>> {
    let level = pass.borrow().level;
    let tensors: Vec<Tensor> = inputs.iter().map(|input| input.tensor().clone()).collect();
    drop(inputs);
    let values: Vec<Value> = tensors.iter().cloned().map(hold).collect();
    let tangents: Vec<Option<Value>> = {
        let pass = pass.borrow();
        tensors.iter().map(|t| pass.get(t).filter(|t| t.dtype().is_float()).map(hold)).collect()
    };
    // Tapes inside of the pass record the op as if there were no tangents.
    let inside = level + 1..level::listening().end;
    let recording = tape::record(op, &tensors, attrs, regions, mark.source, inside)?;
    let wants = aux || recording.as_ref().is_some_and(|r| r.wants_aux());
    let call = JvpCall {
        op,
        inputs: &values,
        outputs: &[],
        attrs,
        regions,
        tangents: &tangents,
        ops: &GRAD_OPS,
    };
    let made = level::around(level, || push_forward(&mut TensorEmit::new(mark), &call, wants));
    let dual = made.map_err(|e| e.at(mark.source))?;
    let mut outputs = dual.outputs.into_iter().map(unhold).collect::<Result<SmallVec<_>>>()?;
    for (output, tangent) in outputs.iter().zip(dual.tangents) {
        if let Some(tangent) = tangent {
            pass.borrow_mut().set(output, unhold(tangent)?);
        }
    }
    if let Some(recording) = recording {
        recording.finish(&tensors, &outputs)?;
    }
    if wants && !aux {
        let plain = outputs.len() - tape::aux_count(op, &tensors, attrs, regions)?;
        outputs.truncate(plain);
    }
    Ok(outputs)
}
