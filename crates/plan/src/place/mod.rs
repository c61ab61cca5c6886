//! Liveness and alias analysis: every value gets its bytes, a view's, a dying input's, or a buffer of its own. It walks the nodes in the
//! order that they will run; `view` lays out views, `in_place` decides whose bytes a result may take,
//! `copy` and `region` serve loops and branches, `outputs` and `arena` close the plan.
//!
//! Decision: `docs/decisions/reductions-are-not-in-place.md`.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::layout::Layout;
use tonnage_core::recipe::Recipe;
use tonnage_core::row::{Lower, Mem};
use tonnage_core::shape::TensorType;
use tonnage_core::tile::{Close, TileProgram};

use crate::close::Outline;
use crate::file_reads::split_file_reads;
use crate::files::is_there;
use crate::plan::{At, Placed, Plan, Run, StepMemory, TileRead};
use crate::{order, region, tile};

mod buffers;
mod file_values;
mod liveness;
mod places;
mod spec;
mod steps;

pub(crate) use buffers::Buffers;
pub(crate) use file_values::FileValues;
pub(crate) use liveness::Liveness;
pub(crate) use places::{Places, store};
pub(crate) use spec::most;
pub use spec::{InputSpec, PlanOptions};
pub(crate) use steps::Steps;

/// Plans a lowered graph.
pub fn plan(graph: &Arc<Graph>, inputs: &[InputSpec], options: PlanOptions) -> Result<Plan> {
    let ordered = order::low_peak(graph, inputs, &*options.target);
    let made = plan_in_order(&ordered, inputs, &[], options)?;
    Ok(Plan { program: graph.clone(), ..made })
}

/// Plans a body or a branch. `homes` says of each output whose bytes it may stay in: those of an input that
/// is given up.
pub(crate) fn plan_region(
    graph: &Arc<Graph>,
    inputs: &[InputSpec],
    homes: &[Option<usize>],
    options: PlanOptions,
) -> Result<Plan> {
    plan_in_order(&order::low_peak(graph, inputs, &*options.target), inputs, homes, options)
}

/// Plans a lowered graph whose nodes stand in the order in which they run.
pub(crate) fn plan_in_order(
    graph: &Arc<Graph>,
    inputs: &[InputSpec],
    homes: &[Option<usize>],
    options: PlanOptions,
) -> Result<Plan> {
    let graph = &split_file_reads(graph, inputs);
    Planner::placed(graph, inputs, homes, options)?.finish()
}

/// What the plan of such a graph takes at least, and does with files: all but addresses, which take the longest to find.
pub(crate) fn outline(
    graph: &Arc<Graph>,
    inputs: &[InputSpec],
    options: PlanOptions,
) -> Result<Outline> {
    let graph = &split_file_reads(graph, inputs);
    Planner::placed(graph, inputs, &[], options)?.outline()
}

pub(crate) struct Planner<'g> {
    pub graph: &'g Arc<Graph>,
    pub options: PlanOptions,
    /// Where each value lies.
    pub places: Places,
    /// The steps in the making.
    pub steps: Steps,
    /// Buffers, with their lifetimes.
    pub buffers: Buffers,
    /// Who may be overwritten, and from when on.
    pub liveness: Liveness,
    pub specs: Vec<InputSpec>,
    /// What goes to files that outlive the call.
    pub file_values: FileValues,
    /// Whether the data decide any size.
    data_sizes: bool,
}

