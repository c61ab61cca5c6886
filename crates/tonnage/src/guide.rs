//! The guide's pages and the README, as doc tests: every Rust program in them compiles and runs.
//!
//! This is the one place that lists them; `python/tests/test_guide.py` runs what they have in Python. A page that is missing here fails
//! the tidy test `every_page_of_the_guide_is_run`.
//!
//! Decision: `docs/decisions/guide-pages-are-doc-tests.md`.

macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        $(#[doc = include_str!(concat!("../../../", $path))] struct $name;)*
    };
}

pages! {
    Readme: "README.md",
    Index: "docs/README.md",
    Constants: "docs/constants.md",
    Allocation: "docs/allocation.md",
    Loops: "docs/loops.md",
    Functions: "docs/functions.md",
    State: "docs/state.md",
    Budgets: "docs/budgets.md",
    Files: "docs/files.md",
    Devices: "docs/devices.md",
    SeveralMachines: "docs/several-machines.md",
    Prediction: "docs/prediction.md",
    Errors: "docs/errors.md",
    Performance: "docs/performance.md",
    Keras: "docs/keras.md",
    Models: "docs/models.md",
    FromTensorFlow: "docs/from-tensorflow.md",
    FromPyTorch: "docs/from-pytorch.md",
}
