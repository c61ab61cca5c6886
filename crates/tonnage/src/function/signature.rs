//! Signatures: the types of a function's arguments, in which dims may be open.
//!
//! One trace with open dims serves every size that fits: the same name is the same size, wherever it
//! stands. `relax` finds a signature with open dims from the sizes that were seen.

use smallvec::SmallVec;
use tonnage_core::error::bad_argument;
use tonnage_core::heap::{Heap, Seen};
use tonnage_core::{Dim, Error, Result, Symbol, TensorType};

use super::key::{CallKey, head};
use crate::strings::{Value, open_bytes};
use crate::tree::{Tree, leaf_paths, values};

/// Sizes of the open dims of a call, in the order of [`Signature::symbols`].
pub(crate) type Bound = SmallVec<[usize; 4]>;

/// Types of arguments.
#[derive(Debug, Clone)]
pub(crate) struct Signature {
    /// How the arguments are nested, and plain values.
    pub text: String,
    pub types: Vec<TensorType>,
    /// Where each tensor is among the arguments.
    pub paths: Vec<String>,
    pub symbols: Vec<OpenDim>,
}

/// An open dim, and where its size can be read off.
#[derive(Debug, Clone)]
pub(crate) struct OpenDim {
    pub symbol: Symbol,
    pub leaf: usize,
    pub axis: usize,
}

impl Signature {
    /// The signature that these arguments are an example of.
    pub fn of<A: Tree>(arguments: &A) -> Signature {
        let mut text = String::new();
        arguments.describe(&mut text);
        let mut types = Vec::new();
        arguments.for_each(&mut |tensor| types.push(tensor.ty()));
        // How many bytes strings have is open, whatever it is in this call.
        let mut leaf = 0;
        for value in values(arguments) {
            if let Value::Strings(_) = value {
                leaf += 2;
                types[leaf].shape = [open_bytes(leaf)].into();
            }
            leaf += 1;
        }
        Signature::new(text, types, leaf_paths(arguments))
    }

    /// With one symbol for every name.
    pub fn new(text: String, types: Vec<TensorType>, paths: Vec<String>) -> Signature {
        let mut named: Vec<Symbol> = Vec::new();
        for dim in types.iter().flat_map(|ty| ty.shape.iter()) {
            dim.symbols(&mut |symbol| {
                if !named.iter().any(|s| s.name() == symbol.name()) {
                    named.push(symbol.clone());
                }
            });
        }
        let one = |symbol: &Symbol| {
            named.iter().find(|s| s.name() == symbol.name()).map(|s| Dim::symbol(s.clone()))
        };
        let types: Vec<TensorType> = types.iter().map(|ty| ty.substitute(&one)).collect();
        let mut symbols: Vec<OpenDim> = Vec::new();
        for (leaf, ty) in types.iter().enumerate() {
            for (axis, dim) in ty.shape.iter().enumerate() {
                if let Some(symbol) = dim.as_symbol()
                    && !symbols.iter().any(|open| open.symbol == *symbol)
                {
                    symbols.push(OpenDim { symbol: symbol.clone(), leaf, axis });
                }
            }
        }
        Signature { text, types, paths, symbols }
    }

    /// Whether every open dim stands somewhere by itself, so that a call can say what it is.
    pub fn check(&self) -> Result<()> {
        let mut lost: Option<Symbol> = None;
        for dim in self.types.iter().flat_map(|ty| ty.shape.iter()) {
            dim.symbols(&mut |symbol| {
                if !self.symbols.iter().any(|open| open.symbol == *symbol) {
                    lost = Some(symbol.clone());
                }
            });
        }
        match lost {
            None => Ok(()),
            Some(symbol) => {
                let what = format!("the open dim `{}` stands nowhere by itself", symbol.name());
                let help = "let one argument have it as a whole dim";
                Err(bad_argument("signature", what, help))
            }
        }
    }

    /// The sizes of the open dims, where a call with that key fits.
    pub fn bind(&self, key: &CallKey) -> Option<Bound> {
        if self.text != key.text {
            return None;
        }
        let mut bound: SmallVec<[Option<usize>; 4]> = SmallVec::from_elem(None, self.symbols.len());
        let mut words = key.words.iter();
        for ty in &self.types {
            if words.next() != Some(&head(ty.dtype, ty.shape.rank())) {
                return None;
            }
            for dim in ty.shape.iter() {
                let size = usize::try_from(*words.next()?).ok()?;
                let open = self.symbols.iter().position(|o| dim.as_symbol() == Some(&o.symbol));
                match (dim.known(), open) {
                    (Some(n), _) if n != size => return None,
                    (None, Some(at)) if *bound[at].get_or_insert(size) != size => return None,
                    _ => {}
                }
            }
        }
        let bound: Bound = bound.into_iter().collect::<Option<_>>()?;
        self.holds(key, &bound).then_some(bound)
    }

