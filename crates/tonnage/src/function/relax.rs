//! Open dims by themselves: a function that was called with several sizes of a dim is traced once more with
//! that dim open.

use std::collections::HashMap;

use tonnage_core::{Dim, Symbol, TensorType};

use super::key::{CallKey, QuickBuild};
use super::signature::Signature;

/// Distinct sizes of the same arguments from which dims are opened.
const SEEN: usize = 3;
/// Sizes that are recorded for one nesting.
const MAX_RECORDED: usize = 8;

/// The sizes that were seen, by what signatures have in common apart from them.
#[derive(Debug, Default)]
pub(crate) struct Families(HashMap<CallKey, Family, QuickBuild>);

#[derive(Debug, Default)]
struct Family {
    /// Every size of every axis, a row for each distinct call.
    sizes: Vec<Vec<usize>>,
    /// The closure does not work with open dims: they are left alone from then on.
    refused: bool,
}

/// Nestings that are recorded; with more of them relaxing is hopeless anyway.
const FAMILIES: usize = 256;

impl Families {
    /// Notes the sizes of a call that has no trace yet; a signature with open dims, if it is time.
    pub fn relaxed(&mut self, given: &Signature, coarse: CallKey) -> Option<Signature> {
        // The number of bytes of strings is open already.
        let size = |dim: &Dim| dim.known().unwrap_or(usize::MAX);
        let row: Vec<usize> = given.types.iter().flat_map(|ty| ty.shape.iter()).map(size).collect();
        if self.0.len() >= FAMILIES && !self.0.contains_key(&coarse) {
            return None;
        }
        let family = self.0.entry(coarse).or_default();
        if !family.sizes.contains(&row) {
            if family.sizes.len() >= MAX_RECORDED {
                family.sizes.remove(0);
            }
            family.sizes.push(row);
        }
        if family.refused || family.sizes.len() < SEEN {
            return None;
        }
        let types = open(&given.types, &family.sizes);
        Some(Signature::new(given.text.clone(), types, given.paths.clone()))
    }

    /// Leaves such arguments alone from here on.
    pub fn refuse(&mut self, coarse: &CallKey) {
        if let Some(family) = self.0.get_mut(coarse) {
            family.refused = true;
        }
    }
}

/// The types with every axis open whose size has changed. Axes that were equal in all calls are one
/// symbol: two arguments with a batch of the same size go together.
fn open(types: &[TensorType], sizes: &[Vec<usize>]) -> Vec<TensorType> {
    let column = |at: usize| -> Vec<usize> { sizes.iter().map(|row| row[at]).collect() };
    let mut symbols: Vec<(Vec<usize>, Symbol)> = Vec::new();
    let mut at = 0;
    types
        .iter()
        .map(|ty| {
            let shape = ty.shape.iter().map(|dim| {
                let column = column(at);
                at += 1;
                if column.windows(2).all(|pair| pair[0] == pair[1]) {
                    return dim.clone();
                }
                if let Some((_, symbol)) = symbols.iter().find(|(c, _)| *c == column) {
                    return Dim::symbol(symbol.clone());
                }
                let symbol = Symbol::new(format!("n{}", symbols.len()));
                symbols.push((column, symbol.clone()));
                Dim::symbol(symbol)
            });
            TensorType { dtype: ty.dtype, shape: shape.collect() }
        })
        .collect()
}
