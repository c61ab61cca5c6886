//! Gradients of several batches, added up to one.
//!
//! A step in parts calls one planned program for all batches but the last, and another for the last, which goes on to the update: its plan holds
//! everything that the step ever holds. Dense gradients are added into a variable. Rows of a table's gradient stay rows, so that the update touches
//! just those: as they are, held until the last part, where all of them are fewer than the table has; otherwise added into a table of sums, beside the list
//! of rows that were touched. Either way a step in parts changes what one from the whole batch would.
//!
//! Decision: `docs/decisions/accumulation-is-planned-as-its-last-part.md`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tonnage_core::{Bytes, DType, Dim, Kind, Mark, Result, Source, TensorType, World};
use tonnage_runtime::random;

use crate::make;
use crate::ops::Elementwise;
use crate::tape::{Gradient, IndexedSlices};
use crate::tensor::Tensor;
use crate::tree::Tree;
use crate::variable::{Role, Variable};

/// Rows that one part gives out: indices and values, for every table whose rows are held as they are.
pub(super) type Pieces = Vec<(Tensor, Tensor)>;

/// How the gradient of one variable is added up.
pub(super) enum GradientSum {
    /// In a variable.
    Whole(Variable),
    /// Rows, in a table of sums; and which of them were touched.
    Touched { sum: Variable, touched: Variable },
    /// Rows as they are: indices and values of these types.
    Rows([TensorType; 2]),
}

/// The sums of a step in parts.
pub(super) struct GradientSums {
    /// Of this rank.
    parts: usize,
    pub(super) world: World,
    pub(super) source: Source,
    /// For each trainable variable, once a part was traced; none for one that the loss does not depend on.
    all: Mutex<Vec<Option<GradientSum>>>,
    /// Tables in which rows of all ranks are added up, by the number of their variable.
    pub(super) of_ranks: Mutex<BTreeMap<usize, GradientSum>>,
}

impl GradientSums {
    pub fn new(parts: usize, world: World, source: Source) -> GradientSums {
        let (all, of_ranks) = (Mutex::default(), Mutex::default());
        GradientSums { parts, world, source, all, of_ranks }
    }

    /// Whether a step is one part on one rank.
    pub fn is_whole(&self) -> bool {
        self.all_parts() == 1
    }

    /// Parts of a step on all ranks.
    pub(super) fn all_parts(&self) -> usize {
        self.parts * self.world.size()
    }

    /// Adds a part's gradients; the rows that are not added anywhere.
    pub fn add(&self, variables: &[Variable], gradients: &[Gradient]) -> Result<Pieces> {
        let (mut all, mut pieces) = (self.all(), Pieces::new());
        all.resize_with(variables.len(), || None);
        for ((variable, gradient), sum) in variables.iter().zip(gradients).zip(all.iter_mut()) {
            let own = gradient.scale(1.0 / self.all_parts() as f64)?;
            let flat = match &own {
                Gradient::Unconnected => continue,
                Gradient::Dense(_) => None,
                Gradient::Rows(rows) => rows.flat()?,
            };
            if sum.is_none() {
                *sum = Some(self.begun(variable, flat.as_ref())?);
            }
            match (sum, flat) {
                (Some(GradientSum::Rows(_)), Some(flat)) => pieces.push(flat),
                (Some(GradientSum::Touched { sum, touched }), Some((indices, values))) => {
                    touch(sum, touched, &indices, &values)?;
                }
                (Some(GradientSum::Whole(sum) | GradientSum::Touched { sum, .. }), _) => {
                    sum.assign_add(&own)?
                }
                // One trace of a loss gives rows and another all: nothing does that.
                (Some(GradientSum::Rows(_)) | None, _) => return Err(self.changed(variable)),
            }
        }
        Ok(pieces)
    }

    /// The mean gradients: of the last part, of the sums, and of the rows that the parts before it gave.
    pub fn mean(
        &self,
        variables: &[Variable],
        gradients: &[Gradient],
        given: &[Pieces],
    ) -> Result<Vec<Gradient>> {
        let (all, mut tables) = (self.all(), 0);
        let mut means = Vec::with_capacity(gradients.len());
        for (i, (variable, gradient)) in variables.iter().zip(gradients).enumerate() {
            let own = gradient.scale(1.0 / self.all_parts() as f64)?;
            means.push(match (all.get(i).and_then(Option::as_ref), own) {
                (None, own) => own,
                (Some(GradientSum::Touched { sum, touched }), Gradient::Rows(rows)) => {
                    let Some((indices, values)) = rows.flat()? else {
                        return Err(self.changed(variable));
                    };
                    touch(sum, touched, &indices, &values)?;
                    Gradient::Rows(touched_rows(sum, touched)?)
                }
                (Some(GradientSum::Whole(sum) | GradientSum::Touched { sum, .. }), own) => {
                    Gradient::Dense(sum.read()?).plus(own)?
                }
                (Some(GradientSum::Rows(_)), own) => {
                    let of = given.iter().filter_map(|pieces| pieces.get(tables).cloned());
                    let earlier = IndexedSlices::from_parts(variable.ty(), of.collect());
                    tables += 1;
                    own.plus(Gradient::Rows(earlier))?
                }
            });
        }
        Ok(means)
    }

