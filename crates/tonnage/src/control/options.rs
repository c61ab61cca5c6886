//! Options of loops.

use tonnage_core::dim::{Dim, Symbol};
use tonnage_core::error::bad_argument;
use tonnage_core::{Result, TensorType};

/// Options of a loop besides its body, for any kind of loop.
///
/// ```
/// use tonnage::{Loop, Tensor, tensor};
/// // The running sums of the rows, from the last to the first.
/// let xs = tensor([[1.0f32, 2.0], [3.0, 4.0]])?;
/// let (_, sums) = Loop::new().reverse().scan(tensor([0.0f32, 0.0])?, xs, |sum: Tensor, x: Tensor| {
///     let sum = (sum + x)?;
///     Ok((sum.clone(), sum))
/// })?;
/// assert_eq!(sums.to_vec2::<f32>()?, [[4.0, 6.0], [3.0, 4.0]]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Loop {
    pub(super) most: Option<u64>,
    pub(super) max_checkpoints: Option<usize>,
    pub(super) spills: bool,
    pub(super) reverse: bool,
    pub(super) length: Option<usize>,
    /// Loop variable, axis, and the most that it may be.
    pub(super) bounds: Vec<(usize, usize, usize)>,
}

impl Loop {
    /// Told nothing yet.
    pub fn new() -> Loop {
        Loop::default()
    }

    /// Ends the loop after `iterations` iterations, whatever its condition says.
    pub fn at_most(mut self, iterations: u64) -> Loop {
        self.most = Some(iterations);
        self
    }

    /// Checkpoints `states` states of the loop variables for a gradient, the first one included; the other iterations are
    /// recomputed. All of up to 16 iterations by default, about twice the square root beyond. The fewer there
    /// are, the less memory a gradient takes and the more iterations are recomputed: [`crate::Plan::recomputed_iterations`].
    pub fn checkpoints(mut self, states: usize) -> Loop {
        self.max_checkpoints = Some(states.max(1));
        self
    }

    /// Lets the states of all iterations that a gradient needs wait in a spill file instead of memory, so that memory
    /// does not depend on the number of iterations and no iteration is recomputed: one state is written an iteration, and read back
    /// in the backward pass. In a function whose tape is inside of it the loop writes them as it runs. Under a tape around the
    /// loop the gradient runs all iterations once more for that: it is a call of its own, and a file lasts as long as a call.
    ///
    /// ```
    /// use tonnage::{Elementwise, GradientTape, Loop, Tensor, function, tensor};
    /// let slope = function(|x: Tensor| {
    ///     let mut tape = GradientTape::new();
    ///     tape.watch(&x);
    ///     let y = Loop::new().spill().fori_loop(0, 100, x.clone(), |_, y: Tensor| y.sin()? * 1.5)?;
    ///     tape.gradient(&y, &x)?.tensor()
    /// });
    /// let plan = slope.plan(&tensor([0.5f32; 16])?)?;
    /// assert_eq!(plan.recomputed_iterations(), Some(0));
    /// assert_eq!(plan.spilled().get(), 99 * 64); // a state is 64 bytes
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    pub fn spill(mut self) -> Loop {
        self.spills = true;
        self
    }

    /// Goes through the rows of a [`scan`](Loop::scan) or [`map_fn`](Loop::map_fn) from the last to the first;
    /// row `i` of the results still belongs to row `i` of the inputs.
    pub fn reverse(mut self) -> Loop {
        self.reverse = true;
        self
    }

    /// The number of iterations of a [`scan`](Loop::scan) over nothing.
    pub fn length(mut self, iterations: usize) -> Loop {
        self.length = Some(iterations);
        self
    }

    /// Lets a loop variable, counted in the order of the nested data, change its length along an axis from
    /// iteration to iteration, up to `most`. The loop is planned for that most. It has no gradient then.
    pub fn bound(mut self, variable: usize, axis: usize, most: usize) -> Loop {
        self.bounds.push((variable, axis, most));
        self
    }

    /// Types of the loop variables as the body takes them.
    pub(super) fn taken(&self, op: &'static str, start: &[TensorType]) -> Result<Vec<TensorType>> {
        let mut types = start.to_vec();
        for (variable, axis, most) in &self.bounds {
            let Some(dim) = types.get_mut(*variable).and_then(|ty| ty.shape.get_mut(*axis)) else {
                let what = format!(
                    "a bound for axis {axis} of loop variable {variable}, of {} variables",
                    start.len()
                );
                return Err(bad_argument(op, what, "bound an axis that is there"));
            };
            if dim.most().is_some_and(|n| n > *most) {
                let what = format!(
                    "loop variable {variable} starts with {dim} along axis {axis}, over its bound {most}"
                );
                return Err(bad_argument(op, what, "give it a larger bound"));
            }
            let name = format!("size{variable}_{axis}");
            *dim = Dim::symbol(Symbol::bounded(name, Dim::Known(*most)));
        }
        Ok(types)
    }
}
