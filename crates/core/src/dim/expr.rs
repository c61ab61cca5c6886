//! Expressions behind a dimension: polynomials over symbols, quotients and differences that stop at 0, in a
//! normal form. Part of [`Dim`]; nothing outside of it makes one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{Dim, Symbol};
use crate::heap::{Heap, Seen};

/// A sum of products, in normal form.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expr {
    /// Product of atoms to its factor; sorted, no factor is 0; the empty product is the constant.
    pub(super) terms: BTreeMap<Vec<Atom>, i64>,
}

/// A factor of a product; never negative.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Atom {
    Symbol(Symbol),
    /// Division that is rounded down.
    Quotient(Dim, Dim),
    /// The expression, or 0 where it is negative. Its last term is positive: see [`Expr::positive`].
    Positive(Dim),
    /// Checkpoints that a loop of this many iterations stores, with that number of checkpoints.
    Checkpoints(Dim, Option<usize>),
}

impl Expr {
    pub(super) fn constant(n: i64) -> Expr {
        let mut terms = BTreeMap::new();
        if n != 0 {
            terms.insert(Vec::new(), n);
        }
        Expr { terms }
    }

    pub(super) fn into_dim(self) -> Dim {
        match self.terms.iter().next() {
            None => Dim::Known(0),
            Some((product, n)) if self.terms.len() == 1 && product.is_empty() => {
                Dim::Known(usize::try_from(*n).unwrap_or(0))
            }
            _ => Dim::Expr(Arc::new(self)),
        }
    }

    pub(super) fn add(mut self, other: &Expr, sign: i64) -> Expr {
        for (product, factor) in &other.terms {
            let entry = self.terms.entry(product.clone()).or_insert(0);
            *entry = entry.saturating_add(factor.saturating_mul(sign));
        }
        self.terms.retain(|_, factor| *factor != 0);
        self
    }

    pub(super) fn multiply(&self, other: &Expr) -> Expr {
        let mut terms = BTreeMap::new();
        for (a, x) in &self.terms {
            for (b, y) in &other.terms {
                let mut product = [a.as_slice(), b.as_slice()].concat();
                product.sort();
                let entry = terms.entry(product).or_insert(0i64);
                *entry = entry.saturating_add(x.saturating_mul(*y));
            }
        }
        terms.retain(|_, factor| *factor != 0);
        Expr { terms }
    }

    /// A single atom.
    pub(super) fn atom(atom: Atom) -> Expr {
        Expr { terms: BTreeMap::from([(vec![atom], 1)]) }
    }

    /// The expression, or 0 where it is negative.
    ///
    /// In normal form: `max(-e, 0)` is written `max(e, 0) - e` where the last term of `e` is positive, so
    /// that the two parts that an axis is cut into add up to the axis again.
    pub(super) fn positive(self) -> Expr {
        let Some((_, last)) = self.terms.last_key_value() else { return self };
        if self.terms.values().all(|factor| *factor > 0) {
            return self;
        }
        if self.terms.values().all(|factor| *factor < 0) {
            return Expr::constant(0);
        }
        match *last > 0 {
            true => Expr::atom(Atom::Positive(self.into_dim())),
            false => {
                let negative = Expr::constant(0).add(&self, -1).into_dim();
                Expr::atom(Atom::Positive(negative)).add(&self, 1)
            }
        }
    }

    /// The most it can be where what is taken away may be nothing.
    pub(super) fn most(&self) -> Option<usize> {
        let mut sum: usize = 0;
        for (product, factor) in &self.terms {
            let Ok(factor) = usize::try_from(*factor) else { continue };
            let mut term = factor;
            for atom in product {
                let most = match atom {
                    Atom::Symbol(s) => s.bound()?.most()?,
                    Atom::Quotient(a, b) => a.most()? / b.known()?.max(1),
                    Atom::Positive(a) => a.most()?,
                    // More iterations never store fewer.
                    Atom::Checkpoints(n, max_checkpoints) => {
                        crate::loop_checkpoints::checkpoint_rows(n.most()? as u64, *max_checkpoints)
                            as usize
                    }
                };
                term = term.saturating_mul(most);
            }
            sum = sum.saturating_add(term);
        }
        Some(sum)
    }

