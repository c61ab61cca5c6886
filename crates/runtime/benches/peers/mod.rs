//! What the benchmarks share: rows run as a plan's steps do, on memory of the ledger and inside of a pool, and PyTorch run
//! beside them.
//!
//! PyTorch takes part where `PEER_PYTHON` names an interpreter that has it. It is a process that answers lines: a
//! workload in, seconds out. Both sides take turns, so that a busy machine disturbs both alike: the best of each is told,
//! and the median of the ratios of turns. On a machine that is never quiet, `CPU_TIME=1` runs both on one thread and counts
//! the time that it really ran.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

use tonnage_core::lent::{Data, In, Out};
use tonnage_core::row::{Cost, Types};
use tonnage_core::{Attrs, Bytes, Call, DType, Kind, Layout, OpDef, Result, TensorType, bf16};
use tonnage_cpu::kernel::Kernel;
use tonnage_cpu::kernel_of;
use tonnage_runtime::machine::{machine, target_of};
use tonnage_runtime::{Buffer, Owner, WorkerPool, host_ledger};

/// One op with all that it is lent.
pub struct LentOp {
    op: &'static OpDef,
    attrs: Attrs,
    types: Vec<TensorType>,
    made: Types,
    inputs: Vec<Buffer>,
    outputs: Vec<Buffer>,
    scratch: Buffer,
    cost: Cost,
    pool: WorkerPool,
}

impl LentOp {
    /// A call of an op on inputs with values around 0. `None`, and a line that says why, where there is none such.
    pub fn new(name: &str, attrs: Attrs, types: &[TensorType]) -> Option<LentOp> {
        let op = tonnage_ops::find(name)?;
        LentOp::lent(op, attrs, types).map_err(|error| eprintln!("{error}")).ok()
    }

    fn lent(op: &'static OpDef, attrs: Attrs, types: &[TensorType]) -> Result<LentOp> {
        let pool = WorkerPool::new(threads())?;
        let call = Call::new(op, types, &attrs);
        let made = (op.infer)(&call)?;
        let cost = (op.cost)(&call);
        let scratch = lend(target_of(pool.threads_for(cost), machine()).scratch(op, &call, &[]))?;
        let of = |ty: &TensorType| lend(ty.bytes(op.name)?);
        let outputs = made.iter().map(of).collect::<Result<_>>()?;
        let inputs = types.iter().map(|ty| Ok(filled(ty.dtype, of(ty)?))).collect::<Result<_>>()?;
        Ok(LentOp { op, types: types.to_vec(), made, inputs, outputs, scratch, cost, pool, attrs })
    }

    /// Bytes of scratch.
    pub fn scratch(&self) -> usize {
        self.scratch.len()
    }

    /// Seconds of one run, by runs of about that many in all, inside of the pool as a plan's steps. The first is not counted:
    /// cores that have slept take a while.
    fn time(&mut self, about: f64) -> f64 {
        let LentOp { op, attrs, types, made, inputs, outputs, scratch, cost, pool } = self;
        let Some(kernel) = kernel_of(op) else { return f64::NAN };
        let sizes = |ty: &TensorType| ty.shape.sizes().unwrap_or_default();
        let ins: Vec<In> = types
            .iter()
            .zip(&*inputs)
            .map(|(ty, data)| In {
                dtype: ty.dtype,
                layout: Layout::contiguous(sizes(ty)),
                data: Data::Slice(data.bytes().unwrap_or_default()),
            })
            .collect();
        let mut run = || {
            let mut outs: Vec<Out> = made
                .iter()
                .zip(&mut *outputs)
                .map(|(ty, data)| Out {
                    dtype: ty.dtype,
                    sizes: sizes(ty),
                    data: data.bytes_mut().unwrap_or_default(),
                })
                .collect();
            let done = pool.run(*cost, |workers| {
                (kernel.run)(&mut Kernel {
                    attrs,
                    inputs: &ins,
                    outputs: &mut outs,
                    scratch: scratch.bytes_mut().unwrap_or_default(),
                    workers,
                    epilogue: None,
                })
            });
            assert!(done.is_ok(), "{done:?}");
        };
        pool.inside(|| {
            run();
            let (start, mut runs) = (clock(), 0);
            loop {
                run();
                runs += 1;
                let elapsed = clock() - start;
                if elapsed >= about {
                    return elapsed / f64::from(runs);
                }
            }
        })
    }
}

