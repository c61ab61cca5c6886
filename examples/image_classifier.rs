//! An image classifier: 1,797 handwritten digits of 8 x 8 pixels, two dense layers, trained under a budget that is given in bytes.
//!
//! `cargo run --release -p tonnage-examples image_classifier` prints
//!
//!     a step of 64 pictures will take ... of a budget of 256.00 KiB
//!     epoch 1: loss 1....
//!     epoch 5: loss 0.1...
//!     accuracy 9...% on what was held out; predicted and measured are the same: true

use tonnage::data::Dataset;
use tonnage::io::parse_idx;
use tonnage::nn::{Activation, Dense, Flatten, Sequential};
use tonnage::optim::Optimizer;
use tonnage::train::{Fit, Go, evaluate};
use tonnage::{Bytes, DType, Elementwise, Result, Tensor, set_seed};

pub fn main() -> Result<()> {
    set_seed(1);
    let pictures = parse_idx(include_bytes!("../crates/cli/data/digits-images.idx"))?;
    let labels = parse_idx(include_bytes!("../crates/cli/data/digits-labels.idx"))?;
    let data = Dataset::of(((pictures.cast(DType::F32)? / 16.0)?, labels.cast(DType::I64)?))?;
    let (learn, held_out) = data.hold_out(10)?;

    let model = Sequential::new().then(Flatten).then(Dense::new(32)).then(Activation::Relu).then(Dense::new(10));
    let optimizer = Optimizer::adam(0.01);
    let loss = |logits: &Tensor, labels: &Tensor| logits.sparse_cross_entropy(labels);
    let budget = "256KiB".parse::<Bytes>()?;
    let fit = Fit::new(5, 64).budget(budget.into());
    let plan = fit.predict(&model, &optimizer, &learn, loss)?;
    println!("a step of 64 pictures will take {} of a budget of {budget}", plan.peak());

    let history = fit.run(&model, &optimizer, &learn, loss, |_| Go::On)?;
    for (epoch, loss) in (1..).zip(&history.losses).filter(|(epoch, _)| epoch % 4 == 1) {
        println!("epoch {epoch}: loss {loss:.3}");
    }
    let found = evaluate(&model, &held_out, 64)?;
    let same = history.predicted == history.measured;
    println!("accuracy {:.1}% on what was held out; predicted and measured are the same: {same}", found.accuracy * 100.0);
    Ok(())
}
