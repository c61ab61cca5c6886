//! Which states to keep while nobody knows how many rounds there will be: the minimal repetition algorithm of
//! Wang, Moin and Iaccarino (*Minimal repetition dynamic checkpointing algorithm for unsteady adjoint calculation*, SIAM J. Sci.
//! Comput. 31, 2009).
//!
//! Every state is kept as it comes, at level 0. Where all slots are taken, one is given up that is *dispensable*: a
//! later one has a higher level. Where none is, the newest gives way to the next state, which rises a level above it.
//! The kept states thin out as binomial coefficients do, so that a round is advanced through at most once more
//! often than by Revolve, which knows the end. In all it advances through at most half as many rounds again, for a
//! handful of rounds, and about a tenth more on average.
//!
//! To keep every second state when the slots are full, then every fourth and so on, is simpler and was tried: with
//! few slots and many rounds it advances through ten times as many.

/// The states that are kept so far. The first one, before round 0, is kept elsewhere.
#[derive(Debug, Clone)]
pub struct Online {
    /// Round, level and row, in order of rounds.
    marks: Vec<(u64, u32, usize)>,
    /// Rows: one fewer than slots.
    rows: usize,
}

impl Online {
    /// With so many slots, the first state's included.
    pub fn new(slots: u64) -> Online {
        Online { marks: Vec::new(), rows: slots.saturating_sub(1) as usize }
    }

    /// The row for the state before that round; rounds come in order, from 1. `None` where there are no rows.
    pub fn keep(&mut self, round: u64) -> Option<usize> {
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
        self.marks.push((round, level, row));
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

    /// The kept states that lie before the end, each with its row, in order of rounds.
    pub fn kept(&self, rounds: u64) -> impl Iterator<Item = (u64, usize)> + '_ {
        self.marks.iter().filter(move |(round, ..)| *round < rounds).map(|(at, _, row)| (*at, *row))
    }
}