impl<'g> Planner<'g> {
    fn new(
        graph: &'g Arc<Graph>,
        inputs: &[InputSpec],
        homes: &[Option<usize>],
        options: PlanOptions,
    ) -> Result<Planner<'g>> {
        if inputs.len() != graph.inputs.len() {
            let what = format!("{} inputs for a graph of {}", inputs.len(), graph.inputs.len());
            return Err(ErrorKind::BadGraph { what }.into());
        }
        let mut planner = Planner {
            graph,
            options,
            places: Places::new(graph.value_count()),
            steps: Steps::default(),
            buffers: Buffers::default(),
            liveness: Liveness::new(graph, inputs, homes),
            specs: inputs.to_vec(),
            file_values: FileValues::new(inputs),
            data_sizes: graph.depends_on_data(),
        };
        for (i, (id, spec)) in graph.inputs.iter().zip(inputs).enumerate() {
            planner.places.put(*id, spec.placed(i));
        }
        Ok(planner)
    }

    /// Every node with its place, in the order in which they stand.
    fn placed(
        graph: &'g Arc<Graph>,
        inputs: &[InputSpec],
        homes: &[Option<usize>],
        options: PlanOptions,
    ) -> Result<Planner<'g>> {
        let mut planner = Planner::new(graph, inputs, homes, options)?;
        for at in 0..graph.nodes.len() {
            planner.node(at).map_err(|e| e.at(graph.nodes[at].source))?;
        }
        Ok(planner)
    }

    /// The place of a value that has one.
    pub fn place(&self, id: ValueId) -> Result<&Placed> {
        self.places.get(id)
    }

    fn node(&mut self, at: usize) -> Result<()> {
        self.steps.begin_node(at);
        let node = &self.graph.nodes[at];
        match node.op.lower {
            Lower::View(view) => self.view(node, view),
            Lower::Recipe(make) => self.described(node, make),
            Lower::Tile(make) => {
                let program = self.graph.with_call(node, |call| make(call, node.aux))?;
                self.tile(node, &program)
            }
            Lower::Kernel => match self.rows_in_file(node)? {
                true => Ok(()),
                false => self.kernel(node),
            },
            Lower::Region(kind) => region::node(self, node, kind),
            Lower::Transfer(transfer) => self.transfer(node, transfer),
            Lower::Composite(_) => {
                let what = format!("the composite {} was not written out", node.op.name);
                Err(ErrorKind::BadGraph { what }.into())
            }
        }
    }

    pub fn recipe(&mut self, node: &Node, recipe: Arc<Recipe>) {
        self.places.put(node.outputs[0], Placed::recipe(recipe));
        self.note(node, StepMemory::Recipe);
    }

    fn tile(&mut self, node: &Node, program: &TileProgram) -> Result<()> {
        let domain = self.graph.with_call(node, |call| tonnage_ops::tile::domain(call, program))?;
        let domain = most(&TensorType::new(tonnage_core::DType::U8, domain), node.op.name)?;
        let placed =
            node.inputs.iter().map(|id| self.place(*id)).collect::<Result<Vec<&Placed>>>()?;
        let limits = self.options.target.tile_limits();
        let run = tile::ready(program, domain, &placed, &limits).ok_or_else(|| no_layout(node))?;
        let lazy = !self.is_dynamic(node) && !matches!(node.op.mem, Mem::Update(_));
        let to_file = node.op.mem == Mem::File;
        let stays = |recipe: &Arc<Recipe>| lazy && (!to_file || is_there(recipe));
        if let Some(recipe) = tile::as_recipe(&run, &limits).filter(stays) {
            self.recipe(node, recipe);
            return Ok(());
        }
        // Recipes that could not be written into the program are in memory before it runs.
        for read in &run.reads {
            if let TileRead::Input(input, _) = read {
                self.materialize(node, node.inputs[*input])?;
            }
        }
        if to_file {
            return self.in_file(node, run);
        }
        // A reduction reads its inputs while others of its results are written: never in place.
        let memory = match run.program.close {
            Close::Store => self.outputs(node)?,
            Close::Reduce { .. } => self.fresh_outputs(node)?,
        };
        let scratch = self.options.target.tile_scratch(&run.program, &run.domain);
        self.step(node, Run::Tile(Arc::new(run)), memory, scratch);
        Ok(())
    }

    /// Makes a value that is a recipe resident.
    pub fn materialize(&mut self, node: &Node, id: ValueId) -> Result<()> {
        let At::Recipe(recipe) = &self.place(id)?.at else { return Ok(()) };
        let run = tile::materialize(recipe);
        self.fresh(node, id)?;
        let writes = SmallVec::from_iter([id]);
        self.push(
            node,
            Run::Tile(Arc::new(run)),
            StepMemory::Allocates,
            Bytes::ZERO,
            SmallVec::new(),
            writes,
        );
        Ok(())
    }

    /// A buffer of its own for a value.
    pub fn fresh(&mut self, node: &Node, id: ValueId) -> Result<()> {
        let info = self.graph.value(id);
        let layout = Layout::contiguous(most(&info.ty, node.op.name)?);
        let elements = info.ty.bytes(node.op.name)?;
        let step = self.steps.next();
        let buffer = self.buffers.add(step, elements, info.kind, node.op.name, node.source);
        self.places.put(id, Placed { at: At::Buffer(buffer), layout });
        Ok(())
    }

    /// A step that does nothing.
    pub fn note(&mut self, node: &Node, memory: StepMemory) {
        let dynamic = self.is_dynamic(node);
        self.steps.note(node, memory, dynamic);
    }

    /// A step that reads the inputs of a node and writes its outputs.
    pub fn step(&mut self, node: &Node, run: Run, memory: StepMemory, scratch: Bytes) {
        let (reads, writes) =
            (node.inputs.iter().copied().collect(), node.outputs.iter().copied().collect());
        self.push(node, run, memory, scratch.rounded(), reads, writes);
    }

    /// A step; its scratch comes rounded, or laid out of pieces that are.
    pub fn push(
        &mut self,
        node: &Node,
        run: Run,
        memory: StepMemory,
        scratch: Bytes,
        reads: SmallVec<[ValueId; 4]>,
        writes: SmallVec<[ValueId; 2]>,
    ) {
        let at = self.steps.next();
        let scratch = (!scratch.is_zero())
            .then(|| self.buffers.add_scratch(at, scratch, node.op.name, node.source));
        for id in reads.iter().chain(&writes) {
            if let Some(buffer) = self.places.buffer(*id) {
                self.buffers.extend(buffer, at);
            }
        }
        let dynamic = self.is_dynamic(node);
        self.steps.push(run, memory, scratch, reads, writes, dynamic);
    }

    /// Whether sizes that the data decide say what a node does.
    pub fn is_dynamic(&self, node: &Node) -> bool {
        let mut types = node.inputs.iter().chain(&node.outputs).map(|id| self.graph.ty(*id));
        types.any(|ty| ty.shape.sizes().is_none())
            || (self.data_sizes && node.attrs.depend_on_data())
    }
}

pub(crate) fn no_layout(node: &Node) -> tonnage_core::Error {
    let what = format!("the inputs of {} do not broadcast to what it runs over", node.op.name);
    ErrorKind::BadGraph { what }.into()
}
