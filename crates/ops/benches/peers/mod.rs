//! What the benchmarks share: rows run with lent memory on rayon's threads, and PyTorch run beside them.
//!
//! PyTorch takes part where `PEER_PYTHON` names an interpreter that has it. It is a process that answers lines: a
//! workload in, seconds out. Both sides take turns, and the best of each counts, so that a busy machine disturbs both
//! alike. On a machine that is never quiet, `CPU_TIME=1` runs both on one thread and counts the time that it really ran.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

use tonnage_core::bytes::ALIGN;
use tonnage_core::kernel::{Data, In, Kernel, Out};
use tonnage_core::row::Types;
use tonnage_core::{Attrs, Call, DType, Layout, OpDef, TensorType, Workers, bf16};

/// Rayon's threads as workers.
pub struct Pool(pub usize);

impl Workers for Pool {
    fn threads(&self) -> usize {
        self.0
    }

    fn join(&self, a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
        rayon::join(a, b);
    }
}

/// One op with all that it is lent.
pub struct Row {
    op: &'static OpDef,
    attrs: Attrs,
    types: Vec<TensorType>,
    made: Types,
    inputs: Vec<Lent>,
    outputs: Vec<Lent>,
    scratch: Lent,
    /// Bytes of it that the op asked for.
    asked: usize,
    threads: usize,
}

/// Bytes that start at a cache line, as a plan's do and PyTorch's. A vector's own start 16 bytes behind one where they are
/// many, and then every store of a whole line is two halves.
struct Lent {
    words: Vec<u64>,
    start: usize,
}

fn lent(bytes: usize) -> Lent {
    let words = vec![0; bytes.div_ceil(8) + ALIGN / 8];
    let start = words.as_ptr().align_offset(ALIGN);
    Lent { words, start }
}

impl Lent {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words[self.start..])
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.words[self.start..])
    }
}

impl Row {
    /// A call of an op on inputs with values around 0.
    pub fn new(name: &str, attrs: Attrs, types: &[TensorType]) -> Option<Row> {
        let threads = threads();
        let op = tonnage_ops::find(name)?;
        let call = Call::new(op, types, &attrs);
        let made = (op.infer)(&call).map_err(|e| eprintln!("{e}")).ok()?;
        let asked = (op.scratch)(&call, threads).as_usize();
        let scratch = lent(asked);
        let bytes = |ty: &TensorType| ty.bytes(name_of(op)).map_or(0, |bytes| bytes.as_usize());
        let outputs = made.iter().map(|ty| lent(bytes(ty))).collect();
        let fill = |ty: &TensorType| {
            let mut data = lent(bytes(ty));
            if ty.dtype == DType::F32 {
                let values: &mut [f32] = bytemuck::cast_slice_mut(data.bytes_mut());
                let value = |i: usize| ((i * 7919) % 1999) as f32 / 999.5 - 1.0;
                values.iter_mut().enumerate().for_each(|(i, x)| *x = value(i));
            }
            if ty.dtype == DType::BF16 {
                let values: &mut [bf16] = bytemuck::cast_slice_mut(data.bytes_mut());
                let value = |i: usize| bf16::from_f32(((i * 7919) % 1999) as f32 / 999.5 - 1.0);
                values.iter_mut().enumerate().for_each(|(i, x)| *x = value(i));
            }
            data
        };
        let inputs = types.iter().map(fill).collect();
        let (types, attrs) = (types.to_vec(), attrs.clone());
        Some(Row { op, attrs, types, made, inputs, outputs, scratch, asked, threads })
    }

    /// Bytes of scratch.
    pub fn scratch(&self) -> usize {
        self.asked
    }

    /// Seconds of one run, by runs of about that many in all.
    fn time(&mut self, about: f64) -> f64 {
        let (start, mut runs) = (clock(), 0);
        loop {
            self.run();
            runs += 1;
            let elapsed = clock() - start;
            if elapsed >= about {
                return elapsed / runs as f64;
            }
        }
    }

    fn run(&mut self) {
        let Some(kernel) = self.op.lower.kernel() else { return };
        let ins: Vec<In> = self
            .types
            .iter()
            .zip(&self.inputs)
            .map(|(ty, data)| In {
                dtype: ty.dtype,
                layout: Layout::contiguous(ty.shape.sizes().unwrap_or_default()),
                data: Data::Slice(&data.bytes()[..size(ty)]),
            })
            .collect();
        let mut outs: Vec<Out> = self
            .made
            .iter()
            .zip(&mut self.outputs)
            .map(|(ty, data)| Out {
                dtype: ty.dtype,
                sizes: ty.shape.sizes().unwrap_or_default(),
                data: &mut data.bytes_mut()[..size(ty)],
            })
            .collect();
        let done = kernel(&mut Kernel {
            attrs: &self.attrs,
            inputs: &ins,
            outputs: &mut outs,
            scratch: &mut self.scratch.bytes_mut()[..self.asked],
            workers: &Pool(self.threads),
            finish: None,
        });
        assert!(done.is_ok(), "{done:?}");
    }
}

fn name_of(op: &'static OpDef) -> &'static str {
    op.name
}

fn size(ty: &TensorType) -> usize {
    ty.shape.count().unwrap_or(0) * ty.dtype.size()
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

/// The best of several rounds that take turns: ours, and the peer's if it takes part.
pub fn race(row: &mut Row, mut torch: Option<&mut Torch>, workload: &str) -> (f64, Option<f64>) {
    // Some milliseconds at a time: threads that have slept meanwhile take a while to wake.
    let about = if counts_cpu_time() { 0.1 } else { 0.005 };
    let (mut ours, mut theirs) = (row.time(about), f64::INFINITY);
    let start = Instant::now();
    let mut rounds = 0;
    while rounds < 3 || start.elapsed().as_secs_f64() < 1.0 && rounds < 200 {
        // The peer's threads go on spinning for a while after their work, on our cores.
        std::thread::sleep(std::time::Duration::from_millis(10));
        ours = ours.min(row.time(about));
        if let Some(time) = torch.as_mut().and_then(|torch| torch.time(about, workload)) {
            theirs = theirs.min(time);
        }
        rounds += 1;
    }
    (ours, Some(theirs).filter(|time| time.is_finite()))
}
