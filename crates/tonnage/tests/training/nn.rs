//! What networks are made of, the whole way: eager, planned to the byte, differentiated; and what is saved for a gradient.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use tonnage::{
    Attention, Between, Bytes, Conv, DType, Elementwise, GradientTape, Padding, Pool, Result,
    Tensor, function, memory, ones, random_normal, set_seed, tensor, zeros,
};

use crate::common::{call_checked, close, in_use, own_context};

/// Random numbers in memory.
fn draw(shape: &[usize]) -> Tensor {
    let drawn = random_normal(shape, DType::F32).unwrap().to_vec::<f32>().unwrap();
    let lengths: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
    tensor(drawn).unwrap().reshape(&lengths[..]).unwrap()
}

fn values(x: &Tensor) -> Vec<f64> {
    x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

/// A training step of a function of two tensors: its value and both gradients, eager and planned alike.
#[track_caller]
fn both_ways(
    f: impl Fn(&Tensor, &Tensor) -> Result<Tensor> + Copy + 'static,
    a: &Tensor,
    b: &Tensor,
) {
    let step = move |(a, b): (Tensor, Tensor)| {
        let mut tape = GradientTape::new();
        tape.watch(&a);
        tape.watch(&b);
        let loss = f(&a, &b)?.square()?.sum_all()?;
        let grads = tape.gradient(&loss, &[&a, &b])?;
        Ok((loss, grads[0].tensor()?, grads[1].tensor()?))
    };
    let eager = step((a.clone(), b.clone())).unwrap();
    let planned = call_checked(&function(step), &(a.clone(), b.clone()));
    close(&planned.0, &values(&eager.0), 1e-5);
    close(&planned.1, &values(&eager.1), 1e-5);
    close(&planned.2, &values(&eager.2), 1e-5);
}

#[test]
fn layers_are_planned_to_the_byte_and_agree_with_eager_mode() {
    let _context = own_context();
    set_seed(3);
    let image = draw(&[2, 9, 8, 4]);
    both_ways(|x, w| x.conv2d(w, &Conv::same().stride(2)), &image, &draw(&[3, 3, 4, 6]));
    both_ways(|x, w| x.depthwise_conv2d(w, &Conv::same()), &image, &draw(&[3, 3, 4, 2]));
    both_ways(|x, w| x.conv2d_transpose(w, &Conv::same().stride(2)), &image, &draw(&[3, 3, 5, 4]));
    let pools = |x: &Tensor, y: &Tensor| {
        let pools = Pool::of(3).stride(2).padding(1);
        (x.max_pool(&pools)? + y.avg_pool(&pools)?)?.resize([7, 9], Between::Linear)
    };
    both_ways(pools, &image, &draw(&[2, 9, 8, 4]));
    both_ways(
        |x, scale| {
            let made = x.batch_norm(scale, &zeros([4])?, 1e-3)?;
            made.output * (made.mean + made.variance)?
        },
        &image,
        &draw(&[4]),
    );
    both_ways(|x, scale| x.group_norm(2, scale, &zeros([4])?, 1e-3), &image, &draw(&[4]));
    let rows = draw(&[5, 12]);
    both_ways(|x, scale| x.layer_norm(scale, &ones([12])?, 1e-3), &rows, &draw(&[12]));
    both_ways(|x, scale| x.rms_norm(scale, 1e-3), &rows, &draw(&[12]));
    both_ways(|x, t| x.cross_entropy_smoothed(&t.softmax(-1)?, 0.1), &rows, &draw(&[5, 12]));
    both_ways(|x, y| x.cosine_similarity(y, -1), &rows, &draw(&[5, 12]));
    both_ways(|x, y| x.sigmoid_cross_entropy(y), &rows, &draw(&[5, 12]));
    both_ways(|x, y| x.log_softmax(0)? * y.softmax(1)?, &rows, &draw(&[5, 12]));
    let heads = draw(&[2, 4, 7, 6]);
    both_ways(
        |q, k| {
            let q = q.rotary_embedding(100.0)?;
            q.scaled_dot_product_attention(
                &k.rotary_embedding(100.0)?,
                k,
                &Attention::new().causal(),
            )
        },
        &heads,
        &draw(&[2, 2, 9, 6]),
    );
}

#[test]
fn convolutions_in_other_numbers_of_axes_are_those_of_two() {
    let _context = own_context();
    let (x, w) = (draw(&[2, 10, 3]), draw(&[3, 3, 5]));
    let how = Conv::valid().padding([[1, 2]]).stride(2).dilation(2);
    let line = x.conv1d(&w, &how).unwrap();
    let flat = Conv::valid().padding([[0, 0], [1, 2]]).stride([1, 2]).dilation([1, 2]);
    let (x4, w4) = (x.reshape([2, 1, 10, 3]).unwrap(), w.reshape([1, 3, 3, 5]).unwrap());
    let plane = x4.conv2d(&w4, &flat).unwrap();
    assert_eq!(values(&line), values(&plane));
    let (x5, w5) = (x.reshape([2, 1, 1, 10, 3]).unwrap(), w.reshape([1, 1, 3, 3, 5]).unwrap());
    let deep = Conv::valid().padding([[0, 0], [0, 0], [1, 2]]).stride([1, 1, 2]);
    let space = x5.conv3d(&w5, &deep.dilation([1, 1, 2])).unwrap();
    assert_eq!(values(&line), values(&space));
    let back = line.conv1d_transpose(&w, &how.clone().lengths([10])).unwrap();
    let x5 = space.conv3d_transpose(
        &w5,
        &Conv::valid()
            .padding([[0, 0], [0, 0], [1, 2]])
            .stride([1, 1, 2])
            .dilation([1, 1, 2])
            .lengths([1, 1, 10]),
    );
    assert_eq!(values(&back), values(&x5.unwrap()));
}

#[test]
fn same_padding_gives_the_length_over_the_stride_rounded_up() {
    let _context = own_context();
    for length in 1..9 {
        for stride in 1..4 {
            for taps in 1..5 {
                let (x, w) = (draw(&[1, length, 2]), draw(&[taps, 2, 3]));
                let made = x.conv1d(&w, &Conv::same().stride(stride)).unwrap();
                let expected = [1, length.div_ceil(stride), 3];
                assert_eq!(made.shape().sizes().unwrap()[..], expected);
                let back = made.conv1d_transpose(&w, &Conv::same().stride(stride)).unwrap();
                assert_eq!(back.shape().sizes().unwrap()[1], expected[1] * stride);
            }
        }
    }
    let pooled = draw(&[1, 5, 1]).max_pool(&Pool::of(3).stride(2).padding(Padding::Same)).unwrap();
    assert_eq!(pooled.shape().to_string(), "[1, 3, 1]");
}

#[test]
fn a_convolution_takes_its_result_and_a_little_to_work_in() {
    let _context = own_context();
    // Its windows, copied together, would take nine times the image: 18 MiB.
    let (x, w) = (draw(&[4, 64, 64, 32]), draw(&[3, 3, 32, 32]));
    let before = in_use();
    memory::reset_peak("cpu:0").unwrap();
    let y = x.conv2d(&w, &Conv::same()).unwrap();
    let peak = memory::info("cpu:0").unwrap().peak - before;
    let made = y.shape().count().unwrap() as u64 * 4;
    assert!(peak.get() < made + (1 << 20), "{peak} for a result of {}", Bytes::of(made as usize));
}

#[test]
fn the_memory_of_attention_is_linear_in_its_length() {
    let _context = own_context();
    let step = function(|x: Tensor| {
        let mut tape = GradientTape::new();
        tape.watch(&x);
        let y = x.scaled_dot_product_attention(&x, &x, &Attention::new().causal())?;
        tape.gradient(&y.square()?.sum_all()?, &[&x])?[0].tensor()
    });
    let peak = |length: usize| {
        let x = random_normal([1, 2, length, 16], DType::F32).unwrap();
        step.plan(&x).unwrap().peak().get()
    };
    // All scores at once would take sixteen times as much for four times the length.
    assert!(peak(4096) < 5 * peak(1024), "{} and {}", peak(1024), peak(4096));
    // It saves its input, its result and two numbers a row.
    let x = draw(&[1, 2, 300, 16]);
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = x.scaled_dot_product_attention(&x, &x, &Attention::new()).unwrap();
    let [width, number] = [2 * 300 * 16 * 4, 2 * 300 * 4].map(|n| Bytes::new(n).rounded());
    assert_eq!(tape.held().bytes(), width + width + number + number, "{}", tape.held());
    drop(y);
}

#[test]
fn dropout_saves_a_key_and_no_mask() {
    let _context = own_context();
    let x = draw(&[1000, 100]);
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = x.dropout(0.5).unwrap();
    assert!(tape.held().bytes().get() < 4096, "{}", tape.held().bytes());
    drop(tape);
    let zeros = y.to_vec::<f32>().unwrap().iter().filter(|x| **x == 0.0).count();
    assert!((45_000..55_000).contains(&zeros), "{zeros} of 100000 left out");
    // In a function the gradient leaves the same ones out, and nothing lies between input and result.
    let step = function(|x: Tensor| {
        let mut tape = GradientTape::new();
        tape.watch(&x);
        let y = x.dropout(0.5)?;
        let g = tape.gradient(&y.sum_all()?, &[&x])?[0].tensor()?;
        Ok((y, g))
    });
    let (y, g) = call_checked(&step, &(x.zeros_like().unwrap() + (&x / &x).unwrap()).unwrap());
    assert_eq!(values(&y), values(&g));
    let results = 2 * 1000 * 100 * 4;
    let plan = step.plan(&ones([1000, 100]).unwrap()).unwrap();
    assert!(plan.peak().get() < results + 4096, "{plan}");
    assert!(values(&x.dropout(1.0).unwrap()).iter().all(|x| *x == 0.0));
    assert_eq!(values(&x.dropout(0.0).unwrap()), values(&x));
}

#[test]
fn cross_entropy_saves_the_logits_once() {
    let _context = own_context();
    let x = draw(&[64, 1000]);
    let labels = tensor((0..64).map(|i| i * 3).collect::<Vec<i32>>()).unwrap();
    let mut tape = GradientTape::new();
    tape.watch(&x);
    let loss = x.sparse_cross_entropy(&labels).unwrap().mean_all().unwrap();
    let logits = 64 * 1000 * 4;
    assert!(tape.held().bytes().get() < logits + 4096, "{}", tape.held().bytes());
    let grad = tape.gradient(&loss, &[&x]).unwrap()[0].tensor().unwrap();
    // Probabilities less the label, over the number of rows.
    let mut expected = values(&x.softmax(-1).unwrap());
    (0..64).for_each(|row| expected[row * 1000 + row * 3] -= 1.0);
    expected.iter_mut().for_each(|x| *x /= 64.0);
    close(&grad, &expected, 1e-6);
    // Dense targets that say the same give the same.
    let targets = labels.one_hot(1000, DType::F32).unwrap();
    let dense = x.cross_entropy_smoothed(&targets, 0.3).unwrap();
    close(&dense, &values(&x.sparse_cross_entropy_smoothed(&labels, 0.3).unwrap()), 1e-5);
}

#[test]
fn norms_save_their_input_and_statistics() {
    let _context = own_context();
    let (x, scale, bias) = (draw(&[32, 16, 64]), draw(&[64]), draw(&[64]));
    let input = 32 * 16 * 64 * 4;
    let saved = |f: &dyn Fn() -> Result<Tensor>| {
        let tape = GradientTape::new();
        tape.watch(&x);
        let made = f().unwrap();
        let bytes = tape.held().bytes().get();
        drop(made);
        bytes
    };
    let layer = saved(&|| x.layer_norm(&scale, &bias, 1e-5));
    assert!(layer <= input + 512, "{layer} for {input}");
    let batch = saved(&|| Ok(x.batch_norm(&scale, &bias, 1e-5)?.output));
    assert!(batch <= input + 2048, "{batch} for {input}");
}

#[test]
fn a_mask_hides_or_is_added() {
    let _context = own_context();
    let (q, k, v) = (draw(&[1, 2, 3, 4]), draw(&[1, 2, 5, 4]), draw(&[1, 2, 5, 4]));
    let seen = tensor([[true, true, false, true, false]]).unwrap();
    let hidden = ((&seen).cast(DType::F32).unwrap() - 1.0).unwrap() * 1e30;
    let by = |mask: &Tensor| {
        q.scaled_dot_product_attention(&k, &v, &Attention::new().mask(mask)).unwrap()
    };
    close(&by(&hidden.unwrap()), &values(&by(&seen)), 1e-6);
    let nobody = by(&tensor([false; 5]).unwrap());
    assert!(values(&nobody).iter().all(|x| *x == 0.0));
}

#[test]
fn losses_are_what_their_words_say() {
    let _context = own_context();
    let (x, t) = (tensor([0.5f32, -2.0, 3.0]).unwrap(), tensor([1.0f32, 1.0, -1.0]).unwrap());
    close(&x.mean_squared_error(&t).unwrap(), &[(0.25 + 9.0 + 16.0) / 3.0], 1e-6);
    close(&x.mean_absolute_error(&t).unwrap(), &[7.5 / 3.0], 1e-6);
    close(&x.huber_loss(&t, 1.0).unwrap(), &[(0.125 + 2.5 + 3.5) / 3.0], 1e-6);
    close(&x.hinge_loss(&t).unwrap(), &[(0.5 + 3.0 + 4.0) / 3.0], 1e-6);
    let (p, q) = (tensor([0.5f32, 0.5, 0.0]).unwrap(), tensor([0.25f32, 0.5, 0.25]).unwrap());
    close(&p.kl_divergence(&q).unwrap(), &[0.5 * 2f64.ln()], 1e-6);
    close(&x.l2_normalize(0, 0.0).unwrap().square().unwrap().sum_all().unwrap(), &[1.0], 1e-6);
    let made = draw(&[2, 3, 4, 5]);
    let mean = made.global_avg_pool().unwrap();
    close(&mean, &values(&made.mean([1, 2]).unwrap()), 1e-6);
    let table = draw(&[10, 3]);
    let rows = table.embedding_lookup(&tensor([[1, 9], [0, 1]]).unwrap()).unwrap();
    assert_eq!(rows.shape().to_string(), "[2, 2, 3]");
}

#[test]
fn normalizing_by_the_statistics_of_a_batch_is_normalizing_the_batch() {
    let _context = own_context();
    let (x, scale, bias) = (draw(&[6, 5, 3]), draw(&[3]), draw(&[3]));
    let made = x.batch_norm(&scale, &bias, 1e-3).unwrap();
    let by = x.batch_norm_by(&made.mean, &made.variance, &scale, &bias, 1e-3).unwrap();
    close(&by, &values(&made.output), 1e-5);
}
