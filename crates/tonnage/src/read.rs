//! Reading a tensor's values.

use std::fmt;

use tonnage_core::{Result, Source};
use tonnage_runtime::Array;

use crate::convert::{self, Native};
use crate::display;
use crate::tensor::{Tensor, TensorRepr};

impl Tensor {
    /// Its elements in logical order. The dtype must be `T`'s.
    #[track_caller]
    pub fn to_vec<T: Native>(&self) -> Result<Vec<T>> {
        self.at_line(Source::here(), "reading the values", convert::to_vec)
    }

    /// Its only element.
    #[track_caller]
    pub fn scalar<T: Native>(&self) -> Result<T> {
        self.at_line(Source::here(), "reading the value", convert::scalar)
    }

    /// The rows of a matrix.
    #[track_caller]
    pub fn to_vec2<T: Native>(&self) -> Result<Vec<Vec<T>>> {
        self.at_line(Source::here(), "reading the values", convert::to_vec2)
    }

    /// The matrices of a tensor of rank 3.
    #[track_caller]
    pub fn to_vec3<T: Native>(&self) -> Result<Vec<Vec<Vec<T>>>> {
        self.at_line(Source::here(), "reading the values", convert::to_vec3)
    }

    /// Reads its array; an error gets the user's line.
    fn at_line<R>(
        &self,
        source: Source,
        what: &'static str,
        read: fn(&Array) -> Result<R>,
    ) -> Result<R> {
        self.array(what).and_then(read).map_err(|e| e.at(source))
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.repr() {
            TensorRepr::Array(array) => display::format(array, f, display::PrintOptions::default()),
            TensorRepr::Symbolic(_) => write!(f, "Tensor({}, symbolic)", self.ty()),
            TensorRepr::Spec(_) => write!(f, "Tensor({}, without values)", self.ty()),
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.repr() {
            TensorRepr::Array(array) => display::debug(array, f),
            _ => fmt::Display::fmt(self, f),
        }
    }
}
