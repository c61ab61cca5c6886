//! What a ledger says was obtained is what the device's driver gave, whatever lives and dies. Alone in its process: a driver's figures are
//! of all that runs on the device.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

#[path = "common/tried.rs"]
mod tried;

use tonnage::{
    Bytes, Context, DType, Elementwise, Result, Tensor, function, memory, random_normal,
};
use tried::TRIED;

/// What is obtained, and what the driver has given away besides.
fn obtained() -> (Bytes, Bytes) {
    let info = memory::info(&TRIED.to_string()).unwrap();
    assert_eq!(info.reserved, info.in_use + info.cached, "{info}");
    (info.reserved, info.overhead)
}

fn drawn(sizes: &[usize]) -> Tensor {
    let numbers = random_normal(sizes, DType::F32).unwrap().to_vec::<f32>().unwrap();
    let sizes: Vec<i64> = sizes.iter().map(|size| *size as i64).collect();
    let flat = tonnage::tensor(numbers).unwrap().reshape(&sizes[..]).unwrap();
    flat.to(&TRIED.to_string()).unwrap()
}

#[test]
fn what_the_driver_gave_is_what_was_obtained() {
    every_byte_is_counted();
    nothing_grows_from_the_second_call_to_the_thousandth();
}

fn every_byte_is_counted() {
    let _context = Context::new().enter();
    let step = function(|x: Tensor| -> Result<Tensor> {
        let wide = x.matmul(&x)?.tanh()?;
        (wide.softmax(-1)? * 2.0)?.sum(0)
    });
    let x = drawn(&[640, 640]);
    // Kernels are compiled, libraries are loaded, and the sizes that come again are known.
    for _ in 0..3 {
        step.call(x.clone()).unwrap();
        let _ = (drawn(&[3]) + drawn(&[3])).unwrap();
    }
    let (_, overhead) = obtained();
    let mut held: Vec<Tensor> = Vec::new();
    let mut least = Bytes::new(u64::MAX);
    let mut most = Bytes::ZERO;
    for round in 0..60usize {
        // Small ones that share a page, some just below and above one, and large ones.
        let sizes = [5, 1000, 30_000, 200_000, 262_143, 262_144, 300_000, 2_000_000];
        held.push(drawn(&[sizes[round % sizes.len()]]));
        if round % 3 == 2 {
            held.swap_remove(round * 7 % held.len());
        }
        held.push(step.call(x.clone()).unwrap());
        let (reserved, now) = obtained();
        assert_eq!(now, overhead, "in round {round}, with {reserved} obtained");
        (least, most) = (least.min(reserved), most.max(reserved));
    }
    assert!(most > least + Bytes::mib(32), "{least} to {most}");
    drop((held, x, step));
    memory::empty_cache(&TRIED.to_string()).unwrap();
    assert_eq!(obtained(), (Bytes::ZERO, overhead));
}

fn nothing_grows_from_the_second_call_to_the_thousandth() {
    let _context = Context::new().enter();
    let step = function(|x: Tensor| (x.sin()? * 2.0)?.sum(0));
    // Of many launches: a device may keep them, from the second call on.
    let long = function(|x: Tensor| -> Result<Tensor> {
        (0..20).try_fold(x, |x, _| x.cumsum(0)?.softmax(-1))
    });
    let x = drawn(&[64, 16]);
    let call = || {
        let made = step.call(x.clone()).unwrap();
        let _ = (&made + 1.0).unwrap();
        let _ = long.call(x.clone()).unwrap();
    };
    (0..2).for_each(|_| call());
    let after_some = obtained();
    (0..1000).for_each(|_| call());
    assert_eq!(obtained(), after_some);
}
