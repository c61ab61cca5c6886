//! Numbers that are drawn for each element of a parameter: the loop that the kernels of `random_gamma` and
//! `random_poisson` share.

use tonnage_core::error::Result;
use tonnage_core::{FromScalar, with_element};

use super::draw::{Draw, read_key};
use crate::kernel::Kernel;
use crate::strided::Positions;
use crate::workers::for_each_chunk;

/// One number for each element, by its parameter and draws of its own.
pub fn draw(k: &mut Kernel, one: fn(f64, &mut Draw) -> f64) -> Result<()> {
    let (parameter, key) = (&k.inputs[0], read_key(&k.inputs[1]));
    with_element!(parameter.dtype, T => {
        let (data, positions) = (parameter.slice::<T>(), Positions::of(&parameter.layout));
        for_each_chunk(k.workers, k.outputs[0].slice::<T>(), 256, &|chunk, out| {
            for (i, to) in out.iter_mut().enumerate() {
                let number = chunk * 256 + i;
                let parameter = data[positions.at(number)].to_scalar().to_f64();
                let drawn = one(parameter, &mut Draw::new(key, number as u64));
                *to = T::from_scalar(drawn.into());
            }
        })?;
    });
    Ok(())
}
