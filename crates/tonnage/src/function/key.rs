//! What a call is looked up by: how its arguments are nested, plain values, and the dtype, rank and sizes of
//! every tensor. Equal keys are equal signatures; nothing is allocated to ask.

use std::cell::Cell;
use std::hash::{BuildHasherDefault, Hasher};

use smallvec::SmallVec;
use tonnage_core::heap::{Heap, Seen};
use tonnage_core::{DType, Dim, Symbol, TensorType};

use crate::tensor::{Tensor, TensorRepr};
use crate::tree::Tree;
use crate::world::rows::{MostRows, traced_for};

/// The signature of a call, as words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct CallKey {
    pub text: String,
    /// For every tensor its [`head`], then its sizes; an open size is [`OPEN`] less the number of its symbol.
    pub words: SmallVec<[u64; 16]>,
    /// Whether a tensor has no values, and cannot have any here.
    pub symbolic: bool,
    /// Rows of other ranks that the trace is for, where they have more.
    pub most: MostRows,
}

/// The word of the first open size.
const OPEN: u64 = u64::MAX;

/// Dtype and rank of a tensor as one word.
pub(crate) fn head(dtype: DType, rank: usize) -> u64 {
    dtype as u64 | (rank as u64) << 8
}

impl CallKey {
    /// The key of these arguments, in place of what was here.
    pub fn set<A: Tree>(&mut self, arguments: &A) {
        self.text.clear();
        self.words.clear();
        self.symbolic = false;
        self.most = traced_for();
        arguments.describe(&mut self.text);
        let mut symbols = SmallVec::new();
        arguments.for_each(&mut |tensor| self.push(tensor, &mut symbols));
    }

    fn push(&mut self, tensor: &Tensor, symbols: &mut SmallVec<[Symbol; 4]>) {
        if let TensorRepr::Array(array) = tensor.repr() {
            self.words.push(head(array.dtype(), array.sizes().len()));
            self.words.extend(array.sizes().iter().map(|n| *n as u64));
            return;
        }
        self.symbolic |= tensor.is_symbolic();
        self.push_type(&tensor.ty(), symbols);
    }

    fn push_type(&mut self, ty: &TensorType, symbols: &mut SmallVec<[Symbol; 4]>) {
        self.words.push(head(ty.dtype, ty.shape.rank()));
        for dim in ty.shape.iter() {
            self.words.push(match dim {
                Dim::Known(n) => *n as u64,
                dim => OPEN - number(dim, symbols),
            });
        }
    }

    /// The key of arguments of these types.
    pub fn of_types(text: &str, types: &[TensorType]) -> CallKey {
        let (text, most) = (text.to_string(), traced_for());
        let mut key = CallKey { text, most, ..CallKey::default() };
        let mut symbols = SmallVec::new();
        types.iter().for_each(|ty| key.push_type(ty, &mut symbols));
        key
    }

    /// Without sizes: what signatures that differ in sizes alone have in common.
    pub fn coarse(&self) -> CallKey {
        let mut words = SmallVec::new();
        let mut at = 0;
        while let Some(head) = self.words.get(at) {
            words.push(*head);
            at += 1 + (head >> 8) as usize;
        }
        CallKey { text: self.text.clone(), words, symbolic: false, most: self.most.clone() }
    }
}

/// The number of an open size: the same name, the same number.
fn number(dim: &Dim, symbols: &mut SmallVec<[Symbol; 4]>) -> u64 {
    let symbol = match dim.as_symbol() {
        Some(symbol) => symbol.clone(),
        None => Symbol::new(dim.to_string()),
    };
    let at = symbols.iter().position(|s| s.name() == symbol.name()).unwrap_or_else(|| {
        symbols.push(symbol);
        symbols.len() - 1
    });
    at as u64
}

impl Heap for CallKey {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.text.capacity() + self.words.heap(seen) + self.most.heap(seen)
    }
}

thread_local! {
    static SPARE: Cell<Option<Box<CallKey>>> = const { Cell::new(None) };
}

/// Calls `use_key` with the key of the arguments, in memory that is kept for the next call.
pub(crate) fn with_key<A: Tree, R>(arguments: &A, use_key: impl FnOnce(&CallKey) -> R) -> R {
    // Taken out while it is used: what `use_key` runs may ask for a key itself.
    let mut key = SPARE.take().unwrap_or_default();
    key.set(arguments);
    let made = use_key(&key);
    SPARE.set(Some(key));
    made
}

/// Hashes words by multiplication: keys are our own, so collisions are not adversarial.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Quick(u64);

pub(crate) type QuickBuild = BuildHasherDefault<Quick>;

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, n: u8) {
        self.write_u64(u64::from(n));
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
    fn finish(&self) -> u64 {
        // The table takes its place from the low bits, which multiplication mixes least.
        self.0 ^ self.0 >> 32
    }
}
