//! Several elements as one.

use std::collections::VecDeque;
use std::sync::Arc;

use tonnage_core::attrs::PadMode;
use tonnage_core::error::bad_argument;
use tonnage_core::{Result, Scalar};

use super::pick::boxed;
use super::pipeline::{Form, Pipeline};
use crate::strings::Value;
use crate::tree::{Tree, values};

/// How one tensor of the elements is filled up.
#[derive(Debug, Clone, PartialEq)]
pub struct Padding {
    /// Lengths of its axes; `None`, for one or for all, is that of the longest in the batch.
    pub shape: Option<Vec<Option<usize>>>,
    /// What it is filled up with.
    pub value: Scalar,
}

impl<T: Tree + Send + Sync + 'static> Pipeline<T> {
    /// Batches of `size` elements, each tensor with one more axis in front; the last may have fewer. All must be of one shape.
    #[must_use]
    pub fn batch(self, size: usize) -> Pipeline<T> {
        self.batched(size, false)
    }

    /// [`Pipeline::batch`] without a last one that has fewer.
    ///
    /// ```
    /// use tonnage::data::Pipeline;
    /// assert_eq!(Pipeline::range(0, Some(7), 1).whole_batches(3).iter().count(), 2);
    /// ```
    #[must_use]
    pub fn whole_batches(self, size: usize) -> Pipeline<T> {
        self.batched(size, true)
    }

    fn batched(self, size: usize, whole: bool) -> Pipeline<T> {
        match self.form() {
            Form::Rows(rows) => {
                let count = batches(&self, size, whole);
                Pipeline::new(Form::Elements(rows.clone().batches(size, whole)), count)
            }
            Form::Elements(_) => self.joined("batch", size, whole, |held| by_value(held, joined)),
        }
    }

    /// Batches of `size` elements, where lengths may differ: each axis is as long as the longest, filled up at its end.
    #[must_use]
    pub fn padded_batch(self, size: usize, filling: impl Into<Scalar>) -> Pipeline<T> {
        let padding = Padding { shape: None, value: filling.into() };
        self.padded_batch_with(size, false, move |element| {
            Ok(vec![padding.clone(); values(element).len()])
        })
    }

    /// The same with a padding for each tensor, as a closure says for the first element of each batch; `whole` leaves out a last batch that has
    /// fewer.
    #[must_use]
    pub fn padded_batch_with(
        self,
        size: usize,
        whole: bool,
        padding: impl Fn(&T) -> Result<Vec<Padding>> + Send + Sync + 'static,
    ) -> Pipeline<T> {
        self.joined("padded_batch", size, whole, move |held| {
            let paddings = match held.first() {
                Some(first) => padding(first)?,
                None => Vec::new(),
            };
            by_value(held, |place, parts| match paddings.get(place) {
                Some(padding) => padded(parts, padding),
                None => {
                    let what = format!("{} paddings for elements of more tensors", paddings.len());
                    Err(bad_argument("padded_batch", what, "give one for each tensor"))
                }
            })
        })
    }

    fn joined(
        self,
        step: &'static str,
        size: usize,
        whole: bool,
        join: impl Fn(Vec<T>) -> Result<T> + Send + Sync + 'static,
    ) -> Pipeline<T> {
        let join = Arc::new(join);
        Pipeline::of(batches(&self, size, whole), move |pass| {
            // Of those that are filled up a copy is made before they are joined.
            let held = if step == "padded_batch" { 2 * size } else { size };
            let (mut rest, join) = (pass.noted(step, held, self.elements(pass)), join.clone());
            boxed(std::iter::from_fn(move || {
                let held: Result<Vec<T>> = rest.by_ref().take(size).collect();
                match held {
                    Ok(held) if held.is_empty() || (whole && held.len() < size) => None,
                    held => Some(held.and_then(&*join)),
                }
            }))
        })
    }

    /// Elements in lists of `size`, a list every `shift` elements, of every `stride`th element. Those at the end have fewer, or are left out where
    /// they must be `whole`.
    ///
    /// ```
    /// use tonnage::data::Pipeline;
    /// let windows = Pipeline::range(0, Some(5), 1).window(3, 1, 1, true);
    /// let sums: Vec<i64> = windows.iter().map(|w| w?.iter().map(|x| x.scalar::<i64>()).sum()).collect::<Result<_, _>>()?;
    /// assert_eq!(sums, [3, 6, 9]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[must_use]
    pub fn window(self, size: usize, shift: usize, stride: usize, whole: bool) -> Pipeline<Vec<T>> {
        let (size, shift, stride) = (size.max(1), shift.max(1), stride.max(1));
        let reach = (size - 1).saturating_mul(stride).saturating_add(1);
        let count = self.count().map(|all| match whole {
            true => all.checked_sub(reach as u64).map_or(0, |room| room / shift as u64 + 1),
            false => all.div_ceil(shift as u64),
        });
        Pipeline::of(count, move |pass| {
            let mut rest = pass.noted("window", reach.max(1), self.elements(pass));
            let mut held: VecDeque<T> = VecDeque::new();
            // Elements between two windows.
            let mut between = 0;
            boxed(std::iter::from_fn(move || {
                while between > 0 {
                    between -= 1;
                    if let Some(Err(error)) = rest.next() {
                        return Some(Err(error));
                    }
                }
                while held.len() < reach
                    && let Some(element) = rest.next()
                {
                    match element {
                        Ok(element) => held.push_back(element),
                        Err(error) => return Some(Err(error)),
                    }
                }
                if held.is_empty() || (whole && held.len() < reach) {
                    return None;
                }
                let window = held.iter().step_by(stride).map(Tree::share).collect();
                between = shift.saturating_sub(held.len());
                held.drain(..shift.min(held.len()));
                Some(Ok(window))
            }))
        })
    }
}

