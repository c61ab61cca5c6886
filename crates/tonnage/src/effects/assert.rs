//! Assertions: a call that goes wrong ends at the line that says what should have been, with what was.
//!
//! A failed one is an error of the call like any other: variables are as they were, and nothing is leaked.

use std::cmp::Ordering;
use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::error::bad_argument;
use tonnage_core::{DType, Dim, Error, ErrorKind, HostCall, Result, Scalar, Source};
use tonnage_ops::host::assertion::ASSERTION;

use super::{Lent, host};
use crate::dispatch::{OpContext, TensorArg, apply};
use crate::display::PrintOptions;
use crate::ops::Elementwise;
use crate::part::Axes;
use crate::tensor::Tensor;

/// Fails unless all of `condition`, which is boolean, are true. The error shows the values.
///
/// The condition itself is never in memory as a whole; the values are, when the assertion runs.
///
/// ```
/// use tonnage::{Tensor, assert_all, function, tensor};
/// let f = function(|x: Tensor| {
///     assert_all(&x.greater(0.0)?, "all must be positive", &[&x])?;
///     x.sqrt()
/// });
/// assert!(f.call(tensor([1.0f32, 4.0])?).is_ok());
/// let error = f.call(tensor([1.0f32, -4.0])?).unwrap_err().to_string();
/// assert!(error.starts_with("assertion failed: all must be positive; got [ 1. -4.]"), "{error}");
/// # use tonnage::Elementwise;
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where an element is false: in eager mode here, in a function when it is called. At once where the condition is not
/// boolean.
#[track_caller]
pub fn assert_all(condition: &Tensor, message: &str, values: &[&Tensor]) -> Result<()> {
    let source = Source::here();
    if condition.dtype() != DType::Bool {
        let what = format!("a condition of dtype {}", condition.dtype());
        return Err(bad_argument("assert_all", what, "compare it with something").at(source));
    }
    let holds = condition.all(Axes::ALL).map_err(|e| e.at(source))?;
    let message = message.to_string();
    let mut inputs = vec![&holds];
    inputs.extend(values);
    host(&ASSERTION, &inputs, &[], message.clone(), source, move |lent, _| {
        if lent[0].scalar::<bool>()? {
            return Ok(());
        }
        let shown: Vec<String> = lent[1..].iter().map(short).collect();
        let got = if shown.is_empty() { "" } else { "; got " };
        Err(failed(format!("{message}{got}{}", shown.join(" and "))))
    })?;
    Ok(())
}

