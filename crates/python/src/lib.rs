//! The Python package's own half in Rust: `tonnage._tonnage`. What users import is the package around it, in
//! `python/tonnage`, which gives all of this TensorFlow's names.
//!
//! The invariant: mechanics are the `tonnage` crate's. Here values cross the boundary, and nothing panics across it.
//!
//! In the order in which a call crosses: `convert` and `args` take what users pass, `nest` what is nested, `line` the user's
//! line, `run` decides where it runs; `tensor` with `operators` and `index`, `variable`, `op`, `ops`, `control`, `tape`, `function`,
//! `strings`, `session`, `memory`, `device`, `onnx`, `world` and `pipeline` (with `callback`) are what can be called; `results`, `numpy` and `errors` lead back.

mod args;
mod array;
mod buffer;
mod callback;
mod control;
mod convert;
mod device;
mod dtype;
mod errors;
mod function;
mod index;
mod layers;
mod line;
mod memory;
mod nest;
mod numpy;
mod onnx;
mod op;
mod operators;
mod ops;
mod optim;
mod pipeline;
mod results;
mod run;
mod session;
mod strings;
mod tape;
mod tensor;
mod timeline;
mod variable;
mod weights;
mod world;

use pyo3::prelude::*;

#[pymodule]
fn _tonnage(module: &Bound<'_, PyModule>) -> PyResult<()> {
    tonnage::bind::set_question(errors::is_interrupted);
    tonnage::bind::set_packages(module.py().import("sys")?.getattr("path")?.extract()?);
    module.add_class::<tensor::PyTensor>()?;
    module.add_class::<variable::PyVariable>()?;
    module.add_class::<strings::PyStrings>()?;
    module.add_class::<dtype::PyDType>()?;
    module.add_class::<function::PyFunction>()?;
    module.add_class::<tape::PyTape>()?;
    module.add_class::<session::PyGraph>()?;
    module.add_class::<session::PySession>()?;
    module.add_class::<memory::PyPlan>()?;
    module.add_class::<timeline::PyRecording>()?;
    module.add_class::<timeline::PyTimeline>()?;
    module.add_class::<onnx::PyOnnxModel>()?;
    module.add_class::<op::Op>()?;
    module.add_class::<optim::PyOptimizer>()?;
    module.add_class::<optim::PyLossScale>()?;
    module.add_class::<pipeline::PyPipeline>()?;
    module.add_class::<pipeline::PyElements>()?;
    module.add_class::<weights::PyFolderLock>()?;
    module.add_class::<weights::PyTensorFile>()?;
    module.add_class::<world::PyWorld>()?;
    macro_rules! functions {
        ($($name:path),* $(,)?) => {$(module.add_function(wrap_pyfunction!($name, module)?)?;)*};
    }
    functions!(
        layers::batch_norm,
        layers::conv_transpose,
        layers::group_norm,
        layers::rms_norm,
        callback::end_callbacks,
        line::enter_layer,
        line::leave_layer,
        line::pass_over_folder,
        run::after_fork,
        run::call_number,
        run::enter_eager,
        run::leave_eager,
        run::set_threads,
        run::check_numerics,
        device::enter_device,
        device::leave_device,
        device::in_device_scope,
        device::parse_device,
        device::devices,
        device::set_soft_placement,
        device::soft_placement,
        device::copied_to,
        device::to_scope,
        dtype::the_dtype,
        errors::set_error_classes,
        errors::panic_for_tests,
        tensor::set_sugar,
        variable::get_variable,
        variable::with_variables_as,
        variable::in_name_scope,
        variable::forget_variables,
        function::byte_count,
        function::run_functions_eagerly,
        control::while_loop,
        control::scan,
        control::map_rows,
        control::cond,
        control::switch,
        control::custom_gradient,
        control::checkpoint,
        control::host_callback,
        tape::graph_gradients,
        session::is_symbolic,
        session::is_tracing,
        session::is_in_region,
        session::call_eagerly,
        session::known_value,
        memory::memory_info,
        memory::reset_peak,
        memory::empty_cache,
        memory::set_limit,
        memory::set_spill_folder,
        memory::keep_in_files,
        memory::enter_budget,
        memory::leave_budget,
        memory::has_budget_around,
        memory::resident,
        memory::record_memory,
        timeline::start_recording,
        memory::listen,
        op::table,
        ops::fold_in_seed,
        ops::set_seed,
        ops::shape_of,
        ops::spec,
        ops::split_seed,
        ops::to_tensor,
        weights::save_tensors,
        weights::save_across,
        weights::remove_saved,
        weights::save_text,
        world::in_replica,
    );
    strings::text::add_all(module)?;
    ops::add_all(module)
}
