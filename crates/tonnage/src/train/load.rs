//! Values for variables from a file, by name: all of them, or those that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tonnage_core::error::bad_argument;
use tonnage_core::{Result, Source, TensorType};

use crate::io::{SafeTensors, bad_file, save_safetensors};
use crate::nn::Parameters;
use crate::variable::Variable;

/// How names in a file and variables must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loading {
    /// The same names on both sides.
    Strict,
    /// Every variable is in the file, which may hold more: a model from a checkpoint of training.
    All,
    /// What is on both sides is loaded, and the rest left as it is: a new last layer on a trained model.
    Partial,
}

/// What was not on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Loaded {
    /// Variables that the file does not hold.
    pub missing: Vec<String>,
    /// Tensors of the file that were not asked for.
    pub unknown: Vec<String>,
}

/// Gives variables the values of a file, a tensor at a time.
///
/// # Errors
/// Where names do not agree as they should, or types differ: the error lists all of them. Where a tensor is not as it was saved. Nothing has
/// changed then.
#[track_caller]
pub fn load(file: &SafeTensors, variables: &[(String, Variable)], how: Loading) -> Result<Loaded> {
    let source = Source::here();
    loaded(file, variables, how).map_err(|e| e.at(source))
}

fn loaded(file: &SafeTensors, variables: &[(String, Variable)], how: Loading) -> Result<Loaded> {
    let found = matched(file.path(), file.names(), |name| file.ty(name), variables, how)?;
    let wanted: BTreeMap<&str, &Variable> =
        variables.iter().map(|(name, variable)| (name.as_str(), variable)).collect();
    let is_there = |name: &str| found.missing.iter().all(|missing| missing != name);
    // All of them before the first variable changes.
    for name in wanted.keys().filter(|name| is_there(name)) {
        file.tensor(name)?.check()?;
    }
    for (name, variable) in wanted.iter().filter(|(name, _)| is_there(name)) {
        // From the file straight into the variable's bytes: a tensor between them would take as much again.
        variable.assign(&file.tensor(name)?.lazy())?;
    }
    Ok(found)
}

/// What is not on both sides, where names and types agree as they should.
pub(super) fn matched<'f>(
    path: &Path,
    names: impl Iterator<Item = &'f str>,
    ty: impl Fn(&str) -> Result<TensorType>,
    variables: &[(String, Variable)],
    how: Loading,
) -> Result<Loaded> {
    let wanted: BTreeMap<&str, &Variable> =
        variables.iter().map(|(name, variable)| (name.as_str(), variable)).collect();
    let there: BTreeSet<&str> = names.collect();
    let owned = |names: Vec<&&str>| names.into_iter().map(|name| name.to_string()).collect();
    let found = Loaded {
        missing: owned(wanted.keys().filter(|name| !there.contains(**name)).collect()),
        unknown: owned(there.iter().filter(|name| !wanted.contains_key(**name)).collect()),
    };
    let Loaded { missing, unknown } = &found;
    let wrong = match how {
        Loading::Strict => !missing.is_empty() || !unknown.is_empty(),
        Loading::All => !missing.is_empty(),
        Loading::Partial => missing.len() == wanted.len() && !wanted.is_empty(),
    };
    if wrong {
        let what = format!("is of another model: missing {missing:?}, unknown {unknown:?}");
        return Err(bad_file(path, what, "use the model that it was saved from"));
    }
    let mut others = Vec::new();
    for (name, variable) in wanted.iter().filter(|(name, _)| there.contains(**name)) {
        let (saved, own) = (ty(name)?, variable.ty());
        if saved != own {
            others.push(format!("`{name}` is {saved}, and {own} in the model"));
        }
    }
    if !others.is_empty() {
        let help = "use the model that it was saved from";
        return Err(bad_file(path, others.join("; "), help));
    }
    Ok(found)
}

/// A model's parameters, by their paths.
fn named(model: &impl Parameters) -> Result<Vec<(String, Variable)>> {
    let all = model.parameters();
    if all.is_empty() {
        let what = "the model has no parameters yet".to_string();
        let help = "call it or plan it once: they are made when the first input comes";
        return Err(bad_argument("weights", what, help));
    }
    Ok(all.into_iter().map(|p| (p.path, p.variable)).collect())
}

/// Saves a model's parameters by their paths, atomically.
///
/// ```
/// use tonnage::nn::{Dense, Layer, Mode, Parameters};
/// use tonnage::train::{Loading, load_weights, save_weights};
/// let path = std::env::temp_dir().join(format!("weights-{}.safetensors", std::process::id()));
/// let x = tonnage::ones([1, 3])?;
/// let (one, other) = (Dense::new(2), Dense::new(2));
/// let made = one.forward(&x, Mode::Inference)?;
/// save_weights(&path, &one)?;
/// other.forward(&x, Mode::Inference)?;
/// load_weights(&path, &other, Loading::Strict)?;
/// let again = other.forward(&x, Mode::Inference)?;
/// assert_eq!(made.to_vec::<f32>()?, again.to_vec::<f32>()?);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where the model was never called, or the file cannot be written.
#[track_caller]
pub fn save_weights(path: impl AsRef<Path>, model: &impl Parameters) -> Result<()> {
    let source = Source::here();
    let save = || {
        let values = named(model)?
            .into_iter()
            .map(|(name, variable)| Ok((name, variable.read()?)))
            .collect::<Result<Vec<_>>>()?;
        let tensors = values.iter().map(|(name, value)| (name.as_str(), value));
        save_safetensors(path, tensors, &[("format", "tonnage weights")])
    };
    save().map_err(|e| e.at(source))
}

/// Gives a model's parameters the values of a file, or of several with an index.
///
/// # Errors
/// As [`load`] has them; and where the model was never called.
#[track_caller]
pub fn load_weights(
    path: impl AsRef<Path>,
    model: &impl Parameters,
    how: Loading,
) -> Result<Loaded> {
    let source = Source::here();
    let load = || loaded(&SafeTensors::open(path)?, &named(model)?, how);
    load().map_err(|e| e.at(source))
}
