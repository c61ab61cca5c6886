//! `cond` and `switch`.

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::bad_argument;
use tonnage_core::{Kind, Mark, OpDef, Result, Source};
use tonnage_ops::control;

use super::check::branches_agree;
use super::eager;
use super::region::{
    RegionCaptures, RegionTrace, Takes, add_written, arranged, begin, key, leaves, with_leaves,
};
use crate::tensor::Tensor;
use crate::tree::Tree;

/// One of two results, as a boolean scalar says. Only the branch that is taken runs.
///
/// ```
/// use tonnage::{Elementwise, cond, tensor};
/// let x = tensor([1.0f32, -2.0])?;
/// let positive = tensor(0.0f32)?.less(&x.sum_all()?)?;
/// let y = cond(&positive, || (&x).exp(), || -&x)?;
/// assert_eq!(y.to_vec::<f32>()?, [-1.0, 2.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn cond<R: Tree>(
    condition: &Tensor,
    yes: impl FnOnce() -> Result<R>,
    no: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let source = Source::here();
    let traced = || -> Result<R> {
        let parts = vec![begin(&[], source, |_| yes())?, begin(&[], source, |_| no())?];
        run(&control::cond::COND, condition, parts, source)
    };
    traced().map_err(|e| e.at(source))
}

/// One of any number of results, as an integer scalar says, counted from 0. Only the branch that is taken
/// runs. A number that no branch has, negative ones included, takes the last one, so that the last one can
/// serve as the default.
///
/// ```
/// use tonnage::{Elementwise, switch, tensor};
/// let x = tensor([1.0f32, -2.0])?;
/// let pick = |i: i32| switch(&tensor(i)?, &[&|| (&x).square(), &|| -&x, &|| Ok(x.clone())]);
/// assert_eq!(pick(0)?.to_vec::<f32>()?, [1.0, 4.0]);
/// assert_eq!(pick(1)?.to_vec::<f32>()?, [-1.0, 2.0]);
/// assert_eq!(pick(7)?.to_vec::<f32>()?, [1.0, -2.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn switch<R: Tree>(index: &Tensor, branches: &[&dyn Fn() -> Result<R>]) -> Result<R> {
    let source = Source::here();
    let traced = || -> Result<R> {
        let parts = branches
            .iter()
            .map(|branch| begin(&[], source, |_| branch()))
            .collect::<Result<Vec<_>>>()?;
        run(&control::switch::SWITCH, index, parts, source)
    };
    traced().map_err(|e| e.at(source))
}

fn run<R: Tree>(
    op: &'static OpDef,
    choice: &Tensor,
    mut parts: Vec<RegionTrace<R>>,
    source: Source,
) -> Result<R> {
    branches_agree(op.name, &parts)?;
    // A variable that one branch writes leaves all: with its new value or with the one that it had.
    let mut written = Vec::new();
    for part in &parts {
        add_written(&mut written, &part.trace);
    }
    let mut traced = Vec::new();
    for part in &parts {
        let mut outputs = leaves(&part.result);
        for variable in &written {
            outputs.push(part.trace.read(variable)?);
        }
        traced.push(part.trace.finish(&outputs)?);
    }
    let outside = RegionCaptures::of(&traced.iter().collect::<Vec<_>>(), &written);
    let order: Vec<Takes> = written
        .iter()
        .map(Takes::Variable)
        .chain(outside.captured.iter().map(Takes::Tensor))
        .chain(outside.variables.iter().map(Takes::Variable))
        .collect();
    let regions: Vec<_> = traced.iter().map(|part| arranged(part, 0, &order)).collect();
    let Some(result) = parts.pop().map(|part| part.result) else {
        return Err(bad_argument(op.name, "no branches", "give at least one"));
    };
    let results = leaves(&result).len();
    let mut inputs: SmallVec<[eager::RegionInput; 3]> = SmallVec::new();
    inputs.push(eager::RegionInput::Tensor(choice.clone()));
    for (k, variable) in written.iter().enumerate() {
        inputs.push(eager::RegionInput::Written(variable.clone(), results + k));
    }
    inputs.extend(outside.captured.into_iter().map(eager::RegionInput::Tensor));
    for variable in &outside.variables {
        inputs.push(eager::RegionInput::Tensor(variable.read()?));
    }
    let attrs = Attrs::Branch { key: Some(key(&regions)), updates: Vec::new() };
    let mark = Mark { source, kind: Kind::Activation };
    let made = eager::apply(op, inputs, attrs, regions, mark)?;
    with_leaves(result, &mut made.into_iter())
}
