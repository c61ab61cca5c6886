//! What a budget may do besides rematerialization: loop checkpoints, the batch in pieces, values stored in bf16.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use tonnage::{
    Bytes, DType, Elementwise, ErrorKind, Function, GradientTape, Loop, Result, Tensor, Variable,
    Watched, concat, function, ones, random_normal, random_uniform, set_seed, tensor,
};

use crate::common::{call_checked, own_context};

fn drawn(sizes: &[usize], scale: f64) -> Tensor {
    let values = (random_normal(sizes, DType::F32).unwrap() * scale).unwrap();
    let shape: Vec<i64> = sizes.iter().map(|n| *n as i64).collect();
    tensor(values.to_vec::<f32>().unwrap()).unwrap().reshape(&shape[..]).unwrap()
}

fn values(t: &Tensor) -> Vec<f32> {
    t.to_vec::<f32>().unwrap()
}

#[track_caller]
fn near(got: &[f32], expected: &[f32]) {
    assert_eq!(got.len(), expected.len());
    let scale = expected.iter().fold(1e-3f32, |m, x| m.max(x.abs()));
    for (a, b) in got.iter().zip(expected) {
        assert!((a - b).abs() <= 1e-5 * scale, "{a} and {b} of {scale}");
    }
}

fn percent(of: Bytes, percent: u64) -> Bytes {
    Bytes::new(of.get() * percent / 100)
}

/// Gradients of a recurrent network's weights, backward through all time steps.
fn recurrent(
    w: &Variable,
    max_checkpoints: Option<usize>,
) -> Function<Tensor, Tensor, impl Fn(Tensor) -> Result<Tensor> + use<>> {
    let w = w.clone();
    function(move |xs: Tensor| {
        let mut tape = GradientTape::new();
        let value = w.read()?;
        let start = (xs.slice(&[(0..1).into()])?.reshape([32, 16])? * 0.0)?;
        let options = max_checkpoints.map_or(Loop::new(), |n| Loop::new().checkpoints(n));
        let (last, _) = options.scan(start, xs, |h: Tensor, x: Tensor| {
            let next = (h.matmul(&value)? + x)?.tanh()?;
            Ok((next, ()))
        })?;
        let loss = last.square()?.sum_all()?;
        tape.gradient(&loss, &[&w])?[0].tensor()
    })
}

#[test]
fn a_budget_says_how_many_checkpoints_a_loop_has_and_the_bits_stay() {
    let _context = own_context();
    set_seed(5);
    let w = Variable::new("w", drawn(&[16, 16], 0.2)).unwrap();
    let xs = drawn(&[200, 32, 16], 1.0);
    let free = recurrent(&w, None);
    let unlimited = free.plan(&xs).unwrap().peak();
    let expected = values(&free.call(xs.clone()).unwrap());
    let inputs = free.plan(&xs).unwrap().inputs;
    let room = unlimited - inputs;
    let mut before = u64::MAX;
    for share in [400, 150, 100, 60, 30, 15, 8] {
        let budget = inputs + percent(room, share);
        let f = recurrent(&w, None).budget(budget).unwrap();
        let plan = f.plan(&xs).unwrap();
        assert!(plan.peak() <= budget);
        let fitted = plan.fitted.unwrap();
        let max_checkpoints = fitted.max_checkpoints.unwrap_or(29);
        assert!(max_checkpoints <= before, "{max_checkpoints} after {before} at {share}%\n{plan}");
        assert_eq!(fitted.recomputed_iterations, plan.recomputed_iterations(), "{plan}");
        before = max_checkpoints;
        assert_eq!(values(&call_checked(&f, &xs)), expected, "{share}%");
    }
    assert!(before < 12, "{before}");
    // With room for all states nothing is recomputed.
    let f = recurrent(&w, None).budget(Bytes::new(unlimited.get() * 20)).unwrap();
    let plan = f.plan(&xs).unwrap();
    assert_eq!(plan.fitted.unwrap().recomputed_iterations, Some(0), "{plan}");
    assert_eq!(plan.fitted.unwrap().seconds, plan.fitted.unwrap().unlimited_seconds);
    assert!(
        plan.to_string().contains("loops keep 199 checkpoints (0 iterations recomputed)"),
        "{plan}"
    );
    assert_eq!(values(&call_checked(&f, &xs)), expected);
}

