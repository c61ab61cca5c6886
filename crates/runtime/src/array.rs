//! A tensor with bytes or a recipe: storage that is shared, and where in it the elements lie.

use std::sync::{Arc, Weak};

use tonnage_core::layout::Layout;
use tonnage_core::recipe::Recipe;
use tonnage_core::shape::Sizes;
use tonnage_core::{Bytes, DType, Device, Element, Kind, Mark, Result, Shape, Source, TensorType};

use crate::buffer::Buffer;
use crate::context::host_ledger;
use crate::ledger::{Ledger, Owner};
use crate::placement::default_ledger;
use crate::storage::{Pinned, Storage, materialize};

/// A cheap handle to storage; a clone shares the bytes.
#[derive(Debug, Clone)]
pub struct Array(Arc<ArrayInner>);

/// What a handle points at. Behind a pointer, so that handles are cheap to move from call to call.
#[derive(Debug)]
struct ArrayInner {
    base: ArrayBase,
    dtype: DType,
    layout: Layout,
}

/// Whose storage a tensor looks at. A fresh one holds its own beside its layout: one allocation for both.
#[derive(Debug)]
enum ArrayBase {
    Own(Storage),
    /// That of another, which holds its own.
    Of(Array),
}

/// Knows whether a tensor is still held by anyone, without holding it.
#[derive(Debug, Clone)]
pub struct Alive(Weak<ArrayInner>);

impl Alive {
    /// Whether any handle is left.
    pub fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl Array {
    /// For whoever wants to know when it is gone.
    pub fn alive(&self) -> Alive {
        Alive(Arc::downgrade(&self.0))
    }

    fn over(base: ArrayBase, dtype: DType, layout: Layout) -> Array {
        Array(Arc::new(ArrayInner { base, dtype, layout }))
    }

    /// A tensor that is computed as it is read.
    pub fn from_recipe(recipe: Arc<Recipe>) -> Array {
        let (dtype, layout) = (recipe.dtype(), Layout::contiguous(recipe.sizes.clone()));
        Array::over(ArrayBase::Own(Storage::recipe(recipe)), dtype, layout)
    }

    /// A tensor in a buffer.
    #[inline]
    pub fn from_buffer(buffer: Buffer, dtype: DType, layout: Layout) -> Array {
        Array::over(ArrayBase::Own(Storage::resident(buffer)), dtype, layout)
    }

    /// A tensor of these elements, copied into a buffer of its own.
    pub fn from_slice<T: Element>(
        values: &[T],
        sizes: &[usize],
        mark: Mark,
        what: &'static str,
    ) -> Result<Array> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let bytes_of = Bytes::of(bytes.len());
        let mut buffer = Buffer::obtain(&default_ledger(), bytes_of, owner(mark, what))?;
        buffer.copy_in(0, bytes)?;
        Ok(Array::from_buffer(buffer, T::DTYPE, Layout::contiguous(Sizes::from(sizes))))
    }

    /// The same bytes through another layout.
    #[must_use]
    pub fn view(&self, layout: Layout) -> Array {
        self.view_as(self.0.dtype, layout)
    }

    /// The same bytes as elements of another dtype.
    pub(crate) fn view_as(&self, dtype: DType, layout: Layout) -> Array {
        Array::over(ArrayBase::Of(self.base().clone()), dtype, layout)
    }

    /// The one whose storage it looks at.
    fn base(&self) -> &Array {
        match &self.0.base {
            ArrayBase::Own(_) => self,
            ArrayBase::Of(base) => base,
        }
    }

    /// Dtype of its elements.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Where its elements lie.
    pub fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// Its sizes.
    pub fn sizes(&self) -> &[usize] {
        &self.0.layout.sizes
    }

    /// Its type.
    pub fn ty(&self) -> TensorType {
        TensorType { dtype: self.0.dtype, shape: Shape::from(self.sizes()) }
    }

    /// The storage that it shares.
    #[inline]
    pub fn storage(&self) -> &Storage {
        match &self.0.base {
            ArrayBase::Own(storage) => storage,
            ArrayBase::Of(base) => base.storage(),
        }
    }

    /// The recipe, while it is one.
    pub fn as_recipe(&self) -> Option<Arc<Recipe>> {
        self.storage().as_recipe()
    }

    /// Whether nobody else holds the bytes, and they are just its elements in order.
    pub fn is_sole(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && Arc::strong_count(&self.base().0) == 1 && self.is_whole()
    }

    /// How many handles and views hold the bytes.
    pub fn handles(&self) -> usize {
        // A view is one of its base's holders, and may have several of its own.
        let views = if self.is_view() { Arc::strong_count(&self.0) - 1 } else { 0 };
        Arc::strong_count(&self.base().0) + views
    }

    /// Whether it looks at the bytes of another.
    pub fn is_view(&self) -> bool {
        matches!(self.0.base, ArrayBase::Of(_))
    }

    /// Whether both look at the same bytes.
    pub fn shares_bytes(&self, other: &Array) -> bool {
        std::ptr::eq(self.storage(), other.storage())
    }

    /// Whether its elements are all there is in the bytes, in order.
    pub fn is_whole(&self) -> bool {
        self.0.layout.offset == 0 && self.0.layout.is_contiguous()
    }

