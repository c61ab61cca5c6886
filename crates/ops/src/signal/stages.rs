//! One pass of a transform over a row, in the order of Stockham (Cochran and others, 1967): every pass reads one half of
//! the work space and writes the other, sorted as the next one wants it.
//!
//! A pass of radix R takes R elements at equal distances to their own small transform, turned by angles of the table. Blocks
//! of lanes are read side by side in every pass; where runs are long they are written so too.

use super::four;
use crate::linalg::field::Field;
use crate::simd::{Isa, Kernel};

/// Elements that are worked on side by side.
const LANES: usize = 16;

/// The radices, 4 first: passes of 8 were slower, since short runs then wait for more angles; what is left of a length must be 1.
const RADICES: [usize; 7] = [4, 2, 3, 5, 7, 11, 13];

/// The next radix of a length, or `None` where it is 1 or has a large prime in it.
pub fn radix(n: usize) -> Option<usize> {
    RADICES.into_iter().find(|radix| n > 1 && n.is_multiple_of(*radix))
}

/// Whether passes alone transform that length.
pub fn is_smooth(mut n: usize) -> bool {
    while let Some(radix) = radix(n) {
        n /= radix;
    }
    n == 1
}

/// Real and imaginary parts.
pub type Parts<'a, T> = [&'a [T]; 2];
/// Real and imaginary parts to write.
pub type PartsMut<'a, T> = [&'a mut [T]; 2];

/// One pass.
pub struct Pass<'a, T> {
    pub from: Parts<'a, T>,
    pub to: PartsMut<'a, T>,
    /// The length that is left to transform.
    pub left: usize,
    pub radix: usize,
    /// Cosines and sines of all angles, as many as the row is long.
    pub table: Parts<'a, T>,
}

impl<T: Field> Kernel for Pass<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        match self.radix {
            4 => self.of::<I, 4>(),
            2 => self.of::<I, 2>(),
            3 => self.of::<I, 3>(),
            5 => self.of::<I, 5>(),
            7 => self.of::<I, 7>(),
            11 => self.of::<I, 11>(),
            _ => self.of::<I, 13>(),
        }
    }
}

/// Blocks of lanes: real parts, imaginary parts.
type Block<T, const R: usize, const L: usize> = [[[T; L]; R]; 2];