#[test]
fn a_number_of_checkpoints_that_was_set_by_hand_is_respected() {
    let _context = own_context();
    set_seed(5);
    let w = Variable::new("w", drawn(&[16, 16], 0.2)).unwrap();
    let xs = drawn(&[100, 32, 16], 1.0);
    let by_hand = recurrent(&w, Some(7));
    let iterations = by_hand.plan(&xs).unwrap().recomputed_iterations();
    let f = by_hand.budget("64MiB").unwrap();
    let plan = f.plan(&xs).unwrap();
    assert_eq!(
        (plan.fitted.unwrap().max_checkpoints, plan.recomputed_iterations()),
        (None, iterations),
        "{plan}"
    );
}

const WIDTH: usize = 24;
const ROWS: usize = 768;

struct Net {
    weights: Vec<Variable>,
    biases: Vec<Variable>,
}

/// Rows and their labels; or the loss and each row's probabilities.
type Pair = (Tensor, Tensor);

impl Net {
    fn new(layers: usize) -> Net {
        set_seed(11);
        let w = |i| Variable::new(&format!("w{i}"), drawn(&[WIDTH, WIDTH], 0.25)).unwrap();
        let b = |i| Variable::new(&format!("b{i}"), drawn(&[WIDTH], 0.1)).unwrap();
        Net { weights: (0..layers).map(w).collect(), biases: (0..layers).map(b).collect() }
    }

    fn values(&self) -> Vec<f32> {
        let all = self.weights.iter().chain(&self.biases);
        all.flat_map(|v| values(&v.read().unwrap())).collect()
    }

    /// One step of training on rows and their labels: the loss, and each row's probabilities.
    fn step(&self, dropout: bool) -> Function<Pair, Pair, impl Fn(Pair) -> Result<Pair> + use<>> {
        let (weights, biases) = (self.weights.clone(), self.biases.clone());
        function(move |(x, labels): (Tensor, Tensor)| {
            let mut tape = GradientTape::new();
            let mut h = x;
            for (w, b) in weights.iter().zip(&biases) {
                let z = (h.matmul(&w.read()?)? + b.read()?)?;
                h = ((&z).relu()? + z.tanh()?)?;
                if dropout {
                    let kept = random_uniform([ROWS, WIDTH], DType::F32)?.less(&tonnage::full(
                        0.9,
                        DType::F32,
                        (),
                    )?)?;
                    h = (h * kept.cast(DType::F32)?)?;
                }
            }
            let scores = h.log_softmax(-1)?;
            let loss = h.sparse_cross_entropy(&labels)?.mean_all()?;
            let sources: Vec<&dyn Watched> =
                weights.iter().chain(&biases).map(|v| v as &dyn Watched).collect();
            let grads = tape.gradient(&loss, &sources)?;
            for (v, grad) in weights.iter().chain(&biases).zip(grads) {
                v.assign_sub(&(grad.tensor()? * 0.1)?)?;
            }
            Ok((loss, scores.exp()?))
        })
    }
}

fn batch() -> (Tensor, Tensor) {
    set_seed(12);
    let labels: Vec<i64> = (0..ROWS as i64).map(|i| i * 7 % WIDTH as i64).collect();
    (drawn(&[ROWS, WIDTH], 1.0), tensor(labels).unwrap())
}

#[test]
fn the_batch_in_pieces_is_close_to_the_whole_in_just_the_memory_predicted() {
    let _context = own_context();
    for dropout in [false, true] {
        let args = batch();
        let whole = Net::new(12);
        let step = whole.step(dropout);
        let unlimited = step.plan(&args).unwrap();
        set_seed(99);
        let (loss, scores) = step.call(args.clone()).unwrap();
        let room = unlimited.peak() - unlimited.inputs;
        let mut most = 1;
        for share in [60, 30, 20] {
            let budget = unlimited.inputs + percent(room, share);
            let net = Net::new(12);
            let step = net.step(dropout).budget(budget).unwrap();
            let plan = step.plan(&args).unwrap();
            assert!(plan.peak() <= budget, "{plan}");
            let pieces = plan.fitted.unwrap().micro_batches.unwrap_or(1);
            assert_eq!(
                plan.to_string().contains("pieces (last digits may differ unless `exact`)"),
                pieces > 1,
                "{plan}"
            );
            most = most.max(pieces);
            set_seed(99);
            let (got, rows) = step.call(args.clone()).unwrap();
            near(&values(&got), &values(&loss));
            near(&values(&rows), &values(&scores));
            near(&net.values(), &whole.values());
            call_checked(&net.step(dropout).budget(budget).unwrap(), &args);
        }
        assert!(most > 1);
    }
}