macro_rules! pairs {
    ($($(#[$doc:meta])* $name:ident: $compare:ident, $words:literal, $holds:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// They may be of different shapes that broadcast to each other. The error says where the first two stand that
        /// break it, and how many do.
        ///
        /// # Errors
        /// Where two elements break it: in eager mode here, in a function when it is called.
        #[track_caller]
        pub fn $name(left: &Tensor, right: &Tensor, message: &str) -> Result<()> {
            let compared = left.$compare(right);
            pair(left, right, compared, $words, $holds, message, Source::here())
        }
    )*};
}

pairs! {
    /// Fails unless elements that stand opposite are equal. NaN is equal to nothing.
    assert_equal: equal, "==", |order| order == Some(Ordering::Equal);
    /// Fails unless every element is less than the one opposite.
    assert_less: less, "<", |order| order == Some(Ordering::Less);
    /// Fails unless every element is at most the one opposite.
    assert_less_equal: less_equal, "<=", |order| order.is_some_and(Ordering::is_le);
    /// Fails unless every element is greater than the one opposite.
    assert_greater: greater, ">", |order| order == Some(Ordering::Greater);
    /// Fails unless every element is at least the one opposite.
    assert_greater_equal: greater_equal, ">=", |order| order.is_some_and(Ordering::is_ge);
}

fn pair(
    left: &Tensor,
    right: &Tensor,
    compared: Result<Tensor>,
    words: &'static str,
    holds: fn(Option<Ordering>) -> bool,
    message: &str,
    source: Source,
) -> Result<()> {
    let all = compared.and_then(|c| c.all(Axes::ALL)).map_err(|e| e.at(source))?;
    let message = message.to_string();
    let label = message.clone();
    host(&ASSERTION, &[&all, left, right], &[], label, source, move |lent, _| {
        match lent[0].scalar::<bool>()? {
            true => Ok(()),
            false => Err(failed(format!("{message}: {}", first(&lent[1], &lent[2], words, holds)))),
        }
    })?;
    Ok(())
}

/// Where the first pair stands that breaks a comparison, and how many do.
fn first(left: &Lent, right: &Lent, words: &str, holds: fn(Option<Ordering>) -> bool) -> String {
    let sizes = broadcast(left.sizes(), right.sizes());
    let all = |lent: &Lent| -> Option<Vec<Scalar>> {
        Some(lent.scalars(&lent.layout().broadcast_to(&sizes)?))
    };
    let (Some(x), Some(y)) = (all(left), all(right)) else { return String::new() };
    let broken = |i: &usize| !holds(order(x[*i], y[*i]));
    let Some(at) = (0..x.len()).find(broken) else { return String::new() };
    let count = (at..x.len()).filter(broken).count();
    let strides = tonnage_core::layout::contiguous_strides(&sizes);
    let index: Vec<usize> =
        sizes.iter().zip(&strides).map(|(n, s)| at / (*s).max(1) as usize % (*n).max(1)).collect();
    format!("not {} {words} {} at {index:?}, and {} of {} in all", x[at], y[at], count, x.len())
}

/// The shape that two shapes, which fit, broadcast to.
fn broadcast(left: &[usize], right: &[usize]) -> Vec<usize> {
    let rank = left.len().max(right.len());
    let dim = |sizes: &[usize], axis: usize| match (axis + sizes.len()).checked_sub(rank) {
        Some(i) => sizes[i],
        None => 1,
    };
    (0..rank)
        .map(|axis| match (dim(left, axis), dim(right, axis)) {
            (1, n) => n,
            (n, _) => n,
        })
        .collect()
}

fn order(x: Scalar, y: Scalar) -> Option<Ordering> {
    match (x, y) {
        (Scalar::Float(_), _) | (_, Scalar::Float(_)) => x.to_f64().partial_cmp(&y.to_f64()),
        _ => Some(x.to_i128().cmp(&y.to_i128())),
    }
}

/// Fails unless a tensor has these lengths; `None` is any. Lengths that are known are compared at once, those that
/// are open when the function is called.
///
/// ```
/// use tonnage::{assert_shape, tensor};
/// let x = tensor([[1.0f32, 2.0], [3.0, 4.0]])?;
/// assert_shape(&x, &[None, Some(2)], "pairs")?;
/// let error = assert_shape(&x, &[None, Some(3)], "triples").unwrap_err().to_string();
/// assert!(error.starts_with("assertion failed: triples: the shape is [2, 2], not [_, 3]"), "{error}");
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where a length is another.
#[track_caller]
pub fn assert_shape(x: &Tensor, lengths: &[Option<usize>], message: &str) -> Result<()> {
    let (source, shape) = (Source::here(), x.shape());
    let words: Vec<String> =
        lengths.iter().map(|n| n.map_or("_".to_string(), |n| n.to_string())).collect();
    let (message, expected) = (message.to_string(), format!("[{}]", words.join(", ")));
    let wrong =
        move |shape: String| failed(format!("{message}: the shape is {shape}, not {expected}"));
    let differs = |dim: &Dim, length: &Option<usize>| match (dim, length) {
        (Dim::Known(n), Some(length)) => n != length,
        _ => false,
    };
    if shape.rank() != lengths.len() || shape.iter().zip(lengths).any(|(d, n)| differs(d, n)) {
        return Err(wrong(shape.to_string()).at(source));
    }
    let open = |(dim, length): (&Dim, &Option<usize>)| dim.known().is_none() && length.is_some();
    if !shape.iter().zip(lengths).any(open) {
        return Ok(());
    }
    let sizes = x.shape_tensor().map_err(|e| e.at(source))?;
    let lengths = lengths.to_vec();
    host(&ASSERTION, &[&sizes], &[], "shape".into(), source, move |lent, _| {
        let found = lent[0].to_vec::<i64>()?;
        let fits = |(n, length): (&i64, &Option<usize>)| length.is_none_or(|l| *n == l as i64);
        match found.iter().zip(&lengths).all(fits) {
            true => Ok(()),
            false => Err(wrong(format!("{found:?}"))),
        }
    })?;
    Ok(())
}

impl Tensor {
    /// Fails where an element is NaN or infinite. The error says how many are, under this name.
    ///
    /// One pass over the elements, which need not be in memory as a whole.
    ///
    /// ```
    /// use tonnage::tensor;
    /// let x = tensor([1.0f32, f32::NAN, f32::INFINITY])?;
    /// let error = x.check_finite("loss").unwrap_err().to_string();
    /// assert!(error.starts_with("assertion failed: `loss` has 1 NaN and 1 infinite of 3 elements"), "{error}");
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where one is: in eager mode here, in a function when it is called. At once where it is not of floats.
    #[track_caller]
    pub fn check_finite(&self, name: &str) -> Result<()> {
        let source = Source::here();
        // Both counts in one number, so that it is one reduction.
        let counts = || {
            let nan = (self.is_nan()?.cast(DType::I64)? * NAN_COUNT)?;
            (nan + self.is_inf()?.cast(DType::I64)?)?.sum_all()
        };
        let counts = counts().map_err(|e: Error| e.at(source))?;
        let size = self.size_tensor().map_err(|e| e.at(source))?;
        let name = name.to_string();
        let label = name.clone();
        let call = HostCall::assertion(label, move |wrong, of| {
            let (nan, infinite) = (wrong / NAN_COUNT, wrong % NAN_COUNT);
            failed(format!("`{name}` has {nan} NaN and {infinite} infinite of {of} elements"))
        });
        let attrs = Attrs::Host { call: Arc::new(call), results: Vec::new() };
        let inputs = [&counts, &size].into_iter().map(TensorArg::Borrowed).collect();
        apply(&ASSERTION, inputs, attrs, OpContext::at(source))?;
        Ok(())
    }
}

/// One NaN among the infinite ones.
const NAN_COUNT: i64 = 1 << 31;

fn failed(what: String) -> Error {
    ErrorKind::Asserted { what }.into()
}

/// The values of a tensor on one line.
fn short(lent: &Lent) -> String {
    let options = PrintOptions { threshold: 24, edge: 3, width: 10_000, ..PrintOptions::default() };
    let text = lent.text(options);
    text.split('\n').map(str::trim_start).collect::<Vec<_>>().join(" ")
}