fn batches<T: Tree + Send + 'static>(of: &Pipeline<T>, size: usize, whole: bool) -> super::Count {
    of.count().map(|all| match (size as u64, whole) {
        (0, _) => 0,
        (size, true) => all / size,
        (size, false) => all.div_ceil(size),
    })
}

/// Elements as one, value by value.
fn by_value<T: Tree>(held: Vec<T>, join: impl Fn(usize, &[Value]) -> Result<Value>) -> Result<T> {
    let all: Vec<Vec<Value>> = held.iter().map(values).collect();
    let Some(first) = held.into_iter().next() else {
        return Err(bad_argument("batch", "no element", "give at least one"));
    };
    let mut place = 0;
    first.map_values(&mut |_| {
        let parts: Vec<Value> = all.iter().filter_map(|parts| parts.get(place).cloned()).collect();
        place += 1;
        if all.iter().any(|parts| parts.len() != all[0].len()) {
            let what = "elements of different numbers of tensors";
            return Err(bad_argument("batch", what, "give elements that are nested alike"));
        }
        join(place - 1, &parts)
    })
}

fn joined(place: usize, parts: &[Value]) -> Result<Value> {
    if let Some(first) = parts.first()
        && let Some((number, other)) =
            parts.iter().enumerate().find(|(_, part)| part.shape() != first.shape())
    {
        let what = format!(
            "cannot batch tensors with different shapes in component {place}: the first element has shape {} and element {number} {}",
            first.shape(),
            other.shape()
        );
        return Err(bad_argument("batch", what, "use padded_batch"));
    }
    Value::stack(parts, 0)
}

/// The op that an error names where a tensor is longer than what it should be filled up to.
pub const PAD_TO_SHAPE: &str = "padded_batch to a shape";

/// Tensors of different lengths as one, filled up at the ends.
fn padded(parts: &[Value], padding: &Padding) -> Result<Value> {
    let rank = parts.first().map_or(0, |part| part.shape().rank());
    let sizes = |part: &Value| part.shape().sizes().filter(|sizes| sizes.len() == rank);
    let mut to = vec![0; rank];
    for part in parts {
        let Some(own) = sizes(part) else {
            let what = format!("{} among tensors of rank {rank}", part.type_text());
            return Err(bad_argument("padded_batch", what, "give elements of one rank"));
        };
        to.iter_mut().zip(own).for_each(|(to, own)| *to = own.max(*to));
    }
    if let Some(shape) = &padding.shape {
        if shape.len() != rank {
            let what =
                format!("the padded shape {shape:?} has another rank than elements of rank {rank}");
            return Err(bad_argument("padded_batch", what, "give a length for each axis"));
        }
        for (longest, wanted) in to.iter_mut().zip(shape) {
            let wanted = wanted.unwrap_or(*longest);
            if wanted < *longest {
                let what = format!(
                    "attempted to pad to a smaller size than the input element: {longest} to {wanted}"
                );
                return Err(bad_argument(PAD_TO_SHAPE, what, "give the longest length"));
            }
            *longest = wanted;
        }
    }
    let filled = parts
        .iter()
        .map(|part| {
            let own = sizes(part).unwrap_or_default();
            let widths: Vec<[usize; 2]> =
                own.iter().zip(&to).map(|(own, to)| [0, to - own]).collect();
            // One that is as long as the longest need not be of a dtype that the filling fits, as labels beside lines.
            match own.as_slice() == to.as_slice() {
                true => Ok(part.clone()),
                false => part.each(|own| own.pad(&widths, PadMode::Constant(padding.value))),
            }
        })
        .collect::<Result<Vec<_>>>()?;
    Value::stack(&filled, 0)
}
