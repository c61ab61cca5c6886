//! Attention of 16-bit floats, forward and backward: by groups of warps, where the card has that, beside products in a warp. Both have to
//! give the same numbers, as near as 16 bits are, and each the same bits when it runs again.

use half::{bf16, f16};
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::layout::Layout;
use tonnage_core::row::OpDef;
use tonnage_core::{Attrs, DType, Scalar};
use tonnage_cuda::driver::Gpu;
use tonnage_cuda::emit::{self, Launch, OpCall, Operand};
use tonnage_ops::nn::attention::forward::ATTENTION;
use tonnage_ops::nn::attention::grad::ATTENTION_GRAD;

use super::timed;

/// Sizes of a row.
struct Sizes {
    name: &'static str,
    dtype: DType,
    /// Batch, heads of queries and of keys.
    heads: [usize; 3],
    /// Queries, keys, width of heads.
    lengths: [usize; 3],
    causal: bool,
    /// A mask over queries and keys: one that hides keys, or one that is added to scores.
    mask: Option<DType>,
}

/// Any two results may differ by so much of the larger one, beside so much of their usual size: three roundings to 16 bits.
const NEAR: [(DType, f64, f64); 2] = [(DType::BF16, 0.016, 0.02), (DType::F16, 0.002, 0.0025)];

/// What has products in a warp alone.
const PLAIN: (u32, u32) = (8, 0);

pub fn run(gpu: &Gpu) -> Result<()> {
    use DType::{BF16, F16};
    let of = |name, dtype, heads, lengths, causal| {
        let mask = None;
        Sizes { name, dtype, heads, lengths, causal, mask }
    };
    let masked = |mask, sizes| Sizes { mask: Some(mask), ..sizes };
    let all = [
        of("odd lengths", F16, [2, 4, 2], [333, 777, 64], true),
        of("odd lengths, all seen", BF16, [2, 4, 4], [777, 333, 128], false),
        masked(DType::Bool, of("keys are hidden", BF16, [4, 4, 4], [1024, 1024, 64], false)),
        masked(F16, of("a mask is added", F16, [2, 4, 2], [777, 1000, 128], true)),
        of("GPT-2", BF16, [64, 12, 12], [1024, 1024, 64], true),
        of("all seen", BF16, [64, 12, 12], [1024, 1024, 64], false),
        of("heads of 128", BF16, [16, 12, 12], [2048, 2048, 128], true),
        of("groups", BF16, [16, 12, 4], [2048, 2048, 64], true),
        of("long", F16, [4, 12, 12], [8192, 8192, 64], true),
    ];
    let mut wrong = 0;
    for sizes in &all {
        wrong += sizes.run(gpu)?;
    }
    if wrong == 0 {
        return Ok(());
    }
    let what = format!("{wrong} results of attention are wrong");
    Err(ErrorKind::DeviceFailed { device: gpu.device(), what }.into())
}

/// Numbers that are the same on every machine, about as large as normal ones.
fn random(dtype: DType, count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut bytes = Vec::with_capacity(count * 2);
    for _ in 0..count {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let parts = [40, 48, 56].map(|bit| (state >> bit & 255) as f32 / 128.0 - 1.0);
        bytes.extend(stored(dtype, parts.iter().sum()));
    }
    bytes
}

fn stored(dtype: DType, x: f32) -> [u8; 2] {
    match dtype {
        DType::F16 => f16::from_f32(x).to_le_bytes(),
        _ => bf16::from_f32(x).to_le_bytes(),
    }
}

fn loaded(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    let number = |two: &[u8]| match dtype {
        DType::F16 => f16::from_le_bytes([two[0], two[1]]).to_f32(),
        _ => bf16::from_le_bytes([two[0], two[1]]).to_f32(),
    };
    bytes.chunks_exact(2).map(number).collect()
}

/// Memory of the device, handed out from the front.
struct Room<'g> {
    gpu: &'g Gpu,
    obtained: Vec<std::num::NonZero<usize>>,
}

impl Room<'_> {
    fn take(&mut self, bytes: usize) -> Result<u64> {
        let address = self.gpu.obtain(bytes.max(1));
        let what = || format!("no room for {bytes} bytes");
        let address = address
            .ok_or_else(|| ErrorKind::DeviceFailed { device: self.gpu.device(), what: what() })?;
        self.obtained.push(address);
        Ok(address.get() as u64)
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.obtained.iter().for_each(|address| self.gpu.release(*address));
    }
}

impl Sizes {
    /// `[batch, heads, length, width]` with heads within rows of so many numbers.
    fn rows(&self, heads: usize, length: usize, row: usize, offset: usize) -> Layout {
        let [b, ..] = self.heads;
        let [.., d] = self.lengths;
        let strides = [length * row, d, row, 1].map(|stride| stride as isize);
        let strides = strides.into_iter().collect();
        Layout { sizes: [b, heads, length, d][..].into(), strides, offset }
    }

