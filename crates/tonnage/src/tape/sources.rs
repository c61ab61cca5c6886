//! What gradients are taken with respect to: tensors and variables, nested in any way.

use std::collections::{BTreeMap, HashMap};

use tonnage_core::{Result, TensorType};

use super::{Gradient, TapeLog, tape_error};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// Something that a gradient can be taken with respect to: a tensor or a variable.
pub trait Watched {
    #[doc(hidden)]
    fn keys(&self, variables: &HashMap<u64, Vec<u64>>) -> Vec<u64>;
    #[doc(hidden)]
    fn ty_of(&self) -> TensorType;
    #[doc(hidden)]
    fn as_variable(&self) -> Option<&Variable>;
}

impl Watched for Tensor {
    fn keys(&self, _: &HashMap<u64, Vec<u64>>) -> Vec<u64> {
        vec![self.id()]
    }
    fn ty_of(&self) -> TensorType {
        self.ty()
    }
    fn as_variable(&self) -> Option<&Variable> {
        None
    }
}

impl Watched for Variable {
    fn keys(&self, variables: &HashMap<u64, Vec<u64>>) -> Vec<u64> {
        variables.get(&self.number()).cloned().unwrap_or_default()
    }
    fn ty_of(&self) -> TensorType {
        self.ty()
    }
    fn as_variable(&self) -> Option<&Variable> {
        Some(self)
    }
}

/// Sources of gradients, nested in any way. Gradients come nested as their sources are.
///
/// A struct of variables implements it in a few lines, and is then a source as a whole:
///
/// ```
/// use tonnage::{Gradient, GradientTape, Sources, Variable, Watched, tensor};
/// struct Layer { w: Variable, b: Variable }
/// impl Sources for Layer {
///     type Gradients = (Gradient, Gradient);
///     fn for_each(&self, f: &mut dyn FnMut(&dyn Watched)) {
///         f(&self.w);
///         f(&self.b);
///     }
///     fn nest(&self, next: &mut dyn FnMut() -> Gradient) -> Self::Gradients {
///         (next(), next())
///     }
/// }
/// let layer = Layer {
///     w: Variable::new("w", tensor([2.0f32])?)?,
///     b: Variable::new("b", tensor([1.0f32])?)?,
/// };
/// let mut tape = GradientTape::new();
/// let y = (layer.w.read()? * 5.0)?.add(&layer.b.read()?)?;
/// let (dw, _) = tape.gradient(&y, &layer)?;
/// assert_eq!(dw.tensor()?.to_vec::<f32>()?, [5.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
pub trait Sources {
    /// One gradient for each source, nested as they are.
    type Gradients;

    /// Calls `f` with every source, in a fixed order.
    fn for_each(&self, f: &mut dyn FnMut(&dyn Watched));

    /// Gradients nested as the sources are; `next` gives them in the order of [`Sources::for_each`].
    fn nest(&self, next: &mut dyn FnMut() -> Gradient) -> Self::Gradients;
}

macro_rules! single {
    ($($T:ty),*) => {$(
        impl Sources for $T {
            type Gradients = Gradient;
            fn for_each(&self, f: &mut dyn FnMut(&dyn Watched)) {
                f(self);
            }
            fn nest(&self, next: &mut dyn FnMut() -> Gradient) -> Gradient {
                next()
            }
        }
    )*};
}

single!(Tensor, Variable);

impl Sources for dyn Watched + '_ {
    type Gradients = Gradient;
    fn for_each(&self, f: &mut dyn FnMut(&dyn Watched)) {
        f(self);
    }
    fn nest(&self, next: &mut dyn FnMut() -> Gradient) -> Gradient {
        next()
    }
}

impl<S: Sources + ?Sized> Sources for &S {
    type Gradients = S::Gradients;
    fn for_each(&self, f: &mut dyn FnMut(&dyn Watched)) {
        (**self).for_each(f);
    }
    fn nest(&self, next: &mut dyn FnMut() -> Gradient) -> S::Gradients {
        (**self).nest(next)
    }
}

impl<S: Sources> Sources for Option<S> {
    type Gradients = Option<S::Gradients>;
    fn for_each(&self, f: &mut dyn FnMut(&dyn Watched)) {
        self.iter().for_each(|inner| inner.for_each(f));
    }
    fn nest(&self, next: &mut dyn FnMut() -> Gradient) -> Self::Gradients {
        self.as_ref().map(|inner| inner.nest(next))
    }
}

