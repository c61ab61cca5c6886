//! Random numbers: recipes of a key. The same key gives the same numbers, whatever reads them.
//!
//! What needs an unknown number of random words for an element (`gamma`, `poisson`), or its input besides
//! (`categorical`), is a kernel that is given its key as a tensor of two words. So is what has a seed that is known as it runs alone
//! (`seeded`): the numbers are those of the recipe.

pub mod below;
pub mod bits;
pub mod categorical;
pub mod distribution;
mod each;
pub mod gamma;
pub mod poisson;
pub mod seeded;

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::recipe::{Distribution, Generator, Key, Recipe};
use tonnage_core::row::{Call, Sample, Types};
use tonnage_core::{DType, Scalar, Shape, TensorType};

use crate::rules;

/// What the attributes ask for.
fn asked<'a>(call: &Call<'a>) -> Result<(Distribution, DType, &'a Shape)> {
    rules::infer::count(call, 0)?;
    match call.attrs {
        Attrs::Random { distribution, dtype, shape, .. } => Ok((*distribution, *dtype, shape)),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

/// Floats of one distribution.
fn infer(call: &Call, expected: Distribution) -> Result<Types> {
    let (distribution, dtype, shape) = asked(call)?;
    match distribution == expected {
        true => drawn(call.op, distribution, dtype, shape),
        false => Err(rules::infer::wrong_attrs(call)),
    }
}

/// Refuses numbers that the dtype does not hold.
fn drawn(
    op: &'static str,
    distribution: Distribution,
    dtype: DType,
    shape: &Shape,
) -> Result<Types> {
    let supported = match distribution {
        Distribution::Uniform | Distribution::Normal | Distribution::TruncatedNormal => {
            (!dtype.is_float()).then_some("f64, f32, f16 or bf16")
        }
        Distribution::Bits => (!dtype.is_integer()).then_some("an integer"),
        Distribution::Below(below) => {
            let last = i128::from(below) - 1;
            if last < 0 || !dtype.is_integer() || !Scalar::Int(last).fits(dtype) {
                let what = format!("whole numbers from 0 up to, without, {below} as {dtype}");
                return Err(bad_argument(op, what, "use an integer dtype that holds them"));
            }
            None
        }
    };
    match supported {
        Some(supported) => Err(ErrorKind::DTypeUnsupported { op, dtype, supported }.into()),
        None => Ok(smallvec![TensorType { dtype, shape: shape.clone() }]),
    }
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
    let needed = Shape::from([2]);
    match key.shape == needed {
        true => Ok(()),
        false => {
            let (left, right) = (key.shape.clone(), needed);
            let help = "a key is two words".into();
            Err(ErrorKind::ShapeMismatch { op, left, right, help }.into())
        }
    }
}
