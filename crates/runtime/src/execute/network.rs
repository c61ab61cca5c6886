//! The network lane: one thread beside the kernels that moves bytes between ranks, one transfer after another in the order in which the plan begins them.
//!
//! It works on loans, as the disk lane does: until a step awaits a transfer, whatever touches its bytes is refused. Sums over ranks are added up on
//! the lane's thread too. Nobody else calls the engine while a call runs: what a plan does not put on the lane stands behind its end.
//!
//! Decision: `docs/decisions/network-lane.md`.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, Scope};

use smallvec::SmallVec;
use tonnage_core::Attrs;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::row::{Cost, OpDef};
use tonnage_plan::{KernelCall, Step};

use super::frame::ExecutionFrame;
use super::kernel::Operands;
use super::step::node_of;
use crate::backend::{Backend, KernelInput, KernelLaunch, KernelOutput};
use crate::lend::{ByteRange, Lender, Loan, Regions};

/// A kernel that moves bytes, with what it reads and writes.
struct TransferJob<'l> {
    op: &'static OpDef,
    attrs: &'l Attrs,
    inputs: SmallVec<[KernelInput; 4]>,
    outputs: SmallVec<[KernelOutput; 2]>,
    loans: Loans<'l>,
}

#[derive(Default)]
struct Loans<'l> {
    reads: SmallVec<[Loan<'l>; 2]>,
    writes: SmallVec<[Loan<'l>; 2]>,
}

struct FinishedTransfer<'l> {
    loans: Loans<'l>,
    answer: Result<()>,
}

/// The thread, as the executor sees it.
pub struct NetworkLane<'l> {
    jobs: Sender<TransferJob<'l>>,
    done: Receiver<FinishedTransfer<'l>>,
    /// Steps whose transfers have not ended, as far as is known here.
    begun: VecDeque<usize>,
    /// Those that have, and that nobody has awaited.
    ended: Vec<(usize, FinishedTransfer<'l>)>,
}

impl<'l> NetworkLane<'l> {
    /// Starts the thread.
    ///
    /// # Errors
    /// Where the system has no thread left.
    pub fn start<'env>(
        scope: &'l Scope<'l, 'env>,
        backend: &'l dyn Backend,
    ) -> Result<NetworkLane<'l>> {
        let (jobs, asked) = channel::<TransferJob<'l>>();
        let (answers, done) = channel();
        let work = move || {
            for job in asked {
                // Nobody waits any more: the call has failed elsewhere.
                if answers.send(job.run(backend)).is_err() {
                    break;
                }
            }
        };
        let started = Builder::new().name("tonnage-network".into()).spawn_scoped(scope, work);
        started.map_err(|e| gone(&format!("no thread ({e})")))?;
        Ok(NetworkLane { jobs, done, begun: VecDeque::new(), ended: Vec::new() })
    }

    /// Begins the transfer of a step.
    ///
    /// # Errors
    /// Where its bytes are on loan already, or the lane has ended.
    pub fn begin<'p: 'l, 'a: 'l>(
        &mut self,
        frame: &mut ExecutionFrame<'p>,
        lender: &mut Lender<'a>,
        at: usize,
        step: &'p Step,
        call: &KernelCall,
    ) -> Result<()> {
        let node = node_of(frame.places.plan(), step)?;
        let Operands { inputs, outputs, reads, writes } =
            Operands::of(&frame.places, &frame.generators, step, node, call)?;
        writes.iter().for_each(|byte_range| frame.used.lent(byte_range));
        let mut loans = Loans::default();
        let mut loan = |ranges: &[ByteRange], write: bool| -> Result<SmallVec<[Loan<'l>; 2]>> {
            ranges.iter().map(|range| lender.loan(*range, write)).collect()
        };
        loans.writes = loan(&writes, true)?;
        loans.reads = loan(&reads, false)?;
        let job = TransferJob { op: node.op, attrs: &node.attrs, inputs, outputs, loans };
        self.begun.push_back(at);
        self.jobs.send(job).map_err(|_| gone("it has ended"))
    }

    /// Waits for the transfer of a step, and gives its loans back.
    ///
    /// # Errors
    /// Where it failed, or was not begun.
    pub fn wait(&mut self, step: usize, lender: &mut Lender<'_>) -> Result<()> {
        while self.begun.contains(&step) {
            let done = self.done.recv().map_err(|_| gone("it has ended"))?;
            self.ended.extend(self.begun.pop_front().map(|at| (at, done)));
        }
        let Some(at) = self.ended.iter().position(|(at, _)| *at == step) else {
            return Err(gone("nobody began that transfer"));
        };
        let FinishedTransfer { loans, answer } = self.ended.swap_remove(at).1;
        loans.reads.into_iter().chain(loans.writes).for_each(|loan| lender.take_back(loan));
        answer
    }

    /// Waits for all that nobody awaited.
    ///
    /// # Errors
    /// Where one failed.
    pub fn finish(&mut self, lender: &mut Lender<'_>) -> Result<()> {
        let begun = self.ended.iter().map(|(at, _)| *at).chain(self.begun.iter().copied());
        let left: SmallVec<[usize; 8]> = begun.collect();
        left.into_iter().try_for_each(|step| self.wait(step, lender))
    }
}

impl<'l> TransferJob<'l> {
    fn run(self, backend: &dyn Backend) -> FinishedTransfer<'l> {
        let TransferJob { op, attrs, inputs, outputs, mut loans } = self;
        // One thread adds up what comes: the others compute.
        let (cost, epilogue, stop, decides) = (Cost::default(), None, None, false);
        let launch = KernelLaunch { op, attrs, inputs, outputs, decides, epilogue, cost, stop };
        let regions = Regions {
            reads: loans.reads.iter().map(Loan::region).collect(),
            writes: loans.writes.iter_mut().filter_map(Loan::region_mut).collect(),
            source: None,
        };
        let answer = backend.kernel(launch, regions).map(|_| ());
        FinishedTransfer { loans, answer }
    }
}

#[cold]
fn gone(why: &str) -> tonnage_core::Error {
    ErrorKind::BadGraph { what: format!("the network lane does not run: {why}") }.into()
}
