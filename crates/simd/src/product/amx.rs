//! AMX tiles of `bf16` (the matrix unit of some Xeons): two rows of sums by two columns of them, each 16 by 16
//! elements of `f32`, and 32 steps of K at once.
//!
//! The standard library has no stable intrinsics for the unit, so these are a few lines of assembly. Products are exact, sums
//! are rounded to nearest, subnormal numbers count as zeros, whatever the state of the thread. Linux wants to be asked once
//! for a process, since the unit's registers make the state of its threads larger.
//!
//! Decision: `docs/decisions/bf16-products-use-amx.md`.

#![allow(unsafe_code, reason = "assembly, and the pointers that it walks over")]

use std::marker::PhantomData;
use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use std::arch::asm;

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__cpuid, __cpuid_count};

/// Rows, and columns, of the sums that one call computes.
pub const SIDE: usize = 32;

/// Steps of K that operands are padded to.
pub const STEP: usize = 32;

/// Elements of a block of an operand: [`SIDE`] rows or columns by [`STEP`] steps of K.
pub const BLOCK: usize = SIDE * STEP;

/// True where the machine has the unit and the system lets this process use it.
pub fn is_available() -> bool {
    static THERE: OnceLock<bool> = OnceLock::new();
    *THERE.get_or_init(|| machine_has_it() && system_allows_it())
}

#[cfg(target_arch = "x86_64")]
fn machine_has_it() -> bool {
    const OSXSAVE: u32 = 1 << 27;
    const AMX_BF16: u32 = 1 << 22;
    const AMX_TILE: u32 = 1 << 24;
    // The state of the unit is saved: its configuration and its registers.
    const SAVED: u32 = 0b11 << 17;
    if __cpuid(0).eax < 7 || __cpuid(1).ecx & OSXSAVE == 0 {
        return false;
    }
    let features = __cpuid_count(7, 0).edx;
    if features & (AMX_BF16 | AMX_TILE) != AMX_BF16 | AMX_TILE {
        return false;
    }
    let low: u32;
    // SAFETY: the bit that was asked for says that the instruction is there; it reads a register of the machine.
    unsafe {
        asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") _, options(nomem, nostack));
    }
    low & SAVED == SAVED
}

#[cfg(not(target_arch = "x86_64"))]
fn machine_has_it() -> bool {
    false
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn system_allows_it() -> bool {
    /// `arch_prctl`
    const CALL: i64 = 158;
    /// `ARCH_REQ_XCOMP_PERM`
    const ASK: u64 = 0x1023;
    /// The unit's registers.
    const REGISTERS: u64 = 18;
    let refused: i64;
    // SAFETY: the call takes two numbers and touches no memory of the program's. One that the system does not know is
    // refused.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") CALL => refused,
            in("rdi") ASK,
            in("rsi") REGISTERS,
            out("rcx") _,
            out("r11") _,
            options(nostack)
        );
    }
    refused == 0
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn system_allows_it() -> bool {
    false
}

/// How the registers are cut; the layout is the machine's.
#[cfg(target_arch = "x86_64")]
#[repr(C, align(64))]
struct TileConfig {
    palette: u8,
    start: u8,
    reserved: [u8; 14],
    /// Bytes of a row of each register.
    bytes: [u16; 16],
    /// Rows of each register.
    rows: [u8; 16],
}

/// The unit, made ready for this thread until it is dropped: its registers are no burden to the thread then.
pub struct AmxUnit(PhantomData<*const ()>);

impl AmxUnit {
    /// Where [`is_available`].
    pub fn begin() -> Option<AmxUnit> {
        if !is_available() {
            return None;
        }
        #[cfg(target_arch = "x86_64")]
        {
            let mut config = TileConfig {
                palette: 1,
                start: 0,
                reserved: [0; 14],
                bytes: [0; 16],
                rows: [0; 16],
            };
            config.bytes[..8].fill(64);
            config.rows[..8].fill(16);
            // SAFETY: the unit is there, and the configuration is one that it has: palette 1, eight whole registers.
            unsafe { asm!("ldtilecfg [{}]", in(reg) &config, options(nostack, readonly)) };
        }
        Some(AmxUnit(PhantomData))
    }

    /// `c (+)= a * b` for [`SIDE`] rows and columns of sums that are `row` bytes apart, over `steps` blocks of K, at
    /// least 1.
    ///
    /// One block of `b` is two tiles, of 16 columns each: for every two steps of K, its columns' pairs of elements side by
    /// side.
    ///
    /// # Safety
    /// `a` must be valid for reads of [`SIDE`] rows in each of `steps` blocks, `b` for as many blocks, `c` for reads and
    /// writes of its rows.
    pub unsafe fn multiply(
        &self,
        a: &AmxRows,
        b: *const u16,
        steps: usize,
        c: *mut f32,
        row: usize,
        add: bool,
    ) {
        let below = c.wrapping_byte_add(16 * row);
        // The registers keep what they hold from one to the other: nothing else uses them.
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the unit is there and configured; the caller's promise covers what is read and written.
        unsafe {
            if add {
                asm!(
                    "tileloadd tmm0, [{c} + {row}]",
                    "tileloadd tmm1, [{c} + {row} + 64]",
                    "tileloadd tmm2, [{below} + {row}]",
                    "tileloadd tmm3, [{below} + {row} + 64]",
                    c = in(reg) c,
                    below = in(reg) below,
                    row = in(reg) row,
                    options(nostack, readonly)
                );
            } else {
                asm!(
                    "tilezero tmm0",
                    "tilezero tmm1",
                    "tilezero tmm2",
                    "tilezero tmm3",
                    options(nostack, nomem)
                );
            }
            asm!(
                "2:",
                "tileloadd tmm4, [{a} + {a_row}]",
                "tileloadd tmm6, [{b} + {wide}]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{b} + {wide} + 1024]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{lower} + {a_row}]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {a}, {step}",
                "add {lower}, {step}",
                "add {b}, 2048",
                "dec {steps}",
                "jnz 2b",
                "tilestored [{c} + {row}], tmm0",
                "tilestored [{c} + {row} + 64], tmm1",
                "tilestored [{below} + {row}], tmm2",
                "tilestored [{below} + {row} + 64], tmm3",
                a = inout(reg) a.first => _,
                lower = inout(reg) a.first.wrapping_byte_offset(16 * a.row) => _,
                b = inout(reg) b => _,
                steps = inout(reg) steps => _,
                a_row = in(reg) a.row,
                step = in(reg) a.step,
                wide = in(reg) 64usize,
                c = in(reg) c,
                below = in(reg) below,
                row = in(reg) row,
                options(nostack)
            );
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (a, b, steps, below, add); // there is no unit to begin
    }
}

/// How the rows of a left operand lie, in bytes: [`STEP`] elements of each side by side.
pub struct AmxRows {
    /// The first row of the first block.
    pub first: *const u16,
    /// From one row to the next.
    pub row: isize,
    /// From one block of K to the next.
    pub step: isize,
}

impl AmxRows {
    /// Packed blocks: their rows one after the other, and one block after the other.
    pub fn packed(blocks: &[u16]) -> AmxRows {
        let row = (STEP * size_of::<u16>()) as isize;
        AmxRows { first: blocks.as_ptr(), row, step: SIDE as isize * row }
    }
}

impl Drop for AmxUnit {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the unit is there; whoever wants it next configures it again.
        unsafe {
            asm!("tilerelease", options(nostack, nomem))
        };
    }
}
