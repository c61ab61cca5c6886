//! The resident size falls when memory is freed. A binary with one test, because the figure is that of
//! the whole process.
#![cfg(target_os = "linux")]

use tonnage_core::{Bytes, Kind};
use tonnage_runtime::system::resident;
use tonnage_runtime::{Arena, Buffer, Ledger, Owner};

const SLACK: Bytes = Bytes::mib(4);

fn now() -> Bytes {
    resident().unwrap_or_default()
}

fn owner(kind: Kind) -> Owner {
    Owner::new(kind, "test")
}

#[track_caller]
fn check(what: &str, before: Bytes, grown: Bytes) {
    let now = now();
    let low = (before + grown).saturating_sub(SLACK);
    assert!(low <= now && now <= before + grown + SLACK, "{what}: {before} + {grown}, but {now}");
}

#[test]
fn the_resident_size_follows_what_is_held() {
    let ledger = Ledger::new(None);
    let variable = Buffer::obtain(&ledger, Bytes::new(64), owner(Kind::Variable)).unwrap();
    let size = Bytes::mib(256);
    let before = now();

    let mut buffer = Buffer::obtain(&ledger, size, owner(Kind::Activation)).unwrap();
    check("obtained, untouched", before, Bytes::ZERO);
    buffer.bytes_mut().unwrap().fill(1);
    check("written", before, size);
    drop(buffer);
    // The variable lives, so the cache could have kept it.
    check("freed", before, Bytes::ZERO);

    // Of another size: one that is wanted again stays warm.
    let longer = size + Bytes::mib(1);
    let mut arena = Arena::obtain(&ledger, longer, owner(Kind::Activation)).unwrap();
    arena.bytes_mut().unwrap().fill(2);
    let offset = 100 * (1 << 20) + 4096;
    let retained = [(offset..offset + (10 << 20), owner(Kind::Output))];
    let parts = arena.into_parts(&retained).unwrap();
    check("cut", before, Bytes::mib(10));
    assert!(parts[0].bytes().unwrap().iter().all(|byte| *byte == 2));
    drop(parts);
    check("parts dropped", before, Bytes::ZERO);

    // Wanted again and again: it stays warm while the variable lives, and is reported as cached.
    for _ in 0..2 {
        Buffer::obtain(&ledger, size, owner(Kind::Activation))
            .unwrap()
            .bytes_mut()
            .unwrap()
            .fill(3);
    }
    check("warm", before, size);
    assert_eq!((ledger.in_use(), ledger.info().cached), (Bytes::new(64), size));
    drop(variable);
    check("nothing lives", before, Bytes::ZERO);
}
