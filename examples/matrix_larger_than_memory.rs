//! A matrix that does not fit: rows are read from a file as they are needed, under a limit that holds for the whole program.
//!
//! `cargo run --release -p tonnage-examples matrix_larger_than_memory` prints
//!
//!     the file has f32[16384, 64], which is 4.00 MiB; the limit is 1.00 MiB
//!     the largest norm of a row is ...; at most 2... KiB were in use
//!     all at once: never fits: ...

use tonnage::io::{FileTensor, save_npy};
use tonnage::{Bytes, DType, Elementwise, Result, Tensor, function, memory, random_normal, set_seed};

const PIECE: usize = 1024;

pub fn main() -> Result<()> {
    set_seed(1);
    let path = std::env::temp_dir().join(format!("tonnage-example-{}.npy", std::process::id()));
    // Random numbers are a recipe; what is written is computed and counted, and given back.
    save_npy(&path, &random_normal([16_384, 64], DType::F32)?)?;
    let limit = Bytes::mib(1);
    memory::set_limit("cpu:0", Some(limit))?;
    memory::reset_peak("cpu:0")?;

    let file = FileTensor::npy(&path)?;
    println!("the file has {}, which is {}; the limit is {limit}", file.ty(), file.ty().bytes("file")?);
    let norms = function(|rows: Tensor| rows.square()?.sum(1)?.sqrt()?.max_all());
    let mut largest = f32::NEG_INFINITY;
    for start in (0..16_384).step_by(PIECE) {
        // The piece is moved into the call, and its bytes go back when it ends.
        largest = largest.max(norms.call(file.rows(start..start + PIECE)?)?.scalar::<f32>()?);
    }
    println!("the largest norm of a row is {largest:.2}; at most {} were in use", memory::info("cpu:0")?.peak);
    if let Err(error) = file.read() {
        println!("all at once: {error}");
    }
    std::fs::remove_file(&path).ok();
    Ok(())
}
