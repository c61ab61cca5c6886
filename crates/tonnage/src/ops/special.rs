//! Functions that are composites of other ops: inverses by steps, and what stays finite where its parts do not.

use std::f64::consts::{PI, SQRT_2};

use tonnage_core::error::bad_argument;
use tonnage_core::{DType, Result, Shape, Source};

use super::{Elementwise, Scan};
use crate::control::Loop;
use crate::make;
use crate::tensor::Tensor;

/// Newton's and Halley's steps double and triple the right digits: from two, four of them reach all that f64 has.
const STEPS: usize = 4;

impl Tensor {
    /// The number whose [`Elementwise::erf`] this is: infinite at -1 and 1, NaN beyond. Gradients go through the steps that
    /// find it, which end where those of the inverse are.
    ///
    /// ```
    /// use tonnage::{Elementwise, tensor};
    /// let x = tensor([0.5f64, -1.0])?.erf()?;
    /// let back = x.erfinv()?.to_vec::<f64>()?;
    /// assert!((back[0] - 0.5).abs() < 1e-15 && (back[1] + 1.0).abs() < 1e-15);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where it is of no floating-point dtype.
    #[track_caller]
    pub fn erfinv(&self) -> Result<Tensor> {
        self.in_f64("erfinv", Source::here(), erfinv)
    }

    /// The quantile of the standard normal distribution: 0 has minus infinity, 1 infinity, and what is beyond NaN.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let quantiles = tensor([0.5f64, 0.975])?.ndtri()?.to_vec::<f64>()?;
    /// assert!(quantiles[0] == 0.0 && (quantiles[1] - 1.959963984540054).abs() < 1e-14);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where it is of no floating-point dtype.
    #[track_caller]
    pub fn ndtri(&self) -> Result<Tensor> {
        self.in_f64("ndtri", Source::here(), ndtri)
    }

    fn in_f64(
        &self,
        op: &'static str,
        source: Source,
        f: fn(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        check_float(op, self, source)?;
        source.stand_for(|| f(&self.cast(DType::F64)?)?.cast(self.dtype()))
    }

    /// The logarithm of the beta function of the numbers along the last axis.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let beta = tensor([[1.0f64, 1.0], [2.0, 3.0]])?.lbeta()?.to_vec::<f64>()?;
    /// assert!(beta[0].abs() < 1e-15 && (beta[1] - (1.0f64 / 12.0).ln()).abs() < 1e-15);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn lbeta(&self) -> Result<Tensor> {
        self.lgamma()?.sum(-1)? - self.sum(-1)?.lgamma()?
    }

    /// The quotient, and 0 where this is 0, broadcast; so are its slopes.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let (x, y) = (tensor([0.0f32, 3.0])?, tensor([0.0f32, 2.0])?);
    /// assert_eq!(x.xdivy(&y)?.to_vec::<f32>()?, [0.0, 1.5]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where it is of no floating-point dtype.
    #[track_caller]
    pub fn xdivy(&self, other: &Tensor) -> Result<Tensor> {
        check_float("xdivy", self, Source::here())?;
        let none = self.equal(0)?;
        let below = none.where_(&other.ones_like()?, other)?;
        none.where_(&self.zeros_like()?, &self.div(&below)?)
    }

