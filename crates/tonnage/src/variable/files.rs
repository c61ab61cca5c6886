//! Variables whose values are stored in files.
//!
//! Such a variable is a tensor that stays in its file: ops read it as they go. An update makes a new value, a piece at a time, elsewhere in
//! the file; the variable is that when the call has ended, and as it was where the call fails. A tensor that was read
//! before stays the old value.
//!
//! Decision: `docs/decisions/variables-in-files.md`.

use std::cell::Cell;
use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::error::bad_argument;
use tonnage_core::graph::{Graph, Node, ValueInfo};
use tonnage_core::recipe::{Elements, Generator, Recipe, Stored};
use tonnage_core::{Bytes, FromScalar, OpDef, Result, Source, TensorType, with_element};
use tonnage_ops::tile::fused_store::{STORE, as_it_is};
use tonnage_runtime::{Array, execute};

use super::Variable;
use crate::function::home;

/// What takes less stays in memory: ops would bring it there whole at every step, and nothing would be saved.
const LEAST: Bytes = Bytes::new(512 * 1024);

thread_local! {
    static IN_FILES: Cell<bool> = const { Cell::new(false) };
}

/// Keeps the values of all variables that `f` makes in files of the [spill folder](crate::memory::set_spill_folder), and with them what
/// optimizers remember of these variables: a model may be larger than memory, also while it is trained. Those of less than 512 KiB stay in memory.
///
/// A function that uses such variables reads them as it goes, and writes new values a piece at a time; its plan has what it takes for that in its
/// peak, and says what it [reads](crate::Plan::reads) and [writes](crate::Plan::writes). That takes longer than in memory:
/// [`Function::prices`](crate::Function::prices) has the time of the files in its seconds. A value is written once and then left alone, so
/// the file is about twice as large as the variables that are written. It is gone with the process: save what is to stay.
///
/// ```
/// use tonnage::{DType, Elementwise, GradientTape, Tensor, Variable, function, memory, random_normal, variables_in_files};
/// let w = variables_in_files(|| Variable::new("w", random_normal([512, 512], DType::F32)?))?;
/// assert!(w.is_in_files() && w.bytes().is_zero());
/// let step = function(|x: Tensor| {
///     let mut tape = GradientTape::new();
///     let loss = x.matmul(&w.read()?)?.square()?.mean_all()?;
///     w.assign_sub(&(tape.gradient(&loss, &w)?.tensor()? * 0.1)?)?;
///     Ok(loss)
/// });
/// let x = random_normal([4, 512], DType::F32)?;
/// let plan = step.plan(&x)?;
/// assert_eq!(plan.writes().get(), 512 * 512 * 4);
/// let first = step.call(x.clone())?.scalar::<f32>()?;
/// assert!(step.call(x)?.scalar::<f32>()? < first);
/// # Ok::<(), tonnage::Error>(())
/// ```
pub fn variables_in_files<R>(f: impl FnOnce() -> R) -> R {
    held_in_files(true, f)
}

/// The same, or in memory.
pub(crate) fn held_in_files<R>(in_files: bool, f: impl FnOnce() -> R) -> R {
    struct RestoreInFiles(bool);
    impl Drop for RestoreInFiles {
        fn drop(&mut self) {
            IN_FILES.set(self.0);
        }
    }
    let _before = RestoreInFiles(IN_FILES.replace(in_files));
    f()
}

/// Keeps variables that are made from here on in files, or no longer; what held before. For languages whose scopes are no closures.
pub fn keep_in_files(in_files: bool) -> bool {
    IN_FILES.replace(in_files)
}

/// Whether a variable of this type that is made now is stored in files.
pub(super) fn is_wanted(ty: &TensorType) -> bool {
    IN_FILES.get() && ty.bytes("variable").is_ok_and(|bytes| bytes >= LEAST)
}

/// Refuses variables in files where they live in sessions.
pub(super) fn check(ty: &TensorType, name: &str) -> Result<()> {
    if !is_wanted(ty) || home::graph().is_none() {
        return Ok(());
    }
    let what = format!("`{name}` would be stored in files, and lives in sessions");
    Err(bad_argument("variable", what, "make it outside of `variables_in_files`"))
}

