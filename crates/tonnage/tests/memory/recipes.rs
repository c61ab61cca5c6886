//! Recipes of any length and number, in eager mode and in functions, give what their bytes would.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{
    DType, Elementwise, Result, Tensor, Variable, constant, function, linspace, ones, range, tensor,
};

use crate::common::{call_checked, close, own_context};

/// The sum of so many ranges from 0 on, as one recipe or as several.
fn ranges(count: usize, len: i64) -> Result<Tensor> {
    let mut sum = range(0, len, 1)?.cast(DType::F64)?;
    for _ in 1..count {
        sum = (sum + range(0, len, 1)?.cast(DType::F64)?)?;
    }
    Ok(sum)
}

fn expected(times: f64) -> Vec<f64> {
    (0..10).map(|i| times * f64::from(i)).collect()
}

#[test]
fn a_sum_of_more_recipes_than_a_program_holds_is_computed() {
    let _context = own_context();
    for count in [2, 20, 33, 70, 200] {
        close(&ranges(count, 10).unwrap(), &expected(count as f64), 0.0);
        let total = ranges(count, 10).unwrap().sum_all().unwrap();
        close(&total, &[45.0 * count as f64], 0.0);
        let f = function(move |x: Tensor| x + ranges(count, 10)?);
        let x = tensor([0.5f64; 10]).unwrap();
        let moved: Vec<f64> = expected(count as f64).iter().map(|y| y + 0.5).collect();
        close(&f.call(x).unwrap(), &moved, 0.0);
    }
}

#[test]
fn several_long_recipes_meet_in_one_op() {
    let _context = own_context();
    // Each fits a program; all three together do not.
    let parts =
        || -> Result<[Tensor; 3]> { Ok([ranges(14, 10)?, ranges(15, 10)?, ranges(16, 10)?]) };
    let [a, b, c] = parts().unwrap();
    assert!([&a, &b, &c].iter().all(|x| x.is_recipe()));
    let sum = (&a + &b).unwrap();
    close(&(sum + c).unwrap(), &expected(45.0), 0.0);
    let f = function(move |x: Tensor| {
        let [a, b, c] = parts()?;
        let large = a.less(&x)?.where_(&b, &c)?;
        (large * 2.0)? + x
    });
    let x = tensor([1e9f64; 10]).unwrap();
    let y: Vec<f64> = expected(30.0).iter().map(|y| y + 1e9).collect();
    close(&call_checked(&f, &x), &y, 0.0);
    // The same as an update, and in place.
    let v = Variable::new("v", tensor([0.0f64; 10]).unwrap()).unwrap();
    v.assign_add(&(&a + &b).unwrap()).unwrap();
    v.assign_add(&ranges(40, 10).unwrap()).unwrap();
    close(&v.read().unwrap(), &expected(69.0), 0.0);
}

/// A recipe that an op over data-decided sizes reads a tile at a time, and a later one needs whole.
#[test]
fn a_recipe_that_is_written_out_later_is_still_one_before() {
    let _context = own_context();
    let f = function(|(x, mask): (Tensor, Tensor)| {
        let r = (range(1, 4, 1)?.cast(DType::F64)?.reshape([1, 3])? * 2.0)?;
        let some = (x.boolean_mask(&mask)? + &r)?.sum_all()?;
        let whole = r.matmul(&ones([3, 1])?.cast(DType::F64)?)?.sum_all()?;
        some + whole
    });
    let x = tensor([[1.0f64, 2.0, 3.0], [4.0, 5.0, 6.0]]).unwrap();
    let mask = tensor([false, true]).unwrap();
    let y = call_checked(&f, &(x, mask));
    close(&y, &[15.0 + 12.0 + 12.0], 0.0);
}

#[test]
fn a_recipe_that_is_computed_in_another_dtype_is_read_in_its_own() {
    let _context = own_context();
    for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
        let made = || linspace(-2.0, 1.0, 7, dtype);
        let doubled: Vec<f64> = (0..7).map(|i| f64::from(i) - 4.0).collect();
        close(&(made().unwrap() * 2.0).unwrap(), &doubled, 0.0);
        let f = function(|x: Tensor| x * 2.0);
        close(&f.call(made().unwrap()).unwrap(), &doubled, 0.0);
    }
}

#[test]
fn a_reduction_of_one_value_has_the_bits_of_the_same_value_in_memory() {
    let _context = own_context();
    // Among them one whose partial sums are ties, and some that grow out of their numbers.
    let tie = (1u64 << 52) as f64 + 1.0;
    let values = [0.1, -1.0 / 3.0, tie, -tie, 1e-310, 3e305, f64::INFINITY, f64::NAN, 0.0];
    for count in [511, 512, 3000, 700_001] {
        for value in values {
            let (fill, held) =
                (constant(value, [count]).unwrap(), tensor(vec![value; count]).unwrap());
            let (fill, held) = (&fill, &held);
            let reductions = |of: &Tensor| [of.sum_all(), of.mean_all(), of.max([0]), of.prod([0])];
            for (of_fill, of_held) in reductions(fill).into_iter().zip(reductions(held)) {
                let bits = |of: Result<Tensor>| of.unwrap().scalar::<f64>().unwrap().to_bits();
                assert_eq!(bits(of_fill), bits(of_held), "{value} {count} times");
            }
        }
        let (fill, held) = (constant(-7i64, [count]), tensor(vec![-7i64; count]));
        let sum = |of: Result<Tensor>| of.unwrap().sum_all().unwrap().scalar::<i64>().unwrap();
        assert_eq!(sum(fill), sum(held));
    }
}
