//! The examples, by name: `cargo run --release -p tonnage-examples image_classifier`. Each file is a whole program; this one finds it.
//!
//! Decision: `docs/decisions/examples-are-one-program.md`.

macro_rules! programs {
    ($($name:ident,)*) => {
        $(mod $name;)*
        /// Their names, and what runs.
        const PROGRAMS: &[(&str, fn() -> tonnage::Result<()>)] = &[$((stringify!($name), $name::main),)*];
    };
}

programs! {
    first_steps,
    training_step,
    image_classifier,
    text_under_a_budget,
    long_loop,
    embedding_recommender,
    matrix_larger_than_memory,
    custom_gradient,
    custom_training_loop,
    largest_batch,
    finding_a_leak,
    reading_a_report,
}

fn main() -> std::process::ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let Some((_, program)) = PROGRAMS.iter().find(|(name, _)| *name == wanted) else {
        let names: Vec<&str> = PROGRAMS.iter().map(|(name, _)| *name).collect();
        eprintln!("name one of these examples: {}", names.join(", "));
        return 2.into();
    };
    match program() {
        Ok(()) => 0.into(),
        Err(error) => {
            eprintln!("error: {error}");
            1.into()
        }
    }
}
