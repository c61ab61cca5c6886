//! The kernel of `lengths`.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::{FromScalar, Scalar, with_element};

use crate::kernel::{Kernel, KernelDef, no_scratch};

/// The kernel of [`LENGTHS`](tonnage_ops::shape::lengths::LENGTHS).
pub static LENGTHS: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let Attrs::Lengths { of, dtype } = k.attrs else { return Ok(()) };
    let out = &mut k.outputs[0];
    with_element!(*dtype, T => {
        for (to, dim) in out.slice::<T>().iter_mut().zip(of.iter()) {
            let Some(n) = dim.known() else {
                let what = format!("the length {dim} is open");
                return Err(bad_argument("lengths", what, "plan for known sizes first"));
            };
            if !Scalar::from(n).fits(*dtype) {
                let what = format!("the length {n} does not fit {dtype}");
                return Err(bad_argument("lengths", what, "ask for a wider dtype"));
            }
            *to = T::from_scalar(n.into());
        }
    });
    Ok(())
}