    /// Times the logarithm of 1 more than the other, and 0 where this is 0, broadcast; so are its slopes.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let (x, y) = (tensor([0.0f32, 3.0])?, tensor([-1.0f32, 0.0])?);
    /// assert_eq!(x.xlog1py(&y)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn xlog1py(&self, other: &Tensor) -> Result<Tensor> {
        self * self.equal(0)?.where_(&other.zeros_like()?, other)?.log1p()?
    }

    /// The logarithm of running sums of exponentials along an axis, without overflow.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let sums = tensor([1000.0f64, 1000.0])?.cumulative_logsumexp(0)?.to_vec::<f64>()?;
    /// assert_eq!(sums, [1000.0, 1000.0 + 2.0f64.ln()]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where it is of no floating-point dtype or has no such axis.
    #[track_caller]
    pub fn cumulative_logsumexp(&self, axis: i64) -> Result<Tensor> {
        self.cumulative_logsumexp_by(axis, Scan::default())
    }

    /// The same from either end, with or without the element itself.
    ///
    /// ```
    /// use tonnage::{Scan, tensor};
    /// let how = Scan { exclusive: true, reverse: true };
    /// let sums = tensor([0.0f32, 5.0])?.cumulative_logsumexp_by(0, how)?;
    /// assert_eq!(sums.to_vec::<f32>()?, [5.0, f32::NEG_INFINITY]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn cumulative_logsumexp_by(&self, axis: i64, how: Scan) -> Result<Tensor> {
        let (op, source) = ("cumulative_logsumexp", Source::here());
        check_float(op, self, source)?;
        let axis = self.shape().axis(op, axis).map_err(|e| e.at(source))?;
        // Sums of half floats are f32.
        let wide = if self.dtype().size() < 4 { DType::F32 } else { self.dtype() };
        source.stand_for(|| {
            // The axis comes first, and goes back to where it was.
            let rank = self.rank() as i64;
            let axis = axis as i64;
            let mut order: Vec<i64> = (0..rank).filter(|a| *a != axis).collect();
            order.insert(0, axis);
            let mut back: Vec<i64> = (1..rank).collect();
            back.insert(axis as usize, 0);
            let rows = self.cast(wide)?.transpose(&order)?;
            running_logsumexp(rows, how)?.transpose(&back)?.cast(self.dtype())
        })
    }
}

fn check_float(op: &'static str, x: &Tensor, source: Source) -> Result<()> {
    match x.dtype().is_float() {
        true => Ok(()),
        false => {
            let what = format!("a tensor of dtype {}", x.dtype());
            Err(bad_argument(op, what, "cast it to a floating-point dtype").at(source))
        }
    }
}

/// By Halley's steps, on `erfc` where `x` is near 1, so that the last bits are right there too.
fn erfinv(x: &Tensor) -> Result<Tensor> {
    let fixed = x.stop_gradient()?;
    let side = fixed.less(0.0)?.where_(&(fixed.zeros_like()? - 1.0)?, &fixed.ones_like()?)?;
    let size = fixed.abs()?;
    let log = ((1.0 - &size)? * (1.0 + &size)?)?.maximum(1e-300)?.log()?;
    let mut y = (&side * guess(&log)?)?;
    let near_zero = size.less(0.5)?;
    for _ in 0..STEPS {
        let near = ((&y).erf()? - x)?;
        let far = (&side * ((1.0 - (&side * x)?)? - (&side * &y)?.erfc()?)?)?;
        let missing = near_zero.where_(&near, &far)?;
        let step = ((missing * (0.5 * PI.sqrt()))? * (&y).square()?.exp()?)?;
        let below = (1.0 + (&y * &step)?)?;
        y = (y - (step / below)?)?;
    }
    let ends = size.equal(1.0)?.where_(&(&side * f64::INFINITY)?, &(&side * f64::NAN)?)?;
    size.less(1.0)?.where_(&y, &ends)
}

/// The inverse of `erfc` between 0 and a half, by Newton's steps on logarithms. Far out, where `erfc` has few digits left or
/// none, its logarithm is that of its asymptotic series.
fn erfcinv(c: &Tensor) -> Result<Tensor> {
    const FAR: f64 = 1e-290;
    const FIRST_FAR: f64 = 25.0;
    let fixed = c.stop_gradient()?;
    let log = (&fixed * (2.0 - &fixed)?)?.log()?;
    let far = fixed.less(FAR)?;
    let ones = c.ones_like()?;
    let (near_c, far_c) = (far.where_(&ones, c)?, far.where_(c, &ones)?.log()?);
    let mut y = guess(&log)?;
    for _ in 0..STEPS {
        let near = far.where_(&ones, &y)?;
        let have = (&near).erfc()?;
        let missing = ((&have / &near_c)?.log()? * (have * near.square()?.exp()?)?)?;
        let beyond = far.where_(&y, &(&ones * FIRST_FAR)?)?;
        let square = (&beyond).square()?;
        let scaled = (series(&(0.5 / &square)?)? / (beyond * PI.sqrt())?)?;
        let missing_far = (((&scaled).log()? - square - &far_c)? * scaled)?;
        y = (y + (far.where_(&missing_far, &missing)? * (0.5 * PI.sqrt()))?)?;
    }
    Ok(y)
}

