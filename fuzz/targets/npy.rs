//! Bytes as a file of npy.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tonnage_fuzz::look("a.npy", bytes));