impl<S: Sources> Sources for [S] {
    type Gradients = Vec<S::Gradients>;
    fn for_each(&self, f: &mut dyn FnMut(&dyn Watched)) {
        self.iter().for_each(|inner| inner.for_each(f));
    }
    fn nest(&self, next: &mut dyn FnMut() -> Gradient) -> Self::Gradients {
        self.iter().map(|inner| inner.nest(next)).collect()
    }
}

impl<S: Sources> Sources for Vec<S> {
    type Gradients = Vec<S::Gradients>;
    fn for_each(&self, f: &mut dyn FnMut(&dyn Watched)) {
        self.as_slice().for_each(f);
    }
    fn nest(&self, next: &mut dyn FnMut() -> Gradient) -> Self::Gradients {
        self.as_slice().nest(next)
    }
}

impl<S: Sources, const N: usize> Sources for [S; N] {
    type Gradients = [S::Gradients; N];
    fn for_each(&self, f: &mut dyn FnMut(&dyn Watched)) {
        self.as_slice().for_each(f);
    }
    fn nest(&self, next: &mut dyn FnMut() -> Gradient) -> Self::Gradients {
        std::array::from_fn(|i| self[i].nest(next))
    }
}

impl<K: Ord + Clone, S: Sources> Sources for BTreeMap<K, S> {
    type Gradients = BTreeMap<K, S::Gradients>;
    fn for_each(&self, f: &mut dyn FnMut(&dyn Watched)) {
        self.values().for_each(|inner| inner.for_each(f));
    }
    fn nest(&self, next: &mut dyn FnMut() -> Gradient) -> Self::Gradients {
        self.iter().map(|(key, inner)| (key.clone(), inner.nest(next))).collect()
    }
}

macro_rules! tuples {
    ($(($($T:ident $i:tt),+);)*) => {$(
        impl<$($T: Sources),+> Sources for ($($T,)+) {
            type Gradients = ($($T::Gradients,)+);
            fn for_each(&self, f: &mut dyn FnMut(&dyn Watched)) {
                $(self.$i.for_each(f);)+
            }
            fn nest(&self, next: &mut dyn FnMut() -> Gradient) -> Self::Gradients {
                ($(self.$i.nest(next),)+)
            }
        }
    )*};
}

tuples! {
    (A 0);
    (A 0, B 1);
    (A 0, B 1, C 2);
    (A 0, B 1, C 2, D 3);
    (A 0, B 1, C 2, D 3, E 4);
    (A 0, B 1, C 2, D 3, E 4, F 5);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
}

/// For each source, the values that it was used as; refuses what has no gradient on this tape.
pub(super) fn keys(sources: &impl Sources, log: &TapeLog) -> Result<Vec<Vec<u64>>> {
    let mut all = Vec::new();
    let mut failed = None;
    sources.for_each(&mut |source| {
        let at = all.len();
        all.push(source.keys(&log.variables));
        let problem = match source.as_variable() {
            Some(variable) => of_variable(variable, log),
            None => of_tensor(at, &source.ty_of(), log.tracked.contains(&all[at][0])),
        };
        failed = failed.take().or(problem.err());
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(all),
    }
}

fn of_variable(variable: &Variable, log: &TapeLog) -> Result<()> {
    variable.check_open()?;
    let (name, ty) = (variable.name(), variable.ty());
    if !ty.dtype.is_float() {
        let what = format!("variable `{name}` is {ty}, and a whole number has no gradient");
        return Err(tape_error(what, "use float sources"));
    }
    if !log.watches(variable) {
        let what = format!("variable `{name}`, {ty}, was not watched");
        return Err(tape_error(what, "call `watch` on it before it is read"));
    }
    Ok(())
}

fn of_tensor(at: usize, ty: &TensorType, tracked: bool) -> Result<()> {
    if !ty.dtype.is_float() {
        let what = format!("source {at} is {ty}, and only floats have a gradient");
        return Err(tape_error(what, "use float sources"));
    }
    if !tracked {
        let what = format!("source {at}, {ty}, was not watched");
        return Err(tape_error(what, "call `watch` on it before it is used"));
    }
    Ok(())
}
