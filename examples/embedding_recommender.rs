//! A recommender with a large table: gradients are rows up to the optimizer, so a step costs what its batch touches, not what the table
//! has.
//!
//! `cargo run --release -p tonnage-examples embedding_recommender` prints
//!
//!     2 tables of 100000 rows; a step takes ... beside them
//!     loss 0.... at first, 0.00... after 60 steps
//!     rows that changed: 64 of 100000

use tonnage::optim::{Adagrad, Optimizer};
use tonnage::{
    DType, Elementwise, GradientTape, RandomKey, Result, Tensor, Variable, function, random_normal, set_seed,
};

const ROWS: usize = 100_000;
const WIDTH: usize = 8;

pub fn main() -> Result<()> {
    set_seed(1);
    let table = |name: &str| Variable::new(name, (random_normal([ROWS, WIDTH], DType::F32)? * 0.1)?);
    let (people, things) = (table("people")?, table("things")?);
    let optimizer = Optimizer::new(Adagrad::default(), 0.5);
    let step = function(|(person, thing, rating): (Tensor, Tensor, Tensor)| {
        let mut tape = GradientTape::new();
        let vectors = (people.read()?.gather(&person, 0)? * things.read()?.gather(&thing, 0)?)?;
        let loss = (vectors.sum(1)? - &rating)?.square()?.mean_all()?;
        let variables = [&people, &things];
        let gradients = tape.gradient(&loss, &variables)?;
        optimizer.apply(variables, &gradients)?;
        Ok(loss)
    });

    // Of 100,000 people 64 rated 64 things.
    let drawn = |key: u64| RandomKey::new(key).int(0, ROWS as i64, [64], DType::I64);
    let (person, thing) = (drawn(1)?, drawn(2)?);
    let rating = RandomKey::new(3).normal([64], DType::F32)?;
    let arguments = (person.clone(), thing, rating);

    let before = people.read()?.sum(1)?;
    let mut losses = Vec::new();
    for _ in 0..60 {
        losses.push(step.call(arguments.clone())?.scalar::<f32>()?);
    }
    let tables = 2 * 2 * (ROWS * WIDTH * 4) as u64; // two tables, and what Adagrad remembers of each
    let peak = step.plan(&arguments)?.peak();
    println!("2 tables of {ROWS} rows; a step takes {} beside them", peak.saturating_sub(tonnage::Bytes::new(tables)));
    println!("loss {:.3} at first, {:.3} after {} steps", losses[0], losses[59], losses.len());
    let changed = people.read()?.sum(1)?.not_equal(&before)?.cast(DType::I64)?.sum_all()?;
    println!("rows that changed: {} of {ROWS}", changed.scalar::<i64>()?);
    Ok(())
}
