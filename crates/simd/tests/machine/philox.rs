//! Philox against its published answers.

use tonnage_core::philox::block;
use tonnage_simd::Level;
use tonnage_simd::philox::{Stream, fill};

/// The known answers that Random123 publishes for philox4x32-10.
#[test]
fn the_published_answers_come_out() {
    let ones = u32::MAX;
    for (counter, key, expected) in [
        ([0; 4], [0; 2], [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]),
        ([ones; 4], [ones; 2], [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]),
        (
            [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
            [0xa4093822, 0x299f31d0],
            [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
        ),
    ] {
        assert_eq!(block(key, counter), expected);
    }
}

#[test]
fn every_level_gives_the_words_of_single_blocks_also_where_the_counter_carries() {
    let stream = Stream { key: [7, 8], nonce: [9, 10] };
    let first = u64::from(u32::MAX) - 20;
    for &level in Level::available() {
        let mut out = [[0; 4]; 53];
        fill(level, stream, first, &mut out);
        for (i, words) in out.iter().enumerate() {
            let index = first + i as u64;
            assert_eq!(*words, block([7, 8], [index as u32, (index >> 32) as u32, 9, 10]));
        }
    }
}
