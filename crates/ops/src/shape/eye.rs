//! `eye`: a matrix with ones on a diagonal; a recipe.

use smallvec::{SmallVec, smallvec};
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::recipe::{Generator, Recipe};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::tile::Prim;
use tonnage_core::{DType, Dim, OpDef, Scalar, Shape, TensorType};

use crate::tile::Chain;
use crate::{OpId, rules};

/// A matrix with ones on a diagonal.
pub static EYE: OpDef = OpDef {
    id: OpId::Eye as u16,
    name: "eye",
    doc: "A matrix with ones on a diagonal; takes no bytes until it is written to.",
    infer,
    axes: |_| rules::axes::mixed(&[2]),
    mem: Mem::Recipe,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: rules::cost::free,
    grad: Grad::Stop("it has no inputs"),
    jvp: Jvp::Stop("it has no inputs"),
    fails: Fails::Never,
    lower: Lower::Recipe(recipe),
    samples,
};

fn asked<'a>(call: &Call<'a>) -> Result<(&'a Dim, &'a Dim, i64, DType)> {
    match call.attrs {
        Attrs::Eye { rows, columns, diagonal, dtype } => Ok((rows, columns, *diagonal, *dtype)),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 0)?;
    let (rows, columns, _, dtype) = asked(call)?;
    let shape = [rows.clone(), columns.clone()].into_iter().collect();
    Ok(smallvec![TensorType { dtype, shape }])
}

/// Ones where the column is the row and the diagonal's number more.
fn recipe(call: &Call) -> Result<Recipe> {
    let (rows, columns, diagonal, dtype) = asked(call)?;
    let shape: Shape = [rows.clone(), columns.clone()].into_iter().collect();
    let sizes = rules::known_sizes(call, dtype, &shape)?;
    let counting = |start: i64, strides: [isize; 2]| {
        let generator = Generator::Count {
            start: Scalar::Int(start.into()),
            step: Scalar::Int(1),
            dtype: DType::I64,
        };
        (
            generator,
            Layout { sizes: sizes.clone(), strides: smallvec![strides[0], strides[1]], offset: 0 },
        )
    };
    let sources = SmallVec::from_iter([counting(diagonal, [1, 0]), counting(0, [0, 1])]);
    let program = Chain::program([DType::I64; 2], dtype, |p, [row, column]| {
        let hit = p.two(Prim::Eq, row, column);
        (p.cast(hit, dtype), None)
    });
    Ok(Recipe { program, sources, sizes })
}

fn samples() -> Vec<Sample> {
    let of = |rows: usize, columns: usize, diagonal, dtype| {
        let (rows, columns) = (rows.into(), columns.into());
        Sample::of(&[], Attrs::Eye { rows, columns, diagonal, dtype })
    };
    let mut all: Vec<Sample> = DType::ALL.into_iter().map(|d| of(2, 3, 0, d)).collect();
    all.extend([
        of(3, 3, 1, DType::F32),
        of(4, 3, -2, DType::F32),
        of(2, 2, 5, DType::F32),
        of(0, 3, 0, DType::F32),
        of(33, 40, 0, DType::F64),
    ]);
    all
}
