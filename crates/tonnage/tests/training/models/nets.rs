//! Networks of the kinds that people train, small enough for a test, built from ops.

use tonnage::{
    Conv, DType, Elementwise, Part, Pool, Result, Tensor, Variable, concat, positions,
    random_normal, scan, zeros,
};

/// The parameters of a network, in the order in which it asks for them. Made inside of a function they
/// belong to it, so a later trace finds the same ones.
#[derive(Default)]
pub struct Params {
    pub all: Vec<Variable>,
}

impl Params {
    /// A parameter of that shape, random with deviation `1 / sqrt(fan_in)`.
    pub fn get(&mut self, shape: &[usize], fan_in: usize) -> Result<Tensor> {
        let start = (random_normal(shape, DType::F32)? * (1.0 / (fan_in as f64).sqrt()))?;
        self.keep(start)
    }

    fn zeros(&mut self, shape: &[usize]) -> Result<Tensor> {
        self.keep(zeros(shape)?)
    }

    fn keep(&mut self, start: Tensor) -> Result<Tensor> {
        let made = Variable::new(&format!("p{}", self.all.len()), start)?;
        let value = made.read()?;
        self.all.push(made);
        Ok(value)
    }

    pub fn dense(&mut self, x: &Tensor, from: usize, to: usize) -> Result<Tensor> {
        let (w, b) = (self.get(&[from, to], from)?, self.zeros(&[to])?);
        x.matmul(&w)? + b
    }

    fn conv(
        &mut self,
        x: &Tensor,
        size: usize,
        from: usize,
        to: usize,
        stride: usize,
    ) -> Result<Tensor> {
        let w = self.get(&[size, size, from, to], size * size * from)?;
        x.conv2d(&w, &Conv::same().stride(stride))
    }

    /// Every channel with mean 0 and variance 1 over the batch.
    fn batch_norm(&mut self, x: &Tensor, channels: usize) -> Result<Tensor> {
        let (scale, shift) = (self.get(&[channels], 1)?, self.zeros(&[channels])?);
        let centred = (x - x.mean_keep([0, 1, 2])?)?;
        let deviation = ((&centred).square()?.mean_keep([0, 1, 2])? + 1e-5)?.rsqrt()?;
        ((centred * deviation)? * scale)? + shift
    }

    /// Every row with mean 0 and variance 1.
    fn layer_norm(&mut self, x: &Tensor, width: usize) -> Result<Tensor> {
        let (scale, shift) = (self.get(&[width], 1)?, self.zeros(&[width])?);
        let centred = (x - x.mean_keep(-1)?)?;
        let deviation = ((&centred).square()?.mean_keep(-1)? + 1e-5)?.rsqrt()?;
        ((centred * deviation)? * scale)? + shift
    }

    fn attention(
        &mut self,
        x: &Tensor,
        [batch, length, width]: [usize; 3],
        heads: usize,
        causal: bool,
    ) -> Result<Tensor> {
        let each = width / heads;
        let of_heads = |t: Tensor| {
            t.reshape([batch as i64, length as i64, heads as i64, each as i64])?
                .transpose(&[0, 2, 1, 3])
        };
        let q = of_heads(self.dense(x, width, width)?)?;
        let k = of_heads(self.dense(x, width, width)?)?;
        let v = of_heads(self.dense(x, width, width)?)?;
        let mut scores = (q.matmul(&k.t()?)? * (1.0 / (each as f64).sqrt()))?;
        if causal {
            let at = positions(length, DType::I32)?;
            let sees = at.expand_dims(0)?.less_equal(&at.expand_dims(1)?)?;
            scores = sees.where_(&scores, &tonnage::full(-1e9, DType::F32, [length, length])?)?;
        }
        let mixed = scores.softmax(-1)?.matmul(&v)?.transpose(&[0, 2, 1, 3])?;
        let joined = mixed.reshape([batch as i64, length as i64, width as i64])?;
        self.dense(&joined, width, width)
    }

