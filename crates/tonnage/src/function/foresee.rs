//! Calls that do not run: their plans, what less memory costs them, and whether they fit a budget.

use std::sync::{Arc, Mutex};

use tonnage_core::{Bytes, Result, TensorType};
use tonnage_plan::{InputSpec, Plan, Price};
use tonnage_runtime::execute::{Headroom, Specs};
use tonnage_runtime::machine::target_on_paper;
use tonnage_runtime::placement::{is_elsewhere, ledger_of, uses_devices};
use tonnage_runtime::{Array, Ledger, host_ledger};

use super::cache::{HasProgram, TraceCache};
use super::choice::{Levers, PlanChoice, PlanKey};
use super::lock;
use super::planned::CachedPlans;
use super::program::TracedProgram;
use crate::tensor::Tensor;
use crate::variable::Foreseen;

impl TracedProgram {
    /// Plans a call without running anything: the arguments as they would lie.
    pub fn foresee<T: HasProgram>(
        &self,
        cache: &Mutex<TraceCache<T>>,
        arguments: &[Tensor],
        moved: bool,
    ) -> Result<Arc<Plan>> {
        let settled = lock(cache).is_settled();
        let (key, inputs) = self.foreseen(arguments, moved, settled)?;
        let place = self.place(arguments)?;
        if let card @ Some(_) = target_on_paper() {
            let (budgets, levers) = {
                let cache = lock(cache);
                (cache.budget().and(key.budget), cache.levers())
            };
            return PlanChoice { program: self, key: &key, card }.within(budgets, levers);
        }
        CachedPlans { program: self, cache }.plan(key, Headroom::left(&place, &inputs))
    }

    /// What less memory costs for a call with such arguments.
    pub fn prices<T: HasProgram>(
        &self,
        cache: &Mutex<TraceCache<T>>,
        arguments: &[Tensor],
    ) -> Result<Vec<Price>> {
        let (levers, settled) = {
            let cache = lock(cache);
            (cache.levers(), cache.is_settled())
        };
        let (key, _inputs) = self.foreseen(arguments, false, settled)?;
        PlanChoice { program: self, key: &key, card: target_on_paper() }.frontier(&levers)?.prices()
    }

    /// Whether a call with such arguments fits into that.
    pub fn fits(&self, arguments: &[Tensor], budget: Bytes, levers: &Levers) -> Result<bool> {
        let (key, _) = self.foreseen(arguments, false, false)?;
        PlanChoice { program: self, key: &key, card: target_on_paper() }.fits(budget, levers)
    }

    /// The device that a call runs on with such arguments.
    fn place(&self, arguments: &[Tensor]) -> Result<Ledger> {
        if !uses_devices() {
            return Ok(host_ledger());
        }
        let tensors = arguments.iter().chain(&self.captured);
        let held = self.variables.iter().filter_map(|(variable, _)| variable.held());
        let arrays: Vec<Array> =
            tensors.filter_map(|tensor| tensor.array("plan").ok().cloned()).chain(held).collect();
        ledger_of("function", arrays.iter())
    }

    /// What a call is planned for, and those of its inputs that exist.
    fn foreseen(
        &self,
        arguments: &[Tensor],
        moved: bool,
        settled: bool,
    ) -> Result<(PlanKey, Vec<Array>)> {
        // Each input: what it will be, and whether the call may overwrite it.
        let mut foreseen: Vec<(Foreseen, bool)> = Vec::new();
        for tensor in arguments {
            foreseen.push(match tensor.spec_type() {
                Some(ty) => (Foreseen::Copy(ty.clone()), moved),
                None => {
                    let array = tensor.array("plan")?;
                    (Foreseen::AsIs(array.clone()), moved && array.is_whole())
                }
            });
        }
        for tensor in &self.captured {
            foreseen.push((Foreseen::AsIs(tensor.array("a captured tensor")?.clone()), false));
        }
        for (variable, written) in &self.variables {
            foreseen.push((variable.foreseen(*written, settled)?, false));
        }
        let inputs: Vec<Array> = foreseen.iter().filter_map(|(input, _)| input.array()).collect();
        let place = self.place(arguments)?;
        let (mut key, mut specs) = (PlanKey::of(self, place.device()), Specs::default());
        let card = target_on_paper();
        let contiguous = |ty: &TensorType, donated| -> Result<InputSpec> {
            let (spec, bytes) = (InputSpec::contiguous(ty, "plan", donated)?, ty.bytes("plan")?);
            Ok(spec.in_block(card.as_ref().map_or(place.block(bytes), |card| card.block(bytes))))
        };
        for (input, donated) in &foreseen {
            key.specs.push(match input {
                // A copy on the call's device is close together, however this one lies.
                Foreseen::AsIs(array)
                    if is_elsewhere(&place, array)
                        || card.is_some() && array.as_recipe().is_none() =>
                {
                    contiguous(&array.ty(), *donated)?
                }
                Foreseen::AsIs(array) => specs.of(array, *donated),
                Foreseen::Copy(ty) => contiguous(ty, *donated)?,
            });
        }
        Ok((key, inputs))
    }
}
