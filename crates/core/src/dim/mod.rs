//! A dimension: a number, or an expression over named symbols.
//!
//! A function that is traced with an open dim has `shape(x)[0]` as a symbol, and everything that is
//! computed from it stays an expression, so one trace serves every size. A size that only the data
//! decide is a symbol too, with an upper bound that the planner reserves.
//!
//! Expressions are polynomials in a normal form: equal expressions are equal values.

mod expr;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Serialize, Serializer};

use crate::heap::{Heap, Seen};
use expr::Atom;
pub use expr::Expr;

/// The length of an axis.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dim {
    /// A number.
    Known(usize),
    /// An expression with at least one symbol in it.
    Expr(Arc<Expr>),
}

/// A named unknown.
#[derive(Clone)]
pub struct Symbol(Arc<SymbolData>);

struct SymbolData {
    id: u64,
    name: String,
    bound: Option<Dim>,
    input: Option<usize>,
}

impl Symbol {
    /// A new symbol, different from every other one, whatever its name.
    pub fn new(name: impl Into<String>) -> Symbol {
        Symbol::make(name.into(), None, None)
    }

    /// A new symbol for a size that the data will decide, at most `bound`.
    pub fn bounded(name: impl Into<String>, bound: Dim) -> Symbol {
        Symbol::make(name.into(), Some(bound), None)
    }

    /// The same where the values of one input of the op alone decide it. A graph has one symbol for all sizes of the
    /// same name that the same value decides: rows that are selected by one mask are equally many.
    pub fn counted(name: impl Into<String>, bound: Dim, input: usize) -> Symbol {
        Symbol::make(name.into(), Some(bound), Some(input))
    }

    fn make(name: String, bound: Option<Dim>, input: Option<usize>) -> Symbol {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Symbol(Arc::new(SymbolData { id, name, bound, input }))
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The most it can be, where the data decide it.
    pub fn bound(&self) -> Option<&Dim> {
        self.0.bound.as_ref()
    }

    /// The input of the op that alone decides it, of one that was just inferred ([`Symbol::counted`]).
    pub fn input(&self) -> Option<usize> {
        self.0.input
    }
}

// A symbol is itself and no other: the name is for people.
impl PartialEq for Symbol {
    fn eq(&self, other: &Symbol) -> bool {
        self.0.id == other.0.id
    }
}
impl Eq for Symbol {}
impl std::hash::Hash for Symbol {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}
impl PartialOrd for Symbol {
    fn partial_cmp(&self, other: &Symbol) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Symbol {
    fn cmp(&self, other: &Symbol) -> std::cmp::Ordering {
        self.0.id.cmp(&other.0.id)
    }
}
impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name)
    }
}

impl Dim {
    /// The symbol as a dimension.
    pub fn symbol(symbol: Symbol) -> Dim {
        Expr::atom(Atom::Symbol(symbol)).into_dim()
    }

    /// An open length of that name. In one signature the same name is the same length.
    ///
    /// ```
    /// use tonnage_core::{Dim, Shape};
    /// let shape = Shape::from([Dim::open("batch"), Dim::from(784)]);
    /// assert_eq!(shape.to_string(), "[batch, 784]");
    /// ```
    pub fn open(name: &str) -> Dim {
        Dim::symbol(Symbol::new(name))
    }

    /// The symbol, if it is one and nothing else.
    pub fn as_symbol(&self) -> Option<&Symbol> {
        let Dim::Expr(expr) = self else { return None };
        match expr.terms.first_key_value() {
            Some((product, 1)) if expr.terms.len() == 1 => match product.as_slice() {
                [Atom::Symbol(symbol)] => Some(symbol),
                _ => None,
            },
            _ => None,
        }
    }

    /// The symbol that this length alone decides: `n` of `2*n+4`.
    pub fn decides(&self) -> Option<&Symbol> {
        self.linear().map(|(symbol, ..)| symbol)
    }

    /// That symbol, and what it is where this length is `length`.
    pub fn solved(&self, length: &Dim) -> Option<(Symbol, Dim)> {
        let (symbol, factor, more) = self.linear()?;
        let rest = length.expr().add(&Expr::constant(more), -1);
        let rest = rest.divide_evenly(&Expr::constant(factor))?;
        let negative = !rest.terms.is_empty() && rest.terms.values().all(|factor| *factor < 0);
        (!negative).then(|| (symbol.clone(), rest.into_dim()))
    }