    fn transformer(
        &mut self,
        mut x: Tensor,
        sizes: [usize; 3],
        layers: usize,
        causal: bool,
    ) -> Result<Tensor> {
        let width = sizes[2];
        for _ in 0..layers {
            let normal = self.layer_norm(&x, width)?;
            x = (x + self.attention(&normal, sizes, 2, causal)?)?;
            let normal = self.layer_norm(&x, width)?;
            let inner = self.dense(&normal, width, 4 * width)?.gelu_tanh()?;
            x = (x + self.dense(&inner, 4 * width, width)?)?;
        }
        self.layer_norm(&x, width)
    }
}

/// The cross-entropy with class 0, say: what matters is that every logit counts.
fn loss(logits: &Tensor) -> Result<Tensor> {
    let largest = logits.max_keep(-1)?;
    let sum = (logits - &largest)?.exp()?.sum_keep(-1)?.log()?;
    let first = logits.slice(&[Part::ALL, (0..1).into()])?;
    ((sum + largest)? - first)?.mean_all()
}

pub fn mlp(p: &mut Params, x: Tensor) -> Result<Tensor> {
    let h = p.dense(&x, 32, 64)?.relu()?;
    let h = p.dense(&h, 64, 64)?.relu()?;
    loss(&p.dense(&h, 64, 10)?)
}

pub fn lenet(p: &mut Params, x: Tensor) -> Result<Tensor> {
    let h = p.conv(&x, 5, 1, 6, 1)?.tanh()?.max_pool(&Pool::of(2))?;
    let h = p.conv(&h, 5, 6, 16, 1)?.tanh()?.max_pool(&Pool::of(2))?;
    let h = h.reshape([-1, 7 * 7 * 16])?;
    let h = p.dense(&h, 7 * 7 * 16, 84)?.tanh()?;
    loss(&p.dense(&h, 84, 10)?)
}

pub fn resnet20(p: &mut Params, x: Tensor) -> Result<Tensor> {
    let h = p.conv(&x, 3, 3, 8, 1)?;
    let mut h = p.batch_norm(&h, 8)?.relu()?;
    let mut channels = 8;
    for (stage, width) in [8, 16, 32].into_iter().enumerate() {
        for block in 0..3 {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let inner = p.conv(&h, 3, channels, width, stride)?;
            let inner = p.batch_norm(&inner, width)?.relu()?;
            let inner = p.conv(&inner, 3, width, width, 1)?;
            let inner = p.batch_norm(&inner, width)?;
            let skip = match channels == width {
                true => h,
                false => p.conv(&h, 1, channels, width, stride)?,
            };
            h = (inner + skip)?.relu()?;
            channels = width;
        }
    }
    let pooled = h.mean([1, 2])?;
    loss(&p.dense(&pooled, 32, 10)?)
}

/// Twice the height and width, every element four times.
fn upsample(x: &Tensor) -> Result<Tensor> {
    x.repeat(2, 1)?.repeat(2, 2)
}

pub fn u_net(p: &mut Params, x: Tensor) -> Result<Tensor> {
    let mut skips = Vec::new();
    let (mut h, mut channels) = (x.clone(), 3);
    for width in [4, 8, 16] {
        h = p.conv(&h, 3, channels, width, 1)?.relu()?;
        skips.push((h.clone(), width));
        h = h.max_pool(&Pool::of(2))?;
        channels = width;
    }
    h = p.conv(&h, 3, 16, 32, 1)?.relu()?;
    channels = 32;
    while let Some((skip, width)) = skips.pop() {
        let joined = concat(&[&upsample(&h)?, &skip], -1)?;
        h = p.conv(&joined, 3, channels + width, width, 1)?.relu()?;
        channels = width;
    }
    (p.conv(&h, 1, 4, 3, 1)? - x)?.square()?.mean_all()
}