    /// Pins its bytes, made resident first if it is a recipe.
    pub fn pin(&self, what: &'static str, source: Source) -> Result<Pinned<'_>> {
        let mark = Mark { source, kind: Kind::Activation };
        self.storage().pin(&host_ledger(), owner(mark, what))
    }

    /// The same, held by another owner in the ledger.
    #[must_use]
    pub fn owned_by(self, owner: Owner) -> Array {
        self.storage().set_owner(owner);
        self
    }

    /// A copy in bytes of its own, close together.
    pub fn copied(&self, mark: Mark, what: &'static str) -> Result<Array> {
        let ledger = match self.storage().ledger() {
            Some(ledger) if !ledger.is_host() => ledger,
            Some(_) => host_ledger(),
            None => default_ledger(),
        };
        self.copied_as(&ledger, owner(mark, what))
    }

    /// A copy on another device, close together.
    ///
    /// # Errors
    /// Where there is no memory for it.
    pub fn copied_to(&self, ledger: &Ledger, what: &'static str) -> Result<Array> {
        let mark = Mark { source: Source::here(), kind: self.kind() };
        self.copied_as(ledger, owner(mark, what))
    }

    /// The same, for that owner.
    ///
    /// # Errors
    /// Where there is no memory for it.
    pub fn copied_as(&self, ledger: &Ledger, owner: Owner) -> Result<Array> {
        let (what, source) = (owner.what, owner.source);
        let layout = Layout::contiguous(self.0.layout.sizes.clone());
        if let Some(recipe) = self.as_recipe() {
            let buffer = materialize(&recipe, ledger, owner)?;
            return Ok(Array::from_buffer(buffer, self.0.dtype, layout));
        }
        let mut buffer = Buffer::obtain(ledger, self.ty().bytes(what)?, owner)?;
        let dense = self.is_dense().then(|| self.pin(what, source)).transpose()?;
        let first = self.0.layout.offset * self.0.dtype.size();
        match dense.as_ref().map(Pinned::bytes) {
            // From host memory without a copy beside it.
            Some(Ok(bytes)) => buffer.copy_in(0, &bytes[first..first + buffer.len()])?,
            _ if ledger.is_host() => self.copy_to(buffer.bytes_mut()?)?,
            _ => {
                let mut host = staging(buffer.len(), what)?;
                self.copy_to(host.bytes_mut()?)?;
                buffer.copy_in(0, host.bytes()?)?;
            }
        }
        Ok(Array::from_buffer(buffer, self.0.dtype, layout))
    }

    fn is_dense(&self) -> bool {
        self.0.layout.is_contiguous() && self.0.layout.count() > 0
    }

    /// What its bytes are held as.
    fn kind(&self) -> Kind {
        self.storage().owner().map_or(Kind::Activation, |owner| owner.kind)
    }

    /// The device that it lies on; a recipe lies nowhere.
    pub fn device(&self) -> Option<Device> {
        self.storage().ledger().map(|ledger| ledger.device())
    }

    /// Its storage, given up by the last who holds it; `None` where somebody else does.
    pub(crate) fn into_storage(self) -> Option<Storage> {
        match Arc::into_inner(self.0)?.base {
            ArrayBase::Own(storage) => Some(storage),
            ArrayBase::Of(base) => base.into_storage(),
        }
    }

    /// Its elements in logical order. A recipe is computed straight into the result.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let mut values = vec![T::zeroed(); self.0.layout.count()];
        self.copy_to(bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    /// Copies its elements in logical order.
    pub fn copy_to(&self, out: &mut [u8]) -> Result<()> {
        if let Some(recipe) = self.as_recipe() {
            return crate::storage::write_recipe(&recipe, out);
        }
        if out.is_empty() {
            return Ok(()); // a view of nothing may start beyond the end
        }
        let pinned = self.pin("read", Source::here())?;
        let (buffer, size) = (pinned.buffer()?, self.0.dtype.size());
        if self.0.layout.is_contiguous() {
            return buffer.copy_out(self.0.layout.offset * size, out);
        }
        // Of a device the bytes come over whole: it runs nothing to bring them into order.
        let whole;
        let bytes = match buffer.is_host() {
            true => buffer.bytes()?,
            false => {
                let mut copy = staging(buffer.len(), "read")?;
                buffer.copy_out(0, copy.bytes_mut()?)?;
                whole = copy;
                whole.bytes()?
            }
        };
        let mut chunks = out.chunks_exact_mut(size);
        self.0.layout.for_each(|at| {
            if let Some(chunk) = chunks.next() {
                chunk.copy_from_slice(&bytes[at * size..(at + 1) * size]);
            }
        });
        Ok(())
    }
}

/// Host memory for bytes between a device and somewhere else.
fn staging(len: usize, what: &'static str) -> Result<Buffer> {
    Buffer::obtain(&host_ledger(), Bytes::of(len), Owner::new(Kind::Staging, what))
}

/// The owner of what an op makes.
pub(crate) fn owner(mark: Mark, what: &'static str) -> Owner {
    Owner { kind: mark.kind, what, name: None, source: mark.source }
}
