//! Tensors as text, laid out as NumPy lays out its arrays.
//!
//! Printing reads the elements that it shows and no others, and never makes a recipe resident: a
//! tensor of a billion elements that takes no memory takes none after it was printed.
//!
//! In the order of the work: `read` fetches the elements, `words` with `float` and `digits` make one
//! word of each, all of a width, and `frame` sets the words in brackets and lines. What differs from NumPy: booleans
//! are written as Rust writes them.

mod digits;
mod float;
mod frame;
mod read;
mod words;

use std::fmt;

use tonnage_core::{DType, Result};
use tonnage_runtime::Array;

pub(crate) use read::Fetch;

/// How much is shown, and how wide. The default is NumPy's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrintOptions {
    /// Most digits after the point. `None`: 8, and as many as it takes for a tensor without axes.
    pub precision: Option<usize>,
    /// Tensors of more elements are cut short.
    pub threshold: usize,
    /// Elements that remain at either end of an axis that is cut.
    pub edge: usize,
    /// Columns of a line.
    pub width: usize,
}

impl Default for PrintOptions {
    fn default() -> PrintOptions {
        PrintOptions { precision: None, threshold: 1000, edge: 3, width: 75 }
    }
}

/// Writes a tensor's values. The formatter's own precision, as in `{:.3}`, goes before the options'.
pub(crate) fn format(
    array: &Array,
    f: &mut fmt::Formatter<'_>,
    options: PrintOptions,
) -> fmt::Result {
    let precision = f.precision().or(options.precision);
    f.write_str(&shown(array, PrintOptions { precision, ..options }))
}

/// Writes type, state and values: `Tensor(f32[2], resident, [1. 2.])`.
pub(crate) fn debug(array: &Array, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let state = if array.as_recipe().is_some() { "recipe" } else { "resident" };
    let values = shown(array, PrintOptions { precision: f.precision(), ..PrintOptions::default() });
    // Rows stand below each other only where the first one starts a line.
    let gap = if values.contains('\n') { "\n" } else { " " };
    write!(f, "Tensor({}, {state},{gap}{values})", array.ty())
}

fn shown(array: &Array, options: PrintOptions) -> String {
    // A failed read has no way through `fmt`: `fmt::Error` would say nothing, and make `to_string`
    // panic.
    text(array, options).unwrap_or_else(|error| format!("<{error}>"))
}

fn text(array: &Array, options: PrintOptions) -> Result<String> {
    laid_out(array.sizes(), array.dtype(), options, &|part| read::elements(array, part))
}

/// The text of a tensor of these sizes whose elements `fetch` reads.
pub(crate) fn laid_out(
    sizes: &[usize],
    dtype: DType,
    options: PrintOptions,
    fetch: Fetch,
) -> Result<String> {
    if sizes.contains(&0) {
        return Ok("[]".to_string());
    }
    let shown = read::read(sizes, options, fetch)?;
    Ok(match (shown.values.as_slice(), options.precision) {
        ([only], None) if shown.sizes.is_empty() => words::single(*only, dtype),
        (values, precision) => {
            let words = words::words(values, dtype, precision.unwrap_or(8));
            frame::frame(&words, &shown.sizes, &shown.cut, options)
        }
    })
}

#[cfg(test)]
mod tests;