impl<T: Field> Pass<'_, T> {
    #[inline(always)]
    fn of<I: Isa, const R: usize>(self) {
        match self.from[0].len() / self.left {
            1 => self.short::<I, R, 1>(),
            2 => self.short::<I, R, 2>(),
            4 => self.short::<I, R, 4>(),
            8 => self.short::<I, R, 8>(),
            _ => self.long::<I, R>(),
        }
    }

    fn roots<const R: usize>(&self) -> [[T; R]; 2] {
        let step = self.from[0].len() / R;
        self.table.map(|part| std::array::from_fn(|k| part[k * step]))
    }

    /// Runs that are written side by side: blocks of one run each.
    #[inline(always)]
    fn long<I: Isa, const R: usize>(self) {
        let roots = self.roots::<R>();
        let Pass { from, to: [to_re, to_im], left, table, .. } = self;
        let run = from[0].len() / left;
        let part = from[0].len() / R;
        let pairs = to_re.chunks_exact_mut(run * R).zip(to_im.chunks_exact_mut(run * R));
        for (first, (to_re, to_im)) in pairs.enumerate() {
            let angles: [[T; R]; 2] =
                table.map(|part| std::array::from_fn(|k| part[first * k * run]));
            if R == 4 && run.is_multiple_of(LANES) {
                let angles = angles.map(|part| std::array::from_fn(|k| part[k]));
                four::run::<I, T, LANES>(from, first * run, angles, [to_re, to_im]);
                continue;
            }
            let mut within = 0;
            while within < run {
                let start = first * run + within;
                let to = [&mut *to_re, &mut *to_im];
                macro_rules! lanes {
                    ($L:expr) => {{
                        let mut block = load::<T, R, $L>(from, part, start);
                        small::<I, T, R, $L>(&mut block, &roots);
                        turn_all::<I, T, R, $L>(&mut block, &angles);
                        store(&block, to, run, within);
                        within += $L;
                    }};
                }
                match run - within {
                    LANES.. => lanes!(LANES),
                    8.. => lanes!(8),
                    4.. => lanes!(4),
                    _ => lanes!(1),
                }
            }
        }
    }

    /// Runs so short that a block holds several: written one between the other.
    #[inline(always)]
    fn short<I: Isa, const R: usize, const RUN: usize>(self) {
        let roots = self.roots::<R>();
        let Pass { from, to: [to_re, to_im], table, .. } = self;
        let part = from[0].len() / R;
        let mut start = 0;
        while start + LANES <= part {
            // Of each lane its own angle.
            let mut angles = [[[T::ZERO; LANES]; R]; 2];
            for (angles, table) in angles.iter_mut().zip(table) {
                for (k, angles) in angles.iter_mut().enumerate().skip(1) {
                    for (i, angle) in angles.iter_mut().enumerate() {
                        *angle = table[(start + i) / RUN * k * RUN];
                    }
                }
            }
            let mut block = [[[T::ZERO; LANES]; R]; 2];
            let [re, im] = &mut block;
            if let (Some(to_re), Some(to_im), [Some(cos), Some(sin)]) = (
                re.first_chunk_mut::<4>().filter(|_| R == 4),
                im.first_chunk_mut::<4>(),
                angles.each_ref().map(|part| part.first_chunk::<4>()),
            ) {
                four::block::<I, T, LANES>(from, start, &[*cos, *sin], [to_re, to_im]);
            } else {
                block = load::<T, R, LANES>(from, part, start);
                small::<I, T, R, LANES>(&mut block, &roots);
                let [re, im] = &mut block;
                for k in 1..R {
                    turn::<I, T, LANES>(&mut re[k], &mut im[k], &angles.map(|part| part[k]));
                }
            }
            for (to, block) in [&mut *to_re, &mut *to_im].into_iter().zip(&block) {
                let to = &mut to[start * R..][..LANES * R];
                for (runs, to) in to.chunks_exact_mut(RUN * R).enumerate() {
                    for (k, to) in to.chunks_exact_mut(RUN).enumerate() {
                        for (i, to) in to.iter_mut().enumerate() {
                            *to = block[k][runs * RUN + i];
                        }
                    }
                }
            }
            start += LANES;
        }
        while start < part {
            let (first, within) = (start / RUN, start % RUN);
            let mut block = load::<T, R, 1>(from, part, start);
            small::<I, T, R, 1>(&mut block, &roots);
            let angles = table.map(|part| std::array::from_fn(|k| part[first * k * RUN]));
            turn_all::<I, T, R, 1>(&mut block, &angles);
            let at = RUN * R * first;
            store(&block, [&mut to_re[at..], &mut to_im[at..]], RUN, within);
            start += 1;
        }
    }
}

/// Lanes of each of R parts, from a place in the first.
#[inline(always)]
fn load<T: Field, const R: usize, const L: usize>(
    from: Parts<T>,
    part: usize,
    start: usize,
) -> Block<T, R, L> {
    from.map(|from| {
        std::array::from_fn(|j| {
            let lanes = &from[part * j + start..][..L];
            std::array::from_fn(|i| lanes[i])
        })
    })
}

/// Lanes into runs of that length, one behind the other.
#[inline(always)]
fn store<T: Field, const R: usize, const L: usize>(
    block: &Block<T, R, L>,
    to: PartsMut<T>,
    run: usize,
    within: usize,
) {
    for (to, block) in to.into_iter().zip(block) {
        for (k, lanes) in block.iter().enumerate() {
            to[run * k + within..][..L].copy_from_slice(lanes);
        }
    }
}