#[test]
fn budgets_that_take_the_same_point_give_the_same_bits() {
    let _context = own_context();
    let args = batch();
    let unlimited = Net::new(8).step(false).plan(&args).unwrap();
    let peak =
        |net: &Net, budget| net.step(false).budget(budget).unwrap().plan(&args).unwrap().peak();
    let (a, b) = (Net::new(8), Net::new(8));
    let budget = unlimited.inputs + percent(unlimited.peak() - unlimited.inputs, 50);
    let least = peak(&a, budget);
    for _ in 0..3 {
        a.step(false).budget(budget).unwrap().call(args.clone()).unwrap();
        b.step(false).budget(least).unwrap().call(args.clone()).unwrap();
    }
    assert_eq!(a.values(), b.values());
}

#[test]
fn exact_forbids_pieces_and_the_error_says_that_they_would_help() {
    let _context = own_context();
    let args = batch();
    let unlimited = Net::new(12).step(false).plan(&args).unwrap();
    let (whole, exact) = (Net::new(12), Net::new(12));
    let step = whole.step(false);
    let budget = unlimited.inputs + percent(unlimited.peak() - unlimited.inputs, 70);
    let limited = exact.step(false).exact().budget(budget).unwrap();
    assert_eq!(limited.plan(&args).unwrap().fitted.unwrap().micro_batches, None);
    for _ in 0..3 {
        step.call(args.clone()).unwrap();
        limited.call(args.clone()).unwrap();
    }
    assert_eq!(whole.values(), exact.values());
    let least = refused(&limited.budget("100KiB").unwrap().plan(&args).unwrap_err()).0;
    let under = Bytes::new(least.get() - 1);
    let error = Net::new(12).step(false).exact().budget(under).unwrap().plan(&args).unwrap_err();
    assert!(
        error.to_string().contains("the batch or segments in pieces, which `exact()` forbids"),
        "{error}"
    );
    assert!(Net::new(12).step(false).budget(under).unwrap().plan(&args).is_ok());
}

/// The least budget that would do, and what would help.
fn refused(error: &tonnage::Error) -> (Bytes, String) {
    let ErrorKind::OverBudget { least: Some(least), would_help, .. } = error.kind() else {
        panic!("{error}");
    };
    (*least, would_help.clone().unwrap_or_default())
}

/// The bytes that would do with a lever.
fn figure(help: &str, lever: &str) -> Bytes {
    let said = help.split("; ").find(|said| said.contains(lever)).unwrap();
    let number = said.rsplit('(').next().unwrap().split(' ').next().unwrap();
    Bytes::new(number.parse().unwrap())
}

#[test]
fn a_refusal_names_every_lever_that_is_not_allowed_with_what_would_do_then() {
    let _context = own_context();
    let args = batch();
    let plain = || Net::new(12).step(false).exact().no_spill();
    let (least, help) = refused(&plain().budget("64KiB").unwrap().plan(&args).unwrap_err());
    for lever in
        ["`no_spill()` forbids", "`exact()` forbids", "`keep_in_bf16()` allows", "all of these"]
    {
        assert!(help.contains(lever), "{help}");
        assert!(figure(&help, lever) < least, "{lever} in {help}, {least}");
    }
    // What is said of a lever is what its own refusal says.
    let with = Net::new(12).step(false).exact().budget("64KiB").unwrap();
    let (file, help_too) = refused(&with.plan(&args).unwrap_err());
    assert_eq!(figure(&help, "`no_spill()` forbids"), file);
    assert!(!help_too.contains("no_spill"), "{help_too}");
    // Where one alone is enough, it is said to fit.
    let under = Bytes::new(least.get() - 1);
    let (_, help) = refused(&plain().budget(under).unwrap().plan(&args).unwrap_err());
    assert!(help.starts_with("it fits with") && !help.contains("all of these"), "{help}");
    // Nothing is forbidden: nothing is named.
    let open = Net::new(12).step(false).keep_in_bf16().budget("64KiB").unwrap();
    assert_eq!(refused(&open.plan(&args).unwrap_err()).1, "");
}

