//! The axes of a domain with those left out that need no loop of their own: lengths of 1, and neighbours that every operand runs through as
//! one.

use smallvec::SmallVec;

/// Axes, outermost first: their lengths, and the step of every operand along each.
#[derive(Debug, Clone, Default)]
pub struct Axes {
    /// Their lengths.
    pub sizes: SmallVec<[usize; 4]>,
    /// By operand, then by axis.
    pub strides: SmallVec<[SmallVec<[i64; 4]>; 4]>,
}

impl Axes {
    /// Some axes of a domain; `strides` are those of every operand over the whole domain.
    pub fn merged(domain: &[usize], strides: &[SmallVec<[i64; 4]>], taken: &[usize]) -> Axes {
        let mut axes = Axes {
            sizes: SmallVec::new(),
            strides: strides.iter().map(|_| SmallVec::new()).collect(),
        };
        for axis in taken.iter().copied().filter(|axis| domain[*axis] != 1) {
            let size = domain[axis];
            let last = axes.sizes.len().checked_sub(1);
            let is_one = |at: usize| {
                strides.iter().zip(&axes.strides).all(|(all, kept)| {
                    all[axis].checked_mul(size as i64).is_some_and(|whole| kept[at] == whole)
                })
            };
            match last {
                Some(at) if is_one(at) => {
                    axes.sizes[at] *= size;
                    for (all, kept) in strides.iter().zip(&mut axes.strides) {
                        kept[at] = all[axis];
                    }
                }
                _ => {
                    axes.sizes.push(size);
                    for (all, kept) in strides.iter().zip(&mut axes.strides) {
                        kept.push(all[axis]);
                    }
                }
            }
        }
        axes
    }

    /// How many axes.
    pub fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// How many indices.
    pub fn count(&self) -> u64 {
        self.sizes.iter().map(|n| *n as u64).product()
    }

    /// The farthest that an operand reaches from its first element, in elements.
    pub fn reach(&self, operand: usize) -> u64 {
        let steps = self.sizes.iter().zip(&self.strides[operand]);
        steps.map(|(n, stride)| stride.unsigned_abs() * (*n as u64).saturating_sub(1)).sum()
    }
}

/// The steps of a tensor whose elements lie in the domain's order.
pub fn contiguous(domain: &[usize]) -> SmallVec<[i64; 4]> {
    let mut strides: SmallVec<[i64; 4]> = SmallVec::from_elem(0, domain.len());
    let mut step = 1i64;
    for (stride, n) in strides.iter_mut().zip(domain).rev() {
        *stride = step;
        step = step.saturating_mul(*n as i64);
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(domain: &[usize], strides: &[&[i64]]) -> (Vec<usize>, Vec<Vec<i64>>) {
        let strides: Vec<SmallVec<[i64; 4]>> = strides.iter().map(|s| (*s).into()).collect();
        let all: Vec<usize> = (0..domain.len()).collect();
        let axes = Axes::merged(domain, &strides, &all);
        (axes.sizes.to_vec(), axes.strides.iter().map(|s| s.to_vec()).collect())
    }

    #[test]
    fn neighbours_that_all_run_through_as_one_are_one() {
        assert_eq!(merged(&[2, 3, 4], &[&[12, 4, 1]]), (vec![24], vec![vec![1]]));
        // A bias: the last axis is the other's alone.
        let (sizes, strides) = merged(&[2, 3, 4], &[&[12, 4, 1], &[0, 0, 1]]);
        assert_eq!((sizes, strides), (vec![6, 4], vec![vec![4, 1], vec![0, 1]]));
        // Lengths of 1 are no axes, whatever their step.
        assert_eq!(merged(&[1, 5, 1], &[&[7, 1, 99]]), (vec![5], vec![vec![1]]));
        // A number that is broadcast everywhere.
        assert_eq!(merged(&[2, 3], &[&[0, 0]]), (vec![6], vec![vec![0]]));
    }

    #[test]
    fn a_transpose_stays_two_axes() {
        let (sizes, strides) = merged(&[3, 4], &[&[1, 3], &[4, 1]]);
        assert_eq!((sizes, strides), (vec![3, 4], vec![vec![1, 3], vec![4, 1]]));
    }

    #[test]
    fn contiguous_steps_are_those_of_the_order() {
        assert_eq!(contiguous(&[2, 3, 4]).as_slice(), [12, 4, 1]);
        assert!(contiguous(&[]).is_empty());
    }
}
