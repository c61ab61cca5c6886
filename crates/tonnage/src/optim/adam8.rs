//! Adam whose two means take a byte an element, in blocks with a scale each: 2.03 bytes an element instead of 8. The
//! means of one variable at a time exist whole while it is stepped.

use tonnage_core::{DType, Result, Shape, TensorType};

use super::adam::Adam;
use super::rule::{ByRows, Next, Now, Rule, Slot, mean};
use crate::ops::Elementwise;
use crate::random::random_uniform;
use crate::tensor::Tensor;

/// Elements that share a scale.
const BLOCK: usize = 256;

/// [`Adam`] with means of 8 bits.
///
/// Means of gradients are rounded to 127 equal steps of the largest in the block. Means of squares go over many orders of
/// magnitude: of them the fourth root is stored, rounded up or down by chance in proportion (a mean that moves by a
/// thousandth a step would otherwise never leave its level), and never to 0, which would divide by `epsilon`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Adam8Bit(
    /// Its numbers.
    pub Adam,
);

impl Rule for Adam8Bit {
    fn name(&self) -> &'static str {
        "adam8bit"
    }

    fn slots(&self, ty: &TensorType) -> Vec<Slot> {
        let blocks = blocks(ty);
        let levels = |dtype| TensorType::new(dtype, Shape::from([blocks, BLOCK]));
        vec![
            Slot { name: "m", ty: levels(DType::I8) },
            Slot::shaped("m_scale", ty, Shape::from([blocks, 1])),
            Slot { name: "v", ty: levels(DType::U8) },
            Slot::shaped("v_scale", ty, Shape::from([blocks, 1])),
        ]
    }

    fn by_rows(&self) -> ByRows {
        ByRows::Never
    }

    fn check(&self) -> Result<()> {
        self.0.check_as("adam8bit")
    }

    fn step(&self, now: &Now<'_>) -> Result<Next> {
        let ty = now.value.ty();
        let [m, m_scale, v, v_scale] = now.slots else {
            return Ok(Next { value: now.value.clone(), slots: Vec::new() });
        };
        let m = m.cast(ty.dtype)?.mul(1.0 / 127.0)?.mul(m_scale)?;
        let v = v.cast(ty.dtype)?.mul(1.0 / 255.0)?.square()?.square()?.mul(v_scale)?;
        let m = mean(&out_of_blocks(&m, &ty)?, now.gradient, self.0.beta1)?;
        let v = mean(&out_of_blocks(&v, &ty)?, &now.gradient.square()?, self.0.beta2)?;
        let value = self.0.moved(now, &m, &v)?;

        let m = into_blocks(&m, &ty)?;
        let m_scale = (&m).abs()?.max_keep([1])?;
        let m = m.divide_no_nan(&m_scale)?.mul(127.0)?.round()?.cast(DType::I8)?;
        let v = into_blocks(&v, &ty)?;
        let v_scale = v.max_keep([1])?;
        let root = v.divide_no_nan(&v_scale)?.sqrt()?.sqrt()?.mul(255.0)?;
        let chance = random_uniform(v.shape(), ty.dtype)?;
        let least = v.greater(0.0)?.cast(ty.dtype)?;
        let v = root.add(chance)?.floor()?.maximum(least)?.minimum(255.0)?.cast(DType::U8)?;
        Ok(Next { value, slots: vec![m, m_scale, v, v_scale] })
    }
}

fn count(ty: &TensorType) -> usize {
    ty.shape.elements().known().unwrap_or(0)
}

fn blocks(ty: &TensorType) -> usize {
    count(ty).div_ceil(BLOCK)
}

/// Elements one after another, with zeros behind them, in blocks.
fn into_blocks(x: &Tensor, ty: &TensorType) -> Result<Tensor> {
    let (count, blocks) = (count(ty), blocks(ty));
    let flat = x.reshape([count])?;
    let padding = blocks * BLOCK - count;
    let whole = flat.pad(&[[0, padding]], tonnage_core::attrs::PadMode::Constant(0.into()))?;
    whole.reshape([blocks, BLOCK])
}

/// The backward pass.
fn out_of_blocks(x: &Tensor, ty: &TensorType) -> Result<Tensor> {
    let (count, blocks) = (count(ty), blocks(ty));
    let flat = x.reshape([blocks * BLOCK])?;
    flat.slice(&[(0..count as i64).into()])?.reshape(ty.shape.clone())
}
