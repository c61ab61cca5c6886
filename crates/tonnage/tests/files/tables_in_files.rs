//! Tables that are stored in files and written by rows: an embedding that is larger than memory.

use tonnage::optim::{Adagrad, Optimizer, Sgd};
use tonnage::{
    DType, Elementwise, Function, GradientTape, RandomKey, Result, Tensor, Variable, function,
    tensor, variables_in_files, zeros,
};

const ROWS: usize = 24_000;
const WIDE: usize = 48;
const BYTES: u64 = (ROWS * WIDE * 4) as u64;

fn table(in_files: bool) -> Result<Variable> {
    let make =
        || Variable::new("table", (RandomKey::new(1).normal([ROWS, WIDE], DType::F32)? * 0.1)?);
    if in_files { variables_in_files(make) } else { make() }
}

/// Indices that repeat, the first and the last row among them.
fn indices(iteration: u64) -> Result<Tensor> {
    let mut all: Vec<i64> =
        (0..320).map(|i| (i * 7919 + iteration as i64 * 104_729) % ROWS as i64).collect();
    all[..6].copy_from_slice(&[0, ROWS as i64 - 1, 5, 0, 5, 5]);
    tensor(all)?.reshape([16, 20])
}

fn training<'a>(
    table: &'a Variable,
    optimizer: &'a Optimizer,
) -> Function<Tensor, Tensor, impl Fn(Tensor) -> Result<Tensor> + 'a> {
    function(move |indices: Tensor| {
        let mut tape = GradientTape::new();
        let rows = table.read()?.gather(&indices, 0)?;
        let loss = (rows.mean(1)? - 1.0)?.square()?.mean_all()?;
        let variables = std::slice::from_ref(table);
        optimizer.apply(variables, &tape.gradient(&loss, variables)?)?;
        Ok(loss)
    })
}

#[test]
fn training_by_rows_gives_the_bits_that_it_gives_in_memory() -> Result<()> {
    let optimizers: [fn() -> Optimizer; 4] = [
        || Optimizer::sgd(20.0),
        || Optimizer::new(Sgd { momentum: 0.9, ..Sgd::default() }, 5.0),
        || Optimizer::new(Adagrad::default(), 0.5),
        || Optimizer::adam(0.1),
    ];
    for (i, make) in optimizers.into_iter().enumerate() {
        let mut found = Vec::new();
        for in_files in [false, true] {
            let (table, optimizer) = (table(in_files)?, make());
            let step = training(&table, &optimizer);
            let losses: Vec<f32> = (0..4)
                .map(|iteration| step.call(indices(iteration / 2)?)?.scalar())
                .collect::<Result<_>>()?;
            found.push((losses, table.read()?.to_vec::<f32>()?));
        }
        assert!(found[0].0[1] < found[0].0[0], "{i}: {:?}", found[0].0);
        assert!(found[0] == found[1], "{i}");
    }
    Ok(())
}

#[test]
fn the_table_is_never_in_memory_and_the_plan_says_what_is() -> Result<()> {
    let (table, optimizer) = (table(true)?, Optimizer::new(Adagrad::default(), 0.5));
    optimizer.build(std::slice::from_ref(&table))?;
    let step = training(&table, &optimizer).budget("2MiB")?;
    for iteration in 0..3 {
        let indices = indices(iteration)?;
        let plan = step.plan(&indices)?;
        assert!(plan.peak().get() < 2 << 20, "{}", plan.peak());
        // The table and what Adagrad remembers of it, whole, into places of their own.
        assert_eq!(plan.writes().get(), 2 * BYTES);
        assert!(plan.reads().get() >= 2 * BYTES);
        step.call(indices)?;
        assert_eq!(step.last_run().unwrap().measured.used, plan.peak(), "iteration {iteration}");
    }
    assert!(table.bytes().is_zero());
    Ok(())
}

#[test]
fn rows_of_every_dtype_are_put_at_once_and_in_functions() -> Result<()> {
    for dtype in [DType::F64, DType::BF16, DType::I32, DType::U8] {
        let value = (RandomKey::new(3).uniform([70_000, 9], DType::F32)? * 90.0)?.cast(dtype)?;
        let rows = (RandomKey::new(4).uniform([5, 9], DType::F32)? * 9.0)?.cast(dtype)?;
        let make = || Variable::new("v", value.clone());
        let (here, there) = (make()?, variables_in_files(make)?);
        assert!(there.is_in_files());
        let at = tensor([69_999i32, 0, 33, 33, 29_127])?;
        for v in [&here, &there] {
            v.assign_rows(&at, &rows)?;
            // Several updates, of which the first is read in between; and broadcast rows.
            let twice = function(|(at, rows): (Tensor, Tensor)| {
                v.assign_rows(&(&at / 3)?, &rows)?;
                let between = v.read()?.gather(&at, 0)?;
                v.assign_rows(
                    &(&at / 2)?,
                    &rows.gather(&tensor([2i32])?, 0)?.broadcast_to([5, 9])?,
                )?;
                Ok(between)
            });
            twice.call((at.clone(), rows.clone()))?;
        }
        let bytes = |v: &Variable| v.read()?.cast(DType::F64)?.to_vec::<f64>();
        assert!(bytes(&here)? == bytes(&there)?, "{dtype}");
    }
    Ok(())
}

#[test]
fn an_index_outside_leaves_the_table_as_it_was() -> Result<()> {
    let table = variables_in_files(|| Variable::new("table", zeros([ROWS, WIDE])?))?;
    table.assign_add(&tensor(1.0f32)?)?;
    let put = function(|(at, rows): (Tensor, Tensor)| table.assign_rows(&at, &rows));
    for wrong in [ROWS as i64, -1] {
        let error = put.call((tensor([3, wrong])?, zeros([2, WIDE])?)).unwrap_err().to_string();
        assert!(error.contains(&wrong.to_string()), "{error}");
        let error = table.assign_rows(&tensor([wrong])?, &zeros([1, WIDE])?).unwrap_err();
        assert!(error.to_string().contains(&wrong.to_string()), "{error}");
    }
    assert_eq!(table.read()?.sum_all()?.scalar::<f32>()?, (ROWS * WIDE) as f32);
    // None at all, and what was read before.
    let before = table.read()?;
    table.assign_rows(&zeros([0])?.cast(DType::I32)?, &zeros([0, WIDE])?)?;
    table.assign_rows(&tensor([3i64])?, &zeros([1, WIDE])?)?;
    assert_eq!(before.sum_all()?.scalar::<f32>()?, (ROWS * WIDE) as f32);
    assert_eq!(table.read()?.sum_all()?.scalar::<f32>()?, ((ROWS - 1) * WIDE) as f32);
    Ok(())
}
