//! Nested Rust data to tensors, and back.
//!
//! Data are measured and checked first, so that no bytes are asked for what turns out ragged, and then
//! written straight into the tensor's buffer: there is no second copy of tensor size on the way in, and
//! none but the result on the way out.

use smallvec::SmallVec;
use tonnage_core::error::bad_argument;
use tonnage_core::layout::Slice;
use tonnage_core::{
    Bool, Bytes, DType, Element, ErrorKind, Kind, Layout, Mark, Recipe, Result, Shape, Sizes,
    TensorType, bf16, f16,
};
use tonnage_runtime::placement::in_scope;
use tonnage_runtime::{Array, Buffer, Owner, host_ledger};

/// Rust data that make a tensor: numbers and booleans; arrays, vectors and slices of those, nested to
/// any depth; and references to all of them.
///
/// The depth is the rank. Lengths must agree along each axis:
///
/// ```
/// use tonnage::Nested;
/// assert_eq!([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]].shape()?.as_slice(), [2, 3]);
/// assert_eq!(Vec::<[u8; 3]>::new().shape()?.as_slice(), [0, 3]);
/// let ragged = vec![vec![1, 2], vec![3]];
/// assert_eq!(
///     ragged.shape().unwrap_err().to_string(),
///     "tensor: ragged data: [1] has length 1, but [0] has length 2; \
///      give every row of an axis the same length",
/// );
/// # Ok::<(), tonnage_core::Error>(())
/// ```
pub trait Nested {
    /// What an element is in memory.
    type Element: Element;
    /// True where the type alone says all lengths, so that there is nothing to check.
    const FIXED: bool;

    /// Pushes the lengths, outermost first, as the first row of each axis has them. Without data, an
    /// axis has the length that its type says, or none.
    fn lengths(data: Option<&Self>, sizes: &mut Sizes);

    /// Compares all lengths with those of the first rows. `path` says where the data stand.
    ///
    /// # Errors
    /// Names the first row that differs.
    fn check(&self, sizes: &[usize], path: &mut Sizes) -> Result<()>;

    /// Writes the elements in order. There are just as many as `out` takes.
    fn write(&self, out: &mut [Self::Element]);

    /// Writes several, one after the other. What is one element long is copied at once.
    fn write_all(items: &[Self], out: &mut [Self::Element])
    where
        Self: Sized,
    {
        let each = out.len().checked_div(items.len()).unwrap_or(0);
        for (i, item) in items.iter().enumerate() {
            item.write(&mut out[i * each..(i + 1) * each]);
        }
    }

    /// The lengths, outermost first.
    ///
    /// # Errors
    /// Where data are ragged: the index of the first row that differs, and both lengths.
    fn shape(&self) -> Result<Sizes> {
        let mut sizes = Sizes::new();
        Self::lengths(Some(self), &mut sizes);
        self.check(&sizes, &mut Sizes::new())?;
        Ok(sizes)
    }
}

/// A Rust type that stands for one element: the numbers, and `bool`.
pub trait Native: Nested + Copy {
    /// From what lies in memory.
    fn from_element(element: Self::Element) -> Self;
}

macro_rules! native {
    ($($T:ty),*) => {$(
        impl Nested for $T {
            type Element = $T;
            const FIXED: bool = true;
            fn lengths(_: Option<&$T>, _: &mut Sizes) {}
            fn check(&self, _: &[usize], _: &mut Sizes) -> Result<()> {
                Ok(())
            }
            fn write(&self, out: &mut [$T]) {
                out.fill(*self);
            }
            fn write_all(items: &[$T], out: &mut [$T]) {
                out.copy_from_slice(items);
            }
        }
        impl Native for $T {
            fn from_element(element: $T) -> $T {
                element
            }
        }
    )*};
}

native!(f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, Bool);

impl Nested for bool {
    type Element = Bool;
    const FIXED: bool = true;

    fn lengths(_: Option<&bool>, _: &mut Sizes) {}

    fn check(&self, _: &[usize], _: &mut Sizes) -> Result<()> {
        Ok(())
    }

    fn write(&self, out: &mut [Bool]) {
        out.fill(Bool::from(*self));
    }
}

