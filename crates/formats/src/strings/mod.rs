//! Ops of tensors of strings, with TensorFlow's meaning.
//!
//! What gives numbers, or other places in the same bytes, is a step on the host that functions plan: [`length`], [`substr`], [`strip`], [`to_number`], hashes and
//! matches. What makes new bytes is made at once, since only the data say how many there are: it fails while a function is traced. Ragged results are their rows one
//! after another and, as `splits`, where each begins; the last split is where all end.
//!
//! `parts` are pieces of strings, `split` rows of them, `ngrams` and `join` several as one, `change` new ones of a character each, `pattern` regular expressions with
//! `syntax`, their translation; `number` and `print` lead to numbers and back, `hash` to buckets, `base64` and `raw` to bytes, `unicode` to code points with
//! `encoding`, how they lie, and `scripts`, where they belong.
//!
//! Decision: `docs/decisions/strings-are-three-tensors.md`.

mod base64;
mod change;
mod encoding;
mod hash;
mod join;
mod ngrams;
mod number;
mod parts;
mod pattern;
mod print;
mod raw;
mod scripts;
mod split;
mod syntax;
mod unicode;

pub use base64::{decode_base64, encode_base64};
pub use change::{Case, lower, upper};
pub use hash::{fingerprint64, hash_bucket, hash_bucket_fast, hash_bucket_strong};
pub use join::{join, reduce_join, unsorted_segment_join};
pub use ngrams::{NGrams, ngrams};
pub use number::to_number;
pub use parts::{Unit, length, strip, substr};
pub use pattern::{Pattern, regex_full_match, regex_replace};
pub use print::{Notation, Print, as_string, filled_up};
pub use raw::{decode_raw, decode_raw_padded};
pub use scripts::unicode_script;
pub use split::{bytes_split, split};
pub use unicode::{
    Decoded, Unicode, unicode_decode, unicode_encode, unicode_split, unicode_transcode,
};

use tonnage::strings::filled;
use tonnage::{Kind, Result, Source, Tensor};
use tonnage_core::{Element, Mark};

/// Numbers in the ledger's memory, of this line.
#[track_caller]
fn numbers<T: Element>(count: usize, write: impl FnOnce(&mut [T]) -> Result<()>) -> Result<Tensor> {
    let mark = Mark { source: Source::here(), kind: Kind::Activation };
    filled::<T>([count].into(), mark, write)
}
