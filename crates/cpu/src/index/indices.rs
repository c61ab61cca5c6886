//! Indices of any integer dtype and layout, read one at a time.

use tonnage_core::DType;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::lent::In;

use crate::strided::Positions;

/// An integer tensor that points into an axis.
pub struct Indices<'a> {
    numbers: IndexSlice<'a>,
    positions: Positions<'a>,
    count: usize,
}

impl<'a> Indices<'a> {
    /// Checked against an axis of that length.
    pub fn checked(op: &'static str, input: &'a In<'a>, size: usize) -> Result<Indices<'a>> {
        let indices = Indices::unchecked(input);
        match indices.outside(size) {
            None => Ok(indices),
            Some(position) => {
                let index = indices.read(position);
                Err(ErrorKind::IndexOutOfRange { op, index, position, size }.into())
            }
        }
    }

    /// Numbers that point at nothing.
    pub fn unchecked(input: &'a In<'a>) -> Indices<'a> {
        let (positions, count) = (Positions::of(&input.layout), input.layout.count());
        Indices { numbers: IndexSlice::of(input), positions, count }
    }

    /// Whether each is a position of an axis of that length.
    pub fn all_below(&self, size: usize) -> bool {
        self.outside(size).is_none()
    }

    /// The first that is no position of an axis of that length.
    fn outside(&self, size: usize) -> Option<usize> {
        // What is below 0 is a large number without its sign.
        let run = self.positions.run(self.count);
        match (self.numbers, run) {
            (IndexSlice::I64(all), Some(run)) => {
                all[run].iter().position(|i| *i as u64 >= size as u64)
            }
            (IndexSlice::I32(all), Some(run)) => {
                all[run].iter().position(|i| i64::from(*i) as u64 >= size as u64)
            }
            _ => {
                (0..self.count).find(|at| !usize::try_from(self.read(*at)).is_ok_and(|i| i < size))
            }
        }
    }

    /// The one at that position in logical order, below 0 or not.
    pub fn signed(&self, position: usize) -> i64 {
        self.read(position)
    }

    /// Shows `f` a number of them from one on, in logical order: how many came before, and the index.
    #[inline]
    pub fn each(&self, first: usize, count: usize, mut f: impl FnMut(usize, usize)) {
        let run = self.positions.run(self.count).map(|run| run.start + first..);
        match (self.numbers, run) {
            (IndexSlice::I64(all), Some(run)) => {
                all[run][..count].iter().enumerate().for_each(|(i, index)| f(i, *index as usize));
            }
            (IndexSlice::I32(all), Some(run)) => {
                all[run][..count].iter().enumerate().for_each(|(i, index)| f(i, *index as usize));
            }
            _ => (0..count).for_each(|i| f(i, self.get(first + i))),
        }
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The one at that position in logical order.
    pub fn get(&self, position: usize) -> usize {
        self.read(position) as usize
    }

    #[inline]
    fn read(&self, position: usize) -> i64 {
        let place = self.positions.at(position);
        match self.numbers {
            IndexSlice::I64(all) => all[place],
            IndexSlice::I32(all) => all[place].into(),
            IndexSlice::I16(all) => all[place].into(),
            IndexSlice::I8(all) => all[place].into(),
            // No axis is that long, so what does not fit is out of range all the same.
            IndexSlice::U64(all) => i64::try_from(all[place]).unwrap_or(i64::MAX),
            IndexSlice::U32(all) => all[place].into(),
            IndexSlice::U16(all) => all[place].into(),
            IndexSlice::U8(all) => all[place].into(),
            IndexSlice::None => i64::MIN,
        }
    }
}

/// The memory that they lie in, by dtype: looked up once rather than for each.
#[derive(Clone, Copy)]
enum IndexSlice<'a> {
    I64(&'a [i64]),
    I32(&'a [i32]),
    I16(&'a [i16]),
    I8(&'a [i8]),
    U64(&'a [u64]),
    U32(&'a [u32]),
    U16(&'a [u16]),
    U8(&'a [u8]),
    /// The type rules let no other dtype through.
    None,
}

impl<'a> IndexSlice<'a> {
    fn of(input: &'a In<'a>) -> IndexSlice<'a> {
        match input.dtype {
            DType::I64 => IndexSlice::I64(input.slice()),
            DType::I32 => IndexSlice::I32(input.slice()),
            DType::I16 => IndexSlice::I16(input.slice()),
            DType::I8 => IndexSlice::I8(input.slice()),
            DType::U64 => IndexSlice::U64(input.slice()),
            DType::U32 => IndexSlice::U32(input.slice()),
            DType::U16 => IndexSlice::U16(input.slice()),
            DType::U8 => IndexSlice::U8(input.slice()),
            DType::F64 | DType::F32 | DType::F16 | DType::BF16 | DType::Bool => IndexSlice::None,
        }
    }
}
