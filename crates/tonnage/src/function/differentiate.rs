//! Calls that someone differentiates from outside: a tape around them, or a forward pass.

use std::sync::Arc;

use tonnage_core::{ErrorKind, Result, Source};

use super::concrete::Concrete;
use super::signature::Signature;
use super::{CallKey, Function, home, lock};
use crate::grad::function::Whole;
use crate::tree::{Tree, leaves};

/// Traces for such calls that a function caches.
const WHOLES: usize = 8;

impl<A: Tree, R: Tree, F: Fn(A) -> Result<R>> Function<A, R, F> {
    /// The result of a call that someone differentiates. The graph as it was traced is not kept for
    /// ordinary calls: it is traced again at the first of these.
    pub(super) fn differentiated(
        &self,
        concrete: &Concrete<R>,
        arguments: A,
        source: Source,
    ) -> Result<R> {
        let signature = Signature::of(&arguments);
        let key = CallKey::of_types(&signature.text, &signature.types);
        let known = lock(&self.wholes).iter().find(|(k, _)| *k == key).map(|(_, w)| w.clone());
        let whole = match known {
            Some(whole) => whole,
            None => {
                let entered = home::enter(&self.home)?;
                let (traced, result) = self.run_traced(&arguments, &signature.types, source)?;
                entered.commit();
                let whole = Arc::new(Whole::new(traced, leaves(&result).len(), self.made));
                let mut all = lock(&self.wholes);
                if all.len() >= WHOLES {
                    all.remove(0);
                }
                all.push((key, whole.clone()));
                whole
            }
        };
        let mut made = whole.call(arguments, source)?.into_iter();
        concrete.result.share().map(&mut |_| {
            made.next()
                .ok_or_else(|| ErrorKind::BadGraph { what: "a result is missing".into() }.into())
        })
    }
}
