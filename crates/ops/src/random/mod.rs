//! Random numbers: recipes of a key. The same key gives the same numbers, whatever reads them.
//!
//! What needs an unknown number of random words for an element (`gamma`, `poisson`), or its input besides
//! (`categorical`), is a kernel that is given its key as a tensor of two words.

pub mod below;
pub mod bits;
pub mod categorical;
pub mod distribution;
mod each;
pub mod gamma;
pub mod poisson;

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::recipe::{Distribution, Generator, Key, Recipe};
use tonnage_core::row::{Call, Sample, Types};
use tonnage_core::{DType, TensorType};

use crate::rules;

/// What the attributes ask for.
fn asked<'a>(call: &Call<'a>) -> Result<(Distribution, DType, &'a tonnage_core::Shape)> {
    rules::infer::count(call, 0)?;
    match call.attrs {
        Attrs::Random { distribution, dtype, shape, .. } => Ok((*distribution, *dtype, shape)),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

/// Floats of one distribution.
fn infer(call: &Call, expected: Distribution) -> Result<Types> {
    let (distribution, dtype, shape) = asked(call)?;
    if distribution != expected {
        return Err(rules::infer::wrong_attrs(call));
    }
    if !dtype.is_float() {
        let supported = "f64, f32, f16 or bf16";
        return Err(ErrorKind::DTypeUnsupported { op: call.op, dtype, supported }.into());
    }
    Ok(smallvec![TensorType { dtype, shape: shape.clone() }])
}

fn recipe(call: &Call) -> Result<Recipe> {
    let Attrs::Random { key, distribution, dtype, shape } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    let sizes = rules::known_sizes(call, *dtype, shape)?;
    let (key, distribution) = (*key, *distribution);
    Ok(Recipe::generate(Generator::Random { key, distribution, dtype: *dtype }, sizes))
}

fn of(distribution: Distribution, dtype: DType, shape: &[usize]) -> Sample {
    let key = Key::Fixed([17, 4]);
    Sample::of(&[], Attrs::Random { key, distribution, dtype, shape: shape.into() })
}

fn samples(distribution: Distribution) -> Vec<Sample> {
    let of = |dtype, shape: &[usize]| of(distribution, dtype, shape);
    vec![
        of(DType::F64, &[2, 3]),
        of(DType::F32, &[2, 3]),
        of(DType::F16, &[2, 3]),
        of(DType::BF16, &[2, 3]),
        of(DType::F32, &[]),
        of(DType::F32, &[0, 3]),
        of(DType::F32, &[1025]),
    ]
}

/// Refuses a key that is not two words.
fn check_key(op: &'static str, key: &TensorType) -> Result<()> {
    if key.dtype != DType::U32 {
        let supported = "u32 for a key";
        return Err(ErrorKind::DTypeUnsupported { op, dtype: key.dtype, supported }.into());
    }
    let needed = tonnage_core::Shape::from([2]);
    match key.shape == needed {
        true => Ok(()),
        false => {
            let (left, right) = (key.shape.clone(), needed);
            let help = "a key is two words".into();
            Err(ErrorKind::ShapeMismatch { op, left, right, help }.into())
        }
    }
}
