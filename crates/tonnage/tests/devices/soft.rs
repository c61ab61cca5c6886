//! Soft placement: inputs on different devices are copied to one, with a notice once a line.

use std::sync::{Arc, Mutex};

use tonnage::device::{self, Device};
use tonnage::{
    Context, Elementwise, ErrorKind, GradientTape, Result, Tensor, Variable, cond, function,
    notices, tensor,
};

/// What is heard in a context of its own, with soft placement.
fn softly(program: impl FnOnce() -> Result<()>) -> Vec<String> {
    let _context = Context::new().enter();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let to = heard.clone();
    notices::listen(move |notice| to.lock().unwrap().push(notice.to_string()));
    device::set_soft_placement(true);
    program().unwrap();
    heard.lock().unwrap().clone()
}

/// A matrix in host memory, and a transposed view of it on the device.
fn pair() -> Result<(Tensor, Tensor)> {
    let here = tensor([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]])?;
    let there = here.to("sim:0")?.t()?;
    Ok((here, there))
}

#[test]
fn an_op_runs_on_the_first_device_that_is_not_the_cpu_whatever_the_order() {
    let heard = softly(|| {
        let (here, there) = pair()?;
        let expected = here.matmul(&here.t()?)?.to_vec::<f32>()?;
        let made = here.matmul(&there)?;
        assert_eq!((made.device(), made.to_vec::<f32>()?), (Device::SIM, expected));
        // A view of host memory, whose copy lies close together.
        let expected = here.t()?.matmul(&here.t()?)?.to_vec::<f32>()?;
        let made = there.matmul(&here.t()?)?;
        assert_eq!((made.device(), made.to_vec::<f32>()?), (Device::SIM, expected));
        let sum = (&here.t()? + &there)?;
        assert_eq!(sum.to_vec::<f32>()?, (&here.t()? * 2.0)?.to_vec::<f32>()?);
        Ok(())
    });
    assert_eq!(heard.len(), 3, "{heard:?}");
    assert!(heard[0].starts_with("matmul: an input on cpu:0 was copied to sim:0"), "{heard:?}");
    assert!(heard[0].contains("soft.rs:"), "{heard:?}");
}

#[test]
fn a_line_is_told_of_once_and_what_follows_by_itself_is_not() {
    let heard = softly(|| {
        let (here, there) = pair()?;
        for _ in 0..5 {
            (&here + &there)?;
        }
        (&there * &tensor(2.0f32)?)?; // a single number
        (&there * &tonnage::zeros([3, 3])?)?; // a description
        Ok(())
    });
    assert_eq!(heard.len(), 1, "{heard:?}");
}

#[test]
fn functions_take_copies_of_views_and_their_plans_foresee_that() {
    let heard = softly(|| {
        let (here, there) = pair()?;
        let step = function(|(x, y): (Tensor, Tensor)| x.matmul(&y)?.tanh()?.sum(0));
        let expected = step.call((here.t()?, here.t()?))?.to_vec::<f32>()?;
        let arguments = (here.t()?, there.clone());
        let plan = step.plan(&arguments)?;
        let made = step.call(arguments)?;
        assert_eq!(made.device(), Device::SIM);
        assert_eq!(made.to_vec::<f32>()?, expected);
        assert_eq!(step.last_run().unwrap().measured.used, plan.peak());
        // A branch is a call of its own.
        let chosen = cond(&tensor(true)?, || there.matmul(&here.t()?), || there.matmul(&there))?;
        assert_eq!(chosen.to_vec::<f32>()?, here.t()?.matmul(&here.t()?)?.to_vec::<f32>()?);
        Ok(())
    });
    assert_eq!(heard.len(), 2, "{heard:?}");
}

#[test]
fn variables_stay_where_they_are_when_they_are_given_values_of_another_device() {
    softly(|| {
        let (here, there) = pair()?;
        let (on_host, on_device) = (Variable::new("a", here.clone())?, {
            let _scope = device::scope("sim:0")?;
            Variable::new("b", here.clone())?
        });
        assert_eq!((on_host.device(), on_device.device()), (Device::CPU, Device::SIM));
        for _ in 0..2 {
            // Somebody reads them, so the update cannot be in place; the second time it can.
            let read = (on_host.read()?, on_device.read()?);
            on_host.assign_add(&there)?;
            on_device.assign_add(&here.t()?)?;
            drop(read);
            on_host.assign(&there)?;
            on_device.assign(&here.t()?)?;
        }
        assert_eq!((on_host.device(), on_device.device()), (Device::CPU, Device::SIM));
        assert_eq!(on_host.read()?.to_vec::<f32>()?, here.t()?.to_vec::<f32>()?);
        assert_eq!(on_device.read()?.to_vec::<f32>()?, here.t()?.to_vec::<f32>()?);
        Ok(())
    });
}

#[test]
fn gradients_go_through_copies() {
    softly(|| {
        let x = tensor([1.0f32, 2.0])?;
        let mut tape = GradientTape::new();
        tape.watch(&x);
        let there = x.to("sim:0")?;
        let loss = ((&there * &there)? * &x)?.sum_all()?;
        let dx = tape.gradient(&loss, &x)?.tensor()?;
        assert_eq!(dx.to_vec::<f32>()?, [3.0, 12.0]);
        Ok(())
    });
}

#[test]
fn a_function_that_captured_a_tensor_of_the_device_takes_its_variables_there() {
    softly(|| {
        let (here, there) = pair()?;
        let v = Variable::new("v", here.clone())?;
        let step = function({
            let (v, there) = (v.clone(), there.clone());
            move |x: Tensor| -> Result<Tensor> {
                v.assign_add(&(&x + &there)?)?;
                v.read()?.sum_all()
            }
        });
        step.call(here.clone())?;
        let expected = ((&here * 2.0)? + here.t()?)?;
        assert_eq!(v.read()?.to_vec::<f32>()?, expected.to_vec::<f32>()?);
        Ok(())
    });
}

#[test]
fn it_is_off_unless_it_is_asked_for_and_in_the_context_that_asked() {
    let _context = Context::new().enter();
    let (here, there) = pair().unwrap();
    let refused = || {
        let error = (&here + &there).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::DeviceMismatch { .. }), "{error}");
    };
    refused();
    assert!(!device::is_placement_soft());
    notices::listen(|_| {});
    device::set_soft_placement(true);
    assert!((&here + &there).is_ok() && device::is_placement_soft());
    {
        let _other = Context::new().enter();
        assert!(!device::is_placement_soft());
    }
    device::set_soft_placement(false);
    refused();
}