#[test]
fn an_op_that_mixes_the_batch_keeps_it_whole() {
    let _context = own_context();
    let normal: fn(&Tensor) -> Result<Tensor> = |x| {
        let centred = (x - x.mean_keep(0)?)?;
        let deviation = ((&centred).square()?.mean_keep(0)? + 1e-5)?.rsqrt()?;
        centred * deviation
    };
    let softmax: fn(&Tensor) -> Result<Tensor> = |x| x.softmax(0);
    let sorted: fn(&Tensor) -> Result<Tensor> = |x| x.sort(0, false);
    let reversed: fn(&Tensor) -> Result<Tensor> =
        |x| concat(&[x, x], 0)?.slice(&[(5..ROWS as i64 + 5).into()]);
    for mixes in [normal, softmax, sorted, reversed] {
        set_seed(3);
        let w = Variable::new("w", drawn(&[WIDTH, WIDTH], 0.3)).unwrap();
        let step = function(move |x: Tensor| {
            let mut tape = GradientTape::new();
            let value = w.read()?;
            let mut h = x;
            for _ in 0..6 {
                h = h.matmul(&value)?.tanh()?;
            }
            h = mixes(&h)?;
            for _ in 0..6 {
                h = h.matmul(&value)?.tanh()?;
            }
            let loss = h.square()?.sum_all()?;
            tape.gradient(&loss, &[&w])?[0].tensor()
        });
        let x = drawn(&[ROWS, WIDTH], 1.0);
        for price in step.prices(&x).unwrap() {
            assert_eq!(price.fitted.micro_batches, None, "{price:?}");
        }
    }
}

#[test]
fn images_reductions_of_every_kind_and_values_that_are_only_read_go_through_pieces() {
    let _context = own_context();
    set_seed(21);
    let filters = Variable::new("f", drawn(&[3, 3, 2, 6], 0.3)).unwrap();
    let table = drawn(&[10, 5], 1.0);
    let made = {
        let table = table.clone();
        move |(images, picks, scale): (Tensor, Tensor, Tensor)| {
            let mut tape = GradientTape::new();
            let y = images.conv2d(&filters.read()?, &tonnage::Conv::same())?.relu()?;
            let pooled = y.max_pool(&tonnage::Pool::of(2))?;
            let flat = pooled.reshape([48, 4 * 4 * 6])?;
            let rows = table.gather(&picks, 0)?;
            let loss = ((&flat).square()?.mean_all()? + rows.sum_all()?)?;
            let grad = tape.gradient(&loss, &[&filters])?[0].tensor()?;
            let most = (&flat * scale)?.max(0)?;
            let least = flat.min(0)?;
            Ok((loss, grad, most, least, rows))
        }
    };
    let picks: Vec<i64> = (0..48).map(|i| i * 3 % 10).collect();
    let args = (drawn(&[48, 8, 8, 2], 1.0), tensor(picks).unwrap(), drawn(&[48, 1], 1.0));
    let f = function(made.clone());
    let plan = f.plan(&args).unwrap();
    let whole = f.call(args.clone()).unwrap();
    let f = function(made).budget(plan.inputs + percent(plan.peak() - plan.inputs, 50)).unwrap();
    let plan = f.plan(&args).unwrap();
    assert!(plan.fitted.unwrap().micro_batches.is_some(), "{plan}");
    let cut = call_checked(&f, &args);
    for (got, expected) in
        [(cut.0, whole.0), (cut.1, whole.1), (cut.2, whole.2), (cut.3, whole.3), (cut.4, whole.4)]
    {
        near(&values(&got), &values(&expected));
    }
}

