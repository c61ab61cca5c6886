//! Recordings, who holds what, and steps that grow: every figure is the ledger's.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use tonnage::memory::{self, HeldBy};
use tonnage::report::{Picture, Report, save, save_html};
use tonnage::{
    Bytes, Container, DType, Elementwise, ErrorKind, GradientTape, Kind, Tensor, Variable,
    function, random_normal, tensor,
};

use crate::common::{in_use, own_context};

fn resident(n: usize) -> Tensor {
    tensor(vec![0.5f32; n * n]).unwrap().reshape([n as i64, n as i64]).unwrap()
}

#[test]
fn a_recording_has_the_figures_of_the_ledger_and_of_the_plan() {
    let _context = own_context();
    let w = Variable::new("w", resident(128)).unwrap();
    let step = function({
        let w = w.clone();
        move |x: Tensor| {
            let mut tape = GradientTape::new();
            let loss = x.matmul(&w.read()?)?.tanh()?.square()?.mean_all()?;
            let gradient = tape.gradient(&loss, &w)?.tensor()?;
            w.assign_sub(&(gradient * 0.1)?)?;
            Ok(loss)
        }
    });
    let x = resident(128);
    step.call(x.clone()).unwrap();
    memory::reset_peak("cpu:0").unwrap();
    let recording = memory::record("cpu:0").unwrap();
    assert!(memory::record("cpu:0").is_err());
    let mut losses = Vec::new();
    for _ in 0..3 {
        losses.push(step.call(x.clone()).unwrap());
    }
    let info = memory::info("cpu:0").unwrap();
    let timeline = recording.finish();
    assert_eq!(timeline.peak().in_use, info.peak);
    assert_eq!(timeline.curve.last().unwrap().in_use, info.in_use);
    assert_eq!(timeline.lost, 0);
    // What lives at any moment is what was in use then.
    for moment in &timeline.curve {
        let lives = |s: &&memory::Span| s.from <= moment.at && s.to.is_none_or(|to| to > moment.at);
        let sum: Bytes = timeline.spans.iter().filter(lives).map(|s| s.bytes).sum();
        let changes = timeline.curve.iter().filter(|m| m.at == moment.at).count();
        assert!(changes > 1 || sum == moment.in_use, "{sum} of {}", moment.in_use);
    }
    let plan = step.plan(&x).unwrap();
    assert_eq!((timeline.calls.len(), timeline.plans.len()), (3, 1));
    for call in &timeline.calls {
        assert_eq!(call.used, Some(plan.peak()));
        assert_eq!(call.steps.len(), plan.steps.len());
        assert!(call.steps.windows(2).all(|two| two[0] <= two[1]));
    }
    let picture = Picture::of_timeline("three steps", &timeline);
    assert_eq!(picture.peak.bytes, info.peak.get());
    let names: Vec<&str> = picture.owners.iter().map(|o| o.what.as_str()).collect();
    assert!(names.contains(&"w"), "{names:?}");
    // Off again: nothing more is written down, and another can begin.
    drop(losses);
    assert!(memory::record("cpu:0").unwrap().finish().calls.is_empty());
}

#[test]
fn a_call_that_fails_is_recorded_as_far_as_it_came_and_its_report_opens() {
    let _context = own_context();
    let f = function(|(x, at): (Tensor, Tensor)| x.matmul(&x)?.tanh()?.gather(&at, 0));
    let x = resident(64);
    f.call((x.clone(), tensor([1i64]).unwrap())).unwrap();
    let recording = memory::record("cpu:0").unwrap();
    let error = f.call((x, tensor([99i64]).unwrap())).unwrap_err();
    let timeline = recording.finish();
    let call = &timeline.calls[0];
    let plan = &timeline.plans[0];
    assert!(call.used.is_none() && call.steps.len() < plan.steps.len());
    let page = Report::new("failed").plan(plan).timeline(&timeline).failed(&error).html();
    assert!(page.contains("index 99"), "{error}");
}

