//! Walking the parameters of a model: every variable with its path, nested as the model is.
//!
//! Decision: `docs/decisions/parameters-macro.md`.

use std::collections::HashSet;

use tonnage_core::{Bytes, Result};

use crate::variable::Variable;

/// A variable of a model.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Where it is in the model: `encoder.0.kernel`. Checkpoints know it by this.
    pub path: String,
    /// The variable.
    pub variable: Variable,
    /// Whether training changes it.
    pub trainable: bool,
}

/// Collects parameters on a walk through a model.
#[derive(Debug, Default)]
pub struct Walk {
    path: String,
    frozen: bool,
    seen: HashSet<u64>,
    found: Vec<Parameter>,
}

impl Walk {
    /// Goes into a part of that name.
    pub fn part(&mut self, name: &str, part: &(impl Parameters + ?Sized)) {
        let before = self.path.len();
        if before > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        part.walk(self);
        self.path.truncate(before);
    }

    /// Goes into a part that training leaves alone.
    pub fn frozen(&mut self, part: &(impl Parameters + ?Sized)) {
        let before = std::mem::replace(&mut self.frozen, true);
        part.walk(self);
        self.frozen = before;
    }

    /// Notes a variable that a layer made, and names it by its path.
    pub(super) fn built(&mut self, variable: &Variable) {
        variable.name_by(&self.path);
        self.variable(variable);
    }

    /// Notes a variable; one that is in several places counts once, at the first.
    pub fn variable(&mut self, variable: &Variable) {
        if self.seen.insert(variable.number()) {
            let trainable = variable.is_trainable() && !self.frozen;
            let (path, variable) = (self.path.clone(), variable.clone());
            self.found.push(Parameter { path, variable, trainable });
        }
    }
}

/// Something that has parameters: a layer, a model, a `Vec` of them. A struct of such parts is one by
/// [`parameters!`](crate::parameters).
///
/// ```
/// use tonnage::nn::{Dense, Layer, Mode, Parameters};
/// use tonnage::{Elementwise, Result, Tensor, parameters, zeros};
/// struct Model { hidden: Dense, last: Dense }
/// parameters!(Model { hidden, last });
/// impl Layer for Model {
///     fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
///         self.last.forward(&self.hidden.forward(x, mode)?.relu()?, mode)
///     }
/// }
/// let model = Model { hidden: Dense::new(8), last: Dense::new(2) };
/// model.forward(&zeros([1, 4])?, Mode::Inference)?;
/// let paths: Vec<String> = model.parameters().into_iter().map(|p| p.path).collect();
/// assert_eq!(paths, ["hidden.kernel", "hidden.bias", "last.kernel", "last.bias"]);
/// assert_eq!(model.count(), 4 * 8 + 8 + 8 * 2 + 2);
/// # Ok::<(), tonnage::Error>(())
/// ```
pub trait Parameters {
    /// Shows every part to a walk, in a fixed order. Parts that are not built yet have nothing to show.
    fn walk(&self, walk: &mut Walk);

    /// Every parameter, shared ones once.
    fn parameters(&self) -> Vec<Parameter> {
        let mut walk = Walk::default();
        self.walk(&mut walk);
        walk.found
    }

    /// The variables that training changes.
    fn trainable(&self) -> Vec<Variable> {
        let all = self.parameters().into_iter();
        all.filter(|p| p.trainable).map(|p| p.variable).collect()
    }

    /// How many numbers the parameters are.
    fn count(&self) -> u64 {
        let all = self.parameters();
        all.iter().map(|p| p.variable.ty().shape.elements().known().unwrap_or(0) as u64).sum()
    }

    /// What the parameters take once they are written.
    fn weight_bytes(&self) -> Result<Bytes> {
        let mut total = Bytes::ZERO;
        for parameter in self.parameters() {
            total += parameter.variable.ty().bytes("parameters")?.rounded();
        }
        Ok(total)
    }
}

impl Parameters for Variable {
    fn walk(&self, walk: &mut Walk) {
        walk.variable(self);
    }
}

macro_rules! inside {
    ($($T:ty),*) => {$(
        impl<P: Parameters + ?Sized> Parameters for $T {
            fn walk(&self, walk: &mut Walk) {
                (**self).walk(walk);
            }
        }
    )*};
}
inside!(&P, Box<P>, std::sync::Arc<P>, std::rc::Rc<P>);

impl<P: Parameters> Parameters for Option<P> {
    fn walk(&self, walk: &mut Walk) {
        self.iter().for_each(|part| part.walk(walk));
    }
}

impl<P: Parameters> Parameters for [P] {
    fn walk(&self, walk: &mut Walk) {
        self.iter().enumerate().for_each(|(i, part)| walk.part(&i.to_string(), part));
    }
}

impl<P: Parameters> Parameters for Vec<P> {
    fn walk(&self, walk: &mut Walk) {
        self.as_slice().walk(walk);
    }
}

impl<P: Parameters, const N: usize> Parameters for [P; N] {
    fn walk(&self, walk: &mut Walk) {
        self.as_slice().walk(walk);
    }
}

impl<A: Parameters, B: Parameters> Parameters for (A, B) {
    fn walk(&self, walk: &mut Walk) {
        walk.part("0", &self.0);
        walk.part("1", &self.1);
    }
}

/// Makes a struct [`Parameters`](crate::nn::Parameters): its parts that have some, by name. Fields that have none are
/// left out.
#[macro_export]
macro_rules! parameters {
    ($name:ident $(<$($generic:ident),+>)? { $($field:ident),* $(,)? }) => {
        impl $(<$($generic: $crate::nn::Parameters),+>)? $crate::nn::Parameters
            for $name $(<$($generic),+>)?
        {
            #[allow(unused_variables, reason = "a struct may be empty")]
            fn walk(&self, walk: &mut $crate::nn::Walk) {
                $(walk.part(stringify!($field), &self.$field);)*
            }
        }
    };
}
