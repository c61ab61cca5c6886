//! Packing instances whose optimum is known: a rectangle of steps and bytes, cut into pieces that fill it without a gap.

use tonnage_plan::offsets::Item;

/// A fixed sequence of numbers (SplitMix64).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (x ^ (x >> 27)) % n
    }
}

/// From the first step up to the second, from the first byte up to the second.
type Piece = (u32, u32, u64, u64);

/// A rectangle cut into about that many items: the optimum is its height. All cuts go straight through a piece; with
/// `wheels` every other one takes four pieces from around a fifth, which no straight cut does.
pub fn cut(count: usize, steps: u32, height: u64, wheels: bool, seed: u64) -> Vec<Item> {
    let mut numbers = Numbers(seed);
    let mut pieces: Vec<Piece> = vec![(0, steps, 0, height)];
    while pieces.len() < count {
        // Larger pieces are cut more often.
        let area = |&(a, b, c, d): &Piece| u64::from(b - a) * (d - c);
        let mut at = numbers.below(pieces.iter().map(area).sum());
        let Some(k) = pieces.iter().position(|piece| {
            let here = at < area(piece);
            at = at.saturating_sub(area(piece));
            here
        }) else {
            continue;
        };
        let made = match wheels && numbers.below(2) == 0 {
            true => wheel(pieces[k], &mut numbers),
            false => halves(pieces[k], &mut numbers),
        };
        if let Some((first, rest)) = made.split_first() {
            pieces[k] = *first;
            pieces.extend(rest);
        }
    }
    // Cut pieces stand in an order that gives the packing away.
    for i in (1..pieces.len()).rev() {
        pieces.swap(i, numbers.below(i as u64 + 1) as usize);
    }
    pieces.into_iter().map(|(lower, upper, c, d)| Item { lower, upper, size: d - c }).collect()
}

fn halves((a, b, c, d): Piece, numbers: &mut Numbers) -> Vec<Piece> {
    let across = numbers.below(2) == 0;
    if across && b - a > 1 {
        let middle = a + 1 + numbers.below(u64::from(b - a) - 1) as u32;
        vec![(a, middle, c, d), (middle, b, c, d)]
    } else if !across && d - c > 1 {
        let middle = c + 1 + numbers.below(d - c - 1);
        vec![(a, b, c, middle), (a, b, middle, d)]
    } else {
        Vec::new()
    }
}

fn wheel((a, b, c, d): Piece, numbers: &mut Numbers) -> Vec<Piece> {
    if b - a < 3 || d - c < 3 {
        return Vec::new();
    }
    let from = a + 1 + numbers.below(u64::from(b - a) - 2) as u32;
    let to = from + 1 + numbers.below(u64::from(b - from) - 1) as u32;
    let low = c + 1 + numbers.below(d - c - 2);
    let high = low + 1 + numbers.below(d - low - 1);
    let hub = (from, to, low, high);
    match numbers.below(2) {
        0 => vec![(a, to, c, low), (to, b, c, high), (from, b, high, d), (a, from, low, d), hub],
        _ => vec![(a, from, c, high), (from, b, c, low), (to, b, low, d), (a, to, high, d), hub],
    }
}
