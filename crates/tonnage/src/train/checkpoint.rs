//! Checkpoints: everything that training goes on from, in a folder.
//!
//! The tensors are a safetensors file of their own for each checkpoint, or on several ranks files of ranges with an index (`elastic`); `checkpoint.json` names the last
//! good one. That file is written last and atomically, so that a `kill -9` at any moment leaves the one before. All of them hold checksums: what is restored is what was
//! saved.
//!
//! One process at a time writes to a folder. Whatever a killed one left there that `checkpoint.json` does not name, the next save removes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tonnage_core::{Bytes, Result, World};
use tonnage_runtime::{FolderLock, random};

use super::agree::{self, Failed};
use super::elastic::{load_ranges, own_ranges};
use super::load::{Loading, load};
use crate::io::{
    RangedTensors, SafeTensors, bad_file, failed, read_json, save_json, save_safetensors,
};
use crate::nn::Parameters;
use crate::variable::Variable;

/// The file that names the last good checkpoint.
const NAME: &str = "checkpoint.json";

/// How the files of tensors are called: this, a number of at least nine digits, and the end of the format; those of ranges have a second number behind a dash, and
/// which of how many they are, or the end of their index.
const FILES: (&str, &str) = ("step-", ".safetensors");

/// How an index of ranges ends.
pub(super) const INDEX: &str = ".ranges.json";

/// Where training is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// Steps that were made.
    pub step: u64,
    /// Epochs that are over.
    pub epoch: u64,
    /// Batches of this time that were learned from.
    pub batch: u64,
}

/// What `checkpoint.json` holds.
#[derive(Debug, Serialize, Deserialize)]
struct CheckpointRecord {
    version: u32,
    position: Position,
    /// The global seed, and how many keys were drawn from it.
    random: (u64, u64),
    /// The tensors' file, and those of earlier checkpoints that are still there, oldest first.
    file: String,
    earlier: Vec<String>,
    /// The file of the best one, and how bad it is.
    #[serde(default)]
    best: Option<(String, f64)>,
    /// The number of the last save in ranges; 0 where there was none.
    #[serde(default)]
    number: u64,
}

/// Which checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The last.
    Last,
    /// The one with the lowest score; where none has a score, the last.
    Best,
}

/// A folder of checkpoints, which is theirs alone. From the first save on, this process holds it until the last clone of this is dropped.
///
/// ```
/// use tonnage::train::{Checkpoints, Position};
/// use tonnage::{Variable, tensor};
/// let folder = std::env::temp_dir().join(format!("checkpoints-{}", std::process::id()));
/// let w = Variable::new("w", tensor([1.0f32, 2.0])?)?;
/// let named = [("w".to_string(), w.clone())];
/// let checkpoints = Checkpoints::new(&folder).keep(2);
/// checkpoints.save(&named, Position { step: 10, epoch: 0, batch: 10 })?;
/// w.assign(&tensor([0.0f32, 0.0])?)?;
/// let position = checkpoints.restore(&named)?.unwrap();
/// assert_eq!((position.step, w.read()?.to_vec::<f32>()?), (10, vec![1.0, 2.0]));
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Checkpoints {
    folder: PathBuf,
    keep: usize,
    best: bool,
    world: World,
    /// Bytes of tensors that were read, by all clones.
    read: Arc<AtomicU64>,
    /// The folder's lock, once it is taken: shared by all clones.
    held: Arc<Mutex<Option<Arc<FolderLock>>>>,
}

impl Checkpoints {
    /// In a folder, which is made where it is not there. The last three are kept.
    pub fn new(folder: impl Into<PathBuf>) -> Checkpoints {
        let (folder, world) = (folder.into(), World::alone());
        let (read, held) = (Arc::default(), Arc::default());
        Checkpoints { folder, keep: 3, best: false, world, read, held }
    }

    /// Keeps the last `keep` checkpoints, at least one.
    #[must_use]
    pub fn keep(self, keep: usize) -> Checkpoints {
        Checkpoints { keep: keep.max(1), ..self }
    }

    /// Keeps the one with the lowest score too. [`Fit`](super::Fit) gives one after every epoch: the loss on what is held out,
    /// or where nothing is, that of the steps.
    #[must_use]
    pub fn keep_best(self) -> Checkpoints {
        Checkpoints { best: true, ..self }
    }

    /// Those of all ranks of a world: every rank saves and restores at the same time, in a folder that all of them see. Each writes its range of every tensor, and reads
    /// its range, also where another number of ranks has saved them, or one process.
    ///
    /// ```
    /// use tonnage::train::Checkpoints;
    /// let checkpoints = Checkpoints::new("runs").across(&tonnage::world::join()?);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[must_use]
    pub fn across(self, world: &World) -> Checkpoints {
        Checkpoints { world: world.clone(), ..self }
    }

