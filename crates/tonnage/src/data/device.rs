//! Elements that are on a device before they are asked for.

use std::collections::VecDeque;

use tonnage_core::{Device, Result};
use tonnage_runtime::{ArrivingArray, Context, Ledger, StagedArray, StagingBlocks};

use super::pick::boxed;
use super::pipeline::{Elements, Pipeline};
use super::threads::ahead;
use crate::strings::Value;
use crate::tensor::Tensor;
use crate::tree::Tree;

/// An element with those of its tensors that are to be copied, by their number.
struct Staged<T> {
    element: T,
    copies: Vec<(usize, StagedArray)>,
}

/// An element with those of its tensors that are being copied.
struct Arriving<T> {
    element: T,
    copies: VecDeque<(usize, ArrivingArray)>,
}

/// What the step is called.
const STEP: &str = "to_device";

impl<T: Tree + Send + 'static> Pipeline<T> {
    /// Brings elements to a device, up to `n` of them before they are asked for. A thread of its own makes them and puts them into host memory
    /// that the device copies from at full speed; the copy runs beside what the device does for the elements before.
    ///
    /// ```
    /// use tonnage::data::Pipeline;
    /// let batches = Pipeline::range(0, Some(6), 1).batch(3).to_device("sim:0", 1)?;
    /// for batch in batches.iter() {
    ///     let batch = batch?;
    ///     assert_eq!(batch.device().to_string(), "sim:0");
    ///     println!("{}", batch.sum_all()?);
    /// }
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// # Errors
    /// For a device that is not there.
    pub fn to_device(self, device: &str, n: usize) -> Result<Pipeline<T>> {
        let device: Device = device.parse()?;
        let (ledger, n) = (Context::current().ledger(device)?.clone(), n.max(1));
        Ok(Pipeline::of(self.count(), move |pass| {
            // As many wait in host memory, and one is in the hands of whoever asked.
            let elements = pass.noted(STEP, 2 * n + 1, self.elements(pass));
            if pass.is_looking() || ledger.is_host() {
                return elements;
            }
            let (to, mut blocks) = (ledger.clone(), StagingBlocks::default());
            let staged = boxed(elements.map(move |element| Staged::of(element?, &to, &mut blocks)));
            copied(ahead(staged, n), ledger.clone(), n)
        }))
    }
}

/// Those that are handed out have arrived, and the copies of the next `n` were begun before.
fn copied<T: Tree + Send + 'static>(
    mut staged: Elements<Staged<T>>,
    ledger: Ledger,
    n: usize,
) -> Elements<T> {
    let mut coming: VecDeque<Result<Arriving<T>>> = VecDeque::new();
    let mut is_ended = false;
    boxed(std::iter::from_fn(move || {
        while !is_ended && coming.len() <= n {
            match staged.next() {
                Some(element) => coming.push_back(element.and_then(|e| e.begin(&ledger))),
                None => is_ended = true,
            }
        }
        Some(coming.pop_front()?.and_then(Arriving::arrived))
    }))
}

impl<T: Tree> Staged<T> {
    fn of(element: T, to: &Ledger, blocks: &mut StagingBlocks) -> Result<Staged<T>> {
        let (mut copies, mut number) = (Vec::new(), 0);
        let element = element.map_values(&mut |value| {
            // Strings stay in host memory.
            let Value::Numbers(tensor) = value else { return Ok(value) };
            let array = tensor.array(STEP)?;
            // Descriptions lie nowhere, and what is on a device already is moved as it is used.
            if array.device() == Some(Device::CPU) && array.layout().count() > 0 {
                copies.push((number, StagedArray::of(array, to, blocks, STEP)?));
            }
            number += 1;
            Ok(Value::Numbers(tensor))
        })?;
        Ok(Staged { element, copies })
    }

    fn begin(self, ledger: &Ledger) -> Result<Arriving<T>> {
        let begun = self
            .copies
            .into_iter()
            .map(|(number, staged)| staged.begin(ledger, STEP).map(|arriving| (number, arriving)));
        Ok(Arriving { copies: begun.collect::<Result<_>>()?, element: self.element })
    }
}

impl<T: Tree> Arriving<T> {
    fn arrived(mut self) -> Result<T> {
        let mut number = 0;
        self.element.map_values(&mut |value| {
            let Value::Numbers(tensor) = value else { return Ok(value) };
            let is_next = self.copies.front().is_some_and(|(of, _)| *of == number);
            number += 1;
            Ok(Value::Numbers(match is_next.then(|| self.copies.pop_front()).flatten() {
                Some((_, copy)) => copy.arrived()?.map_or(tensor, Tensor::from_array),
                None => tensor,
            }))
        })
    }
}
