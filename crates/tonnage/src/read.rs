//! Reading a tensor's values.

use std::fmt;

use tonnage_core::{Element, Result};

use crate::convert;
use crate::display;
use crate::tensor::{Repr, Tensor};

impl Tensor {
    /// Its elements in logical order. The dtype must be `T`'s.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        convert::to_vec(self.array("reading the values")?)
    }

    /// Its only element.
    pub fn scalar<T: Element>(&self) -> Result<T> {
        convert::scalar(self.array("reading the value")?)
    }

    /// The rows of a matrix.
    pub fn to_vec2<T: Element>(&self) -> Result<Vec<Vec<T>>> {
        convert::to_vec2(self.array("reading the values")?)
    }

    /// The matrices of a tensor of rank 3.
    pub fn to_vec3<T: Element>(&self) -> Result<Vec<Vec<Vec<T>>>> {
        convert::to_vec3(self.array("reading the values")?)
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.repr() {
            Repr::Array(array) => display::format(array, f),
            Repr::Symbol(symbol) => write!(f, "Tensor({}, symbolic)", symbol.value.ty()),
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.repr() {
            Repr::Array(array) => display::debug(array, f),
            Repr::Symbol(symbol) => write!(f, "Tensor({}, symbolic)", symbol.value.ty()),
        }
    }
}