impl Variable {
    /// Whether its value is stored in files: [`variables_in_files`].
    pub fn is_in_files(&self) -> bool {
        self.0.in_files
    }

    /// Its value as others see it. What they bring into memory is theirs: the variable stays where it is. One number everywhere is in
    /// no file, but is read as if it were: a table of zeros is one that rows are gathered from and put into, and never has to be in
    /// memory.
    pub(super) fn shown(&self, array: &Array) -> Array {
        let Some(recipe) = array.as_recipe().filter(|_| self.0.in_files) else {
            return array.clone();
        };
        let Some(value) = recipe.uniform() else { return Array::from_recipe(recipe) };
        let dtype = recipe.dtype();
        let element = with_element!(dtype, T => {
            bytemuck::bytes_of(&<T as FromScalar>::from_scalar(value)).into()
        });
        let elements = Stored(Arc::new(Everywhere(element)));
        let generator = Generator::Stored { elements, dtype };
        Array::from_recipe(Arc::new(Recipe::generate(generator, recipe.sizes.clone())))
    }

    /// A value in a file.
    pub(super) fn to_file(&self, array: &Array) -> Result<Array> {
        execute::store_in_file(array, self.mark(self.0.made))
    }

    /// What it is after an update.
    pub(super) fn updated_in_file(
        &self,
        op: &'static OpDef,
        old: &Array,
        values: &[&Array],
        source: Source,
    ) -> Result<Array> {
        execute::update_in_file(op, &self.shown(old), values, self.mark(source))
    }

    /// What a plan sees of a value that will be in a file, and is not there yet.
    pub(super) fn to_come(&self) -> Result<Array> {
        let ty = self.ty();
        let sizes =
            ty.shape.sizes().ok_or_else(|| self.unreadable(&super::VariableState::Waiting))?;
        let elements = Stored(Arc::new(ToCome));
        let recipe = Recipe::generate(Generator::Stored { elements, dtype: ty.dtype }, sizes);
        Ok(Array::from_recipe(Arc::new(recipe)))
    }
}

/// One element everywhere.
#[derive(Debug)]
struct Everywhere(SmallVec<[u8; 8]>);

impl Elements for Everywhere {
    fn read(&self, _: u64, out: &mut [u8]) {
        out.chunks_exact_mut(self.0.len()).for_each(|element| element.copy_from_slice(&self.0));
    }

    fn ahead(&self, _: u64, _: usize) {}

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn mapped(&self) -> Option<&[u8]> {
        None
    }
}

/// Elements that plans are made for, and that are never read.
#[derive(Debug)]
struct ToCome;

impl Elements for ToCome {
    fn read(&self, _: u64, out: &mut [u8]) {
        out.fill(0);
    }

    fn ahead(&self, _: u64, _: usize) {}

    fn check(&self) -> Result<()> {
        Err(bad_argument("variable", "a value that is to come was read", "this is a bug"))
    }

    fn mapped(&self) -> Option<&[u8]> {
        None
    }
}

/// Lets the values that variables in files leave a program with go there. They are its last outputs, in the order of those that are written.
pub(crate) fn store_outputs(graph: &mut Graph, variables: &[(Variable, bool)], results: usize) {
    let written = variables.iter().filter(|(_, written)| *written);
    for (k, _) in written.enumerate().filter(|(_, (variable, _))| variable.is_in_files()) {
        let Some(value) = graph.outputs.get(results + k).copied() else { continue };
        let info: ValueInfo = graph.value(value).clone();
        let (attrs, source) = (as_it_is(info.ty.dtype), info.source);
        let stored = graph.add_value(info);
        graph.nodes.push(Node {
            op: &STORE,
            attrs,
            inputs: vec![value],
            outputs: vec![stored],
            aux: false,
            regions: Vec::new(),
            source,
        });
        graph.outputs[results + k] = stored;
    }
}