impl Native for bool {
    fn from_element(element: Bool) -> bool {
        element.get()
    }
}

impl<T: Nested> Nested for [T] {
    type Element = T::Element;
    const FIXED: bool = false;

    fn lengths(data: Option<&[T]>, sizes: &mut Sizes) {
        sizes.push(data.map_or(0, <[T]>::len));
        T::lengths(data.and_then(<[T]>::first), sizes);
    }

    fn check(&self, sizes: &[usize], path: &mut Sizes) -> Result<()> {
        let Some((length, inner)) = sizes.split_first() else { return Ok(()) };
        if self.len() != *length {
            return Err(ragged(path, self.len(), *length));
        }
        if T::FIXED {
            return Ok(());
        }
        for (i, item) in self.iter().enumerate() {
            path.push(i);
            item.check(inner, path)?;
            path.pop();
        }
        Ok(())
    }

    fn write(&self, out: &mut [T::Element]) {
        T::write_all(self, out);
    }
}

impl<T: Nested, const N: usize> Nested for [T; N] {
    type Element = T::Element;
    const FIXED: bool = T::FIXED;

    fn lengths(data: Option<&[T; N]>, sizes: &mut Sizes) {
        sizes.push(N);
        T::lengths(data.and_then(|items| items.first()), sizes);
    }

    fn check(&self, sizes: &[usize], path: &mut Sizes) -> Result<()> {
        self.as_slice().check(sizes, path)
    }

    fn write(&self, out: &mut [T::Element]) {
        T::write_all(self, out);
    }

    fn write_all(items: &[[T; N]], out: &mut [T::Element]) {
        T::write_all(items.as_flattened(), out);
    }
}

impl<T: Nested> Nested for Vec<T> {
    type Element = T::Element;
    const FIXED: bool = false;

    fn lengths(data: Option<&Vec<T>>, sizes: &mut Sizes) {
        <[T]>::lengths(data.map(Vec::as_slice), sizes);
    }

    fn check(&self, sizes: &[usize], path: &mut Sizes) -> Result<()> {
        self.as_slice().check(sizes, path)
    }

    fn write(&self, out: &mut [T::Element]) {
        T::write_all(self, out);
    }
}

impl<T: Nested + ?Sized> Nested for &T {
    type Element = T::Element;
    const FIXED: bool = T::FIXED;

    fn lengths(data: Option<&&T>, sizes: &mut Sizes) {
        T::lengths(data.copied(), sizes);
    }

    fn check(&self, sizes: &[usize], path: &mut Sizes) -> Result<()> {
        T::check(self, sizes, path)
    }

    fn write(&self, out: &mut [T::Element]) {
        T::write(self, out);
    }
}

fn ragged(path: &[usize], length: usize, first: usize) -> tonnage_core::Error {
    let zeros = Sizes::from_elem(0, path.len());
    bad_argument(
        "tensor",
        format!("ragged data: {path:?} has length {length}, but {zeros:?} has length {first}"),
        "give every row of an axis the same length",
    )
}

/// A tensor of these data, written into a buffer of its own that is entered as an input.
pub(crate) fn to_array<N: Nested + ?Sized>(data: &N, mark: Mark) -> Result<Array> {
    write_array(data, mark).map_err(|e| e.at(mark.source))
}

fn write_array<N: Nested + ?Sized>(data: &N, mark: Mark) -> Result<Array> {
    let sizes = data.shape()?;
    let dtype = N::Element::DTYPE;
    let bytes = TensorType::new(dtype, &sizes[..]).bytes("tensor")?;
    let owner = Owner { kind: Kind::Input, what: "tensor", name: None, source: mark.source };
    let mut buffer = Buffer::obtain(&host_ledger(), bytes, owner)?;
    // No bytes lie at no address in particular, which a cast would refuse.
    if bytes != Bytes::ZERO {
        data.write(bytemuck::cast_slice_mut(buffer.bytes_mut()?));
    }
    in_scope(Array::from_buffer(buffer, dtype, Layout::contiguous(sizes)))
}

