//! A call that no plan fits into its budget: what would do, what is in the way, and which lever that is not allowed
//! would help, each with the least budget that it would come down to.

use tonnage_core::error::{Holder, Shortage};
use tonnage_core::{Bytes, Device, Error, ErrorKind, Result};
use tonnage_plan::{Allowed, Plan};

use super::choice::Levers;

/// What a refusal says of the plan that takes the least. The plan itself is as large as the program, and is not held while
/// other levers are tried.
pub(super) struct LeastPlan {
    /// What it needs, with what is held beside it.
    pub needed: Bytes,
    beside: Bytes,
    holders: Vec<Holder>,
}

impl LeastPlan {
    /// Of a plan, with `beside` bytes held beside it.
    pub(super) fn of(plan: &Plan, beside: Bytes) -> LeastPlan {
        let live = plan.live_at_peak();
        let holders = live.iter().map(|holder| Holder {
            kind: holder.kind,
            source: holder.source,
            what: format!("{} {} at {}", holder.kind, holder.what, holder.source),
            bytes: holder.bytes,
            buffers: holder.count,
        });
        LeastPlan { needed: plan.peak() + beside, beside, holders: holders.collect() }
    }

    /// The error of a call that is refused before anything ran.
    pub(super) fn over_budget(
        self,
        device: Device,
        budget: Bytes,
        would_help: Option<String>,
    ) -> Error {
        let LeastPlan { needed, beside, holders } = self;
        let what = match beside.is_zero() {
            true => "a call".into(),
            false => format!("a call, with {beside} of data held beside it,"),
        };
        let in_use = Bytes::ZERO;
        let shortage =
            Shortage { what, device, asked: needed, in_use, holders, others: Vec::new() };
        ErrorKind::OverBudget { shortage, budget, least: Some(needed), would_help }.into()
    }
}

/// A lever that is not allowed.
struct Forbidden {
    what: &'static str,
    /// All that is allowed, and it.
    with: Levers,
}

fn forbidden(levers: Levers) -> Vec<Forbidden> {
    let allowed = levers.allowed;
    let mut found = Vec::new();
    if !levers.machine.has_disk() {
        let machine = crate::calibrate::machine();
        found.push(Forbidden {
            what: "values waiting in a file, which `no_spill()` forbids",
            with: Levers { machine, ..levers },
        });
    }
    if !allowed.micro_batches {
        found.push(Forbidden {
            what: "the batch or segments in pieces, which `exact()` forbids",
            with: Levers { allowed: Allowed { micro_batches: true, ..allowed }, ..levers },
        });
    }
    if !allowed.bf16 {
        found.push(Forbidden {
            what: "values held in bf16, which `keep_in_bf16()` allows",
            with: Levers { allowed: Allowed { bf16: true, ..allowed }, ..levers },
        });
    }
    found
}

/// Each lever that is not allowed and that would make it fit, or take less than `least`: with the least budget that
/// would do then, as `least_with` finds it. Those that make it fit come first; where none does alone, all together
/// may.
pub(super) fn would_help(
    budget: Bytes,
    least: Bytes,
    levers: Levers,
    least_with: impl Fn(&Levers) -> Result<Bytes>,
) -> Result<Option<String>> {
    let forbidden = forbidden(levers);
    let mut found = Vec::new();
    for lever in &forbidden {
        let would_do = least_with(&lever.with)?;
        if would_do < least {
            found.push((would_do, lever.what));
        }
    }
    found.sort_by_key(|(would_do, _)| *would_do > budget);
    let alone = found.iter().any(|(would_do, _)| *would_do <= budget);
    if !alone && found.len() > 1 {
        let machine = crate::calibrate::machine();
        let allowed = Allowed { micro_batches: true, bf16: true };
        let all = Levers { machine, allowed, ..levers };
        found.push((least_with(&all)?, "all of these"));
    }
    let text = |(would_do, what): &(Bytes, &str)| {
        let fits = if *would_do <= budget { "it fits with" } else { "it takes less with" };
        format!("{fits} {what}: {would_do} ({} bytes) would do", would_do.get())
    };
    let texts: Vec<String> = found.iter().map(text).collect();
    Ok((!texts.is_empty()).then(|| texts.join("; ")))
}