    /// Times and compares; how many results are wrong.
    fn run(&self, gpu: &Gpu) -> Result<usize> {
        let ([b, h, g], [t, s, d]) = (self.heads, self.lengths);
        let mut room = Room { gpu, obtained: Vec::new() };
        // Queries, and keys beside values.
        let (of_q, of_kv) = (self.rows(h, t, h * d, 0), self.rows(g, s, 2 * g * d, 0));
        let of_v = Layout { offset: g * d, ..of_kv.clone() };
        let (count_q, count_kv) = (b * t * h * d, b * s * 2 * g * d);
        let numbers = random(self.dtype, count_q.max(count_kv) + count_q);
        let mut filled = |from: usize, count: usize| -> Result<u64> {
            let address = room.take(2 * count)?;
            gpu.copy_in(&numbers[2 * from..][..2 * count], address as usize)?;
            Ok(address)
        };
        let (q, kv, grad) = (filled(0, count_q)?, filled(7, count_kv)?, filled(count_q, count_q)?);
        let of_query = Layout::contiguous(&[b, h, t][..]);
        let each = 4 * b * h * t;
        let sixteen = |address, layout| (Operand::Memory(address, layout), self.dtype);
        let of_mask = Layout::contiguous(&[1, 1, t, s][..]);
        let mask = self.mask.map(|dtype| -> Result<_> {
            let bytes = self.numbers_of_mask(dtype);
            let address = room.take(bytes.len())?;
            gpu.copy_in(&bytes, address as usize)?;
            Ok((Operand::Memory(address, &of_mask), dtype))
        });
        let mask = mask.transpose()?;
        let qkv = [sixteen(q, &of_q), sixteen(kv, &of_kv), sixteen(kv, &of_v)];
        let forward: Vec<_> = qkv.into_iter().chain(mask).collect();
        let lies = [of_q.clone(), of_query.clone(), of_query.clone()];
        let lies_of_grad = [of_q.clone(), of_kv.clone(), of_v.clone()];
        let mut found = Vec::new();
        let mut seconds = Vec::new();
        let mut wrong = 0;
        let (mut lse, mut lost, mut shared) = (0, 0, 0);
        for capability in [gpu.info().capability, PLAIN] {
            let means = room.take(2 * count_q)?;
            let outputs = [means, room.take(each)?, room.take(each)?];
            let of_means = self.launch(&ATTENTION, &forward, &lies, &outputs, capability)?;
            gpu.launch(&of_means, None)?;
            let made = loaded(self.dtype, &self.read(gpu, means, 2 * count_q)?);
            if shared == 0 {
                // Gradients are made of one set of numbers.
                (lse, lost) = (outputs[1], outputs[2]);
                shared = room.take(each)?;
                let of_grad = loaded(self.dtype, &numbers[2 * count_q..][..2 * count_q]);
                gpu.copy_in(&self.shared(&made, &of_grad), shared as usize)?;
            }
            let single = |address| (Operand::Memory(address, &of_query), DType::F32);
            let others = [single(lse), single(lost), single(shared), sixteen(grad, &of_q)];
            let operands: Vec<_> = qkv.into_iter().chain(others).chain(mask).collect();
            let (dq, dkv) = (room.take(2 * count_q)?, room.take(2 * count_kv)?);
            // Values' gradients beside those of keys, as the offset of the layout says nothing of outputs.
            let outputs_of_grad = [dq, dkv, dkv + 2 * (g * d) as u64];
            let of_grads = self.launch(
                &ATTENTION_GRAD,
                &operands,
                &lies_of_grad,
                &outputs_of_grad,
                capability,
            )?;
            gpu.launch(&of_grads, None)?;
            let read = || -> Result<Vec<Vec<u8>>> {
                let all = [(means, count_q), (dq, count_q), (dkv, count_kv)];
                all.into_iter().map(|(address, count)| self.read(gpu, address, 2 * count)).collect()
            };
            let bits = read()?;
            let mut logs = vec![0f32; b * h * t];
            gpu.copy_out(outputs[1] as usize, bytemuck::cast_slice_mut(&mut logs))?;
            seconds.push(timed(gpu, || gpu.launch(&of_means, None))?);
            seconds.push(timed(gpu, || gpu.launch(&of_grads, None))?);
            let others = bits.iter().zip(read()?).filter(|(a, b)| **a != *b).count();
            if others > 0 {
                println!("{}, {capability:?}: {others} results have other bits again", self.name);
            }
            wrong += others;
            let [dq, dkv] = [&bits[1], &bits[2]].map(|bytes| loaded(self.dtype, bytes));
            found.push([made, logs, dq, dkv]);
        }
        self.show(&seconds);
        let [first, second] = &found[..] else { return Ok(wrong) };
        let names = ["means", "logarithms", "gradients of queries", "those of keys and values"];
        for ((name, a), b) in names.iter().zip(first).zip(second) {
            wrong += usize::from(!self.are_near(name, a, b));
        }
        Ok(wrong)
    }

