//! Files larger than memory: passes over a large npy file under a limit, a stack of layers whose weights stay in files, the same in training, a table that is trained by rows, and a small tensor out of a
//! large file. `cargo bench -p tonnage --bench files [folder] [GiB of the large file]`; the folder needs that much room twice, and is left as it was.
//!
//! Times are against reading the same file once in pieces of 1 MiB on one thread, right before, with the system's cache as it is then: warm where the machine
//! has the memory for it. Resident is the most that the system counted of this process while a pass ran, above what it was before.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tonnage::io::{FileTensor, SafeTensors, TensorFile, save_npy, save_safetensors};
use tonnage::optim::{Adagrad, Optimizer};
use tonnage::{
    Bytes, DType, Elementwise, GradientTape, Result, Tensor, Variable, function, memory,
    random_normal, random_uniform, variables_in_files,
};

/// Reads a file once and throws it away.
fn read_once(path: &Path) -> std::io::Result<Duration> {
    let start = Instant::now();
    let (mut file, mut piece) = (File::open(path)?, vec![0; 1 << 20]);
    while file.read(&mut piece)? > 0 {}
    Ok(start.elapsed())
}

/// How long something takes, and how much more was resident meanwhile at most.
fn watched<R>(f: impl FnOnce() -> Result<R>) -> Result<(R, Duration, Bytes)> {
    let now = || memory::resident().unwrap_or(Bytes::ZERO);
    let (before, most, done) = (now(), AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                most.fetch_max(now().get(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let start = Instant::now();
        let made = f();
        let took = start.elapsed();
        done.store(true, Ordering::Relaxed);
        let most = Bytes::new(most.load(Ordering::Relaxed).max(now().get()));
        Ok((made?, took, most.saturating_sub(before)))
    })
}

/// Sum, mean and a product with a small matrix, of a file of so many GiB, under 64 MiB.
fn passes(folder: &Path, gib: usize) -> Result<()> {
    const COLUMNS: usize = 4096;
    let path = folder.join("large.npy");
    let rows = (gib << 30) / (4 * COLUMNS);
    let start = Instant::now();
    save_npy(&path, &random_uniform([rows, COLUMNS], DType::F32)?)?;
    println!("{gib} GiB written in {:.1?}, a piece at a time", start.elapsed());
    let x = FileTensor::npy(&path)?.lazy();
    let small = (random_normal([COLUMNS, 8], DType::F32)? + 0.0)?;
    memory::set_limit("cpu:0", Some(Bytes::mib(64)))?;
    type Pass<'a> = (&'a str, Box<dyn Fn() -> Result<Tensor> + 'a>);
    let all: [Pass<'_>; 3] = [
        ("sum", Box::new(|| x.sum_all())),
        ("mean of rows", Box::new(|| x.mean(1))),
        ("matmul", Box::new(|| x.matmul(&small))),
    ];
    for (name, pass) in all {
        for _ in 0..2 {
            let once = read_once(&path).unwrap_or_default();
            let (_, took, resident) = watched(&pass)?;
            let ratio = took.as_secs_f64() / once.as_secs_f64();
            println!(
                "{name:>14}: {took:.2?}, {ratio:.2} of reading once ({once:.2?}), {resident} more resident"
            );
        }
    }
    memory::set_limit("cpu:0", None)?;
    std::fs::remove_file(&path).unwrap_or_default();
    Ok(())
}

/// Layers of 4096 x 4096 whose weights stay in files, on a batch of 64.
fn layers(folder: &Path) -> Result<()> {
    const WIDTH: usize = 4096;
    const COUNT: usize = 16;
    let paths: Vec<PathBuf> = (0..COUNT).map(|i| folder.join(format!("w{i}.npy"))).collect();
    for path in &paths {
        save_npy(path, &(random_normal([WIDTH, WIDTH], DType::F32)? * (1.0 / 64.0))?)?;
    }
    let x = tonnage::tensor(random_normal([64, WIDTH], DType::F32)?.to_vec2::<f32>()?)?;
    type Open = fn(&PathBuf) -> Result<Tensor>;
    let ways: [(&str, Open); 3] = [
        ("in memory", |path| FileTensor::npy(path)?.read()),
        ("read", |path| Ok(FileTensor::npy(path)?.lazy())),
        ("mapped", |path| FileTensor::npy(path)?.mapped()),
    ];
    for (name, open) in ways {
        let weights = paths.iter().map(open).collect::<Result<Vec<Tensor>>>()?;
        let model = function(move |x: Tensor| {
            weights.iter().try_fold(x, |x, w: &Tensor| x.matmul(w)?.relu())
        });
        // Those in memory are there as a whole.
        let model = if name == "in memory" { model } else { model.budget(Bytes::mib(96))? };
        let plan = model.plan(&x)?;
        let (peak, reads) = (plan.peak(), plan.reads());
        println!("{COUNT} layers of {WIDTH}, {name}: peak {peak} predicted, {reads} from files");
        for _ in 0..5 {
            let once: Duration = paths.iter().filter_map(|path| read_once(path).ok()).sum();
            let (_, took, resident) = watched(|| model.call(x.clone()))?;
            println!("{name:>14}: {took:.3?} (reading once: {once:.3?}), {resident} more resident");
        }
    }
    paths.iter().for_each(|path| std::fs::remove_file(path).unwrap_or_default());
    Ok(())
}

/// Steps of Adam over the same layers, with weights and moments in memory and in files.
fn training() -> Result<()> {
    const WIDTH: usize = 4096;
    const COUNT: usize = 8;
    let x = tonnage::tensor(random_normal([64, WIDTH], DType::F32)?.to_vec2::<f32>()?)?;
    for name in ["in memory", "in files"] {
        let make = || -> Result<Vec<Variable>> {
            let one = || random_normal([WIDTH, WIDTH], DType::F32)? * (1.0 / 64.0);
            (0..COUNT).map(|i| Variable::new(&format!("w{i}"), one()?)).collect()
        };
        let weights = if name == "in files" { variables_in_files(make)? } else { make()? };
        let optimizer = Optimizer::adam(1e-4);
        let step = function(|x: Tensor| {
            let mut tape = GradientTape::new();
            let h = weights.iter().try_fold(x, |x, w| x.matmul(&w.read()?)?.tanh())?;
            let loss = h.square()?.mean_all()?;
            optimizer.apply(&weights, &tape.gradient(&loss, &weights)?)?;
            Ok(loss)
        });
        let step = if name == "in files" { step.budget(Bytes::mib(96))? } else { step };
        step.call(x.clone())?; // moments have values from here on
        let plan = step.plan(&x)?;
        println!(
            "training {COUNT} layers of {WIDTH}, {name}: peak {} predicted, {} read, {} written, {:.2} s expected",
            plan.peak(),
            plan.reads(),
            plan.writes(),
            step.prices(&x)?.last().map_or(0.0, |price| price.fitted.seconds)
        );
        for _ in 0..3 {
            let (_, took, resident) = watched(|| step.call(x.clone()))?;
            println!("{name:>14}: {took:.3?}, {resident} more resident");
        }
    }
    Ok(())
}

/// Steps of Adagrad on a table of half a GiB, of which a batch names a few rows.
fn embedding() -> Result<()> {
    const ROWS: usize = 2_000_000;
    let indices: Vec<i64> = (0..16 * 4096).map(|i| i * 104_729 % ROWS as i64).collect();
    let indices = tonnage::tensor(indices)?.reshape([4096, 16])?;
    for name in ["in memory", "in files"] {
        let make = || Variable::new("table", random_normal([ROWS, 64], DType::F32)?);
        let table = if name == "in files" { variables_in_files(make)? } else { make()? };
        let optimizer = Optimizer::new(Adagrad::default(), 0.1);
        let step = function(|indices: Tensor| {
            let mut tape = GradientTape::new();
            let loss = table.read()?.gather(&indices, 0)?.mean(1)?.square()?.mean_all()?;
            let variables = std::slice::from_ref(&table);
            optimizer.apply(variables, &tape.gradient(&loss, variables)?)?;
            Ok(loss)
        });
        let step = if name == "in files" { step.budget(Bytes::mib(96))? } else { step };
        step.call(indices.clone())?;
        let plan = step.plan(&indices)?;
        println!(
            "a table of {ROWS} x 64, {name}: peak {} predicted, {} read, {} written",
            plan.peak(),
            plan.reads(),
            plan.writes()
        );
        for _ in 0..3 {
            let (_, took, resident) = watched(|| step.call(indices.clone()))?;
            println!("{name:>14}: {took:.3?}, {resident} more resident");
        }
    }
    Ok(())
}

/// A small tensor out of a safetensors file of 10 GiB, most of which is a hole.
fn small_of_large(folder: &Path) -> Result<()> {
    let path = folder.join("large.safetensors");
    let make = || -> std::io::Result<()> {
        let (large, small) = (10u64 << 30, 4096u64);
        let header = format!(
            r#"{{"large":{{"dtype":"F32","shape":[{}],"data_offsets":[0,{large}]}},"small":{{"dtype":"F32","shape":[1024],"data_offsets":[{large},{}]}}}}"#,
            large / 4,
            large + small
        );
        let mut file = File::create(&path)?;
        file.write_all(&(header.len() as u64).to_le_bytes())?;
        file.write_all(header.as_bytes())?;
        file.seek(SeekFrom::Current(large as i64))?;
        file.write_all(&[1; 4096])
    };
    if let Err(error) = make() {
        println!("no file of 10 GiB can be made here ({error})");
        return Ok(());
    }
    memory::reset_peak("cpu:0")?;
    let before = memory::info("cpu:0")?.in_use;
    let (_, took, resident) = watched(|| SafeTensors::open(&path)?.read("small"))?;
    let took_bytes = memory::info("cpu:0")?.peak - before;
    println!(
        "a small tensor of 10 GiB: {took:.2?}, {took_bytes} counted, {resident} more resident"
    );
    let (file, took, _) = watched(|| TensorFile::open(&path))?;
    println!("listing its {} tensors: {took:.2?}", file.names().len());
    std::fs::remove_file(&path).unwrap_or_default();
    Ok(())
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
    let folder = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let gib = args.next().and_then(|arg| arg.parse().ok()).unwrap_or(8);
    // What is read first is not of the passes: threads, tables, pages of the program.
    let warm =
        save_safetensors(folder.join("warm"), [("x", &random_normal([64], DType::F32)?)], &[]);
    warm.and_then(|()| SafeTensors::open(folder.join("warm"))?.read("x")?.sum_all())?;
    std::fs::remove_file(folder.join("warm")).unwrap_or_default();
    small_of_large(&folder)?;
    layers(&folder)?;
    training()?;
    embedding()?;
    passes(&folder, gib)
}
