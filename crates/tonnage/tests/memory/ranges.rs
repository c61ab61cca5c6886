//! Reductions under every budget: what a piece of the batch gives leaves no range that the whole stays in.

use tonnage::{Bytes, DType, Elementwise, ErrorKind, Result, Tensor, function, ones, tensor};

use crate::common::own_context;

type Case = (&'static str, DType, [f32; 2], fn(&Tensor) -> Result<Tensor>);

const ROWS: usize = 128;

/// The first half of the rows has one number, the second the other: halves overflow or vanish, all of them do not.
const CASES: [Case; 8] = [
    ("prod of f16", DType::F16, [8.0, 0.125], |x| x.prod(0)),
    ("prod of bf16", DType::BF16, [1024.0, 1.0 / 1024.0], |x| x.prod(0)),
    ("prod of f32", DType::F32, [1024.0, 1.0 / 1024.0], |x| x.prod(0)),
    ("mean of f16", DType::F16, [5000.0, 5000.0], |x| x.mean(0)),
    ("mean of bf16", DType::BF16, [5000.0, 5000.0], |x| x.mean(0)),
    ("mean of f32", DType::F32, [5000.0, -5000.0], |x| x.mean(0)),
    ("sum of f16", DType::F16, [2000.0, -2000.0], |x| x.sum(0)),
    ("product of f16", DType::F16, [2000.0, -2000.0], |x| {
        x.transpose(&[1, 0])?.matmul(&ones([ROWS, 1])?.cast(DType::F16)?)
    }),
];

#[test]
fn pieces_of_a_reduction_stay_in_the_range_of_the_whole() {
    let _context = own_context();
    for (name, dtype, [first, second], reduce) in CASES {
        let numbers: Vec<f32> =
            (0..ROWS * 4).map(|i| if i < ROWS * 2 { first } else { second }).collect();
        let x = tensor(numbers).unwrap().reshape([ROWS as i64, 4]).unwrap().cast(dtype).unwrap();
        // Beside something large that pieces are worth it for.
        let body = move |x: Tensor| -> Result<(Tensor, Tensor)> {
            let wide = (&x).cast(DType::F32)?.matmul(&ones([4, 256])?)?;
            Ok((reduce(&x)?.cast(DType::F64)?, wide.sin()?.matmul(&ones([256, 1])?)?))
        };
        let free = function(body);
        let wanted = free.call(x.clone()).unwrap().0.to_vec::<f64>().unwrap();
        assert!(wanted.iter().all(|number| number.is_finite()), "{name}: {wanted:?}");
        let peak = free.plan(&x).unwrap().peak().get();
        for budget in (peak / 8..peak).step_by(1024).chain([peak]) {
            match function(body).budget(Bytes::new(budget)).unwrap().call(x.clone()) {
                Ok((made, _)) => {
                    let made = made.to_vec::<f64>().unwrap();
                    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 0.02 * b.abs().max(1.0);
                    let all = made.iter().zip(&wanted).all(near);
                    assert!(all, "{name} within {budget} of {peak}: {made:?} for {wanted:?}");
                }
                Err(error) => {
                    assert!(
                        matches!(error.kind(), ErrorKind::OverBudget { .. }),
                        "{name}: {error}"
                    );
                }
            }
        }
    }
}
