//! The frontier in the making: ways to run a graph that no other beats in both seconds and peak, and the variants that
//! they are of. A variant without such a way is given back at once: each is a graph.

use super::front::{Front, Point};
use super::variants::{Rung, Sink, Variant};

/// A rung with the number of its variant.
pub struct Numbered(pub usize, pub Rung);

impl Point for Numbered {
    fn seconds(&self) -> f64 {
        self.1.seconds
    }

    fn peak(&self) -> u64 {
        self.1.peak
    }
}

/// What was found so far.
pub struct Found {
    /// The graph itself, in each of its orders: they have the first numbers.
    own: usize,
    /// The graph with nothing done to it. It stays in any case: what fits without a budget fits with one, whatever
    /// estimates say.
    plain: Option<(usize, Rung)>,
    others: Vec<Variant>,
    rungs: Front<Numbered>,
}

impl Found {
    /// Nothing yet, of a graph in so many orders.
    pub fn new(own: usize) -> Found {
        Found { own, plain: None, others: Vec::new(), rungs: Front::default() }
    }

    /// Adds a rung of the graph itself. The first is the one with nothing done to it.
    pub fn add_own(&mut self, order: usize, rung: Rung) {
        if self.plain.is_none() {
            self.plain = Some((order, rung.clone()));
        }
        self.rungs.add(Numbered(order, rung));
    }

    /// All variants that have a rung, and the rungs, quickest first.
    pub fn finish(self, own: Vec<Variant>) -> (Vec<Variant>, Vec<(usize, Rung)>) {
        let Found { plain, others, rungs, .. } = self;
        let mut rungs: Vec<Numbered> = rungs.into_vec();
        if let Some((order, rung)) = plain
            && !rungs.iter().any(|Numbered(of, other)| *of == order && other.is_plain())
        {
            let at = rungs.partition_point(|other| other.seconds() <= rung.seconds);
            rungs.insert(at, Numbered(order, rung));
        }
        let mut all: Vec<Variant> = own.into_iter().chain(others).collect();
        drop_unused(&mut all, 0, rungs.iter_mut());
        all.iter_mut().for_each(only_roots);
        (all, rungs.into_iter().map(|Numbered(variant, rung)| (variant, rung)).collect())
    }
}

impl Sink for Found {
    fn add(&mut self, mut variant: Variant, rungs: Vec<Rung>) {
        let number = self.own + self.others.len();
        rungs.into_iter().for_each(|rung| self.rungs.add(Numbered(number, rung)));
        only_roots(&mut variant);
        self.others.push(variant);
        drop_unused(&mut self.others, self.own, self.rungs.iter_mut());
    }
}

/// Drops the variants that have no rung, and gives the others new numbers; the first has the number `first`.
fn drop_unused<'r>(
    variants: &mut Vec<Variant>,
    first: usize,
    rungs: impl Iterator<Item = &'r mut Numbered>,
) {
    let mut rungs: Vec<&mut Numbered> = rungs.filter(|rung| rung.0 >= first).collect();
    let mut new: Vec<Option<usize>> = vec![None; variants.len()];
    rungs.iter().for_each(|rung| new[rung.0 - first] = Some(0));
    new.iter_mut().flatten().enumerate().for_each(|(number, new)| *new = first + number);
    let mut is_used = new.iter().map(Option::is_some);
    variants.retain(|_| is_used.next().unwrap_or(true));
    for rung in &mut rungs {
        rung.0 = new[rung.0 - first].unwrap_or(rung.0);
    }
}

/// What only comparing needs is not held.
fn only_roots(variant: &mut Variant) {
    variant.pressure.only_roots();
    variant.within.iter_mut().for_each(|within| within.pressure.only_roots());
}
