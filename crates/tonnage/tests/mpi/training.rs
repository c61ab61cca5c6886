//! Data parallel training: on any number of ranks it has the bits of one process that accumulates as many batches; ranks that are about to do different
//! things are told so; a rank that fails ends all (`faults` has those that die or stop).

use tonnage::data::{Dataset, Feed, Pipeline};
use tonnage::nn::{
    Activation, BatchNorm, Convolution, Dense, Dropout, Embedding, Flatten, Layer, LayerNorm, Mode,
    MultiHeadAttention, Sequential,
};
use tonnage::optim::Optimizer;
use tonnage::train::{Checkpoints, Fit, Go, History, Progress, Sharding};
use tonnage::world::{self, World};
use tonnage::{Conv, DType, Elementwise, Part, RandomKey, Result, Tensor, parameters, set_seed};

use crate::sharded::{resident, saves_blocks, saves_gather_nothing, within_budgets};
use crate::{counts, ended_badly, ended_well, is_rank, is_soak, name, on_ranks, start};

#[test]
fn soak_ranks_have_the_bits_of_one_process_that_accumulates() {
    on_ranks(name!(), counts(), |world| {
        equal_bits(world).unwrap();
        // What does not depend on how many ranks there are. A job takes a second to start.
        match world.size() {
            2 => within_budgets(world).unwrap(),
            3 => {
                let others = [
                    saves_blocks,
                    saves_gather_nothing,
                    every_row_once,
                    goes_on,
                    one_stops,
                    norms,
                    resident,
                ];
                for run in others {
                    // What came before may have drawn on one rank alone.
                    set_seed(7);
                    run(world).unwrap();
                }
            }
            _ => {}
        }
    });
}

/// In what rank 1 differs, what is said of it, and by how many of three ranks.
const DIFFERENCES: [(&str, &str, usize); 5] = [
    ("seed", "the random state (`set_seed`) of rank 1 is not that of rank 0", 3),
    ("budget", "the budget of rank 1 is not that of rank 0", 3),
    ("too small a budget", "rank 1 cannot start: ", 2),
    ("model", "the plan of a step of rank 1 is not that of rank 0", 3),
    ("instruction set", "the instruction set of rank 1 is not that of rank 0", 3),
];

#[test]
fn ranks_that_differ_are_told_before_the_first_step() {
    let all = |world: &World, _: &str| {
        DIFFERENCES.iter().for_each(|(in_what, ..)| differs(world, in_what))
    };
    if is_rank(all) {
        return;
    }
    let Some(made) = start(name!(), "", 3) else { return };
    let said = ended_well(&made, "differences");
    for (in_what, words, times) in DIFFERENCES {
        let of_it =
            |line: &&str| line.contains(&format!("{in_what}: rank ")) && line.contains(words);
        assert_eq!(said.lines().filter(of_it).count(), times, "{in_what}: {said}");
    }
}

#[test]
fn a_rank_whose_loss_is_not_finite_ends_all() {
    if is_rank(|world, _| drop(goes_wrong(world))) {
        return;
    }
    let Some(made) = start(name!(), "", 3) else { return };
    let said = ended_badly(&made, "NaN");
    assert!(said.contains("rank 1: fit: the loss of step 1 is not finite"), "{said}");
}

pub type Rows = Dataset<(Tensor, Tensor)>;

/// Rows of numbers, and one of four classes.
pub fn points(rows: usize, shape: &[usize]) -> Rows {
    let sizes: Vec<usize> = [&[rows], shape].concat();
    let x = RandomKey::new(3).normal(sizes, DType::F32).unwrap();
    let y = RandomKey::new(4).int(0, 4, [rows], DType::I64).unwrap();
    let all = tonnage::range(0i64, rows as i64, 1).unwrap();
    Dataset::of(Dataset::of((x, y)).unwrap().rows(&all).unwrap()).unwrap()
}

/// A table that gradients reach by rows: `things` in it, of which a batch touches some.
struct Table {
    things: usize,
    rows: Embedding,
    out: Dense,
}

parameters!(Table { rows, out });

impl Layer for Table {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let number =
            x.slice(&[Part::ALL, Part::from(0..1)])?.abs()?.mul(1000.0)?.cast(DType::I64)?;
        let number = number.squeeze([1])?.modulo(self.things as i64)?;
        self.out.forward(&Dropout(0.2).forward(&self.rows.forward(&number, mode)?, mode)?, mode)
    }
}

