//! Random tensors: of keys that are drawn one after the other from a global seed, or of a key that is given.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::bad_argument;
use tonnage_core::philox;
use tonnage_core::recipe::{Distribution, Key};
use tonnage_core::{DType, OpDef, Result, Shape, Source};
use tonnage_ops::{index, random};

use crate::dispatch::apply1;
use crate::ops::Elementwise;
use crate::tensor::Tensor;
use crate::trace;

/// Lets the random numbers that follow be those of a seed.
///
/// ```
/// use tonnage::{DType, random_normal, set_seed};
/// set_seed(7);
/// let a = random_normal([3], DType::F32)?.to_vec::<f32>()?;
/// set_seed(7);
/// assert_eq!(a, random_normal([3], DType::F32)?.to_vec::<f32>()?);
/// # Ok::<(), tonnage::Error>(())
/// ```
pub fn set_seed(seed: u64) {
    tonnage_runtime::random::set_seed(seed);
}

/// Which random numbers: the same key gives the same ones, in any order and on any number of threads. The free
/// functions of this crate draw a fresh key each; inside of a traced function a fresh one each call.
///
/// ```
/// use tonnage::{DType, RandomKey};
/// let key = RandomKey::new(42);
/// let (a, b) = (key.normal([3], DType::F32)?, key.normal([3], DType::F32)?);
/// assert_eq!(a.to_vec::<f32>()?, b.to_vec::<f32>()?);
/// let [left, right] = key.split();
/// assert_ne!(left.uniform([1], DType::F64)?.to_vec::<f64>()?, right.uniform([1], DType::F64)?.to_vec::<f64>()?);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// Keys that are made from a key are words of Philox under it. What they are made for stands in the last word of the
/// counter, so that keys of [`RandomKey::split`], of [`RandomKey::fold_in`], and the numbers that are drawn with the key
/// itself come from blocks that nothing else reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RandomKey([u32; 2]);

impl RandomKey {
    /// The key of a seed.
    pub fn new(seed: u64) -> RandomKey {
        RandomKey([seed as u32, (seed >> 32) as u32])
    }

    /// The key of a list of numbers, such as a seed and a counter: another one for every list, however long.
    pub fn of(numbers: &[i64]) -> RandomKey {
        RandomKey(philox::key_of(numbers.iter().copied()))
    }

    /// The key itself: two words.
    pub fn words(&self) -> [u32; 2] {
        self.0
    }

    /// Two keys that have nothing to do with each other, nor with this one: the first two of [`RandomKey::split_into`].
    #[must_use]
    pub fn split(&self) -> [RandomKey; 2] {
        let (left, right) = self.derived(Use::Split, 0);
        [left, right]
    }

    /// Keys that are independent of each other and of this one.
    ///
    /// ```
    /// use tonnage::RandomKey;
    /// let key = RandomKey::new(42);
    /// let keys: Vec<RandomKey> = key.split_into(3).collect();
    /// assert_eq!(keys[..2], key.split());
    /// assert!(!keys.contains(&key.fold_in(2)));
    /// ```
    pub fn split_into(self, count: usize) -> impl Iterator<Item = RandomKey> {
        (0..count).map(move |i| {
            let (left, right) = self.derived(Use::Split, i as u64 / 2);
            if i % 2 == 0 { left } else { right }
        })
    }

    /// A key of its own for every number, such as that of a step or an example.
    #[must_use]
    pub fn fold_in(&self, number: u64) -> RandomKey {
        self.derived(Use::FoldIn, number).0
    }

    /// The key of a pass over data.
    pub(crate) fn of_pass(&self, number: u64) -> RandomKey {
        self.derived(Use::Pass, number).0
    }

    /// Two keys of a number, for a use.
    fn derived(&self, to: Use, number: u64) -> (RandomKey, RandomKey) {
        let counter = [number as u32, (number >> 32) as u32, 0, to as u32];
        let [a, b, c, d] = philox::block(self.0, counter);
        (RandomKey([a, b]), RandomKey([c, d]))
    }
}

/// What keys are made for. Numbers themselves are drawn with 0 to 2 in that place of the counter, keys of lists are made with
/// [`philox::NUMBERED`], and functions number their random ops by words that spell it.
#[derive(Clone, Copy)]
enum Use {
    Split = 3,
    Pass = 4,
    FoldIn = 6,
}

/// The random numbers of a list of numbers that is a tensor: in a function one that each call computes. They are those of the
/// [`RandomKey::of`] the same numbers. In a plan they take memory, as anything that is computed; a key's take none.
///
/// ```
/// use tonnage::{DType, RandomKey, RandomSeed, tensor};
/// let seed = RandomSeed::new(&tensor([3i64, 4])?)?;
/// let known = RandomKey::of(&[3, 4]).normal([5], DType::F32)?;
/// assert_eq!(seed.normal([5], DType::F32)?.to_vec::<f32>()?, known.to_vec::<f32>()?);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct RandomSeed(Tensor);