    /// The most it can be where what is taken away may be nothing, in terms of sizes that the data do not decide.
    pub(super) fn bound(&self) -> Expr {
        let mut sum = Expr::constant(0);
        for (product, factor) in self.terms.iter().filter(|(_, factor)| **factor > 0) {
            let mut term = Expr::constant(*factor);
            for atom in product {
                let most = match atom {
                    Atom::Symbol(s) => match s.bound() {
                        Some(bound) => bound.bound(),
                        None => Dim::symbol(s.clone()),
                    },
                    // No divisor makes it more.
                    Atom::Quotient(a, b) if b.depends_on_data() => a.bound(),
                    Atom::Quotient(a, b) => a.bound().divided_by(b),
                    Atom::Positive(a) => a.bound(),
                    // More iterations never store fewer.
                    Atom::Checkpoints(n, max_checkpoints) => {
                        Dim::checkpoints(&n.bound(), *max_checkpoints)
                    }
                };
                term = term.multiply(&most.expr());
            }
            sum = sum.add(&term, 1);
        }
        sum
    }

    /// The expression with one difference that stops at 0, and that is taken away, let go below 0: never less.
    pub(super) fn without_positive(&self) -> Option<Expr> {
        let of = |atom: &Atom| matches!(atom, Atom::Positive(_));
        let mut taken = self.terms.iter().filter(|(_, factor)| **factor < 0);
        let (product, factor) = taken.find(|(product, _)| product.iter().any(of))?;
        let at = product.iter().position(of)?;
        let Atom::Positive(inside) = &product[at] else { return None };
        let mut rest = product.clone();
        rest.remove(at);
        let rest = Expr { terms: BTreeMap::from([(rest, *factor)]) };
        let mut others = self.clone();
        others.terms.remove(product);
        Some(others.add(&rest.multiply(&inside.expr()), 1))
    }

    /// True for `3*n` and `5*n`.
    pub(super) fn is_other_multiple(&self, other: &Expr) -> bool {
        match (self.terms.first_key_value(), other.terms.first_key_value()) {
            (Some((a, x)), Some((b, y))) => {
                self.terms.len() == 1 && other.terms.len() == 1 && a == b && x != y
            }
            _ => false,
        }
    }

    /// Divides by a single product where every term contains it.
    pub(super) fn divide_evenly(&self, other: &Expr) -> Option<Expr> {
        let (divisor, by) = other.terms.iter().next().filter(|_| other.terms.len() == 1)?;
        let mut terms = BTreeMap::new();
        for (product, factor) in &self.terms {
            let mut rest = product.clone();
            for atom in divisor {
                rest.remove(rest.iter().position(|a| a == atom)?);
            }
            if factor % by != 0 {
                return None;
            }
            terms.insert(rest, factor / by);
        }
        Some(Expr { terms })
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Reversed: the constant comes last, as people write it.
        for (i, (product, factor)) in self.terms.iter().rev().enumerate() {
            let sign = match (i, *factor < 0) {
                (0, false) => "",
                (_, true) => "-",
                (_, false) => "+",
            };
            write!(f, "{sign}")?;
            let size = factor.unsigned_abs();
            if product.is_empty() {
                write!(f, "{size}")?;
            } else if size != 1 {
                write!(f, "{size}*")?;
            }
            for (j, atom) in product.iter().enumerate() {
                if j > 0 {
                    write!(f, "*")?;
                }
                match atom {
                    Atom::Symbol(s) => write!(f, "{}", s.name())?,
                    Atom::Quotient(a, b) => write!(f, "(({a})/({b}))")?,
                    Atom::Positive(a) => write!(f, "max({a},0)")?,
                    Atom::Checkpoints(n, _) => write!(f, "checkpoints({n})")?,
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Entries of a node of the standard library's map, and what it takes besides them.
const NODE: (usize, usize) = (11, 16);

impl Heap for Expr {
    // The map does not tell what its nodes take. One node holds up to 11 terms, and what has more is
    // counted as half full: never less than what is there.
    fn heap(&self, seen: &mut Seen) -> usize {
        let node = NODE.0 * (size_of::<Vec<Atom>>() + size_of::<i64>()) + NODE.1;
        let nodes = match self.terms.len() {
            0 => 0,
            n if n <= NODE.0 => 1,
            n => n.div_ceil(NODE.0 / 2) + 1,
        };
        nodes * node + self.terms.keys().map(|product| product.heap(seen)).sum::<usize>()
    }
}

impl Heap for Atom {
    fn heap(&self, seen: &mut Seen) -> usize {
        match self {
            Atom::Symbol(symbol) => symbol.heap(seen),
            Atom::Quotient(a, b) => a.heap(seen) + b.heap(seen),
            Atom::Positive(a) | Atom::Checkpoints(a, _) => a.heap(seen),
        }
    }
}
