//! Bytes and numbers for operands.

use tonnage_core::layout::Layout;
use tonnage_core::{DType, philox};

/// Bytes at a multiple of 64.
pub struct Buffer(Vec<u64>, usize);

impl Buffer {
    /// What it is filled with.
    pub const UNTOUCHED: u8 = 0x5a;

    pub fn new(len: usize) -> Buffer {
        // A cache line more, to start at one.
        Buffer(vec![u64::from_ne_bytes([Buffer::UNTOUCHED; 8]); len.div_ceil(8) + 16], len)
    }
    pub fn start(&self) -> usize {
        let address = self.0.as_ptr().addr();
        address.next_multiple_of(64) - address
    }
    pub fn bytes(&self) -> &[u8] {
        let start = self.start();
        &bytemuck::cast_slice(&self.0)[start..start + self.1]
    }
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let (start, len) = (self.start(), self.1);
        &mut bytemuck::cast_slice_mut(&mut self.0)[start..start + len]
    }
    pub fn address(&mut self) -> u64 {
        self.bytes_mut().as_mut_ptr().expose_provenance() as u64
    }
}

/// Numbers for inputs.
pub struct Random {
    count: u64,
    /// Which floats are drawn.
    pub floats: Floats,
    /// What whole numbers are below that point somewhere.
    pub indices: Option<usize>,
}

/// Which floats are drawn.
#[derive(Clone, Copy, PartialEq)]
pub enum Floats {
    /// Mostly of an everyday size, sometimes an edge.
    All,
    /// Between -2 and 2: sums of them lose no digits.
    Small,
    /// Between 0.5 and 2.
    Positive,
    /// As `Small`, with minus infinities and NaN.
    Masked,
}

impl Random {
    pub fn new() -> Random {
        Random { count: 0, floats: Floats::All, indices: None }
    }

    pub fn word(&mut self) -> u64 {
        self.count += 1;
        let words = philox::block([7, 9], [self.count as u32, (self.count >> 32) as u32, 0, 0]);
        u64::from(words[0]) | u64::from(words[1]) << 32
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.word() % n as u64) as usize
    }

    /// A float: mostly of an everyday size, sometimes an edge.
    pub fn float(&mut self) -> f64 {
        let word = self.word();
        let unit = (word >> 11) as f64 / (1u64 << 53) as f64;
        match (self.floats, word % 16) {
            (Floats::Masked, 0) => [f64::NEG_INFINITY, f64::NAN][usize::from(self.below(50) == 0)],
            (Floats::Positive, _) => 0.5 + unit * 1.5,
            (Floats::Small | Floats::Masked, _) => (unit - 0.5) * 4.0,
            (Floats::All, 0) => {
                [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-40, 0.5, 2.0]
                    [self.below(10)]
            }
            (Floats::All, 1..=3) => (unit - 0.5) * 60.0,
            (Floats::All, 4) => ((unit - 0.5) * 10.0).round(),
            (Floats::All, _) => (unit - 0.5) * 4.0,
        }
    }

    pub fn fill(&mut self, dtype: DType, bytes: &mut [u8]) {
        for element in bytes.chunks_exact_mut(dtype.size()) {
            match dtype {
                DType::F64 => element.copy_from_slice(&self.float().to_le_bytes()),
                DType::F32 => element.copy_from_slice(&(self.float() as f32).to_le_bytes()),
                DType::F16 => {
                    element.copy_from_slice(&half::f16::from_f64(self.float()).to_le_bytes())
                }
                DType::BF16 => {
                    element.copy_from_slice(&half::bf16::from_f64(self.float()).to_le_bytes())
                }
                DType::Bool => element[0] = self.word() as u8 & 1,
                _ if let Some(size) = self.indices => {
                    let word = self.below(size.max(1)) as u64;
                    element.copy_from_slice(&word.to_le_bytes()[..dtype.size()]);
                }
                _ => {
                    // Small whole numbers and any bits.
                    let word = if self.below(4) == 0 {
                        self.word()
                    } else {
                        (self.below(9) as i64 - 4) as u64
                    };
                    element.copy_from_slice(&word.to_le_bytes()[..dtype.size()]);
                }
            }
        }
    }

    /// A tensor in order.
    pub fn tensor(&mut self, dtype: DType, sizes: &[usize]) -> (Buffer, Layout) {
        let mut buffer = Buffer::new(sizes.iter().product::<usize>() * dtype.size());
        self.fill(dtype, buffer.bytes_mut());
        (buffer, Layout::contiguous(sizes))
    }

    /// A tensor that broadcasts to a domain, in an order of its own: some axes of length 1, some reversed or apart, two exchanged.
    pub fn view(&mut self, dtype: DType, domain: &[usize]) -> (Buffer, Layout) {
        let rank = domain.len();
        let mut order: Vec<usize> = (0..rank).collect();
        if rank > 1 && self.below(2) == 0 {
            let a = self.below(rank);
            let b = self.below(rank);
            order.swap(a, b);
        }
        let mut strides = vec![0isize; rank];
        let (mut step, mut offset) = (1 + self.below(2) as isize, self.below(4) as isize);
        for axis in order.iter().rev() {
            match self.below(5) {
                0 => strides[*axis] = 0,
                1 if domain[*axis] > 0 => {
                    strides[*axis] = -step;
                    offset += step * (domain[*axis] as isize - 1);
                    step *= domain[*axis] as isize;
                }
                _ => {
                    strides[*axis] = step;
                    step *= domain[*axis].max(1) as isize;
                }
            }
        }
        let layout = Layout {
            sizes: domain.into(),
            strides: strides.into_iter().collect(),
            offset: offset as usize,
        };
        let mut buffer = Buffer::new((offset + step.max(1) + 8) as usize * dtype.size() * 2);
        self.fill(dtype, buffer.bytes_mut());
        (buffer, layout)
    }
}
