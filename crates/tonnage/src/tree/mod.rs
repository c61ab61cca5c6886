//! Nested arguments and results of functions: tensors in tuples, arrays, vectors, options, maps and structs,
//! beside plain values.
//!
//! A [`Tree`] is walked in one fixed order whichever method walks it, so that the n-th tensor is the same
//! one everywhere. `collections` has vectors and maps, `plain` what is no tensor, `structs` the macro for
//! structs of your own.

mod collections;
mod plain;
mod structs;

pub use plain::Static;

use tonnage_core::Result;

use crate::strings::Value;
use crate::tensor::Tensor;

/// Something that is made of tensors and plain values. Tensors become inputs of a traced function; plain
/// values are part of its signature: another value is another trace.
///
/// Implemented for tensors, of numbers and of strings, tuples of up to 8, arrays, `Vec`, `Option`, `HashMap` and `BTreeMap` (in the
/// order of their keys), numbers, booleans, strings and variables. For a struct, [`tree!`](crate::tree)
/// writes it; anything else that can be cloned and printed is a plain value as [`Static`].
pub trait Tree: Sized {
    /// Calls `f` with every tensor, in a fixed order.
    fn for_each(&self, f: &mut dyn FnMut(&Tensor));

    /// The same with every tensor replaced, in the order of [`Tree::for_each`].
    fn map(self, f: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Self>;

    /// Gives every tensor up to `f`, in the order of [`Tree::for_each`].
    fn take(self, f: &mut dyn FnMut(Tensor));

    /// A copy that shares the tensors.
    fn share(&self) -> Self;

    /// Writes down everything but the tensors: how it is nested, and plain values.
    fn describe(&self, text: &mut String);

    /// The same with every value replaced: tensors of strings are one, not three. What goes by rows asks here. What has strings in it hands this on to them.
    fn map_values(self, f: &mut dyn FnMut(Value) -> Result<Value>) -> Result<Self> {
        self.map(&mut |tensor| f(Value::Numbers(tensor))?.numbers())
    }

    /// Calls `f` with where each tensor is, as Rust would write it: `.1[0].weight`; in the order of
    /// [`Tree::for_each`]. `path` is where the tree itself is, and is left as it was.
    fn paths(&self, path: &mut String, f: &mut dyn FnMut(&str)) {
        self.for_each(&mut |_| f(path));
    }
}

/// Where each tensor is.
pub(crate) fn leaf_paths<T: Tree>(tree: &T) -> Vec<String> {
    let mut all = Vec::new();
    tree.paths(&mut String::new(), &mut |path| all.push(path.to_string()));
    all
}

/// Calls `inner` with a path that is longer by `part`.
pub(crate) fn within(path: &mut String, part: &str, inner: impl FnOnce(&mut String)) {
    let before = path.len();
    path.push_str(part);
    inner(path);
    path.truncate(before);
}

/// Every tensor of a tree, shared.
pub(crate) fn leaves<T: Tree>(tree: &T) -> Vec<Tensor> {
    let mut all = Vec::new();
    tree.for_each(&mut |tensor| all.push(tensor.clone()));
    all
}

/// Every value of a tree, shared.
pub(crate) fn values<T: Tree>(tree: &T) -> Vec<Value> {
    let mut all = Vec::new();
    // Nothing fails here: each value stays itself.
    let _ = tree.share().map_values(&mut |value| {
        all.push(value.clone());
        Ok(value)
    });
    all
}

impl Tree for Tensor {
    fn for_each(&self, f: &mut dyn FnMut(&Tensor)) {
        f(self);
    }
    fn map(self, f: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Tensor> {
        f(self)
    }
    fn take(self, f: &mut dyn FnMut(Tensor)) {
        f(self);
    }
    fn share(&self) -> Tensor {
        self.clone()
    }
    fn describe(&self, text: &mut String) {
        text.push_str("tensor");
    }
}

macro_rules! tuples {
    ($(($($T:ident $i:tt),+);)*) => {$(
        impl<$($T: Tree),+> Tree for ($($T,)+) {
            fn for_each(&self, f: &mut dyn FnMut(&Tensor)) {
                $(self.$i.for_each(f);)+
            }
            fn map(self, f: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<($($T,)+)> {
                Ok(($(self.$i.map(f)?,)+))
            }
            fn map_values(self, f: &mut dyn FnMut(Value) -> Result<Value>) -> Result<($($T,)+)> {
                Ok(($(self.$i.map_values(f)?,)+))
            }
            fn take(self, f: &mut dyn FnMut(Tensor)) {
                $(self.$i.take(f);)+
            }
            fn share(&self) -> ($($T,)+) {
                ($(self.$i.share(),)+)
            }
            fn describe(&self, text: &mut String) {
                text.push('(');
                $(
                    self.$i.describe(text);
                    text.push(',');
                )+
                text.push(')');
            }
            fn paths(&self, path: &mut String, f: &mut dyn FnMut(&str)) {
                $(within(path, concat!(".", $i), |path| self.$i.paths(path, f));)+
            }
        }
    )*};
}

tuples! {
    (A 0);
    (A 0, B 1);
    (A 0, B 1, C 2);
    (A 0, B 1, C 2, D 3);
    (A 0, B 1, C 2, D 3, E 4);
    (A 0, B 1, C 2, D 3, E 4, F 5);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
}