#[test]
fn a_file_that_cannot_be_written_or_has_no_format_is_a_clear_error() {
    let _context = own_context();
    let f = function(|x: Tensor| x.tanh());
    let plan = f.plan(&Tensor::spec(DType::F32, [64])).unwrap();
    let picture = Picture::of_plan("f", &plan);
    let folder = tempfile();
    // A file where a folder should be: root may write into a folder that is read-only.
    std::fs::write(&folder, "a file").unwrap();
    for error in [
        save(folder.join("a.csv"), &picture).unwrap_err(),
        save_html(folder.join("a.html"), &Report::new("f").plan(&plan)).unwrap_err(),
    ] {
        assert!(matches!(error.kind(), ErrorKind::BadFile { .. }), "{error}");
        assert!(error.to_string().contains("cannot be made"), "{error}");
    }
    std::fs::remove_file(&folder).unwrap();
    let error = save(folder.with_extension("txt"), &picture).unwrap_err().to_string();
    assert!(error.contains("end its name in .csv"), "{error}");
}

fn tempfile() -> std::path::PathBuf {
    std::env::temp_dir().join(format!("tonnage-seeing-{}", std::process::id()))
}

#[test]
fn who_holds_a_tensor_is_told_with_who_holds_that() {
    let _context = own_context();
    let container = Container::new("weights");
    let w = container.enter(|| Variable::new("w", resident(64))).unwrap();
    let value = w.read().unwrap();
    let why = memory::why(&value).unwrap();
    let HeldBy::Variable { name, within, .. } = &why.held_by[0] else { panic!("{why}") };
    assert_eq!((name.as_str(), within.as_slice()), ("w", &["container `weights`".to_string()][..]));
    assert_eq!(why.held_by[1], HeldBy::Program { handles: 1 });
    assert_eq!(why.bytes, Bytes::new(64 * 64 * 4));
    assert_eq!(why.owner.as_ref().unwrap().kind, Kind::Variable);

    let x = resident(64);
    let f = function({
        let x = x.clone();
        move |y: Tensor| &y + &x
    });
    f.call(resident(64)).unwrap();
    let why = memory::why(&x).unwrap();
    // By the closure, which has a handle of its own, and by what was traced of it.
    assert!(matches!(why.held_by[0], HeldBy::Captured { what: "function", .. }), "{why}");
    assert_eq!(why.held_by[1], HeldBy::Program { handles: 2 });
    drop(f);
    assert_eq!(memory::why(&x).unwrap().held_by, [HeldBy::Program { handles: 1 }]);

    let rows = x.t().unwrap();
    let why = memory::why(&rows).unwrap();
    assert!(why.is_view);
    assert_eq!(why.held_by, [HeldBy::Program { handles: 2 }]);
    assert!(why.to_string().contains("seen through a view"), "{why}");

    let recipe = random_normal([64, 64], DType::F32).unwrap();
    assert_eq!(memory::why(&recipe).unwrap().owner, None);
    assert!(memory::why(&Tensor::spec(DType::F32, [2])).is_err());
}

#[test]
fn a_tape_says_what_it_saves_a_tensor_for() {
    let _context = own_context();
    let x = resident(32);
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = (&x).tanh().unwrap();
    let z = y.matmul(&y).unwrap();
    let why = memory::why(&y).unwrap();
    let ops: Vec<&str> = why
        .held_by
        .iter()
        .filter_map(|k| if let HeldBy::Tape { op, .. } = k { Some(*op) } else { None })
        .collect();
    assert!(ops.contains(&"tanh") && ops.contains(&"matmul"), "{why}");
    drop((tape, z));
    assert_eq!(memory::why(&y).unwrap().held_by, [HeldBy::Program { handles: 1 }]);
}

