//! Bytes as an ONNX model, which is opened, planned and called.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tonnage_fuzz::model("a.onnx", bytes));
