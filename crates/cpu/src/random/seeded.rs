//! The kernel of `random_seeded`: the values of the recipe with the seed's key, written to memory.

use bytemuck::cast_slice_mut;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::philox;
use tonnage_core::recipe::{Generator, Key};
use tonnage_core::with_element;

use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::parallel::GRAIN;
use crate::tile::source;
use crate::workers::for_each_chunk;

/// The kernel of [`RANDOM_SEEDED`](tonnage_ops::random::seeded::RANDOM_SEEDED).
pub static RANDOM_SEEDED: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let Attrs::Seeded { distribution, dtype, .. } = *k.attrs else { return Ok(()) };
    let seed = &k.inputs[0];
    let numbers = seed.slice::<i64>();
    let count = seed.layout.sizes.first().copied().unwrap_or(0);
    let key = philox::key_of((0..count).map(|i| numbers[seed.layout.position(&[i])]));
    let generator = Generator::Random { key: Key::Fixed(key), distribution, dtype };
    with_element!(dtype, T => {
        for_each_chunk(k.workers, k.outputs[0].slice::<T>(), GRAIN, &|chunk, out| {
            source::values(&generator, (chunk * GRAIN) as u64, cast_slice_mut(out));
        })
    })
}
