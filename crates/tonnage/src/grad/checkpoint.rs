//! Functions that are recomputed in the backward pass, so that nothing inside of them is saved.

use tonnage_core::attrs::Attrs;
use tonnage_core::{Result, Source};
use tonnage_ops::control::call::CALL;

use super::region;
use crate::dispatch::{self, OpContext, TensorArg};
use crate::tree::Tree;

/// The same function, whose gradient saves its arguments and nothing else: in the backward pass it is
/// recomputed. Random numbers inside of it repeat exactly; variables that it reads get their gradients, and
/// those that it writes are written once. It nests.
///
/// The function is traced, in eager mode too: it runs as one planned call, and reads no values.
///
/// ```
/// use tonnage::{Bytes, Elementwise, GradientTape, Tensor, checkpoint, tensor};
/// let block = checkpoint(|x: Tensor| x.tanh()?.exp()?.tanh());
/// let x = tensor(vec![0.5f32; 1024])?;
/// let mut tape = GradientTape::new();
/// tape.watch(&x);
/// let y = block(x.clone())?.sum_all()?;
/// assert_eq!(tape.held().bytes(), Bytes::new(4096)); // x itself; not what lies between the three
/// let dx = tape.gradient(&y, &x)?;
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn checkpoint<A: Tree, R: Tree>(f: impl Fn(A) -> Result<R>) -> impl Fn(A) -> Result<R> {
    let source = Source::here();
    move |arguments| {
        let called = || -> Result<R> {
            let body = region::traced(&arguments, source, &f)?;
            let inputs = body.inputs(arguments)?.into_iter().map(TensorArg::Owned).collect();
            let context = OpContext { regions: vec![body.graph()], ..OpContext::at(source) };
            let made = dispatch::apply(&CALL, inputs, Attrs::None, context)?;
            body.finish(made.into_vec())
        };
        called().map_err(|e| e.at(source))
    }
}