    /// Sums of 0, for the next step.
    pub fn clear(&self) -> Result<()> {
        let clear = |sum: &Variable| sum.assign(&make::zeros_of(&sum.ty(), self.source)?);
        let of_ranks = self.of_ranks.lock().unwrap_or_else(PoisonError::into_inner);
        self.all().iter().flatten().chain(of_ranks.values()).try_for_each(|sum| match sum {
            GradientSum::Whole(sum) => clear(sum),
            GradientSum::Touched { sum, touched } => {
                clear(sum)?;
                clear(touched)
            }
            GradientSum::Rows(_) => Ok(()),
        })
    }

    /// What `parts` parts give out, to plan with.
    pub fn foreseen(&self, parts: usize) -> Vec<Pieces> {
        let spec = |ty: &TensorType| Tensor::from_spec(ty.clone());
        let one = || self.types().iter().map(|[i, v]| (spec(i), spec(v))).collect();
        (0..parts).map(|_| one()).collect()
    }

    /// What waits while the part before the last runs, which is the most that waits beside any but the last.
    pub fn waiting(&self) -> Result<Bytes> {
        let mut one = Bytes::ZERO;
        for ty in self.types().iter().flatten() {
            one += ty.bytes("fit")?.rounded();
        }
        Ok(Bytes::new(one.get().saturating_mul(self.parts.saturating_sub(2) as u64)))
    }

    fn types(&self) -> Vec<[TensorType; 2]> {
        let all = self.all();
        let rows = all.iter().flatten().filter_map(|sum| match sum {
            GradientSum::Rows(types) => Some(types.clone()),
            _ => None,
        });
        rows.collect()
    }

    /// How the gradient of a variable is added up, which has rows or is dense.
    pub(super) fn begun(
        &self,
        variable: &Variable,
        rows: Option<&(Tensor, Tensor)>,
    ) -> Result<GradientSum> {
        let (ty, name) = (variable.ty(), format!("{}/gradient", variable.name()));
        let made = |name: &str, ty: &TensorType| {
            let zeros = make::zeros_of(ty, self.source)?;
            // Zeros need no key: what steps draw does not depend on how many parts they have.
            let state = random::state();
            let made = Variable::new_at(name, zeros, Role::Fixed, self.source);
            random::set_state(state);
            made
        };
        let Some((indices, values)) = rows else {
            return Ok(GradientSum::Whole(made(&name, &ty)?));
        };
        let length = |shape: &tonnage_core::Shape| shape.first().and_then(Dim::known);
        match (length(&indices.shape()), length(&ty.shape)) {
            (Some(one), Some(table)) if one.saturating_mul(self.all_parts()) < table => {
                Ok(GradientSum::Rows([indices.ty(), values.ty()]))
            }
            (_, table) => {
                let table = tonnage_core::Shape::from([table.unwrap_or(0)].as_slice());
                let list = TensorType::new(DType::Bool, table);
                let touched = made(&format!("{}/touched", variable.name()), &list)?;
                Ok(GradientSum::Touched { sum: made(&name, &ty)?, touched })
            }
        }
    }

    pub(super) fn changed(&self, variable: &Variable) -> tonnage_core::Error {
        let what = format!(
            "the gradient of `{}` is rows in one batch and whole in another",
            variable.name()
        );
        let help = "let the loss read it in one way";
        tonnage_core::error::bad_argument("fit", what, help).at(self.source)
    }

    fn all(&self) -> MutexGuard<'_, Vec<Option<GradientSum>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds rows to a table of sums.
pub(super) fn touch(
    sum: &Variable,
    touched: &Variable,
    indices: &Tensor,
    values: &Tensor,
) -> Result<()> {
    let rows = IndexedSlices::from_parts(sum.ty(), vec![(indices.clone(), values.clone())]);
    sum.assign_add(&rows)?;
    let list = TensorType::new(DType::Bool, indices.shape());
    touched.assign_rows(indices, &make::fill(true.into(), list.dtype, list.shape, Source::here())?)
}

/// The rows of a table of sums that were touched. How many those are is known to the data alone, so all rows are there: one that was not touched stands as a row of
/// zeros for the first that was, to which that adds nothing.
pub(super) fn touched_rows(sum: &Variable, touched: &Variable) -> Result<IndexedSlices> {
    let touched = touched.read()?;
    let first = (&touched).cast(DType::I32)?.argmax(0)?.cast(DType::I64)?;
    let rows = touched.shape().first().and_then(Dim::known).unwrap_or(0);
    let indices = touched.where_(&make::range(0i64, rows as i64, 1)?, &first)?;
    Ok(IndexedSlices::from_parts(sum.ty(), vec![(indices, sum.read()?)]))
}

/// Rows that were given out, in bytes of their own: indices may be a piece of the batch that they came in, which would live as long as they do.
pub(super) fn owned(pieces: Pieces, source: Source) -> Result<Pieces> {
    pieces.map(&mut |tensor| {
        let array = tensor.array("fit")?;
        let own = array.ty().bytes("fit")?.rounded();
        match array.is_sole() && array.is_whole() && array.storage().reserved() == own {
            true => Ok(tensor),
            false => {
                let mark = Mark { source, kind: Kind::Gradient };
                Ok(Tensor::from_array(array.copied(mark, "gradient")?))
            }
        }
    })
}

/// What rows that are held take.
pub(super) fn held(given: &[Pieces]) -> Bytes {
    let mut sum = Bytes::ZERO;
    for (indices, values) in given.iter().flatten() {
        for tensor in [indices, values] {
            sum += tensor.array("fit").map_or(Bytes::ZERO, |array| array.storage().reserved());
        }
    }
    sum
}
