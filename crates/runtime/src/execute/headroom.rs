//! What a device's limit leaves for a call, and plans that fit into it.
//!
//! The limit is a budget for everything at once: a call may take what others do not hold. A plan that takes more
//! gives way to a lower point of its frontier; where the lowest is too high, tensors that can come back make room for
//! it (see `evict`), and only then is the call refused, before anything of it has run.
//!
//! Decision: `docs/decisions/limit-picks-a-plan-per-call.md`.

use std::sync::Arc;

use tonnage_core::error::{ErrorKind, Result, Shortage};
use tonnage_core::{Bytes, Error, Graph};
use tonnage_plan::{Allowed, Frontier, InputSpec, Plan, PlanOptions, plan};

use crate::array::Array;
use crate::ledger::{Id, Ledger};
use crate::placement::ledger_of;

/// What the limit of a device leaves for a call with certain inputs.
#[derive(Debug)]
pub struct Headroom {
    ledger: Ledger,
    limit: Bytes,
    /// In use, but for the inputs.
    others: Bytes,
    /// The inputs' entries.
    inputs: Vec<Id>,
}

impl Headroom {
    /// The room for a call with these inputs, as it is now; `None` without a limit.
    pub fn left<'a>(
        ledger: &Ledger,
        inputs: impl IntoIterator<Item = &'a Array>,
    ) -> Option<Headroom> {
        let (limit, in_use) = ledger.limited()?;
        let (mut ids, mut held) = (Vec::new(), Bytes::ZERO);
        for (bytes, id) in inputs.into_iter().filter_map(|array| array.storage().entry()) {
            if !ids.contains(&id) {
                ids.push(id);
                held += bytes;
            }
        }
        let ledger = ledger.clone();
        Some(Headroom { ledger, limit, others: in_use.saturating_sub(held), inputs: ids })
    }

    /// What a call may take, inputs and all.
    pub fn bytes(&self) -> Bytes {
        self.limit.saturating_sub(self.others)
    }

    /// Lets others leave memory until a call that takes so much has room, or no more can.
    fn make(&mut self, peak: Bytes) -> Result<()> {
        let missing = peak.saturating_sub(self.bytes());
        // The cache gives way by itself; it is no part of what is in use.
        let freed = self.ledger.make_room(missing, &self.inputs)?;
        self.others = self.others.saturating_sub(freed);
        Ok(())
    }

    /// The plan that was chosen without a look at the limit, where it fits; otherwise the quickest that does.
    pub fn fit(
        mut self,
        chosen: Arc<Plan>,
        frontier: impl FnOnce() -> Result<Arc<Frontier>>,
    ) -> Result<Arc<Plan>> {
        if chosen.peak() <= self.bytes() {
            return Ok(chosen);
        }
        let frontier = frontier()?;
        let least = match frontier.fit(self.bytes())? {
            Ok(plan) => return Ok(plan),
            Err(least) => least,
        };
        self.make(least.peak())?;
        match least.peak() <= self.bytes() {
            true => Ok(least),
            false => Err(self.refused(least.peak())),
        }
    }

    /// The limit, the least that would do, and who else holds what.
    fn refused(&self, least: Bytes) -> Error {
        let holders = self.ledger.others(&self.inputs);
        let (what, device, in_use) = ("a call".into(), self.ledger.device(), self.others);
        let shortage = Shortage { what, device, asked: least, in_use, holders, others: Vec::new() };
        let least = Some(least + self.others);
        ErrorKind::OverBudget { shortage, budget: self.limit, least, would_help: None }.into()
    }
}

/// A plan for a graph that runs once with these inputs, within what the limit leaves.
pub fn plan_once(
    graph: &Arc<Graph>,
    specs: &[InputSpec],
    options: PlanOptions,
    inputs: &[Array],
) -> Result<Arc<Plan>> {
    let as_it_is = Arc::new(plan(graph, specs, options.clone())?);
    match Headroom::left(&ledger_of("function", inputs.iter())?, inputs) {
        None => Ok(as_it_is),
        Some(headroom) => {
            // No budget was asked for, so no lever that changes a bit is allowed.
            let exact = Allowed::EXACT;
            let frontier = || Frontier::allowing(exact, graph, &[], specs, options).map(Arc::new);
            headroom.fit(as_it_is, frontier)
        }
    }
}