    /// As `factor * symbol + more`. What is taken away from a symbol stops at 0, and does not say what it was.
    fn linear(&self) -> Option<(&Symbol, i64, i64)> {
        let Dim::Expr(expr) = self else { return None };
        let (mut found, mut more) = (None, 0);
        for (product, factor) in &expr.terms {
            match product.as_slice() {
                [] => more = *factor,
                [Atom::Symbol(symbol)] if found.is_none() => found = Some((symbol, *factor)),
                _ => return None,
            }
        }
        let (symbol, factor) = found?;
        (factor > 0 && more >= 0).then_some((symbol, factor, more))
    }

    /// The number, if it is one.
    pub fn known(&self) -> Option<usize> {
        match self {
            Dim::Known(n) => Some(*n),
            Dim::Expr(_) => None,
        }
    }

    /// True for the number `n`.
    pub fn is(&self, n: usize) -> bool {
        matches!(self, Dim::Known(m) if *m == n)
    }

    /// The sum; saturates, as every other operation here: a saturated size is too large for any
    /// machine, and is refused where it is asked for.
    #[must_use]
    pub fn plus(&self, other: &Dim) -> Dim {
        match (self, other) {
            (Dim::Known(a), Dim::Known(b)) => Dim::Known(a.saturating_add(*b)),
            _ => self.expr().add(&other.expr(), 1).into_dim(),
        }
    }

    /// The difference; a known one stops at 0.
    #[must_use]
    pub fn minus(&self, other: &Dim) -> Dim {
        match (self, other) {
            (Dim::Known(a), Dim::Known(b)) => Dim::Known(a.saturating_sub(*b)),
            _ => self.expr().add(&other.expr(), -1).into_dim(),
        }
    }

    /// The difference, or 0 where it would be negative.
    #[must_use]
    pub fn less(&self, other: &Dim) -> Dim {
        match (self, other) {
            (Dim::Known(a), Dim::Known(b)) => Dim::Known(a.saturating_sub(*b)),
            _ => self.expr().add(&other.expr(), -1).positive().into_dim(),
        }
    }

    /// The lesser of the two.
    ///
    /// ```
    /// use tonnage_core::Dim;
    /// let n = Dim::open("n");
    /// let (head, tail) = (n.least(&Dim::from(2)), n.less(&Dim::from(2)));
    /// assert_eq!(head.plus(&tail), n);
    /// ```
    #[must_use]
    pub fn least(&self, other: &Dim) -> Dim {
        match (self, other) {
            (Dim::Known(a), Dim::Known(b)) => Dim::Known(*a.min(b)),
            _ => self.minus(&self.less(other)),
        }
    }

    /// The product.
    #[must_use]
    pub fn times(&self, other: &Dim) -> Dim {
        match (self, other) {
            (Dim::Known(a), Dim::Known(b)) => Dim::Known(a.saturating_mul(*b)),
            _ => self.expr().multiply(&other.expr()).into_dim(),
        }
    }

    /// The quotient, rounded down; exact where the division comes out even symbolically.
    /// Division by 0 gives 0.
    #[must_use]
    pub fn divided_by(&self, other: &Dim) -> Dim {
        match (self, other) {
            (Dim::Known(a), Dim::Known(b)) => Dim::Known(a.checked_div(*b).unwrap_or(0)),
            (_, Dim::Known(1)) => self.clone(),
            (a, b) if a == b => Dim::Known(1),
            _ => self.expr().divide_evenly(&other.expr()).map_or_else(
                || Expr::atom(Atom::Quotient(self.clone(), other.clone())).into_dim(),
                Expr::into_dim,
            ),
        }
    }

    /// Whether the two can be equal for some sizes of at least 1: false for two numbers that differ, and
    /// for two multiples of the same expression.
    pub fn may_equal(&self, other: &Dim) -> bool {
        match (self, other) {
            (Dim::Expr(a), Dim::Expr(b)) => a == b || !a.is_other_multiple(b),
            (Dim::Known(a), Dim::Known(b)) => a == b,
            _ => true,
        }
    }

    /// Checkpoints that a loop of this many iterations stores: see [`crate::loop_checkpoints::checkpoint_rows`].
    #[must_use]
    pub fn checkpoints(iterations: &Dim, max_checkpoints: Option<usize>) -> Dim {
        match iterations {
            Dim::Known(n) => Dim::Known(crate::loop_checkpoints::checkpoint_rows(
                *n as u64,
                max_checkpoints,
            ) as usize),
            Dim::Expr(_) => {
                let atom = Atom::Checkpoints(iterations.clone(), max_checkpoints);
                Expr::atom(atom).into_dim()
            }
        }
    }

