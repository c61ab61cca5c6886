//! Steps with dynamic shapes: what the plan left open of them, now that the data decided the sizes that they depend on.

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{Error, ErrorKind, Result};
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, Lower};
use tonnage_core::shape::Sizes;
use tonnage_core::{Dim, Node, TensorType};
use tonnage_plan::{At, KernelCall, Placed, Step, TileRead, TileRun};

use super::places::{Places, nowhere};
use super::sizes::DecidedSizes;

/// Types of several values.
type Types = SmallVec<[TensorType; 4]>;

/// Lays out the view that a node is.
pub fn view(places: &mut Places, sizes: &DecidedSizes, node: &Node) -> Result<()> {
    let Lower::View(view) = node.op.lower else { return Ok(()) };
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let types = [sizes.ty(places.ty(input))];
    let attrs = sizes.attrs(&node.attrs);
    let call = Call { op: node.op.name, inputs: &types, attrs: &attrs, regions: &[] };
    sizes_fit(node, &call)?;
    let layout = view(&call, &places.layout(input)?).ok_or_else(|| {
        let what = format!("{} of a size that the data decide needs a copy", node.op.name);
        Error::from(ErrorKind::BadGraph { what })
    })?;
    places.decide(output, layout);
    Ok(())
}

/// The tile program of a step, and the sizes of what it makes; nothing where it runs as planned.
pub fn tile(
    places: &Places,
    sizes: &DecidedSizes,
    node: &Node,
    step: &Step,
    planned: &TileRun,
) -> Result<Option<(TileRun, Vec<Sizes>)>> {
    let whole = step.writes.as_slice() == node.outputs.as_slice();
    let made_by_tile = matches!(node.op.lower, Lower::Tile(_) | Lower::Recipe(_) | Lower::View(_));
    if !whole || !made_by_tile {
        return Ok(None); // a recipe of a known size is written out, or a loop's first value
    }
    let types = types_of(places, sizes, node);
    let attrs = sizes.attrs(&node.attrs);
    let call = Call { op: node.op.name, inputs: &types, attrs: &attrs, regions: &[] };
    let sizes = sizes_fit(node, &call)?;
    let nowhere = || nowhere(step.writes[0]);
    let run = match node.op.lower {
        Lower::Recipe(make) => tonnage_plan::write_out(&make(&call)?),
        Lower::View(view) => match planned.recipes.first() {
            Some(Some(recipe)) => {
                let seen = recipe.view(sizes[0].clone(), |layout| view(&call, layout));
                tonnage_plan::write_out(&seen.ok_or_else(nowhere)?)
            }
            _ => {
                // The same elements in the same order, where they lie in no order that a view could show.
                let layout = places.layout(node.inputs[0])?;
                let layout = view(&call, &layout).unwrap_or(layout);
                let (program, domain) = (planned.program.clone(), layout.sizes.clone());
                TileRun::new(program, domain, vec![TileRead::Input(0, layout)])
            }
        },
        Lower::Tile(make) => {
            let program = make(&call, node.aux)?;
            let domain = tonnage_ops::tile::domain(&call, &program)?.sizes().ok_or_else(nowhere)?;
            let placed = node
                .inputs
                .iter()
                .zip(&planned.recipes)
                .map(|(id, recipe)| {
                    let at = match recipe {
                        Some(recipe) => At::Recipe(recipe.clone()),
                        None => places.placed(*id)?.at.clone(),
                    };
                    Ok(Placed { at, layout: places.layout(*id)? })
                })
                .collect::<Result<SmallVec<[Placed; 4]>>>()?;
            let placed: SmallVec<[&Placed; 4]> = placed.iter().collect();
            let limits = places.plan().target.tile_limits();
            tonnage_plan::tile_run(&program, domain, &placed, &limits).ok_or_else(nowhere)?
        }
        _ => return Err(nowhere()),
    };
    Ok(Some((run, sizes)))
}

/// A planned copy, of a value that lies like this.
pub fn copy(planned: &TileRun, layout: &Layout) -> TileRun {
    let reads = match planned.reads.as_slice() {
        [TileRead::Input(i, _)] => vec![TileRead::Input(*i, layout.clone())],
        other => other.to_vec(),
    };
    TileRun::new(planned.program.clone(), layout.sizes.clone(), reads)
}

/// What the call of a kernel needs, and whether it is the kernel that decides sizes of what it makes: those of its inputs are known by now.
pub fn kernel_call(
    places: &Places,
    sizes: &DecidedSizes,
    node: &Node,
    attrs: &Attrs,
) -> Result<(KernelCall, bool)> {
    let types = types_of(places, sizes, node);
    let call = Call { op: node.op.name, inputs: &types, attrs, regions: &[] };
    let mut made = (node.op.infer)(&call)?;
    if node.aux {
        made.extend((node.op.saves.aux)(&call)?);
    }
    let lies = |ty: &TensorType| Layout::contiguous(ty.shape.most().unwrap_or_default());
    let decides = made.iter().any(|ty| ty.shape.sizes().is_none());
    let outputs = made.iter().map(lies).collect();
    Ok((KernelCall { outputs, cost: (node.op.cost)(&call) }, decides))
}

/// Types of a node's inputs.
fn types_of(places: &Places, sizes: &DecidedSizes, node: &Node) -> Types {
    node.inputs.iter().map(|id| sizes.ty(places.ty(*id))).collect()
}

/// The sizes of a node's results, now that the data decided those of its inputs. An error where they do not fit.
fn sizes_fit(node: &Node, call: &Call) -> Result<Vec<Sizes>> {
    let mut made = (node.op.infer)(call).map_err(|e| match (e.kind(), call.attrs) {
        // Sizes that have to be equal for the op that reads the result: see the tracer.
        (ErrorKind::ElementCount { .. }, Attrs::Shape(to))
            if to.rank() == call.inputs[0].shape.rank() =>
        {
            let (left, right) = (call.inputs[0].shape.clone(), to.clone());
            let mut help = "the data decided these sizes, and they must be equal here".to_string();
            let one = |(x, y): (&Dim, &Dim)| x != y && (x.is(1) || y.is(1));
            if left.iter().zip(right.iter()).any(one) {
                help += ": a size of 1 is broadcast in a function only where it is known while tracing; reshape to it";
            }
            ErrorKind::ShapeMismatch { op: call.op, left, right, help }.into()
        }
        _ => e,
    })?;
    if node.aux {
        made.extend((node.op.saves.aux)(call)?);
    }
    Ok(made.iter().map(|ty| ty.shape.most().unwrap_or_default()).collect())
}
