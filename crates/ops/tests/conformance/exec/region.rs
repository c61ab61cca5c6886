//! Control flow, by replaying the regions' graphs. The gradient of a loop keeps every state.

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::graph::{Graph, replay};
use tonnage_core::row::Region;

use super::Engine;
use super::tensor::Tensor;
use crate::plain::Plain;

impl Engine<'_> {
    pub(super) fn region(
        &mut self,
        kind: Region,
        attrs: &Attrs,
        regions: &[Arc<Graph>],
        mut inputs: Vec<Tensor>,
    ) -> Result<Vec<Tensor>> {
        match (kind, attrs) {
            (Region::Branch, _) => {
                let choice = inputs.remove(0);
                let yes = self.truth(choice)?;
                self.replay(&regions[if yes { 0 } else { 1 }], inputs)
            }
            (Region::Loop, Attrs::Loop { carried, most }) => {
                Ok(self.states(regions, &inputs, *carried, *most)?.pop().expect("a state"))
            }
            (Region::LoopGrad, Attrs::LoopGrad { carried, active, wanted, most, .. }) => {
                let seeds = inputs.split_off(carried + wanted.len());
                let states = self.states(regions, &inputs, *carried, *most)?;
                let fixed = inputs.split_off(*carried);
                let asked = fixed.iter().zip(wanted).filter(|(_, w)| **w);
                let sums = asked.map(|(t, _)| Tensor::from_plain(&Plain::zeros(&t.ty()))).collect();
                let mut grads: Vec<Tensor> = [seeds, sums].concat();
                assert_eq!(active.len(), *carried);
                for pair in states.windows(2).rev() {
                    let taken = [&pair[0][..], &fixed, &pair[1], &grads].concat();
                    grads = self.replay(&regions[2], taken)?;
                }
                Ok(grads)
            }
            _ => panic!("attributes of another op: {attrs:?}"),
        }
    }

    /// The carried values before every round, and at the end.
    fn states(
        &mut self,
        regions: &[Arc<Graph>],
        inputs: &[Tensor],
        carried: usize,
        most: Option<u64>,
    ) -> Result<Vec<Vec<Tensor>>> {
        let fixed = &inputs[carried..];
        let mut states = vec![inputs[..carried].to_vec()];
        while most.is_none_or(|most| (states.len() as u64) <= most) {
            let taken = [states.last().expect("a state"), fixed].concat();
            let goes_on = self.replay(&regions[0], taken.clone())?.remove(0);
            if !self.truth(goes_on)? {
                break;
            }
            states.push(self.replay(&regions[1], taken)?);
        }
        Ok(states)
    }

    fn truth(&mut self, tensor: Tensor) -> Result<bool> {
        Ok(self.resident(tensor)?.plain().values[0] != 0.0)
    }

    /// Runs a graph, with recipes among its results made resident.
    pub fn replay(&mut self, graph: &Graph, inputs: Vec<Tensor>) -> Result<Vec<Tensor>> {
        let values = inputs.into_iter().map(Tensor::value).collect();
        let made = replay(graph, values, self)?;
        made.into_iter().map(|v| self.resident(Tensor::of(v))).collect()
    }
}
