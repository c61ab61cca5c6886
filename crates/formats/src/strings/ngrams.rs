//! Runs of strings that follow each other in a row, as one string each.

use tonnage::strings::{Sink, Strings};
use tonnage::{Result, Tensor};
use tonnage_core::error::bad_argument;

use super::join::integers;
use super::numbers;

/// Which runs there are, and what stands around rows.
#[derive(Debug, Clone, Default)]
pub struct NGrams {
    /// How many strings a run has. Of several widths the runs of each come one after another.
    pub widths: Vec<usize>,
    /// What stands between strings.
    pub separator: Vec<u8>,
    /// What stands before a row, and what behind it.
    pub pads: [Vec<u8>; 2],
    /// How often, at most: never more often than a run without a string of the row would need. `None` is as often as that.
    pub padding: Option<usize>,
    /// Whether a row that is too short for any run is one.
    pub keep_short: bool,
}

impl NGrams {
    /// How often a row is padded on one side.
    fn pad(&self, width: usize) -> usize {
        self.padding.unwrap_or(usize::MAX).min(width - 1)
    }

    /// How many runs of that width a row has; an empty one has none.
    fn runs(&self, width: usize, length: usize) -> usize {
        if length == 0 { 0 } else { (length + 2 * self.pad(width) + 1).saturating_sub(width) }
    }

    /// The number of runs of a row; a short row that is kept is one.
    fn count(&self, length: usize) -> usize {
        let all = self.widths.iter().map(|width| self.runs(*width, length)).sum();
        if all == 0 && self.keep_short && length > 0 { 1 } else { all }
    }
}

/// The runs of each row, one after another, and where those of each row begin.
///
/// ```
/// use tonnage::{strings::Strings, tensor};
/// use tonnage_formats::strings::{NGrams, ngrams};
/// let words = Strings::new(&["a", "b", "c"], [3])?;
/// let pairs = NGrams { widths: vec![2], separator: b" ".to_vec(), padding: Some(0), ..NGrams::default() };
/// let (made, splits) = ngrams(&words, &tensor([0i64, 3])?, &pairs)?;
/// assert_eq!(made.to_vec()?, [b"a b", b"b c"]);
/// assert_eq!(splits.to_vec::<i64>()?, [0, 2]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where a width is 0 or rows lie outside of the strings, and while a function is traced.
#[track_caller]
pub fn ngrams(x: &Strings, splits: &Tensor, how: &NGrams) -> Result<(Strings, Tensor)> {
    let rows = integers(splits)?;
    let held = x.shape().count().unwrap_or(0) as i64;
    let fits = rows.first() == Some(&0)
        && rows.last() == Some(&held)
        && rows.windows(2).all(|pair| pair[0] <= pair[1]);
    if !fits || how.widths.contains(&0) || how.widths.is_empty() {
        let what = format!("rows {rows:?} of {held} strings in runs of {:?}", how.widths);
        return Err(bad_argument("ngrams", what, "give runs of 1 and more, and rows in order"));
    }
    let rows: Vec<usize> = rows.iter().map(|split| *split as usize).collect();
    let mut begins = vec![0];
    for row in rows.windows(2) {
        begins.push(begins.last().copied().unwrap_or(0) + how.count(row[1] - row[0]));
    }
    let total = begins.last().copied().unwrap_or(0);
    let made = Strings::written("ngrams", [total].into(), &[x], &[], |strings, _, i, sink| {
        let row = begins.partition_point(|begin| *begin <= i) - 1;
        let (start, length) = (rows[row], rows[row + 1] - rows[row]);
        let mut rest = i - begins[row];
        for width in &how.widths {
            let runs = how.runs(*width, length);
            if rest >= runs {
                rest -= runs;
                continue;
            }
            let pad = how.pad(*width);
            return run(sink, how, rest..rest + width, |place| match place {
                place if place < pad => Ok(&how.pads[0]),
                place if place < pad + length => strings[0].get(start + place - pad),
                _ => Ok(&how.pads[1]),
            });
        }
        // A short row that is kept: with what is around it.
        let pad = how.padding.unwrap_or(0);
        run(sink, how, 0..length + 2 * pad, |place| match place {
            place if place < pad => Ok(&how.pads[0]),
            place if place < pad + length => strings[0].get(start + place - pad),
            _ => Ok(&how.pads[1]),
        })
    })?;
    let splits = numbers::<i64>(begins.len(), |splits| {
        splits.iter_mut().zip(&begins).for_each(|(split, begin)| *split = *begin as i64);
        Ok(())
    })?;
    Ok((made, splits))
}

fn run<'a>(
    sink: &mut Sink,
    how: &NGrams,
    places: std::ops::Range<usize>,
    at: impl Fn(usize) -> Result<&'a [u8]>,
) -> Result<()> {
    let first = places.start;
    for place in places {
        if place > first {
            sink.push(&how.separator);
        }
        sink.push(at(place)?);
    }
    Ok(())
}