    /// Whether arguments of that signature, whose dims may be open themselves, fit this one.
    pub fn fits(&self, given: &Signature) -> bool {
        if self.text != given.text || self.types.len() != given.types.len() {
            return false;
        }
        let mut sizes: Vec<(Symbol, Dim)> = Vec::new();
        let all = || self.types.iter().zip(&given.types);
        for (expected, got) in all() {
            if expected.dtype != got.dtype || expected.shape.rank() != got.shape.rank() {
                return false;
            }
            for (dim, size) in expected.shape.iter().zip(got.shape.iter()) {
                if let Some(symbol) = dim.as_symbol()
                    && !sizes.iter().any(|(known, _)| known == symbol)
                {
                    sizes.push((symbol.clone(), size.clone()));
                }
            }
        }
        let find = |s: &Symbol| sizes.iter().find(|(known, _)| known == s).map(|(_, n)| n.clone());
        all().all(|(expected, got)| expected.shape.substitute(&find) == got.shape)
    }

    /// Whether dims that are more than a symbol have the size that follows.
    fn holds(&self, key: &CallKey, bound: &Bound) -> bool {
        let mut words = key.words.iter();
        self.types.iter().all(|ty| {
            words.next();
            ty.shape.iter().all(|dim| {
                let size = words.next().copied();
                let simple = dim.known().is_some() || dim.as_symbol().is_some();
                simple || dim.substitute(&self.find(bound)).known().map(|n| n as u64) == size
            })
        })
    }

    /// What each symbol is in a call.
    pub fn find<'a>(&'a self, bound: &'a Bound) -> impl Fn(&Symbol) -> Option<Dim> + 'a {
        |symbol| {
            let at = self.symbols.iter().position(|open| open.symbol == *symbol)?;
            bound.get(at).map(|n| Dim::Known(*n))
        }
    }

    /// Why a call with such arguments does not fit: both sides, and where.
    pub fn mismatch(&self, op: &'static str, given: &Signature) -> Error {
        self.misfit(op, given, &|path, got, expected| {
            format!("{} is {got}, but the signature says {expected}", argument(path))
        })
    }

    /// The same in other words.
    pub fn misfit(
        &self,
        op: &'static str,
        given: &Signature,
        words: &dyn Fn(&str, &TensorType, &TensorType) -> String,
    ) -> Error {
        if self.text != given.text {
            let what = format!("the arguments {} do not fit {}", given.text, self.text);
            return bad_argument(op, what, "nest them alike, with the same plain values");
        }
        let mut sizes: Vec<(Symbol, Dim, &str)> = Vec::new();
        for ((expected, got), path) in self.types.iter().zip(&given.types).zip(&self.paths) {
            let side = |what: String| {
                let what = words(path, got, expected) + &what;
                bad_argument(op, what, "pass a tensor of that dtype and shape")
            };
            if expected.dtype != got.dtype || expected.shape.rank() != got.shape.rank() {
                return side(String::new());
            }
            for (dim, size) in expected.shape.iter().zip(got.shape.iter()) {
                let Some(symbol) = dim.as_symbol() else {
                    let find = |s: &Symbol| {
                        sizes.iter().find(|(known, ..)| known == s).map(|(_, n, _)| n.clone())
                    };
                    if dim.substitute(&find) != *size {
                        return side(String::new());
                    }
                    continue;
                };
                match sizes.iter().find(|(known, ..)| known == symbol) {
                    Some((_, first, at)) if first != size => {
                        let from =
                            if at.is_empty() { String::new() } else { format!(" from `{at}`") };
                        return side(format!(" with {} = {first}{from}", symbol.name()));
                    }
                    Some(_) => {}
                    None => sizes.push((symbol.clone(), size.clone(), path)),
                }
            }
        }
        bad_argument(op, "the arguments do not fit the signature", "compare their types")
    }
}

/// The argument at a path, in words.
pub(crate) fn argument(path: &str) -> String {
    if path.is_empty() { "the argument".into() } else { format!("argument `{path}`") }
}

impl Heap for Signature {
    fn heap(&self, seen: &mut Seen) -> usize {
        let paths = self.paths.capacity() * size_of::<String>()
            + self.paths.iter().map(String::capacity).sum::<usize>();
        let symbols = self.symbols.capacity() * size_of::<OpenDim>();
        self.text.capacity() + self.types.heap(seen) + paths + symbols
    }
}
