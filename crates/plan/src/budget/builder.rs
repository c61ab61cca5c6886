//! The frontier in the making: ways to run a graph that no other beats in both seconds and peak, and the variants that
//! they are of. A variant without such a way is given back at once: each is a graph.

use super::front::{ParetoFront, Priced};
use super::variants::{FrontierPoint, Variant, VariantSink};

/// A point with the number of its variant.
pub struct Numbered(pub usize, pub FrontierPoint);

impl Priced for Numbered {
    fn seconds(&self) -> f64 {
        self.1.seconds
    }

    fn peak(&self) -> u64 {
        self.1.peak
    }
}

/// What was found so far.
pub struct FrontierBuilder {
    /// The graph itself, in each of its orders: they have the first numbers.
    own: usize,
    /// The graph with nothing done to it. It stays in any case: what fits without a budget fits with one, whatever
    /// estimates say.
    plain: Option<(usize, FrontierPoint)>,
    others: Vec<Variant>,
    points: ParetoFront<Numbered>,
}

impl FrontierBuilder {
    /// Nothing yet, of a graph in that number of orders.
    pub fn new(own: usize) -> FrontierBuilder {
        FrontierBuilder { own, plain: None, others: Vec::new(), points: ParetoFront::default() }
    }

    /// Adds a point of the graph itself. The first is the one with nothing done to it.
    pub fn add_own(&mut self, order: usize, point: FrontierPoint) {
        if self.plain.is_none() {
            self.plain = Some((order, point.clone()));
        }
        self.points.add(Numbered(order, point));
    }

    /// All variants that have a point, and the points, quickest first.
    pub fn finish(self, own: Vec<Variant>) -> (Vec<Variant>, Vec<(usize, FrontierPoint)>) {
        let FrontierBuilder { plain, others, points, .. } = self;
        let mut points: Vec<Numbered> = points.into_vec();
        if let Some((order, point)) = plain
            && !points.iter().any(|Numbered(of, other)| *of == order && other.is_plain())
        {
            let at = points.partition_point(|other| other.seconds() <= point.seconds);
            points.insert(at, Numbered(order, point));
        }
        let mut all: Vec<Variant> = own.into_iter().chain(others).collect();
        drop_unused(&mut all, 0, points.iter_mut());
        all.iter_mut().for_each(only_roots);
        (all, points.into_iter().map(|Numbered(variant, point)| (variant, point)).collect())
    }
}

impl VariantSink for FrontierBuilder {
    fn add_to_own(&mut self, order: usize, point: FrontierPoint) {
        self.points.add(Numbered(order, point));
    }

    fn add(&mut self, mut variant: Variant, points: Vec<FrontierPoint>) {
        let number = self.own + self.others.len();
        points.into_iter().for_each(|point| self.points.add(Numbered(number, point)));
        only_roots(&mut variant);
        self.others.push(variant);
        drop_unused(&mut self.others, self.own, self.points.iter_mut());
    }
}

/// Drops the variants that have no point, and gives the others new numbers; the first has the number `first`.
fn drop_unused<'r>(
    variants: &mut Vec<Variant>,
    first: usize,
    points: impl Iterator<Item = &'r mut Numbered>,
) {
    let mut points: Vec<&mut Numbered> = points.filter(|point| point.0 >= first).collect();
    let mut new: Vec<Option<usize>> = vec![None; variants.len()];
    points.iter().for_each(|point| new[point.0 - first] = Some(0));
    new.iter_mut().flatten().enumerate().for_each(|(number, new)| *new = first + number);
    let mut is_used = new.iter().map(Option::is_some);
    variants.retain(|_| is_used.next().unwrap_or(true));
    for point in &mut points {
        point.0 = new[point.0 - first].unwrap_or(point.0);
    }
}

/// What only comparing needs is not held.
fn only_roots(variant: &mut Variant) {
    variant.pressure.only_roots();
    variant.within.iter_mut().for_each(|within| within.pressure.only_roots());
}
