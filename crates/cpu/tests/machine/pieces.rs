//! A domain in pieces, for what goes to a file.

use tonnage_core::Layout;
use tonnage_cpu::tile::Pieces;

/// Every element of a domain, in order, through pieces of it.
fn seen(domain: &[usize], most: usize) -> Vec<usize> {
    let pieces = Pieces::of(domain, most);
    let whole = Layout::contiguous(domain);
    let mut all = Vec::new();
    for number in 0..pieces.count() {
        let piece = pieces.piece(number);
        assert_eq!(piece.start, all.len(), "{domain:?} in {most}");
        assert!(piece.sizes.iter().product::<usize>() <= most.max(1));
        piece.of(&whole).for_each(|at| all.push(at));
    }
    all
}

#[test]
fn pieces_lie_one_behind_the_other_and_cover_all() {
    for domain in [&[][..], &[1], &[7], &[3, 4], &[5, 1, 3], &[2, 3, 4, 5], &[1, 1, 9]] {
        let count = domain.iter().product::<usize>();
        for most in [1, 2, 3, 5, 7, 12, 20, 1000] {
            assert_eq!(seen(domain, most), (0..count).collect::<Vec<_>>(), "{domain:?} {most}");
        }
    }
    assert_eq!(seen(&[0, 3], 2), []);
    assert_eq!(seen(&[3, 0], 2), []);
}
