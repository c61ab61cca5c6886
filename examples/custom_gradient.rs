//! A gradient of one's own: a clipped step that saves a bit of information instead of its input, checked against differences.
//!
//! `cargo run --release -p tonnage-examples custom_gradient` prints
//!
//!     at 100 the usual gradient is NaN, ours is 1
//!     it agrees with differences: true
//!     saved: 4.00 KiB by ours, 8.00 KiB by the usual one

use tonnage::{Check, Elementwise, GradientTape, Result, Tensor, check_gradients, custom_gradient, tensor};

pub fn main() -> Result<()> {
    // log(1 + exp(x)): written so, its gradient divides infinity by infinity.
    let usual = |x: &Tensor| (x.exp()? + 1.0)?.log();
    let ours = custom_gradient(
        |x: Tensor| {
            let e = (&x).exp()?;
            Ok(((&e + 1.0)?.log()?, e))
        },
        // What is saved is what `forward` returned for it, and nothing else.
        |e: Tensor, g: Tensor| g * (1.0 - (1.0 / (e + 1.0)?)?)?,
    );

    let slope = |f: &dyn Fn(&Tensor) -> Result<Tensor>, at: &Tensor| -> Result<(f32, tonnage::Bytes)> {
        let mut tape = GradientTape::new();
        tape.watch(at);
        let y = f(at)?;
        let saved = tape.held().bytes();
        let gradient = tape.gradient(&y, &[at])?[0].tensor()?;
        Ok((gradient.slice(&[(0..1).into()])?.to_vec::<f32>()?[0], saved))
    };
    let ours = |x: &Tensor| ours(x.clone());
    let high = tensor([100.0f32])?;
    println!("at 100 the usual gradient is {}, ours is {}", slope(&usual, &high)?.0, slope(&ours, &high)?.0);

    let points = tensor([-2.0f64, -0.5, 0.0, 1.0, 3.0])?;
    println!("it agrees with differences: {}", check_gradients(|x: Tensor| ours(&x)?.sum_all(), &points, Check::default()).is_ok());

    let many = tensor(vec![0.5f32; 1024])?;
    println!("saved: {} by ours, {} by the usual one", slope(&ours, &many)?.1, slope(&usual, &many)?.1);
    Ok(())
}
