//! Pictures to learn from: those that the program brings with it, or the user's own.
//!
//! The pictures in `data/` are the 1,797 of the test set of "Optical Recognition of Handwritten Digits" by E. Alpaydin and C. Kaynak (UCI
//! Machine Learning Repository, 1998, <https://doi.org/10.24432/C50P49>, CC BY 4.0): 8 x 8 pixels of 0 to 16, as idx files.

use std::path::{Path, PathBuf};

use tonnage::data::Dataset;
use tonnage::io::{parse_idx, read_idx};
use tonnage::{DType, Elementwise, Tensor};

/// Pictures, `[rows, height, width, 1]` of 0 to 1, and their labels.
pub type Pictures = Dataset<(Tensor, Tensor)>;

/// What to learn from: a tenth is held out, and the number of kinds.
pub struct Digits {
    pub learn: Pictures,
    pub held_out: Pictures,
    pub kinds: usize,
}

/// The pictures in a folder, or those of the program.
pub fn load(folder: Option<&Path>) -> Result<Digits, String> {
    let (images, labels) = match folder {
        None => (
            parse_idx(include_bytes!("../data/digits-images.idx")),
            parse_idx(include_bytes!("../data/digits-labels.idx")),
        ),
        Some(folder) => {
            let (images, labels) = files(folder)?;
            (read_idx(images), read_idx(labels))
        }
    };
    let say = |error: tonnage::Error| error.to_string();
    prepared(&images.map_err(say)?, &labels.map_err(say)?)
}

/// The two files of a folder, by the names that people use.
fn files(folder: &Path) -> Result<(PathBuf, PathBuf), String> {
    let names = [
        ("images.idx", "labels.idx"),
        ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
        ("train-images.idx3-ubyte", "train-labels.idx1-ubyte"),
    ];
    let found = names.iter().map(|(i, l)| (folder.join(i), folder.join(l)));
    found.into_iter().find(|(i, l)| i.exists() && l.exists()).ok_or_else(|| {
        let first = names.map(|(i, l)| format!("{i} with {l}")).join(", or ");
        format!("{}: no pictures here; put {first} into it", folder.display())
    })
}

fn prepared(images: &Tensor, labels: &Tensor) -> Result<Digits, String> {
    let (shape, rows) = (images.shape(), labels.shape());
    if images.rank() != 3 || labels.rank() != 1 || shape[0] != rows[0] {
        return Err(format!(
            "pictures of {shape} and labels of {rows}: give [rows, height, width] and as many labels"
        ));
    }
    let made = || -> tonnage::Result<Digits> {
        let most = images.cast(DType::F32)?.max_all()?.scalar::<f32>()?.max(1.0);
        let x = images.cast(DType::F32)?.div(most)?.expand_dims(3)?;
        let y = labels.cast(DType::I64)?;
        let kinds = y.max_all()?.scalar::<i64>()?.max(0) as usize + 1;
        let (learn, held_out) = Dataset::of((x, y))?.hold_out(10)?;
        Ok(Digits { learn, held_out, kinds })
    };
    made().map_err(|error| error.to_string())
}
