//! Tensors from one format to another, a piece at a time.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tonnage_core::recipe::{Elements, Generator, Stored};
use tonnage_core::{Bytes, Result, Source};
use tonnage_runtime::Array;

use super::{
    Csv, TensorFile, bad_file, save_idx, save_npy, save_npz, save_npz_deflated, save_safetensors,
};
use crate::tensor::Tensor;

impl TensorFile {
    /// Saves its tensors, or one of them, in the format that the end of a name says (npy, npz, safetensors, idx, csv), atomically. Elements
    /// go through in pieces of 1 MiB, but for those that are packed, and csv, which are in memory as a whole. `deflate` packs an npz; `progress` is
    /// told the bytes that were read, by whichever thread read them.
    ///
    /// ```
    /// use tonnage::io::{SafeTensors, TensorFile, save_npy};
    /// let folder = std::env::temp_dir();
    /// let name = |end: &str| folder.join(format!("weight-{}.{end}", std::process::id()));
    /// save_npy(name("npy"), &tonnage::tensor([1.0f32, 2.0])?)?;
    /// let file = TensorFile::open(name("npy"))?;
    /// file.save_as(name("safetensors"), None, false, |_| {})?;
    /// assert_eq!(SafeTensors::open(name("safetensors"))?.names().count(), 1);
    /// # std::fs::remove_file(name("npy")).unwrap();
    /// # std::fs::remove_file(name("safetensors")).unwrap();
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where the end of the name is none of these, the format has room for one tensor and there are several, or cannot hold them.
    #[track_caller]
    pub fn save_as(
        &self,
        path: impl AsRef<Path>,
        only: Option<&str>,
        deflate: bool,
        progress: impl Fn(Bytes) + Send + Sync + 'static,
    ) -> Result<()> {
        let (path, source) = (path.as_ref(), Source::here());
        self.save(path, only, deflate, Arc::new(progress)).map_err(|e| e.at(source))
    }

    fn save(&self, path: &Path, only: Option<&str>, deflate: bool, tell: Tell) -> Result<()> {
        let names = match only {
            Some(name) => vec![name],
            None => self.names(),
        };
        let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        // Before anything is read.
        let several = match end {
            "npz" | "safetensors" => true,
            "npy" | "idx" | "csv" => false,
            _ => {
                let what = format!("ends in `{end}`");
                return Err(bad_file(path, what, "use npy, npz, safetensors, idx or csv"));
            }
        };
        if deflate && end != "npz" {
            return Err(bad_file(path, "is not packed", "pack an npz, or leave it as it is"));
        }
        // What is damaged must not get a checksum as if it were not.
        for name in &names {
            self.tensor(name)?.map_or(Ok(()), |tensor| tensor.check())?;
        }
        let tensors: Vec<Tensor> =
            names.iter().map(|name| watched(self.lazy(name)?, &tell)).collect::<Result<_>>()?;
        let pairs = names.iter().copied().zip(&tensors);
        match (end, several, tensors.as_slice()) {
            ("npz", ..) if deflate => save_npz_deflated(path, pairs),
            ("npz", ..) => save_npz(path, pairs),
            (_, true, _) => save_safetensors(path, pairs, &[]),
            ("npy", _, [one]) => save_npy(path, one),
            ("idx", _, [one]) => save_idx(path, one),
            (_, _, [one]) => Csv::new().save(path, one, &[]),
            (_, _, []) => Err(bad_file(path, "holds one tensor, and there is none", "use npz")),
            _ => {
                let what = format!("has room for one tensor, and there are {}", tensors.len());
                let near = names.iter().take(5).copied().collect::<Vec<_>>().join("`, `");
                Err(bad_file(path, what, &format!("name one, such as `{near}`, or use npz")))
            }
        }
    }
}

type Tell = Arc<dyn Fn(Bytes) + Send + Sync>;

/// The same tensor, of which every read is told; one in memory as it is.
fn watched(tensor: Tensor, tell: &Tell) -> Result<Tensor> {
    let Some(recipe) = tensor.array("convert")?.as_recipe() else { return Ok(tensor) };
    let mut recipe = (*recipe).clone();
    for (generator, _) in &mut recipe.sources {
        if let Generator::Stored { elements, .. } = generator {
            let watched = ObservedReads { of: elements.0.clone(), tell: tell.clone() };
            *elements = Stored(Arc::new(watched));
        }
    }
    Ok(Tensor::from_array(Array::from_recipe(Arc::new(recipe))))
}

/// Elements in a file, of which every read is told.
struct ObservedReads {
    of: Arc<dyn Elements>,
    tell: Tell,
}

impl fmt::Debug for ObservedReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of.fmt(f)
    }
}

impl Elements for ObservedReads {
    fn read(&self, from: u64, out: &mut [u8]) {
        self.of.read(from, out);
        (self.tell)(Bytes::of(out.len()));
    }

    fn ahead(&self, from: u64, count: usize) {
        self.of.ahead(from, count);
    }

    fn check(&self) -> Result<()> {
        self.of.check()
    }

    fn mapped(&self) -> Option<&[u8]> {
        self.of.mapped()
    }
}
