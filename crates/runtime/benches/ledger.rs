//! What the ledger costs: `cargo bench -p tonnage-runtime --bench ledger`.
//!
//! The bookkeeping alone is a small buffer's time less that of the allocator for the same bytes.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::hint::black_box;
use std::time::Instant;

use tonnage_core::row::Cost;
use tonnage_core::{Bytes, Kind, Result};
use tonnage_cpu::workers::Workers;
use tonnage_runtime::events::Scope;
use tonnage_runtime::lend::{ByteRange, Lender};
use tonnage_runtime::{Arena, Buffer, Owner, WorkerPool, host_ledger};

/// Prints the best time of many short runs, in nanoseconds a call: short, so that some of them are not
/// interrupted on a machine that does other things too.
fn time(what: &str, calls: u32, mut f: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..50 {
        let start = Instant::now();
        for _ in 0..calls {
            f();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(calls));
    }
    println!("{what:<58} {best:>12.1} ns");
}

#[allow(unsafe_code, reason = "the allocator's own time, to compare with")]
fn allocator(bytes: usize) {
    let Ok(layout) = Layout::from_size_align(bytes, 64) else { return };
    // SAFETY: the layout is not empty, and what is freed was just obtained with it.
    unsafe { dealloc(black_box(alloc_zeroed(layout)), layout) };
}

fn main() -> Result<()> {
    let ledger = &host_ledger();
    let owner = Owner::new(Kind::Activation, "bench");
    let obtain = |bytes: Bytes| {
        // An error would show as an impossible time.
        drop(black_box(Buffer::obtain(ledger, bytes, owner.clone())));
    };
    let variable = Buffer::obtain(ledger, Bytes::new(64), owner.clone())?;

    time("allocator alone, 256 B", 5000, || allocator(256));
    time("buffer of 256 B", 5000, || obtain(Bytes::new(256)));
    let scope = Scope::open();
    time("buffer of 256 B, events recorded", 5000, || obtain(Bytes::new(256)));
    drop(scope);
    time("buffer of 64 KiB, warm", 5000, || obtain(Bytes::new(65_536)));
    time("buffer of 64 MiB, warm", 5000, || obtain(Bytes::mib(64)));
    let mut odd = 0;
    time("buffer of 64 MiB, cold, untouched", 200, || {
        odd += 4096;
        obtain(Bytes::mib(64) + Bytes::new(odd));
    });
    ledger.give_up_cache();
    time("64 MiB, cold, each page written", 1, || {
        odd += 4096;
        if let Ok(mut arena) =
            Arena::obtain(ledger, Bytes::mib(64) + Bytes::new(odd), owner.clone())
        {
            let bytes = arena.bytes_mut().into_iter().flatten();
            bytes.step_by(4096).for_each(|byte| *byte = 1);
        }
    });

    let live: Vec<Buffer> = (0..10_000)
        .map(|_| Buffer::obtain(ledger, Bytes::new(64), owner.clone()))
        .collect::<Result<_>>()?;
    time("buffer of 256 B beside 10,000 others", 5000, || obtain(Bytes::new(256)));
    time("info over 10,000 buffers", 2, || drop(black_box(ledger.info())));
    drop((live, variable));

    let (weights, mut arena) = (vec![0u8; 4096], vec![0u8; 65_536]);
    let mut lender = Lender::default();
    let (weights, arena) = (lender.add(&weights[..]), lender.add(&mut arena[..]));
    let byte_range = |base, offset| ByteRange { base, offset, len: 512, align: 4 };
    let reads = [byte_range(weights, 0), byte_range(arena, 1024)];
    time("lending two inputs, an output and scratch", 5000, || {
        drop(black_box(lender.lend(&reads, &[byte_range(arena, 2048), byte_range(arena, 4096)])));
    });

    let pool = WorkerPool::new(2)?;
    let small = Cost::local(1000, 4000);
    let large = Cost::local(0, 1 << 30);
    time("pool: small work", 5000, || {
        black_box(pool.run(small, |workers| workers.threads()));
    });
    let join = |workers: &dyn Workers| workers.join(&mut || {}, &mut || {});
    time("pool: entering from outside, one join", 2000, || pool.run(large, join));
    pool.inside(|| time("pool: one join from inside", 2000, || pool.run(large, join)));
    Ok(())
}
