//! Plans of all segments of a model, made before it runs: numbers that are only known then are taken from bounds.
//!
//! A bound is the number that every element of a value has, such as the sum of durations that a model predicts, or the length of an axis that the data
//! decide. A plan for the largest that may come is the most that a call takes; it may take less, since what nobody reads behind a segment is given up to that.

use std::sync::Arc;

use tonnage::{Elementwise, Plan, Result, Shape, Tensor, TensorType, bind};

use super::{Alive, Next, Segments, arguments, has_no_values};
use crate::value::Value;
use crate::wire::bad_file;

impl Segments {
    /// The plan of each segment, one after the other, as if numbers that are not known yet were their bounds.
    ///
    /// # Errors
    /// Where a number is needed that is not bound: the error names the node and the value; or where a node has to run by itself.
    pub fn plans(&self, inputs: Alive, bounds: &[(&str, usize)]) -> Result<Vec<Arc<Plan>>> {
        let nodes = &self.data.message.graph.nodes;
        let (mut alive, mut at, mut plans) = (inputs, 0, Vec::new());
        let mut used = vec![false; bounds.len()];
        while at < nodes.len() {
            for (name, value) in &mut alive {
                let bound = bounds.iter().position(|(bound, _)| bound == name);
                if let (Some(place), true) = (bound, has_no_values(value)) {
                    *value = numbers(&value.clone().tensor()?, bounds[place].1)?;
                    used[place] = true;
                }
            }
            let Next::Planned(segment) = self.next(at, &alive)? else {
                let what = format!(
                    "node `{}` ({}): numbers of its own decide what it does",
                    nodes[at].name, nodes[at].op
                );
                let help = "it cannot be planned before it runs: call it with data";
                return Err(bad_file(&self.data.file.path, what, help));
            };
            let end = &segment.end;
            if !end.results.is_empty() {
                plans.push(segment.function.plan(&arguments(&alive))?);
            }
            let mut types = end.types.iter();
            let mut next: Alive = Vec::new();
            for (name, count) in &end.results {
                let own: Vec<&TensorType> = types.by_ref().take(count.unwrap_or(1)).collect();
                let place = bounds.iter().position(|(bound, _)| bound == name);
                let sized = |ty: &TensorType| match (ty.shape.sizes(), place) {
                    (Some(_), _) => Ok(ty.clone()),
                    (None, Some(place)) => Ok(of_length(ty, bounds[place].1)),
                    (None, None) => Err(self.unbound(at, end.next, name, ty)),
                };
                if let (Some(place), true) =
                    (place, own.iter().any(|ty| ty.shape.sizes().is_none()))
                {
                    used[place] = true;
                }
                let types = own.into_iter().map(sized).collect::<Result<Vec<_>>>()?;
                let spec = |ty: TensorType| Tensor::spec(ty.dtype, ty.shape);
                let mut tensors = types.into_iter().map(spec);
                next.push((
                    name.clone(),
                    match count {
                        None => tensors.next().map_or(Value::Absent, Value::Tensor),
                        Some(_) => Value::Sequence(tensors.collect()),
                    },
                ));
            }
            at = end.next;
            alive.retain(|(name, _)| self.data.is_live(name, at));
            alive.extend(next);
            alive.extend(end.constants.iter().cloned());
        }
        match used.iter().position(|used| !used) {
            None => Ok(plans),
            Some(at) => {
                let what = format!("no number of `{}` is needed to plan it", bounds[at].0);
                Err(bad_file(&self.data.file.path, what, "leave that bound out"))
            }
        }
    }

    /// The error of a length that the data decide and that is not bound.
    fn unbound(&self, from: usize, next: usize, name: &str, ty: &TensorType) -> tonnage::Error {
        let nodes = self.data.message.graph.nodes[from..next].iter();
        let maker = nodes.rev().find(|node| node.outputs.iter().any(|made| made == name));
        let (node, op) = maker.map_or(("", ""), |node| (&node.name, &node.op));
        let what = format!("node `{node}` ({op}): the data decide how long `{name}` is, {ty}");
        let help = format!("bind it: --bound {name}=LENGTH, the most that may come");
        bad_file(&self.data.file.path, what, &help)
    }
}

/// A tensor of that type whose numbers are all the bound.
fn numbers(spec: &Tensor, bound: usize) -> Result<Value> {
    let sizes = spec.shape().sizes().unwrap_or_default().to_vec();
    // In memory, as the numbers of a call are.
    let all = vec![bound as i64; sizes.iter().product()];
    let made = || tonnage::tensor(all)?.cast(spec.dtype())?.reshape(sizes);
    Ok(Value::Tensor(bind::outside_of_traces(made)?))
}

/// A type whose open lengths are the bound.
fn of_length(ty: &TensorType, bound: usize) -> TensorType {
    let sizes = ty.shape.iter().map(|dim| dim.known().unwrap_or(bound));
    TensorType { dtype: ty.dtype, shape: Shape::from(sizes.collect::<Vec<_>>().as_slice()) }
}
