//! Liveness and alias analysis: every value gets its bytes, a view's, a dying input's, or a buffer of its own.
//!
//! [`Planner`] walks the nodes in the order that they will run, and asks its parts: [`Liveness`] who may be overwritten,
//! [`Places`] where values lie, [`Buffers`] and [`Steps`] what was made so far, [`FileValues`] what goes to files. What each
//! kind of node needs is in a file of its own, outside of this folder, and knows the planner by its methods alone: `view`,
//! `tile`, `kernel`, `region`, `transfer`. `in_place` decides whose bytes a result may take; `outputs` and `close` end the
//! plan.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::layout::Layout;
use tonnage_core::recipe::Recipe;
use tonnage_core::row::Lower;
use tonnage_core::shape::Sizes;

use crate::file_reads::split_file_reads;
use crate::plan::{At, BufferId, Placed, Plan, Run, StepMemory, Streamed};
use crate::target::SharedTarget;
use crate::{kernel, network, order, region, tile, transfer, view};

mod buffers;
mod close;
mod file_values;
mod in_place;
mod liveness;
mod outputs;
mod places;
mod spec;
mod steps;

use buffers::Buffers;
use close::Outline;
use file_values::FileValues;
use liveness::Liveness;
use places::Places;
pub(crate) use places::{StorageKey, store};
pub(crate) use spec::most;
pub use spec::{InputSpec, PlanOptions};
use steps::Steps;

/// Plans a lowered graph. Memory for everything is memory for a transfer between ranks that runs beside the kernels, too.
pub fn plan(graph: &Arc<Graph>, inputs: &[InputSpec], options: PlanOptions) -> Result<Plan> {
    let ordered = order::low_peak(graph, inputs, &*options.target);
    let ahead = network::room_ahead(&ordered, &*options.target);
    let options = PlanOptions { ahead, ..options };
    let made = plan_in_order(&ordered, inputs, &[], options)?;
    Ok(Plan { program: graph.clone(), ..made })
}

/// Plans a lowered graph whose nodes stand in the order in which they run.
pub(crate) fn plan_in_order(
    graph: &Arc<Graph>,
    inputs: &[InputSpec],
    homes: &[Option<usize>],
    options: PlanOptions,
) -> Result<Plan> {
    let (graph, most) = beside_lanes(graph, inputs, homes, &options)?;
    let mut planner = Planner::placed(&graph, inputs, homes, options)?;
    planner.most_beside_network = most;
    planner.finish()
}

/// What the plan of such a graph takes at least, and does with files: all but addresses, which take the longest to find.
pub(crate) fn outline(
    graph: &Arc<Graph>,
    inputs: &[InputSpec],
    options: PlanOptions,
) -> Result<Outline> {
    let (graph, most) = beside_lanes(graph, inputs, &[], &options)?;
    let mut planner = Planner::placed(&graph, inputs, &[], options)?;
    planner.most_beside_network = most;
    planner.outline()
}

/// The graph with reads from files apart from what reads them, and with what waits for other ranks behind what does not; and what may live at once where
/// transfers run beside kernels. A region has no such lane.
fn beside_lanes(
    graph: &Arc<Graph>,
    inputs: &[InputSpec],
    homes: &[Option<usize>],
    options: &PlanOptions,
) -> Result<(Arc<Graph>, Option<Bytes>)> {
    let graph = split_file_reads(graph, inputs);
    if options.outputs_given || !network::has_lane(&graph, &*options.target) {
        return Ok((graph, None));
    }
    let bound =
        |graph| Planner::placed(graph, inputs, homes, options.clone()).and_then(Planner::bound);
    let most = bound(&graph)? + options.ahead;
    let ordered = network::ordered(&graph, inputs, &*options.target, options.ahead);
    // The order was found by estimates.
    match Arc::ptr_eq(&ordered, &graph) || bound(&ordered)? > most {
        true => Ok((graph, Some(most))),
        false => Ok((ordered, Some(most))),
    }
}

/// A plan in the making: walks the nodes, and keeps its parts in step.
pub(crate) struct Planner<'g> {
    graph: &'g Arc<Graph>,
    options: PlanOptions,
    specs: Vec<InputSpec>,
    /// Who may be overwritten, and from when on.
    liveness: Liveness,
    /// Where each value lies.
    places: Places,
    /// Buffers, with their lifetimes.
    buffers: Buffers,
    /// The steps in the making.
    steps: Steps,
    /// What goes to files that outlive the call.
    file_values: FileValues,
    /// Whether the data decide any size.
    data_sizes: bool,
    /// What may live in the arena at once where transfers between ranks run beside kernels; none do without.
    most_beside_network: Option<Bytes>,
}

impl<'g> Planner<'g> {
    /// The inputs with their places.
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
            specs: inputs.to_vec(),
            liveness: Liveness::new(graph, inputs, homes),
            places: Places::new(graph.value_count()),
            buffers: Buffers::default(),
            steps: Steps::default(),
            file_values: FileValues::new(inputs),
            data_sizes: graph.depends_on_data(),
            most_beside_network: None,
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

    /// Gives a node its place, as its op is lowered.
    fn node(&mut self, at: usize) -> Result<()> {
        self.steps.begin_node(at);
        let node = &self.graph.nodes[at];
        match node.op.lower {
            Lower::View(view) => view::node(self, node, view),
            Lower::Recipe(make) => view::described(self, node, make),
            Lower::Tile(make) => {
                let program = self.graph.with_call(node, |call| make(call, node.aux))?;
                tile::node(self, node, &program)
            }
            Lower::Kernel => kernel::node(self, node),
            Lower::Region(kind) => region::node(self, node, kind),
            Lower::Transfer(transfer) => transfer::node(self, node, transfer),
            Lower::Composite(_) => {
                let what = format!("the composite {} was not written out", node.op.name);
                Err(ErrorKind::BadGraph { what }.into())
            }
        }
    }

