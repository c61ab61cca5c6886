//! Rows that lie apart: on paper, for a card, logits of an odd vocabulary take the room between their rows and nothing more.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::sync::Arc;

use tonnage::{
    Bytes, DType, Elementwise, Function, GradientTape, Plan, Result, Tensor, device, full,
    function, ones,
};

use crate::common::own_context;

const ROWS: usize = 1024;
const WIDTH: usize = 64;

type Given = (Tensor, Tensor, Tensor);

/// A head, its loss, and the gradients of what goes in and of its table; `with` makes of the logits what losses are computed from.
fn head(
    with: fn(&Tensor) -> Result<Tensor>,
) -> Function<Given, Vec<Tensor>, impl Fn(Given) -> Result<Vec<Tensor>>> {
    function(move |(x, table, labels): Given| -> Result<Vec<Tensor>> {
        let mut tape = GradientTape::new();
        tape.watch([&x, &table]);
        let logits = with(&x.matmul(&table.transpose(&[1, 0])?)?)?;
        let loss = logits.sparse_cross_entropy(&labels)?.sum_all()?;
        let [dx, dtable] = tape.gradient(&loss, [&x, &table])?;
        Ok(vec![loss, dx.tensor()?, dtable.tensor()?])
    })
}

fn planned(words: usize, dtype: DType, with: fn(&Tensor) -> Result<Tensor>) -> Arc<Plan> {
    let given = |sizes: [usize; 2]| full(0.5, dtype, sizes).unwrap();
    let labels = ones([ROWS]).unwrap().cast(DType::I64).unwrap();
    let given = (given([ROWS, WIDTH]), given([words, WIDTH]), labels);
    device::plan_for("h200").unwrap();
    let plan = head(with).plan(&given).unwrap();
    device::plan_for(None).unwrap();
    plan
}

fn same(logits: &Tensor) -> Result<Tensor> {
    Ok(logits.clone())
}

/// Buffers that are as large as logits.
fn large(plan: &Plan) -> Vec<Bytes> {
    let all = plan.buffers.iter().map(|buffer| buffer.elements);
    all.filter(|bytes| bytes.get() >= (ROWS * 1000 * 2) as u64).collect()
}

#[test]
fn logits_and_their_gradient_take_one_buffer_with_room_between_its_rows() {
    let _context = own_context();
    let odd = planned(1001, DType::BF16, same);
    let apart = Bytes::of(((ROWS - 1) * 1008 + 1001) * 2);
    assert_eq!(large(&odd), [apart], "{odd}");
    // As much as where the words are as many as lie between two rows, but for the end of the last, and for what is as long as the table.
    let whole = planned(1008, DType::BF16, same);
    assert_eq!(large(&whole), [Bytes::of(ROWS * 1008 * 2)]);
    let arena = |plan: &Plan| plan.bound;
    let table = |words: usize| Bytes::of(words * WIDTH * 2).rounded();
    let more = apart.rounded() + table(1001);
    assert_eq!(arena(&whole) - arena(&odd), Bytes::of(ROWS * 1008 * 2) + table(1008) - more);
}

#[test]
fn rows_follow_each_other_closely_where_somebody_could_take_their_bytes_over_or_gets_them() {
    let _context = own_context();
    let closely = Bytes::of(ROWS * 1001 * 2);
    let scaled = planned(1001, DType::BF16, |logits| logits.tanh());
    assert!(!large(&scaled).is_empty() && large(&scaled).iter().all(|b| *b == closely), "{scaled}");
    let wide = planned(1001, DType::F32, same);
    assert_eq!(large(&wide), [Bytes::of(ROWS * 1001 * 4)], "{wide}");
}
