//! Writing safetensors: one file, or several of a size and an index.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::SeekFrom;
use std::path::Path;

use safetensors::tensor::TensorInfo;
use tonnage_core::{Bytes, Result, Source};
use tonnage_runtime::spill::Checksum;

use super::index::{self, NAME, ShardIndex};
use super::{CHECKSUMS, Order, bad_file, before_checksums, dtype_to, failed};
use crate::io::checksum::{DIGITS, Summed, digits, find_last, seal};
use crate::io::{put_elements, save_text, write_atomically};
use crate::tensor::Tensor;

/// What notes are called in a header.
const NOTES: &str = "__metadata__";

/// Saves named tensors and texts, atomically, with checksums. Takes no more than the largest tensor that has to be written out (a recipe or
/// a view); those in memory are written from where they lie.
///
/// # Errors
/// Where two tensors have one name, or the file cannot be written; the old one is then still there.
#[track_caller]
pub fn save_safetensors<'t>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (&'t str, &'t Tensor)>,
    notes: &[(&str, &str)],
) -> Result<()> {
    let (path, source) = (path.as_ref(), Source::here());
    save_one(path, tensors.into_iter().collect(), notes, source).map_err(|e| e.at(source))
}

fn save_one(
    path: &Path,
    mut tensors: Vec<(&str, &Tensor)>,
    notes: &[(&str, &str)],
    source: Source,
) -> Result<()> {
    tensors.sort_by_key(|(name, _)| *name);
    if let Some(pair) = tensors.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let what = format!("two tensors are called `{}`", pair[0].0);
        return Err(bad_file(path, what, "give each a name of its own"));
    }
    let (mut infos, mut end) = (Vec::with_capacity(tensors.len()), 0usize);
    for (name, tensor) in &tensors {
        let array = tensor.array("save_safetensors")?;
        let start = end;
        end += array.ty().bytes("save_safetensors")?.as_usize();
        let (dtype, shape) = (dtype_to(array.dtype()), array.sizes().to_vec());
        infos.push((*name, TensorInfo { dtype, shape, data_offsets: (start, end) }));
    }
    write_atomically(path, |file| {
        // What cannot seek, such as a pipe, has no checksums: they are known when all is written.
        let start = file.stream_position().ok();
        let sums = start.map(|_| "0".repeat(DIGITS * (1 + tensors.len())));
        let mut header = header(path, &infos, notes, sums.as_deref())?;
        let mut put = |bytes: &[u8]| file.write_all(bytes).map_err(|e| failed(path, "written", &e));
        put(&(header.len() as u64).to_le_bytes())?;
        put(&header)?;
        let mut sums = String::new();
        for (_, tensor) in &tensors {
            let mut summed = Summed { to: file, sum: Checksum::default() };
            let array = tensor.array("save_safetensors")?;
            put_elements(&mut summed, array, Order::default(), path, source)?;
            sums.push_str(&digits(summed.sum.finish()));
        }
        let before = before_checksums();
        if let (Some(start), Some(at)) = (start, find_last(&header, &before)) {
            let at = at + before.len();
            header[at + DIGITS..][..sums.len()].copy_from_slice(sums.as_bytes());
            seal(&mut header, at);
            let mut put = || {
                file.seek(SeekFrom::Start(start + 8))?;
                file.write_all(&header)?;
                file.seek(SeekFrom::End(0))
            };
            put().map_err(|e| failed(path, "written", &e))?;
        }
        Ok(())
    })
}

/// The header: what lies where, and the notes, with room for checksums. Its length is such that tensors begin at a multiple of 8.
fn header(
    path: &Path,
    infos: &[(&str, TensorInfo)],
    notes: &[(&str, &str)],
    sums: Option<&str>,
) -> Result<Vec<u8>> {
    let wrong = |what: String| bad_file(path, what, "rename the tensors");
    let failed = |e: serde_json::Error| wrong(format!("has no header ({e})"));
    let mut notes: BTreeMap<&str, &str> = notes.iter().copied().collect();
    // The checksums of a file that these notes came from are not those of this one.
    notes.remove(CHECKSUMS);
    notes.extend(sums.map(|sums| (CHECKSUMS, sums)));
    let mut all = BTreeMap::from([(NOTES, serde_json::to_value(notes).map_err(failed)?)]);
    for (name, info) in infos {
        if all.insert(name, serde_json::to_value(info).map_err(failed)?).is_some() {
            return Err(wrong(format!("has no header: a tensor is called `{name}`")));
        }
    }
    let mut header = serde_json::to_vec(&all).map_err(failed)?;
    header.resize(header.len().next_multiple_of(8), b' ');
    Ok(header)
}

