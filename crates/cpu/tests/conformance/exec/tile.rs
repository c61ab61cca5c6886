//! Ops that run as tile programs.

use std::borrow::Cow;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, OpDef, Types};
use tonnage_core::tile::{Close, Form, TileProgram};
use tonnage_core::{Recipe, Shape};
use tonnage_cpu::tile::{LIMITS, Read, TileSource};
use tonnage_ops::tile::{Composed, compose};

use super::buffer::Buffer;
use super::tensor::{Store, Tensor};
use super::{Engine, nothing_allocated, scratch};

impl Engine<'_> {
    pub(super) fn tile(
        &mut self,
        op: &OpDef,
        call: &Call,
        program: &TileProgram,
        mut inputs: Vec<Tensor>,
        made: &Types,
    ) -> Result<Vec<Tensor>> {
        let mut domain = Shape::scalar();
        for (ty, form) in call.inputs.iter().zip(&program.loads) {
            if matches!(form, Form::Elements(_)) {
                domain = domain.broadcast(&ty.shape, op.name)?;
            }
        }
        let domain = domain.sizes().expect("known sizes");
        if let Close::Store = program.close {
            assert_eq!(made[0].shape.sizes().expect("known"), domain, "{}: its domain", op.name);
        }
        let recipe_of = |tensor: &Tensor| match &tensor.store {
            Store::Recipe(recipe) => Some(recipe.clone()),
            Store::Bytes(_) => None,
        };
        let recipes: Vec<_> = inputs.iter().map(recipe_of).collect();
        let mut written: Vec<Option<&Recipe>> = recipes.iter().map(|r| r.as_deref()).collect();
        let composed = compose(program, &mut written, &domain, &LIMITS);
        let (composed, sources) = composed.expect("recipes that broadcast to the domain");
        assert!(LIMITS.fit(&composed), "a program of {} instructions", composed.code.len());

        // Recipes that were not written out are in memory before it runs.
        let left: Vec<bool> = written.iter().map(Option::is_none).collect();
        for (tensor, _) in inputs.iter_mut().zip(left).filter(|(_, left)| *left) {
            *tensor = self.resident(tensor.clone())?;
        }
        let mut lent_scratch = Buffer::new(scratch(op, call, self.workers.threads()).as_usize());
        // Bits are read in logical order from the first byte on.
        for (tensor, form) in inputs.iter_mut().zip(&program.loads) {
            if *form == Form::Bits && (!tensor.layout.is_contiguous() || tensor.layout.offset != 0)
            {
                *tensor = tensor.copy();
            }
        }
        // A reduction reads its inputs while others of its results are written: never in place.
        let in_place = self.in_place;
        self.in_place &= program.close == Close::Store;
        let outputs = self.outputs(op, &mut inputs, made);
        self.in_place = in_place;
        let (mut buffers, taken) = outputs?;
        let sources: SmallVec<[TileSource; 4]> = sources
            .iter()
            .map(|source| match source {
                Composed::Generator(generator, layout) => {
                    TileSource { layout: Cow::Borrowed(layout), read: Read::Generator(generator) }
                }
                Composed::Input(i) => {
                    let layout = match program.loads[*i] {
                        Form::Bits => Layout::contiguous(domain.clone()),
                        _ => inputs[*i].layout.broadcast_to(&domain).expect("it broadcasts"),
                    };
                    let read = match taken {
                        Some((input, output)) if input == *i => Read::Output(output),
                        _ => Read::Slice(inputs[*i].bytes()),
                    };
                    TileSource { layout: Cow::Owned(layout), read }
                }
            })
            .collect();
        let mut outputs: Vec<&mut [u8]> = buffers.iter_mut().map(Buffer::bytes_mut).collect();
        let lent = lent_scratch.bytes_mut();
        let run = || {
            tonnage_cpu::tile::run(&composed, &domain, &sources, &mut outputs, lent, self.workers)
        };
        nothing_allocated(op.name, run)?;
        lent_scratch.check();
        let pair = |(buffer, ty): (Buffer, &tonnage_core::TensorType)| {
            buffer.check();
            Tensor::owning(ty.dtype, ty.shape.sizes().expect("known sizes"), buffer)
        };
        Ok(buffers.into_iter().zip(made).map(pair).collect())
    }
}