#[test]
fn the_batch_is_cut_beside_and_across_values_whose_size_the_data_decide() {
    let _context = own_context();
    set_seed(5);
    let weights = Variable::new("w", drawn(&[WIDTH, WIDTH], 0.3)).unwrap();
    // The mask selects rows that every piece reads, rows that none does, or sizes alone.
    for kind in 0..3 {
        let weights = weights.clone();
        let made = move |(x, table, mask): (Tensor, Tensor, Tensor)| {
            let mut tape = GradientTape::new();
            tape.watch(&table);
            let kept = table.boolean_mask(&mask)?;
            let mut h = x;
            for _ in 0..6 {
                h = h.matmul(&weights.read()?)?.tanh()?;
            }
            let scores = match kind {
                0 => h.matmul(&kept.t()?)?.tanh()?,
                1 => h,
                _ => h.matmul(&ones([kept.dim(0)?, WIDTH.into()])?.t()?)?.tanh()?,
            };
            let loss = (scores.square()?.sum_all()? + (&kept).square()?.sum_all()?)?;
            let sources: [&dyn Watched; 2] = [&weights, &table];
            let grads = tape.gradient(&loss, &sources)?;
            Ok((loss, grads[0].tensor()?, grads[1].tensor()?, (&kept * 2.0)?))
        };
        let mask = tensor([true, false, true, true, false]).unwrap();
        set_seed(6);
        let args = (drawn(&[ROWS, WIDTH], 1.0), drawn(&[5, WIDTH], 1.0), mask);
        let f = function(made.clone());
        let plan = f.plan(&args).unwrap();
        let whole = f.call(args.clone()).unwrap();
        let budget = plan.inputs + percent(plan.peak() - plan.inputs, 35);
        let f = function(made).budget(budget).unwrap();
        let plan = f.plan(&args).unwrap();
        assert!(plan.fitted.unwrap().micro_batches.is_some(), "{kind}: {plan}");
        let cut = f.call(args).unwrap();
        for (got, expected) in
            [(cut.0, whole.0), (cut.1, whole.1), (cut.2, whole.2), (cut.3, whole.3)]
        {
            assert_eq!(got.ty(), expected.ty());
            near(&values(&got), &values(&expected));
        }
    }
}

/// A step of training wide enough that recomputing takes longer than casting.
fn wide(
    weights: &[Variable],
) -> Function<Tensor, Tensor, impl Fn(Tensor) -> Result<Tensor> + use<>> {
    let weights = weights.to_vec();
    function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        let mut h = x;
        for w in &weights {
            h = h.matmul(&w.read()?)?.tanh()?;
        }
        let loss = h.square()?.mean_all()?;
        let sources: Vec<&dyn Watched> = weights.iter().map(|v| v as &dyn Watched).collect();
        for (w, grad) in weights.iter().zip(tape.gradient(&loss, &sources)?) {
            w.assign_sub(&(grad.tensor()? * 0.5)?)?;
        }
        Ok(loss)
    })
}

#[test]
fn values_are_stored_in_bf16_only_where_that_is_allowed() {
    let _context = own_context();
    let weights = || -> Vec<Variable> {
        set_seed(13);
        let w = |i| Variable::new(&format!("w{i}"), drawn(&[192, 192], 0.07)).unwrap();
        (0..6).map(w).collect()
    };
    let of = |weights: &[Variable]| -> Vec<f32> {
        weights.iter().flat_map(|v| values(&v.read().unwrap())).collect()
    };
    // A batch that has no divisors cannot be cut.
    let x = drawn(&[131, 192], 1.0);
    let (whole, half, start) = (weights(), weights(), of(&weights()));
    let step = wide(&whole);
    let loss = step.call(x.clone()).unwrap();
    assert!(step.prices(&x).unwrap().iter().all(|p| p.fitted.in_bf16 == 0));
    let step = wide(&half).keep_in_bf16();
    let prices = step.prices(&x).unwrap();
    let Some(price) = prices.iter().find(|p| p.fitted.in_bf16 > 0) else { panic!("{prices:?}") };
    let step = step.budget(price.peak).unwrap();
    let plan = step.plan(&x).unwrap();
    assert!(plan.to_string().contains("values held in bf16"), "{plan}");
    let got = step.call(x.clone()).unwrap();
    assert_eq!(values(&got), values(&loss), "the forward pass is exact");
    // Gradients are those of values rounded to 8 bits.
    let (got, expected) = (of(&half), of(&whole));
    let changed = |all: &[f32]| all.iter().zip(&start).map(|(a, b)| (a - b).abs()).sum::<f32>();
    let off: f32 = got.iter().zip(&expected).map(|(a, b)| (a - b).abs()).sum();
    assert!(off > 0.0 && off < 0.01 * changed(&expected), "{off} of {}", changed(&expected));
    call_checked(&step, &x);
    let exact = step.exact().unlimited();
    assert!(exact.prices(&x).unwrap().iter().all(|p| p.fitted.in_bf16 == 0));
}
