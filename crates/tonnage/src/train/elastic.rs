//! Checkpoints of several ranks: each writes its range of every tensor to a file of its own, and when all have, rank 0 writes the index, which names them.
//! Any number of ranks restores it, and one process: each rank reads its range, and gets the rest from the others.
//!
//! The index comes last, so that a job that ends at any moment leaves the checkpoint before. Names hold a number that grows with each save, so that no file of
//! a checkpoint that is still named is ever written over.

use std::fs;
use std::ops::Range;

use tonnage_core::attrs::PadMode;
use tonnage_core::{Error, Result, TensorType, World};

use super::agree::{self, Failed};
use super::checkpoint::{Checkpoints, Position};
use super::load::{Loaded, Loading, matched};
use crate::io::{RangeIndex, RangedTensors, TensorRange, bad_file, failed, save_ranges};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// The range of a tensor that a rank writes, and reads: all are as long, but for the last.
pub(super) fn range_of(elements: usize, world: &World) -> Range<usize> {
    let each = elements.div_ceil(world.size());
    let start = |rank: usize| (rank * each).min(elements);
    start(world.rank())..start(world.rank() + 1)
}

/// What a tensor has, as far as its type says.
fn elements(ty: &TensorType) -> usize {
    ty.shape.sizes().map_or(0, |sizes| sizes.iter().product())
}

/// This rank's ranges of variables that all ranks have whole.
pub(super) fn own_ranges(
    variables: &[(String, Variable)],
    world: &World,
) -> Result<Vec<TensorRange>> {
    let own = |(name, variable): &(String, Variable)| {
        let (name, whole) = (name.clone(), variable.ty());
        let range = range_of(elements(&whole), world);
        let flat = variable.read()?.reshape([elements(&whole)])?;
        let values = flat.slice(&[(range.start as i64..range.end as i64).into()])?;
        Ok(TensorRange { name, whole, start: range.start, values })
    };
    variables.iter().map(own).collect()
}

impl Checkpoints {
    /// Saves ranges of tensors and where training is, on all ranks at once: what a rank gives is what it holds of each tensor, and together they have every element once. Takes what a
    /// range needs to be written out.
    ///
    /// # Errors
    /// On all ranks, where one cannot write; the last good checkpoint is then still there, and nothing of this one.
    pub fn save_ranges(
        &self,
        ranges: &[TensorRange],
        position: Position,
        score: Option<f64>,
    ) -> Result<()> {
        self.save_together(Ok(ranges.to_vec()), position, score).map_err(Error::from)
    }

    /// The same, which knows whose the error is.
    pub(super) fn save_together(
        &self,
        ranges: Result<Vec<TensorRange>>,
        position: Position,
        score: Option<f64>,
    ) -> std::result::Result<(), Failed> {
        let world = self.world();
        let begun = || -> Result<u64> {
            match world.rank() {
                0 => self.next_number(),
                _ => Ok(0),
            }
        };
        let number = agree::on_errors(world, "cannot save", begun())?;
        let number = agree::first(world, number);
        let stem = format!("step-{:09}-{number}", position.step);
        let own = format!("{stem}.{:05}-of-{:05}.safetensors", world.rank(), world.size());
        let written = ranges.and_then(|ranges| {
            let folder = self.folder();
            fs::create_dir_all(folder).map_err(|e| failed(folder, "made", &e))?;
            save_ranges(folder.join(&own), &ranges)
        });
        let saved = agree::on_errors(world, "cannot save", written).and_then(|index| {
            let all = agree::texts(world, &index.to_text());
            let named = match world.rank() {
                0 => self.name_ranges(&all, &format!("{stem}.ranges.json"), position, score),
                _ => Ok(()),
            };
            agree::on_errors(world, "cannot save", named)
        });
        if saved.is_err() {
            let _ = fs::remove_file(self.folder().join(&own));
        }
        saved
    }

    /// Rank 0's part: the index of what all have written, and the record that names it.
    fn name_ranges(
        &self,
        texts: &[String],
        file: &str,
        position: Position,
        score: Option<f64>,
    ) -> Result<()> {
        let path = self.folder().join(file);
        let mut all = RangeIndex::default();
        for text in texts {
            let Some(index) = RangeIndex::from_text(text) else {
                return Err(bad_file(&path, "cannot be made of what ranks say", "report this"));
            };
            all = all.and(index);
        }
        all.save(&path)?;
        self.name_last(file.into(), position, score).inspect_err(|_| {
            let _ = fs::remove_file(&path);
        })
    }

    /// Reads ranges of tensors of the last good checkpoint, by their names and the types of the whole: what a rank holds of each, whatever the number of ranks that saved them. Random
    /// numbers get their state; where training was then. None where there is no checkpoint.
    ///
    /// # Errors
    /// Where the checkpoint was saved by one process in one file; where a name is missing, a type is another, or a file is damaged.
    pub fn read_ranges(
        &self,
        wanted: &[(String, TensorType, Range<usize>)],
    ) -> Result<Option<(Position, Vec<Tensor>)>> {
        let Some(path) = self.last_file()? else { return Ok(None) };
        let file = RangedTensors::open(&path)?;
        let read = wanted.iter().map(|(name, whole, range)| {
            let saved = file.ty(name)?;
            if saved != *whole {
                let what = format!("`{name}` is {saved}, and {whole} here");
                return Err(bad_file(&path, what, "use the model that it was saved from"));
            }
            file.read_range(name, range.clone())
        });
        let read = read.collect::<Result<Vec<_>>>()?;
        Ok(self.restore_state()?.map(|position| (position, read)))
    }
}

/// Gives variables the values of a checkpoint in ranges. Each rank reads its range of each, and nothing changes before all ranks have theirs.
pub(super) fn load_ranges(
    file: &RangedTensors,
    variables: &[(String, Variable)],
    how: Loading,
    world: &World,
) -> Result<Loaded> {
    let read = || -> Result<_> {
        let found = matched(file.path(), file.names(), |name| file.ty(name), variables, how)?;
        let wanted: Vec<&(String, Variable)> =
            variables.iter().filter(|(name, _)| !found.missing.contains(name)).collect();
        // New values beside old ones would take as much again: they are looked at first then, and read once more.
        let is_twice = world.size() == 1 && wanted.iter().any(|(_, v)| !v.bytes().is_zero());
        if is_twice {
            file.check()?;
            return Ok((found, wanted, None));
        }
        let own = |(name, variable): &&(String, Variable)| {
            file.read_range(name, range_of(elements(&variable.ty()), world))
        };
        let values = wanted.iter().map(own).collect::<Result<Vec<Tensor>>>()?;
        Ok((found, wanted, Some(values)))
    };
    let (found, wanted, values) = agree::on_errors(world, "cannot restore", read())?;
    let mut values = values.map(Vec::into_iter);
    for (name, variable) in wanted {
        let (ty, count) = (variable.ty(), elements(&variable.ty()));
        let own = match values.as_mut().and_then(Iterator::next) {
            Some(own) => own,
            None => file.read_range(name, range_of(count, world))?,
        };
        let whole = match world.size() {
            1 => own,
            ranks => {
                let each = count.div_ceil(ranks);
                let short = each - range_of(count, world).len();
                let filled = own.pad(&[[0, short]], PadMode::Constant(0.into()))?;
                drop(own);
                filled.all_gather(world)?.slice(&[(0..count as i64).into()])?
            }
        };
        variable.assign(&whole.reshape(ty.shape)?)?;
    }
    Ok(found)
}