    pub(super) fn world(&self) -> &World {
        &self.world
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the one with the lowest score is kept.
    pub(super) fn keeps_best(&self) -> bool {
        self.best
    }

    /// Makes the folder where it is not there, and holds it for this process until the last clone of this is dropped. Saving does so by itself; training does
    /// it before the first step. Of several ranks the first holds it for all.
    ///
    /// # Errors
    /// Where another process holds it, which the error names; or it cannot be written.
    pub fn lock(&self) -> Result<()> {
        match self.world.rank() {
            0 => self.held().map(|_| ()),
            _ => Ok(()),
        }
    }

    fn held(&self) -> Result<Arc<FolderLock>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = self.folder.as_path();
        fs::create_dir_all(folder).map_err(|e| failed(folder, "made", &e))?;
        if let Some(lock) = held.as_ref() {
            return Ok(lock.clone());
        }
        Ok(held.insert(FolderLock::take(folder)?).clone())
    }

    /// Saves named variables and where training is, with the state of the random numbers. Takes at most one variable's bytes.
    ///
    /// # Errors
    /// Where the folder cannot be written, or another process writes to it. The last good checkpoint is then still there.
    #[track_caller]
    pub fn save(&self, variables: &[(String, Variable)], position: Position) -> Result<()> {
        self.save_scored(variables, position, None)
    }

    /// Saves, with how bad it is: the one with the lowest score is kept beside the last ones.
    ///
    /// # Errors
    /// As [`Checkpoints::save`] has them.
    #[track_caller]
    pub fn save_scored(
        &self,
        variables: &[(String, Variable)],
        position: Position,
        score: Option<f64>,
    ) -> Result<()> {
        Ok(self.try_save(variables, position, score)?)
    }

    /// The same, which knows whose an error is.
    pub(super) fn try_save(
        &self,
        variables: &[(String, Variable)],
        position: Position,
        score: Option<f64>,
    ) -> std::result::Result<(), Failed> {
        match self.world.size() {
            1 => agree::on_errors(
                &self.world,
                "cannot save",
                self.save_whole(variables, position, score),
            ),
            _ => self.save_together(own_ranges(variables, &self.world), position, score),
        }
    }

    fn save_whole(
        &self,
        variables: &[(String, Variable)],
        position: Position,
        score: Option<f64>,
    ) -> Result<()> {
        let lock = self.held()?;
        let turn = lock.turn()?;
        let file = format!("{}{:09}{}", FILES.0, position.step, FILES.1);
        let values = variables
            .iter()
            .map(|(name, variable)| Ok((name.as_str(), variable.read()?)))
            .collect::<Result<Vec<_>>>()?;
        let tensors = values.iter().map(|(name, value)| (*name, value));
        save_safetensors(self.folder.join(&file), tensors, &[("format", "tonnage checkpoint")])?;
        drop(turn);
        self.name_last(file, position, score)
    }

    /// Holds the folder, and gives the number of the next save in ranges.
    pub(super) fn next_number(&self) -> Result<u64> {
        self.held()?;
        Ok(self.record()?.map_or(0, |record| record.number) + 1)
    }

    /// Writes the record of a checkpoint whose tensors are in a file of the folder, and removes those that it no longer keeps.
    pub(super) fn name_last(
        &self,
        file: String,
        position: Position,
        score: Option<f64>,
    ) -> Result<()> {
        let lock = self.held()?;
        let _turn = lock.turn()?;
        let (mut earlier, mut best, mut number) = (Vec::new(), None, 0);
        if let Some(before) = self.record()? {
            (earlier, best, number) = (before.earlier, before.best, before.number);
            earlier.push(before.file);
        }
        let is_ranges = file.ends_with(INDEX);
        number += u64::from(is_ranges);
        earlier.retain(|name| *name != file);
        earlier.drain(..earlier.len().saturating_sub(self.keep - 1));
        // One that is saved again has a new score, or none.
        best = best.filter(|(name, _)| *name != file);
        if let Some(score) = score.filter(|score| self.best && score.is_finite())
            && best.as_ref().is_none_or(|(_, lowest)| score < *lowest)
        {
            best = Some((file.clone(), score));
        }
        let random = random::state();
        let version = if is_ranges { 2 } else { 1 };
        let record = CheckpointRecord { version, position, random, file, earlier, best, number };
        save_json(self.folder.join(NAME), &record)?;
        self.clear(&record);
        Ok(())
    }