    /// The expression with each symbol replaced where `find` knows better.
    #[must_use]
    pub fn substitute(&self, find: &dyn Fn(&Symbol) -> Option<Dim>) -> Dim {
        let Dim::Expr(expr) = self else { return self.clone() };
        let mut sum = Expr::constant(0);
        for (product, factor) in &expr.terms {
            let mut term = Expr::constant(*factor);
            for atom in product {
                let value = match atom {
                    Atom::Symbol(s) => find(s).unwrap_or_else(|| Dim::symbol(s.clone())),
                    Atom::Quotient(a, b) => a.substitute(find).divided_by(&b.substitute(find)),
                    Atom::Positive(a) => a.substitute(find).expr().positive().into_dim(),
                    Atom::Checkpoints(n, max_checkpoints) => {
                        Dim::checkpoints(&n.substitute(find), *max_checkpoints)
                    }
                };
                term = term.multiply(&value.expr());
            }
            sum = sum.add(&term, 1);
        }
        sum.into_dim()
    }

    /// The most it can be once every argument's size is known: sizes that the data decide stand at
    /// their bound. `None` while an argument's size is open.
    pub fn most(&self) -> Option<usize> {
        let Dim::Expr(expr) = self else { return self.known() };
        let plain = expr.most()?;
        // `n - max(n-2,0)` is at most 2, whatever `n` is.
        let other = expr.without_positive().and_then(|other| other.into_dim().most());
        Some(other.map_or(plain, |other| other.min(plain)))
    }

    /// The most it can be, in terms of sizes that the data do not decide.
    #[must_use]
    pub fn bound(&self) -> Dim {
        match self {
            Dim::Known(n) => Dim::Known(*n),
            Dim::Expr(expr) => expr.bound().into_dim(),
        }
    }

    /// True where the data decide it, or something that it is computed from.
    pub fn depends_on_data(&self) -> bool {
        let mut found = false;
        self.symbols(&mut |s| found |= s.bound().is_some());
        found
    }

    /// Calls `visit` with every symbol in it.
    pub fn symbols(&self, visit: &mut dyn FnMut(&Symbol)) {
        let Dim::Expr(expr) = self else { return };
        for atom in expr.terms.keys().flatten() {
            match atom {
                Atom::Symbol(s) => visit(s),
                Atom::Quotient(a, b) => {
                    a.symbols(visit);
                    b.symbols(visit);
                }
                Atom::Positive(a) => a.symbols(visit),
                Atom::Checkpoints(n, _) => n.symbols(visit),
            }
        }
    }

    fn expr(&self) -> Expr {
        match self {
            Dim::Known(n) => Expr::constant(i64::try_from(*n).unwrap_or(i64::MAX)),
            Dim::Expr(expr) => (**expr).clone(),
        }
    }
}

impl From<usize> for Dim {
    fn from(n: usize) -> Dim {
        Dim::Known(n)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Known(n) => write!(f, "{n}"),
            Dim::Expr(expr) => fmt::Display::fmt(expr, f),
        }
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Heap for Dim {
    fn heap(&self, seen: &mut Seen) -> usize {
        match self {
            Dim::Known(_) => 0,
            Dim::Expr(expr) => expr.heap(seen),
        }
    }
}

impl Heap for Symbol {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.0.heap(seen)
    }
}

impl Heap for SymbolData {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.name.capacity() + self.bound.heap(seen)
    }
}

impl Serialize for Dim {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Dim::Known(n) => serializer.serialize_u64(*n as u64),
            Dim::Expr(expr) => serializer.collect_str(expr),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_expressions_are_equal_values() {
        let (n, m) = (Dim::symbol(Symbol::new("n")), Dim::symbol(Symbol::new("m")));
        let two = Dim::from(2);
        assert_eq!(n.plus(&m).times(&two), m.times(&two).plus(&n).plus(&n));
        assert_eq!(n.plus(&two).minus(&n), two);
        assert_eq!(n.times(&m).times(&two).divided_by(&m), two.times(&n));
        assert_eq!(n.divided_by(&n), Dim::Known(1));
        assert_ne!(n, Dim::symbol(Symbol::new("n")));
        assert_eq!(n.times(&m).plus(&two).to_string(), "n*m+2");
    }

    #[test]
    fn substitution_evaluates() {
        let (s, t) = (Symbol::new("n"), Symbol::new("m"));
        let (n, m) = (Dim::symbol(s.clone()), Dim::symbol(t));
        let expr = n.times(&m).plus(&n.divided_by(&Dim::from(3)));
        let half = expr.substitute(&|x| (*x == s).then(|| Dim::from(7)));
        assert_eq!(half.to_string(), "7*m+2");
        assert_eq!(half.substitute(&|_| Some(Dim::from(5))), Dim::Known(37));
    }