/// A part of a tensor: a view of its bytes, or, while it is a recipe, a smaller recipe.
pub(crate) fn part(array: &Array, slices: &[Slice]) -> Array {
    let Some(recipe) = array.as_recipe() else {
        return array.view(array.layout().slice(slices));
    };
    let sources =
        recipe.sources.iter().map(|(g, layout)| (g.clone(), layout.slice(slices))).collect();
    let sizes = slices.iter().map(|s| s.len).collect();
    Array::from_recipe(Recipe { program: recipe.program.clone(), sources, sizes }.into())
}

/// The only element.
pub(crate) fn scalar<T: Native>(array: &Array) -> Result<T> {
    expect_dtype::<T>("scalar", array)?;
    if array.layout().count() != 1 {
        let what = format!("{} has {} elements", array.ty(), array.layout().count());
        return Err(bad_argument("scalar", what, "it takes just one; use `to_vec` for more"));
    }
    let mut one = [<T::Element as bytemuck::Zeroable>::zeroed()];
    array.copy_to(bytemuck::cast_slice_mut(&mut one))?;
    Ok(T::from_element(one[0]))
}

/// All elements, whatever the rank, last axis fastest.
pub(crate) fn to_vec<T: Native>(array: &Array) -> Result<Vec<T>> {
    expect_dtype::<T>("to_vec", array)?;
    // Elements and values are of one size: the standard library collects into the same allocation.
    Ok(array.to_vec::<T::Element>()?.into_iter().map(T::from_element).collect())
}

/// A matrix by rows.
pub(crate) fn to_vec2<T: Native>(array: &Array) -> Result<Vec<Vec<T>>> {
    expect_rank::<T>("to_vec2", array, 2)?;
    outermost(array, |row| row.iter().copied().map(T::from_element).collect())
}

/// A tensor of rank 3 by matrices, by rows.
pub(crate) fn to_vec3<T: Native>(array: &Array) -> Result<Vec<Vec<Vec<T>>>> {
    expect_rank::<T>("to_vec3", array, 3)?;
    let (rows, columns) = (array.sizes()[1], array.sizes()[2]);
    outermost(array, |matrix| {
        (0..rows)
            .map(|r| &matrix[r * columns..(r + 1) * columns])
            .map(|row| row.iter().copied().map(T::from_element).collect())
            .collect()
    })
}

/// Elements that are read at once on the way to nested vectors.
const BLOCK: usize = 16 * 1024;

/// Makes something of each item along the first axis. Items are read a few at a time: all at once
/// would be a second copy of the tensor beside the result, one at a time slow where they are short.
fn outermost<E: Element, R>(array: &Array, make: impl Fn(&[E]) -> R) -> Result<Vec<R>> {
    let Some((count, inner)) = array.sizes().split_first() else { return Ok(Vec::new()) };
    let each: usize = inner.iter().product();
    let at_once = (BLOCK / each.max(1)).max(1);
    let whole = |len: &usize| Slice { start: 0, len: *len, step: 1 };
    let mut slices: SmallVec<[Slice; 4]> = array.sizes().iter().map(whole).collect();
    let mut made = Vec::with_capacity(*count);
    for start in (0..*count).step_by(at_once) {
        slices[0] = Slice { start, len: at_once.min(count - start), step: 1 };
        let values = part(array, &slices).to_vec::<E>()?;
        made.extend((0..slices[0].len).map(|i| make(&values[i * each..(i + 1) * each])));
    }
    Ok(made)
}

fn expect_dtype<T: Native>(op: &'static str, array: &Array) -> Result<()> {
    let (left, right): (DType, DType) = (array.dtype(), T::Element::DTYPE);
    if left == right {
        return Ok(());
    }
    let help = format!("read it as {left}, or `cast` it to {right} first");
    Err(ErrorKind::DTypeMismatch { op, left, right, help }.into())
}

fn expect_rank<T: Native>(op: &'static str, array: &Array, rank: usize) -> Result<()> {
    expect_dtype::<T>(op, array)?;
    if array.sizes().len() == rank {
        return Ok(());
    }
    let (shape, expected) = (Shape::from(array.sizes()), format!("rank {rank}"));
    Err(ErrorKind::RankMismatch { op, shape, expected }.into())
}

#[cfg(test)]
mod tests;
