//! Rules and composites in eager mode: what they emit runs at once.

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Mark, Value};
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::graph::Graph;
use tonnage_core::row::OpDef;

use crate::array::Array;
use crate::eager::{self, Arg};

/// Runs ops as they are emitted.
#[derive(Debug)]
pub struct EagerEmit {
    mark: Mark,
}

impl EagerEmit {
    /// Ops belong to that line until told otherwise.
    pub fn new(mark: Mark) -> EagerEmit {
        EagerEmit { mark }
    }
}

/// A tensor as a value that rules can hold.
pub fn hold(array: Array) -> Value {
    Value::held(array.ty(), Arc::new(array))
}

pub(crate) fn value(arg: Arg) -> Value {
    match arg {
        Arg::Owned(array) => hold(array),
        Arg::Borrowed(array) => hold(array.clone()),
    }
}

/// The tensor that a value holds, given up by the last who has it.
pub fn array(value: Value) -> Result<Array> {
    let held = value.into_held().and_then(|any| any.downcast::<Array>().ok());
    match held {
        Some(array) => Ok(Arc::try_unwrap(array).unwrap_or_else(|shared| (*shared).clone())),
        None => Err(ErrorKind::Symbolic { what: "the value" }.into()),
    }
}

impl Emit for EagerEmit {
    fn emit(
        &mut self,
        op: &'static OpDef,
        inputs: Vec<Value>,
        attrs: Attrs,
        regions: Vec<Arc<Graph>>,
        aux: bool,
    ) -> Result<Vec<Value>> {
        let args = inputs
            .into_iter()
            .map(|value| array(value).map(Arg::Owned))
            .collect::<Result<eager::Args>>()?;
        let made = eager::apply(op, args, &attrs, &regions, aux, self.mark)?;
        Ok(made.into_iter().map(hold).collect())
    }

    fn mark(&mut self, mark: Mark) -> Mark {
        std::mem::replace(&mut self.mark, mark)
    }
}
