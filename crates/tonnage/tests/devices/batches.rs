//! Batches that are copied to the device before they are asked for.

use std::time::{Duration, Instant};

use tonnage::data::{Count, Dataset, Pipeline};
use tonnage::device::Device;
use tonnage::{Bytes, Context, ErrorKind, Result, Tensor, memory, tensor};

use crate::common::chain::drawn;
use crate::tried::TRIED;

fn device() -> String {
    TRIED.to_string()
}

/// Pairs of rows and numbers, the same every time, in batches of which the last is short.
fn batches() -> Pipeline<(Tensor, Tensor)> {
    tonnage::set_seed(1);
    let rows = drawn([50, 7], 1.0);
    let numbers = tensor((0..50).collect::<Vec<i32>>()).unwrap();
    Pipeline::rows(&Dataset::of((rows, numbers)).unwrap()).batch(8)
}

fn values((x, n): &(Tensor, Tensor)) -> (Vec<f32>, Vec<i32>) {
    // An op of the device sees what came.
    ((x * 2.0).unwrap().to_vec().unwrap(), n.to_vec().unwrap())
}

#[test]
fn batches_are_on_the_device_before_they_are_asked_for_with_the_bits_of_the_host() {
    let _context = Context::new().enter();
    let here: Vec<_> = batches().iter().map(|batch| values(&batch.unwrap())).collect();
    for n in 1..5 {
        let ahead = batches().to_device(&device(), n).unwrap();
        assert_eq!(ahead.count(), Count::Known(7));
        let there: Vec<_> = ahead
            .iter()
            .map(|batch| {
                let batch = batch.unwrap();
                assert_eq!((batch.0.device(), batch.1.device()), (*TRIED, *TRIED));
                values(&batch)
            })
            .collect();
        assert_eq!(here, there, "{n} ahead");
    }
    let on_the_cpu = batches().to_device("cpu:0", 1).unwrap();
    assert!(on_the_cpu.iter().all(|batch| batch.unwrap().0.device() == Device::CPU));
    assert!(batches().to_device("abacus", 1).is_err());
}

#[test]
fn whoever_stops_in_the_middle_leaves_no_byte() {
    let _context = Context::new().enter();
    let in_use = |name: &str| memory::info(name).unwrap().in_use;
    let ahead = batches().to_device(&device(), 2).unwrap();
    let before = (in_use("cpu:0"), in_use(&device()));
    {
        let mut elements = ahead.iter();
        let first = elements.next().unwrap().unwrap();
        assert!(in_use(&device()) > before.1 && values(&first).0.len() == 56);
    }
    // Its thread may still be in the middle of an element, and copies that nobody waits for hold what they copy.
    let deadline = Instant::now() + Duration::from_secs(60);
    while (in_use("cpu:0"), in_use(&device())) != before && Instant::now() < deadline {
        let one = tensor([1.0f32]).unwrap().to(&device()).unwrap();
        assert_eq!(one.to_vec::<f32>().unwrap(), [1.0]);
    }
    assert_eq!((in_use("cpu:0"), in_use(&device())), before);
}

#[test]
fn a_batch_that_does_not_fit_is_an_error_and_those_after_it_come() {
    let _context = Context::new().enter();
    let large = Pipeline::from_elements(vec![drawn([4, 1], 1.0), drawn([1 << 10, 1 << 10], 1.0)]);
    let ahead = large.to_device(&device(), 1).unwrap();
    memory::set_limit(&device(), Some(Bytes::mib(3))).unwrap();
    let came: Vec<Result<Tensor>> = ahead.iter().collect();
    assert!(came[0].is_ok());
    let error = came[1].as_ref().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NeverFits { .. }), "{error}");
}