#[test]
fn what_lives_of_a_line_is_told_with_who_holds_it() {
    let _context = own_context();
    let x = resident(32);
    let tape = GradientTape::new();
    tape.watch(&x);
    let line = format!("{}:{}", file!(), line!() + 1);
    let (sum, handle) = ((&x).tanh().unwrap().sum_all().unwrap(), (&x).exp().unwrap());
    let why = memory::why_line(&line).unwrap();
    let bytes = Bytes::new(32 * 32 * 4);
    assert_eq!(why.bytes(), bytes + bytes + Bytes::new(4).rounded());
    let of_tape = |k: &&HeldBy| matches!(k, HeldBy::Tape { .. });
    assert_eq!(why.held_by.iter().filter(of_tape).count(), 2, "{why}"); // tanh's result and exp's
    // The sum is the program's; of what the tape saves no handle is told apart.
    assert_eq!(why.held_by.last(), Some(&HeldBy::Program { handles: 1 }), "{why}");
    drop(tape);
    let why = memory::why_line(&line).unwrap();
    assert_eq!(why.held_by, [HeldBy::Program { handles: 2 }], "{why}");
    drop((sum, handle));
    let short = line.rsplit('/').next().unwrap();
    let why = memory::why_line(short).unwrap();
    assert_eq!((why.held.len(), why.held_by.len()), (0, 0), "{why}");
    assert!(why.to_string().contains("nothing of that line"), "{why}");

    let w = Variable::new("w", x).unwrap();
    let made = format!("seeing.rs:{}", w.made().line());
    let why = memory::why_line(&made).unwrap();
    assert!(matches!(&why.held_by[..], [HeldBy::Variable { name, .. }] if name == "w"), "{why}");

    for wrong in ["", "12", "seeing.rs", "seeing.rs:0", ":3", "seeing.rs:x"] {
        let error = memory::why_line(wrong).unwrap_err().to_string();
        assert!(error.contains("no line of a file"), "{error}");
    }
}

#[test]
fn a_step_that_leaves_nothing_is_steady_and_one_that_grows_is_named() {
    let _context = own_context();
    let w = Variable::new("w", resident(32)).unwrap();
    let step = function({
        let w = w.clone();
        move |x: Tensor| {
            w.assign_add(&x)?;
            w.read()?.sum_all()
        }
    });
    memory::assert_steady(|| step.call(resident(32)).map(drop)).unwrap();
    let mut kept = Vec::new();
    let error = memory::assert_steady(|| {
        kept.push(step.call(resident(32))?);
        kept.push(resident(16));
        Ok(())
    });
    let error = error.unwrap_err();
    let ErrorKind::Grew { runs, before, after, grown } = error.kind() else { panic!("{error}") };
    assert_eq!(*runs, 5);
    assert_eq!(grown[0].bytes, Bytes::new(5 * 16 * 16 * 4));
    assert_eq!(grown[0].kind, Kind::Input);
    assert!(grown[0].source.file().ends_with("seeing.rs"), "{error}");
    let sum: Bytes = grown.iter().map(|holder| holder.bytes).sum();
    assert_eq!(*after - *before, sum);
}

#[test]
fn a_new_trace_at_every_step_is_growth_too() {
    let _context = own_context();
    let f = function(|x: Tensor| x.tanh());
    let mut n = 1;
    let error = memory::assert_steady(|| {
        for _ in 0..4 {
            n += 1;
            f.call(tensor(vec![0.5f32; n])?)?;
        }
        Ok(())
    });
    let error = error.unwrap_err();
    let ErrorKind::Grew { grown, .. } = error.kind() else { panic!("{error}") };
    assert_eq!(grown[0].kind, Kind::Graph, "{error}");
}

#[test]
fn an_error_about_memory_tells_who_holds_what_and_what_could_be_done() {
    let _context = own_context();
    // Small ones stay in memory: there is nothing to send away.
    let held: Vec<Tensor> = (0..40).map(|_| resident(64)).collect();
    let tape = GradientTape::new();
    tape.watch(&held[0]);
    let values: Vec<Tensor> = (0..80).map(|_| (&held[0]).tanh().unwrap()).collect();
    let limit = in_use() + Bytes::new(16 * 1024);
    memory::set_limit("cpu:0", Some(limit)).unwrap();
    let failed: Vec<_> = (0..8).map(|_| (&held[0]).exp()).collect();
    memory::set_limit("cpu:0", None).unwrap();
    let error = failed.into_iter().find_map(|made| made.err()).unwrap();
    let ErrorKind::OverBudget { shortage, budget, .. } = error.kind() else { panic!("{error}") };
    assert_eq!(*budget, limit);
    let sum: Bytes = shortage.holders.iter().map(|holder| holder.bytes).sum();
    assert_eq!(sum, shortage.in_use, "all of it is somebody's");
    let first = &shortage.holders[0];
    assert!(first.kind == Kind::Activation && first.buffers >= 80, "{error}");
    assert!(first.source.file().ends_with("seeing.rs"));
    assert!(shortage.remedies()[0].contains("drop tensors and tapes"), "{error}");
    assert!(error.to_string().contains("are values on the way"), "{error}");
    drop(values);
}
