//! A parameter that is made when it is first used, of the shape that the first input asks for.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tonnage_core::error::bad_argument;
use tonnage_core::{DType, Result, Shape, Source};

use super::init::Initializer;
use super::parameters::{Parameters, Walk};
use crate::tensor::Tensor;
use crate::variable::{Role, Variable};

/// A parameter of a layer.
///
/// ```
/// use tonnage::nn::{Initializer, Param};
/// use tonnage::DType;
/// let scale = Param::new("scale", Initializer::Ones);
/// assert_eq!(scale.read(&[3], DType::F32)?.to_vec::<f32>()?, [1.0; 3]);
/// assert!(scale.read(&[4], DType::F32).is_err());
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug)]
pub struct Param {
    name: String,
    pub(super) start: Initializer,
    role: Role,
    made: Source,
    built: Mutex<Option<Variable>>,
}

impl Param {
    /// One that training changes.
    #[track_caller]
    pub fn new(name: &str, start: Initializer) -> Param {
        let (name, made) = (name.to_string(), Source::here());
        Param { name, start, role: Role::Trainable, made, built: Mutex::default() }
    }

    /// One that a layer keeps for itself.
    #[track_caller]
    pub fn fixed(name: &str, start: Initializer) -> Param {
        Param { role: Role::Fixed, ..Param::new(name, start) }
    }

    /// Its value. The first time, it is made.
    ///
    /// # Errors
    /// Where it was made of another shape.
    #[track_caller]
    pub fn read(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        self.variable(shape, dtype)?.read()
    }

    /// The variable, which is made where it is not there yet.
    ///
    /// # Errors
    /// Where it was made of another shape.
    #[track_caller]
    pub fn variable(&self, shape: &[usize], dtype: DType) -> Result<Variable> {
        let mut built = self.built();
        if let Some(variable) = &*built {
            let ty = variable.ty();
            if ty.shape != Shape::from(shape) {
                let asked = Shape::from(shape);
                let what = format!("`{}` was built as {ty}, the input asks for {asked}", self.name);
                let help = "give a layer inputs of one width, or make another layer";
                return Err(bad_argument("layer", what, help).at(self.made));
            }
            return Ok(variable.clone());
        }
        let value = self.made.stand_for(|| self.start.make(shape, dtype))?;
        let variable = Variable::new_at(&self.name, value, self.role, self.made.in_this_layer())?;
        Ok(built.insert(variable).clone())
    }

    fn built(&self) -> MutexGuard<'_, Option<Variable>> {
        self.built.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parameters for Param {
    fn walk(&self, walk: &mut Walk) {
        if let Some(variable) = &*self.built() {
            walk.built(variable);
        }
    }
}
