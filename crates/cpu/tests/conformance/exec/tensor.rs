//! A tensor of the tests: bytes under a layout, or a recipe.

use std::sync::Arc;

use bytemuck::{cast_slice, cast_slice_mut};
use tonnage_core::layout::Layout;
use tonnage_core::{DType, FromScalar, Recipe, Scalar, Sizes, TensorType, Value, with_element};

use super::buffer::Buffer;
use crate::plain::Plain;

/// A tensor.
#[derive(Clone)]
pub struct Tensor {
    /// Of its elements.
    pub dtype: DType,
    /// Where they lie; of a recipe: its sizes.
    pub layout: Layout,
    /// What they lie in.
    pub store: Store,
}

/// What a tensor's elements come from.
#[derive(Clone)]
pub enum Store {
    /// Bytes, maybe shared.
    Bytes(Arc<Buffer>),
    /// A description.
    Recipe(Arc<Recipe>),
}

impl Tensor {
    /// Contiguous elements in bytes of their own.
    pub fn owning(dtype: DType, sizes: impl Into<Sizes>, buffer: Buffer) -> Tensor {
        let layout = Layout::contiguous(sizes);
        Tensor { dtype, layout, store: Store::Bytes(Arc::new(buffer)) }
    }

    /// A description.
    pub fn recipe(recipe: Recipe) -> Tensor {
        let layout = Layout::contiguous(recipe.sizes.clone());
        Tensor { dtype: recipe.dtype(), layout, store: Store::Recipe(Arc::new(recipe)) }
    }

    /// Those values, contiguous.
    pub fn from_plain(plain: &Plain) -> Tensor {
        let mut buffer = Buffer::new(plain.values.len() * plain.dtype.size());
        with_element!(plain.dtype, T => {
            let into: &mut [T] = cast_slice_mut(buffer.bytes_mut());
            for (x, value) in into.iter_mut().zip(&plain.values) {
                *x = T::from_scalar(scalar(*value, plain.dtype));
            }
        });
        Tensor::owning(plain.dtype, &plain.sizes[..], buffer)
    }

    /// Its values in logical order. Panics for a recipe: it has to be made resident first.
    pub fn plain(&self) -> Plain {
        let bytes = self.bytes();
        let mut values = Vec::new();
        with_element!(self.dtype, T => {
            let from: &[T] = cast_slice(bytes);
            self.layout.for_each(|at| values.push(from[at].to_scalar().to_f64()));
        });
        Plain { dtype: self.dtype, sizes: self.layout.sizes.to_vec(), values }
    }

    /// Its elements' bytes in logical order.
    pub fn bits(&self) -> Vec<u8> {
        let (bytes, size) = (self.bytes(), self.dtype.size());
        let mut bits = Vec::new();
        self.layout.for_each(|at| bits.extend(&bytes[at * size..(at + 1) * size]));
        bits
    }

    /// The same elements, close together, in bytes of their own.
    pub fn copy(&self) -> Tensor {
        let bits = self.bits();
        let mut buffer = Buffer::new(bits.len());
        buffer.bytes_mut().copy_from_slice(&bits);
        Tensor::owning(self.dtype, self.layout.sizes.clone(), buffer)
    }

    /// Its type.
    pub fn ty(&self) -> TensorType {
        TensorType::new(self.dtype, &self.layout.sizes[..])
    }

    /// All of its bytes, as they lie.
    pub fn bytes(&self) -> &[u8] {
        match &self.store {
            Store::Bytes(buffer) => buffer.bytes(),
            Store::Recipe(_) => panic!("a recipe has no bytes"),
        }
    }

    /// As a value of an emitter.
    pub fn value(self) -> Value {
        Value::held(self.ty(), Arc::new(self))
    }

    /// From a value of an emitter.
    pub fn of(value: Value) -> Tensor {
        let held = value.into_held().expect("a value that is held");
        let tensor: Arc<Tensor> = held.downcast().expect("a tensor of these tests");
        Arc::try_unwrap(tensor).unwrap_or_else(|shared| (*shared).clone())
    }

    /// Whether nobody else has its bytes, and they hold its elements in order and nothing else.
    pub fn is_sole_owner(&self) -> bool {
        match &self.store {
            Store::Bytes(buffer) => {
                Arc::strong_count(buffer) == 1
                    && self.layout.is_contiguous()
                    && self.layout.offset == 0
                    && self.layout.count() * self.dtype.size() == buffer.bytes().len()
            }
            Store::Recipe(_) => false,
        }
    }
}

fn scalar(value: f64, dtype: DType) -> Scalar {
    match dtype.is_float() {
        true => Scalar::Float(value),
        false => Scalar::Int(value as i128),
    }
}
