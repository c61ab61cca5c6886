//! Nested arguments and results of functions: tensors in tuples, vectors, maps and structs.

use std::collections::BTreeMap;
use std::fmt::Write;

use tonnage_core::Result;

use crate::tensor::Tensor;

/// Something that is made of tensors and plain values. Tensors become inputs of a traced function; plain
/// values are part of its signature: another value is another trace.
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
        text.push('t');
    }
}

impl Tree for () {
    fn for_each(&self, _: &mut dyn FnMut(&Tensor)) {}
    fn map(self, _: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<()> {
        Ok(())
    }
    fn take(self, _: &mut dyn FnMut(Tensor)) {}
    fn share(&self) {}
    fn describe(&self, text: &mut String) {
        text.push_str("()");
    }
}

macro_rules! plain {
    ($($T:ty),*) => {$(
        impl Tree for $T {
            fn for_each(&self, _: &mut dyn FnMut(&Tensor)) {}
            fn map(self, _: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<$T> {
                Ok(self)
            }
            fn take(self, _: &mut dyn FnMut(Tensor)) {}
            fn share(&self) -> $T {
                self.clone()
            }
            fn describe(&self, text: &mut String) {
                // Writing to a string cannot fail.
                let _ = write!(text, "{}:{self:?}", stringify!($T));
            }
        }
    )*};
}

plain!(bool, i8, i16, i32, i64, u8, u16, u32, u64, usize, f32, f64, String, tonnage_core::DType);

impl<T: Tree> Tree for Option<T> {
    fn for_each(&self, f: &mut dyn FnMut(&Tensor)) {
        if let Some(inner) = self {
            inner.for_each(f);
        }
    }
    fn map(self, f: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Option<T>> {
        self.map(|inner| inner.map(f)).transpose()
    }
    fn take(self, f: &mut dyn FnMut(Tensor)) {
        if let Some(inner) = self {
            inner.take(f);
        }
    }
    fn share(&self) -> Option<T> {
        self.as_ref().map(Tree::share)
    }
    fn describe(&self, text: &mut String) {
        match self {
            Some(inner) => {
                text.push('?');
                inner.describe(text);
            }
            None => text.push('-'),
        }
    }
}

impl<T: Tree> Tree for Vec<T> {
    fn for_each(&self, f: &mut dyn FnMut(&Tensor)) {
        self.iter().for_each(|inner| inner.for_each(f));
    }
    fn map(self, f: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Vec<T>> {
        self.into_iter().map(|inner| inner.map(f)).collect()
    }
    fn take(self, f: &mut dyn FnMut(Tensor)) {
        self.into_iter().for_each(|inner| inner.take(f));
    }
    fn share(&self) -> Vec<T> {
        self.iter().map(Tree::share).collect()
    }
    fn describe(&self, text: &mut String) {
        text.push('[');
        self.iter().for_each(|inner| inner.describe(text));
        text.push(']');
    }
}

impl<K: Ord + Clone + std::fmt::Debug, T: Tree> Tree for BTreeMap<K, T> {
    fn for_each(&self, f: &mut dyn FnMut(&Tensor)) {
        self.values().for_each(|inner| inner.for_each(f));
    }
    fn map(self, f: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<BTreeMap<K, T>> {
        self.into_iter().map(|(key, inner)| Ok((key, inner.map(f)?))).collect()
    }
    fn take(self, f: &mut dyn FnMut(Tensor)) {
        self.into_values().for_each(|inner| inner.take(f));
    }
    fn share(&self) -> BTreeMap<K, T> {
        self.iter().map(|(key, inner)| (key.clone(), inner.share())).collect()
    }
    fn describe(&self, text: &mut String) {
        text.push('{');
        for (key, inner) in self {
            let _ = write!(text, "{key:?}=");
            inner.describe(text);
        }
        text.push('}');
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
            fn take(self, f: &mut dyn FnMut(Tensor)) {
                $(self.$i.take(f);)+
            }
            fn share(&self) -> ($($T,)+) {
                ($(self.$i.share(),)+)
            }
            fn describe(&self, text: &mut String) {
                text.push('(');
                $(self.$i.describe(text);)+
                text.push(')');
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
