//! Tensors, functions, variables and mistakes.

use tonnage::device::{self, Device};
use tonnage::optim::Optimizer;
use tonnage::{
    Bytes, Context, DType, Elementwise, ErrorKind, GradientTape, Result, Tensor, Variable, cond,
    function, memory, random_normal, set_seed, tensor, while_loop, zeros,
};

fn in_use(device: &str) -> Bytes {
    memory::info(device).unwrap().in_use
}

fn matrix(rows: usize, columns: usize, seed: u64) -> Tensor {
    set_seed(seed);
    let drawn = random_normal([rows, columns], DType::F32).unwrap().to_vec::<f32>().unwrap();
    tensor(drawn).unwrap().reshape([rows as i64, columns as i64]).unwrap()
}

fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

#[test]
fn eager_ops_run_where_their_inputs_are_with_the_bits_of_the_cpu() {
    let _context = Context::new().enter();
    let (x, y) = (matrix(40, 50, 1), matrix(50, 30, 2));
    let program = |x: &Tensor, y: &Tensor| -> Result<Vec<Tensor>> {
        let product = x.matmul(y)?;
        let rows = product.softmax(-1)?;
        let sorted = (&rows - rows.mean(0)?)?.abs().and_then(|t| t.sqrt())?;
        Ok(vec![sorted.t()?, product.sum_all()?, x.tanh()?.max(1)?, (&product * 2.0)?])
    };
    let here = program(&x, &y).unwrap();
    let there = program(&x.to("sim:0").unwrap(), &y.to("sim:0").unwrap()).unwrap();
    for (here, there) in here.iter().zip(&there) {
        assert_eq!((here.device(), there.device()), (Device::CPU, Device::SIM));
        assert_eq!(bits(here), bits(there));
    }
    drop(there);
    assert_eq!(in_use("sim:0"), Bytes::ZERO);
}

#[test]
fn a_function_takes_on_its_device_what_its_plan_says_and_nothing_of_the_host() {
    let _context = Context::new().enter();
    let step = function(|(x, y): (Tensor, Tensor)| -> Result<Tensor> {
        let product = x.matmul(&y)?.relu()?;
        (product.matmul(&y.t()?)?.tanh()? * 3.0)?.sum(1)
    });
    let (x, y) = (matrix(300, 200, 3), matrix(200, 100, 4));
    let here = step.call((x.clone(), y.clone())).unwrap();
    let (x, y) = (x.to("sim:0").unwrap(), y.to("sim:0").unwrap());
    let before = in_use("cpu:0");
    memory::reset_peak("cpu:0").unwrap();
    memory::reset_peak("sim:0").unwrap();
    let plan = step.plan(&(x.clone(), y.clone())).unwrap();
    let there = step.call((x.clone(), y.clone())).unwrap();
    let ran = step.last_run().unwrap();
    assert_eq!(ran.measured.used, plan.peak());
    assert_eq!(memory::info("sim:0").unwrap().peak, plan.peak());
    assert_eq!(memory::info("cpu:0").unwrap().peak, before);
    assert_eq!(bits(&here), bits(&there));
}

#[test]
fn variables_tapes_and_an_optimizer_train_on_the_device_with_the_bits_of_the_cpu() {
    let train = |device: &str| -> Result<(Vec<u32>, Vec<u32>, Device)> {
        let _context = Context::new().enter();
        let _scope = device::scope(device)?;
        set_seed(7);
        let w = Variable::new("w", matrix(20, 10, 5))?;
        let b = Variable::new("b", zeros([10])?)?;
        let adam = Optimizer::adam(0.01);
        let x = matrix(64, 20, 6);
        let step = function({
            let (w, b) = (w.clone(), b.clone());
            move |x: Tensor| -> Result<Tensor> {
                let mut tape = GradientTape::new();
                let loss = (x.matmul(&w.read()?)? + b.read()?)?.square()?.mean_all()?;
                let variables = vec![w.clone(), b.clone()];
                let gradients = tape.gradient(&loss, &variables)?;
                adam.apply(&variables, &gradients)?;
                Ok(loss)
            }
        });
        let mut losses = Vec::new();
        for _ in 0..5 {
            losses.extend(bits(&step.call(x.clone())?));
        }
        Ok((losses, bits(&w.read()?), w.read()?.device()))
    };
    let (here, there) = (train("cpu:0").unwrap(), train("sim:0").unwrap());
    assert_eq!((here.2, there.2), (Device::CPU, Device::SIM));
    assert_eq!((here.0, here.1), (there.0, there.1));
}

#[test]
fn an_op_over_two_devices_says_which_and_what_to_call() {
    let _context = Context::new().enter();
    let x = matrix(4, 4, 8);
    let there = x.to("sim:0").unwrap();
    let error = there.matmul(&x).unwrap_err();
    let wanted = ErrorKind::DeviceMismatch { op: "matmul", left: Device::SIM, right: Device::CPU };
    assert_eq!(*error.kind(), wanted);
    assert!(error.to_string().contains("move one of them with `to(\"sim:0\")`"), "{error}");
    let f = function(|(x, y): (Tensor, Tensor)| x.matmul(&y));
    let error = f.call((there, x)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::DeviceMismatch { .. }), "{error}");
}

#[test]
fn a_device_that_is_not_there_is_named_with_those_that_are() {
    let _context = Context::new().enter();
    let x = tensor([1.0f32]).unwrap();
    for name in ["cuda:63", "/GPU:64", "cpu:1", "sim:3", "tpu:0"] {
        let error = x.to(name).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NoDevice { .. }), "{error}");
        assert!(device::scope(name).is_err() && memory::info(name).is_err());
    }
    assert!(x.to("cuda:63").unwrap_err().to_string().contains("this machine has cpu:0"));
}

