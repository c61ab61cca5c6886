//! Bytes as the index of a model in several files, beside one that it may name.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tonnage_fuzz::look("model-00001-of-00001.safetensors", include_bytes!("../seeds/safetensors/two"));
    tonnage_fuzz::look("model.safetensors.index.json", bytes);
});