pub fn perceptron() -> Sequential {
    // Lengths that no number of ranks divides.
    let hidden = Sequential::new().then(Dense::new(23)).then(Activation::Tanh);
    hidden.then(Dropout(0.3)).then(Dense::new(4))
}

fn pictures() -> Sequential {
    let features =
        Sequential::new().then(Convolution::new(4, &[3, 3], Conv::same())).then(Activation::Relu);
    features.then(Flatten).then(Dropout(0.2)).then(Dense::new(4))
}

/// A transformer over rows of numbers, each a token: it says of which class the row is.
struct Transformer {
    tokens: Embedding,
    norm: LayerNorm,
    attention: MultiHeadAttention,
    wide: Dense,
    narrow: Dense,
    out: Dense,
}

parameters!(Transformer { tokens, norm, attention, wide, narrow, out });

impl Layer for Transformer {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let tokens = x.abs()?.mul(10.0)?.cast(DType::I64)?.modulo(13i64)?;
        let x = self.tokens.forward(&tokens, mode)?;
        let x = (&x + self.attention.forward(&self.norm.forward(&x, mode)?, mode)?)?;
        let wide = Dropout(0.2).forward(&self.wide.forward(&x, mode)?.gelu()?, mode)?;
        let x = (&x + self.narrow.forward(&wide, mode)?)?;
        self.out.forward(&x.mean(1)?, mode)
    }
}

fn transformer() -> Transformer {
    Transformer {
        tokens: Embedding::new(13, 10),
        norm: LayerNorm::new(),
        attention: MultiHeadAttention::new(2).causal(),
        wide: Dense::new(21),
        narrow: Dense::new(10),
        out: Dense::new(4),
    }
}

pub fn loss(logits: &Tensor, labels: &Tensor) -> Result<Tensor> {
    logits.sparse_cross_entropy(labels)
}

/// Everything that training changes, bit by bit.
pub fn bits(model: &dyn Layer, optimizer: &Optimizer) -> Vec<Vec<u32>> {
    let of_model = model.parameters().into_iter().map(|p| p.variable.clone());
    let all = of_model.chain(optimizer.variables());
    let floats = |v: tonnage::Variable| v.read().unwrap().cast(DType::F32).unwrap();
    all.map(|v| floats(v).to_vec::<f32>().unwrap().iter().map(|x| x.to_bits()).collect()).collect()
}

/// Trains a model from the start.
pub fn trained<M: Layer>(
    fit: &Fit,
    model: impl Fn() -> M,
    optimizer: impl Fn() -> Optimizer,
    data: &impl Feed,
) -> Result<(History, Vec<Vec<u32>>)> {
    set_seed(7);
    let (model, optimizer) = (model(), optimizer());
    let history = fit.run(&model, &optimizer, data, loss, |_| Go::On)?;
    let bits = bits(&model, &optimizer);
    Ok((history, bits))
}

/// How long a job is whose bits are compared. In the soak all take 100 steps.
#[derive(Clone, Copy, PartialEq)]
enum Length {
    /// 36 steps of two ranks, 12 of more: epochs end three times at least.
    Long,
    /// 8 steps.
    Short,
}

impl Length {
    fn steps(self, world: &World) -> u64 {
        match (self, world.size()) {
            _ if is_soak() => 100,
            (Length::Long, 2) => 36,
            (Length::Long, _) => 12,
            (Length::Short, _) => 8,
        }
    }
}

