//! The kinds of loops, each in terms of the one loop.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::bad_argument;
use tonnage_core::{DType, Dim, Result, Scalar, Source};
use tonnage_ops::shape::range::RANGE;

use super::looping::{Until, run};
use super::options::Loop;
use super::region::leaves;
use crate::dispatch;
use crate::tensor::Tensor;
use crate::tree::Tree;

/// Runs a body again and again, as long as a condition holds. Loop variables keep their dtype and shape.
///
/// The body is planned once and runs in the memory of one iteration, whatever the number of iterations. A condition
/// that only counts to a number is noticed: such a loop asks it once.
///
/// ```
/// use tonnage::{Tensor, tensor, while_loop};
/// let start = (tensor(0i32)?, tensor(1.0f32)?);
/// let (_, x) = while_loop(
///     start,
///     |(i, _)| i.less(5),
///     |(i, x): (Tensor, Tensor)| Ok(((i + 1)?, (x * 2.0)?)),
/// )?;
/// assert_eq!(x.to_vec::<f32>()?, [32.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn while_loop<S: Tree>(
    start: S,
    condition: impl FnOnce(S) -> Result<Tensor>,
    body: impl FnOnce(S) -> Result<S>,
) -> Result<S> {
    Loop::new().while_loop(start, condition, body)
}

/// Runs a body for every integer from `start` up to, without, `stop`.
///
/// ```
/// use tonnage::{Tensor, fori_loop, tensor};
/// let sum = fori_loop(1, 5, tensor(0i64)?, |i: Tensor, sum: Tensor| sum + i)?;
/// assert_eq!(sum.to_vec::<i64>()?, [10]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn fori_loop<S: Tree>(
    start: impl LoopBound,
    stop: impl LoopBound,
    init: S,
    body: impl FnOnce(Tensor, S) -> Result<S>,
) -> Result<S> {
    Loop::new().fori_loop(start, stop, init, body)
}

/// Runs a body for every row of `xs`, with a state that it hands on, and stacks what it returns: each iteration
/// writes its row where it stays.
///
/// ```
/// use tonnage::{Tensor, scan, tensor};
/// let (last, sums) = scan(tensor(0.0f32)?, tensor([1.0f32, 2.0, 3.0])?, |sum: Tensor, x: Tensor| {
///     let sum = (sum + x)?;
///     Ok((sum.clone(), sum))
/// })?;
/// assert_eq!(sums.to_vec::<f32>()?, [1.0, 3.0, 6.0]);
/// assert_eq!(last.to_vec::<f32>()?, [6.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn scan<S: Tree, X: Tree, Y: Tree>(
    init: S,
    xs: X,
    body: impl FnOnce(S, X) -> Result<(S, Y)>,
) -> Result<(S, Y)> {
    Loop::new().scan(init, xs, body)
}

/// Applies a function to every row of `xs`, one after the other, and stacks what it returns.
///
/// ```
/// use tonnage::{Tensor, map_fn, tensor};
/// let xs = tensor([[1.0f32, 2.0], [3.0, 4.0]])?;
/// let sums = map_fn(xs, |x: Tensor| x.sum_all())?;
/// assert_eq!(sums.to_vec::<f32>()?, [3.0, 7.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn map_fn<X: Tree, Y: Tree>(xs: X, f: impl FnOnce(X) -> Result<Y>) -> Result<Y> {
    Loop::new().map_fn(xs, f)
}

impl Loop {
    /// [`while_loop`], as this says.
    #[track_caller]
    pub fn while_loop<S: Tree>(
        &self,
        start: S,
        condition: impl FnOnce(S) -> Result<Tensor>,
        body: impl FnOnce(S) -> Result<S>,
    ) -> Result<S> {
        let source = Source::here();
        let body = |state: S, ()| Ok((body(state)?, ()));
        let until = Until::Condition(condition);
        let op = "while_loop";
        let made =
            self.without_rows(op).and_then(|()| run(op, self, start, (), until, body, source));
        made.map(|(state, ())| state).map_err(|e| e.at(source))
    }

    /// [`fori_loop`], as this says.
    #[track_caller]
    pub fn fori_loop<S: Tree>(
        &self,
        start: impl LoopBound,
        stop: impl LoopBound,
        init: S,
        body: impl FnOnce(Tensor, S) -> Result<S>,
    ) -> Result<S> {
        let source = Source::here();
        self.count(start.side(), stop.side(), init, body, source).map_err(|e| e.at(source))
    }

