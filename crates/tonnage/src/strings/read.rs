//! Reading strings, and strings as text.

use std::fmt;

use tonnage_core::{Result, Source};

use super::Strings;
use super::step::look;

/// Of more elements the first ones are shown.
const SHOWN: usize = 1000;

impl Strings {
    /// Its elements in logical order.
    ///
    /// # Errors
    /// Where it has no values, or an element lies outside of the bytes.
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<Vec<u8>>> {
        let mut all = Vec::new();
        self.visit(&mut |text| all.push(text.to_vec())).map_err(|e| e.at(Source::here()))?;
        Ok(all)
    }

    /// Calls `visit` with each of its elements in logical order, where they lie.
    ///
    /// # Errors
    /// Where it has no values, or an element lies outside of the bytes.
    pub fn visit(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        look(&[self], &[], |strings, _| {
            (0..strings[0].len()).try_for_each(|i| strings[0].get(i).map(&mut *visit))
        })
    }

    /// How many bytes its elements have together, each for itself.
    ///
    /// # Errors
    /// Where it has no values.
    pub fn text_bytes(&self) -> Result<usize> {
        look(&[self], &[], |strings, _| Ok(strings[0].text_bytes()))
    }
}

impl fmt::Display for Strings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_symbolic() || self.sizes.spec_type().is_some() {
            return write!(f, "Strings({}, symbolic)", self.shape());
        }
        let mut shown = Vec::new();
        let looked = self.visit(&mut |text| {
            if shown.len() < SHOWN {
                shown.push(String::from_utf8_lossy(text).into_owned());
            }
        });
        match looked {
            Ok(()) if self.rank() == 0 => write!(f, "{:?}", shown.concat()),
            Ok(()) => write!(f, "{shown:?} of shape {}", self.shape()),
            Err(error) => write!(f, "<{error}>"),
        }
    }
}

impl fmt::Debug for Strings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Strings({self})")
    }
}
