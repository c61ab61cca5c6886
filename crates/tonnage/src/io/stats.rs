//! What a tensor's elements are like, in one pass that never holds more than a piece of them.

use tonnage_core::{
    Bytes, Class, DType, FromScalar, Kind, Mark, Result, Scalar, Source, with_element,
};

use super::pieces::for_each_piece;
use crate::tensor::Tensor;

/// The least, the largest and the mean of a tensor's elements, and how many are none.
///
/// NaNs are counted and left out of the rest; infinities are counted too, and take part. Whole numbers are compared as such, with every
/// digit; sums are of f64, a piece of 1 MiB at a time.
///
/// ```
/// use tonnage::io::Stats;
/// let x = tonnage::tensor([1.0f32, f32::NAN, 5.0, f32::INFINITY])?;
/// let stats = Stats::of(&x, |_| {})?;
/// assert_eq!((stats.count, stats.nans, stats.infinities), (4, 1, 1));
/// assert_eq!(stats.least.map(|x| x.to_f64()), Some(1.0));
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stats {
    /// Elements in all.
    pub count: u64,
    /// Those that are NaN.
    pub nans: u64,
    /// Those that are infinite.
    pub infinities: u64,
    /// The least of those that are numbers; `None` where none is.
    pub least: Option<Scalar>,
    /// The largest.
    pub largest: Option<Scalar>,
    sum: f64,
}

impl Stats {
    /// Of a tensor, which may be a recipe or in a file; `progress` is told the bytes of each piece.
    ///
    /// # Errors
    /// Where it cannot be read.
    #[track_caller]
    pub fn of(tensor: &Tensor, mut progress: impl FnMut(Bytes)) -> Result<Stats> {
        let source = Source::here();
        let mark = Mark { source, kind: Kind::Staging };
        let none = None;
        let mut stats =
            Stats { count: 0, nans: 0, infinities: 0, least: none, largest: none, sum: 0.0 };
        let array = tensor.array("stats").map_err(|e| e.at(source))?;
        let dtype = array.dtype();
        for_each_piece(array, mark, &mut |bytes| {
            stats.put(dtype, bytes);
            progress(Bytes::of(bytes.len()));
            Ok(())
        })
        .map_err(|e| e.at(source))?;
        Ok(stats)
    }

    /// The mean of those that are numbers; NaN where none is.
    pub fn mean(&self) -> f64 {
        self.sum / (self.count - self.nans) as f64
    }

    fn put(&mut self, dtype: DType, bytes: &[u8]) {
        self.count += (bytes.len() / dtype.size()) as u64;
        match dtype.class() {
            Class::Float => self.floats(dtype, bytes),
            _ => self.integers(dtype, bytes),
        }
    }

    fn floats(&mut self, dtype: DType, bytes: &[u8]) {
        let (mut low, mut high, mut sum) = (f64::INFINITY, f64::NEG_INFINITY, 0.0);
        let (mut nans, mut infinities) = (0, 0);
        with_element!(dtype, T => {
            for x in bytemuck::cast_slice::<u8, T>(bytes) {
                let x = x.to_scalar().to_f64();
                if x.is_nan() {
                    nans += 1;
                    continue;
                }
                infinities += u64::from(x.is_infinite());
                (low, high, sum) = (low.min(x), high.max(x), sum + x);
            }
        });
        if nans < (bytes.len() / dtype.size()) as u64 {
            let of = |one: Option<Scalar>, other: f64, pick: fn(f64, f64) -> f64| {
                Some(Scalar::Float(one.map_or(other, |one| pick(one.to_f64(), other))))
            };
            self.least = of(self.least, low, f64::min);
            self.largest = of(self.largest, high, f64::max);
        }
        self.nans += nans;
        self.infinities += infinities;
        self.sum += sum;
    }

    fn integers(&mut self, dtype: DType, bytes: &[u8]) {
        let (mut low, mut high, mut sum) = (i128::MAX, i128::MIN, 0i128);
        with_element!(dtype, T => {
            for x in bytemuck::cast_slice::<u8, T>(bytes) {
                let x = x.to_scalar().to_i128();
                (low, high, sum) = (low.min(x), high.max(x), sum + x);
            }
        });
        if !bytes.is_empty() {
            let of = |one: Option<Scalar>, other: i128, pick: fn(i128, i128) -> i128| {
                let picked = one.map_or(other, |one| pick(one.to_i128(), other));
                Some(Scalar::Int(picked))
            };
            self.least = of(self.least, low, i128::min);
            self.largest = of(self.largest, high, i128::max);
        }
        self.sum += sum as f64;
    }
}
