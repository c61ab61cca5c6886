//! What a frontier itself takes on the heap: sketches of all points, and the plans of those that were asked for.

use std::sync::PoisonError;

use tonnage_core::heap::{Heap, Seen};

use super::draw::SketchStep;
use super::variants::{FrontierPoint, Variant};
use super::{Frontier, Planned};
use crate::order::pressure::{Needs, Pressure};
use crate::place::InputSpec;

impl Heap for Frontier {
    fn heap(&self, seen: &mut Seen) -> usize {
        let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let made: usize = plans.iter().filter_map(|p| p.plan.as_ref()).map(|p| p.heap(seen)).sum();
        self.variants.iter().map(|of| variant(of, seen)).sum::<usize>()
            + self.variants.capacity() * size_of::<Variant>()
            + self.inputs.capacity() * size_of::<InputSpec>()
            + self.inputs.iter().map(|spec| input(spec, seen)).sum::<usize>()
            + self.points.iter().map(|(_, of)| point(of)).sum::<usize>()
            + self.points.capacity() * size_of::<(usize, FrontierPoint)>()
            + plans.capacity() * size_of::<Planned>()
            + made
    }
}

impl Frontier {
    /// How many plans it holds: what it takes changes with that.
    pub fn planned(&self) -> usize {
        let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.iter().filter(|planned| planned.plan.is_some()).count()
    }
}

fn input(spec: &InputSpec, seen: &mut Seen) -> usize {
    match spec {
        InputSpec::Bytes { layout, .. } => layout.heap(seen),
        InputSpec::Recipe(recipe) => recipe.heap(seen),
    }
}

fn variant(variant: &Variant, seen: &mut Seen) -> usize {
    let within = variant.within.as_ref();
    variant.graph.heap(seen)
        + pressure(&variant.pressure)
        + within.map_or(0, |within| within.body.heap(seen) + pressure(&within.pressure))
}

fn point(point: &FrontierPoint) -> usize {
    (point.runs.capacity() + point.within.capacity()) * size_of::<SketchStep>()
}

fn pressure(pressure: &Pressure) -> usize {
    // Reads, makes and reuses are inline but for a few.
    let inner = |needs: &Needs| {
        let lists = [&needs.reads[..], &needs.makes[..], &needs.reuses[..]];
        let spilled = [needs.reads.spilled(), needs.makes.spilled(), needs.reuses.spilled()];
        lists.iter().zip(spilled).filter(|(_, s)| *s).map(|(l, _)| size_of_val(*l)).sum::<usize>()
    };
    pressure.nodes.capacity() * size_of::<Needs>()
        + pressure.nodes.iter().map(inner).sum::<usize>()
        + pressure.root.capacity() * size_of::<u32>()
        + pressure.size.capacity() * size_of::<u64>()
        + pressure.in_arena.capacity()
        + pressure.stays.capacity()
}
