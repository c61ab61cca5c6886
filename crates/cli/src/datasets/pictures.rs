//! Pictures to learn from: those that the program brings with it, or the user's own.
//!
//! The pictures in `data/` are the 1,797 of the test set of "Optical Recognition of Handwritten Digits" by E. Alpaydin and C. Kaynak (UCI
//! Machine Learning Repository, 1998, <https://doi.org/10.24432/C50P49>, CC BY 4.0): 8 x 8 pixels of 0 to 16, as idx files.

use std::path::{Path, PathBuf};

use tonnage::data::Dataset;
use tonnage::io::{Csv, Npz, parse_idx, read_idx, read_npy};
use tonnage::{DType, Elementwise, Part, Tensor};

use super::{TrainTestData, said};

/// Names that people give to the two files, or to the two tensors of an npz file.
const FILES: [(&str, &str); 4] = [
    ("images.idx", "labels.idx"),
    ("images.npy", "labels.npy"),
    ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    ("train-images.idx3-ubyte", "train-labels.idx1-ubyte"),
];
const NAMES: [(&str, &str); 4] =
    [("images", "labels"), ("x_train", "y_train"), ("x", "y"), ("arr_0", "arr_1")];

/// More classes than this are no labels.
const MOST: i64 = 100_000;

/// The pictures in a folder or a file, or those of the program.
pub fn load(path: Option<&Path>) -> Result<TrainTestData, String> {
    let (images, labels) = match path {
        None => (
            parse_idx(include_bytes!("../../data/digits-images.idx")).map_err(said)?,
            parse_idx(include_bytes!("../../data/digits-labels.idx")).map_err(said)?,
        ),
        Some(path) if path.is_dir() => {
            let (images, labels) = files(path)?;
            (one(&images)?, one(&labels)?)
        }
        Some(path) => match path.extension().and_then(|e| e.to_str()) {
            Some("npz") => archive(path)?,
            Some("csv") => table(path)?,
            _ => {
                let name = path.display();
                return Err(format!(
                    "{name}: give a folder, an .npz file, or a .csv file with the label first"
                ));
            }
        },
    };
    prepared(&images, &labels)
}

/// The two files of a folder, by the names that people use.
fn files(folder: &Path) -> Result<(PathBuf, PathBuf), String> {
    let mut found = FILES.iter().map(|(i, l)| (folder.join(i), folder.join(l)));
    found.find(|(i, l)| i.exists() && l.exists()).ok_or_else(|| {
        let first = FILES.map(|(i, l)| format!("{i} with {l}")).join(", or ");
        format!("{}: no pictures here; put {first} into it", folder.display())
    })
}

fn one(path: &Path) -> Result<Tensor, String> {
    let npy = path.extension().is_some_and(|e| e == "npy");
    if npy { read_npy(path) } else { read_idx(path) }.map_err(said)
}

fn archive(path: &Path) -> Result<(Tensor, Tensor), String> {
    let file = Npz::open(path).map_err(said)?;
    let has = |name: &str| file.names().any(|own| own == name);
    let Some((images, labels)) = NAMES.iter().find(|(i, l)| has(i) && has(l)) else {
        let first = NAMES.map(|(i, l)| format!("{i} with {l}")).join(", or ");
        let there: Vec<&str> = file.names().take(8).collect();
        return Err(format!("{}: no {first}; it has {there:?}", path.display()));
    };
    Ok((file.read(images).map_err(said)?, file.read(labels).map_err(said)?))
}

/// A row a picture: its label, then its pixels, as many as a square has.
fn table(path: &Path) -> Result<(Tensor, Tensor), String> {
    let csv = Csv::new();
    let names = csv.names(path).map_err(said)?;
    let csv =
        if names.iter().any(|name| name.parse::<f64>().is_err()) { csv.header() } else { csv };
    let table = csv.read(path).map_err(said)?;
    let pixels = names.len() - 1;
    let side = pixels.isqrt();
    if side == 0 || side * side != pixels {
        return Err(format!(
            "{}: a label and {pixels} pixels in a row; give those of a square picture",
            path.display()
        ));
    }
    let cut = || -> tonnage::Result<(Tensor, Tensor)> {
        let labels = table.slice(&[Part::ALL, Part::from(0..1)])?.squeeze([1])?;
        let images = table.slice(&[Part::ALL, Part::from(1..1 + pixels as i64)])?;
        Ok((images.reshape([-1, side as i64, side as i64])?, labels))
    };
    cut().map_err(said)
}

/// Pictures, `[rows, height, width, channels]` of 0 to 1, and their labels; a tenth is held out.
fn prepared(images: &Tensor, labels: &Tensor) -> Result<TrainTestData, String> {
    let (shape, rows) = (images.shape(), labels.shape());
    if !(3..=4).contains(&images.rank()) || labels.rank() != 1 || shape[0] != rows[0] {
        return Err(format!(
            "pictures of {shape} and labels of {rows}: give [rows, height, width] (or with channels last) and as many labels"
        ));
    }
    let whole = || -> tonnage::Result<bool> {
        match labels.dtype().is_float() {
            true => labels.floor()?.equal(labels)?.all(tonnage::Axes::ALL)?.scalar::<bool>(),
            false => Ok(true),
        }
    };
    if !whole().map_err(said)? {
        return Err("labels that are no whole numbers: give classes counted from 0".into());
    }
    let labels = labels.cast(DType::I64).map_err(said)?;
    let ends = || -> tonnage::Result<(i64, i64)> {
        Ok((labels.min_all()?.scalar()?, labels.max_all()?.scalar()?))
    };
    let (least, most) = if rows[0].is(0) { (0, 0) } else { ends().map_err(said)? };
    if least < 0 || most >= MOST {
        return Err(format!("labels from {least} to {most}: give classes counted from 0"));
    }
    let made = || -> tonnage::Result<TrainTestData> {
        let images = images.cast(DType::F32)?;
        let most_light = images.max_all()?.scalar::<f32>()?.max(1.0);
        let mut x = images.div(most_light)?;
        if x.rank() == 3 {
            x = x.expand_dims(3)?;
        }
        let (learn, held_out) = Dataset::of((x, labels.clone()))?.hold_out(10)?;
        let classes = vec![most as usize + 1];
        Ok(TrainTestData { learn, held_out, classes, characters: String::new(), mean: 0.0 })
    };
    made().map_err(said)
}
