//! A domain in pieces that lie one behind the other, for what is made a piece at a time and goes to a file.

use smallvec::SmallVec;
use tonnage_core::layout::Layout;
use tonnage_core::shape::Sizes;

/// How a domain is cut: a number of rows along one axis at a time, for every position along the axes before it.
///
/// ```
/// use tonnage_cpu::tile::Pieces;
/// let pieces = Pieces::of(&[2, 5, 3], 6);
/// assert_eq!(pieces.count(), 6);
/// let middle = pieces.piece(1);
/// assert_eq!((middle.start, &middle.sizes[..]), (6, &[1, 2, 3][..]));
/// assert_eq!(pieces.piece(5).sizes[..], [1, 1, 3]);
/// ```
#[derive(Debug, Clone)]
pub struct Pieces {
    domain: Sizes,
    axis: usize,
    rows: usize,
    /// Elements behind one position along the axis.
    inner: usize,
}

/// A piece of a domain.
#[derive(Debug, Clone)]
pub struct DomainPiece {
    /// Elements of the domain before it.
    pub start: usize,
    /// Its sizes.
    pub sizes: Sizes,
    /// Where its first element is along each axis.
    first: SmallVec<[usize; 6]>,
}

impl Pieces {
    /// Pieces of at most this many elements, or of one.
    pub fn of(domain: &[usize], most: usize) -> Pieces {
        let (mut axis, mut inner) = (domain.len(), 1usize);
        while axis > 0 && inner <= most {
            axis -= 1;
            if inner.saturating_mul(domain[axis]) > most {
                break;
            }
            inner *= domain[axis];
        }
        // All of it, where it is that small: the first axis stays whole.
        let whole = domain.iter().product::<usize>() <= most;
        let (axis, inner) =
            if whole { (0, domain.iter().skip(1).product()) } else { (axis, inner) };
        let rows = (most / inner.max(1)).max(1);
        Pieces { domain: domain.into(), axis, rows, inner }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        let before: usize = self.domain.iter().take(self.axis).product();
        before * self.along()
    }

    /// How many along the axis.
    fn along(&self) -> usize {
        self.domain.get(self.axis).map_or(1, |size| size.div_ceil(self.rows))
    }

    /// One of them.
    pub fn piece(&self, number: usize) -> DomainPiece {
        let mut first: SmallVec<[usize; 6]> = SmallVec::from_elem(0, self.domain.len());
        let mut sizes = self.domain.clone();
        let Some(size) = self.domain.get(self.axis) else {
            return DomainPiece { start: 0, sizes, first };
        };
        let row = number % self.along() * self.rows;
        let mut before = number / self.along();
        let start = (before * size + row) * self.inner;
        first[self.axis] = row;
        sizes[self.axis] = self.rows.min(size - row);
        for axis in (0..self.axis).rev() {
            first[axis] = before % self.domain[axis];
            before /= self.domain[axis];
            sizes[axis] = 1;
        }
        DomainPiece { start, sizes, first }
    }
}

impl DomainPiece {
    /// What of a layout over the domain lies under the piece.
    pub fn of(&self, layout: &Layout) -> Layout {
        let steps = self.first.iter().zip(&layout.strides).map(|(i, stride)| *i as isize * stride);
        let offset = layout.offset.wrapping_add_signed(steps.sum());
        Layout { sizes: self.sizes.clone(), offset, ..layout.clone() }
    }
}
