//! Closures of the program around, as ops.

use tonnage_core::error::{Result, bad_argument};
use tonnage_core::lent::Out;
use tonnage_core::{Error, ErrorKind, OpDef, Source, TensorType};
use tonnage_ops::host::{callback::HOST_CALLBACK, pure::PURE_CALLBACK};

use super::{Lent, host};
use crate::tensor::Tensor;

/// Calls a closure with the values of tensors, each time that the program comes here, and gives what it returns, which
/// must have the types of `results`.
///
/// In a function the closure is called when it runs, in the order of the program among all that has an effect, and on
/// the thread of the caller. It may compute, and call functions itself; only a variable that the call around it
/// writes is out of its reach, since a callback must not wait for its own caller. Its results are copied to where the
/// plan wants them. There is no gradient through it, unless [`custom_gradient`](crate::custom_gradient) says one. A gradient
/// that would have to call it a second time, such as that of a loop around it, is refused: [`pure_callback`] may be called
/// again.
///
/// ```
/// use tonnage::{Tensor, function, host_callback, tensor};
/// let f = function(|x: Tensor| {
///     let sorted = host_callback(&[&x], &[x.ty()], |args| {
///         let mut values = args[0].to_vec::<f32>()?;
///         values.sort_by(f32::total_cmp);
///         Ok(vec![tensor(values)?])
///     })?;
///     &sorted[0] * 2.0
/// });
/// assert_eq!(f.call(tensor([3.0f32, 1.0, 2.0])?)?.to_vec::<f32>()?, [2.0, 4.0, 6.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where the closure fails or panics, or returns something else than it should: the call fails with an error at this
/// line.
#[track_caller]
pub fn host_callback(
    inputs: &[&Tensor],
    results: &[TensorType],
    f: impl Fn(&[Lent]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
) -> Result<Vec<Tensor>> {
    call(&HOST_CALLBACK, inputs, results, Source::here(), f)
}

/// Calls a closure with the values of tensors, each time that the program comes here: [`host_callback`] without
/// results.
///
/// # Errors
/// Where the closure fails or panics.
#[track_caller]
pub fn host_effect(
    inputs: &[&Tensor],
    f: impl Fn(&[Lent]) -> Result<()> + Send + Sync + 'static,
) -> Result<()> {
    let f = move |lent: &[Lent]| f(lent).map(|()| Vec::new());
    call(&HOST_CALLBACK, inputs, &[], Source::here(), f).map(drop)
}

/// [`host_callback`] for a closure that does nothing but compute: it may be called again where a gradient or a budget
/// recomputes its results, once for two calls that are the same, and not at all where they are not used.
///
/// # Errors
/// As [`host_callback`].
#[track_caller]
pub fn pure_callback(
    inputs: &[&Tensor],
    results: &[TensorType],
    f: impl Fn(&[Lent]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
) -> Result<Vec<Tensor>> {
    call(&PURE_CALLBACK, inputs, results, Source::here(), f)
}

fn call(
    op: &'static OpDef,
    inputs: &[&Tensor],
    results: &[TensorType],
    source: Source,
    f: impl Fn(&[Lent]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
) -> Result<Vec<Tensor>> {
    let run = move |lent: &[Lent], outputs: &mut [Out]| {
        // Whatever it failed with, the call failed here: an error of its own keeps its line in the text.
        let failed = |e: Error| {
            let raised = match e.kind() {
                ErrorKind::Callback { raised, .. } => raised.clone(),
                _ => None,
            };
            Error::from(ErrorKind::Callback { why: e.to_string(), raised })
        };
        write(&f(lent).map_err(failed)?, outputs)
    };
    Ok(host(op, inputs, results, source.to_string(), source, run)?.into_vec())
}

/// Copies results to where they are wanted.
fn write(made: &[Tensor], outputs: &mut [Out]) -> Result<()> {
    let wrong = |what: String| {
        bad_argument("host_callback", what, "return tensors of the types that were announced")
    };
    if made.len() != outputs.len() {
        return Err(wrong(format!("{} results, not {}", made.len(), outputs.len())));
    }
    for (i, (tensor, out)) in made.iter().zip(outputs).enumerate() {
        let array = tensor.array("the result of a callback")?;
        let expected = TensorType::new(out.dtype, &out.sizes[..]);
        if array.ty() != expected {
            return Err(wrong(format!("result {i} is {}, not {expected}", array.ty())));
        }
        array.copy_to(out.data)?;
    }
    Ok(())
}
