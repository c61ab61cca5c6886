//! The budget of a function: bytes that a call stays under, or is refused before it starts.

use tonnage_core::error::bad_argument;
use tonnage_core::{Bytes, Dim, Error, Result, Source, Symbol, TensorType};
use tonnage_plan::{Allowed, Price};

use super::budgets::Budget;
use super::signature::Signature;
use super::{Function, lock};
use crate::tensor::Tensor;
use crate::tree::{Tree, leaves};

impl<A: Tree, R: Tree, F: Fn(A) -> Result<R>> Function<A, R, F> {
    /// The most that a call may hold at once: arguments, variables, constants, gradients, everything on the way,
    /// results. Values that are idle for long are recomputed instead of held, or wait in a file
    /// ([`Function::no_spill`] forbids that), as many as it takes and no more; gradients of loops have as many checkpoints as
    /// fit, and with room for more what is expensive inside of iterations, unless the program says how many; and where every op lets the batch be cut, it runs in pieces. The quickest of
    /// all that fit is taken, and the plan lists what it does. Results stay the same bit for bit, but for sums over a batch
    /// in pieces, which are added in another order: [`Function::exact`] forbids that. Where nothing helps, a call is
    /// refused before it starts, with the least budget that would do. `"least"` takes that plan at once.
    ///
    /// ```
    /// use tonnage::{DType, Elementwise, GradientTape, Tensor, Variable, function, random_normal};
    /// let w = Variable::new("w", random_normal([64, 64], DType::F32)?)?;
    /// let step = function(move |x: Tensor| {
    ///     let mut tape = GradientTape::new();
    ///     let mut h = x;
    ///     for _ in 0..32 {
    ///         h = h.matmul(&w.read()?)?.tanh()?;
    ///     }
    ///     let loss = h.square()?.mean_all()?;
    ///     let grad = tape.gradient(&loss, &[&w])?[0].tensor()?;
    ///     w.assign_sub(&(grad * 0.1)?)?;
    ///     Ok(loss)
    /// });
    /// let x = random_normal([1024, 64], DType::F32)?;
    /// let unlimited = step.plan(&x)?.peak();
    /// let step = step.budget("4MiB")?;
    /// assert!(step.plan(&x)?.peak() <= "4MiB".parse()? && unlimited > "7MiB".parse()?);
    /// step.call(x.clone())?;
    /// let step = step.budget("32KiB")?;
    /// let error = step.call(x.clone()).unwrap_err();
    /// println!("{error}"); // over budget: ... the least that would do is ...
    /// let least = step.budget("least")?;
    /// println!("{}", least.plan(&x)?.peak());
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn budget<B>(self, budget: B) -> Result<Self>
    where
        B: TryInto<Budget>,
        Error: From<B::Error>,
    {
        let source = Source::here();
        let budget = budget.try_into().map_err(|e| Error::from(e).at(source))?;
        let budget = budget.checked("budget").map_err(|e| e.at(source))?;
        lock(&self.cache).set_budget(Some(budget));
        Ok(self)
    }

    /// What others hold of the budget while it runs, such as data that wait for the next call.
    pub(crate) fn beside(self, bytes: Bytes) -> Self {
        lock(&self.cache).set_beside(bytes);
        self
    }

    /// Plans are made for parameters that have bytes, also where they are still recipes: for calls that only read what others write.
    pub(crate) fn settled(self) -> Self {
        lock(&self.cache).set_settled();
        self
    }

    /// Lets no value wait in a file: a budget is met in other ways, or the call is refused.
    ///
    /// Without this a call under a budget may write values that are idle for long to a file and read them back, beside
    /// its computing, where that is quicker than recomputing them or where nothing else fits. The file lies in the
    /// system's folder for what does not last, or where [`set_spill_folder`](crate::memory::set_spill_folder) or the
    /// environment's `TONNAGE_SPILL_DIR` say, and is gone when the call ends. A call that fails over its file has written
    /// no variable. The plan says which steps spill and how much.
    #[must_use]
    pub fn no_spill(self) -> Self {
        lock(&self.cache).forbid_spilling();
        self
    }