impl RandomSeed {
    /// That of integers, in their order.
    ///
    /// # Errors
    /// Where the tensor's length is not known.
    #[track_caller]
    pub fn new(numbers: &Tensor) -> Result<RandomSeed> {
        Ok(RandomSeed(numbers.cast(DType::I64)?.reshape([-1])?))
    }
}

/// Which numbers an op draws.
#[derive(Clone, Copy)]
enum Drawn<'a> {
    Key(Key),
    Seed(&'a Tensor),
}

/// The key of the next random op: in a function each call brings one of its own.
pub(crate) fn next_key() -> Key {
    match trace::current() {
        Some(trace) => trace.next_random(),
        None => Key::Fixed(tonnage_runtime::random::next_key()),
    }
}

macro_rules! distributions {
    ($($(#[$doc:meta])* $method:ident $function:ident ($($arg:ident: $T:ty),*);)*) => {
        impl RandomKey {
            $($(#[$doc])*
            #[track_caller]
            pub fn $method(&self, $($arg: $T),*) -> Result<Tensor> {
                draw::$method(Drawn::Key(Key::Fixed(self.0)), $($arg.into(),)* Source::here())
            })*
        }
        impl RandomSeed {
            $($(#[$doc])*
            #[track_caller]
            pub fn $method(&self, $($arg: $T),*) -> Result<Tensor> {
                draw::$method(Drawn::Seed(&self.0), $($arg.into(),)* Source::here())
            })*
        }
        $($(#[$doc])*
        #[track_caller]
        pub fn $function($($arg: $T),*) -> Result<Tensor> {
            draw::$method(Drawn::Key(next_key()), $($arg.into(),)* Source::here())
        })*
    };
}

distributions! {
    /// Random numbers of mean 0 and deviation 1. Takes a few bytes until it is written to; reading it again gives
    /// the same numbers.
    normal random_normal(shape: impl Into<Shape>, dtype: DType);
    /// Random numbers of mean 0 and deviation 1 that lie less than 2 deviations away. Takes a few bytes.
    truncated_normal random_truncated_normal(shape: impl Into<Shape>, dtype: DType);
    /// Random numbers in [0, 1). Takes a few bytes until it is written to.
    uniform random_uniform(shape: impl Into<Shape>, dtype: DType);
    /// Random numbers from `low` up to, without, `high`. Takes a few bytes.
    uniform_between random_uniform_between(low: f64, high: f64, shape: impl Into<Shape>, dtype: DType);
    /// Random whole numbers from `low` up to, without, `high`. Takes a few bytes.
    int random_int(low: i64, high: i64, shape: impl Into<Shape>, dtype: DType);
    /// Random bits of an integer. Takes a few bytes.
    bits random_bits(shape: impl Into<Shape>, dtype: DType);
    /// The whole numbers below `n` in a random order, as i32.
    permutation random_permutation(n: usize);
}

macro_rules! of_tensors {
    ($($(#[$doc:meta])* $method:ident $function:ident ($x:ident $(, $arg:ident: $T:ty)?);)*) => {
        impl RandomKey {
            $($(#[$doc])*
            #[track_caller]
            pub fn $method(&self, $x: &Tensor $(, $arg: $T)?) -> Result<Tensor> {
                draw::$method(Drawn::Key(Key::Fixed(self.0)), $x, $($arg,)? Source::here())
            })*
        }
        impl RandomSeed {
            $($(#[$doc])*
            #[track_caller]
            pub fn $method(&self, $x: &Tensor $(, $arg: $T)?) -> Result<Tensor> {
                draw::$method(Drawn::Seed(&self.0), $x, $($arg,)? Source::here())
            })*
        }
        $($(#[$doc])*
        #[track_caller]
        pub fn $function($x: &Tensor $(, $arg: $T)?) -> Result<Tensor> {
            draw::$method(Drawn::Key(next_key()), $x, $($arg,)? Source::here())
        })*
    };
}

of_tensors! {
    /// True with the probability that each element says.
    bernoulli random_bernoulli(probability);
    /// Which of several classes is drawn, by their logits along the last axis: `samples` samples of each row, as i64.
    categorical random_categorical(logits, samples: usize);
    /// Numbers of the gamma distribution with a rate of 1, one for each shape parameter.
    gamma random_gamma(shape);
    /// Whole numbers of the Poisson distribution, one for each rate, as floats.
    poisson random_poisson(rate);
    /// The rows along the first axis in a random order.
    shuffle random_shuffle(x);
}

mod draw {
    use super::*;

    fn numbers(
        op: &'static OpDef,
        drawn: Drawn<'_>,
        distribution: Distribution,
        shape: Shape,
        dtype: DType,
        source: Source,
    ) -> Result<Tensor> {
        match drawn {
            Drawn::Key(key) => {
                let attrs = Attrs::Random { key, distribution, dtype, shape };
                apply1(op, smallvec![], attrs, source)
            }
            Drawn::Seed(seed) => {
                let attrs = Attrs::Seeded { distribution, dtype, shape };
                apply1(&random::seeded::RANDOM_SEEDED, smallvec![seed.into()], attrs, source)
            }
        }
    }

    pub fn normal(drawn: Drawn<'_>, shape: Shape, dtype: DType, source: Source) -> Result<Tensor> {
        let op = &random::distribution::RANDOM_NORMAL;
        numbers(op, drawn, Distribution::Normal, shape, dtype, source)
    }

    pub fn truncated_normal(
        drawn: Drawn<'_>,
        shape: Shape,
        dtype: DType,
        source: Source,
    ) -> Result<Tensor> {
        let op = &random::distribution::RANDOM_TRUNCATED_NORMAL;
        numbers(op, drawn, Distribution::TruncatedNormal, shape, dtype, source)
    }

    pub fn uniform(drawn: Drawn<'_>, shape: Shape, dtype: DType, source: Source) -> Result<Tensor> {
        let op = &random::distribution::RANDOM_UNIFORM;
        numbers(op, drawn, Distribution::Uniform, shape, dtype, source)
    }

    pub fn uniform_between(
        drawn: Drawn<'_>,
        low: f64,
        high: f64,
        shape: Shape,
        dtype: DType,
        source: Source,
    ) -> Result<Tensor> {
        let unit = uniform(drawn, shape, dtype, source)?;
        unit.fma(high - low, low)
    }

    pub fn bits(drawn: Drawn<'_>, shape: Shape, dtype: DType, source: Source) -> Result<Tensor> {
        let op = &random::bits::RANDOM_BITS;
        numbers(op, drawn, Distribution::Bits, shape, dtype, source)
    }

    pub fn int(
        drawn: Drawn<'_>,
        low: i64,
        high: i64,
        shape: Shape,
        dtype: DType,
        source: Source,
    ) -> Result<Tensor> {
        let op = &random::below::RANDOM_BELOW;
        let count = i128::from(high) - i128::from(low);
        let Ok(below @ 1..) = u64::try_from(count) else {
            let what = format!("whole numbers from {low} up to, without, {high}");
            return Err(bad_argument(op.name, what, "the second must be larger").at(source));
        };
        // Moved in 64 bits: how many there are may not fit where the numbers themselves do.
        let counted = numbers(op, drawn, Distribution::Below(below), shape, DType::U64, source)?;
        counted.cast(DType::I64)?.add(low)?.cast(dtype)
    }

    pub fn permutation(drawn: Drawn<'_>, n: usize, source: Source) -> Result<Tensor> {
        let drawn = bits(drawn, [n].into(), DType::U64, source)?;
        let op = &index::argsort::ARGSORT;
        apply1(op, smallvec![drawn.into()], Attrs::Descending(false), source)
    }

    pub fn shuffle(drawn: Drawn<'_>, x: &Tensor, source: Source) -> Result<Tensor> {
        let Some(rows) = x.shape().first().and_then(|d| d.known()) else {
            let what = format!("the rows of {} are not known", x.ty());
            let help = "use a tensor with a first axis of known length";
            return Err(bad_argument("shuffle", what, help).at(source));
        };
        x.gather(&permutation(drawn, rows, source)?, 0)
    }

    pub fn bernoulli(drawn: Drawn<'_>, probability: &Tensor, source: Source) -> Result<Tensor> {
        let (shape, dtype) = (probability.shape(), probability.dtype());
        uniform(drawn, shape, dtype, source)?.less(probability)
    }

    /// A key as a tensor: two words.
    fn words(drawn: Drawn<'_>, source: Source) -> Result<Tensor> {
        bits(drawn, [2].into(), DType::U32, source)
    }

    pub fn categorical(
        drawn: Drawn<'_>,
        logits: &Tensor,
        samples: usize,
        source: Source,
    ) -> Result<Tensor> {
        let inputs = smallvec![logits.into(), words(drawn, source)?.into()];
        let op = &random::categorical::RANDOM_CATEGORICAL;
        apply1(op, inputs, Attrs::Count(samples), source)
    }

    pub fn gamma(drawn: Drawn<'_>, shape: &Tensor, source: Source) -> Result<Tensor> {
        let inputs = smallvec![shape.into(), words(drawn, source)?.into()];
        apply1(&random::gamma::RANDOM_GAMMA, inputs, Attrs::None, source)
    }

    pub fn poisson(drawn: Drawn<'_>, rate: &Tensor, source: Source) -> Result<Tensor> {
        let inputs = smallvec![rate.into(), words(drawn, source)?.into()];
        apply1(&random::poisson::RANDOM_POISSON, inputs, Attrs::None, source)
    }
}