/// The same on all ranks, however much they hold in blocks, and in one process that accumulates: so many steps.
fn check<M: Layer>(
    world: &World,
    (name, length): (&str, Length),
    model: impl Fn() -> M,
    optimizer: impl Fn() -> Optimizer,
    data: &impl Feed,
) -> Result<()> {
    let (is_soak, steps) = (is_soak(), length.steps(world));
    let epochs = steps.div_ceil(12 / world.size() as u64);
    let fit = Fit::new(epochs, 8).seed(5).at_most(steps);
    // Rank 0 is the one process, and the others wait to hear what came of it.
    let alone = match world.rank() {
        0 => {
            let alone = fit.clone().accumulate(world.size());
            let (alone, one) = trained(&alone, &model, &optimizer, data)?;
            format!("{:?} {:?} {} {one:?}", alone.losses, alone.position, alone.steps)
        }
        _ => String::new(),
    };
    // What is planned for as many ranks that are not there is what those that are there send.
    let on_paper = match length == Length::Long || is_soak {
        true => {
            let fit = fit.clone().across(&World::on_paper(world.size()));
            fit.shardings(&model(), &optimizer(), data, loss)?
        }
        false => Vec::new(),
    };
    // What differs in the data or the optimizer alone is the same on two ranks and on four.
    let is_other = ["clipped", "pipeline"].contains(&name) || name.starts_with("sgd");
    let shardings = if is_other && world.size() != 3 && !is_soak { 1 } else { 4 };
    assert!(on_paper.is_empty() || on_paper.len() == shardings, "{on_paper:?}");
    for sharding in Sharding::ALL.into_iter().take(shardings) {
        let (name, fit) =
            (format!("{name}, {sharding}"), fit.clone().across(world).shard(sharding));
        let (here, own) = trained(&fit, &model, &optimizer, data)?;
        assert_eq!((here.predicted, here.sharding), (here.measured, sharding), "{name}");
        assert_eq!(here.steps, steps, "{name}");
        let here_said = format!("{:?} {:?} {} {own:?}", here.losses, here.position, here.steps);
        let all = world.gather("test", &hash(&here_said).to_le_bytes());
        assert!(all.iter().all(|other| other == &all[0]), "{name}: ranks differ");
        assert!(world.rank() != 0 || here_said == alone, "{name}: not the bits of one process");
        // Of ranks that send different amounts, as those with a shorter block do, the most is predicted.
        let sent = world.gather("test", &here.sent.get().to_le_bytes());
        let sent = sent.into_iter().map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
        let predicted = here.predicted_sent.get() * here.steps;
        assert_eq!(sent.max(), Some(predicted), "{name}");
        let mut of_paper = on_paper.iter().filter(|plan| plan.sharding == sharding);
        assert!(of_paper.all(|plan| plan.sent == here.predicted_sent), "{name}");
    }
    Ok(())
}

