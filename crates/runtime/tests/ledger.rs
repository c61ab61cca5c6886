//! What the ledger promises: the limit holds, the figures are exact, the three errors say who holds
//! what, the cache keeps to its bounds, and a failed request leaves nothing behind.

use std::thread;

use tonnage_core::error::Shortage;
use tonnage_core::{Bytes, Device, Error, ErrorKind, Kind, Source};
use tonnage_runtime::system::machine_memory;
use tonnage_runtime::{Buffer, Ledger, Owner, leak_check};

const MIB: Bytes = Bytes::mib(1);

fn obtain(ledger: &Ledger, bytes: Bytes) -> Result<Buffer, Error> {
    Buffer::obtain(ledger, bytes, Owner::new(Kind::Activation, "test"))
}

fn figures(ledger: &Ledger) -> (Bytes, Bytes, Bytes) {
    let info = ledger.info();
    assert_eq!(info.reserved, info.in_use + info.cached);
    (info.in_use, info.peak, info.cached)
}

#[test]
fn what_is_counted_is_rounded_and_no_bytes_take_nothing() {
    let ledger = Ledger::new(None);
    for asked in [0, 1, 64, 65, 32_767, 32_768, 40_000, 1_000_000] {
        let buffer = obtain(&ledger, Bytes::new(asked)).unwrap();
        assert_eq!(buffer.bytes().unwrap().len() as u64, asked);
        assert_eq!(buffer.reserved(), Bytes::new(asked).rounded());
        assert_eq!(ledger.in_use(), buffer.reserved());
        assert!(buffer.bytes().unwrap().as_ptr().addr().is_multiple_of(64));
        assert_eq!(ledger.holders(9).len(), usize::from(asked > 0));
    }
    assert_eq!(ledger.in_use(), Bytes::ZERO);
    assert_eq!(ledger.peak(), Bytes::new(1_000_000).rounded());
}

#[test]
fn holders_are_summed_by_owner_and_follow_a_new_owner() {
    let ledger = Ledger::new(None);
    let source = Source::here();
    let owner = |kind, what| Owner::new(kind, what).at(source);
    let variable = owner(Kind::Variable, "w").named("layer/w");
    let held = [
        Buffer::obtain(&ledger, Bytes::new(640), owner(Kind::Activation, "add")).unwrap(),
        Buffer::obtain(&ledger, Bytes::new(640), owner(Kind::Activation, "add")).unwrap(),
        Buffer::obtain(&ledger, MIB, variable.clone()).unwrap(),
    ];
    let info = ledger.info();
    assert_eq!(info.by_kind, [(Kind::Variable, MIB), (Kind::Activation, Bytes::new(1280))]);
    let sums: Vec<_> = info.holders.iter().map(|h| (&h.owner, h.bytes, h.buffers)).collect();
    let add = owner(Kind::Activation, "add");
    assert_eq!(sums, [(&variable, MIB, 1), (&add, Bytes::new(1280), 2)]);
    assert_eq!(ledger.holders(1)[0].owner.to_string(), format!("variable w `layer/w` at {source}"));

    let [mut first, _second, _third] = held;
    first.set_owner(owner(Kind::Output, "result"));
    let by_kind = ledger.info().by_kind;
    assert_eq!(
        by_kind[1..],
        [(Kind::Activation, Bytes::new(640)), (Kind::Output, Bytes::new(640))]
    );
}

#[test]
fn the_three_errors_say_what_was_asked_and_who_holds_what() {
    let ledger = Ledger::new(Some(Bytes::mib(10)));
    let source = Source::here();
    let weights = Owner::new(Kind::Variable, "w").at(source);
    let held = Buffer::obtain(&ledger, Bytes::mib(6), weights).unwrap();
    let expected = |asked| Shortage {
        what: "activation test".to_string(),
        device: Device::CPU,
        asked,
        in_use: Bytes::mib(6),
        holders: vec![tonnage_core::error::Holder {
            kind: Kind::Variable,
            source,
            what: format!("variable w at {source}"),
            bytes: Bytes::mib(6),
            buffers: 1,
        }],
        others: Vec::new(),
    };

    let error = obtain(&ledger, Bytes::mib(11)).unwrap_err();
    let limit = Bytes::mib(10);
    let shortage = expected(Bytes::mib(11));
    assert_eq!(*error.kind(), ErrorKind::NeverFits { shortage, limit });
    assert!(error.source_line().is_some_and(|line| line.file().ends_with("tests/ledger.rs")));

    let error = obtain(&ledger, Bytes::mib(5)).unwrap_err();
    let shortage = expected(Bytes::mib(5));
    assert_eq!(
        *error.kind(),
        ErrorKind::OverBudget { shortage, budget: limit, least: None, would_help: None }
    );

    ledger.fail_nth(Some(1));
    let error = obtain(&ledger, MIB).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::SystemRefused { shortage: expected(MIB) });

    // And the program goes on.
    assert!(obtain(&ledger, Bytes::mib(4)).is_ok());
    drop(held);
    assert!(obtain(&ledger, Bytes::mib(10)).is_ok());
    assert_eq!(ledger.in_use(), Bytes::ZERO);
}