fn lend(bytes: Bytes) -> Result<Buffer> {
    Buffer::obtain(&host_ledger(), bytes, Owner::new(Kind::Activation, "bench"))
}

fn filled(dtype: DType, mut data: Buffer) -> Buffer {
    let value = |i: usize| ((i * 7919) % 1999) as f32 / 999.5 - 1.0;
    let bytes = data.bytes_mut().unwrap_or_default();
    match dtype {
        DType::F32 => fill(bytes, value),
        DType::BF16 => fill(bytes, |i| bf16::from_f32(value(i))),
        _ => {}
    }
    data
}

fn fill<T: bytemuck::Pod>(bytes: &mut [u8], value: impl Fn(usize) -> T) {
    bytemuck::cast_slice_mut(bytes).iter_mut().enumerate().for_each(|(i, x)| *x = value(i));
}

/// PyTorch in a process of its own.
pub struct Torch {
    process: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Torch {
    /// Where `PEER_PYTHON` names an interpreter.
    pub fn start() -> Option<Torch> {
        let python = std::env::var("PEER_PYTHON").ok()?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/torch_nn.py");
        let mut process = Command::new(python)
            .args([script, &threads().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let (ask, answers) = (process.stdin.take()?, BufReader::new(process.stdout.take()?));
        Some(Torch { process, ask, answers })
    }

    /// Seconds of one run of a workload, by runs of about that many in all.
    fn time(&mut self, about: f64, workload: &str) -> Option<f64> {
        writeln!(self.ask, "{about} {workload}").ok()?;
        let mut line = String::new();
        self.answers.read_line(&mut line).ok()?;
        line.trim().parse().ok()
    }
}

impl Drop for Torch {
    fn drop(&mut self) {
        let _ = writeln!(self.ask, "end");
        let _ = self.process.wait();
    }
}

/// How many threads both sides have.
pub fn threads() -> usize {
    if counts_cpu_time() { 1 } else { 2 }
}

fn counts_cpu_time() -> bool {
    std::env::var_os("CPU_TIME").is_some()
}

/// Seconds, of which differences are taken. The time that a thread ran is good to a few milliseconds.
fn clock() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    if counts_cpu_time() {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanos: Option<f64> = text.split(' ').next().and_then(|word| word.parse().ok());
        return nanos.map_or(f64::NAN, |nanos| nanos / 1e9);
    }
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// What a race came to: the best time of ours, in seconds, and the peer if it took part.
pub struct Raced {
    pub best: f64,
    pub peer: Option<Peer>,
}

/// The peer's best time, and the median over all turns of our time by its.
pub struct Peer {
    pub best: f64,
    pub median_ratio: f64,
}

impl Raced {
    /// The peer's milliseconds, our best time by its best, and the median of the ratios of turns.
    pub fn told(&self) -> String {
        let Some(peer) = &self.peer else { return String::new() };
        let ratio = self.best / peer.best;
        format!("{:>9.3} {ratio:>7.2} {:>7.2}", peer.best * 1e3, peer.median_ratio)
    }
}

/// Both, several times, in turn.
pub fn race(row: &mut LentOp, mut torch: Option<&mut Torch>, workload: &str) -> Raced {
    let about = if counts_cpu_time() { 0.1 } else { 0.005 };
    let (mut best, mut best_of_peer) = (row.time(about), f64::INFINITY);
    let mut ratios = Vec::new();
    let start = Instant::now();
    let mut turns = 0;
    while turns < 3 || start.elapsed().as_secs_f64() < 1.0 && turns < 200 {
        // Threads go on spinning for a while after their work, on the other's cores.
        let rest = || std::thread::sleep(std::time::Duration::from_millis(20));
        rest();
        let ours = row.time(about);
        best = best.min(ours);
        rest();
        if let Some(theirs) = torch.as_mut().and_then(|torch| torch.time(about, workload)) {
            best_of_peer = best_of_peer.min(theirs);
            ratios.push(ours / theirs);
        }
        turns += 1;
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(ratios.len() / 2);
    let peer = median.map(|&median_ratio| Peer { best: best_of_peer, median_ratio });
    Raced { best, peer }
}
