//! Control flow, by replaying the regions' graphs. The gradient of a loop saves every state, and looks at no
//! checkpoint that it is handed.

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::graph::{Graph, replay};
use tonnage_core::looping::{Iterations, Loop, LoopGrad, row_of, stacked};
use tonnage_core::row::{Region, Types};
use tonnage_core::{Dim, TensorType};

use super::Engine;
use super::tensor::Tensor;
use crate::plain::Plain;

/// A loop that was run: the carried values before every iteration and at the end, and rows by their place.
struct Ran {
    states: Vec<Vec<Tensor>>,
    rows: Vec<Vec<Tensor>>,
}

impl Engine<'_> {
    pub(super) fn region(
        &mut self,
        kind: Region,
        attrs: &Attrs,
        regions: &[Arc<Graph>],
        mut inputs: Vec<Tensor>,
        made: &Types,
    ) -> Result<Vec<Tensor>> {
        let mut outputs = match (kind, attrs) {
            (Region::Branch, _) => {
                let choice = self.resident(inputs.remove(0))?.plain();
                let truth = choice.dtype == tonnage_core::DType::Bool;
                let taken = match (truth, choice.values[0]) {
                    (true, yes) => usize::from(yes == 0.0),
                    (false, i) if i < 0.0 => regions.len() - 1,
                    (false, i) => (i as usize).min(regions.len() - 1),
                };
                self.replay(&regions[taken], inputs)?
            }
            (Region::Loop, Attrs::Loop(spec)) => {
                let mut ran = self.run_loop(regions, &inputs, spec)?;
                let ends = ran.states.pop().expect("a state");
                let rows = (0..spec.stacked).map(|k| {
                    let of = |row: &Vec<Tensor>| row[k].clone();
                    join(ran.rows.iter().map(of).collect(), &made[spec.carried + k])
                });
                ends.into_iter().chain(rows).collect()
            }
            (Region::LoopGrad, Attrs::LoopGrad(spec)) => self.loop_grad(regions, &inputs, spec)?,
            _ => panic!("attributes of another op: {attrs:?}"),
        };
        // Checkpoints without readers.
        for ty in &made[outputs.len()..] {
            outputs.push(Tensor::from_plain(&Plain::zeros(ty)));
        }
        Ok(outputs)
    }

    fn run_loop(&mut self, regions: &[Arc<Graph>], inputs: &[Tensor], spec: &Loop) -> Result<Ran> {
        let (condition, body) = spec.regions(regions).expect("a body");
        let most = match &spec.iterations {
            Iterations::While { most } => most.unwrap_or(u64::MAX),
            Iterations::Times(n) => n.known().expect("a number") as u64,
        };
        let (sliced, fixed) = inputs[spec.carried..].split_at(spec.sliced);
        let mut ran = Ran { states: vec![inputs[..spec.carried].to_vec()], rows: Vec::new() };
        for iteration in 0..most {
            let now = ran.states.last().expect("a state").clone();
            if let Some(condition) = condition {
                let goes_on = self.replay(condition, [&now[..], fixed].concat())?.remove(0);
                if self.resident(goes_on)?.plain().values[0] == 0.0 {
                    break;
                }
            }
            let at = spec.row(iteration, most) as usize;
            let rows: Vec<Tensor> = sliced.iter().map(|whole| row(whole, at)).collect();
            let mut made = self.replay(body, [&now[..], &rows, fixed].concat())?;
            ran.rows.push(made.split_off(spec.carried));
            ran.states.push(made);
        }
        if spec.reverse {
            ran.rows.reverse();
        }
        Ok(ran)
    }

    fn loop_grad(
        &mut self,
        regions: &[Arc<Graph>],
        inputs: &[Tensor],
        spec: &LoopGrad,
    ) -> Result<Vec<Tensor>> {
        let at = spec.inputs(inputs.len()).expect("enough inputs");
        let own = &inputs[at.own];
        let ran = self.run_loop(regions, own, &spec.of)?;
        let step = regions.last().expect("a step");
        let (sliced, fixed) = own[spec.of.carried..].split_at(spec.of.sliced);
        let mut back = inputs[at.back].to_vec();
        let iterations = ran.states.len() - 1;
        let mut rows: Vec<Option<Vec<Tensor>>> = vec![None; iterations];
        for iteration in (0..iterations).rev() {
            let place = spec.of.row(iteration as u64, iterations as u64) as usize;
            let of = |all: &[Tensor]| -> Vec<Tensor> {
                all.iter().map(|whole| row(whole, place)).collect()
            };
            let (before, after) = (&ran.states[iteration][..], &ran.states[iteration + 1][..]);
            let seeds = of(&inputs[at.seeds.clone()]);
            let taken = [before, &of(sliced), fixed, after, &seeds, &back].concat();
            back = self.replay(step, taken)?;
            rows[place] = Some(back.split_off(spec.back));
        }
        for k in 0..spec.stacked {
            let parts: Vec<Tensor> =
                rows.iter().map(|row| row.as_ref().expect("every iteration")[k].clone()).collect();
            let row = step.output_types()[spec.back + k].clone();
            back.push(join(parts, &stacked(&row, Dim::from(iterations))));
        }
        Ok(back)
    }

    /// Runs a graph, with recipes among its results made resident.
    pub fn replay(&mut self, graph: &Graph, inputs: Vec<Tensor>) -> Result<Vec<Tensor>> {
        let values = inputs.into_iter().map(Tensor::value).collect();
        let made = replay(graph, values, self)?;
        made.into_iter().map(|v| self.resident(Tensor::of(v))).collect()
    }
}

/// A row of a tensor, in bytes of its own.
fn row(whole: &Tensor, at: usize) -> Tensor {
    let all = whole.plain();
    let ty = row_of(&all.ty()).expect("an axis");
    let count = ty.shape.count().expect("known sizes");
    let values = all.values[at * count..(at + 1) * count].to_vec();
    Tensor::from_plain(&Plain { values, ..Plain::zeros(&ty) })
}

/// Rows one after the other.
fn join(rows: Vec<Tensor>, ty: &TensorType) -> Tensor {
    let values = rows.iter().flat_map(|row| row.plain().values).collect();
    Tensor::from_plain(&Plain { values, ..Plain::zeros(ty) })
}
