//! One tile: loads, instructions, stores.

use bytemuck::{bytes_of, cast_slice_mut};
use tonnage_core::tile::{Form, Reg};

use super::ready::{Load, LoadSource, Ready, RegisterLocation, TileSlot};
use super::resolve::PrimitiveFn;
use super::source::repeat;
use tonnage_simd::cast::cast;
use tonnage_simd::{Level, level, prefetch};

/// What a load reads for a tile, brought beforehand as it lies in memory.
pub struct PrefetchedLoad<'a> {
    /// Its number among [`Ready::loads`].
    pub load: usize,
    /// Its elements.
    pub raw: &'a [u8],
}

impl Ready<'_> {
    /// Runs elements `start..start + len` of the domain. `outputs` hold just those elements, of the
    /// stores; where the program reduces they are empty, and the value stays in its place.
    pub fn eval(
        &self,
        start: usize,
        len: usize,
        outputs: &mut [&mut [u8]],
        slots: &mut [TileSlot],
    ) {
        self.eval_beside(start, len, outputs, slots, &[]);
    }

    /// The same where some loads are there already.
    pub fn eval_beside(
        &self,
        start: usize,
        len: usize,
        outputs: &mut [&mut [u8]],
        slots: &mut [TileSlot],
        beside: &[PrefetchedLoad],
    ) {
        let level = level();
        if self.ahead {
            self.ask_for(start + len, len);
        }
        for (number, load) in self.loads.iter().enumerate() {
            let there = beside.iter().find(|there| there.load == number);
            self.fetch(load, start, len, outputs, slots, there.map(|there| there.raw));
        }
        for step in &self.steps {
            let bytes = len * step.result.size();
            let (dest, rest) = match self.locations[step.reg as usize] {
                RegisterLocation::Output(k) => (None, k),
                RegisterLocation::Slot(slot) => (Some(slot), 0),
                _ => continue,
            };
            match dest {
                None => {
                    let out = std::mem::take(&mut outputs[rest]);
                    let split = OtherSlots { outputs, ..OtherSlots::all(slots) };
                    self.call(level, step, start, len, out, &split);
                    outputs[rest] = out;
                }
                Some(slot) => {
                    let (low, tail) = slots.split_at_mut(slot);
                    let Some((own, high)) = tail.split_first_mut() else { continue };
                    let split = OtherSlots { low, high, gap: slot, outputs };
                    let out = &mut own.bytes_mut()[..bytes];
                    self.call(level, step, start, len, out, &split);
                }
            }
        }
        for (k, (reg, form)) in self.program.stores.iter().enumerate() {
            if matches!(self.locations[*reg as usize], RegisterLocation::Output(_))
                || outputs.is_empty()
            {
                continue;
            }
            let out = &mut *outputs[k];
            let value = self.value(*reg, start, len, slots);
            store(level, self.program.register(*reg), value, *form, len, out);
        }
    }

    /// Asks for what the next tile reads in place.
    fn ask_for(&self, start: usize, len: usize) {
        for (reg, location) in self.locations[..self.program.loads.len()].iter().enumerate() {
            let RegisterLocation::Memory { bytes, first } = location else { continue };
            let size = self.program.register(reg as Reg).size();
            let at = ((first + start) * size).min(bytes.len());
            prefetch::to_read(&bytes[at..(at + len * size).min(bytes.len())]);
        }
    }

    /// A register's value for these elements: as many as there are, or one for all.
    pub fn value<'v>(
        &'v self,
        reg: Reg,
        start: usize,
        len: usize,
        slots: &'v [TileSlot],
    ) -> &'v [u8] {
        let split = OtherSlots::all(slots);
        self.operand(reg, start, len, &split)
    }

    fn operand<'v>(
        &'v self,
        reg: Reg,
        start: usize,
        len: usize,
        split: &OtherSlots<'v>,
    ) -> &'v [u8] {
        let size = self.program.register(reg).size();
        match &self.locations[reg as usize] {
            RegisterLocation::Scalar(bits) => &bytes_of(bits)[..size],
            RegisterLocation::Memory { bytes, first } => {
                let at = (first + start) * size;
                &bytes[at..at + len * size]
            }
            RegisterLocation::Slot(slot) => &split.slot(*slot).bytes()[..len * size],
            RegisterLocation::Before(output) => {
                split.outputs.get(*output).map_or(&[], |out| &out[..len * size])
            }
            RegisterLocation::Output(_) | RegisterLocation::Nowhere => &[],
        }
    }

    fn call(
        &self,
        level: Level,
        step: &super::ready::TileInstruction,
        start: usize,
        len: usize,
        out: &mut [u8],
        split: &OtherSlots,
    ) {
        let arg = |i: usize| self.operand(step.args[i], start, len, split);
        match step.function {
            PrimitiveFn::One(f) => f(level, out, arg(0)),
            PrimitiveFn::Two(f) => f(level, out, arg(0), arg(1)),
            PrimitiveFn::Three(f) => f(level, out, arg(0), arg(1), arg(2)),
            PrimitiveFn::Round(narrow, wide) => {
                // 16 bits an element: half a slot is enough for a tile of f32.
                let mut half = [0u64; 256];
                let half = &mut cast_slice_mut(&mut half)[..len * 2];
                narrow(level, half, arg(0));
                wide(level, out, half);
            }
        }
    }

    fn fetch(
        &self,
        load: &Load,
        start: usize,
        len: usize,
        outputs: &[&mut [u8]],
        slots: &mut [TileSlot],
        there: Option<&[u8]>,
    ) {
        let slot = &mut slots[load.slot];
        if let Some(period) = load.period
            && !slot.turns_to(start % period, len)
        {
            return;
        }
        let slot = &mut slot.bytes_mut()[..len * load.held.size()];
        if load.stored == load.held {
            return match there {
                Some(raw) => slot.copy_from_slice(raw),
                None => fetch_raw(&load.fetch, load, start, outputs, slot),
            };
        }
        // A 16-bit float: raw beside, then widened into the slot.
        if let Some(raw) = there {
            return cast(load.stored, load.held)(level(), slot, raw);
        }
        let mut raw = [0u64; 256];
        let raw = &mut cast_slice_mut(&mut raw)[..len * load.stored.size()];
        fetch_raw(&load.fetch, load, start, outputs, raw);
        cast(load.stored, load.held)(level(), slot, raw);
    }
}

