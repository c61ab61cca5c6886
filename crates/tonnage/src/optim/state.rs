//! The state of an optimizer, as variables of its own.

use std::collections::HashMap;

use tonnage_core::{Result, Scalar, Shape, Source, TensorType, World};

use super::{Optimizer, Slot, computed_in};
use crate::make;
use crate::ops::Elementwise;
use crate::variable::{Role, Variable, held_in_files};

/// The state of an optimizer.
#[derive(Debug, Default)]
pub(super) struct OptimizerState {
    steps: Option<Variable>,
    rate: Option<Variable>,
    slots: HashMap<u64, Slots>,
    /// The numbers of the variables, in the order of their coming.
    order: Vec<u64>,
}

/// The state for one variable.
#[derive(Debug, Clone, Default)]
pub(super) struct Slots {
    /// The rule's.
    pub rule_slots: Vec<Variable>,
    /// Its value in f32.
    pub master: Option<Variable>,
    /// Its running mean.
    pub average: Option<Variable>,
}

impl Slots {
    /// True where there is no state for the variable.
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// The ranks that hold blocks of it, or may.
    pub fn world(&self) -> Option<World> {
        self.all().find_map(|slot| slot.blocks()).map(|blocks| blocks.world)
    }

    pub fn all(&self) -> impl Iterator<Item = &Variable> {
        self.rule_slots.iter().chain(&self.master).chain(&self.average)
    }
}

impl OptimizerState {
    /// How many steps were made.
    pub fn steps(&mut self, source: Source) -> Result<Variable> {
        scalar(&mut self.steps, "optimizer/step", Scalar::Int(0), tonnage_core::DType::I64, source)
    }

    /// A constant rate, which may be changed between steps.
    pub fn rate(&mut self, first: f64, source: Source) -> Result<Variable> {
        let dtype = tonnage_core::DType::F64;
        scalar(&mut self.rate, "optimizer/rate", Scalar::Float(first), dtype, source)
    }

    pub fn of(&self, variable: &Variable) -> Option<&Slots> {
        self.slots.get(&variable.number())
    }

    pub fn variables(&self) -> Vec<Variable> {
        let slots = self.order.iter().filter_map(|number| self.slots.get(number));
        let own = self.steps.iter().chain(&self.rate);
        own.chain(slots.flat_map(Slots::all)).cloned().collect()
    }
}

fn scalar(
    there: &mut Option<Variable>,
    name: &str,
    first: Scalar,
    dtype: tonnage_core::DType,
    source: Source,
) -> Result<Variable> {
    if let Some(variable) = there {
        return Ok(variable.clone());
    }
    let value = make::fill(first, dtype, Shape::scalar(), source)?;
    let made = Variable::new_at(name, value, Role::Optimizer, source)?;
    Ok(there.insert(made).clone())
}

impl Optimizer {
    /// The state for a variable: the rule's slots; and what starts as its value, a copy in f32 and a running mean.
    pub(super) fn wanted(&self, variable: &Variable) -> (Vec<Slot>, [Option<Slot>; 2]) {
        let ty = variable.ty();
        let computed = TensorType::new(computed_in(ty.dtype), ty.shape.clone());
        let has_master = self.master && computed.dtype != ty.dtype;
        let master = has_master.then(|| Slot::like("master", &computed));
        let average = self.averages.map(|_| Slot::like("average", &computed));
        (self.rule.slots(&computed), [master, average])
    }

    /// The state for a variable, made where it is not there yet. The copy and the mean start as the
    /// variable's value.
    pub(super) fn slots(
        &self,
        state: &mut OptimizerState,
        variable: &Variable,
        source: Source,
    ) -> Result<Slots> {
        if let Some(slots) = state.of(variable) {
            return Ok(slots.clone());
        }
        let make = |owner: &str, slot: &Slot, value| {
            let end = format!("{owner}.{}", slot.name);
            let name = format!("{}/{end}", variable.own_name());
            // It belongs to the layer of what it is of.
            let source = source.in_layer_of(variable.made());
            // And where that is stored in a file, it is too.
            held_in_files(variable.is_in_files(), || {
                let made = Variable::new_at(&name, value, Role::Optimizer, source)?;
                made.name_after(variable, &end);
                Ok(made)
            })
        };
        let (rule_slots, copies) = self.wanted(variable);
        let rule_slots = rule_slots
            .iter()
            .map(|slot| make(self.rule.name(), slot, make::zeros_of(&slot.ty, source)?))
            .collect::<Result<_>>()?;
        let copy = |slot: Option<Slot>| {
            let made =
                slot.map(|slot| make("optimizer", &slot, variable.read()?.cast(slot.ty.dtype)?));
            made.transpose()
        };
        let [master, average] = copies;
        let slots = Slots { rule_slots, master: copy(master)?, average: copy(average)? };
        state.order.push(variable.number());
        state.slots.insert(variable.number(), slots.clone());
        Ok(slots)
    }
}
