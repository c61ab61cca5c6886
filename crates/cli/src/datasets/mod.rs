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
}

/// Reads it.
pub fn load(task: Task, wanted: &Wanted<'_>) -> Result<TrainTestData, String> {
    match task {
        Task::Pictures => pictures::load(wanted.path),
        Task::Text => text::load(wanted),
        Task::Ratings => ratings::load(wanted.path),
    }
}

/// What the library says, as the command says it.
fn said(error: tonnage::Error) -> String {
    error.to_string()
}
