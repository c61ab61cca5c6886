//! One time through a pipeline; or a look at it, which holds nothing back and finds what its steps would hold.
//!
//! Decision: `docs/decisions/pipelines-know-what-they-hold.md`.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tonnage_core::Bytes;

use super::pipeline::Elements;
use crate::strings::Value;
use crate::tensor::Tensor;
use crate::tree::{Tree, values};

/// What a step of a pipeline, or whoever else keeps rows ready, holds at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holds {
    /// The step's name, such as `shuffle`.
    pub step: &'static str,
    /// How many elements.
    pub elements: usize,
    /// What they take.
    pub bytes: Bytes,
}

impl fmt::Display for Holds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} elements, {}", self.step, self.elements, self.bytes)
    }
}

/// What all of them hold.
pub(crate) fn total(holds: &[Holds]) -> Bytes {
    holds.iter().map(|one| one.bytes).sum()
}

/// One pass over a pipeline.
#[derive(Clone)]
pub(super) struct PipelinePass {
    /// Counted from 0.
    pub number: u64,
    look: Option<Look>,
}

/// What a look has found so far.
#[derive(Clone, Default)]
pub(super) struct Look(Arc<Mutex<Vec<Holds>>>);

impl Look {
    pub fn found(&self) -> Vec<Holds> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, one: Holds) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(one);
    }
}

impl PipelinePass {
    pub fn new(number: u64) -> PipelinePass {
        PipelinePass { number, look: None }
    }

    /// A look, and where it writes down what it finds.
    pub fn looking() -> (PipelinePass, Look) {
        let look = Look::default();
        (PipelinePass { number: 0, look: Some(look.clone()) }, look)
    }

    /// Whether steps should hold nothing back and start no thread.
    pub fn is_looking(&self) -> bool {
        self.look.is_some()
    }

    /// One of `of` passes that are one pass for the steps behind this one.
    pub fn part(&self, number: u64, of: u64) -> PipelinePass {
        PipelinePass {
            number: self.number.wrapping_mul(of).wrapping_add(number),
            look: self.look.clone(),
        }
    }

    /// What a step holds, where this is a look.
    pub fn note(&self, one: Holds) {
        if let Some(look) = &self.look {
            look.note(one);
        }
    }

    /// Elements as they come; a look notes by the first of them what a step takes that holds `elements` of them.
    pub fn noted<T: Tree + Send + 'static>(
        &self,
        step: &'static str,
        elements: usize,
        of: Elements<T>,
    ) -> Elements<T> {
        let Some(look) = self.look.clone() else { return of };
        let mut is_first = true;
        Box::new(of.map(move |element| {
            let element = element?;
            if std::mem::take(&mut is_first) {
                let bytes = taken(&element).get().saturating_mul(elements as u64);
                look.note(Holds { step, elements, bytes: Bytes::new(bytes) });
            }
            Ok(element)
        }))
    }
}

/// What an element's tensors take, each in a buffer of its own; recipes take nothing.
fn taken<T: Tree>(element: &T) -> Bytes {
    let own = |tensor: &Tensor| match tensor.is_recipe() {
        true => Bytes::ZERO,
        false => tensor.ty().bytes("pipeline").unwrap_or_default().rounded(),
    };
    let each = |value: &Value| match value {
        Value::Numbers(tensor) => own(tensor),
        Value::Strings(strings) => {
            let (offsets, sizes, _) = strings.parts();
            let text = strings.text_bytes().unwrap_or(0) as u64;
            own(offsets) + own(sizes) + Bytes::new(text).rounded()
        }
    };
    values(element).iter().map(each).sum()
}