    fn count<S: Tree>(
        &self,
        start: BoundValue,
        stop: BoundValue,
        init: S,
        body: impl FnOnce(Tensor, S) -> Result<S>,
        source: Source,
    ) -> Result<S> {
        let op = "fori_loop";
        self.without_rows(op)?;
        if let (BoundValue::Number(start), BoundValue::Number(stop)) = (&start, &stop) {
            // Rows of a range: each iteration computes its own, and no counter is carried.
            let iterations = usize::try_from(stop.saturating_sub(*start)).unwrap_or(0);
            let most = self.most.map_or(usize::MAX, |n| n as usize);
            let len = Dim::Known(iterations.min(most));
            let (first, step) = (Scalar::Int((*start).into()), Scalar::Int(1));
            let attrs = Attrs::Range { start: first, step, len: len.clone(), dtype: DType::I64 };
            let counts = dispatch::apply1(&RANGE, smallvec::smallvec![], attrs, source)?;
            let body = |state: S, i: Tensor| Ok((body(i, state)?, ()));
            let until: Until<fn(S) -> Result<Tensor>> = Until::Iterations(len);
            let (state, ()) = run(op, self, init, counts, until, body, source)?;
            return Ok(state);
        }
        let dtype = match (&start, &stop) {
            (BoundValue::Tensor(tensor), _) | (_, BoundValue::Tensor(tensor)) => tensor.dtype(),
            _ => DType::I64,
        };
        let scalar = |side: BoundValue| match side {
            BoundValue::Tensor(tensor)
                if tensor.dtype() == dtype && tensor.rank() == 0 && dtype.is_integer() =>
            {
                Ok(tensor)
            }
            BoundValue::Tensor(tensor) => {
                let what = format!("a bound of type {}", tensor.ty());
                Err(bad_argument(op, what, "count between integer scalars of one dtype"))
            }
            BoundValue::Number(n) => {
                let value = Scalar::Int(n.into());
                if !value.fits(dtype) {
                    let what = format!("{n} does not fit the counter of dtype {dtype}");
                    return Err(bad_argument(op, what, "cast the other bound"));
                }
                crate::make::fill(value, dtype, tonnage_core::Shape::scalar(), source)
            }
        };
        let (start, stop) = (scalar(start)?, scalar(stop)?);
        let until = Until::Condition(|(i, _): (Tensor, S)| i.less(&stop));
        let body = |(i, state): (Tensor, S), ()| {
            let state = body(i.clone(), state)?;
            Ok((((i + 1)?, state), ()))
        };
        let ((_, state), ()) = run(op, &self.after(1), (start, init), (), until, body, source)?;
        Ok(state)
    }

    /// The same where `count` loop variables come before the user's.
    fn after(&self, count: usize) -> Loop {
        let mut options = self.clone();
        options.bounds.iter_mut().for_each(|(variable, ..)| *variable += count);
        options
    }

    /// [`scan`], as this says.
    #[track_caller]
    pub fn scan<S: Tree, X: Tree, Y: Tree>(
        &self,
        init: S,
        xs: X,
        body: impl FnOnce(S, X) -> Result<(S, Y)>,
    ) -> Result<(S, Y)> {
        let source = Source::here();
        let made = self.iterations("scan", &xs).and_then(|iterations| {
            let until: Until<fn(S) -> Result<Tensor>> = Until::Iterations(iterations);
            run("scan", self, init, xs, until, body, source)
        });
        made.map_err(|e| e.at(source))
    }

    /// [`map_fn`], as this says.
    #[track_caller]
    pub fn map_fn<X: Tree, Y: Tree>(&self, xs: X, f: impl FnOnce(X) -> Result<Y>) -> Result<Y> {
        let source = Source::here();
        let made = self.iterations("map_fn", &xs).and_then(|iterations| {
            let until: Until<fn(()) -> Result<Tensor>> = Until::Iterations(iterations);
            run("map_fn", self, (), xs, until, |(), x| Ok(((), f(x)?)), source)
        });
        made.map(|((), rows)| rows).map_err(|e| e.at(source))
    }

    /// How many rows everything has.
    fn iterations<X: Tree>(&self, op: &'static str, xs: &X) -> Result<Dim> {
        let mut iterations: Option<Dim> = self.length.map(Dim::Known);
        if self.most.is_some() {
            let what = "a most of iterations for a loop over rows";
            return Err(bad_argument(op, what, "slice the rows that it should go through"));
        }
        for (i, x) in leaves(xs).iter().enumerate() {
            let Some(rows) = x.shape().first().cloned() else {
                let what = format!("input {i} is a scalar, {}", x.ty());
                return Err(bad_argument(op, what, "give it an axis to go along"));
            };
            match &iterations {
                Some(expected) if *expected != rows => {
                    let what = format!("input {i} has {rows} rows, where {expected} are expected");
                    return Err(bad_argument(op, what, "give all the same number of rows"));
                }
                _ => iterations = Some(rows),
            }
        }
        iterations.ok_or_else(|| {
            bad_argument(op, "nothing says how many iterations", "give rows, or `Loop::length`")
        })
    }

    fn without_rows(&self, op: &'static str) -> Result<()> {
        match self.reverse || self.length.is_some() {
            true => {
                let what = "an order or a number of rows, of which it has none";
                Err(bad_argument(op, what, "use `scan`"))
            }
            false => Ok(()),
        }
    }
}

/// Where [`fori_loop`] starts or stops: a number, or an integer scalar that the data decide.
pub trait LoopBound {
    #[doc(hidden)]
    fn side(self) -> BoundValue;
}

#[doc(hidden)]
pub enum BoundValue {
    Number(i64),
    Tensor(Tensor),
}

impl LoopBound for i64 {
    fn side(self) -> BoundValue {
        BoundValue::Number(self)
    }
}

impl LoopBound for Tensor {
    fn side(self) -> BoundValue {
        BoundValue::Tensor(self)
    }
}

impl LoopBound for &Tensor {
    fn side(self) -> BoundValue {
        BoundValue::Tensor(self.clone())
    }
}
