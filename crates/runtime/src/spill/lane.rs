//! The disk lane: one thread beside the kernels that writes and reads, one transfer after another in the order in which
//! they were asked for.
//!
//! It works on loans, so the bytes are nobody else's meanwhile, and gives each back with the answer. When the lane is
//! dropped the thread does what it was still asked for and ends; the scope that it was started in waits for it.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, Scope};

use tonnage_core::{ErrorKind, Result};

use super::file::SpillFile;
use crate::lend::Loan;

/// One transfer: to the file where the loan is to be read, from it where it is to be written.
struct TransferJob<'a> {
    number: usize,
    at: u64,
    loan: Loan<'a>,
}

struct FinishedTransfer<'a> {
    number: usize,
    loan: Loan<'a>,
    answer: Result<()>,
}

/// The thread, as the executor sees it.
pub struct DiskLane<'a> {
    jobs: Sender<TransferJob<'a>>,
    done: Receiver<FinishedTransfer<'a>>,
    /// Transfers that ended before somebody waited for them.
    ended: HashMap<usize, (Loan<'a>, Result<()>)>,
    /// What was asked to be written, in all.
    pub written: u64,
}

impl<'a> DiskLane<'a> {
    /// Starts the thread.
    ///
    /// # Errors
    /// Where the system has no thread left.
    pub fn start<'env>(scope: &'a Scope<'a, 'env>, mut file: SpillFile) -> Result<DiskLane<'a>> {
        let (jobs, asked) = channel::<TransferJob<'a>>();
        let (answers, done) = channel();
        let work = move || {
            for TransferJob { number, at, mut loan } in asked {
                let answer = match loan.is_written() {
                    true => loan.bytes_mut().and_then(|bytes| file.read(at, bytes)),
                    false => loan.bytes().and_then(|bytes| file.write(at, bytes)),
                };
                // Nobody waits any more: the call has failed elsewhere.
                if answers.send(FinishedTransfer { number, loan, answer }).is_err() {
                    break;
                }
            }
        };
        let started = Builder::new().name("tonnage-disk".into()).spawn_scoped(scope, work);
        started.map_err(|e| gone(&format!("no thread ({e})")))?;
        Ok(DiskLane { jobs, done, ended: HashMap::new(), written: 0 })
    }

    /// Begins a transfer of a loan, between it and that place of the file. The number names it.
    ///
    /// # Errors
    /// Where the lane has ended.
    pub fn begin(&mut self, number: usize, at: u64, loan: Loan<'a>) -> Result<()> {
        if !loan.is_written() {
            self.written += loan.len() as u64;
        }
        self.jobs.send(TransferJob { number, at, loan }).map_err(|_| gone("it has ended"))
    }

    /// Waits for a transfer, and gives its loan back.
    ///
    /// # Errors
    /// Where the transfer failed.
    pub fn wait(&mut self, number: usize) -> Result<Loan<'a>> {
        loop {
            if let Some((loan, answer)) = self.ended.remove(&number) {
                return answer.map(|()| loan);
            }
            let done = self.done.recv().map_err(|_| gone("it has ended"))?;
            self.ended.insert(done.number, (done.loan, done.answer));
        }
    }
}

#[cold]
fn gone(why: &str) -> tonnage_core::Error {
    ErrorKind::BadGraph { what: format!("the disk lane does not run: {why}") }.into()
}
