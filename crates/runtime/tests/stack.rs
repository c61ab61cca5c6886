//! A thread knows when its stack is nearly used up.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage_runtime::system::is_stack_low;

/// How often a function calls itself until the stack is low.
fn depth(left: u32) -> u32 {
    let frame = std::hint::black_box([1u8; 1024]);
    match is_stack_low() || left == 0 {
        true => 0,
        false => depth(left - 1) + u32::from(frame[usize::from(frame[0])]),
    }
}

#[test]
fn a_stack_is_low_before_it_overflows_whatever_its_size() {
    for size in [256 << 10, 2 << 20, 16 << 20] {
        let run = std::thread::Builder::new().stack_size(size).spawn(|| depth(1 << 20));
        let depth = run.unwrap().join().unwrap() as usize;
        // A frame takes 1 KiB and some bytes: a good part of the stack is used, and less than all of it.
        assert!(depth > size >> 12 && depth < size >> 10, "{depth} of {size}");
    }
}
