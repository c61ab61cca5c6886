//! A random order: elements out of a buffer, which are held; rows of tensors by their numbers, where the buffer has room for all.

use std::sync::Arc;

use tonnage_core::Result;
use tonnage_runtime::random;

use super::Count;
use super::pick::boxed;
use super::pipeline::{Form, Pipeline};
use crate::random::RandomKey;
use crate::tree::Tree;

/// Where the random orders of a pipeline come from: a [`RandomKey`] is one.
pub trait Shuffle: Send + Sync + 'static {
    /// Random places for the pass of that number.
    fn start(&self, pass: u64) -> Result<Box<dyn Draws>>;
}

/// Random places, one after another.
pub trait Draws: Send {
    /// A number below `n`, which is at least 1.
    fn below(&mut self, n: usize) -> Result<usize>;

    /// Puts numbers in a random order: that in which a buffer for all of them would give them, unless there is a faster way.
    fn order(&mut self, numbers: &mut Vec<i64>) -> Result<()> {
        for left in (1..=numbers.len()).rev() {
            let place = self.below(left)?;
            numbers.swap(place, left - 1);
        }
        numbers.reverse();
        Ok(())
    }

    /// Whether in a full buffer the next element takes the place of the one that left, and not the last place. Both are random orders; a seed
    /// that gave one should go on giving it.
    fn refills_in_place(&self) -> bool {
        false
    }
}

/// Another order each pass; the same key gives the same ones.
impl Shuffle for RandomKey {
    fn start(&self, pass: u64) -> Result<Box<dyn Draws>> {
        Ok(Box::new(KeyDraws { key: self.of_pass(pass), drawn: 0 }))
    }
}

struct KeyDraws {
    key: RandomKey,
    drawn: u32,
}

impl Draws for KeyDraws {
    fn below(&mut self, n: usize) -> Result<usize> {
        let number = random::derived(self.key.words(), self.drawn)[0];
        self.drawn = self.drawn.wrapping_add(1);
        Ok(((u64::from(number) * n as u64) >> 32) as usize)
    }
}

impl<T: Tree + Send + 'static> Pipeline<T> {
    /// In a random order: each time one of the next `buffer` comes, which are held. The same key gives the same orders.
    #[must_use]
    pub fn shuffle(self, buffer: usize, order: impl Shuffle) -> Pipeline<T> {
        let (buffer, order, count) = (buffer.max(1), Arc::new(order), self.count());
        if let (Form::Rows(rows), Count::Known(n)) = (self.form(), count)
            && n <= buffer as u64
        {
            return Pipeline::new(Form::Rows(rows.clone().shuffled(n, order)), count);
        }
        Pipeline::of(count, move |pass| {
            let rest = pass.noted("shuffle", buffer, self.elements(pass));
            if pass.is_looking() {
                return rest;
            }
            let (order, number) = (order.clone(), pass.number);
            let mut rest = Some(rest);
            let mut drawn = None;
            boxed(std::iter::from_fn(move || {
                if let Some(rest) = rest.take() {
                    match order.start(number) {
                        Ok(draws) => {
                            drawn =
                                Some(Buffer { rest, draws, buffer, held: Vec::new(), left: None })
                        }
                        Err(error) => return Some(Err(error)),
                    }
                }
                drawn.as_mut()?.next()
            }))
        })
    }
}

struct Buffer<T> {
    rest: super::Elements<T>,
    draws: Box<dyn Draws>,
    buffer: usize,
    held: Vec<Result<T>>,
    /// The place of the one that left last.
    left: Option<usize>,
}

impl<T> Buffer<T> {
    fn next(&mut self) -> Option<Result<T>> {
        while self.held.len() < self.buffer
            && let Some(element) = self.rest.next()
        {
            self.held.push(element);
            if let Some(place) = std::mem::take(&mut self.left)
                && self.draws.refills_in_place()
            {
                let last = self.held.len() - 1;
                self.held.swap(place, last);
            }
        }
        if self.held.is_empty() {
            return None;
        }
        match self.draws.below(self.held.len()) {
            Ok(place) => {
                self.left = Some(place);
                Some(self.held.swap_remove(place))
            }
            Err(error) => Some(Err(error)),
        }
    }
}