    /// Takes the budget back. Without one a call takes the least that is had without losing time: of all plans that keep
    /// every bit, need no file and take at most 1.05 times the time that is expected of the quickest, the smallest.
    #[must_use]
    pub fn unlimited(self) -> Self {
        lock(&self.cache).set_budget(None);
        self
    }

    /// The same bits at every budget: whatever would change one, be it in its last place, is not done. The batch is not
    /// cut into pieces, nor a segment where anything is summed over them, and nothing is stored in bf16.
    ///
    /// ```
    /// use tonnage::{DType, Elementwise, GradientTape, Tensor, Variable, function, random_normal};
    /// let w = Variable::new("w", random_normal([64, 64], DType::F32)?)?;
    /// let step = function(move |x: Tensor| {
    ///     let mut tape = GradientTape::new();
    ///     let mut h = x;
    ///     for _ in 0..8 {
    ///         h = h.matmul(&w.read()?)?.tanh()?;
    ///     }
    ///     let loss = h.square()?.mean_all()?;
    ///     w.assign_sub(&(tape.gradient(&loss, &[&w])?[0].tensor()? * 0.1)?)?;
    ///     Ok(loss)
    /// });
    /// let x = random_normal([1024, 64], DType::F32)?;
    /// let step = step.budget("2200KiB")?.exact();
    /// let plan = step.plan(&x)?;
    /// assert!(plan.fitted.is_some_and(|done| done.micro_batches.is_none() && done.recomputed > 0));
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[must_use]
    pub fn exact(self) -> Self {
        self.allow(Allowed::EXACT);
        self
    }

    /// Lets a budget keep values of f32 as bf16 while they lie idle, from the forward pass to the backward pass, where that is
    /// the quickest way to fit: half the bytes, and 8 bits of mantissa for gradients. Without a budget it does
    /// nothing. Undoes [`Function::exact`].
    ///
    /// ```
    /// use tonnage::{DType, Elementwise, GradientTape, Tensor, Variable, function, random_normal};
    /// let w = Variable::new("w", random_normal([64, 64], DType::F32)?)?;
    /// let step = function(move |x: Tensor| {
    ///     let mut tape = GradientTape::new();
    ///     let mut h = x;
    ///     for _ in 0..8 {
    ///         h = h.matmul(&w.read()?)?.tanh()?;
    ///     }
    ///     let loss = h.square()?.mean_all()?;
    ///     w.assign_sub(&(tape.gradient(&loss, &[&w])?[0].tensor()? * 0.1)?)?;
    ///     Ok(loss)
    /// });
    /// let step = step.budget("1500KiB")?.keep_in_bf16();
    /// let x = random_normal([1024, 64], DType::F32)?;
    /// println!("{}", step.plan(&x)?); // what was done to fit
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[must_use]
    pub fn keep_in_bf16(self) -> Self {
        self.allow(Allowed { micro_batches: true, bf16: true });
        self
    }

    fn allow(&self, allowed: Allowed) {
        lock(&self.cache).set_allowed(allowed);
    }

    /// What less memory costs for a call with such arguments: about a dozen budgets from what it takes without
    /// one down to the least that would do, each with the time that is expected. Runs nothing.
    #[track_caller]
    pub fn prices(&self, arguments: &A) -> Result<Vec<Price>> {
        let source = Source::here();
        let concrete = self.find(arguments, source)?;
        concrete.program.prices(&self.cache, &leaves(arguments)).map_err(|e| e.at(source))
    }

