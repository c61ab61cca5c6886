//! What is told how training goes, and may end it.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tonnage_core::{Bytes, Result};

use super::checkpoint::Position;
use crate::io::{bad_file, failed};

/// What is told after every step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Where training is.
    pub position: Position,
    /// Steps that there will be in all, where that is known before.
    pub steps: Option<u64>,
    /// This step's loss.
    pub loss: f64,
    /// Rows learned from in a second, on average.
    pub rows_per_second: f64,
    /// Held now, by everyone.
    pub held: Bytes,
    /// The most that a step was seen to take.
    pub measured: Bytes,
    /// What its plan said that it would take.
    pub predicted: Bytes,
}

/// What is told after every epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Epoch {
    /// Where training is.
    pub position: Position,
    /// The mean loss of its steps; of those since training went on, where it stopped in between, and NaN where there is none.
    pub loss: f64,
    /// The mean loss on what is held out, where something is.
    pub held_out: Option<f64>,
}

impl Epoch {
    /// How bad it is: the loss on what is held out, or where nothing is, that of the steps.
    pub fn score(&self) -> f64 {
        self.held_out.unwrap_or(self.loss)
    }
}

/// What becomes of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Go {
    /// It goes on.
    On,
    /// It ends here; a checkpoint is saved.
    Stop,
}

impl Go {
    /// On where both are.
    pub(super) fn and(self, other: Go) -> Go {
        if self == Go::On { other } else { Go::Stop }
    }
}

/// Something that follows training. A closure from `&Progress` to [`Go`] is one; so are two or three in a tuple, which are all told.
///
/// ```
/// use tonnage::train::{EarlyStopping, Go, Log, Progress};
/// let path = std::env::temp_dir().join(format!("log-{}.csv", std::process::id()));
/// let show = |progress: &Progress| {
///     println!("{}", progress.loss);
///     Go::On
/// };
/// let callbacks = (show, EarlyStopping::new(3), Log::csv(&path)?);
/// # fn is_one(_: impl tonnage::train::Callback) {}
/// # is_one(callbacks);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), tonnage::Error>(())
/// ```
pub trait Callback {
    /// After a step.
    fn step(&mut self, _: &Progress) -> Result<Go> {
        Ok(Go::On)
    }

    /// After a time through the data.
    fn epoch(&mut self, _: &Epoch) -> Result<Go> {
        Ok(Go::On)
    }
}

impl<F: FnMut(&Progress) -> Go> Callback for F {
    fn step(&mut self, progress: &Progress) -> Result<Go> {
        Ok(self(progress))
    }
}

impl<A: Callback, B: Callback> Callback for (A, B) {
    fn step(&mut self, progress: &Progress) -> Result<Go> {
        Ok(self.0.step(progress)?.and(self.1.step(progress)?))
    }
    fn epoch(&mut self, epoch: &Epoch) -> Result<Go> {
        Ok(self.0.epoch(epoch)?.and(self.1.epoch(epoch)?))
    }
}

impl<A: Callback, B: Callback, C: Callback> Callback for (A, B, C) {
    fn step(&mut self, progress: &Progress) -> Result<Go> {
        Ok(self.0.step(progress)?.and(self.1.step(progress)?).and(self.2.step(progress)?))
    }
    fn epoch(&mut self, epoch: &Epoch) -> Result<Go> {
        Ok(self.0.epoch(epoch)?.and(self.1.epoch(epoch)?).and(self.2.epoch(epoch)?))
    }
}

impl<C: Callback> Callback for Option<C> {
    fn step(&mut self, progress: &Progress) -> Result<Go> {
        self.as_mut().map_or(Ok(Go::On), |one| one.step(progress))
    }
    fn epoch(&mut self, epoch: &Epoch) -> Result<Go> {
        self.as_mut().map_or(Ok(Go::On), |one| one.epoch(epoch))
    }
}

/// Ends training where the score of a time through the data was not better than the best before for some times in a row.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlyStopping {
    patience: u64,
    by: f64,
    best: f64,
    since: u64,
}

impl EarlyStopping {
    /// After `patience` epochs without improvement; at least one.
    pub fn new(patience: u64) -> EarlyStopping {
        EarlyStopping { patience: patience.max(1), by: 0.0, best: f64::INFINITY, since: 0 }
    }

    /// Better means lower by more than this.
    #[must_use]
    pub fn better_by(self, by: f64) -> EarlyStopping {
        EarlyStopping { by, ..self }
    }
}

impl Callback for EarlyStopping {
    fn epoch(&mut self, epoch: &Epoch) -> Result<Go> {
        let score = epoch.score();
        if score < self.best - self.by {
            (self.best, self.since) = (score, 0);
        } else {
            self.since += 1;
        }
        Ok(if self.since >= self.patience { Go::Stop } else { Go::On })
    }
}

/// A file with a line for every step (CSV), or for every step and every epoch (JSON). A line is in the file when the step is over.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    json: bool,
}

/// A line.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum LogLine {
    Step {
        step: u64,
        epoch: u64,
        loss: f64,
        rows_per_second: f64,
        held: u64,
        measured: u64,
        predicted: u64,
    },
    Epoch {
        step: u64,
        epoch: u64,
        loss: f64,
        held_out: Option<f64>,
    },
}

const COLUMNS: &str = "step,epoch,loss,rows_per_second,held,measured,predicted\n";

impl Log {
    /// A table with names of columns. What is in the file already stays, and is gone on with.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn csv(path: impl AsRef<Path>) -> Result<Log> {
        Log::open(path.as_ref(), false)
    }

    /// A JSON object a line. What is in the file already stays.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn json(path: impl AsRef<Path>) -> Result<Log> {
        Log::open(path.as_ref(), true)
    }

    fn open(path: &Path, json: bool) -> Result<Log> {
        let file = OpenOptions::new().create(true).read(true).append(true).open(path);
        let mut file = file.map_err(|e| failed(path, "opened", &e))?;
        let end = file.seek(SeekFrom::End(0)).map_err(|e| failed(path, "read", &e))?;
        let mut log = Log { path: path.into(), file, json };
        if !json && end == 0 {
            log.put(COLUMNS)?;
        }
        Ok(log)
    }

    fn put(&mut self, line: &str) -> Result<()> {
        self.file.write_all(line.as_bytes()).map_err(|e| failed(&self.path, "written", &e))
    }

    fn line(&mut self, line: &LogLine) -> Result<Go> {
        let text = serde_json::to_string(line)
            .map_err(|e| bad_file(&self.path, format!("has no line ({e})"), "report this"))?;
        self.put(&format!("{text}\n"))?;
        Ok(Go::On)
    }
}

impl Callback for Log {
    fn step(&mut self, told: &Progress) -> Result<Go> {
        let Progress { position, loss, rows_per_second, .. } = *told;
        let (held, measured) = (told.held.get(), told.measured.get());
        let (step, epoch, predicted) = (position.step, position.epoch, told.predicted.get());
        if self.json {
            let line =
                LogLine::Step { step, epoch, loss, rows_per_second, held, measured, predicted };
            return self.line(&line);
        }
        let rate = rows_per_second;
        self.put(&format!("{step},{epoch},{loss},{rate:.1},{held},{measured},{predicted}\n"))?;
        Ok(Go::On)
    }

    fn epoch(&mut self, told: &Epoch) -> Result<Go> {
        let Epoch { position, loss, held_out } = *told;
        if !self.json {
            return Ok(Go::On);
        }
        self.line(&LogLine::Epoch { step: position.step, epoch: position.epoch, loss, held_out })
    }
}
