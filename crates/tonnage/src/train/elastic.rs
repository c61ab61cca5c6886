//! Checkpoints of several ranks: each writes its range of every tensor to a file of its own, and when all have, rank 0 writes the index, which names them.
//! Any number of ranks restores it, and one process: each rank reads its range, and gets the rest from the others.
//!
//! The index comes last, so that a job that ends at any moment leaves the checkpoint before. Names hold a number that grows with each save, so that no file of
//! a checkpoint that is still named is ever written over.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

use tonnage_core::{Error, Result, TensorType, World};

use super::agree::{self, Failed};
use super::checkpoint::{Checkpoints, INDEX, Position};
use super::load::{Loaded, Loading, matched};
use crate::io::{RangeIndex, RangedTensors, TensorRange, bad_file, failed, save_ranges};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// What a tensor has, as far as its type says.
fn elements(ty: &TensorType) -> usize {
    ty.shape.elements().known().unwrap_or(0)
}

/// This rank's ranges of variables: of those that all ranks have whole, and of those that they hold in blocks.
pub(super) fn own_ranges(
    variables: &[(String, Variable)],
    world: &World,
) -> Result<Vec<TensorRange>> {
    let own = |(name, variable): &(String, Variable)| {
        let (name, whole) = (name.clone(), variable.ty());
        let start = world.own_range(elements(&whole)).start;
        Ok(TensorRange { name, whole, start, values: variable.read_own(world)? })
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
        write_parts(world, self.folder(), &stem, ranges, |all| {
            let file = format!("{stem}{INDEX}");
            let path = self.folder().join(&file);
            all.save(&path)?;
            self.name_last(file, position, score).inspect_err(|_| {
                let _ = fs::remove_file(&path);
            })
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

/// Writes ranges of tensors, on all ranks at once: each rank a file of its own, and when all have, rank 0 what `finish` makes of their index. Where one cannot, nothing is left.
fn write_parts(
    world: &World,
    folder: &Path,
    stem: &str,
    ranges: Result<Vec<TensorRange>>,
    finish: impl FnOnce(RangeIndex) -> Result<()>,
) -> std::result::Result<(), Failed> {
    let own = folder.join(part_name(stem, world.rank(), world.size()));
    let written = ranges.and_then(|ranges| {
        fs::create_dir_all(folder).map_err(|e| failed(folder, "made", &e))?;
        save_ranges(&own, &ranges)
    });
    let saved = agree::on_errors(world, "cannot save", written).and_then(|index| {
        let all = agree::texts(world, &index.to_text());
        let finished = match world.rank() {
            0 => joined(folder, &all).and_then(finish),
            _ => Ok(()),
        };
        agree::on_errors(world, "cannot save", finished)
    });
    if saved.is_err() {
        let _ = fs::remove_file(&own);
    }
    saved
}

/// The file of a rank.
fn part_name(stem: &str, rank: usize, ranks: usize) -> String {
    format!("{stem}.{rank:05}-of-{ranks:05}.safetensors")
}

/// The index of what all ranks have written.
fn joined(folder: &Path, texts: &[String]) -> Result<RangeIndex> {
    let mut all = RangeIndex::default();
    for text in texts {
        let Some(index) = RangeIndex::from_text(text) else {
            return Err(bad_file(folder, "gets no index of what ranks say", "report this"));
        };
        all = all.and(index);
    }
    Ok(all)
}

/// Saves variables and texts under one name, on all ranks at once: of what ranks hold in blocks each writes its own, and rank 0 writes everything else. Nothing is gathered. The index comes last, and appears whole or not
/// at all; files that it names no more are gone after that.
///
/// ```
/// use tonnage::io::RangedTensors;
/// use tonnage::train::save_across;
/// use tonnage::{Variable, tensor};
/// let path = std::env::temp_dir().join(format!("saved-{}.ranges.json", std::process::id()));
/// let named = [("w".to_string(), Variable::new("w", tensor([1.0f32, 2.0])?)?)];
/// save_across(&tonnage::world::join()?, &path, &named, &[("of", "an example")])?;
/// named[0].1.assign(&tensor([0.0f32, 0.0])?)?;
/// let saved = RangedTensors::open(&path)?;
/// saved.load("w", &named[0].1)?;
/// assert_eq!((saved.note("of"), named[0].1.read()?.to_vec::<f32>()?), (Some("an example"), vec![1.0, 2.0]));
/// # tonnage::train::remove_saved(&path).unwrap();
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// On all ranks, where one cannot write: what was saved under that name before is still there.
pub fn save_across(
    world: &World,
    index: impl AsRef<Path>,
    variables: &[(String, Variable)],
    notes: &[(&str, &str)],
) -> Result<()> {
    let index = index.as_ref();
    let (folder, name) = place(index)?;
    // No file that an index names is ever written over.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let number = agree::first(world, now.map_or(0, |since| since.as_nanos() as u64));
    let stem = format!("{name}.{number:x}");
    let held = variables.iter().filter_map(|(name, variable)| {
        let own = variable.read_held(world).or_else(|| {
            let whole = || Ok((0, variable.read()?));
            (world.rank() == 0).then(whole)
        })?;
        let range = |(start, values)| {
            let (name, whole) = (name.clone(), variable.ty());
            TensorRange { name, whole, start, values }
        };
        Some(own.map(range))
    });
    let ranges = held.collect::<Result<Vec<_>>>();
    write_parts(world, folder, &stem, ranges, |all| {
        all.with_notes(notes).save(index)?;
        clear(folder, name, Some(&stem));
        Ok(())
    })?;
    Ok(())
}

/// Removes what [`save_across`] has saved under a name.
///
/// # Errors
/// Where the index cannot be removed.
pub fn remove_saved(index: impl AsRef<Path>) -> Result<()> {
    let index = index.as_ref();
    let (folder, name) = place(index)?;
    fs::remove_file(index).map_err(|e| failed(index, "removed", &e))?;
    clear(folder, name, None);
    Ok(())
}

/// The folder of an index, and its name without the end.
fn place(index: &Path) -> Result<(&Path, &str)> {
    let name = index.file_name().and_then(|name| name.to_str()).and_then(|n| n.strip_suffix(INDEX));
    let Some(name) = name else {
        return Err(bad_file(index, "is no index of ranges", "let its name end in `.ranges.json`"));
    };
    let folder = index.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok((folder.unwrap_or(Path::new(".")), name))
}

/// Removes files of ranks that were saved under a name, but for those of one save.
fn clear(folder: &Path, name: &str, kept: Option<&str>) {
    let digits = |text: &str| text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_part = |file: &str| -> Option<bool> {
        let rest = file.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".safetensors")?;
        let (number, ranks) = rest.split_once('.')?;
        let (rank, ranks) = ranks.split_once("-of-")?;
        let is_number = number.bytes().all(|byte| byte.is_ascii_hexdigit());
        Some(is_number && digits(rank) && digits(ranks))
    };
    let is_kept = |file: &str| {
        kept.is_some_and(|kept| file.strip_prefix(kept).is_some_and(|rest| rest.starts_with('.')))
    };
    let Ok(entries) = fs::read_dir(folder) else { return };
    for file in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
        if is_part(&file) == Some(true) && !is_kept(&file) {
            // One that stays costs disk, and nothing else.
            let _ = fs::remove_file(folder.join(file));
        }
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
            file.read_range(name, world.own_range(elements(&variable.ty())))
        };
        let values = wanted.iter().map(own).collect::<Result<Vec<Tensor>>>()?;
        Ok((found, wanted, Some(values)))
    };
    let (found, wanted, values) = agree::on_errors(world, "cannot restore", read())?;
    let mut values = values.map(Vec::into_iter);
    for (name, variable) in wanted {
        let own = match values.as_mut().and_then(Iterator::next) {
            Some(own) => own,
            None => file.read_range(name, world.own_range(elements(&variable.ty())))?,
        };
        variable.assign_own(world, own)?;
    }
    Ok(found)
}
