//! The ops of the crate `tonnage-formats`, and what of strings else has a name in `tf.strings` and `tf.io`. Each takes all of its arguments, by position.

use pyo3::prelude::*;
use tonnage::strings::{Strings, Value};
use tonnage::{ErrorKind, Result, Tensor};
use tonnage_formats::strings as formats;
use tonnage_formats::strings::{Case, NGrams, Notation, Pattern, Print, Unicode, Unit};

use crate::args::{Dt, StringsArg, TensorArg, ValueArg};
use crate::errors::{data_decide, raise};
use crate::results::IntoObject;
use crate::run::{MUCH, run};

/// What came of an op; where it needs values that a function that is traced has not, the data decide.
pub fn undecided<R>(py: Python<'_>, made: PyResult<Result<R>>) -> PyResult<PyResult<R>> {
    Ok(made?.map_err(|error| match error.kind() {
        ErrorKind::Symbolic { .. } => data_decide(py, "how many bytes strings have"),
        _ => raise(py, error),
    }))
}

/// Strings one behind the other, broadcast to each other.
pub fn sum(left: &Strings, right: &Strings) -> Result<Strings> {
    let shape = left.shape().broadcast(&right.shape(), "add")?;
    let wide = |one: &Strings| one.each(|part| part.broadcast_to(shape.clone()));
    formats::join(&[&wide(left)?, &wide(right)?], b"")
}

macro_rules! text {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $T:ty),*) -> $R:ty = $body:expr;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[allow(clippy::too_many_arguments, reason = "they are what the op takes")]
            fn $name(py: Python<'_>, $($arg: $T),*) -> PyResult<<$R as IntoObject>::Object> {
                let make = move || -> Result<$R> { $body };
                let made = run(py, MUCH, move || Ok(make()));
                Ok(undecided(py, made)??.out())
            }
        )*

        /// Adds them all to the module.
        pub fn add_all(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }
    };
}

fn unit(utf8: bool) -> Unit {
    if utf8 { Unit::Utf8 } else { Unit::Byte }
}

fn case(utf8: bool) -> Case {
    if utf8 { Case::Utf8 } else { Case::Ascii }
}

/// What stands for invalid bytes, and for control characters: `None` is an error or the character itself, an empty text is nothing, otherwise its character.
fn unicode(instead: Option<String>, controls: Option<String>) -> Unicode {
    let first = |text: String| text.chars().next();
    Unicode { invalid: instead.map(first), controls: controls.map(first) }
}

text! {
    strings_length(x: StringsArg, utf8: bool) -> Tensor = formats::length(&x.0, unit(utf8));
    strings_lower(x: StringsArg, utf8: bool) -> Strings = formats::lower(&x.0, case(utf8));
    strings_upper(x: StringsArg, utf8: bool) -> Strings = formats::upper(&x.0, case(utf8));
    strings_strip(x: StringsArg) -> Strings = formats::strip(&x.0);
    strings_substr(x: StringsArg, pos: TensorArg, len: TensorArg, utf8: bool) -> Strings =
        formats::substr(&x.0, &pos.0, &len.0, unit(utf8));
    strings_split(x: StringsArg, separator: Option<Vec<u8>>, most: Option<usize>) -> (Strings, Tensor) =
        formats::split(&x.0, separator.as_deref(), most);
    strings_bytes_split(x: StringsArg) -> (Strings, Tensor) = formats::bytes_split(&x.0);
    strings_join(parts: Vec<StringsArg>, separator: Vec<u8>) -> Strings =
        formats::join(&parts.iter().map(|part| &part.0).collect::<Vec<_>>(), &separator);
    strings_reduce_join(x: StringsArg, axes: Vec<i64>, separator: Vec<u8>, keep: bool) -> Strings =
        formats::reduce_join(&x.0, &axes, &separator, keep);
    strings_segment_join(x: StringsArg, segments: TensorArg, count: usize, separator: Vec<u8>) -> Strings =
        formats::unsorted_segment_join(&x.0, &segments.0, count, &separator);
    strings_regex_replace(x: StringsArg, pattern: String, rewrite: Vec<u8>, all: bool) -> Strings =
        formats::regex_replace(&x.0, &Pattern::new(&pattern)?, &rewrite, all);
    strings_regex_full_match(x: StringsArg, pattern: String) -> Tensor =
        formats::regex_full_match(&x.0, &Pattern::new(&pattern)?);
    strings_to_number(x: StringsArg, dtype: Dt) -> Tensor = formats::to_number(&x.0, dtype.0);
    strings_as_string(x: ValueArg, precision: Option<usize>, notation: String, width: Option<usize>, fill: String) -> Strings = {
        let notation = match notation.as_str() {
            "scientific" => Notation::Scientific,
            "shortest" => Notation::Shortest,
            _ => Notation::Fixed,
        };
        let how = Print { precision, notation, width, fill };
        match x.0 {
            Value::Numbers(x) => formats::as_string(&x, &how),
            Value::Strings(x) => formats::filled_up(&x, &how),
        }
    };
    strings_hash_bucket(x: StringsArg, buckets: i64) -> Tensor = formats::hash_bucket(&x.0, buckets);
    strings_hash_bucket_fast(x: StringsArg, buckets: i64) -> Tensor = formats::hash_bucket_fast(&x.0, buckets);
    strings_hash_bucket_strong(x: StringsArg, buckets: i64, key: [u64; 2]) -> Tensor =
        formats::hash_bucket_strong(&x.0, buckets, key);
    strings_encode_base64(x: StringsArg, pad: bool) -> Strings = formats::encode_base64(&x.0, pad);
    strings_decode_base64(x: StringsArg) -> Strings = formats::decode_base64(&x.0);
    strings_decode_raw(x: StringsArg, dtype: Dt, little: bool, length: Option<usize>) -> Tensor = match length {
        Some(length) => formats::decode_raw_padded(&x.0, dtype.0, little, length),
        None => formats::decode_raw(&x.0, dtype.0, little),
    };
    strings_unicode_decode(x: StringsArg, encoding: String, instead: Option<String>, controls: Option<String>) -> (Tensor, Tensor, Tensor) = {
        let made = formats::unicode_decode(&x.0, &encoding, unicode(instead, controls))?;
        Ok((made.characters, made.offsets, made.splits))
    };
    strings_unicode_encode(x: TensorArg, splits: TensorArg, encoding: String, instead: Option<String>) -> Strings =
        formats::unicode_encode(&x.0, &splits.0, &encoding, unicode(instead, None));
    strings_unicode_split(x: StringsArg, encoding: String, instead: Option<String>) -> (Strings, Tensor, Tensor) =
        formats::unicode_split(&x.0, &encoding, unicode(instead, None));
    strings_unicode_transcode(x: StringsArg, encoding: String, output: String, instead: Option<String>, controls: Option<String>) -> Strings =
        formats::unicode_transcode(&x.0, &encoding, &output, unicode(instead, controls));
    strings_unicode_script(x: TensorArg) -> Tensor = formats::unicode_script(&x.0);
    strings_ngrams(x: StringsArg, splits: TensorArg, widths: Vec<usize>, separator: Vec<u8>, pads: [Vec<u8>; 2], padding: Option<usize>, keep_short: bool) -> (Strings, Tensor) =
        formats::ngrams(&x.0, &splits.0, &NGrams { widths, separator, pads, padding, keep_short });
}