#[test]
fn an_error_names_all_holders_the_largest_first() {
    let ledger = Ledger::new(Some(MIB));
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let held: Vec<Buffer> = (1..)
        .zip(names)
        .map(|(n, name)| {
            Buffer::obtain(&ledger, Bytes::new(n * 640), Owner::new(Kind::Input, name)).unwrap()
        })
        .collect();
    let error = obtain(&ledger, MIB).unwrap_err();
    let ErrorKind::OverBudget { shortage, .. } = error.kind() else { panic!("{error}") };
    let first: Vec<&str> = shortage.holders.iter().map(|holder| &holder.what[..7]).collect();
    let all = ["input g", "input f", "input e", "input d", "input c", "input b", "input a"];
    assert_eq!(first, all);
    drop(held);
}

#[test]
fn more_than_the_machine_has_never_fits() {
    let ledger = Ledger::new(None);
    let Some(machine) = machine_memory() else { return };
    let error = obtain(&ledger, machine + MIB).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NeverFits { limit, .. } if *limit == machine));
    // A system that promises more than it has would kill us later.
    let held = obtain(&ledger, machine.saturating_sub(Bytes::mib(64)));
    if held.is_ok() {
        let error = obtain(&ledger, Bytes::mib(65)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::SystemRefused { .. }), "{error}");
    }
}

#[test]
fn a_limit_below_what_is_in_use_stops_further_requests_alone() {
    let ledger = Ledger::new(None);
    let mut held = obtain(&ledger, Bytes::mib(8)).unwrap();
    ledger.set_limit(Some(Bytes::mib(4)));
    held.bytes_mut().unwrap().fill(1);
    assert!(matches!(obtain(&ledger, MIB).unwrap_err().kind(), ErrorKind::OverBudget { .. }));
    drop(held);
    assert!(obtain(&ledger, MIB).is_ok());
    ledger.set_limit(None);
    assert!(obtain(&ledger, Bytes::mib(8)).is_ok());
}

#[test]
fn the_nth_request_fails_once_and_nothing_is_left_of_it() {
    let ledger = Ledger::new(None);
    for nth in 1..=4 {
        leak_check(&ledger, || {
            ledger.fail_nth(Some(nth));
            let sizes = [100, 1_000_000, 100, 5_000_000];
            let got: Result<Vec<Buffer>, Error> =
                sizes.into_iter().map(|n| obtain(&ledger, Bytes::new(n))).collect();
            assert!(matches!(got.unwrap_err().kind(), ErrorKind::SystemRefused { .. }));
            assert!(obtain(&ledger, MIB).is_ok());
        })
        .unwrap();
    }
}

#[test]
fn a_leak_is_named() {
    let ledger = Ledger::new(None);
    let mut leaked = Vec::new();
    let text = leak_check(&ledger, || leaked.push(obtain(&ledger, MIB).unwrap())).unwrap_err();
    assert!(text.starts_with("in use was 0 B and is 1.00 MiB; activation test at "), "{text}");
    assert!(text.ends_with(" holds 1.00 MiB more"), "{text}");
}

#[test]
fn a_size_stays_warm_once_it_was_wanted_again() {
    let ledger = Ledger::new(None);
    let _variable = obtain(&ledger, Bytes::new(64)).unwrap();
    let cached = || ledger.info().cached;
    // Three at once are not wanted again: all of them go.
    let three: Vec<Buffer> = (0..3).map(|_| obtain(&ledger, Bytes::mib(20)).unwrap()).collect();
    drop(three);
    assert_eq!(cached(), Bytes::ZERO);
    drop(obtain(&ledger, Bytes::mib(20)).unwrap());
    assert_eq!(cached(), Bytes::mib(20));
    // Another size does not get it, and the same size does.
    let other = obtain(&ledger, Bytes::mib(21)).unwrap();
    assert_eq!(cached(), Bytes::mib(20));
    let mut same = obtain(&ledger, Bytes::mib(20)).unwrap();
    assert_eq!(cached(), Bytes::ZERO);
    same.bytes_mut().unwrap().fill(9);
    drop((other, same));
    assert!(
        obtain(&ledger, Bytes::mib(20)).unwrap().bytes().unwrap().iter().all(|byte| *byte == 9)
    );
    assert_eq!(ledger.give_up_cache(), Bytes::mib(20));
    assert_eq!(cached(), Bytes::ZERO);
}

/// Leaves `bytes` in the cache; something must live.
fn warm(ledger: &Ledger, bytes: Bytes) {
    for _ in 0..2 {
        assert!(obtain(ledger, bytes).is_ok());
    }
}