pub fn mobile_net(p: &mut Params, x: Tensor) -> Result<Tensor> {
    let mut h = p.conv(&x, 3, 3, 8, 2)?.relu6()?;
    let mut channels = 8;
    for (width, stride) in [(16, 1), (16, 2), (32, 1)] {
        let depth = p.get(&[3, 3, channels, 1], 9)?;
        h = h.depthwise_conv2d(&depth, &Conv::same().stride(stride))?.relu6()?;
        h = p.conv(&h, 1, channels, width, 1)?.relu6()?;
        channels = width;
    }
    loss(&p.dense(&h.mean([1, 2])?, 32, 10)?)
}

/// Tokens out of 50, in rows of that length.
fn embedded(p: &mut Params, tokens: &Tensor, length: usize, width: usize) -> Result<Tensor> {
    let (table, position_table) = (p.get(&[50, width], width)?, p.get(&[length, width], width)?);
    table.gather(tokens, 0)? + position_table
}

pub fn gpt(p: &mut Params, tokens: Tensor) -> Result<Tensor> {
    gpt_of(p, tokens, [2, 16, 16])
}

/// Six layers over tokens of `[batch, length]`.
pub fn gpt_of(p: &mut Params, tokens: Tensor, sizes: [usize; 3]) -> Result<Tensor> {
    let [batch, length, width] = sizes;
    let h = embedded(p, &tokens, length, width)?;
    let h = p.transformer(h, sizes, 6, true)?;
    let h = h.reshape([(batch * length) as i64, width as i64])?;
    loss(&p.dense(&h, width, 50)?)
}

pub fn bert(p: &mut Params, tokens: Tensor) -> Result<Tensor> {
    bert_of(p, tokens, [2, 16, 16])
}

/// Three layers over tokens of `[batch, length]`, and classes from what the first became.
pub fn bert_of(p: &mut Params, tokens: Tensor, sizes: [usize; 3]) -> Result<Tensor> {
    let [batch, length, width] = sizes;
    let h = embedded(p, &tokens, length, width)?;
    let h = p.transformer(h, sizes, 3, false)?;
    let first = h.slice(&[Part::ALL, (0..1).into()])?.reshape([batch as i64, width as i64])?;
    loss(&p.dense(&first, width, 4)?)
}

/// 512 steps of a gated unit, as one loop over `[512, 4, 8]`.
pub fn gru(p: &mut Params, xs: Tensor) -> Result<Tensor> {
    gru_of(p, xs, [4, 8, 16])
}

/// A gated unit over `[steps, batch, from]`.
pub fn gru_of(p: &mut Params, xs: Tensor, [batch, from, width]: [usize; 3]) -> Result<Tensor> {
    let (wx, wh) = (p.get(&[from, 3 * width], from)?, p.get(&[width, 3 * width], width)?);
    let (last, _) = scan(zeros([batch, width])?, xs, |h: Tensor, x: Tensor| {
        let (of_x, of_h) =
            (x.matmul(&wx)?.split_evenly(3, -1)?, h.matmul(&wh)?.split_evenly(3, -1)?);
        let reset = (&of_x[0] + &of_h[0])?.sigmoid()?;
        let update = (&of_x[1] + &of_h[1])?.sigmoid()?;
        let new = (&of_x[2] + (reset * &of_h[2])?)?.tanh()?;
        let kept = (&update * (&h - &new)?)?;
        Ok(((new + kept)?, ()))
    })?;
    loss(&p.dense(&last, width, 4)?)
}

pub fn recommender(p: &mut Params, ids: Tensor) -> Result<Tensor> {
    let table = p.get(&[1000, 16], 16)?;
    let rows = table.gather(&ids, 0)?.reshape([-1, 64])?;
    let h = p.dense(&rows, 64, 32)?.relu()?;
    loss(&p.dense(&h, 32, 2)?)
}

pub fn autoencoder(p: &mut Params, x: Tensor) -> Result<Tensor> {
    let h = p.dense(&x, 32, 16)?.tanh()?;
    let code = p.dense(&h, 16, 4)?;
    let h = p.dense(&code, 4, 16)?.tanh()?;
    (p.dense(&h, 16, 32)?.sigmoid()? - x)?.square()?.mean_all()
}