fn fetch_raw(
    fetch: &LoadSource,
    load: &Load,
    start: usize,
    outputs: &[&mut [u8]],
    into: &mut [u8],
) {
    match fetch {
        LoadSource::Gather { from, reader, .. } => reader.gather(load.stored, from, start, into),
        LoadSource::Generate { generator, reader } => reader.generate(generator, start, into),
        LoadSource::Output(output) => into.copy_from_slice(&outputs[*output][..into.len()]),
        LoadSource::Bits(bits) => {
            for (i, x) in into.iter_mut().enumerate() {
                let at = start + i;
                *x = bits[at / 8] >> (at % 8) & 1;
            }
        }
    }
}

fn store(
    level: Level,
    held: tonnage_core::DType,
    value: &[u8],
    form: Form,
    len: usize,
    out: &mut [u8],
) {
    let one = value.len() == held.size() && len != 1;
    match form {
        Form::Elements(dtype) if one => {
            cast(held, dtype)(level, &mut out[..dtype.size()], value);
            repeat(dtype.size(), out);
        }
        Form::Elements(dtype) => cast(held, dtype)(level, out, value),
        Form::Bits => {
            for (byte, truths) in out.iter_mut().enumerate() {
                let mut bits = 0;
                for bit in 0..(len - 8 * byte).min(8) {
                    let truth = value[if one { 0 } else { 8 * byte + bit }] != 0;
                    bits |= (truth as u8) << bit;
                }
                *truths = bits;
            }
        }
    }
}

/// All slots but the one that is being written, and outputs that are read before they are.
struct OtherSlots<'v> {
    low: &'v [TileSlot],
    high: &'v [TileSlot],
    gap: usize,
    outputs: &'v [&'v mut [u8]],
}

impl<'v> OtherSlots<'v> {
    fn all(slots: &'v [TileSlot]) -> OtherSlots<'v> {
        OtherSlots { low: slots, high: &[], gap: usize::MAX, outputs: &[] }
    }

    fn slot(&self, slot: usize) -> &'v TileSlot {
        if slot < self.gap { &self.low[slot] } else { &self.high[slot - self.gap - 1] }
    }
}
