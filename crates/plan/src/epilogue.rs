//! Which elementwise steps run as part of the kernel before them: on what it makes, while that is still in cache. It changes
//! neither bytes nor bits; a step keeps its place in the plan, and all that lives then lives while the kernel runs too.
//!
//! Decision: `docs/decisions/epilogues.md`.

use tonnage_core::DType;
use tonnage_core::graph::Graph;
use tonnage_core::tile::{Close, Form};

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
            Run::Kernel(_) => {
                kernel = has_epilogue(graph, &steps[at], target).map(|dtype| (at, dtype))
            }
            Run::Tile(_) => {
                if let Some((by, dtype)) = kernel.take()
                    && fits(places, &steps[by], dtype, &steps[at])
                {
                    steps[by].epilogue = Some(at);
                }
            }
            _ => kernel = None,
        }
    }
}

/// The dtype of what a kernel hands over as it is stored. (Numbers of 16 bits are summed in more, and would be rounded once
/// where two steps round twice.)
fn has_epilogue(graph: &Graph, step: &Step, target: &dyn Target) -> Option<DType> {
    let (node, [made]) = (graph.nodes.get(step.node)?, step.writes.as_slice()) else {
        return None;
    };
    let dtype = graph.ty(*made).dtype;
    let hands_over = target.has_epilogue(node.op) && !step.dynamic;
    (hands_over && matches!(dtype, DType::F32 | DType::F64)).then_some(dtype)
}

/// True of a step that does nothing but change what the kernel has made, where it lies, element by element.
fn fits(places: &[Option<Placed>], kernel: &Step, dtype: DType, step: &Step) -> bool {
    let place = |id: &tonnage_core::ValueId| places.get(id.index()).and_then(Option::as_ref);
    let (Run::Tile(run), false) = (&step.run, step.dynamic) else { return false };
    let ([made], [written]) = (kernel.writes.as_slice(), step.writes.as_slice()) else {
        return false;
    };
    let (Some(made), Some(written)) = (place(made), place(written)) else { return false };
    let of_made = |at| store(at).is_some() && store(at) == store(&made.at);
    let count: usize = run.domain.iter().product();
    // Every read of those bytes is of the very element that is written.
    let in_order = |(read, form): (&TileRead, &Form)| match read {
        // A file is read at one's own pace, and may fail.
        TileRead::Generator(generator, _) => !generator.is_stored(),
        TileRead::Input(i, layout) => match step.reads.get(*i).and_then(place) {
            Some(placed) if of_made(&placed.at) => {
                *form == Form::Elements(dtype) && layout.offset == 0 && layout.is_contiguous()
            }
            Some(_) => true,
            None => false,
        },
    };
    run.program.close == Close::Store
        && matches!(run.program.stores.as_slice(), [(_, form)] if *form == Form::Elements(dtype))
        && of_made(&written.at)
        && made.layout.offset == 0
        && made.layout.is_contiguous()
        && made.layout.count() == count
        && run.reads.iter().zip(&run.program.loads).all(in_order)
}