/// Lanes times angles of their own.
#[inline(always)]
fn turn<I: Isa, T: Field, const L: usize>(
    re: &mut [T; L],
    im: &mut [T; L],
    [cos, sin]: &[[T; L]; 2],
) {
    for i in 0..L {
        let (x, y) = (re[i], im[i]);
        re[i] = x.fma::<I>(cos[i], -(y * sin[i]));
        im[i] = x.fma::<I>(sin[i], y * cos[i]);
    }
}

/// All lanes of each of R parts times an angle.
#[inline(always)]
fn turn_all<I: Isa, T: Field, const R: usize, const L: usize>(
    [re, im]: &mut Block<T, R, L>,
    [cos, sin]: &[[T; R]; 2],
) {
    for k in 1..R {
        turn::<I, T, L>(&mut re[k], &mut im[k], &[[cos[k]; L], [sin[k]; L]]);
    }
}

/// The transform of R elements, for each lane.
#[inline(always)]
fn small<I: Isa, T: Field, const R: usize, const L: usize>(
    block: &mut Block<T, R, L>,
    [cos, sin]: &[[T; R]; 2],
) {
    let [re, im] = block;
    if R == 2 {
        for i in 0..L {
            for part in [&mut *re, &mut *im] {
                let (a, b) = (part[0][i], part[1][i]);
                (part[0][i], part[1][i]) = (a + b, a - b);
            }
        }
        return;
    }
    if R == 4 {
        for i in 0..L {
            let made = of_four(std::array::from_fn(|j| (re[j][i], im[j][i])));
            made.into_iter().enumerate().for_each(|(k, made)| (re[k][i], im[k][i]) = made);
        }
        return;
    }
    // Elements from both ends: their sums meet the cosines, their differences the sines.
    let (mut made_re, mut made_im) = ([[T::ZERO; L]; R], [[T::ZERO; L]; R]);
    for i in 0..L {
        let (first, second) = (re[0][i], im[0][i]);
        let (mut whole_re, mut whole_im) = (first, second);
        for j in 1..=R / 2 {
            whole_re = whole_re + (re[j][i] + re[R - j][i]);
            whole_im = whole_im + (im[j][i] + im[R - j][i]);
        }
        (made_re[0][i], made_im[0][i]) = (whole_re, whole_im);
    }
    for k in 1..=R / 2 {
        for i in 0..L {
            let (mut even_re, mut even_im) = (re[0][i], im[0][i]);
            let (mut odd_re, mut odd_im) = (T::ZERO, T::ZERO);
            for j in 1..=R / 2 {
                let (c, s) = (cos[j * k % R], sin[j * k % R]);
                even_re = c.fma::<I>(re[j][i] + re[R - j][i], even_re);
                even_im = c.fma::<I>(im[j][i] + im[R - j][i], even_im);
                odd_re = s.fma::<I>(im[R - j][i] - im[j][i], odd_re);
                odd_im = s.fma::<I>(re[j][i] - re[R - j][i], odd_im);
            }
            (made_re[k][i], made_im[k][i]) = (even_re + odd_re, even_im + odd_im);
            (made_re[R - k][i], made_im[R - k][i]) = (even_re - odd_re, even_im - odd_im);
        }
    }
    (*re, *im) = (made_re, made_im);
}

/// The transform of four elements, each a real and an imaginary part.
#[inline(always)]
fn of_four<T: Field>([a, b, c, d]: [(T, T); 4]) -> [(T, T); 4] {
    let (even, even_gap) = ((a.0 + c.0, a.1 + c.1), (a.0 - c.0, a.1 - c.1));
    let (odd, odd_gap) = ((b.0 + d.0, b.1 + d.1), (b.0 - d.0, b.1 - d.1));
    [
        (even.0 + odd.0, even.1 + odd.1),
        (even_gap.0 + odd_gap.1, even_gap.1 - odd_gap.0),
        (even.0 - odd.0, even.1 - odd.1),
        (even_gap.0 - odd_gap.1, even_gap.1 + odd_gap.0),
    ]
}
