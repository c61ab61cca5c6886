//! What moves bytes between ranks: whatever the number of ranks and the length, every byte comes to where it should, and a rank that does not
//! come is named.

use std::time::Duration;

use tonnage::world::{self, World};

use crate::{ended_badly, is_rank, name, start};

/// The byte at a place of what one rank sends to another.
fn byte(from: usize, to: usize, at: usize) -> u8 {
    (from * 31 + to * 17 + at * 7 + 1) as u8
}

/// Every byte comes to where it should: part of jobs that are there for more.
pub fn moves_bytes(world: &World) {
    let (engine, rank, size) = (world.engine(), world.rank(), world.size());
    assert!(engine.name().contains("Open MPI"), "{}", engine.name());
    assert_eq!(*world, world::join().unwrap());
    // Around what is sent at once, and around the piece that messages are cut into.
    let mut lengths = vec![0, 1, 3, 1000, (64 << 10) / size + 1];
    lengths.extend((size == 2).then_some((16 << 20) + 5));
    for length in lengths {
        let block = |from: usize, to: usize| -> Vec<u8> {
            let few: Vec<u8> = (0..length.min(997)).map(|at| byte(from, to, at)).collect();
            let mut all = few.repeat(length.div_ceil(997));
            all.truncate(length);
            all
        };
        let sent: Vec<u8> = (0..size).flat_map(|to| block(rank, to)).collect();
        let mut came = vec![0; sent.len()];
        engine.all_to_all("test", &sent, &mut came).unwrap();
        let expected: Vec<u8> = (0..size).flat_map(|from| block(from, rank)).collect();
        assert!(came == expected, "all_to_all of {length}");
        let mut all = vec![0; size * length];
        all[rank * length..][..length].copy_from_slice(&block(rank, rank));
        engine.all_gather("test", length, &mut all).unwrap();
        let expected: Vec<u8> = (0..size).flat_map(|from| block(from, from)).collect();
        assert!(all == expected, "all_gather of {length}");
        // The last block is shorter, or the last rank has none.
        for cut in [1, length].into_iter().filter(|cut| *cut <= length && length > 0) {
            let whole = size * length - cut;
            let mut all = vec![0; whole];
            let own = (rank * length).min(whole)..((rank + 1) * length).min(whole);
            all[own.clone()].copy_from_slice(&block(rank, rank)[..own.len()]);
            engine.all_gather("test", length, &mut all).unwrap();
            assert!(all == expected[..whole], "all_gather of {length} without {cut}");
        }
        for root in 0..size {
            let mut bytes = block(rank, root);
            engine.broadcast("test", root, &mut bytes).unwrap();
            assert!(bytes == block(root, root), "broadcast of {length} from {root}");
        }
        engine.barrier("test").unwrap();
    }
    let said = world.gather("test", &[rank as u8, 9]);
    assert_eq!(said, (0..size).map(|r| vec![r as u8, 9]).collect::<Vec<_>>());
}

/// One rank ends by an error or a panic, or does not come, and the others wait for it.
fn leaves(world: &World, how: &str) {
    // Where a rank ends by itself, how long that takes is no matter: a panic prints where it came from.
    world.set_timeout((how == "stays away").then_some(Duration::from_secs(1)));
    match (world.rank(), how) {
        (1, "exits") => {
            eprintln!("rank 1 has no data");
            std::process::exit(3);
        }
        (1, "panics") => panic!("a bug of rank 1"),
        (1, _) => std::thread::park(),
        _ => {}
    }
    world.engine().barrier("all_reduce").unwrap();
}

#[test]
fn a_rank_that_leaves_or_does_not_come_ends_all_and_is_named() {
    if is_rank(leaves) {
        return;
    }
    for (program, words) in [
        ("exits", "rank 1 has no data"),
        ("panics", "a bug of rank 1"),
        ("stays away", "rank 0: all_reduce waited 1 s for rank 1; all ranks end"),
    ] {
        let Some(made) = start(name!(), program, 3) else { return };
        let said = ended_badly(&made, program);
        assert!(said.contains(words), "{program}: {said}");
        let spoken = if program == "stays away" { 1 } else { 0 };
        assert_eq!(said.matches("waited").count(), spoken, "{program}: {said}");
    }
}
