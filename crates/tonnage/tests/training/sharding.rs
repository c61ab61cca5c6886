//! Steps that are planned for ranks which are not there: what each holds, sends, and how long it takes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use tonnage::data::Dataset;
use tonnage::nn::{Dense, Layer, Parameters, Sequential};
use tonnage::optim::{Adafactor, LossScale, Optimizer};
use tonnage::train::{Fit, Go, ShardedPlan, Sharding};
use tonnage::world::World;
use tonnage::{Bytes, ErrorKind, Result, Tensor, zeros};

fn loss(said: &Tensor, truth: &Tensor) -> Result<Tensor> {
    said.squared_difference(truth)
}

fn layers(count: usize, width: usize) -> Sequential {
    let dense = |all: Sequential, _| all.then(Dense::new(width).no_bias());
    (0..count).fold(Sequential::new(), dense)
}

fn rows(width: usize) -> Dataset<(Tensor, Tensor)> {
    Dataset::of((zeros([64, width]).unwrap(), zeros([64, width]).unwrap())).unwrap()
}

fn plans(fit: &Fit, model: &Sequential, optimizer: &Optimizer, width: usize) -> Vec<ShardedPlan> {
    fit.shardings(model, optimizer, &rows(width), loss).unwrap()
}

fn least(fit: &Fit, model: &Sequential, optimizer: &Optimizer, width: usize) -> f64 {
    let made =
        fit.clone().budget(Bytes::new(1).into()).predict(model, optimizer, &rows(width), loss);
    match made.unwrap_err().kind() {
        ErrorKind::OverBudget { least: Some(least), .. } => least.get() as f64,
        other => panic!("{other}"),
    }
}

#[test]
fn eight_layers_take_so_many_times_their_parameters() {
    let _context = crate::common::own_context();
    let (model, adam) = (layers(8, 2048), Optimizer::adam(0.001));
    let parameters = (8 * 2048 * 2048 * 4) as f64;
    let on = |ranks: usize| Fit::new(1, 8).across(&World::on_paper(ranks));
    let replicas = plans(&on(2), &model, &adam, 2048)[0];
    assert_eq!(replicas.sharding, Sharding::Replicas);
    let times = replicas.peak.get() as f64 / parameters;
    assert!((3.0..3.5).contains(&times), "replicas on 2 ranks: {times}");
    let all = on(4).shard(Sharding::Weights);
    let times = least(&all, &model, &adam, 2048) / parameters;
    assert!((0.75..1.4).contains(&times), "all sharded on 4 ranks: {times}");
    assert_eq!(model.count(), 8 * 2048 * 2048);
    // Planning took no parameter, and left the model as it was.
    assert!(model.parameters().iter().all(|p| p.variable.bytes().is_zero()));
}

#[test]
fn more_ranks_hold_less_each_and_the_traffic_is_that_of_the_sums() {
    let _context = crate::common::own_context();
    let (width, model, adam) = (256, layers(4, 256), Optimizer::adam(0.001));
    let bytes = (4 * width * width * 4) as u64;
    for ranks in [2, 4, 8] {
        let all = plans(&Fit::new(1, 8).across(&World::on_paper(ranks)), &model, &adam, width);
        assert_eq!(all.iter().map(|plan| plan.sharding).collect::<Vec<_>>(), Sharding::ALL);
        let share = bytes * (ranks as u64 - 1) / ranks as u64;
        // Sums of gradients and new parameters; or sums, and parameters once or again in the backward pass.
        let sent: Vec<u64> = all.iter().map(|plan| plan.sent.get()).collect();
        assert_eq!(sent[..3], [2 * share, 3 * share, 2 * share], "{ranks} ranks");
        assert!(sent[3] == 2 * share || sent[3] == 3 * share, "{sent:?} on {ranks} ranks");
        assert!(all[1].peak < all[0].peak && all[3].peak < all[0].peak, "{all:?}");
        assert!(all.iter().all(|plan| plan.fits && plan.seconds > 0.0));
    }
}

#[test]
fn a_budget_takes_the_quickest_that_fits_and_a_refusal_says_how_many_ranks_would_do() {
    let _context = crate::common::own_context();
    let (width, model, adam) = (96, layers(6, 96), Optimizer::adam(0.001));
    let fit = Fit::new(1, 8).across(&World::on_paper(2));
    let leasts = plans(&fit.clone().budget(Bytes::new(1).into()), &model, &adam, width);
    assert!(leasts.iter().all(|plan| !plan.fits));
    for plan in &leasts {
        let within = fit.clone().budget(plan.peak.into());
        let mut fitting = plans(&within, &model, &adam, width);
        fitting.retain(|plan| plan.fits);
        assert!(fitting.iter().any(|own| own.sharding == plan.sharding));
        let seconds = fitting.iter().map(|plan| plan.seconds).fold(f64::INFINITY, f64::min);
        let taken = within.predict(&model, &adam, &rows(width), loss).unwrap();
        assert!(taken.peak() <= plan.peak);
        assert_eq!(taken.fitted.map(|fitted| fitted.seconds), Some(seconds));
    }
    let least = leasts.iter().map(|plan| plan.peak).min().unwrap();
    let tight = fit.clone().budget(Bytes::new(least.get() - 1).into());
    let said = tight.predict(&model, &adam, &rows(width), loss).unwrap_err().to_string();
    assert!(said.contains(&format!("({} bytes)", least.get())), "{said}");
    assert!(said.contains("with 4 ranks "), "{said}");
    // What no number of ranks makes fit names none.
    let none =
        fit.budget(Bytes::new(1).into()).predict(&model, &adam, &rows(width), loss).unwrap_err();
    assert!(!none.to_string().contains("ranks"), "{none}");
}

#[test]
fn what_cannot_be_stepped_in_blocks_stays_whole() {
    let _context = crate::common::own_context();
    let world = World::on_paper(4);
    let fit = Fit::new(1, 8).across(&world);
    let whole = Optimizer::new(Adafactor::default(), 0.01);
    let names = |plans: Vec<ShardedPlan>| plans.iter().map(|p| p.sharding).collect::<Vec<_>>();
    assert_eq!(names(plans(&fit, &layers(2, 32), &whole, 32)), [Sharding::Replicas]);
    let error = fit.clone().shard(Sharding::State).predict(&layers(2, 32), &whole, &rows(32), loss);
    assert!(error.unwrap_err().to_string().contains("state sharded"));
    // Whether a scaled step is made depends on all gradients.
    let scaled = fit.loss_scale(LossScale::new().unwrap());
    let of_scaled = names(plans(&scaled, &layers(2, 32), &Optimizer::adam(0.01), 32));
    assert_eq!(of_scaled, [Sharding::Replicas, Sharding::State]);
}

#[test]
fn ranks_on_paper_run_nothing() {
    let _context = crate::common::own_context();
    let (model, adam) = (layers(1, 8), Optimizer::adam(0.01));
    let fit = Fit::new(1, 8).across(&World::on_paper(2));
    let error = fit.run(&model, &adam, &rows(8), loss, |_| Go::On).unwrap_err().to_string();
    assert!(error.contains("on paper"), "{error}");
    let said = model.forward(&zeros([1, 8]).unwrap(), tonnage::nn::Mode::Inference);
    assert!(said.is_ok());
}
