//! The disk lane beside computing: when transfers begin and when they are awaited.
//!
//! A sketch awaits a write behind the value's last use before its idle interval, and begins to read where the value is used.
//! Here both are moved apart, by as much as the lane needs by the machine's figures and as far as memory allows: a
//! value whose write is not awaited yet, or whose reading has begun, takes its bytes. So the more a budget leaves, the
//! more of the lane computing hides, and the peak is still known.

use crate::sort;
use std::collections::HashMap;

use tonnage_core::row::Transfer;

use super::draw::{Drawing, Sketch, SketchStep};
use super::sketch::{ProgramProfile, RematDecision};

/// The program with the candidates dropped as `decisions` says, in at most `most` bytes of the arena if the
/// plain sketch takes no more, with what the lane really adds.
pub fn overlapped(
    program: &ProgramProfile,
    decisions: &[RematDecision],
    most: u64,
) -> Option<Sketch> {
    let drawing = program.draw(decisions)?;
    let plain: Vec<u32> = (0..drawing.runs.len() as u32).collect();
    let moved = TransferMover::new(&drawing, most).order();
    let order = match drawing.pressure.peak(&moved).bytes <= most {
        true => moved,
        false => plain,
    };
    let runs: Vec<SketchStep> = order.iter().map(|i| drawing.runs[*i as usize]).collect();
    let seconds = clock(program, &runs) - program.seconds();
    Some(Sketch { peak: drawing.pressure.peak(&order), runs, seconds: seconds.max(0.0) })
}

/// Seconds until all is done, with one lane that does one transfer after another.
fn clock(program: &ProgramProfile, runs: &[SketchStep]) -> f64 {
    let (mut now, mut free) = (0.0f64, 0.0f64);
    let mut done: HashMap<(u32, bool), f64> = HashMap::new();
    for run in runs {
        match *run {
            SketchStep::Node(node) | SketchStep::Recompute(node) => {
                now += program.seconds[node as usize]
            }
            SketchStep::Transfer(transfer, root) => {
                let bytes = program.pressure.size[root as usize];
                let out = matches!(transfer, Transfer::Write | Transfer::Written);
                match transfer {
                    Transfer::Write | Transfer::Read => {
                        now += program.machine.shared(bytes);
                        free = free.max(now) + program.machine.transfer(bytes, out);
                        done.insert((root, out), free);
                    }
                    Transfer::Written | Transfer::Arrived => {
                        now = done.get(&(root, out)).map_or(now, |end| now.max(*end));
                    }
                }
            }
        }
    }
    now
}

struct TransferMover<'d, 'p> {
    drawing: &'d Drawing<'p>,
    most: u64,
    /// What lives at each run.
    live: Vec<u64>,
    /// When each begins, were nothing waited for.
    time: Vec<f64>,
    /// Where each belongs: at its place, or before or behind another's.
    place: Vec<(u32, u8)>,
}

const BEFORE: u8 = 0;
const AT: u8 = 1;
const BEHIND: u8 = 2;

impl<'d, 'p> TransferMover<'d, 'p> {
    fn new(drawing: &'d Drawing<'p>, most: u64) -> TransferMover<'d, 'p> {
        let count = drawing.runs.len();
        let order: Vec<u32> = (0..count as u32).collect();
        let mut live = Vec::with_capacity(count);
        drawing.pressure.walk(&order, |_, bytes| live.push(bytes));
        let mut time = Vec::with_capacity(count);
        let mut now = 0.0;
        for run in &drawing.runs {
            time.push(now);
            if let SketchStep::Node(node) | SketchStep::Recompute(node) = run {
                now += drawing.program.seconds[*node as usize];
            }
        }
        let place = (0..count as u32).map(|i| (i, AT)).collect();
        TransferMover { drawing, most, live, time, place }
    }

    fn order(mut self) -> Vec<u32> {
        self.writes();
        self.reads();
        let mut order: Vec<u32> = (0..self.place.len() as u32).collect();
        sort::by_key(&mut order, |i| self.place[*i as usize]);
        order
    }

    fn bytes(&self, root: u32) -> u64 {
        self.drawing.program.pressure.size[root as usize]
    }

    /// Awaits each write when the lane should be done with it, or where memory runs short before.
    fn writes(&mut self) {
        let machine = self.drawing.program.machine;
        let mut free = 0.0f64;
        let mut done: HashMap<u32, f64> = HashMap::new();
        let mut read_at: HashMap<u32, usize> = HashMap::new();
        for (at, run) in self.drawing.runs.iter().enumerate() {
            if let SketchStep::Transfer(Transfer::Read, root) = run {
                read_at.insert(*root, at);
            }
        }
        for at in 0..self.drawing.runs.len() {
            match self.drawing.runs[at] {
                SketchStep::Transfer(Transfer::Write, root) => {
                    free = free.max(self.time[at]) + machine.transfer(self.bytes(root), true);
                    done.insert(root, free);
                }
                SketchStep::Transfer(Transfer::Written, root) => {
                    let (Some(end), Some(read)) = (done.get(&root), read_at.get(&root)) else {
                        continue;
                    };
                    let (end, read, bytes) = (*end, *read, self.bytes(root));
                    let mut to = at + 1;
                    while to < read && self.time[to] < end && self.live[to] + bytes <= self.most {
                        self.live[to] += bytes;
                        to += 1;
                    }
                    self.place[at] = (to as u32 - 1, BEHIND);
                }
                _ => {}
            }
        }
    }

    /// Begins each read as early as the lane needs, or as late as memory asks for.
    fn reads(&mut self) {
        let machine = self.drawing.program.machine;
        let mut written: HashMap<u32, usize> = HashMap::new();
        for (at, run) in self.drawing.runs.iter().enumerate() {
            if let SketchStep::Transfer(Transfer::Written, root) = run {
                written.insert(*root, self.place[at].0 as usize);
            }
        }
        let mut next = f64::INFINITY;
        for at in (0..self.drawing.runs.len()).rev() {
            let SketchStep::Transfer(Transfer::Read, root) = self.drawing.runs[at] else {
                continue;
            };
            let bytes = self.bytes(root);
            let start = next.min(self.time[at]) - machine.transfer(bytes, false);
            next = start;
            let first = written.get(&root).map_or(at, |w| w + 1);
            let mut from = at;
            while from > first
                && self.time[from] > start
                && self.live[from - 1] + bytes <= self.most
            {
                from -= 1;
                self.live[from] += bytes;
            }
            self.place[at] = (from as u32, BEFORE);
        }
    }
}