fn hash(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn equal_bits(world: &World) -> Result<()> {
    let adam = || Optimizer::adam(0.02);
    // With rows that fill no batch, and batches that fill no step.
    let data = points(101, &[6]);
    check(world, ("mlp", Length::Long), perceptron, adam, &data)?;
    let clipped = || Optimizer::adamw(0.02, 0.01).clip_by_global_norm(0.5);
    check(world, ("clipped", Length::Short), perceptron, clipped, &data)?;
    check(world, ("cnn", Length::Long), pictures, adam, &points(101, &[8, 8, 1]))?;
    check(world, ("gpt", Length::Long), transformer, adam, &data)?;
    let batches = Pipeline::rows(&data).shuffle(64, RandomKey::new(1)).batch(8);
    check(world, ("pipeline", Length::Short), perceptron, adam, &batches)?;
    // Few rows of a large table, and most rows of a small one.
    for (things, steps) in [(1000, Length::Long), (20, Length::Short)] {
        let table = || Table { things, rows: Embedding::new(things, 3), out: Dense::new(4) };
        check(world, (&format!("table of {things}"), steps), table, adam, &data)?;
        let sgd = || Optimizer::sgd(0.1);
        check(world, (&format!("sgd, table of {things}"), Length::Short), table, sgd, &data)?;
    }
    // Several batches on each rank: all ranks have the same.
    let fit = Fit::new(3, 4).seed(5).accumulate(2).across(world);
    let (history, own) = trained(&fit, perceptron, adam, &data)?;
    assert_eq!(history.steps, 3 * (25 / 2 / world.size()) as u64);
    let text: Vec<u8> = own.iter().flatten().flat_map(|bits| bits.to_le_bytes()).collect();
    assert!(world.gather("test", &text).iter().all(|other| *other == text));
    Ok(())
}

/// Means over batches are those of one process too, which sees the batches of all ranks one after another.
fn norms(world: &World) -> Result<()> {
    let normed =
        || Sequential::new().then(Dense::new(9)).then(BatchNorm::new()).then(Dense::new(4));
    check(world, ("norm", Length::Short), normed, || Optimizer::adam(0.02), &points(101, &[6]))
}

fn every_row_once(world: &World) -> Result<()> {
    // Each row is its own number, so that what was seen can be counted.
    let rows = 8 * 3 * world.size();
    let x = tonnage::range(0i64, rows as i64, 1)?;
    let data = Dataset::of((x.clone(), x))?;
    let pipeline = Pipeline::rows(&data).shuffle(16, RandomKey::new(1)).batch(8);
    let share =
        tonnage::data::Share { rank: world.rank() as u64, ranks: world.size() as u64, batches: 1 };
    let feeds: [&dyn Feed; 2] = [&data, &pipeline];
    for feed in feeds {
        for after in [0, world.size() as u64] {
            let mut seen = vec![0u8; rows];
            for batch in feed.epoch_of(share, 8, 1, 2, after)? {
                batch?.0.to_vec::<i64>()?.iter().for_each(|row| seen[*row as usize] += 1);
            }
            let all = world.gather("test", &seen);
            let times = |row: usize| all.iter().map(|seen| u32::from(seen[row])).sum::<u32>();
            assert!((0..rows).all(|row| times(row) <= 1));
            let count: u32 = (0..rows).map(times).sum();
            assert_eq!(count as usize, rows - 8 * after as usize);
        }
    }
    Ok(())
}

fn goes_on(world: &World) -> Result<()> {
    let folder =
        std::env::temp_dir().join(format!("tonnage-ranks-{}", std::os::unix::process::parent_id()));
    let data = points(101, &[6]);
    let fit = Fit::new(3, 8).seed(5);
    let adam = || Optimizer::adam(0.02);
    let whole = trained(&fit.clone().accumulate(world.size()), perceptron, adam, &data)?;
    // One process begins, which is rank 0 alone; all go on, and rank 0 saves.
    let saving = fit.clone().checkpoints(Checkpoints::new(&folder), 0);
    if world.rank() == 0 {
        trained(&saving.clone().accumulate(world.size()).at_most(3), perceptron, adam, &data)?;
    }
    world.engine().barrier("test")?;
    let here = trained(&saving.clone().across(world).resume(), perceptron, adam, &data)?;
    assert_eq!(here.1, whole.1);
    assert_eq!(here.0.position, whole.0.position);
    drop(saving);
    world.engine().barrier("test")?;
    if world.rank() == 0 {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    world.engine().barrier("test")?;
    // All begin, and one process goes on.
    let saving = fit.checkpoints(Checkpoints::new(&folder), 0);
    trained(&saving.clone().across(world).at_most(3), perceptron, adam, &data)?;
    if world.rank() == 0 {
        let alone = saving.clone().accumulate(world.size()).resume();
        let here = trained(&alone, perceptron, adam, &data)?;
        assert_eq!(here.1, whole.1);
        drop((saving, alone));
        std::fs::remove_dir_all(&folder).unwrap();
    }
    Ok(())
}

/// Rank 1 begins with something else. All say what the error is.
fn differs(world: &World, program: &str) {
    let is_other = world.rank() == 1;
    if program == "instruction set" {
        // What a processor has cannot be changed here: it is told as another's would be.
        let own = [("instruction set", format!("{is_other}"))];
        let error = world::agree(world, "fit", &own).unwrap_err();
        println!("{program}: rank {}: {error}", world.rank());
        return;
    }
    let budget = match (program, is_other) {
        ("budget", true) => "2MiB",
        ("too small a budget", true) => "1KiB",
        _ => "1MiB",
    };
    set_seed(if program == "seed" && is_other { 8 } else { 7 });
    let (mut model, optimizer, data) = (perceptron(), Optimizer::adam(0.02), points(64, &[6]));
    if program == "model" && is_other {
        model = model.then(Activation::Tanh);
    }
    let fit = Fit::new(1, 8).budget(budget.parse().unwrap()).across(world);
    let made = fit.run(&model, &optimizer, &data, loss, |_| Go::On);
    println!("{program}: rank {}: {}", world.rank(), made.unwrap_err());
}

fn one_stops(world: &World) -> Result<()> {
    let (model, optimizer, data) = (perceptron(), Optimizer::adam(0.02), points(320, &[6]));
    let last = world.size() - 1;
    let after = |told: &Progress| match world.rank() == last && told.position.step == 2 {
        true => Go::Stop,
        false => Go::On,
    };
    let history = Fit::new(9, 8).across(world).run(&model, &optimizer, &data, loss, after)?;
    assert_eq!(history.position.step, 2);
    Ok(())
}

/// Rank 1 has a NaN in its data.
fn goes_wrong(world: &World) -> Result<History> {
    let (model, optimizer, data) = (perceptron(), Optimizer::adam(0.02), points(320, &[6]));
    let (x, y) = data.whole().clone();
    let x = if world.rank() == 1 { x.mul(f64::NAN)? } else { x };
    let data = Dataset::of((x, y))?;
    Fit::new(9, 8).across(world).run(&model, &optimizer, &data, loss, |_| Go::On)
}
