//! Bytes that are saved for the backward pass, beside a peer: as the rows declare (the tape, in
//! eager mode) and as a plan of the whole step has it. Variables and arguments are not counted.
//! `cargo bench -p tonnage --bench saved`; `benches/saved.py` and `benches/saved_jax.py` count what
//! PyTorch and JAX save for the same models.

use std::cell::RefCell;
use std::rc::Rc;

use tonnage::{
    Attention, Bytes, Conv, DType, Elementwise, GradientTape, Result, Tensor, Variable, Watched,
    function, random_normal, tensor, zeros,
};

#[derive(Default)]
struct Params(Vec<Variable>);

impl Params {
    fn get(&mut self, shape: &[usize]) -> Result<Tensor> {
        let start = (random_normal(shape, DType::F32)? * 0.05)?;
        let made = Variable::new(&format!("p{}", self.0.len()), start)?;
        let value = made.read()?;
        self.0.push(made);
        Ok(value)
    }

    fn dense(&mut self, x: &Tensor, from: usize, to: usize) -> Result<Tensor> {
        let (w, b) = (self.get(&[from, to])?, self.get(&[to])?);
        x.matmul(&w)? + b
    }

    fn norm(&mut self, x: &Tensor, width: usize) -> Result<Tensor> {
        let (scale, bias) = (self.get(&[width])?, self.get(&[width])?);
        x.layer_norm(&scale, &bias, 1e-5)
    }

    fn conv_norm(&mut self, x: &Tensor, from: usize, to: usize, stride: usize) -> Result<Tensor> {
        let w = self.get(&[3, 3, from, to])?;
        let (scale, bias) = (self.get(&[to])?, self.get(&[to])?);
        Ok(x.conv2d(&w, &Conv::same().stride(stride))?.batch_norm(&scale, &bias, 1e-5)?.output)
    }
}

fn loss(logits: &Tensor, labels: usize) -> Result<Tensor> {
    let labels = tensor((0..labels as i64).map(|i| i % 10).collect::<Vec<_>>())?;
    logits.sparse_cross_entropy(&labels)?.mean_all()
}

fn mlp(p: &mut Params, x: Tensor) -> Result<Tensor> {
    let h = p.dense(&x, 784, 512)?.relu()?;
    let h = p.dense(&h, 512, 512)?.relu()?;
    loss(&p.dense(&h, 512, 10)?, 128)
}

fn resnet20(p: &mut Params, x: Tensor) -> Result<Tensor> {
    let mut h = p.conv_norm(&x, 3, 16, 1)?.relu()?;
    let mut channels = 16;
    for (stage, width) in [16, 32, 64].into_iter().enumerate() {
        for block in 0..3 {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let inner = p.conv_norm(&h, channels, width, stride)?.relu()?;
            let inner = p.conv_norm(&inner, width, width, 1)?;
            let skip = match channels == width {
                true => h,
                false => {
                    let w = p.get(&[1, 1, channels, width])?;
                    h.conv2d(&w, &Conv::same().stride(stride))?
                }
            };
            h = (inner + skip)?.relu()?;
            channels = width;
        }
    }
    loss(&p.dense(&h.mean([1, 2])?, 64, 10)?, 32)
}

/// One block of `[8, 128, 256]`, eight heads.
fn block(p: &mut Params, x: Tensor) -> Result<Tensor> {
    let heads = |t: Tensor| t.reshape([8, 128, 8, 32])?.transpose(&[0, 2, 1, 3]);
    let n = p.norm(&x, 256)?;
    let (q, k) = (heads(p.dense(&n, 256, 256)?)?, heads(p.dense(&n, 256, 256)?)?);
    let v = heads(p.dense(&n, 256, 256)?)?;
    let mixed = q.scaled_dot_product_attention(&k, &v, &Attention::new().causal())?;
    let mixed = mixed.transpose(&[0, 2, 1, 3])?.reshape([8, 128, 256])?;
    let x = (x + p.dense(&mixed, 256, 256)?)?;
    let n = p.norm(&x, 256)?;
    let inner = p.dense(&n, 256, 1024)?.gelu_tanh()?;
    (x + p.dense(&inner, 1024, 256)?)?.square()?.mean_all()
}

/// Sixteen steps of a gated unit, written out.
fn gru(p: &mut Params, xs: Tensor) -> Result<Tensor> {
    let (wx, wh) = (p.get(&[64, 384])?, p.get(&[128, 384])?);
    let mut h = zeros([32, 128])?;
    for x in xs.unstack(0)? {
        let of_x = x.matmul(&wx)?.split_evenly(3, -1)?;
        let of_h = h.matmul(&wh)?.split_evenly(3, -1)?;
        let reset = (&of_x[0] + &of_h[0])?.sigmoid()?;
        let update = (&of_x[1] + &of_h[1])?.sigmoid()?;
        let new = (&of_x[2] + (reset * &of_h[2])?)?.tanh()?;
        let saved = (&update * (&h - &new)?)?;
        h = (new + saved)?;
    }
    loss(&p.dense(&h, 128, 10)?, 32)
}

fn embedding(p: &mut Params, ids: Tensor) -> Result<Tensor> {
    let table = p.get(&[10_000, 64])?;
    let rows = table.gather(&ids, 0)?.reshape([128, 512])?;
    let h = p.dense(&rows, 512, 256)?.relu()?;
    loss(&p.dense(&h, 256, 10)?, 128)
}

type Net = fn(&mut Params, Tensor) -> Result<Tensor>;

fn figures(name: &str, net: Net, x: Tensor) -> Result<()> {
    let own = x.ty().bytes("x")?.rounded();
    let planned: Rc<RefCell<Bytes>> = Rc::default();
    let seen = planned.clone();
    let step = function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        let mut params = Params::default();
        let loss = net(&mut params, x)?;
        *seen.borrow_mut() = tape.held().bytes() - tape.held().of_sources();
        let all: Vec<&dyn Watched> = params.0.iter().map(|v| v as &dyn Watched).collect();
        for (variable, grad) in params.0.iter().zip(tape.gradient(&loss, &all)?) {
            variable.assign_sub(&grad.scale(0.01)?)?;
        }
        Ok(loss)
    });
    let saved = step.plan(&x)?.saved_bytes();
    let mut params = Params::default();
    let tape = GradientTape::new();
    net(&mut params, x)?;
    let held = tape.held();
    let eager = (held.bytes() - held.of_sources()).saturating_sub(own);
    println!(
        "{name:<10} eager {eager:>10}   declared in a plan {:>10}   saved {saved:>10}",
        planned.borrow()
    );
    Ok(())
}

fn ids(rows: usize, columns: usize) -> Result<Tensor> {
    let all: Vec<i64> = (0..rows * columns).map(|i| (i * 7919 % 10_000) as i64).collect();
    tensor(all)?.reshape([rows as i64, columns as i64])
}

fn resident(shape: &[usize]) -> Result<Tensor> {
    let values = random_normal(shape, DType::F32)?.to_vec::<f32>()?;
    tensor(values)?.reshape(shape.iter().map(|n| *n as i64).collect::<Vec<_>>())
}

fn main() -> Result<()> {
    figures("mlp", mlp, resident(&[128, 784])?)?;
    figures("resnet20", resnet20, resident(&[32, 32, 32, 3])?)?;
    figures("block", block, resident(&[8, 128, 256])?)?;
    figures("gru", gru, resident(&[16, 32, 64])?)?;
    figures("embedding", embedding, ids(128, 8)?)
}
