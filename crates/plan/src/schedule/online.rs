//! Which states to checkpoint while it is not known how many iterations there will be: the minimal repetition algorithm of
//! Wang, Moin and Iaccarino (*Minimal repetition dynamic checkpointing algorithm for unsteady adjoint calculation*, SIAM J. Sci.
//! Comput. 31, 2009).
//!
//! Every state is checkpointed as it comes, at level 0. Where all checkpoints are taken, one is given up that is *dispensable*: a
//! later one has a higher level. Where none is, the newest gives way to the next state, which rises a level above it.
//! The checkpointed states thin out as binomial coefficients do, so that an iteration is advanced through at most once more
//! often than by Revolve, which knows the end. In all it advances through at most one and a half times as many iterations, for a
//! handful of iterations, and about a tenth more on average.
//!
//! To checkpoint every second state when the checkpoints are full, then every fourth and so on, is simpler and was tried: with
//! few checkpoints and many iterations it advances through ten times as many.

/// The states that are checkpointed so far. The first one, before iteration 0, lies elsewhere.
#[derive(Debug, Clone)]
pub struct Online {
    /// Iteration, level and row, in order of iterations.
    marks: Vec<(u64, u32, usize)>,
    /// Rows: one fewer than checkpoints.
    rows: usize,
}

impl Online {
    /// With that number of checkpoints, the first state's included.
    pub fn new(max_checkpoints: u64) -> Online {
        Online { marks: Vec::new(), rows: max_checkpoints.saturating_sub(1) as usize }
    }

    /// The row for the state before that iteration; iterations come in order, from 1. `None` where there are no rows.
    pub fn checkpoint(&mut self, iteration: u64) -> Option<usize> {
        let (level, row) = match self.marks.len() < self.rows {
            true => (0, self.marks.len()),
            false => match self.dispensable() {
                Some(at) => (0, self.marks.remove(at).2),
                None => {
                    let (_, level, row) = self.marks.pop()?;
                    (level + 1, row)
                }
            },
        };
        self.marks.push((iteration, level, row));
        Some(row)
    }

    /// The last mark that has a higher one behind it.
    fn dispensable(&self) -> Option<usize> {
        let mut highest = 0;
        for (at, (_, level, _)) in self.marks.iter().enumerate().rev() {
            if *level < highest {
                return Some(at);
            }
            highest = *level;
        }
        None
    }

    /// The checkpointed states that lie before the end, each with its row, in order of iterations.
    pub fn checkpointed(&self, iterations: u64) -> impl Iterator<Item = (u64, usize)> + '_ {
        self.marks
            .iter()
            .filter(move |(iteration, ..)| *iteration < iterations)
            .map(|(at, _, row)| (*at, *row))
    }
}
