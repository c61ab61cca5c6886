//! Planning the largest batch: how many rows fit so many bytes? Asked of the planner, before anything runs.
//!
//! `cargo run --release -p tonnage-examples largest_batch` prints
//!
//!     budget  256.00 KiB: ... rows, exactly ... rows
//!     budget    1.00 MiB: ... rows, exactly ... rows
//!     budget    4.00 MiB: ... rows, exactly ... rows
//!     one more does not fit: true

use tonnage::{Bytes, DType, Dim, Elementwise, GradientTape, Result, Tensor, Variable, function, random_normal, set_seed};

pub fn main() -> Result<()> {
    set_seed(1);
    let weights = (0..4)
        .map(|i| Variable::new(&format!("w{i}"), (random_normal([64, 64], DType::F32)? * 0.1)?))
        .collect::<Result<Vec<Variable>>>()?;
    let step = || {
        function(|x: Tensor| {
            let mut tape = GradientTape::new();
            let mut h = x;
            for w in &weights {
                h = h.matmul(&w.read()?)?.tanh()?;
            }
            let loss = h.square()?.mean_all()?;
            for (w, gradient) in weights.iter().zip(tape.gradient(&loss, &weights)?) {
                w.assign_sub(&(gradient.tensor()? * 0.1)?)?;
            }
            Ok(loss)
        })
    };
    let spec = |rows: Dim| Tensor::spec(DType::F32, [rows, Dim::from(64)]);
    let mut last = (Bytes::ZERO, 0);
    for budget in ["256KiB", "1MiB", "4MiB"] {
        let budget: Bytes = budget.parse()?;
        // With all levers: pieces of the batch, rematerialization, files. And with none that changes a bit or needs a disk.
        let most = step().max_batch(&spec(Dim::open("rows")), budget)?;
        let exact = step().exact().no_spill().max_batch(&spec(Dim::open("rows")), budget)?;
        println!("budget {:>11}: {most} rows, exactly {exact} rows", budget.to_string());
        last = (budget, exact);
    }
    let (budget, exact) = last;
    let over = step().exact().no_spill().budget(budget)?.plan(&spec(Dim::from(exact + 1)));
    println!("one more does not fit: {}", over.is_err());
    Ok(())
}
