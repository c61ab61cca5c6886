//! Printing tensors while a program runs, in functions too.

use tonnage_core::error::bad_argument;
use tonnage_core::{Result, Source};
use tonnage_ops::host::print::PRINT;

use super::{host, prints};
use crate::display::PrintOptions;
use crate::tensor::Tensor;

/// Prints a line each time that the program comes here: `{}` in the text stands for the values, in order.
///
/// In a function the values are printed when it runs, not when it is traced. What is printed has to lie in memory then:
/// a value that would have vanished into what reads it is made whole for it. Lines go to the standard
/// error; see [`prints`].
///
/// ```
/// use tonnage::{Tensor, function, print, tensor};
/// let f = function(|x: Tensor| {
///     let mean = x.mean_all()?;
///     print("mean {}, of {}", &[&mean, &x])?;
///     Ok(mean)
/// });
/// f.call(tensor([1.0f32, 2.0, 6.0])?)?; // mean 3.0, of [1. 2. 6.]
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where the text has not as many placeholders as there are values.
#[track_caller]
pub fn print(text: &str, values: &[&Tensor]) -> Result<()> {
    print_at(text, values, Source::here())
}

impl Tensor {
    /// Prints a line with its values for `{}`; see [`print()`](crate::print()).
    ///
    /// # Errors
    /// Where the text has not just one placeholder.
    #[track_caller]
    pub fn print(&self, text: &str) -> Result<()> {
        print_at(text, &[self], Source::here())
    }
}

fn print_at(text: &str, values: &[&Tensor], source: Source) -> Result<()> {
    let parts: Vec<String> = text.split("{}").map(str::to_string).collect();
    if parts.len() != values.len() + 1 {
        let what = format!(
            "the text {text:?} has {} placeholders for {} values",
            parts.len() - 1,
            values.len()
        );
        return Err(bad_argument("print", what, "write one {} for each value").at(source));
    }
    host(&PRINT, values, &[], text.to_string(), source, move |lent, _| {
        let mut line = parts[0].clone();
        for (value, text) in lent.iter().zip(&parts[1..]) {
            let value = value.text(PrintOptions::default());
            // Rows stand below each other only where the first one starts a line.
            if value.contains('\n') && !line.is_empty() && !line.ends_with('\n') {
                line.push('\n');
            }
            line.push_str(&value);
            line.push_str(text);
        }
        prints::give(&line);
        Ok(())
    })?;
    Ok(())
}