#[test]
fn a_limit_on_one_device_leaves_the_other_alone_and_evicts_to_the_host() {
    let _context = Context::new().enter();
    memory::set_limit("sim:0", Some(Bytes::mib(1))).unwrap();
    let there: Vec<Tensor> = (0..8).map(|i| matrix(256, 256, i).to("sim:0").unwrap()).collect();
    assert!(in_use("sim:0") <= Bytes::mib(1));
    assert!(in_use("cpu:0") >= Bytes::mib(1), "what left is in host memory");
    for (i, there) in there.iter().enumerate() {
        assert_eq!(bits(there), bits(&matrix(256, 256, i as u64)));
    }
    let error = matrix(1024, 1024, 9).to("sim:0").unwrap_err().to_string();
    assert!(error.contains("in use on sim:0"), "{error}");
    drop(there);
    assert_eq!((in_use("sim:0"), in_use("cpu:0")), (Bytes::ZERO, Bytes::ZERO));
}

#[test]
fn an_index_out_of_range_is_found_late_and_no_update_behind_it_happens() {
    let _context = Context::new().enter();
    let _scope = device::scope("sim:0").unwrap();
    let v = Variable::new("v", matrix(4, 2, 10)).unwrap();
    let before = bits(&v.read().unwrap());
    let rows = tensor([0i32, 9]).unwrap();
    let step = function({
        let v = v.clone();
        move |rows: Tensor| -> Result<Tensor> {
            let taken = v.read()?.gather(&rows, 0)?;
            v.assign_add(&(v.read()? * 2.0)?)?;
            Ok(taken)
        }
    });
    let error = step.call(rows.clone()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::IndexOutOfRange { index: 9, .. }), "{error}");
    assert_eq!(bits(&v.read().unwrap()), before);
    // Eagerly the error is the op's own, with its line; what was launched before it and is launched behind it runs.
    let doubled = (v.read().unwrap() * 2.0).unwrap();
    let line = line!() + 1;
    let error = v.read().unwrap().gather(&rows, 0).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::IndexOutOfRange { index: 9, .. }), "{error}");
    assert_eq!(error.source_line().unwrap().line(), line, "{error}");
    let error = v.assign_rows(&rows, &tensor([[1.0f32; 2]; 2]).unwrap()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::IndexOutOfRange { index: 9, .. }), "{error}");
    assert_eq!(bits(&v.read().unwrap()), before);
    assert_eq!(bits(&doubled), bits(&(v.read().unwrap() * 2.0).unwrap()));
}

#[test]
fn tensors_outlive_their_context() {
    let kept = {
        let _context = Context::new().enter();
        matrix(3, 3, 11).to("sim:0").unwrap()
    };
    assert_eq!(bits(&kept).len(), 9);
    assert_eq!((&kept + &kept).unwrap().device(), Device::SIM);
}

#[test]
fn loops_and_branches_run_on_the_device() {
    let _context = Context::new().enter();
    let x = matrix(8, 8, 12);
    let program = function(|x: Tensor| -> Result<Tensor> {
        let (_, grown) = while_loop(
            (tensor(0i32)?, x),
            |(i, _)| i.less(5),
            |(i, x): (Tensor, Tensor)| Ok(((i + 1)?, (x.matmul(&x.t()?)? * 0.1)?)),
        )?;
        cond(&grown.sum_all()?.greater(0.0)?, || (&grown).tanh(), || (&grown).sigmoid())
    });
    let here = program.call(x.clone()).unwrap();
    let there = program.call(x.to("sim:0").unwrap()).unwrap();
    assert_eq!(there.device(), Device::SIM);
    assert_eq!(bits(&here), bits(&there));
}

#[test]
fn a_device_that_fails_in_the_middle_of_a_call_leaves_variables_as_they_were_and_nothing_behind() {
    let context = Context::new();
    let _entered = context.enter();
    let _scope = device::scope("sim:0").unwrap();
    let v = Variable::new("v", matrix(20, 20, 13)).unwrap();
    let x = matrix(8, 20, 14);
    let step = function({
        let v = v.clone();
        move |x: Tensor| -> Result<Tensor> {
            let made = x.matmul(&v.read()?)?.softmax(-1)?.matmul(&v.read()?)?;
            let sum = made.sum_all()?;
            v.assign_add(&(v.read()? * &sum)?)?;
            Ok(sum)
        }
    });
    step.call(x.clone()).unwrap();
    let before = (bits(&v.read().unwrap()), in_use("sim:0"), in_use("cpu:0"));
    let mut failed = 0;
    for n in 1.. {
        context.sim().fail_nth(Some(n));
        match step.call(x.clone()) {
            Err(error) => {
                let device_failed = matches!(error.kind(), ErrorKind::DeviceFailed { .. });
                assert!(device_failed && error.to_string().starts_with("sim:0 failed"), "{error}");
                let after = (bits(&v.read().unwrap()), in_use("sim:0"), in_use("cpu:0"));
                assert_eq!(after, before, "launch {n}");
                failed += 1;
            }
            // All launches of the call were fewer.
            Ok(_) => break,
        }
    }
    context.sim().fail_nth(None);
    assert!(failed >= 4, "{failed} launches");
    assert_ne!(bits(&v.read().unwrap()), before.0);
}