    /// One of eight keys is hidden, or numbers are added.
    fn numbers_of_mask(&self, dtype: DType) -> Vec<u8> {
        let [t, s, _] = self.lengths;
        let numbers = random(DType::F16, t * s);
        match dtype {
            DType::Bool => numbers.chunks_exact(2).map(|two| u8::from(two[0] % 8 != 0)).collect(),
            _ => numbers,
        }
    }

    fn launch(
        &self,
        op: &'static OpDef,
        operands: &[(Operand<'_>, DType)],
        lies: &[Layout],
        outputs: &[u64],
        capability: (u32, u32),
    ) -> Result<Launch> {
        let scale = Scalar::Float((self.lengths[2] as f64).powf(-0.5));
        let attrs = &Attrs::Attention { scale, causal: self.causal, masked: self.mask.is_some() };
        let (sizes, shared) = (&lies[0].sizes[..], emit::LEAST_SHARED);
        let (added, scratch) = (None, None);
        let call = OpCall {
            op,
            attrs,
            operands,
            sizes,
            lies,
            outputs,
            added,
            scratch,
            shared,
            capability,
        };
        let nothing = || ErrorKind::BadGraph { what: "attention over nothing".to_string() };
        Ok(emit::launch_op(&call)?.ok_or_else(nothing)?)
    }

    fn read(&self, gpu: &Gpu, address: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        gpu.copy_out(address as usize, &mut bytes)?;
        Ok(bytes)
    }

    /// What gradients of a query's weights share: means times their gradients, by heads.
    fn shared(&self, means: &[f32], grads: &[f32]) -> Vec<u8> {
        let ([b, h, _], [t, _, d]) = (self.heads, self.lengths);
        let mut all = vec![0f32; b * h * t];
        let rows = means.chunks_exact(d).zip(grads.chunks_exact(d));
        for (i, (means, grads)) in rows.enumerate() {
            let (bt, head) = (i / h, i % h);
            all[(bt / t * h + head) * t + bt % t] =
                means.iter().zip(grads).map(|(a, b)| a * b).sum();
        }
        bytemuck::cast_slice(&all).to_vec()
    }

    fn show(&self, seconds: &[f64]) {
        let ([b, h, _], [t, s, d]) = (self.heads, self.lengths);
        // Of queries that see no key, none.
        let few = if self.causal { t.min(s) } else { t };
        let hidden = if self.causal { few * few / 2 } else { 0 };
        let seen = (few * s - hidden) as f64;
        // Two products of scores with heads, and five of their gradients.
        let flops = 4.0 * (b * h * d) as f64 * seen;
        let names = ["forward", "backward", "forward in warps", "backward in warps"];
        for ((name, seconds), products) in names.iter().zip(seconds).zip([1.0, 2.5, 1.0, 2.5]) {
            let rate = products * flops / seconds / 1e12;
            println!("{} {name:32} {:9.1} us  {rate:6.1} TFLOP/s", self.name, seconds * 1e6);
        }
    }

    fn are_near(&self, name: &str, a: &[f32], b: &[f32]) -> bool {
        let near = NEAR.iter().find(|(dtype, ..)| *dtype == self.dtype);
        let (_, of_each, of_usual) = near.copied().unwrap_or((self.dtype, 0.0, 0.0));
        let squares: f64 = b.iter().map(|x| f64::from(*x).powi(2)).sum();
        let usual = (squares / b.len().max(1) as f64).sqrt();
        let (mut most, mut far, mut at) = (0.0, 0, 0);
        for (i, (a, b)) in a.iter().zip(b).enumerate() {
            let (a, b) = (f64::from(*a), f64::from(*b));
            let apart = (a - b).abs();
            let is_near = a == b || apart <= of_each * a.abs().max(b.abs()) + of_usual * usual;
            if !is_near && far == 0 {
                at = i;
            }
            far += usize::from(!is_near);
            most = if apart.is_nan() { apart } else { apart.max(most) };
        }
        println!("    {name}: usually {usual:.3e}, apart by {most:.3e} at most, {far} too far");
        if far > 0 {
            println!("    WRONG: the first at {at}: {} for {}", a[at], b[at]);
        }
        far == 0
    }
}
