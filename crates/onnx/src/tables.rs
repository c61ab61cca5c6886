//! Tables of weights that are computed row by row, such as embeddings that are stored as bytes with a scale for each row: where only some rows are
//! looked up, only those are computed.
//!
//! The importer remembers how such a table was made of others. A node that gathers rows gathers those of what it was made of, and runs the same
//! rules on them; the whole table is read by nobody then, and is no part of the plan.

use std::cell::RefCell;
use std::collections::HashMap;

use tonnage::{Result, Tensor, bind};

use crate::call::Call;
use crate::import::{Attributes, Opsets};
use crate::layout::is_elementwise;
use crate::message::NodeMessage;
use crate::rules::Rule;
use crate::value::Value;

/// How tables were made, by the identity of the table.
#[derive(Default)]
pub struct Tables<'m>(RefCell<HashMap<u64, Made<'m>>>);

/// A node that computed a table, and what it read.
#[derive(Clone)]
struct Made<'m> {
    node: &'m NodeMessage,
    attributes: Attributes<'m>,
    version: i64,
    opsets: &'m Opsets,
    rule: Rule,
    inputs: Vec<Value>,
}

/// Whether a tensor has a row for each row of a table; none where it is not broadcast along all of them either.
fn has_rows(tensor: &Tensor, table: &Tensor) -> Option<bool> {
    let (own, whole) = (tensor.shape(), table.shape());
    match own.rank() == whole.rank() {
        true if own[0] == whole[0] => Some(true),
        true => own[0].is(1).then_some(false),
        false => Some(false),
    }
}

impl<'m> Tables<'m> {
    /// Remembers what a node made, where that is a table of weights computed row by row.
    pub fn note(&self, call: &Call<'_, 'm>, rule: Rule, made: &[Value]) {
        let [Value::Tensor(table)] = made else { return };
        if !is_elementwise(&call.node.op) || call.version < 7 || table.rank() < 2 {
            return;
        }
        let is_table = |tensor: &Tensor| {
            tensor.is_recipe() || self.0.borrow().contains_key(&bind::identity(tensor))
        };
        let mut any = false;
        for value in &call.inputs {
            let Value::Tensor(tensor) = value else { return };
            match has_rows(tensor, table) {
                Some(true) if is_table(tensor) => any = true,
                Some(_) if !tensor.is_symbolic() => {}
                _ => return,
            }
        }
        if any {
            let Call { node, version, opsets, .. } = *call;
            let (attributes, inputs) = (call.attributes.clone(), call.inputs.clone());
            let how = Made { node, attributes, version, opsets, rule, inputs };
            self.0.borrow_mut().insert(bind::identity(table), how);
        }
    }

    /// Some rows of a table, by their numbers, where it was computed row by row.
    pub fn rows(
        &self,
        call: &Call<'_, 'm>,
        table: &Tensor,
        places: &Tensor,
    ) -> Result<Option<Tensor>> {
        let Some(how) = self.0.borrow().get(&bind::identity(table)).cloned() else {
            return Ok(None);
        };
        let Made { node, attributes, version, opsets, rule, inputs } = how;
        let mut own = Call { node, inputs, attributes, version, opsets, ..*call };
        let mut rows = Vec::new();
        for (at, value) in own.inputs.iter().enumerate() {
            rows.push(match value {
                Value::Tensor(tensor) if has_rows(tensor, table) == Some(true) => {
                    Value::Tensor(match self.rows(call, tensor, places)? {
                        Some(rows) => rows,
                        None => own.x(at)?.gather(places, 0)?,
                    })
                }
                Value::Tensor(_) => Value::Tensor(own.x(at)?),
                other => other.clone(),
            });
        }
        own.inputs = rows;
        rule(&own)?.into_iter().next().map(Value::tensor).transpose()
    }
}
