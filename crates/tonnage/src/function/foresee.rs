//! Calls that do not run: their plans, what less memory costs them, and whether they fit a budget.

use std::sync::{Arc, Mutex};

use tonnage_core::{Bytes, Device, Result, TensorType};
use tonnage_plan::{InputSpec, Plan, Price};
use tonnage_runtime::execute::{Headroom, Specs};
use tonnage_runtime::placement::{ledger_of, uses_devices};
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
        let place = ledger_of("function", inputs.iter())?;
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
        PlanChoice { program: self, key: &key }.frontier(&levers)?.prices()
    }

    /// Whether a call with such arguments fits into that.
    pub fn fits(&self, arguments: &[Tensor], budget: Bytes, levers: &Levers) -> Result<bool> {
        let (key, _) = self.foreseen(arguments, false, false)?;
        PlanChoice { program: self, key: &key }.fits(budget, levers)
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
        let (mut key, mut specs) = (PlanKey::of(self, Device::CPU), Specs::default());
        let mut inputs: Vec<Array> = Vec::new();
        let place = self.place(arguments)?;
        key.device = place.device();
        let contiguous = |ty: &TensorType, op, donated| -> Result<InputSpec> {
            Ok(InputSpec::contiguous(ty, op, donated)?.in_block(place.block(ty.bytes(op)?)))
        };
        for tensor in arguments {
            key.specs.push(match tensor.spec_type() {
                Some(ty) => contiguous(ty, "plan", moved)?,
                None => {
                    let array = tensor.array("plan")?;
                    inputs.push(array.clone());
                    specs.of(array, moved && array.is_whole())
                }
            });
        }
        for tensor in &self.captured {
            let array = tensor.array("a captured tensor")?;
            inputs.push(array.clone());
            key.specs.push(specs.of(array, false));
        }
        for (variable, written) in &self.variables {
            key.specs.push(match variable.foreseen(*written, settled)? {
                Foreseen::AsIs(array) => {
                    inputs.push(array.clone());
                    specs.of(&array, false)
                }
                Foreseen::Copy(ty) => contiguous(&ty, "variable", false)?,
            });
        }
        Ok((key, inputs))
    }
}
