//! One step: its byte ranges lent, its kernel run.

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::layout::Layout;
use tonnage_core::recipe::Generator;
use tonnage_core::row::{Call, Cost, Lower};
use tonnage_core::shape::Sizes;
use tonnage_core::tile::{Close, Form};
use tonnage_core::{Dim, Node, TensorType, ValueId};
use tonnage_plan::{At, Placed, Run, Step, TileRead, TileRun};

use super::frame::ExecutionFrame;
use super::launch::{ReadSource, ReadSources, Reads, TileLaunch};
use super::places::nowhere;
use crate::lend::{ByteRange, Lender};

impl<'p> ExecutionFrame<'p> {
    pub fn step(&mut self, lender: &mut Lender, step: &'p Step) -> Result<()> {
        match &step.run {
            Run::Nothing if step.dynamic => self.view_anew(step),
            Run::Nothing => Ok(()),
            Run::Tile(run) if step.dynamic => self.tile_anew(lender, step, run),
            Run::Tile(run) => self.tile(lender, step, run, &[]),
            Run::Copy { run, from, to } => self.copy(lender, step, run, *from, to),
            Run::Kernel(call) => self.kernel(lender, step, call.as_deref()),
            Run::ToFile { run, file_value } => {
                self.write_file_value(lender, step, run, *file_value)
            }
            Run::RowsToFile { file_value } => self.rows_in_file(lender, step, *file_value),
            Run::Branch { key, branches } => self.branch(lender, step, *key, branches),
            Run::Loop(plan) => self.while_loop(lender, step, plan),
            Run::LoopGrad(plan) => self.while_grad(lender, step, plan),
            Run::Transfer(_) => {
                let what = "a step spills where there is no disk lane".into();
                Err(ErrorKind::BadGraph { what }.into())
            }
        }
    }