    #[test]
    fn bounds_are_in_terms_of_sizes_that_the_data_do_not_decide() {
        let n = Dim::open("n");
        let m = Dim::symbol(Symbol::bounded("m", n.plus(&Dim::from(1))));
        assert_eq!(m.times(&m).less(&m).bound(), m.bound().times(&m.bound()));
        assert_eq!(n.divided_by(&m).plus(&m.divided_by(&n)).bound().to_string(), "((n+1)/(n))+n");
    }

    #[test]
    fn parts_of_an_open_axis_add_up_to_it() {
        let s = Symbol::new("n");
        let n = Dim::symbol(s.clone());
        let one = Dim::from(1);
        assert_eq!(n.less(&one).to_string(), "max(n-1,0)");
        assert_eq!(n.less(&one).plus(&n.least(&one)), n);
        assert_eq!(one.least(&n), n.least(&one));
        assert_eq!(n.plus(&one).less(&n), one);
        assert_eq!(n.less(&n.plus(&one)), Dim::Known(0));
        for size in 0..4 {
            let at = |dim: &Dim| dim.substitute(&|x| (*x == s).then(|| Dim::from(size)));
            assert_eq!(at(&n.less(&one)), Dim::Known(size.saturating_sub(1)));
            assert_eq!(at(&n.least(&Dim::from(2))), Dim::Known(size.min(2)));
            let more = n.less(&Dim::from(2)).plus(&Dim::from(5));
            assert_eq!(at(&more), Dim::Known(size.saturating_sub(2) + 5));
        }
        assert_eq!(n.as_symbol(), Some(&s));
        assert_eq!(n.plus(&one).as_symbol(), None);
    }

    #[test]
    fn the_most_follows_the_bound_and_is_unknown_for_open_dims() {
        let open = Dim::symbol(Symbol::new("n"));
        let data = Dim::symbol(Symbol::bounded("count", Dim::from(10)));
        assert_eq!(open.most(), None);
        assert_eq!(data.most(), Some(10));
        assert_eq!(data.times(&Dim::from(3)).minus(&Dim::from(1)).most(), Some(30));
        assert_eq!(Dim::symbol(Symbol::bounded("k", open.clone())).most(), None);
        // The lesser of two is at most either of them.
        for n in [3, 10, 12] {
            assert_eq!(data.least(&Dim::from(n)).most(), Some(n.min(10)));
            assert_eq!(Dim::from(n).least(&data).times(&Dim::from(4)).most(), Some(4 * n.min(10)));
        }
        assert_eq!(data.less(&Dim::from(4)).least(&Dim::from(5)).most(), Some(5));
        assert_eq!(data.least(&open).most(), Some(10));
    }

    #[test]
    fn a_length_that_is_known_says_what_the_symbol_in_it_is() {
        let (s, t) = (Symbol::new("n"), Symbol::new("m"));
        let (n, m) = (Dim::symbol(s.clone()), Dim::symbol(t));
        let [one, two, four] = [1, 2, 4].map(Dim::from);
        let length = n.times(&two).plus(&four);
        assert_eq!(length.decides(), Some(&s));
        assert_eq!(length.solved(&Dim::from(10)), Some((s.clone(), Dim::from(3))));
        assert_eq!(length.solved(&four), Some((s.clone(), Dim::from(0))));
        assert_eq!(length.solved(&m.times(&two).plus(&four)), Some((s.clone(), m.clone())));
        assert_eq!(n.solved(&m.plus(&one)), Some((s, m.plus(&one))));
        for (length, is) in [(&length, 9), (&length, 2), (&n.times(&m), 6), (&n.less(&one), 3)] {
            assert_eq!(length.solved(&Dim::from(is)), None, "{length} is {is}");
        }
        assert_eq!(n.minus(&one).solved(&Dim::from(0)), None, "0 or 1");
    }

    #[test]
    fn checkpoints_of_an_open_number_of_iterations_are_counted_when_it_is_known() {
        let iterations = Symbol::new("n");
        let checkpoints = Dim::checkpoints(&Dim::symbol(iterations.clone()), None);
        assert_eq!(checkpoints.to_string(), "checkpoints(n)");
        let at = |n: usize| checkpoints.substitute(&|s| (*s == iterations).then(|| Dim::from(n)));
        assert_eq!([0, 1, 8, 4000].map(at), [0, 0, 7, 127].map(Dim::from));
        let bounded = Dim::symbol(Symbol::bounded("m", Dim::from(100)));
        assert_eq!(Dim::checkpoints(&bounded, Some(5)).most(), Some(5));
    }
}
