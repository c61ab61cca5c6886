//! Trees of other trees: options, arrays, vectors and maps.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{Debug, Write};
use std::hash::{BuildHasher, Hash};

use tonnage_core::{ErrorKind, Result};

use super::{Tree, within};
use crate::strings::Value;
use crate::tensor::Tensor;

impl<T: Tree> Tree for Option<T> {
    fn for_each(&self, f: &mut dyn FnMut(&Tensor)) {
        if let Some(inner) = self {
            inner.for_each(f);
        }
    }
    fn map(self, f: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Option<T>> {
        self.map(|inner| inner.map(f)).transpose()
    }
    fn map_values(self, f: &mut dyn FnMut(Value) -> Result<Value>) -> Result<Option<T>> {
        self.map(|inner| inner.map_values(f)).transpose()
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
                text.push_str("Some(");
                inner.describe(text);
                text.push(')');
            }
            None => text.push_str("None"),
        }
    }
    fn paths(&self, path: &mut String, f: &mut dyn FnMut(&str)) {
        if let Some(inner) = self {
            inner.paths(path, f);
        }
    }
}

fn describe_all<T: Tree>(all: &[T], text: &mut String) {
    text.push('[');
    for inner in all {
        inner.describe(text);
        text.push(',');
    }
    text.push(']');
}

fn paths_of_all<T: Tree>(all: &[T], path: &mut String, f: &mut dyn FnMut(&str)) {
    for (i, inner) in all.iter().enumerate() {
        within(path, &format!("[{i}]"), |path| inner.paths(path, f));
    }
}

impl<T: Tree> Tree for Vec<T> {
    fn for_each(&self, f: &mut dyn FnMut(&Tensor)) {
        self.iter().for_each(|inner| inner.for_each(f));
    }
    fn map(self, f: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Vec<T>> {
        self.into_iter().map(|inner| inner.map(f)).collect()
    }
    fn map_values(self, f: &mut dyn FnMut(Value) -> Result<Value>) -> Result<Vec<T>> {
        self.into_iter().map(|inner| inner.map_values(f)).collect()
    }
    fn take(self, f: &mut dyn FnMut(Tensor)) {
        self.into_iter().for_each(|inner| inner.take(f));
    }
    fn share(&self) -> Vec<T> {
        self.iter().map(Tree::share).collect()
    }
    fn describe(&self, text: &mut String) {
        describe_all(self, text);
    }
    fn paths(&self, path: &mut String, f: &mut dyn FnMut(&str)) {
        paths_of_all(self, path, f);
    }
}

fn whole<T, const N: usize>(made: Vec<T>) -> Result<[T; N]> {
    made.try_into()
        .map_err(|_| ErrorKind::BadGraph { what: "an array of another length".into() }.into())
}

impl<T: Tree, const N: usize> Tree for [T; N] {
    fn for_each(&self, f: &mut dyn FnMut(&Tensor)) {
        self.iter().for_each(|inner| inner.for_each(f));
    }
    fn map(self, f: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<[T; N]> {
        whole(self.into_iter().map(|inner| inner.map(f)).collect::<Result<Vec<T>>>()?)
    }
    fn map_values(self, f: &mut dyn FnMut(Value) -> Result<Value>) -> Result<[T; N]> {
        whole(self.into_iter().map(|inner| inner.map_values(f)).collect::<Result<Vec<T>>>()?)
    }
    fn take(self, f: &mut dyn FnMut(Tensor)) {
        self.into_iter().for_each(|inner| inner.take(f));
    }
    fn share(&self) -> [T; N] {
        std::array::from_fn(|i| self[i].share())
    }
    fn describe(&self, text: &mut String) {
        describe_all(self, text);
    }
    fn paths(&self, path: &mut String, f: &mut dyn FnMut(&str)) {
        paths_of_all(self, path, f);
    }
}

/// Keys are part of the signature: another set of keys is another trace.
fn describe_map<'a, K: Debug + 'a, T: Tree + 'a>(
    all: impl Iterator<Item = (&'a K, &'a T)>,
    text: &mut String,
) {
    text.push('{');
    for (key, inner) in all {
        // Writing to a string cannot fail.
        let _ = write!(text, "{key:?}: ");
        inner.describe(text);
        text.push(',');
    }
    text.push('}');
}

fn paths_of_map<'a, K: Debug + 'a, T: Tree + 'a>(
    all: impl Iterator<Item = (&'a K, &'a T)>,
    path: &mut String,
    f: &mut dyn FnMut(&str),
) {
    for (key, inner) in all {
        within(path, &format!("[{key:?}]"), |path| inner.paths(path, f));
    }
}

impl<K: Ord + Clone + Debug, T: Tree> Tree for BTreeMap<K, T> {
    fn for_each(&self, f: &mut dyn FnMut(&Tensor)) {
        self.values().for_each(|inner| inner.for_each(f));
    }
    fn map(self, f: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<BTreeMap<K, T>> {
        self.into_iter().map(|(key, inner)| Ok((key, inner.map(f)?))).collect()
    }
    fn map_values(self, f: &mut dyn FnMut(Value) -> Result<Value>) -> Result<BTreeMap<K, T>> {
        self.into_iter().map(|(key, inner)| Ok((key, inner.map_values(f)?))).collect()
    }
    fn take(self, f: &mut dyn FnMut(Tensor)) {
        self.into_values().for_each(|inner| inner.take(f));
    }
    fn share(&self) -> BTreeMap<K, T> {
        self.iter().map(|(key, inner)| (key.clone(), inner.share())).collect()
    }
    fn describe(&self, text: &mut String) {
        describe_map(self.iter(), text);
    }
    fn paths(&self, path: &mut String, f: &mut dyn FnMut(&str)) {
        paths_of_map(self.iter(), path, f);
    }
}

/// Entries in the order of their keys, whatever the hasher.
fn sorted<K: Ord, T, S>(map: &HashMap<K, T, S>) -> Vec<(&K, &T)> {
    let mut all: Vec<(&K, &T)> = map.iter().collect();
    all.sort_by_key(|(key, _)| *key);
    all
}

fn into_sorted<K: Ord, T, S>(map: HashMap<K, T, S>) -> Vec<(K, T)> {
    let mut all: Vec<(K, T)> = map.into_iter().collect();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    all
}

impl<K, T, S> Tree for HashMap<K, T, S>
where
    K: Ord + Hash + Clone + Debug,
    T: Tree,
    S: BuildHasher + Default,
{
    fn for_each(&self, f: &mut dyn FnMut(&Tensor)) {
        sorted(self).into_iter().for_each(|(_, inner)| inner.for_each(f));
    }
    fn map(self, f: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Self> {
        into_sorted(self).into_iter().map(|(key, inner)| Ok((key, inner.map(f)?))).collect()
    }
    fn map_values(self, f: &mut dyn FnMut(Value) -> Result<Value>) -> Result<Self> {
        into_sorted(self).into_iter().map(|(key, inner)| Ok((key, inner.map_values(f)?))).collect()
    }
    fn take(self, f: &mut dyn FnMut(Tensor)) {
        into_sorted(self).into_iter().for_each(|(_, inner)| inner.take(f));
    }
    fn share(&self) -> Self {
        self.iter().map(|(key, inner)| (key.clone(), inner.share())).collect()
    }
    fn describe(&self, text: &mut String) {
        describe_map(sorted(self).into_iter(), text);
    }
    fn paths(&self, path: &mut String, f: &mut dyn FnMut(&str)) {
        paths_of_map(sorted(self).into_iter(), path, f);
    }
}
