//! A Pareto front: of what was tried, that which nothing else beats in both seconds and bytes.
//!
//! What is beaten goes at once. There are hundreds of tries, and each is as long as the program.

use std::cmp::Ordering;

/// Something that takes seconds and bytes.
pub trait Priced {
    /// Seconds.
    fn seconds(&self) -> f64;
    /// Bytes at the peak.
    fn peak(&self) -> u64;
}

/// The fewest seconds first; of equals the fewest bytes.
pub fn by_seconds(a: &impl Priced, b: &impl Priced) -> Ordering {
    a.seconds().total_cmp(&b.seconds()).then(a.peak().cmp(&b.peak()))
}

/// Points that no other beats in both, quickest first; of equals the one that came first.
#[derive(Debug)]
pub struct ParetoFront<T>(Vec<T>);

impl<T> Default for ParetoFront<T> {
    fn default() -> ParetoFront<T> {
        ParetoFront(Vec::new())
    }
}

impl<T: Priced> ParetoFront<T> {
    /// Adds a point, unless it is beaten, and removes those that it beats.
    pub fn add(&mut self, point: T) {
        let at = self.0.partition_point(|known| by_seconds(known, &point).is_le());
        // Of those that are as quick, the last has the least peak.
        if at > 0 && self.0[at - 1].peak() <= point.peak() {
            return;
        }
        let beaten = self.0[at..].iter().take_while(|known| known.peak() >= point.peak()).count();
        self.0.splice(at..at + beaten, [point]);
    }

    /// All points, for numbers of theirs that change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut()
    }

    /// The points, quickest first.
    pub fn into_vec(self) -> Vec<T> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Priced for (f64, u64, usize) {
        fn seconds(&self) -> f64 {
            self.0
        }

        fn peak(&self) -> u64 {
            self.1
        }
    }

    /// Points in any order give what looking at all pairs gives.
    #[test]
    fn a_front_is_what_no_other_point_beats() {
        let mut state = 1u64;
        let mut next = |most: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % most
        };
        for count in 0..60 {
            let points: Vec<(f64, u64, usize)> =
                (0..count).map(|i| (next(12) as f64, next(12), i)).collect();
            let mut front = ParetoFront::default();
            points.iter().for_each(|p| front.add(*p));
            let beats = |a: &(f64, u64, usize), b: &(f64, u64, usize)| {
                let is_no_worse = a.0 <= b.0 && a.1 <= b.1;
                is_no_worse && ((a.0, a.1) != (b.0, b.1) || a.2 < b.2)
            };
            let is_left = |p: &&(f64, u64, usize)| !points.iter().any(|other| beats(other, p));
            let mut expected: Vec<(f64, u64, usize)> =
                points.iter().filter(is_left).copied().collect();
            expected.sort_by(by_seconds);
            assert_eq!(front.into_vec(), expected);
        }
    }
}
