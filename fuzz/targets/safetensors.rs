//! Bytes as a file of safetensors.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tonnage_fuzz::look("a.safetensors", bytes));