/// Saves named tensors and texts as files of a bounded number of bytes of tensors each, and an index, in a folder, which is made where it is not
/// there. A tensor is never cut: one that is larger has a file of its own. The index comes last and atomically; files of a model that was in the folder before
/// are never written over, and go when the index no longer names them: whoever opens the folder, also after a `kill -9` at any moment, finds
/// the old model or the new one. Both are on the disk for that time.
///
/// ```
/// use tonnage::io::{SafeTensors, save_sharded};
/// let folder = std::env::temp_dir().join(format!("shards-{}", std::process::id()));
/// let (a, b) = (tonnage::zeros([100])?, tonnage::ones([100])?);
/// save_sharded(&folder, [("a", &a), ("b", &b)], &[], "500B".parse()?)?;
/// assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3);
/// assert_eq!(SafeTensors::open(&folder)?.read("b")?.to_vec::<f32>()?, [1.0; 100]);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// As [`save_safetensors`] has them.
#[track_caller]
pub fn save_sharded<'t>(
    folder: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (&'t str, &'t Tensor)>,
    notes: &[(&str, &str)],
    most: Bytes,
) -> Result<()> {
    let (folder, source) = (folder.as_ref(), Source::here());
    let save = || {
        let tensors: Vec<(&str, &Tensor)> = tensors.into_iter().collect();
        fs::create_dir_all(folder).map_err(|e| failed(folder, "made", &e))?;
        let (mut parts, mut size, mut total) = (vec![Vec::new()], Bytes::ZERO, Bytes::ZERO);
        for (name, tensor) in tensors {
            let bytes = tensor.ty().bytes("save_sharded")?;
            if !size.is_zero() && size + bytes > most {
                parts.push(Vec::new());
                size = Bytes::ZERO;
            }
            (size, total) = (size + bytes, total + bytes);
            if let Some(part) = parts.last_mut() {
                part.push((name, tensor));
            }
        }
        let before = index::files(folder);
        let names = names(parts.len(), &before);
        let mut weight_map = BTreeMap::new();
        for (file, part) in names.iter().zip(&parts) {
            for (name, _) in part {
                if weight_map.insert(name.to_string(), file.clone()).is_some() {
                    let what = format!("two tensors are called `{name}`");
                    return Err(bad_file(folder, what, "give each a name of its own"));
                }
            }
        }
        let put = || {
            for (file, part) in names.iter().zip(parts) {
                save_one(&folder.join(file), part, notes, source)?;
            }
            let metadata = BTreeMap::from([("total_size".to_string(), total.get().into())]);
            let index = ShardIndex { metadata, weight_map };
            let path = folder.join(NAME);
            let text = serde_json::to_string_pretty(&index)
                .map_err(|e| bad_file(&path, format!("has no text ({e})"), "rename the tensors"))?;
            save_text(&path, &text)
        };
        let put = put();
        // Those of the old model, or where it stays, what was written of the new one. A file that stays costs disk, and nothing else.
        let gone: Vec<&String> =
            if put.is_ok() { before.iter().collect() } else { names.iter().collect() };
        for file in gone {
            let _ = fs::remove_file(folder.join(file));
        }
        put
    };
    save().map_err(|e| e.at(source))
}

/// Names for `count` files, none of which is among those of the model before.
fn names(count: usize, before: &BTreeSet<String>) -> Vec<String> {
    let all = |number: usize| -> Vec<String> {
        let lead = if number == 0 { "model".into() } else { format!("model-{number}") };
        (1..=count).map(|i| format!("{lead}-{i:05}-of-{count:05}.safetensors")).collect()
    };
    let is_free = |names: &Vec<String>| names.iter().all(|name| !before.contains(name));
    (0..=before.len()).map(all).find(is_free).unwrap_or_else(|| all(before.len() + 1))
}