    /// The graph that is planned.
    pub fn graph(&self) -> &'g Arc<Graph> {
        self.graph
    }

    /// The device that it is planned for.
    pub fn target(&self) -> &SharedTarget {
        &self.options.target
    }

    /// The nodes that come after the one at hand.
    pub fn later_nodes(&self) -> &'g [Node] {
        &self.graph.nodes[self.steps.node() + 1..]
    }

    /// The place of a value that has one.
    pub fn place(&self, id: ValueId) -> Result<&Placed> {
        self.places.get(id)
    }

    /// Gives a value its place.
    pub fn put(&mut self, id: ValueId, placed: Placed) {
        self.places.put(id, placed);
    }

    /// Gives a view that is laid out as it runs its place at the bound of its sizes.
    pub fn put_late(&mut self, id: ValueId, at_bound: Placed) {
        self.places.put_late(id, at_bound);
    }

    /// Lets a value lie just where another does.
    pub fn alias(&mut self, id: ValueId, of: ValueId) -> Result<()> {
        let placed = self.place(of)?.clone();
        self.put(id, placed);
        Ok(())
    }

    /// Lets a value lie in a file that the call makes: which of those it is.
    pub fn put_in_file(&mut self, id: ValueId, sizes: &Sizes) -> usize {
        let (file_value, recipe) = self.file_values.add(self.graph.ty(id).dtype, sizes);
        self.put(id, Placed::recipe(Arc::new(recipe)));
        file_value
    }

    /// Lets the output of a node be computed as it is read.
    pub fn recipe(&mut self, node: &Node, recipe: Arc<Recipe>) {
        self.put(node.outputs[0], Placed::recipe(recipe));
        self.note(node, StepMemory::Recipe);
    }

    /// Makes a value that is a recipe resident.
    pub fn materialize(&mut self, node: &Node, id: ValueId) -> Result<()> {
        let At::Recipe(recipe) = &self.place(id)?.at else { return Ok(()) };
        let run = tile::materialize(recipe);
        self.fresh(node, id)?;
        let writes = SmallVec::from_iter([id]);
        let run = Run::Tile(Arc::new(run));
        self.push(node, run, StepMemory::Allocates, Bytes::ZERO, SmallVec::new(), writes);
        Ok(())
    }

    /// A buffer of its own for a value.
    pub fn fresh(&mut self, node: &Node, id: ValueId) -> Result<()> {
        self.own_buffer(node, id)?;
        Ok(())
    }

    /// Whether a value is all that lies in a buffer of the call, from its start on and in order.
    pub fn has_own_buffer(&self, id: ValueId) -> bool {
        let of = self.places.buffer(id).map(|buffer| StorageKey::Buffer(buffer.0));
        of.is_some_and(|key| self.places.sharing(key) == [id]) && self.places.lies_whole(id)
    }

    /// Lets a value lie otherwise in its bytes.
    pub fn lay_out(&mut self, id: ValueId, layout: Layout) {
        self.places.lay_out(id, layout);
    }

    /// A piece of the spill file for a value.
    pub fn fresh_where_spilled(&mut self, node: &Node, id: ValueId) -> Result<()> {
        let buffer = self.own_buffer(node, id)?;
        self.buffers.spill(buffer, self.options.target.spill_space());
        Ok(())
    }

    /// Makes a buffer for a value, and puts it there.
    fn own_buffer(&mut self, node: &Node, id: ValueId) -> Result<BufferId> {
        let info = self.graph.value(id);
        let layout = Layout::contiguous(most(&info.ty, node.op.name)?);
        let elements = info.ty.bytes(node.op.name)?;
        let step = self.steps.next_step();
        let buffer = self.buffers.add(step, elements, info.kind, node.op.name, node.source);
        self.put(id, Placed { at: At::Buffer(buffer), layout });
        Ok(buffer)
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
        let at = self.steps.next_step();
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

    /// Lets the last step read inputs from files as it goes.
    pub fn stream(&mut self, streamed: Streamed) {
        self.steps.stream(streamed);
    }

    /// Notes that a run may take less than what is planned, if that is so.
    pub fn may_take_less(&mut self, may: bool) {
        self.steps.may_take_less(may);
    }

    /// Plans a region for the same device. `homes` says of each output whose bytes it may stay in: those of an input that
    /// is given up.
    pub fn region(
        &mut self,
        graph: &Arc<Graph>,
        inputs: &[InputSpec],
        homes: &[Option<usize>],
    ) -> Result<Plan> {
        let options = PlanOptions { outputs_given: true, ..self.options.clone() };
        let ordered = order::low_peak(graph, inputs, &*options.target);
        let made = plan_in_order(&ordered, inputs, homes, options)?;
        self.may_take_less(made.is_bound);
        Ok(made)
    }

    /// Whether sizes that the data decide say what a node does.
    pub fn is_dynamic(&self, node: &Node) -> bool {
        let mut types = node.inputs.iter().chain(&node.outputs).map(|id| self.graph.ty(*id));
        types.any(|ty| ty.shape.sizes().is_none())
            || (self.data_sizes && node.attrs.depend_on_data())
    }
}
