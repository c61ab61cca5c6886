//! What to learn from: what the program brings with it, or the user's own.

mod pictures;
mod ratings;
pub mod text;

use std::path::Path;

use tonnage::Tensor;
use tonnage::data::Dataset;

use crate::models::Task;

/// Rows: what goes in, and what should come out.
pub type Examples = Dataset<(Tensor, Tensor)>;

/// What to learn from, with a part held out.
pub struct TrainTestData {
    pub learn: Examples,
    pub held_out: Examples,
    /// Kinds of pictures, characters, or people and things.
    pub classes: Vec<usize>,
    /// The characters of a text, in the order of their indices.
    pub characters: String,
    /// What ratings are on average.
    pub mean: f32,
}

/// Where it is, and how it is cut.
pub struct Wanted<'a> {
    /// A file or a folder; without it, what the program brings with it.
    pub path: Option<&'a Path>,
    /// Characters that are seen at once.
    pub length: usize,
    /// The characters of a model that is there already.
    pub characters: Option<&'a str>,
    /// For a plan: the rows that a step takes. There are at least so many then, whatever the data have.
    pub planned: Option<usize>,
}

/// Reads it.
pub fn load(task: Task, wanted: &Wanted<'_>) -> Result<TrainTestData, String> {
    let mut data = match task {
        Task::Pictures => pictures::load(wanted.path),
        Task::Text => text::load(wanted),
        Task::Ratings => ratings::load(wanted.path),
    }?;
    if let Some(rows) = wanted.planned {
        data.learn = at_least(data.learn, rows)?;
    }
    Ok(data)
}

/// At least so many rows: where there are fewer, the first one is repeated. What a step takes does not depend on what is in them.
fn at_least(data: Examples, rows: usize) -> Result<Examples, String> {
    let there = data.len();
    if there == 0 || rows <= there {
        return Ok(data);
    }
    eprintln!("note: `train` would need {rows} rows for a step, and the data have {there}");
    // Broadcast, so that it takes no memory.
    let repeated = |all: &Tensor| -> tonnage::Result<Tensor> {
        let mut shape = all.shape();
        shape[0] = rows.into();
        all.slice(&[(0..1).into()])?.broadcast_to(shape)
    };
    let (given, wanted) = data.whole();
    let both = repeated(given).and_then(|given| Dataset::of((given, repeated(wanted)?)));
    both.map_err(said)
}

/// What the library says, as the command says it.
fn said(error: tonnage::Error) -> String {
    error.to_string()
}
