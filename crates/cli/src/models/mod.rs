//! The models that `tonnage train` knows, as plain structs over the library's layers.

mod gpt;
mod pictures;
mod preset;
mod recommender;
mod recurrent;

use clap::ValueEnum;
pub use preset::Preset;
use serde::{Deserialize, Serialize};
use tonnage::nn::Layer;
use tonnage::{DType, Elementwise, Result, Tensor};

/// A model that can be trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    /// Pictures: two dense layers.
    Mlp,
    /// Pictures: two convolutions and two dense layers.
    Cnn,
    /// Text: a transformer that says the next character.
    Gpt,
    /// Text: a gated recurrent layer that says the next character.
    Gru,
    /// Ratings of things by people: a vector for each.
    Recommender,
}

impl Model {
    /// What it learns from.
    pub fn task(self) -> Task {
        match self {
            Model::Mlp | Model::Cnn => Task::Pictures,
            Model::Gpt | Model::Gru => Task::Text,
            Model::Recommender => Task::Ratings,
        }
    }
}

/// What a model learns from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    Pictures,
    Text,
    Ratings,
}

impl Task {
    /// The loss of each row, in f32 whatever the model computes in.
    pub fn loss(self, said: &Tensor, truth: &Tensor) -> Result<Tensor> {
        let said = said.cast(DType::F32)?;
        match self {
            Task::Pictures | Task::Text => said.sparse_cross_entropy(truth),
            Task::Ratings => said.squared_difference(truth),
        }
    }
}

/// What models compute in. Those of 16 bits keep a copy of their parameters in f32, which is what steps change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    #[default]
    F32,
    Bf16,
    F16,
}

impl Precision {
    pub fn dtype(self) -> DType {
        match self {
            Precision::F32 => DType::F32,
            Precision::Bf16 => DType::BF16,
            Precision::F16 => DType::F16,
        }
    }
}

/// All that a model is built from: what a checkpoint has to say beside its tensors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelConfig {
    pub model: Model,
    pub precision: Precision,
    /// Classes of pictures, the vocabulary of texts, or people and things.
    #[serde(rename = "kinds")]
    pub classes: Vec<usize>,
    /// The width of vectors.
    pub width: usize,
    /// Blocks of a transformer.
    pub layers: usize,
    /// Characters that are seen at once.
    pub length: usize,
    /// The published model that it is, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// The characters, in the order of their indices.
    #[serde(default)]
    pub characters: String,
    /// What ratings are on average.
    #[serde(default)]
    pub mean: f32,
}

impl ModelConfig {
    /// Classes of pictures, or the vocabulary.
    fn classes(&self) -> usize {
        self.classes.first().copied().unwrap_or(1)
    }
}

/// Builds it.
pub fn build(sizes: &ModelConfig) -> Box<dyn Layer> {
    let (classes, dtype) = (sizes.classes(), sizes.precision.dtype());
    match sizes.model {
        Model::Mlp => Box::new(pictures::mlp(classes, dtype)),
        Model::Cnn => Box::new(pictures::cnn(classes, dtype)),
        Model::Gpt => Box::new(gpt::Gpt::new(sizes)),
        Model::Gru => Box::new(recurrent::Gru::new(classes, sizes.width, dtype)),
        Model::Recommender => {
            let things = sizes.classes.get(1).copied().unwrap_or(1);
            Box::new(recommender::Recommender::new(classes, things, sizes.width, sizes.mean))
        }
    }
}
