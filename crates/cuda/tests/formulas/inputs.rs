//! What the functions are asked: random bits, and around everything where a formula or a format changes.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2, FRAC_PI_4, LN_2, PI, SQRT_2};

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use tonnage_core::DType;

/// Elements of each input.
pub const COUNT: usize = 20_480;

/// The dtypes that registers have.
pub const REGISTERS: [DType; 11] = [
    DType::F32,
    DType::F64,
    DType::I8,
    DType::U8,
    DType::I16,
    DType::U16,
    DType::I32,
    DType::U32,
    DType::I64,
    DType::U64,
    DType::Bool,
];

/// COUNT elements, aligned for every dtype.
pub struct Elements {
    words: Vec<u64>,
    size: usize,
}

impl Elements {
    pub fn new(dtype: DType) -> Elements {
        Elements { words: vec![0; COUNT], size: dtype.size() }
    }

    pub fn bytes(&self) -> &[u8] {
        &cast_slice(&self.words)[..COUNT * self.size]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut cast_slice_mut(&mut self.words)[..COUNT * self.size]
    }

    fn fill<T: Pod>(&mut self, mut next: impl FnMut() -> T) {
        cast_slice_mut(self.bytes_mut()).fill_with(&mut next);
    }
}

/// Three operands of each dtype, in the order of [`REGISTERS`].
pub struct Inputs(Vec<[Elements; 3]>);

impl Inputs {
    pub fn new() -> Inputs {
        let mut random = Words(20_480);
        let operand = |dtype| {
            let mut elements = Elements::new(dtype);
            draw(dtype, &mut random, &mut elements);
            elements
        };
        let dtypes = REGISTERS.iter().flat_map(|&dtype| [dtype; 3]);
        let mut all = dtypes.map(operand).collect::<Vec<_>>().into_iter();
        let three = |_: &DType| [(); 3].map(|()| all.next().unwrap());
        Inputs(REGISTERS.iter().map(three).collect())
    }

    /// The operand of that number.
    pub fn of(&self, dtype: DType, operand: usize) -> &Elements {
        &self.0[REGISTERS.iter().position(|&d| d == dtype).unwrap()][operand]
    }

    /// All of them, one behind the other.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.iter().flatten().flat_map(|elements| elements.bytes()).copied().collect()
    }
}

/// Random words of a counter that is mixed (splitmix64).
struct Words(u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// In (-1, 1).
    fn signed(&mut self) -> f64 {
        (self.next() as i64) as f64 / 2f64.powi(63)
    }

    fn pick(&mut self, from: &[f64]) -> f64 {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Where a formula changes its way, or a format ends.
const EDGES: &[f64] = &[
    0.25,
    0.5,
    0.55,
    1.0,
    2.0,
    8.0,
    9.5,
    10.1,
    11.5,
    14.4,
    20.0,
    22.0,
    27.3,
    38.62,
    40.0,
    87.3,
    88.7,
    89.0,
    90.0,
    103.9,
    104.0,
    110.0,
    127.5,
    128.0,
    170.0,
    171.0,
    255.0,
    256.0,
    708.4,
    709.7,
    710.4,
    711.0,
    745.1,
    746.0,
    755.0,
    2048.0,
    32767.5,
    32768.0,
    65504.0,
    65519.9,
    65520.0,
    65535.0,
    65536.0,
    1e6,
    16_777_216.0,
    2_147_483_648.0,
    4_294_967_296.0,
    9_007_199_254_740_992.0,
    9_223_372_036_854_775_808.0,
    18_446_744_073_709_551_616.0,
    3.389e38,
    3.4e38,
    1.175_494_35e-38,
    6.103_515_625e-5,
    5.960_464_5e-8,
    2.98e-8,
    5.551e-17,
    LN_2 / 2.0,
    LN_2,
    FRAC_1_SQRT_2,
    FRAC_PI_4,
    SQRT_2,
    1.461_632_14,
    FRAC_PI_2,
    PI,
    SQRT_2 - 1.0,
    f64::MAX,
    f64::MIN_POSITIVE,
];

/// A float that is not just any: near 0 and 1, halves, angles, edges.
fn ordinary(random: &mut Words) -> f64 {
    match random.below(8) {
        0 => random.signed(),
        1 => 10.0 * random.signed(),
        2 => 1000.0 * random.signed(),
        3 => 2e6 * random.signed(),
        4 => (random.below(801) as f64 - 400.0) / 2.0 * random.pick(&[1.0, 9.0]),
        5 => random.below(175) as f64,
        6 => 2f64.powf(80.0 * random.signed()).copysign(random.signed()),
        _ => random.pick(EDGES) * random.pick(&[1.0, -1.0]),
    }
}

macro_rules! float {
    ($T:ident, $Bits:ident, $random:expr) => {{
        let random: &mut Words = $random;
        match random.below(8) {
            0 => $T::from_bits(random.next() as $Bits),
            // Few digits, as the middle of two narrower numbers has.
            1 => $T::from_bits(random.next() as $Bits & (!0 << random.below($Bits::BITS.into()))),
            // Subnormal numbers, and the smallest normal ones.
            2 => $T::from_bits(
                random.next() as $Bits >> (8 + random.below(u64::from($Bits::BITS) - 8)),
            )
            .copysign(random.signed() as $T),
            3 => {
                random.pick(&[0.0, -0.0, 1.0, -1.0, f64::INFINITY, -f64::INFINITY, f64::NAN]) as $T
            }
            // A few units away.
            4 => {
                let near = (ordinary(random) as $T).to_bits();
                $T::from_bits(near.wrapping_add(random.below(7) as $Bits).wrapping_sub(3))
            }
            _ => ordinary(random) as $T,
        }
    }};
}

macro_rules! integer {
    ($T:ident, $random:expr) => {{
        let random: &mut Words = $random;
        let small = random.below(7) as $T;
        match random.below(5) {
            0 => random.next() as $T,
            1 => (random.below(141) as i64 - 70) as $T,
            2 => $T::MIN.wrapping_add(small),
            3 => $T::MAX.wrapping_sub(small),
            _ => ((1 as $T) << random.below($T::BITS.into())).wrapping_add(small).wrapping_sub(3),
        }
    }};
}

fn draw(dtype: DType, random: &mut Words, out: &mut Elements) {
    match dtype {
        DType::F32 => out.fill(|| float!(f32, u32, random)),
        DType::F64 => out.fill(|| float!(f64, u64, random)),
        DType::I8 => out.fill(|| integer!(i8, random)),
        DType::U8 => out.fill(|| integer!(u8, random)),
        DType::I16 => out.fill(|| integer!(i16, random)),
        DType::U16 => out.fill(|| integer!(u16, random)),
        DType::I32 => out.fill(|| integer!(i32, random)),
        DType::U32 => out.fill(|| integer!(u32, random)),
        DType::I64 => out.fill(|| integer!(i64, random)),
        DType::U64 => out.fill(|| integer!(u64, random)),
        // Any byte but 0 is true.
        DType::Bool => out.fill(|| [0, 1, 0, 1, random.next() as u8][random.below(5) as usize]),
        DType::F16 | DType::BF16 => unreachable!("no register holds {dtype}"),
    }
}
