//! Which elements come, and how often: the same of elements and of the numbers of rows.

use std::sync::Arc;
use std::time::Instant;

use tonnage_core::Result;
use tonnage_runtime::interrupt;

use super::Count;
use super::pass::PipelinePass;
use super::pipeline::{Elements, Make, Pipeline};
use crate::tree::Tree;

/// Which of them.
#[derive(Clone, Copy)]
pub(super) enum Pick {
    Take(usize),
    Skip(usize),
    /// Every `of`th, from `index` on.
    Shard {
        of: usize,
        index: usize,
    },
    /// So many times; without an end for none.
    Repeat(Option<usize>),
}

/// Passes of a repetition without an end have numbers of their own up to this one.
const MOST_PASSES: u64 = 1 << 32;

impl Pick {
    /// Those of a source.
    pub fn of<E: Send + 'static>(self, make: Make<E>) -> Make<E> {
        Arc::new(move |pass: &PipelinePass| -> Elements<E> {
            match self {
                Pick::Take(n) => boxed(make(pass).take(n)),
                Pick::Skip(n) => boxed(kept(make(pass), move |i| i >= n)),
                Pick::Shard { of, index } => {
                    boxed(kept(make(pass), move |i| i >= index && (i - index) % of == 0))
                }
                Pick::Repeat(Some(times)) => {
                    let (make, pass) = (make.clone(), pass.clone());
                    let passes = (0..times as u64).map(move |i| pass.part(i, times as u64));
                    boxed(passes.flat_map(move |pass| make(&pass)))
                }
                Pick::Repeat(None) => {
                    let (make, pass) = (make.clone(), pass.clone());
                    let mut number = 0;
                    let mut now = make(&pass.part(0, MOST_PASSES));
                    let mut is_empty = true;
                    boxed(asking(std::iter::from_fn(move || {
                        loop {
                            if let Some(element) = now.next() {
                                is_empty = false;
                                return Some(element);
                            }
                            // Nothing without an end is nothing.
                            if std::mem::replace(&mut is_empty, true) {
                                return None;
                            }
                            number += 1;
                            now = make(&pass.part(number, MOST_PASSES));
                        }
                    })))
                }
            }
        })
    }

    /// How many they are.
    pub fn count(self, count: Count) -> Count {
        match (self, count) {
            (Pick::Take(n), Count::Infinite) => Count::Known(n as u64),
            (Pick::Take(n), _) => count.map(|all| all.min(n as u64)),
            (Pick::Skip(n), _) => count.map(|all| all.saturating_sub(n as u64)),
            (Pick::Shard { of, index }, _) => {
                count.map(|all| all.saturating_sub(index as u64).div_ceil(of as u64))
            }
            (Pick::Repeat(Some(0)), _) | (Pick::Repeat(_), Count::Known(0)) => Count::Known(0),
            (Pick::Repeat(Some(times)), _) => count.map(|all| all.saturating_mul(times as u64)),
            (Pick::Repeat(None), _) => Count::Infinite,
        }
    }
}

/// Elements of some numbers. An error comes whatever its number: nobody knows what it would have been.
pub(super) fn kept<E>(
    elements: Elements<E>,
    keep: impl Fn(usize) -> bool,
) -> impl Iterator<Item = Result<E>> {
    let kept = elements.enumerate().filter(move |(i, element)| element.is_err() || keep(*i));
    kept.map(|(_, element)| element)
}

/// Elements that may come for a long time without anybody seeing one: the host is asked now and then whether to stop.
pub(super) fn asking<E>(
    mut elements: impl Iterator<Item = Result<E>>,
) -> impl Iterator<Item = Result<E>> {
    /// The clock is looked at for one of so many.
    const SOME: u32 = 64;
    let (mut left, mut asked) = (SOME, Instant::now());
    std::iter::from_fn(move || {
        left -= 1;
        if left == 0 {
            left = SOME;
            if asked.elapsed() >= interrupt::EVERY {
                asked = Instant::now();
                if let Err(error) = interrupt::ask() {
                    return Some(Err(error));
                }
            }
        }
        elements.next()
    })
}

impl<T: Tree + Send + 'static> Pipeline<T> {
    /// The first `n`.
    #[must_use]
    pub fn take(self, n: usize) -> Pipeline<T> {
        self.picked(Pick::Take(n))
    }

    /// All but the first `n`.
    #[must_use]
    pub fn skip(self, n: usize) -> Pipeline<T> {
        self.picked(Pick::Skip(n))
    }

    /// Every `of`th from the one of number `index` on, counted from 0: what one of `of` machines takes. None for an `of` of 0.
    #[must_use]
    pub fn shard(self, of: usize, index: usize) -> Pipeline<T> {
        match of {
            0 => self.take(0),
            _ => self.picked(Pick::Shard { of, index }),
        }
    }

    /// All of it `times` times; a shuffle before this gives another order each time.
    #[must_use]
    pub fn repeat(self, times: usize) -> Pipeline<T> {
        self.picked(Pick::Repeat(Some(times)))
    }

    /// All of it again and again, unless a time through it gives nothing.
    #[must_use]
    pub fn repeat_forever(self) -> Pipeline<T> {
        self.picked(Pick::Repeat(None))
    }
}

/// Elements as a trait object, from any iterator.
pub(super) fn boxed<E>(of: impl Iterator<Item = Result<E>> + Send + 'static) -> Elements<E> {
    Box::new(of)
}