    pub fn node(&self, step: &Step) -> Result<&'p Node> {
        self.places
            .plan()
            .graph
            .nodes
            .get(step.node)
            .ok_or_else(|| ErrorKind::BadGraph { what: "a step without a node".into() }.into())
    }

    /// A view of something whose size the data decided.
    fn view_anew(&mut self, step: &Step) -> Result<()> {
        let node = self.node(step)?;
        let Lower::View(view) = node.op.lower else { return Ok(()) };
        let (input, output) = (node.inputs[0], node.outputs[0]);
        let types = [self.ty(input)];
        let attrs = self.sizes.attrs(&node.attrs);
        let call = Call { op: node.op.name, inputs: &types, attrs: &attrs, regions: &[] };
        sizes_fit(node, &call)?;
        let layout = view(&call, &self.places.layout(input)?).ok_or_else(|| {
            let what = format!("{} of a size that the data decide needs a copy", node.op.name);
            tonnage_core::Error::from(ErrorKind::BadGraph { what })
        })?;
        self.places.decide(output, layout);
        Ok(())
    }

    /// A tile program over sizes that the data decided.
    fn tile_anew(&mut self, lender: &mut Lender, step: &Step, planned: &TileRun) -> Result<()> {
        let node = self.node(step)?;
        let types: SmallVec<[TensorType; 4]> = node.inputs.iter().map(|id| self.ty(*id)).collect();
        let attrs = self.sizes.attrs(&node.attrs);
        let call = Call { op: node.op.name, inputs: &types, attrs: &attrs, regions: &[] };
        let whole = step.writes.as_slice() == node.outputs.as_slice();
        let made_by_tile =
            matches!(node.op.lower, Lower::Tile(_) | Lower::Recipe(_) | Lower::View(_));
        if !whole || !made_by_tile {
            // A recipe of a known size is written out, or a loop's first value.
            return self.tile(lender, step, planned, &[]);
        }
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
                    let layout = self.places.layout(node.inputs[0])?;
                    let layout = view(&call, &layout).unwrap_or(layout);
                    let (program, domain) = (planned.program.clone(), layout.sizes.clone());
                    TileRun::new(program, domain, vec![TileRead::Input(0, layout)])
                }
            },
            Lower::Tile(make) => {
                let program = make(&call, node.aux)?;
                let domain =
                    tonnage_ops::tile::domain(&call, &program)?.sizes().ok_or_else(nowhere)?;
                let placed = node
                    .inputs
                    .iter()
                    .zip(&planned.recipes)
                    .map(|(id, recipe)| {
                        let at = match recipe {
                            Some(recipe) => At::Recipe(recipe.clone()),
                            None => self.places.placed(*id)?.at.clone(),
                        };
                        Ok(Placed { at, layout: self.places.layout(*id)? })
                    })
                    .collect::<Result<SmallVec<[Placed; 4]>>>()?;
                let placed: SmallVec<[&Placed; 4]> = placed.iter().collect();
                tonnage_plan::tile_run(
                    &program,
                    domain,
                    &placed,
                    &self.places.plan().target.tile_limits(),
                )
                .ok_or_else(nowhere)?
            }
            _ => return Err(nowhere()),
        };
        let writes = step.writes.clone();
        self.tile(lender, step, &run, &sizes)?;
        for (id, sizes) in writes.iter().zip(&sizes) {
            self.places.decide(*id, Layout::contiguous(sizes.clone()));
        }
        Ok(())
    }

    fn tile(
        &mut self,
        lender: &mut Lender,
        step: &Step,
        run: &TileRun,
        decided: &[Sizes],
    ) -> Result<()> {
        let mut writes: SmallVec<[ByteRange; 2]> = SmallVec::new();
        for (k, id) in step.writes.iter().enumerate() {
            let byte_range = match decided.get(k) {
                Some(sizes) => self.places.written(*id, sizes)?,
                // A store is as large as what it runs over, which may be less than there is room for.
                None => match (&run.program.close, run.program.stores.get(k)) {
                    (Close::Store, Some((_, Form::Elements(_)))) => {
                        self.places.written(*id, &run.domain)?
                    }
                    _ => self.places.written_as_planned(*id)?,
                },
            };
            writes.push(byte_range);
        }
        let cost = match self.places.plan().graph.nodes.get(step.node) {
            Some(_) => run.cost,
            None => Cost::default(),
        };
        self.run_tile(lender, run, &step.reads, writes, step.scratch, cost)
    }

    fn copy(
        &mut self,
        lender: &mut Lender,
        step: &Step,
        run: &TileRun,
        from: ValueId,
        to: &Placed,
    ) -> Result<()> {
        let dtype = self.places.ty(from).dtype;
        let layout = self.places.layout(from)?;
        let whole = self.places.whole(&to.at, from)?;
        let size = dtype.size();
        let writes = SmallVec::from_iter([whole.part(0, layout.count() * size, size)?]);
        if !step.dynamic {
            return self.run_tile(lender, run, &[from], writes, None, run.cost);
        }
        let reads = match run.reads.as_slice() {
            [TileRead::Input(i, _)] => vec![TileRead::Input(*i, layout.clone())],
            other => other.to_vec(),
        };
        let anew = TileRun::new(run.program.clone(), layout.sizes.clone(), reads);
        self.run_tile(lender, &anew, &[from], writes, None, anew.cost)
    }

    pub(super) fn run_tile(
        &mut self,
        lender: &mut Lender,
        run: &TileRun,
        inputs: &[ValueId],
        mut writes: SmallVec<[ByteRange; 2]>,
        scratch: Option<tonnage_plan::BufferId>,
        cost: Cost,
    ) -> Result<()> {
        let outputs = writes.len();
        for byte_range in &writes {
            self.used.lent(byte_range);
        }
        if let Some(byte_range) = self.places.scratch(scratch) {
            self.used.lent(&byte_range);
            writes.push(byte_range);
        }
        let mut reads = Reads::default();
        let loads = self.loads(run, inputs, &writes[..outputs], &mut reads)?;
        TileLaunch {
            run,
            loads: &loads,
            reads: &reads,
            writes: &writes,
            outputs,
            cost,
            stop: self.stop.inside_step(),
        }
        .run(lender)
    }

    /// Where the loads of a program come from; byte ranges that are to be lent for them are added to `reads`.
    pub(super) fn loads(
        &self,
        run: &TileRun,
        inputs: &[ValueId],
        outputs: &[ByteRange],
        reads: &mut Reads,
    ) -> Result<ReadSources> {
        let mut from = ReadSources::new();
        for (read, form) in run.reads.iter().zip(&run.program.loads) {
            from.push(match read {
                TileRead::Generator(generator, _) => {
                    ReadSource::Generator(self.generators.bind(generator))
                }
                TileRead::Input(i, _) => {
                    let mut byte_range = self.places.read(inputs[*i])?;
                    if *form == Form::Bits {
                        byte_range.align = 1;
                    }
                    ReadSource::of(byte_range, outputs, reads)
                }
            });
        }
        Ok(from)
    }

    /// Has the system begin to read what the next step reads from a file that reads one as it goes, from step `from`
    /// on: between two layers too the disk is busy while this machine computes.
    pub(super) fn read_ahead(&self, from: usize) {
        /// Bytes from the file's start on: about a piece.
        const FIRST: usize = 8 << 20;
        let mut later = self.places.plan().steps[from..].iter();
        let Some(step) = later.find(|step| !step.streamed.is_empty()) else { return };
        for streamed in &step.streamed {
            let Some((generator, layout)) = streamed.recipe.as_stored() else { continue };
            if let Generator::Stored { elements, dtype } = self.generators.bind(generator) {
                elements.0.ahead(layout.offset as u64, FIRST / dtype.size());
            }
        }
    }
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
