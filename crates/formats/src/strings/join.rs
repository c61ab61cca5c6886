//! Several strings as one.

use tonnage::strings::{Strings, look};
use tonnage::{Dim, Result, Shape, Tensor};
use tonnage_core::error::bad_argument;

/// The strings of several tensors that stand opposite, one after another with a separator between them. All are of one shape, or scalars.
///
/// ```
/// use tonnage::strings::Strings;
/// let (x, y) = (Strings::new(&["a", "b"], [2])?, Strings::scalar("c")?);
/// assert_eq!(tonnage_formats::strings::join(&[&x, &y], b"-")?.to_vec()?, [b"a-c", b"b-c"]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where shapes differ, and while a function is traced.
#[track_caller]
pub fn join(parts: &[&Strings], separator: &[u8]) -> Result<Strings> {
    let mut shape = Shape::scalar();
    for part in parts.iter().filter(|part| part.rank() > 0) {
        if shape.rank() > 0 && part.shape() != shape {
            let what = format!("shapes {shape} and {}", part.shape());
            return Err(bad_argument("join", what, "give strings of one shape, or scalars"));
        }
        shape = part.shape();
    }
    Strings::written("join", shape, parts, &[], |strings, _, i, sink| {
        for (number, part) in strings.iter().enumerate() {
            if number > 0 {
                sink.push(separator);
            }
            sink.push(part.get(if part.len() == 1 { 0 } else { i })?);
        }
        Ok(())
    })
}

/// All strings along axes as one, in the order in which the axes are named; those stay with length 1 if they are to be kept.
///
/// ```
/// use tonnage::strings::Strings;
/// use tonnage_formats::strings::reduce_join;
/// let x = Strings::new(&["a", "b", "c", "d"], [2, 2])?;
/// assert_eq!(reduce_join(&x, &[0], b" ", false)?.to_vec()?, [b"a c", b"b d"]);
/// assert_eq!(reduce_join(&x, &[0, 1], b"", false)?.to_vec()?, [b"acbd"]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where an axis is not there or named twice, and while a function is traced.
#[track_caller]
pub fn reduce_join(x: &Strings, axes: &[i64], separator: &[u8], keep: bool) -> Result<Strings> {
    let shape = x.shape();
    shape.axes("reduce_join", axes)?;
    let axes: Vec<usize> =
        axes.iter().map(|axis| shape.axis("reduce_join", *axis)).collect::<Result<_>>()?;
    let rest: Vec<usize> = (0..shape.rank()).filter(|axis| !axes.contains(axis)).collect();
    // What is joined first lies closest together.
    let order: Vec<i64> = rest.iter().chain(axes.iter().rev()).map(|axis| *axis as i64).collect();
    let moved = x.each(|part| part.transpose(&order))?;
    let joined: Option<usize> = axes.iter().map(|axis| shape[*axis].known()).product();
    let Some(joined) = joined else {
        return Err(bad_argument("reduce_join", "an open length", "give strings that have values"));
    };
    let to: Shape = match keep {
        true => {
            let kept = |(axis, dim): (usize, &Dim)| match axes.contains(&axis) {
                true => Dim::Known(1),
                false => dim.clone(),
            };
            shape.iter().enumerate().map(kept).collect()
        }
        false => rest.iter().map(|axis| shape[*axis].clone()).collect(),
    };
    Strings::written("reduce_join", to, &[&moved], &[], |strings, _, i, sink| {
        for number in 0..joined {
            if number > 0 {
                sink.push(separator);
            }
            sink.push(strings[0].get(i * joined + number)?);
        }
        Ok(())
    })
}

/// The strings of each of `count` segments as one: those whose number is in `segments`, which has the first axes of the strings. As in TensorFlow, empty strings at
/// the front of a segment have no separator behind them.
///
/// ```
/// use tonnage::{strings::Strings, tensor};
/// let x = Strings::new(&["a", "b", "c"], [3])?;
/// let made = tonnage_formats::strings::unsorted_segment_join(&x, &tensor([1, 0, 1])?, 2, b"-")?;
/// assert_eq!(made.to_vec()?, [&b"b"[..], b"a-c"]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where a segment is not there or shapes do not fit, and while a function is traced.
#[track_caller]
pub fn unsorted_segment_join(
    x: &Strings,
    segments: &Tensor,
    count: usize,
    separator: &[u8],
) -> Result<Strings> {
    let (shape, leading) = (x.shape(), segments.shape());
    if !segments.dtype().is_integer() || !shape.starts_with(&leading) {
        let what = format!("segments of {} for strings of shape {shape}", segments.ty());
        let help = "give an integer for each element of the first axes";
        return Err(bad_argument("unsorted_segment_join", what, help));
    }
    let numbers = integers(segments)?;
    if let Some(wrong) = numbers.iter().find(|n| !(0..count as i64).contains(n)) {
        let what = format!("segment {wrong} of {count}");
        return Err(bad_argument("unsorted_segment_join", what, "give segments that there are"));
    }
    // Rows by their segments, in order.
    let mut rows: Vec<usize> = (0..numbers.len()).collect();
    rows.sort_by_key(|row| numbers[*row]);
    let inner: Shape = shape.iter().skip(leading.rank()).cloned().collect();
    let each = inner.count().unwrap_or(1).max(1);
    let to: Shape = std::iter::once(Dim::Known(count)).chain(inner.iter().cloned()).collect();
    Strings::written("unsorted_segment_join", to, &[x], &[], |strings, _, i, sink| {
        let segment = (i / each) as i64;
        let first = rows.partition_point(|row| numbers[*row] < segment);
        let own = rows[first..].iter().take_while(|row| numbers[**row] == segment);
        let mut is_begun = false;
        for row in own {
            let text = strings[0].get(row * each + i % each)?;
            if is_begun {
                sink.push(separator);
            }
            sink.push(text);
            is_begun |= !text.is_empty();
        }
        Ok(())
    })
}

/// The numbers of a row of integers.
pub(super) fn integers(x: &Tensor) -> Result<Vec<i64>> {
    let mut all = Vec::new();
    look(&[], &[x], |_, numbers| {
        let count: usize = numbers[0].sizes().iter().product();
        all.extend((0..count).map(|i| numbers[0].nth(i).to_i128() as i64));
        Ok(())
    })?;
    Ok(all)
}
