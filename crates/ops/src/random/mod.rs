//! Random numbers: recipes of a key. The same key gives the same numbers, whatever reads them.

pub mod normal;
pub mod uniform;

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::recipe::{Distribution, Generator, Key, Recipe};
use tonnage_core::row::{Call, Sample, Types};
use tonnage_core::{DType, TensorType};

use crate::rules;

fn infer(call: &Call, expected: Distribution) -> Result<Types> {
    rules::infer::count(call, 0)?;
    let Attrs::Random { distribution, dtype, shape, .. } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    if *distribution != expected {
        return Err(rules::infer::wrong_attrs(call));
    }
    if !dtype.is_float() {
        let supported = "f64, f32, f16 or bf16";
        return Err(ErrorKind::DTypeUnsupported { op: call.op, dtype: *dtype, supported }.into());
    }
    Ok(smallvec![TensorType { dtype: *dtype, shape: shape.clone() }])
}

fn recipe(call: &Call) -> Result<Recipe> {
    let Attrs::Random { key, distribution, dtype, shape } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    let sizes = rules::known_sizes(call, *dtype, shape)?;
    let (key, distribution) = (*key, *distribution);
    Ok(Recipe::generate(Generator::Random { key, distribution, dtype: *dtype }, sizes))
}

fn samples(distribution: Distribution) -> Vec<Sample> {
    let of = |dtype, shape: &[usize]| {
        let key = Key::Fixed([17, 4]);
        Sample::of(&[], Attrs::Random { key, distribution, dtype, shape: shape.into() })
    };
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
