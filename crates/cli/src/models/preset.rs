//! Models that have a name: the sizes of GPT-2 as they were published.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A transformer of known sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// 124 million parameters.
    #[value(name = "gpt2-124m", alias = "gpt2", alias = "gpt2-small")]
    #[serde(rename = "gpt2-124m")]
    Gpt2,
    /// 354 million parameters.
    #[value(name = "gpt2-medium")]
    Gpt2Medium,
    /// 773 million parameters.
    #[value(name = "gpt2-large")]
    Gpt2Large,
    /// 1,557 million parameters.
    #[value(name = "gpt2-xl")]
    Gpt2Xl,
}

/// Sizes that a preset says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PresetSizes {
    /// The width of vectors.
    pub width: usize,
    /// Heads of a block.
    pub heads: usize,
    /// Blocks.
    pub layers: usize,
}

impl Preset {
    /// Tokens that are seen at once.
    pub const LENGTH: usize = 1024;

    /// Rows of the table: those of GPT-2's tokens, 50,257, and as many more as make a multiple of 128, which products are quick with.
    pub const VOCABULARY: usize = 50_304;

    /// Its sizes.
    pub fn sizes(self) -> PresetSizes {
        let (width, heads, layers) = match self {
            Preset::Gpt2 => (768, 12, 12),
            Preset::Gpt2Medium => (1024, 16, 24),
            Preset::Gpt2Large => (1280, 20, 36),
            Preset::Gpt2Xl => (1600, 25, 48),
        };
        PresetSizes { width, heads, layers }
    }
}
