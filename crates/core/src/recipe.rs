//! A tensor as a description of a few bytes: generators, and an elementwise program over them.
//!
//! A generator is a sequence that gives the value at any position: counting, random numbers of a
//! key, or what lies in a file. A recipe reads each of its generators through a layout, as a tensor reads its buffer, so
//! transposing, slicing and broadcasting a recipe makes another recipe. A fill has no generator at
//! all: its program is one constant. Recipes never refer to variables.
//!
//! Decisions: `docs/decisions/file-tensors-are-recipes.md`, `docs/decisions/recipes-become-resident.md`.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::dtype::DType;
use crate::error::Result;
use crate::heap::{Heap, Seen, nothing};
use crate::layout::Layout;
use crate::scalar::Scalar;
use crate::shape::{Sizes, TensorType};
use crate::tile::{Form, TileProgram};

/// How random numbers are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Distribution {
    /// Floats in [0, 1).
    Uniform,
    /// Mean 0, deviation 1.
    Normal,
    /// As `Normal`, with what lies 2 and more deviations away drawn again.
    TruncatedNormal,
    /// All bits of an integer.
    Bits,
    /// Whole numbers from 0 up to, without, this, each as likely as the others to within 2^-64.
    Below(u64),
}

/// Which random numbers: the same key gives the same ones, at any position, in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Key {
    /// These.
    Fixed([u32; 2]),
    /// The n-th random op of a traced function: each call of the function brings a key of its own.
    PerCall(u32),
}

/// Elements that lie outside of memory, as in a file: read at any position, by several threads at once.
pub trait Elements: Debug + Send + Sync {
    /// Fills `out` with the elements from that position on, as this machine holds them. A kernel cannot fail between two
    /// tiles: what cannot be read is zero, and [`check`](Elements::check) says so from then on.
    fn read(&self, from: u64, out: &mut [u8]);

    /// `count` elements from that position on are read next: the system may begin to bring them, while others are computed with.
    fn ahead(&self, from: u64, count: usize);

    /// Whoever has read asks before it hands on what it made. That ends a pass: what the system holds in memory for it may go.
    ///
    /// # Errors
    /// Where a read has failed.
    fn check(&self) -> Result<()>;

    /// All of them, where the system shows the file as memory; they are read there then.
    fn mapped(&self) -> Option<&[u8]>;
}

/// Elements outside of memory, held. Two are equal if they are the same.
#[derive(Debug, Clone)]
pub struct Stored(pub Arc<dyn Elements>);

impl PartialEq for Stored {
    fn eq(&self, other: &Stored) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Stored {}

impl Hash for Stored {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).cast::<()>().hash(state);
    }
}

/// A sequence that gives the value at any position.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Generator {
    /// `start + position * step`, computed in the dtype.
    Count {
        /// At position 0.
        start: Scalar,
        /// From one to the next.
        step: Scalar,
        /// Of the values.
        dtype: DType,
    },
    /// Random numbers.
    Random {
        /// Which ones.
        key: Key,
        /// How they are spread.
        distribution: Distribution,
        /// Of the values.
        dtype: DType,
    },
    /// What lies outside of memory.
    Stored {
        /// There.
        elements: Stored,
        /// Of the values.
        dtype: DType,
    },
    /// In a plan: what each call brings for one of its inputs.
    Given {
        /// Which, in the order of the inputs.
        number: u32,
        /// Of the values.
        dtype: DType,
        /// Whether it lies outside of memory.
        stored: bool,
    },
}

impl Generator {
    /// Dtype of its values.
    pub fn dtype(&self) -> DType {
        match self {
            Generator::Count { dtype, .. }
            | Generator::Random { dtype, .. }
            | Generator::Stored { dtype, .. }
            | Generator::Given { dtype, .. } => *dtype,
        }
    }

    /// Whether its values are read from outside of memory, where every reading costs.
    pub fn is_stored(&self) -> bool {
        matches!(self, Generator::Stored { .. } | Generator::Given { stored: true, .. })
    }
}

/// Programs longer than this are not chained on: the recipe is made resident instead.
pub const LONGEST: usize = 64;

/// A tensor that is computed as it is read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Recipe {
    /// One load a source, one store.
    pub program: TileProgram,
    /// What the program loads, each through a layout of the recipe's own sizes.
    pub sources: SmallVec<[(Generator, Layout); 1]>,
    /// The recipe's sizes.
    pub sizes: Sizes,
}

impl Recipe {
    /// The same value everywhere.
    pub fn fill(value: Scalar, dtype: DType, sizes: Sizes) -> Recipe {
        let mut program = TileProgram::loading(&[]);
        let reg = program.constant(value, dtype);
        program.store(reg, dtype);
        Recipe { program, sources: SmallVec::new(), sizes }
    }

    /// The generator's first values, in order.
    pub fn generate(generator: Generator, sizes: Sizes) -> Recipe {
        let dtype = generator.dtype();
        let mut program = TileProgram::loading(&[dtype]);
        program.store(0, dtype);
        let layout = Layout::contiguous(sizes.clone());
        Recipe { program, sources: SmallVec::from_iter([(generator, layout)]), sizes }
    }

    /// Dtype of its values.
    pub fn dtype(&self) -> DType {
        match self.program.stores[0].1 {
            Form::Elements(dtype) => dtype,
            Form::Bits => DType::Bool,
        }
    }

    /// Its type.
    pub fn ty(&self) -> TensorType {
        TensorType::new(self.dtype(), &self.sizes[..])
    }

    /// The value of every element, where the recipe is one constant.
    pub fn uniform(&self) -> Option<Scalar> {
        match (self.sources.is_empty(), self.program.code.as_slice()) {
            (true, [only]) => match only.prim {
                crate::tile::Prim::Const(value) => Some(value),
                _ => None,
            },
            _ => None,
        }
    }

    /// What lies outside of memory and where in it, where the recipe is that and nothing else.
    pub fn as_stored(&self) -> Option<(&Generator, &Layout)> {
        match (self.program.code.is_empty(), self.sources.as_slice()) {
            (true, [(generator, layout)]) if generator.is_stored() => Some((generator, layout)),
            _ => None,
        }
    }

    /// A view of it: `view` maps each source's layout. `None` where one has no such view.
    pub fn view(&self, sizes: Sizes, view: impl Fn(&Layout) -> Option<Layout>) -> Option<Recipe> {
        let sources = self
            .sources
            .iter()
            .map(|(generator, layout)| Some((generator.clone(), view(layout)?)))
            .collect::<Option<_>>()?;
        Some(Recipe { program: self.program.clone(), sources, sizes })
    }
}

impl Heap for Recipe {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.program.heap(seen) + self.sources.heap(seen) + self.sizes.heap(seen)
    }
}

nothing!(Generator);
