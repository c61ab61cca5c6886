//! Small reads in order become larger ones: tile programs ask for 4 KiB at a time, and a call of the system costs
//! about as much as copying 2 KiB does.
//!
//! Each thread has a few windows of 16 KiB, of the files that it read last; they are part of the thread as its stack
//! is, and no tensor's bytes. A window serves one pass over a file alone: what is written to a file is seen by the
//! next op that reads it.
//!
//! Decision: `docs/decisions/file-tensors-are-recipes.md`.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are read at once.
const SIZE: usize = 1 << 14;
/// Files that one program reads side by side.
const COUNT: usize = 4;

/// One pass over a file.
#[derive(Debug)]
pub struct FilePass(AtomicU64);

static PASSES: AtomicU64 = AtomicU64::new(1);

impl Default for FilePass {
    fn default() -> FilePass {
        FilePass(AtomicU64::new(PASSES.fetch_add(1, Ordering::Relaxed)))
    }
}

impl FilePass {
    /// What windows hold of it is forgotten.
    pub fn ends(&self) {
        self.0.store(PASSES.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Fills `out` with what lies there, by `fill`; elements end at `end`.
    pub fn read<E>(
        &self,
        at: u64,
        end: u64,
        out: &mut [u8],
        fill: impl Fn(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if out.len() > SIZE / 2 {
            return fill(at, out);
        }
        let pass = self.0.load(Ordering::Relaxed);
        WINDOWS.with_borrow_mut(|windows| {
            let (at_all, clock) = (&mut windows.all, &mut windows.clock);
            let known = at_all.iter().position(|window| window.pass == pass);
            // A new file takes the window of the one that was not read for longest.
            let oldest = || (0..COUNT).min_by_key(|i| at_all[*i].read_at).unwrap_or(0);
            let index = known.unwrap_or_else(oldest);
            let window = &mut at_all[index];
            *clock += 1;
            window.read_at = *clock;
            let in_order = known.is_some() && window.next == at;
            if known.is_none() {
                (window.pass, window.len) = (pass, 0);
            }
            if in_order && !window.holds(at, out.len()) {
                let len = (SIZE as u64).min(end.saturating_sub(at)).max(out.len() as u64) as usize;
                window.len = 0;
                fill(at, &mut window.bytes[..len])?;
                (window.from, window.len) = (at, len);
            }
            window.next = at + out.len() as u64;
            if !window.holds(at, out.len()) {
                return fill(at, out);
            }
            let start = (at - window.from) as usize;
            out.copy_from_slice(&window.bytes[start..start + out.len()]);
            Ok(())
        })
    }
}

/// What a thread has read of a file, and where it would go on.
struct ReadWindow {
    pass: u64,
    /// By the thread's own count of reads.
    read_at: u64,
    from: u64,
    len: usize,
    next: u64,
    bytes: [u8; SIZE],
}

impl ReadWindow {
    const EMPTY: ReadWindow =
        ReadWindow { pass: 0, read_at: 0, from: 0, len: 0, next: 0, bytes: [0; SIZE] };

    fn holds(&self, at: u64, len: usize) -> bool {
        at >= self.from && at + len as u64 <= self.from + self.len as u64
    }
}

struct ReadWindows {
    all: [ReadWindow; COUNT],
    clock: u64,
}

thread_local! {
    static WINDOWS: RefCell<ReadWindows> =
        const { RefCell::new(ReadWindows { all: [ReadWindow::EMPTY; COUNT], clock: 0 }) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_reads_in_order_are_gathered_and_others_are_not() {
        let data: Vec<u8> = (0..100_000u32).map(|i| (i * 7 % 251) as u8).collect();
        let calls = AtomicU64::new(0);
        let fill = |at: u64, out: &mut [u8]| {
            calls.fetch_add(1, Ordering::Relaxed);
            out.copy_from_slice(&data[at as usize..][..out.len()]);
            Ok::<(), ()>(())
        };
        let read = |pass: &FilePass, at: usize, len: usize| {
            let mut out = vec![0; len];
            pass.read(at as u64, data.len() as u64, &mut out, fill).unwrap();
            assert_eq!(out, data[at..at + len], "{at} {len}");
        };
        let passes: Vec<FilePass> = (0..3).map(|_| FilePass::default()).collect();
        // Three files side by side, with pieces that do not divide a window.
        for at in (0..99_000).step_by(1000) {
            passes.iter().for_each(|pass| read(pass, at, 1000));
        }
        let in_order = calls.swap(0, Ordering::Relaxed);
        assert!(in_order <= 3 * 9, "{in_order} calls for 3 * 99 reads");
        for at in [50_000, 10, 70_000, 5_000] {
            read(&passes[0], at, 100);
        }
        assert_eq!(calls.swap(0, Ordering::Relaxed), 4);
        // A pass that ended begins anew: what was read before may have changed.
        read(&passes[1], 99_000, 500);
        passes[1].ends();
        read(&passes[1], 99_000, 500);
        assert!(calls.load(Ordering::Relaxed) >= 1);
    }

    #[test]
    fn a_read_that_fails_leaves_nothing_in_the_window() {
        let pass = FilePass::default();
        let mut out = [0; 100];
        let ok = |_: u64, out: &mut [u8]| {
            out.fill(1);
            Ok::<(), i32>(())
        };
        pass.read(0, 1000, &mut out, ok).unwrap();
        assert_eq!(pass.read(100, 1000, &mut out, |_, _| Err(7)), Err(7));
        pass.read(100, 1000, &mut out, ok).unwrap();
        assert_eq!(out, [1; 100]);
    }
}
