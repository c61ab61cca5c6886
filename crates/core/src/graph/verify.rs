//! What every graph must hold. Each rewrite is checked against it in tests.

use super::{Graph, Node};
use crate::error::{Error, ErrorKind, Result};
use crate::shape::TensorType;

impl Graph {
    /// Checks that every value is defined once and before its use, that types are what the rows
    /// infer, and that the same holds of every region.
    pub fn verify(&self) -> Result<()> {
        let mut made = vec![false; self.value_count()];
        for id in &self.inputs {
            define(&mut made, id.index(), "an input")?;
        }
        for (at, node) in self.nodes.iter().enumerate() {
            for id in &node.inputs {
                if made.get(id.index()) != Some(&true) {
                    return Err(bad(format!(
                        "{} (node {at}) reads %{} before it is made",
                        node.op.name,
                        id.index()
                    )));
                }
            }
            for id in &node.outputs {
                define(&mut made, id.index(), node.op.name)?;
            }
            self.verify_types(node).map_err(|e| e.at(node.source))?;
            for region in &node.regions {
                region.verify()?;
            }
        }
        match self.outputs.iter().find(|id| made.get(id.index()) != Some(&true)) {
            Some(id) => Err(bad(format!("the output %{} is never made", id.index()))),
            None => Ok(()),
        }
    }

    fn verify_types(&self, node: &Node) -> Result<()> {
        let expected = self.with_call(node, |call| -> Result<_> {
            let mut types = (node.op.infer)(call)?;
            if node.aux {
                types.extend((node.op.saves.aux)(call)?);
            }
            Ok(types)
        })?;
        let found: Vec<&TensorType> = node.outputs.iter().map(|id| self.ty(*id)).collect();
        let same = expected.len() == found.len()
            && expected.iter().zip(&found).all(|(a, b)| same_type(a, b));
        if same {
            return Ok(());
        }
        Err(bad(format!("{} infers {expected:?}, but its outputs are {found:?}", node.op.name)))
    }
}

/// Equal, where a size that the data decide equals any other such size: each inference names it anew.
fn same_type(a: &TensorType, b: &TensorType) -> bool {
    a.dtype == b.dtype
        && a.shape.rank() == b.shape.rank()
        && a.shape
            .iter()
            .zip(b.shape.iter())
            .all(|(x, y)| x == y || (x.depends_on_data() && y.depends_on_data()))
}

fn define(made: &mut [bool], index: usize, by: &str) -> Result<()> {
    match made.get_mut(index) {
        Some(slot) if !*slot => {
            *slot = true;
            Ok(())
        }
        _ => Err(bad(format!("%{index} is made twice, or unknown ({by})"))),
    }
}

fn bad(what: String) -> Error {
    ErrorKind::BadGraph { what }.into()
}
