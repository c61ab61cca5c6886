//! Indices of any integer dtype and layout, read one at a time.

use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::kernel::In;
use tonnage_core::{DType, Element};

use crate::strided::Positions;

/// An integer tensor that points into an axis.
pub struct Indices<'a> {
    input: &'a In<'a>,
    positions: Positions<'a>,
    count: usize,
}

impl<'a> Indices<'a> {
    /// Checked against an axis of that length.
    pub fn checked(op: &'static str, input: &'a In<'a>, size: usize) -> Result<Indices<'a>> {
        let indices = Indices::unchecked(input);
        for position in 0..indices.count {
            let index = indices.read(position);
            if !usize::try_from(index).is_ok_and(|i| i < size) {
                return Err(ErrorKind::IndexOutOfRange { op, index, position, size }.into());
            }
        }
        Ok(indices)
    }

    /// Numbers that point at nothing.
    pub fn unchecked(input: &'a In<'a>) -> Indices<'a> {
        let (positions, count) = (Positions::of(&input.layout), input.layout.count());
        Indices { input, positions, count }
    }

    /// The one at that position in logical order, below 0 or not.
    pub fn signed(&self, position: usize) -> i64 {
        self.read(position)
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The one at that position in logical order.
    pub fn get(&self, position: usize) -> usize {
        self.read(position) as usize
    }

    fn read(&self, position: usize) -> i64 {
        fn at<T: Element>(input: &In, at: usize) -> T {
            input.slice::<T>()[at]
        }
        let (input, place) = (self.input, self.positions.at(position));
        match input.dtype {
            DType::I64 => at::<i64>(input, place),
            DType::I32 => at::<i32>(input, place).into(),
            DType::I16 => at::<i16>(input, place).into(),
            DType::I8 => at::<i8>(input, place).into(),
            // No axis is that long, so what does not fit is out of range all the same.
            DType::U64 => i64::try_from(at::<u64>(input, place)).unwrap_or(i64::MAX),
            DType::U32 => at::<u32>(input, place).into(),
            DType::U16 => at::<u16>(input, place).into(),
            DType::U8 => at::<u8>(input, place).into(),
            // The type rules let no other dtype through.
            DType::F64 | DType::F32 | DType::F16 | DType::BF16 | DType::Bool => i64::MIN,
        }
    }
}
