//! Ops that a device leaves to the host: as many bytes of host memory as the plan says, one notice an op, and an error where they are
//! refused; copies beside kernels; errors that come late.

use std::sync::{Arc, Mutex};

use tonnage::device::{self, set_host_steps};
use tonnage::{Bytes, Context, Elementwise, Result, Tensor, Variable, function, notices, tensor};
use tonnage_core::Kind;
use tonnage_runtime::backend::{Backend as _, HostBlock};
use tonnage_runtime::lend::{ByteRange, Lender};
use tonnage_runtime::{Buffer, Owner};

use crate::common::chain::drawn;

/// A context whose `sim:0` has no kernels.
fn without_kernels() -> Context {
    let context = Context::new();
    context.sim().without_kernels(true);
    context
}

#[test]
fn an_op_on_the_host_is_told_of_once_with_its_line() {
    let _context = without_kernels().enter();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let to = heard.clone();
    notices::listen(move |notice| to.lock().unwrap().push(notice.to_string()));
    let x = tensor([[3.0f32, 1.0, 2.0]]).unwrap().to("sim:0").unwrap();
    for _ in 0..3 {
        let sorted = x.sort(-1, false).unwrap();
        assert_eq!(sorted.device().to_string(), "sim:0");
        assert_eq!(sorted.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
    }
    (&x + 1.0).unwrap();
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), 1, "{heard:?}");
    let words = "runs on the host, since sim:0 has no kernel for it (at crates/tonnage/tests/devices/host_steps.rs:";
    assert!(heard[0].contains(words) && heard[0].ends_with("24 B were copied there and back"));
}

#[test]
fn where_they_are_refused_nothing_of_a_function_runs() {
    let _context = without_kernels().enter();
    let _scope = device::scope("sim:0").unwrap();
    let v = Variable::new("v", drawn([4, 1], 1.0)).unwrap();
    let step = function({
        let v = v.clone();
        move |x: Tensor| -> Result<Tensor> {
            v.assign_add(&x)?;
            x.sort(0, false)
        }
    });
    let x = drawn([4, 1], 2.0);
    set_host_steps(false);
    let before = v.read().unwrap().to_vec::<f32>().unwrap();
    for error in [step.call(x.clone()).unwrap_err(), x.sort(0, false).unwrap_err()] {
        assert!(error.to_string().contains("sim:0 has no kernel for it"), "{error}");
    }
    assert_eq!(v.read().unwrap().to_vec::<f32>().unwrap(), before);
    set_host_steps(true);
    assert!(step.call(x).is_ok());
    assert_ne!(v.read().unwrap().to_vec::<f32>().unwrap(), before);
}

#[test]
fn the_plan_lists_them_with_their_bytes() {
    let _context = without_kernels().enter();
    let step = function(|x: Tensor| -> Result<Tensor> {
        x.sort(1, false)?.tanh()?.sort(0, false)?.sum_all()
    });
    let x = drawn([64, 32], 1.0).to("sim:0").unwrap();
    let plan = step.plan(&x).unwrap();
    let (staged, explained) = (Bytes::new(2 * 64 * 32 * 4), plan.explain());
    let steps = explained.steps.iter().filter(|step| step.staging.is_some());
    assert!(steps.count() == 2 && plan.host_bytes() >= staged, "{plan}");
    assert!(plan.to_string().contains("2 steps run on the host, through"), "{plan}");
    assert!(plan.to_string().contains(&format!("takes {} of host memory", plan.host_bytes())));
    assert!(plan.to_string().contains(" on sim, as cpu"), "{plan}");
    let here = function(|x: Tensor| x.sort(1, false)).plan(&drawn([64, 32], 1.0)).unwrap();
    assert_eq!((here.host_bytes(), here.host_step()), (Bytes::ZERO, None));
}

#[test]
fn a_copy_runs_when_it_is_awaited_and_no_earlier() {
    let context = Context::new();
    let _entered = context.enter();
    let (sim, owner) = (context.sim(), || Owner::new(Kind::Staging, "test"));
    let ledger = context.ledger(device::Device::SIM).unwrap();
    let mut bytes = Buffer::obtain(ledger, Bytes::new(64), owner()).unwrap();
    let host = HostBlock::obtain(sim, Bytes::new(64), owner()).unwrap();
    let seen = || host.part(0, 1).with_bytes(|bytes| Ok(bytes[0])).unwrap();
    let mut lender = Lender::new(sim);
    let base = lender.add(&mut bytes);
    let all = ByteRange { base, offset: 0, len: 64, align: 1 };
    let write = |lender: &mut Lender, byte: u8| {
        let mut lent = lender.lend(&[], &[all]).unwrap();
        sim.write(&[byte; 64], lent.writes.remove(0)).unwrap();
    };
    let copy_out = |lender: &mut Lender| {
        let lent = lender.lend(&[all], &[]).unwrap();
        sim.begin_copy_out(lent.reads[0], host.part(0, 64)).unwrap()
    };
    write(&mut lender, 1);
    let ticket = copy_out(&mut lender);
    sim.await_copy(ticket).unwrap();
    write(&mut lender, 2);
    assert_eq!(seen(), 0, "nothing runs before somebody waits");
    sim.wait().unwrap();
    assert_eq!(seen(), 1, "what is launched behind a copy does not disturb it");
    // Whoever forgets to await it finds what came later.
    write(&mut lender, 3);
    copy_out(&mut lender);
    write(&mut lender, 4);
    sim.wait().unwrap();
    assert_eq!(seen(), 4);
}

#[test]
fn an_error_that_comes_late_names_the_line_that_was_run() {
    let _context = Context::new().enter();
    let _scope = device::scope("sim:0").unwrap();
    let (x, rows) = (drawn([4, 2], 1.0), tensor([7i32]).unwrap());
    // In a function it comes when the call ends.
    let line = line!() + 2;
    let step =
        function(|(x, rows): (Tensor, Tensor)| -> Result<Tensor> { x.gather(&rows, 0)? * 2.0 });
    let error = step.call((x, rows)).unwrap_err();
    assert_eq!(error.source_line().unwrap().line(), line, "{error}");
}
