//! Training within a budget on several ranks, and with what they hold in blocks: what is resident, and what is saved and restored. Part of jobs that `training` starts.

use tonnage::data::Dataset;
use tonnage::nn::{Activation, Dense, Parameters, Sequential};
use tonnage::optim::Optimizer;
use tonnage::train::{Checkpoints, Fit, Go, Sharding};
use tonnage::world::{self, World};
use tonnage::{Bytes, Result, Tensor, memory};

use crate::training::{bits, loss, perceptron, points, trained};

/// What is resident at most: what was predicted, and 8 MiB, beside what the process took before, in which is what MPI took as it started.
pub fn resident(world: &World) -> Result<()> {
    let most = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().unwrap();
        Bytes::new(kilobytes << 10)
    };
    let engine = world::engine_memory();
    assert!(engine > Bytes::ZERO && engine < Bytes::mib(64), "{engine}");
    let wide = || (0..3).fold(Sequential::new(), |all, _| all.then(Dense::new(1500)));
    let data = Dataset::of((tonnage::ones([192, 1500])?, tonnage::zeros([192, 1500])?))?;
    let apart = |said: &Tensor, truth: &Tensor| said.squared_difference(truth);
    for sharding in Sharding::ALL {
        // The most so far is what is resident now, without what earlier calls left for later ones.
        memory::empty_cache("cpu:0")?;
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let (before, fit) = (most(), Fit::new(1, 16).across(world).shard(sharding));
        let made = fit.run(&wide(), &Optimizer::adam(0.01), &data, apart, |_| Go::On)?;
        let taken = most().saturating_sub(before);
        let allowed = made.predicted + Bytes::mib(8);
        assert!(made.predicted > Bytes::mib(24) && taken <= allowed, "{taken} of {allowed}");
        assert!(taken > Bytes::mib(16), "{taken}: what was taken before was left for it");
    }
    Ok(())
}

/// Parameters are most of what it takes.
fn wide() -> Sequential {
    let layers =
        (0..8).fold(Sequential::new(), |all, _| all.then(Dense::new(131)).then(Activation::Tanh));
    layers.then(Dense::new(4))
}

pub fn within_budgets(world: &World) -> Result<()> {
    let (data, fit, adam) =
        (points(48, &[6]), Fit::new(1, 8).across(world), || Optimizer::adam(0.02));
    let leasts =
        fit.clone().budget(Bytes::new(1).into()).shardings(&wide(), &adam(), &data, loss)?;
    let least = |of: Sharding| leasts.iter().find(|plan| plan.sharding == of).unwrap().peak;
    assert!(least(Sharding::Replicas) > least(Sharding::State), "{leasts:?}");
    assert!(least(Sharding::State) > least(Sharding::Weights), "{leasts:?}");
    let run = trained(&fit.budget(least(Sharding::Weights).into()), wide, adam, &data)?.0;
    assert_eq!((run.sharding, run.measured), (Sharding::Weights, run.predicted));
    assert!(run.predicted + run.data <= least(Sharding::Weights), "{run:?}");
    Ok(())
}

pub fn saves_blocks(world: &World) -> Result<()> {
    let parent = std::os::unix::process::parent_id();
    let folder = std::env::temp_dir().join(format!("tonnage-blocks-{parent}"));
    let (data, fit) = (points(101, &[6]), Fit::new(3, 8).seed(5));
    let adam = || Optimizer::adam(0.02);
    let whole = trained(&fit.clone().accumulate(world.size()), perceptron, adam, &data)?;
    let saving = fit.checkpoints(Checkpoints::new(&folder), 0).across(world);
    // Whatever one run holds in blocks, the next goes on from what it saved.
    let runs = [(Sharding::Weights, 3), (Sharding::State, 6), (Sharding::Weights, 100)];
    for (sharding, steps) in runs {
        let fit = saving.clone().resume().shard(sharding).at_most(steps);
        let here = trained(&fit, perceptron, adam, &data)?;
        assert_eq!(here.0.sharding, sharding);
        if steps == 100 {
            assert_eq!((here.1, here.0.position), (whole.1.clone(), whole.0.position));
        }
        world.engine().barrier("test")?;
    }
    if world.rank() == 0 {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    Ok(())
}

/// What ranks hold in blocks is saved and restored by each from what it holds: no bytes of it go to others, and none are held twice but while they are read.
pub fn saves_gather_nothing(world: &World) -> Result<()> {
    const FEW: Bytes = Bytes::new(64 << 10);
    let parent = std::os::unix::process::parent_id();
    let folder = std::env::temp_dir().join(format!("tonnage-held-{parent}"));
    let dense = |all: Sequential, _| all.then(Dense::new(301));
    let (model, adam) = ((0..3).fold(Sequential::new(), dense), Optimizer::adam(0.01));
    let fit = Fit::new(1, 8).across(world).shard(Sharding::Weights);
    let made = fit.run(&model, &adam, &points(64, &[301]), loss, |_| Go::On)?;
    let of_model = model.parameters().into_iter().map(|p| p.variable.clone());
    let all = of_model.chain(adam.variables());
    let named: Vec<_> = all.enumerate().map(|(i, v)| (format!("{i}"), v)).collect();
    let checkpoints = Checkpoints::new(&folder).across(world);
    let taken = |run: &dyn Fn() -> Result<()>| -> Result<Bytes> {
        memory::reset_peak("cpu:0")?;
        let (before, sent) = (memory::info("cpu:0")?.in_use, world.engine().sent());
        run()?;
        let sent = Bytes::new(world.engine().sent() - sent);
        assert!(sent < FEW, "{sent}");
        Ok(memory::info("cpu:0")?.peak.saturating_sub(before))
    };
    let saved = bits(&model, &adam);
    let save = taken(&|| checkpoints.save(&named, made.position))?;
    named.iter().try_for_each(|(_, v)| v.assign(&tonnage::full(0, v.ty().dtype, v.ty().shape)?))?;
    assert!(bits(&model, &adam) != saved);
    let restore = taken(&|| checkpoints.restore(&named).map(drop))?;
    assert!(bits(&model, &adam) == saved);
    let whole: u64 = named.iter().map(|(_, v)| v.ty().bytes("test").unwrap().get()).sum();
    let share = Bytes::new(whole / world.size() as u64);
    // The last block is made as long as the others, one variable after another.
    let block = Bytes::of((301usize * 301).div_ceil(world.size()) * 4);
    let allowed = share + block + FEW;
    assert!(save < FEW && restore < allowed, "{save} and {restore} of {share}");
    world.engine().barrier("test")?;
    if world.rank() == 0 {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    world.engine().barrier("test")
}
