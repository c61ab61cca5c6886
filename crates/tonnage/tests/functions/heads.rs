//! Products of the heads of attention: matrices that no single stride walks, each small, all of them worth several threads.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{
    DType, Elementwise, Part, Result, Tensor, Tree, function, random_normal, stack, tensor,
};

use crate::common::dice::{Dice, Seed};
use crate::common::{call_checked, own_context};

/// Numbers in memory.
fn drawn(sizes: &[usize]) -> Result<Tensor> {
    let values = random_normal(sizes, DType::F32)?.to_vec::<f32>()?;
    tensor(values)?.reshape(sizes)
}

/// `[batch, length, heads, depth]` as a matrix for each head.
fn by_head(x: &Tensor) -> Result<Tensor> {
    x.transpose(&[0, 2, 1, 3])
}

/// Head by head, as products of two matrices each.
fn one_by_one(
    x: &Tensor,
    y: &Tensor,
    product: fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let sizes = x.shape().sizes().unwrap();
    let mut made = Vec::new();
    for batch in 0..sizes[0] as i64 {
        for head in 0..sizes[1] as i64 {
            let one = [Part::from(batch..batch + 1), Part::from(head..head + 1)];
            let of = |x: &Tensor| x.slice(&one)?.squeeze(0)?.squeeze(0);
            made.push(product(&of(x)?, &of(y)?)?);
        }
    }
    let all = stack(&made.iter().collect::<Vec<_>>(), 0)?;
    let each = all.shape().sizes().unwrap();
    all.reshape([sizes[0], sizes[1], each[1], each[2]])
}

#[test]
fn heads_have_the_bits_that_each_has_alone_in_the_planned_bytes() {
    let _context = own_context();
    let scores = |(q, k, mask): (Tensor, Tensor, Tensor)| {
        by_head(&q)?.matmul(&k.transpose(&[0, 2, 3, 1])?)? * 0.125 + mask
    };
    let planned = function(scores);
    let mut large = 0;
    for seed in 0..24 {
        let (_seed, mut dice) = (Seed(seed), Dice(seed));
        let (batch, heads) = (1 + dice.below(5), 1 + dice.below(5));
        let (length, depth) = (1 + dice.below(130), 1 + dice.below(40));
        large += usize::from(batch * heads * length * length * depth >= 1_000_000);
        let sizes = [batch, length, heads, depth];
        let (q, k) = (drawn(&sizes).unwrap(), drawn(&sizes).unwrap());
        let mask = drawn(&[batch, 1, 1, length]).unwrap();
        let (x, y) = (by_head(&q).unwrap(), k.transpose(&[0, 2, 3, 1]).unwrap());
        let alone = one_by_one(&x, &y, |x, y| x.matmul(y)).unwrap();
        let alone = (alone * 0.125 + mask.share()).unwrap().to_vec::<f32>().unwrap();
        let args = (q, k, mask);
        let eager = scores((args.0.share(), args.1.share(), args.2.share())).unwrap();
        let got = call_checked(&planned, &args).to_vec::<f32>().unwrap();
        for made in [eager.to_vec::<f32>().unwrap(), got] {
            assert!(made.iter().zip(&alone).all(|(a, b)| a.to_bits() == b.to_bits()), "{sizes:?}");
            assert_eq!(made.len(), alone.len());
        }
    }
    assert!(large > 5, "{large} that threads share");
}

#[test]
fn heads_of_bytes_are_exact() {
    let _context = own_context();
    for seed in 0..24 {
        let (_seed, mut dice) = (Seed(seed), Dice(seed));
        let [batch, heads] = [1 + dice.below(4), 1 + dice.below(5)];
        let [rows, cols, depth] = [1 + dice.below(70), 1 + dice.below(140), 1 + dice.below(90)];
        let signed = [DType::U8, DType::I8];
        let (of_left, of_right) = (*dice.pick(&signed), *dice.pick(&signed));
        let mut bytes = |sizes: [usize; 4]| {
            let count = sizes.iter().product::<usize>();
            let values: Vec<i64> = (0..count).map(|_| dice.below(256) as i64).collect();
            tensor(values).unwrap().reshape(sizes).unwrap()
        };
        let x = by_head(&bytes([batch, rows, heads, depth]).cast(of_left).unwrap()).unwrap();
        // Rows in one piece, or columns.
        let y = match seed % 2 {
            0 => by_head(&bytes([batch, depth, heads, cols]).cast(of_right).unwrap()).unwrap(),
            _ => bytes([batch, cols, heads, depth])
                .cast(of_right)
                .unwrap()
                .transpose(&[0, 2, 3, 1])
                .unwrap(),
        };
        let wide = |x: &Tensor| x.cast(DType::I32).unwrap();
        let right = wide(&x).matmul(&wide(&y)).unwrap().to_vec::<i32>().unwrap();
        let got = x.matmul_integer(&y).unwrap().to_vec::<i32>().unwrap();
        assert_eq!(
            got, right,
            "{of_left} by {of_right}, {batch} x {heads} of {rows} x {depth} x {cols}"
        );
    }
}
