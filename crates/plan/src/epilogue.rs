//! Which elementwise steps run as part of the kernel before them: on what it makes, while that is still in cache. It changes
//! neither bytes nor bits; a step keeps its place in the plan, and all that lives then lives while the kernel runs too.
//!
//! Decision: `docs/decisions/epilogues.md`.

use smallvec::SmallVec;
use tonnage_core::graph::Graph;
use tonnage_core::tile::{Close, Form};
use tonnage_core::{DType, OpDef};

use crate::place::store;
use crate::plan::{Placed, Run, Step, TileRead};
use crate::target::Target;

/// Notes at each kernel that can the step that finishes its output.
pub(crate) fn join(
    graph: &Graph,
    places: &[Option<Placed>],
    steps: &mut [Step],
    target: &dyn Target,
) {
    let mut kernel = None;
    for at in 0..steps.len() {
        // A kernel does not wait for what the step that finishes it waits for.
        if !steps[at].awaits.is_empty() {
            kernel = None;
        }
        match &steps[at].run {
            Run::Nothing if !steps[at].dynamic => {}
            Run::Kernel(_) => kernel = Some(at),
            Run::Tile(run) => {
                if let Some(by) = kernel.take()
                    && let Some((op, dtype)) = made_by(graph, &steps[by])
                    && let Some(made) = loads_of_made(places, &steps[by], dtype, &steps[at])
                    && target.takes_epilogue(op, dtype, run, &made)
                {
                    steps[by].epilogue = Some(at);
                }
            }
            _ => kernel = None,
        }
    }
}

/// The op of a kernel, and the dtype of its first output. (A step that runs on the host for its device copies what it alone reads and
/// makes.)
fn made_by<'g>(graph: &'g Graph, step: &Step) -> Option<(&'g OpDef, DType)> {
    let (node, [made, ..]) = (graph.nodes.get(step.node)?, step.writes.as_slice()) else {
        return None;
    };
    (!step.dynamic && step.staging.is_none()).then(|| (node.op, graph.ty(*made).dtype))
}

/// Which loads read what the kernel has made, of a step that does nothing but change that where it lies, element by element.
fn loads_of_made(
    places: &[Option<Placed>],
    kernel: &Step,
    dtype: DType,
    step: &Step,
) -> Option<SmallVec<[usize; 2]>> {
    let place = |id: &tonnage_core::ValueId| places.get(id.index()).and_then(Option::as_ref);
    let (Run::Tile(run), false) = (&step.run, step.dynamic) else { return None };
    let ([made, others @ ..], [written]) = (kernel.writes.as_slice(), step.writes.as_slice())
    else {
        return None;
    };
    let (made, written) = (place(made)?, place(written)?);
    let of_made = |at| store(at).is_some() && store(at) == store(&made.at);
    // What the kernel makes besides is not there before it ends.
    if step.reads.iter().any(|read| others.contains(read)) {
        return None;
    }
    let count: usize = run.domain.iter().product();
    let mut loads = SmallVec::new();
    for (number, (read, form)) in run.reads.iter().zip(&run.program.loads).enumerate() {
        match read {
            // A file is read at one's own pace, and may fail.
            TileRead::Generator(generator, _) if generator.is_stored() => return None,
            TileRead::Generator(..) => {}
            TileRead::Input(i, layout) => {
                if of_made(&place(step.reads.get(*i)?)?.at) {
                    let is_element = *form == Form::Elements(dtype)
                        && layout.offset == 0
                        && layout.is_contiguous();
                    if !is_element {
                        return None;
                    }
                    loads.push(number);
                }
            }
        }
    }
    let changes_made = run.program.close == Close::Store
        && matches!(run.program.stores.as_slice(), [(_, form)] if *form == Form::Elements(dtype))
        && of_made(&written.at)
        && made.layout.offset == 0
        && made.layout.is_contiguous()
        && made.layout.count() == count;
    changes_made.then_some(loads)
}