    /// Whether a call with such arguments fits a budget, by the levers that this function allows. Runs nothing.
    ///
    /// ```
    /// use tonnage::{Bytes, DType, Elementwise, Tensor, function};
    /// let f = function(|x: Tensor| x.tanh());
    /// let x = Tensor::spec(DType::F32, [1 << 20]);
    /// assert!(f.fits(&x, Bytes::new(8 << 20))? && !f.fits(&x, Bytes::new(7 << 20))?);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn fits(&self, arguments: &A, budget: Bytes) -> Result<bool> {
        let source = Source::here();
        let concrete = self.find(arguments, source)?;
        let levers = lock(&self.cache).levers();
        concrete.program.fits(&leaves(arguments), budget, &levers).map_err(|e| e.at(source))
    }

    /// The largest size of the open dim among such arguments with which a call fits a budget, by the levers that this
    /// function allows: that size fits, and one more does not. 0 where not even 1 does. Runs nothing.
    ///
    /// A batch in pieces is cut into equal ones, so there a size with many divisors can fit where a smaller one, a prime
    /// say, does not, and there is no one largest size. What is returned is found by doubling from 1 as long as
    /// that fits, and by halving the distance from there: a size that fits and whose next does not, far out, and the same one every
    /// time. With [`Function::exact`] larger sizes take more, and it is the largest of all.
    ///
    /// ```
    /// use tonnage::{DType, Dim, Elementwise, Tensor, function};
    /// let f = function(|x: Tensor| (&x).tanh()?.matmul(&x.t()?));
    /// let x = Tensor::spec(DType::F32, [Dim::open("batch"), Dim::from(1024)]);
    /// let most = f.max_batch(&x, "64MiB")?;
    /// let peak = |n: usize| f.plan(&Tensor::spec(DType::F32, [n, 1024])).map(|plan| plan.peak());
    /// assert!(peak(most)? <= "64MiB".parse()? && peak(most + 1)? > "64MiB".parse()?);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn max_batch<B>(&self, arguments: &A, budget: B) -> Result<usize>
    where
        B: TryInto<Bytes>,
        Error: From<B::Error>,
    {
        let source = Source::here();
        let budget = budget.try_into().map_err(|e| Error::from(e).at(source))?;
        let concrete = self.find(arguments, source)?;
        let signature = Signature::of(arguments);
        let [open] = signature.symbols.as_slice() else {
            let what = format!("{} open dims among the arguments", signature.symbols.len());
            let help = "leave one open: `Tensor::spec(dtype, [Dim::open(\"batch\"), ...])`";
            return Err(bad_argument("max_batch", what, help).at(source));
        };
        let symbol = open.symbol.clone();
        let levers = lock(&self.cache).levers();
        let fits = |n: usize| -> Result<bool> {
            // By name: two specs that were made apart have symbols of their own, and one length.
            let find = |s: &Symbol| (s.name() == symbol.name()).then_some(Dim::Known(n));
            let sized = |ty: &TensorType| Tensor::from_spec(ty.substitute(&find));
            let arguments: Vec<Tensor> = leaves(arguments)
                .iter()
                .map(|t| if t.spec_type().is_some() { sized(&t.ty()) } else { t.clone() })
                .collect();
            concrete.program.fits(&arguments, budget, &levers)
        };
        largest_that_fits(fits).map_err(|e| e.at(source))
    }
}

/// The largest number that fits, found by doubling and then by halving, as if what fits at a number did at every smaller one; 0 where not even 1
/// does. Where it ends nowhere, a number that is larger than any length.
///
/// ```
/// assert_eq!(tonnage::largest_that_fits(|n| Ok(n * n <= 1000))?, 31);
/// assert_eq!(tonnage::largest_that_fits(|_| Ok(false))?, 0);
/// assert!(tonnage::largest_that_fits(|_| Ok(true))? > 1 << 60);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Those of `fits`.
pub fn largest_that_fits(fits: impl Fn(usize) -> Result<bool>) -> Result<usize> {
    if !fits(1)? {
        return Ok(0);
    }
    let (mut fit, mut over) = (1usize, 2usize);
    while fits(over)? {
        fit = over;
        over = match over.checked_mul(2) {
            Some(next) if next < isize::MAX as usize / 2 => next,
            _ => return Ok(fit),
        };
    }
    while over - fit > 1 {
        let middle = fit + (over - fit) / 2;
        match fits(middle)? {
            true => fit = middle,
            false => over = middle,
        }
    }
    Ok(fit)
}
