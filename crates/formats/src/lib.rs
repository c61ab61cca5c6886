//! What bytes mean, for tensors of strings: text. It stands above `tonnage`, which moves strings and does not look into them, and brings the libraries for it, so
//! that only those build them who ask.
//!
//! ```
//! use tonnage::strings::Strings;
//! use tonnage_formats::strings;
//! let lines = Strings::new(&["a b", "c"], [2])?;
//! let (words, splits) = strings::split(&lines, None, None)?;
//! assert_eq!(words.to_vec()?, [b"a", b"b", b"c"]);
//! assert_eq!(splits.to_vec::<i64>()?, [0, 2, 3]);
//! # Ok::<(), tonnage::Error>(())
//! ```

pub mod strings;
