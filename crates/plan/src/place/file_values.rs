//! Values that go to files which outlive the call. The call makes the files, which no plan knows: to those who read one, it
//! is one more that the call brings.

use tonnage_core::DType;
use tonnage_core::bytes::Bytes;
use tonnage_core::recipe::{Generator, Recipe};
use tonnage_core::shape::Sizes;

use super::InputSpec;
use crate::files::FileValuePlan;

/// The values of a plan that go to files.
pub(super) struct FileValues {
    all: Vec<FileValuePlan>,
    /// How much the inputs of a call bring that the plan leaves open.
    brought: usize,
}

impl FileValues {
    /// None yet, beside what those inputs bring.
    pub fn new(inputs: &[InputSpec]) -> FileValues {
        let numbers = |spec: &InputSpec| match spec {
            InputSpec::Recipe(recipe) => recipe.sources.iter().fold(0, |most, (of, _)| match of {
                Generator::Given { number, .. } => most.max(*number as usize + 1),
                _ => most,
            }),
            InputSpec::Bytes { .. } => 0,
        };
        FileValues { all: Vec::new(), brought: inputs.iter().map(numbers).max().unwrap_or(0) }
    }

    /// One more: which it is, and how it is read.
    pub fn add(&mut self, dtype: DType, sizes: &Sizes) -> (usize, Recipe) {
        let file_value = self.all.len();
        self.all.push(FileValuePlan { count: sizes.iter().product(), dtype });
        let number = (self.brought + file_value) as u32;
        let given = Generator::Given { number, dtype, stored: true };
        (file_value, Recipe::generate(given, sizes.clone()))
    }

    /// What they take in their files.
    pub fn bytes(&self) -> Bytes {
        self.all.iter().map(FileValuePlan::bytes).sum()
    }

    /// All of them, as a plan keeps them.
    pub fn into_all(self) -> Vec<FileValuePlan> {
        self.all
    }
}