    /// Removes checkpoints that a record does not name: those that it no longer keeps, and what processes left that were killed.
    fn clear(&self, record: &CheckpointRecord) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        // Files of ranges go with their index, by what stands before the first dot.
        let stem = |name: &str| name.split('.').next().map(str::to_owned);
        let kept: Vec<_> = record.files().map(stem).collect();
        for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
            if is_ours(&name) && !kept.contains(&stem(&name)) {
                // One that stays costs disk, and nothing else.
                let _ = fs::remove_file(self.folder.join(name));
            }
        }
    }

    /// Gives variables the values of the last good checkpoint, and random numbers their state; where training was then,
    /// or none where there is no checkpoint. Names must be the same on both sides.
    ///
    /// # Errors
    /// Where names are missing on either side (all are listed), shapes differ, or a file is damaged. Nothing has changed then.
    #[track_caller]
    pub fn restore(&self, variables: &[(String, Variable)]) -> Result<Option<Position>> {
        let Some(path) = self.last_file()? else { return Ok(None) };
        self.load_file(&path, variables, Loading::Strict)?;
        self.restore_state()
    }

    /// The file of the last good checkpoint's tensors, or its index.
    pub(super) fn last_file(&self) -> Result<Option<PathBuf>> {
        Ok(self.record()?.map(|record| self.folder.join(record.file)))
    }

    /// Gives random numbers the state of the last good checkpoint; where training was then.
    pub(super) fn restore_state(&self) -> Result<Option<Position>> {
        let Some(record) = self.record()? else { return Ok(None) };
        random::set_state(record.random);
        Ok(Some(record.position))
    }

    fn load_file(&self, path: &Path, variables: &[(String, Variable)], how: Loading) -> Result<()> {
        if path.extension().is_some_and(|end| end == "json") {
            let file = RangedTensors::open(path)?;
            let loaded = load_ranges(&file, variables, how, &self.world);
            self.read.fetch_add(file.bytes_read().get(), Ordering::Relaxed);
            return loaded.map(drop);
        }
        load(&SafeTensors::open(path)?, variables, how).map(drop)
    }

    /// Bytes of tensors that this rank has read of checkpoints in ranges: its share of what all ranks hold.
    pub fn bytes_read(&self) -> Bytes {
        Bytes::new(self.read.load(Ordering::Relaxed))
    }

    /// Gives a model's parameters the values of a checkpoint of its training, and leaves everything else alone; the checkpoint's file, or none
    /// where there is no checkpoint.
    ///
    /// # Errors
    /// Where a parameter is missing or of another shape (all are listed), or a file is damaged.
    #[track_caller]
    pub fn load_model(&self, model: &impl Parameters, which: Which) -> Result<Option<PathBuf>> {
        let Some(record) = self.record()? else { return Ok(None) };
        let file = match (which, record.best) {
            (Which::Best, Some((file, _))) => file,
            _ => record.file,
        };
        let path = self.folder.join(file);
        self.load_file(&path, &of_model(model), Loading::All)?;
        Ok(Some(path))
    }

    fn record(&self) -> Result<Option<CheckpointRecord>> {
        let path = self.folder.join(NAME);
        match fs::metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            _ => {}
        }
        let wrong = |what: String| bad_file(&path, what, "choose another folder, or mend it");
        let record: CheckpointRecord = read_json(&path, "checkpoint")?;
        match record.version {
            1 | 2 if record.files().all(is_name) => Ok(Some(record)),
            1 | 2 => Err(wrong("names a file outside of its folder".into())),
            other => Err(wrong(format!("is of version {other}, and this reads 1 and 2"))),
        }
    }
}

impl CheckpointRecord {
    fn files(&self) -> impl Iterator<Item = &str> {
        let best = self.best.iter().map(|(file, _)| file);
        self.earlier.iter().chain(best).chain([&self.file]).map(String::as_str)
    }
}

/// A model's parameters, by the names that they have in a checkpoint.
pub(super) fn of_model(model: &impl Parameters) -> Vec<(String, Variable)> {
    let all = model.parameters().into_iter();
    all.map(|p| (format!("model.{}", p.path), p.variable)).collect()
}

/// Whether a file is called as those of checkpoints are.
fn is_ours(name: &str) -> bool {
    let digits = |text: &str, least: usize| {
        text.len() >= least && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let Some((stem, end)) = name.strip_prefix(FILES.0).and_then(|name| name.split_once('.')) else {
        return false;
    };
    let Some((step, number)) = stem.split_once('-') else {
        return digits(stem, 9) && FILES.1.strip_prefix('.') == Some(end);
    };
    let part = |end: &str| {
        let (rank, ranks) = end.strip_suffix(FILES.1)?.split_once("-of-")?;
        Some(digits(rank, 5) && digits(ranks, 5))
    };
    let is_part = INDEX.strip_prefix('.') == Some(end) || part(end).unwrap_or(false);
    digits(step, 9) && digits(number, 1) && is_part
}

/// Whether it is a name and no path: checkpoints touch nothing outside of their folder.
fn is_name(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|last| last == name)
}
