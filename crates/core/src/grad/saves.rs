//! Which of the alternatives that a row declares is saved.

use std::collections::HashSet;

use smallvec::SmallVec;

use super::Record;
use crate::emit::Value;
use crate::error::Result;
use crate::graph::{Builder, Graph, ValueId};
use crate::row::{Call, Save, Saved, saved_values};

/// Decides for every record what is saved: where a row has alternatives, the one that adds the fewest
/// bytes to what is `held` and to what other rows save anyway.
pub fn decide(
    records: &[Record<ValueId>],
    mut held: HashSet<ValueId>,
    graph: &Graph,
) -> Result<Vec<&'static [Saved]>> {
    for record in records {
        if let [only] = record.op.saves.alternatives {
            let saved = saved_values(record.op, only, &record.needs, &call(record), false)?;
            held.extend(saved.into_iter().filter_map(|k| value_of(record, k)));
        }
    }
    let mut sets = Vec::new();
    for record in records {
        let set = cheapest(record, &held, graph)?;
        let needed = saved_values(record.op, set, &record.needs, &call(record), false)?;
        held.extend(needed.iter().filter_map(|k| value_of(record, *k)));
        sets.push(set);
    }
    Ok(sets)
}

/// Gives every record what is saved, as [`decide`] has it. Aux outputs among that are made by their node.
pub fn choose(
    mut records: Vec<Record<ValueId>>,
    held: HashSet<ValueId>,
    builder: &mut Builder,
) -> Result<Vec<Record<ValueId>>> {
    let sets = decide(&records, held, builder.graph())?;
    for (record, set) in records.iter_mut().zip(sets) {
        // In a graph, a value without readers is not saved: a rule may be lent what a second gradient takes.
        let set = saved_values(record.op, set, &record.needs, &call(record), true)?;
        let aux = match set.iter().any(|k| matches!(k, Save::Aux(_))) {
            true => builder.aux(record.outputs[0])?,
            false => Vec::new(),
        };
        record.saved = set
            .iter()
            .filter_map(|save| {
                let value = match save {
                    Save::Aux(i) => aux.get(*i).cloned()?,
                    save => builder.value(value_of(record, *save)?),
                };
                Some((*save, value))
            })
            .collect::<SmallVec<[(Save, Value); 2]>>();
    }
    Ok(records)
}

fn cheapest(
    record: &Record<ValueId>,
    held: &HashSet<ValueId>,
    graph: &Graph,
) -> Result<&'static [Saved]> {
    let alternatives = record.op.saves.alternatives;
    if let [only] = alternatives {
        return Ok(only);
    }
    let call = call(record);
    let aux = (record.op.saves.aux)(&call)?;
    // Open dims have no bytes yet; their elements are compared as if each were 1024.
    let weight = |ty: &crate::TensorType| -> u128 {
        let elements: u128 = ty.shape.iter().map(|d| d.most().unwrap_or(1024) as u128).product();
        elements * ty.dtype.size() as u128
    };
    let mut best: Option<(u128, &'static [Saved])> = None;
    for set in alternatives {
        let price = saved_values(record.op, set, &record.needs, &call, false)?
            .into_iter()
            .map(|save| match (save, value_of(record, save)) {
                (_, Some(id)) if held.contains(&id) => 0,
                (_, Some(id)) => weight(graph.ty(id)),
                (Save::Aux(i), None) => aux.get(i).map_or(0, weight),
                _ => 0,
            })
            .sum();
        if best.is_none_or(|(least, _)| price < least) {
            best = Some((price, set));
        }
    }
    Ok(best.map_or(&[], |(_, set)| set))
}

fn call(record: &Record<ValueId>) -> Call<'_> {
    Call {
        op: record.op.name,
        inputs: &record.input_types,
        attrs: &record.attrs,
        regions: &record.regions,
    }
}

fn value_of(record: &Record<ValueId>, save: Save) -> Option<ValueId> {
    match save {
        Save::Input(i) => record.inputs.get(i).copied(),
        Save::Output(i) => record.outputs.get(i).copied(),
        // The others were spelled out.
        Save::Aux(_) | Save::Inputs | Save::Ends | Save::Auxes | Save::Declared => None,
    }
}
