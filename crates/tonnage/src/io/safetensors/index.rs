//! The index of a model in several files: which tensor is in which.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tonnage_core::Result;

use super::{MOST_HEADER, One, SafeTensors, bad_file};
use crate::io::{open_file, read_text};

/// What it is called.
pub(super) const NAME: &str = "model.safetensors.index.json";

#[derive(Serialize, Deserialize)]
pub(super) struct ShardIndex {
    #[serde(default)]
    pub metadata: BTreeMap<String, serde_json::Value>,
    pub weight_map: BTreeMap<String, String>,
}

/// Opens all files that an index names, or that of a folder.
pub(super) fn open(path: &Path) -> Result<SafeTensors> {
    let (path, folder): (PathBuf, &Path) = match path.is_dir() {
        true => {
            super::foreign::check_folder(path)?;
            (path.join(NAME), path)
        }
        false => (path.into(), path.parent().unwrap_or(Path::new(""))),
    };
    let wrong = |what: String| bad_file(&path, what, "it is no index of tensors, or damaged");
    let length = open_file(&path)?.1;
    if length > MOST_HEADER {
        return Err(wrong(format!("has {length} bytes")));
    }
    let text = read_text(&path)?;
    let index: ShardIndex = serde_json::from_str(&text).map_err(|e| wrong(format!("({e})")))?;
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut files, mut tensors): (Vec<One>, BTreeMap<String, usize>) = Default::default();
    for (name, file) in &index.weight_map {
        if !is_name(file) {
            return Err(wrong(format!(
                "says that `{name}` is in `{file}`, which is not beside it"
            )));
        }
        let number = match numbers.get(file.as_str()) {
            Some(number) => *number,
            None => {
                files.push(One::open(&folder.join(file))?);
                numbers.insert(file, files.len() - 1);
                files.len() - 1
            }
        };
        if !files[number].tensors.contains_key(name) {
            return Err(wrong(format!("says that `{name}` is in `{file}`, where it is not")));
        }
        tensors.insert(name.clone(), number);
    }
    Ok(SafeTensors { path, files, tensors })
}

/// The files that the index of a folder names, beside it; none where it has no index that can be read.
pub(super) fn files(folder: &Path) -> BTreeSet<String> {
    let text = read_text(folder.join(NAME)).unwrap_or_default();
    let index: Option<ShardIndex> = serde_json::from_str(&text).ok();
    let files = index.into_iter().flat_map(|index| index.weight_map.into_values());
    files.filter(|file| is_name(file)).collect()
}

/// Whether it is a name and no path: whoever wrote an index must not decide what is read, or removed, outside of its folder.
fn is_name(file: &str) -> bool {
    Path::new(file).file_name().is_some_and(|last| last == file)
}