#[test]
fn when_nothing_lives_two_mib_stay_at_most() {
    let ledger = Ledger::new(None);
    let variable = obtain(&ledger, Bytes::new(64)).unwrap();
    warm(&ledger, Bytes::mib(30));
    warm(&ledger, MIB);
    assert_eq!(figures(&ledger).2, Bytes::mib(31));
    drop(variable);
    assert_eq!(figures(&ledger), (Bytes::ZERO, Bytes::mib(30) + Bytes::new(64), MIB));
    for n in 1..20 {
        drop(obtain(&ledger, Bytes::new(n * 100_000)).unwrap());
        assert!(figures(&ledger).2 <= Bytes::mib(2));
    }
}

#[test]
fn the_cache_makes_room_under_a_limit_and_counts_against_it() {
    let ledger = Ledger::new(Some(Bytes::mib(64)));
    let _variable = obtain(&ledger, MIB).unwrap();
    warm(&ledger, Bytes::mib(40));
    assert_eq!(figures(&ledger).2, Bytes::mib(40));
    let _small = obtain(&ledger, Bytes::mib(20)).unwrap();
    assert!(ledger.info().reserved <= Bytes::mib(64));
    let _all = obtain(&ledger, Bytes::mib(43)).unwrap();
    assert_eq!(figures(&ledger), (Bytes::mib(64), Bytes::mib(64), Bytes::ZERO));
    assert_eq!(ledger.info().peak_reserved, Bytes::mib(64));

    let ledger = Ledger::new(None);
    let _variable = obtain(&ledger, MIB).unwrap();
    warm(&ledger, Bytes::mib(40));
    ledger.set_limit(Some(Bytes::mib(20)));
    assert_eq!(figures(&ledger).2, Bytes::ZERO);
}

#[test]
fn warm_pages_raise_no_peak() {
    let ledger = Ledger::new(None);
    let _variable = obtain(&ledger, MIB).unwrap();
    for size in [30, 31, 32, 20, 25, 31, 30] {
        warm(&ledger, Bytes::mib(size));
        let info = ledger.info();
        assert!(info.peak_reserved <= info.peak + Bytes::mib(2), "{info}");
    }
    assert_eq!(ledger.peak(), Bytes::mib(33));
}

#[test]
fn a_block_that_nobody_wants_any_more_leaves() {
    let ledger = Ledger::new(None);
    let _variable = obtain(&ledger, MIB).unwrap();
    warm(&ledger, Bytes::mib(30));
    let mut last = 0;
    for request in 1..=300 {
        drop(obtain(&ledger, Bytes::new(65_536)).unwrap());
        if figures(&ledger).2 >= Bytes::mib(30) {
            last = request;
        }
    }
    assert_eq!(last, 256);
}

#[test]
fn the_cache_has_a_cap() {
    let ledger = Ledger::new(None);
    let _variable = obtain(&ledger, MIB).unwrap();
    let sizes: Vec<Bytes> = (0..6).map(|n| Bytes::mib(100 + n)).collect();
    for _ in 0..2 {
        let all: Vec<Buffer> = sizes.iter().map(|size| obtain(&ledger, *size).unwrap()).collect();
        drop(all);
    }
    // The last five of the six are 515 MiB: four of them stay.
    assert_eq!(figures(&ledger).2, Bytes::mib(102 + 103 + 104 + 105));
}

#[test]
fn the_peak_is_exact_with_several_threads() {
    const ITERATIONS: usize = 200;
    let ledger = Ledger::new(None);
    let sizes = [Bytes::new(640), Bytes::new(40_960), MIB];
    for threads in 1..=4 {
        ledger.reset_peak();
        // Everyone holds all three sizes at the barrier, so the peak is known.
        let barrier = std::sync::Barrier::new(threads);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let held: Vec<Buffer> =
                        sizes.iter().map(|size| obtain(&ledger, *size).unwrap()).collect();
                    barrier.wait();
                    drop(held);
                    barrier.wait();
                    for iteration in 0..ITERATIONS {
                        drop(obtain(&ledger, sizes[iteration % 3]).unwrap());
                    }
                });
            }
        });
        let all: Bytes = sizes.iter().copied().sum();
        assert_eq!(ledger.peak(), all.checked_mul(threads as u64).unwrap());
        assert_eq!(ledger.in_use(), Bytes::ZERO);
        assert!(ledger.info().cached <= Bytes::mib(2));
    }
}

#[test]
fn a_limit_holds_with_several_threads() {
    let ledger = Ledger::new(Some(Bytes::mib(5)));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for iteration in 0..200 {
                    let size = [MIB, Bytes::mib(3), Bytes::new(6400)][iteration % 3];
                    let first = obtain(&ledger, size);
                    let second = obtain(&ledger, size);
                    for error in [&first, &second].into_iter().filter_map(|got| got.as_ref().err())
                    {
                        assert!(matches!(error.kind(), ErrorKind::OverBudget { .. }), "{error}");
                    }
                }
            });
        }
    });
    let info = ledger.info();
    assert!(info.peak_reserved <= Bytes::mib(5), "{info}");
    assert_eq!(info.in_use, Bytes::ZERO);
}