/// `erfc(y)` times `y √π e^(y²)`, by `t = 1 / (2 y²)`: `1 - t + 3t² - 15t³ + ..`, all digits where `y` is 25 or more.
fn series(t: &Tensor) -> Result<Tensor> {
    let mut sum = t.ones_like()?;
    for factor in [11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        sum = (1.0 - ((t * factor)? * sum)?)?;
    }
    Ok(sum)
}

/// Two digits of the inverse of `erf` at `x`, from the logarithm of `1 - x²`. Winitzki's.
fn guess(log: &Tensor) -> Result<Tensor> {
    const A: f64 = 0.147;
    let half = (2.0 / (PI * A) + (0.5 * log)?)?;
    let root = ((&half).square()? - (log / A)?)?.sqrt()?;
    (root - half)?.sqrt()
}

fn ndtri(x: &Tensor) -> Result<Tensor> {
    let low = x.less(0.5)?;
    let tail = low.where_(x, &(1.0 - x)?)?;
    let all = |value: f64| tail.zeros_like()? + value;
    // Twice a small number less 1 has lost it: there the logarithm of erfc is inverted.
    let far = tail.less(0.25)?;
    let inside = far.logical_and(&tail.greater(0.0)?)?;
    let y = erfcinv(&inside.where_(&(&tail * 2.0)?, &all(0.5)?)?)?;
    let middle = erfinv(&far.where_(&x.zeros_like()?, &((x * 2.0)? - 1.0)?)?)?;
    let ends = tail.equal(0.0)?.where_(&all(f64::INFINITY)?, &all(f64::NAN)?)?;
    let y = inside.where_(&y, &ends)?;
    let y = low.where_(&(-&y)?, &y)?;
    far.where_(&y, &middle)? * SQRT_2
}

/// The rows of running sums. They are carried relative to the largest element so far, so that rounding does not add up.
fn running_logsumexp(rows: Tensor, how: Scan) -> Result<Tensor> {
    let row: Shape = rows.shape()[1..].into();
    let filled = |value: f64| make::fill(value.into(), rows.dtype(), row.clone(), Source::here());
    let start = (filled(f64::NEG_INFINITY)?, filled(0.0)?);
    let over = if how.reverse { Loop::new().reverse() } else { Loop::new() };
    let (_, made) = over.scan(start, rows, |(largest, total): (Tensor, Tensor), row: Tensor| {
        let high = largest.maximum(&row)?.stop_gradient()?;
        let nothing = high.zeros_like()?;
        // Of two infinities of one sign the difference is no number: nothing is taken off then.
        let finite = |x: &Tensor| x.is_finite();
        let base = finite(&high)?.where_(&high, &nothing)?;
        let shrink = finite(&largest)?.where_(&(&largest - &base)?, &largest)?.exp()?;
        let sum = ((&total * shrink)? + (row - base)?.exp()?)?;
        let (shown, of) = match how.exclusive {
            true => (&largest, &total),
            false => (&high, &sum),
        };
        let shift = finite(shown)?.where_(shown, &nothing)?;
        // The logarithm of 0 is known, and has no slope.
        let empty = of.equal(0.0)?;
        let log = empty.where_(&of.ones_like()?, of)?.log()?;
        let none = (of.zeros_like()? - f64::INFINITY)?;
        let made = empty.where_(&none, &(shift + log)?)?;
        Ok(((high, sum), made))
    })?;
    Ok(made)
}

#[cfg(test)]
mod tests;
