//! Rows of tensors by their numbers: what takes, skips, repeats and shuffles all of them moves numbers, and a batch is one slice or one
//! gather. A row is made where somebody asks for it.

use std::sync::Arc;

use tonnage_core::error::bad_argument;
use tonnage_core::{Bytes, Result};

use super::pick::{Pick, boxed};
use super::pipeline::{Elements, Form, Make, Pipeline};
use super::shuffle::Shuffle;
use super::{Count, Dataset, Holds};
use crate::make;
use crate::ops::Index;
use crate::strings::Value;
use crate::tensor::Tensor;
use crate::tree::{Tree, values};

/// Numbers that are read from an order at once.
const PIECE: usize = 4096;

/// What has rows.
pub(super) trait RowSource<T>: Send + Sync {
    /// One row, sharing the bytes of all.
    fn row(&self, number: i64) -> Result<T>;

    /// Several rows, with an axis in front: sharing the bytes of all where they follow each other.
    fn rows(&self, numbers: &[i64]) -> Result<T>;
}

impl<T: Tree + Send + Sync> RowSource<T> for Dataset<T> {
    fn row(&self, number: i64) -> Result<T> {
        self.whole()
            .share()
            .map_values(&mut |value| value.each(|part| part.get(&[Index::At(number)])))
    }

    fn rows(&self, numbers: &[i64]) -> Result<T> {
        let follows = numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        match numbers {
            [first, .., last] if follows => {
                let part = [(*first..*last + 1).into()];
                self.whole().share().map_values(&mut |value| value.each(|own| own.slice(&part)))
            }
            _ => self.rows(&make::tensor(numbers)?),
        }
    }
}

/// Some rows, in some order.
pub(super) struct Rows<T> {
    of: Arc<dyn RowSource<T>>,
    numbers: Make<i64>,
}

impl<T> Clone for Rows<T> {
    fn clone(&self) -> Rows<T> {
        Rows { of: self.of.clone(), numbers: self.numbers.clone() }
    }
}

impl<T: Send + 'static> Rows<T> {
    /// Them as elements.
    pub fn elements(&self, pass: &super::pass::PipelinePass) -> Elements<T> {
        let of = self.of.clone();
        boxed((self.numbers)(pass).map(move |number| of.row(number?)))
    }

    pub fn picked(self, pick: Pick) -> Rows<T> {
        Rows { of: self.of, numbers: pick.of(self.numbers) }
    }

    /// Batches of `size`.
    pub fn batches(self, size: usize, whole: bool) -> Make<T> {
        let Rows { of, numbers } = self;
        Arc::new(move |pass| {
            let (of, mut numbers) = (of.clone(), numbers(pass));
            boxed(std::iter::from_fn(move || {
                let held: Result<Vec<i64>> = numbers.by_ref().take(size).collect();
                match held {
                    Ok(held) if held.is_empty() || (whole && held.len() < size) => None,
                    Ok(held) => Some(of.rows(&held)),
                    Err(error) => Some(Err(error)),
                }
            }))
        })
    }

    /// All `count` of them in a random order, which is a tensor: the ledger counts it.
    pub fn shuffled(self, count: u64, shuffle: Arc<dyn Shuffle>) -> Rows<T> {
        let Rows { of, numbers } = self;
        let order: Make<i64> = Arc::new(move |pass| {
            let bytes = Bytes::new(count.saturating_mul(8)).rounded();
            pass.note(Holds { step: "shuffle", elements: count as usize, bytes });
            let numbers = numbers(pass);
            if pass.is_looking() {
                return numbers;
            }
            let (shuffle, number) = (shuffle.clone(), pass.number);
            let mut drawn = None;
            let mut numbers = Some(numbers);
            boxed(std::iter::from_fn(move || {
                if let Some(numbers) = numbers.take() {
                    let order = || -> Result<Order> {
                        let mut all = numbers.collect::<Result<Vec<i64>>>()?;
                        shuffle.start(number)?.order(&mut all)?;
                        Order::of(all)
                    };
                    match order() {
                        Ok(order) => drawn = Some(order),
                        Err(error) => return Some(Err(error)),
                    }
                }
                drawn.as_mut()?.next()
            }))
        });
        Rows { of, numbers: order }
    }
}

/// Numbers in a tensor, read a piece at a time.
struct Order {
    all: Tensor,
    len: usize,
    read: usize,
    piece: std::vec::IntoIter<i64>,
}

impl Order {
    fn of(numbers: Vec<i64>) -> Result<Order> {
        let len = numbers.len();
        Ok(Order { all: make::tensor(numbers)?, len, read: 0, piece: Vec::new().into_iter() })
    }
}

impl Iterator for Order {
    type Item = Result<i64>;

    fn next(&mut self) -> Option<Result<i64>> {
        if self.piece.len() == 0 && self.read < self.len {
            let end = (self.read + PIECE).min(self.len);
            let piece = self.all.slice(&[(self.read as i64..end as i64).into()]);
            match piece.and_then(|piece| piece.to_vec()) {
                Ok(piece) => self.piece = piece.into_iter(),
                Err(error) => return Some(Err(error)),
            }
            self.read = end;
        }
        self.piece.next().map(Ok)
    }
}

impl<T: Tree + Send + Sync + 'static> Pipeline<T> {
    /// The rows of tensors, one after another. As long as they are only taken, skipped, repeated and shuffled out of a buffer for all of them,
    /// they are numbers, and a batch of them is a slice or a gather.
    pub fn rows(data: &Dataset<T>) -> Pipeline<T> {
        let rows = data.len() as i64;
        let of = Arc::new(Dataset { data: data.whole().share(), rows: data.len() });
        let numbers: Make<i64> = Arc::new(move |_| boxed((0..rows).map(Ok)));
        Pipeline::new(Form::Rows(Rows { of, numbers }), Count::Known(rows as u64))
    }

    /// The rows of elements, one after another: what [`Pipeline::batch`] joined. Each is in bytes of its own, so that none keeps the others.
    ///
    /// ```
    /// use tonnage::{data::Pipeline, tensor};
    /// let batches = Pipeline::from_elements(vec![tensor([1, 2])?, tensor([3])?]);
    /// let rows: Vec<i32> = batches.unbatch().iter().map(|x| x?.scalar()).collect::<Result<_, _>>()?;
    /// assert_eq!(rows, [1, 2, 3]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// An element whose tensors have no rows, or different numbers of them, is an error.
    #[must_use]
    pub fn unbatch(self) -> Pipeline<T> {
        let count = match self.count() {
            Count::Known(0) => Count::Known(0),
            Count::Infinite => Count::Infinite,
            _ => Count::Unknown,
        };
        Pipeline::of(count, move |pass| {
            let elements = pass.noted("unbatch", 1, self.elements(pass));
            boxed(elements.flat_map(|element| match element.and_then(whole) {
                Ok(data) => {
                    let rows = data.len() as i64;
                    boxed(
                        (0..rows).map(move |row| {
                            data.rows(&make::full(row, tonnage_core::DType::I64, ())?)
                        }),
                    )
                }
                Err(error) => boxed(std::iter::once(Err(error))),
            }))
        })
    }
}

/// An element as rows.
fn whole<T: Tree>(element: T) -> Result<Dataset<T>> {
    let types: Vec<String> = values(&element).iter().map(Value::type_text).collect();
    Dataset::of(element).map_err(|_| {
        let what = format!("an element of {}", types.join(", "));
        bad_argument(
            "unbatch",
            what,
            "give elements whose tensors have the same batch size, and no scalar components",
        )
    })
}
