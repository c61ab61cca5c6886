//! A matrix that does not fit: it stays in its file, and is read as it is needed, under a limit that holds for the whole program.
//!
//! `cargo run --release -p tonnage-examples matrix_larger_than_memory` prints
//!
//!     the file has f32[16384, 64], which is 4.00 MiB; the limit is 1.00 MiB
//!     the largest norm of a row is 11.43; at most ... were in use
//!     by rows of 1024 it is 11.43; at most ... were in use
//!     all at once: never fits: input file asked for 4.00 MiB with 0 B in use on cpu:0; the most there can be is 1.00 MiB; ...

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
    let largest = |rows: Tensor| rows.square()?.sum(1)?.sqrt()?.max_all();

    // A recipe: one pass over the file, a tile at a time.
    let found = largest(file.lazy())?.scalar::<f32>()?;
    let peak = memory::info("cpu:0")?.peak;
    println!("the largest norm of a row is {found:.2}; at most {peak} were in use");

    // By hand: a piece is moved into the call, and its bytes go back when it ends.
    let planned = function(largest);
    let mut found = f32::NEG_INFINITY;
    for start in (0..16_384).step_by(PIECE) {
        found = found.max(planned.call(file.rows(start..start + PIECE)?)?.scalar::<f32>()?);
    }
    let peak = memory::info("cpu:0")?.peak;
    println!("by rows of {PIECE} it is {found:.2}; at most {peak} were in use");
    if let Err(error) = file.read() {
        println!("all at once: {error}");
    }
    std::fs::remove_file(&path).ok();
    Ok(())
}
