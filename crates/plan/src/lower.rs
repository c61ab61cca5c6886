//! A graph as it runs: simplified, composites written out, every copy explicit, elementwise chains joined.
//!
//! The order of the passes matters in two places. Common subexpressions are merged before calls of bodies are
//! written out, so that what is recomputed on purpose stays so ([`inline`]). And chains are joined last,
//! when nothing else looks for single ops any more.

use std::collections::HashMap;
use std::sync::Arc;

use tonnage_core::error::Result;
use tonnage_core::graph::Graph;

use crate::fuse::{fuse, see_through};
use crate::rewrite::{
    Rewrite, carry, inline, numbered, parts_alone, protect_reads, rewritten, save_residuals,
    updates_wait,
};
use crate::target::Target;

/// The graph as it runs on a device, with its regions.
pub fn lower(graph: &Graph, target: &dyn Target) -> Result<Graph> {
    finish(rewritten(graph, &Rewrite::ALL, target)?, target)
}

/// The graph as it runs with expensive residuals of its loops saved for their gradients: all of them, or only some. None where
/// there are no such.
pub fn lower_with_residuals(graph: &Graph, target: &dyn Target) -> Result<Vec<Graph>> {
    let saved = save_residuals(&rewritten(graph, &Rewrite::ALL, target)?)?;
    saved.into_iter().map(|graph| finish(graph, target)).collect()
}

/// What is left to do after the rewrites, regions first.
fn finish(graph: Graph, target: &dyn Target) -> Result<Graph> {
    let mut graph = inline(graph)?;
    // A loop and its gradient hold the same body: it stays one.
    let mut done: HashMap<*const Graph, (Arc<Graph>, Arc<Graph>)> = HashMap::new();
    for region in graph.nodes.iter_mut().flat_map(|n| &mut n.regions) {
        let key = Arc::as_ptr(region);
        let made = match done.get(&key) {
            Some((_, made)) => made.clone(),
            None => Arc::new(finish((**region).clone(), target)?),
        };
        done.insert(key, (region.clone(), made.clone()));
        *region = made;
    }
    let graph = protect_reads(carry(updates_wait(graph)?)?)?;
    let mut graph = parts_alone(fuse(see_through(graph)?, target)?)?;
    graph.prune();
    numbered(graph)
}
