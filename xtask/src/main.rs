//! The project's own commands: `cargo xtask test`, `cargo xtask soak`, `cargo xtask bench`.
fn main() {}
