//! Several tensors of strings over the same bytes, so that what moves elements between them need not look at any.

use tonnage_core::{DType, Result};

use super::Strings;
use crate::ops::Elementwise;
use crate::tensor::Tensor;

/// Strings over the same bytes: those of the first where all have the same, such as rows of one tensor; otherwise those of each one after another. What lies in
/// bytes that it has hardly any part of, as a row of many, is brought together first.
///
/// # Errors
/// Where there is no memory.
pub fn over_the_same_bytes(all: &[&Strings]) -> Result<Vec<Strings>> {
    let Some((first, rest)) = all.split_first() else { return Ok(Vec::new()) };
    if rest.iter().all(|one| is_same(&one.bytes, &first.bytes)) {
        return Ok(all.iter().map(|one| (*one).clone()).collect());
    }
    let own = all.iter().map(|one| close_together(one)).collect::<Result<Vec<_>>>()?;
    let bytes = crate::concat(&own.iter().map(|one| &one.bytes).collect::<Vec<_>>(), 0)?;
    let mut begin: Option<Tensor> = None;
    let mut made = Vec::with_capacity(own.len());
    for one in own {
        let offsets = match &begin {
            Some(begin) => one.offsets.add(begin)?,
            None => one.offsets,
        };
        let size = one.bytes.size_tensor()?.cast(DType::I64)?;
        begin = Some(match begin {
            Some(begin) => begin.add(&size)?,
            None => size,
        });
        made.push(Strings { offsets, sizes: one.sizes, bytes: bytes.clone() });
    }
    Ok(made)
}

/// What an op makes of several that move together: a concatenation, a choice.
pub(super) fn joined(
    all: &[&Strings],
    op: impl Fn(&[&Tensor]) -> Result<Tensor>,
) -> Result<Strings> {
    let all = over_the_same_bytes(all)?;
    let offsets = op(&all.iter().map(|one| &one.offsets).collect::<Vec<_>>())?;
    let sizes = op(&all.iter().map(|one| &one.sizes).collect::<Vec<_>>())?;
    match all.into_iter().next() {
        Some(first) => Strings::from_parts(offsets, sizes, first.bytes),
        None => Strings::new(&[""; 0], [0]),
    }
}

fn is_same(a: &Tensor, b: &Tensor) -> bool {
    let array = |tensor: &Tensor| tensor.array("strings").ok().cloned();
    a.id() == b.id()
        || array(a)
            .zip(array(b))
            .is_some_and(|(a, b)| a.shares_bytes(&b) && a.layout() == b.layout())
}

/// The same strings in bytes of their own, where they have fewer than lie there.
fn close_together(one: &Strings) -> Result<Strings> {
    if one.offsets.is_symbolic() || one.sizes.is_symbolic() || one.bytes.is_symbolic() {
        return Ok(one.clone());
    }
    let held = one.bytes.shape().count().unwrap_or(0);
    match one.text_bytes()? < held {
        true => one.packed(),
        false => Ok(one.clone()),
    }
}

impl Strings {
    /// Strings of this one where a condition holds, and of another where not.
    ///
    /// ```
    /// use tonnage::{strings::Strings, tensor};
    /// let (x, y) = (Strings::new(&["a", "b"], [2])?, Strings::scalar("none")?);
    /// assert_eq!(x.or_where(&tensor([true, false])?, &y)?.to_vec()?, [&b"a"[..], b"none"]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where the condition is not boolean, or shapes do not broadcast to each other.
    #[track_caller]
    pub fn or_where(&self, condition: &Tensor, other: &Strings) -> Result<Strings> {
        joined(&[self, other], |parts| condition.where_(parts[0], parts[1]))
    }
}
