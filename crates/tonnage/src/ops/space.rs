//! Blocks of space moved into other axes and back, and grids. Tensors are `[batch, height, width, channels]`; all but
//! the last step of each are views.

use tonnage_core::attrs::PadMode;
use tonnage_core::error::bad_argument;
use tonnage_core::{Dim, Result, Scalar, Shape, Source};

use crate::part::Part;
use crate::tensor::Tensor;

/// The lengths of a tensor of rank 4.
fn four(op: &'static str, x: &Tensor) -> Result<[Dim; 4]> {
    let shape = x.shape();
    match &shape[..] {
        [n, h, w, c] => Ok([n.clone(), h.clone(), w.clone(), c.clone()]),
        _ => {
            let what = format!("a tensor of shape {shape}");
            Err(bad_argument(op, what, "use one of [batch, height, width, channels]"))
        }
    }
}

/// A length divided into `count` parts.
fn parts(op: &'static str, dim: &Dim, count: usize) -> Result<Dim> {
    let part = dim.divided_by(&Dim::Known(count));
    match count > 0 && part.times(&Dim::Known(count)) == *dim {
        true => Ok(part),
        false => {
            let what = format!("a length of {dim} in parts of {count}");
            Err(bad_argument(op, what, "use a block that divides it, or pad it first"))
        }
    }
}

fn shaped(x: &Tensor, dims: Vec<Dim>) -> Result<Tensor> {
    x.reshape(dims.into_iter().collect::<Shape>())
}

impl Tensor {
    /// Blocks of `block` by `block` moved into the channels: height and width get shorter, channels more.
    #[track_caller]
    pub fn space_to_depth(&self, block: usize) -> Result<Tensor> {
        let (op, source) = ("space_to_depth", Source::here());
        let go = || {
            let [n, h, w, c] = four(op, self)?;
            let (rows, columns) = (parts(op, &h, block)?, parts(op, &w, block)?);
            let b = Dim::Known(block);
            let cut =
                vec![n.clone(), rows.clone(), b.clone(), columns.clone(), b.clone(), c.clone()];
            let cut = shaped(self, cut)?.transpose(&[0, 1, 3, 2, 4, 5])?;
            shaped(&cut, vec![n, rows, columns, b.times(&b).times(&c)])
        };
        go().map_err(|e: tonnage_core::Error| e.at(source))
    }

    /// The inverse: channels moved out into blocks of `block` by `block`.
    #[track_caller]
    pub fn depth_to_space(&self, block: usize) -> Result<Tensor> {
        let (op, source) = ("depth_to_space", Source::here());
        let go = || {
            let [n, h, w, c] = four(op, self)?;
            let b = Dim::Known(block);
            let rest = parts(op, &c, block.saturating_mul(block))?;
            let cut = vec![n.clone(), h.clone(), w.clone(), b.clone(), b.clone(), rest.clone()];
            let cut = shaped(self, cut)?.transpose(&[0, 1, 3, 2, 4, 5])?;
            shaped(&cut, vec![n, h.times(&b), w.times(&b), rest])
        };
        go().map_err(|e: tonnage_core::Error| e.at(source))
    }

    /// Padded with zeros, and the elements of each block of height and width spread over the batch.
    #[track_caller]
    pub fn space_to_batch(&self, block: [usize; 2], pads: [[usize; 2]; 2]) -> Result<Tensor> {
        let (op, source) = ("space_to_batch", Source::here());
        let go = || {
            four(op, self)?;
            let zero = PadMode::Constant(Scalar::Int(0));
            let padded = match pads {
                [[0, 0], [0, 0]] => self.clone(),
                _ => self.pad(&[[0, 0], pads[0], pads[1], [0, 0]], zero)?,
            };
            let [n, h, w, c] = four(op, &padded)?;
            let (rows, columns) = (parts(op, &h, block[0])?, parts(op, &w, block[1])?);
            let [down, right] = block.map(Dim::Known);
            let cut = vec![
                n.clone(),
                rows.clone(),
                down.clone(),
                columns.clone(),
                right.clone(),
                c.clone(),
            ];
            let cut = shaped(&padded, cut)?.transpose(&[2, 4, 0, 1, 3, 5])?;
            shaped(&cut, vec![down.times(&right).times(&n), rows, columns, c])
        };
        go().map_err(|e: tonnage_core::Error| e.at(source))
    }

    /// The inverse: blocks put together from the batch, and rows and columns at the edges dropped.
    #[track_caller]
    pub fn batch_to_space(&self, block: [usize; 2], crops: [[usize; 2]; 2]) -> Result<Tensor> {
        let (op, source) = ("batch_to_space", Source::here());
        let go = || {
            let [n, h, w, c] = four(op, self)?;
            let batch = parts(op, &n, block[0].saturating_mul(block[1]))?;
            let [down, right] = block.map(Dim::Known);
            let cut =
                vec![down.clone(), right.clone(), batch.clone(), h.clone(), w.clone(), c.clone()];
            let cut = shaped(self, cut)?.transpose(&[2, 3, 0, 4, 1, 5])?;
            let whole = shaped(&cut, vec![batch, h.times(&down), w.times(&right), c])?;
            let kept = |axis: usize, crop: [usize; 2]| -> Result<Part> {
                let Some(size) = whole.shape()[axis].known() else {
                    return Ok(Part::ALL);
                };
                if crop[0].saturating_add(crop[1]) > size {
                    let what = format!("{crop:?} dropped of a length of {size}");
                    return Err(bad_argument(op, what, "drop less than there is"));
                }
                Ok((crop[0] as i64..(size - crop[1]) as i64).into())
            };
            match crops {
                [[0, 0], [0, 0]] => Ok(whole.clone()),
                [rows, columns] => whole.slice(&[Part::ALL, kept(1, rows)?, kept(2, columns)?]),
            }
        };
        go().map_err(|e: tonnage_core::Error| e.at(source))
    }
}

/// Vectors broadcast over a grid of all of them: the i-th result varies along axis i. Views that take no bytes.
///
/// ```
/// use tonnage::{meshgrid, tensor};
/// let grid = meshgrid(&[&tensor([1, 2])?, &tensor([3, 4, 5])?])?;
/// assert_eq!(grid[0].to_vec::<i32>()?, [1, 1, 1, 2, 2, 2]);
/// assert_eq!(grid[1].to_vec::<i32>()?, [3, 4, 5, 3, 4, 5]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn meshgrid(vectors: &[&Tensor]) -> Result<Vec<Tensor>> {
    let source = Source::here();
    let mut dims = Vec::new();
    for vector in vectors {
        let shape = vector.shape();
        let [length] = &shape[..] else {
            let what = format!("a tensor of shape {shape}");
            return Err(bad_argument("meshgrid", what, "use vectors").at(source));
        };
        dims.push(length.clone());
    }
    let whole: Shape = dims.iter().cloned().collect();
    let broadcast = |(i, vector): (usize, &&Tensor)| {
        let mut ones: Vec<Dim> = vec![1.into(); vectors.len()];
        ones[i] = dims[i].clone();
        shaped(vector, ones)?.broadcast_to(&whole)
    };
    vectors.iter().enumerate().map(broadcast).collect()
}
