//! Rewrites: the same results from a simpler graph. The bits stay those of the ops as they were written.
//!
//! The [`rewriter`] goes over the nodes once and applies the rules, a file each: [`fold`], [`views`], [`identity`],
//! [`broadcasts`], [`canonical_order`], [`matmul`], [`losses`]; it merges common subexpressions on the way ([`cse`]) and leaves dead
//! code behind (`Graph::prune`). Regions are walked alone.
//!
//! A composite op without regions is written out before its nodes are walked, so what it computes can be
//! merged with anything. One *with* regions (a call of a body that is recomputed for its gradient) stays
//! one node here and is written out after ([`inline`]): what is recomputed on purpose is never merged
//! with what was computed before.

mod broadcasts;
mod canonical_order;
mod carry;
mod cse;
mod fold;
mod identity;
mod inline;
mod loop_residuals;
mod losses;
mod matmul;
mod number;
mod prim;
mod regions;
mod rewriter;
mod saved_parts;
mod updates;
mod views;

use tonnage_core::error::Result;
use tonnage_core::graph::Graph;

use crate::target::Target;

pub(crate) use carry::carry;
pub(crate) use inline::inline;
pub(crate) use loop_residuals::save_residuals;
pub(crate) use number::numbered;
use rewriter::{RewriteRule, rewrite_graph};
pub(crate) use saved_parts::parts_alone;
pub(crate) use updates::{copy_of, protect_reads, roots, shares, updates_wait};

/// One of the rewrites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rewrite {
    /// Functions of fills are fills.
    Fold,
    /// Views that change nothing, and views of views.
    Views,
    /// Algebraic identities that keep the bits.
    Identities,
    /// Broadcasts that an elementwise op does by itself.
    Broadcasts,
    /// Operands that may change places stand in one order.
    Order,
    /// Transposes into the attributes of a product.
    Matmul,
    /// Losses of logits of 16 bits, without a copy of those in f32.
    Losses,
    /// Common subexpressions.
    Merge,
}

impl Rewrite {
    /// All of them, in the order in which a node is looked at.
    pub const ALL: [Rewrite; 8] = [
        Rewrite::Fold,
        Rewrite::Views,
        Rewrite::Identities,
        Rewrite::Broadcasts,
        Rewrite::Order,
        Rewrite::Matmul,
        Rewrite::Losses,
        Rewrite::Merge,
    ];

    fn rule(self) -> Option<RewriteRule> {
        Some(match self {
            Rewrite::Fold => fold::rule,
            Rewrite::Views => views::rule,
            Rewrite::Identities => identity::rule,
            Rewrite::Broadcasts => broadcasts::rule,
            Rewrite::Order => canonical_order::rule,
            Rewrite::Matmul => matmul::rule,
            Rewrite::Losses => losses::rule,
            Rewrite::Merge => return None,
        })
    }
}

/// The graph after these rewrites, here and in its regions, with composites written out and without dead code.
///
/// ```
/// use tonnage_core::{Builder, DType, Kind, TensorType};
/// use tonnage_ops::emit;
/// use tonnage_plan::{DescribedTarget, Rewrite, rewrite};
/// let mut builder = Builder::new();
/// let x = builder.input(TensorType::new(DType::F32, [2, 3]), Kind::Input, None);
/// let y = emit::scale(&mut builder, x, 1.0)?; // x * 1
/// let graph = builder.finish(&[y])?;
/// assert!(rewrite(&graph, &Rewrite::ALL, &DescribedTarget::default())?.nodes.is_empty());
/// # Ok::<(), tonnage_core::Error>(())
/// ```
pub fn rewrite(graph: &Graph, which: &[Rewrite], target: &dyn Target) -> Result<Graph> {
    numbered(rewritten(graph, which, target)?)
}

pub(crate) use cse::digests;

/// The same with the numbers that values got on the way.
pub(crate) fn rewritten(graph: &Graph, which: &[Rewrite], target: &dyn Target) -> Result<Graph> {
    let rules: Vec<RewriteRule> = which.iter().filter_map(|r| r.rule()).collect();
    let merge = which.contains(&Rewrite::Merge);
    let made = match graph.nodes.iter().any(|n| !n.regions.is_empty()) {
        // Unused parts of a loop are pruned before its body is looked at.
        true => {
            let mut pruned = graph.clone();
            pruned.prune();
            rewrite_graph(&pruned, &rules, merge, target)?
        }
        false => rewrite_graph(graph, &rules, merge, target)?,
    };
    checked(made)
}

/// The graph, looked over in debug builds: every rewrite leaves one that holds.
pub(crate) fn checked(graph: Graph) -> Result<Graph> {
    if cfg!(debug_assertions) {
        graph.verify()?;
    }
    Ok(graph)
}
