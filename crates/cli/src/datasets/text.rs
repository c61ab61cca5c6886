//! Text, as numbers of characters.
//!
//! The text in `data/` is the beginning of "The Tragedy of Coriolanus" by William Shakespeare (about 1608), which is in the public domain.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tonnage::data::Dataset;
use tonnage::io::read_text;
use tonnage::{Tensor, tensor};

use super::{TrainTestData, Wanted, said};

const OWN: &str = include_str!("../../data/coriolanus.txt");

/// More different characters than this are no text that is learned by characters.
const MOST: usize = 4096;

/// For a plan, a text is repeated up to this many characters.
const MOST_PLANNED: usize = 1 << 24;

/// Fewer rows than this are not learned from.
const LEAST: usize = 20;

/// Rows of `length` characters, and of those that come next. The last tenth is held out.
pub fn load(wanted: &Wanted<'_>) -> Result<TrainTestData, String> {
    let text = match wanted.path {
        None => OWN.to_string(),
        Some(path) => read(path)?,
    };
    let name = wanted.path.map_or("the text".into(), |path| path.display().to_string());
    let characters = match wanted.characters {
        Some(characters) => characters.to_string(),
        None => text.chars().collect::<BTreeSet<char>>().into_iter().collect(),
    };
    let classes = characters.chars().count();
    if classes > MOST {
        return Err(format!("{name}: {classes} different characters; is it a text?"));
    }
    let mut numbers = numbers(&text, &characters)
        .map_err(|c| format!("{name}: `{c}` is no character that the model knows"))?;
    let length = wanted.length;
    let (there, enough) = (numbers.len(), length.saturating_mul(LEAST).saturating_add(1));
    if wanted.planned.is_some() && (1..enough).contains(&there) && enough <= MOST_PLANNED {
        eprintln!("note: `train` would need {enough} characters, and the text has {there}");
        numbers = numbers.iter().copied().cycle().take(enough).collect();
    }
    // Each row needs one more character, for what comes next.
    let rows = numbers.len().saturating_sub(1) / length.max(1);
    if rows < LEAST || length == 0 {
        let there = numbers.len();
        return Err(format!(
            "{name}: {there} characters make {rows} rows of {length}; give at least {LEAST} rows"
        ));
    }
    let learn = rows - rows / 10;
    let part = |from: usize, to: usize| -> Result<super::Examples, String> {
        let cut = |shift: usize| -> tonnage::Result<Tensor> {
            tensor(&numbers[from * length + shift..to * length + shift])?
                .reshape([to - from, length])
        };
        Dataset::of((cut(0).map_err(said)?, cut(1).map_err(said)?)).map_err(said)
    };
    let (learn, held_out) = (part(0, learn)?, part(learn, rows)?);
    Ok(TrainTestData { learn, held_out, classes: vec![classes], characters, mean: 0.0 })
}

/// The numbers of a text's characters, or the first that has none.
pub fn numbers(text: &str, characters: &str) -> Result<Vec<i64>, char> {
    let known: Vec<char> = characters.chars().collect();
    text.chars().map(|c| known.binary_search(&c).map(|i| i as i64).map_err(|_| c)).collect()
}

/// A file, or all `.txt` files of a folder in the order of their names.
fn read(path: &Path) -> Result<String, String> {
    let wrong = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    if !path.is_dir() {
        return read_text(path).map_err(said);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(|e| wrong(path, e))? {
        let file = entry.map_err(|e| wrong(path, e))?.path();
        if file.extension().is_some_and(|e| e == "txt") {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(format!("{}: no text here; put .txt files into it", path.display()));
    }
    let texts = files.iter().map(|file| read_text(file).map_err(said));
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
}
