//! What an iteration sees of an input that is sliced: one of its rows, wherever that lies.

use std::sync::Arc;

use tonnage_core::bytes::Bytes;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::layout::Layout;
use tonnage_core::looping::row_of;
use tonnage_core::shape::{Sizes, TensorType};

use crate::loops::Sliced;
use crate::place::InputSpec;
use crate::plan::{At, Placed, TileRead, TileRun};
use crate::region::ScratchLayout;
use crate::tile;

/// A row of a value of that type that lies there: as it will be found, and what the region that takes it is told.
pub(crate) fn sliced(
    op: &'static str,
    ty: &TensorType,
    placed: &Placed,
    scratch_layout: &mut ScratchLayout,
) -> Result<(Sliced, InputSpec)> {
    let row = row_of(ty).ok_or_else(|| no_rows(op))?;
    let made = match &placed.at {
        // Each iteration computes its row: nothing is made whole.
        At::Recipe(recipe) => {
            let (run, strides) = first_row(tile::materialize(recipe)).ok_or_else(|| no_rows(op))?;
            Sliced::Recipe {
                run: Arc::new(run),
                strides,
                at: scratch_layout.put(row.bytes(op)?),
                row,
            }
        }
        _ => {
            let (first, stride, layout) = row_layout(&placed.layout).ok_or_else(|| no_rows(op))?;
            Sliced::Bytes { first, stride, layout, size: row.dtype.size() }
        }
    };
    let spec = made.spec(op)?;
    Ok((made, spec))
}

impl Sliced {
    /// What the region that takes a row is told of it.
    pub(crate) fn spec(&self, op: &'static str) -> Result<InputSpec> {
        match self {
            Sliced::Bytes { layout, .. } => {
                Ok(InputSpec::Bytes { layout: layout.clone(), bytes: Bytes::ZERO, donated: false })
            }
            Sliced::Recipe { row, .. } => InputSpec::contiguous(row, op, false),
        }
    }
}

/// Where the first row's lowest element lies, how far it is to the next row, and the row's layout from
/// there.
fn row_layout(whole: &Layout) -> Option<(isize, isize, Layout)> {
    let (stride, strides) = whole.strides.split_first()?;
    let sizes: Sizes = whole.sizes[1..].into();
    let below: isize = sizes
        .iter()
        .zip(strides)
        .filter(|(size, stride)| **size > 0 && **stride < 0)
        .map(|(size, stride)| (*size as isize - 1) * stride)
        .sum();
    let layout = Layout { sizes, strides: strides.into(), offset: usize::try_from(-below).ok()? };
    Some((whole.offset as isize + below, *stride, layout))
}

/// A program over the first row, and for each of its reads how far it is to the next.
fn first_row(run: TileRun) -> Option<(TileRun, Vec<isize>)> {
    let mut strides = Vec::new();
    let mut reads = Vec::new();
    for read in run.reads {
        let TileRead::Generator(generator, layout) = read else { return None };
        let (stride, rest) = layout.strides.split_first()?;
        strides.push(*stride);
        let layout =
            Layout { sizes: layout.sizes[1..].into(), strides: rest.into(), offset: layout.offset };
        reads.push(TileRead::Generator(generator, layout));
    }
    let domain = run.domain.get(1..)?.into();
    Some((TileRun::new(run.program, domain, reads), strides))
}

/// The error of a sliced input that has no rows.
fn no_rows(op: &'static str) -> tonnage_core::Error {
    ErrorKind::BadGraph { what: format!("{op} takes rows of a scalar") }.into()
}
