//! Control flow on tensors: branches and loops that become part of a graph, or run now.

use std::collections::BTreeSet;
use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::bad_argument;
use tonnage_core::graph::Graph;
use tonnage_core::{Kind, Mark, Result, Source, TensorType};
use tonnage_ops::control;

use crate::dispatch::{self, Input};
use crate::tensor::Tensor;
use crate::trace::{Trace, Traced};
use crate::tree::Tree;
use crate::variable::Variable;

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
    branch(condition, yes, no, source).map_err(|e| e.at(source))
}

/// A region in the making.
struct Part<R> {
    trace: Trace,
    result: R,
}

fn begin<R: Tree>(
    types: &[TensorType],
    source: Source,
    f: impl FnOnce(Vec<Tensor>) -> Result<R>,
) -> Result<Part<R>> {
    let trace = Trace::begin_region(source);
    let arguments = types.iter().map(|ty| trace.argument(ty.clone())).collect();
    let result = trace.within(|| f(arguments))?;
    Ok(Part { trace, result })
}

fn leaves<R: Tree>(tree: &R) -> Vec<Tensor> {
    let mut all = Vec::new();
    tree.for_each(&mut |tensor| all.push(tensor.clone()));
    all
}

/// Regions that take the same inputs: their own arguments, then all that any of them captured, then all
/// variables that any of them uses.
struct Joined {
    graphs: Vec<Arc<Graph>>,
    captured: Vec<Tensor>,
    variables: Vec<Variable>,
}

fn join(parts: Vec<Traced>, arguments: usize) -> Joined {
    let mut captured: Vec<Tensor> = Vec::new();
    let mut variables: Vec<Variable> = Vec::new();
    for part in &parts {
        for tensor in &part.captured {
            if !captured.iter().any(|t| t.id() == tensor.id()) {
                captured.push(tensor.clone());
            }
        }
        for used in &part.variables {
            if !variables.iter().any(|v| v.same(&used.variable)) {
                variables.push(used.variable.clone());
            }
        }
    }
    let graphs = parts
        .into_iter()
        .map(|part| {
            let mut graph = part.graph;
            let own = graph.inputs.clone();
            let mut inputs = own[..arguments].to_vec();
            for tensor in &captured {
                let at = part.captured.iter().position(|t| t.id() == tensor.id());
                inputs.push(match at {
                    Some(at) => own[arguments + at],
                    None => graph.add_unused_input(tensor.ty(), Kind::Constant),
                });
            }
            for variable in &variables {
                let at = part.variables.iter().position(|u| u.variable.same(variable));
                inputs.push(match at {
                    Some(at) => own[arguments + part.captured.len() + at],
                    None => graph.add_unused_input(variable.ty(), Kind::Variable),
                });
            }
            graph.inputs = inputs;
            Arc::new(graph)
        })
        .collect();
    Joined { graphs, captured, variables }
}

/// Variables that any region writes, in the order of their first use.
fn written<R>(parts: &[&Part<R>]) -> Vec<Variable> {
    let mut all: Vec<Variable> = Vec::new();
    for part in parts {
        for used in part.trace.state().variables.iter().filter(|u| u.written) {
            if !all.iter().any(|v| v.same(&used.variable)) {
                all.push(used.variable.clone());
            }
        }
    }
    all
}

fn branch<R: Tree>(
    condition: &Tensor,
    yes: impl FnOnce() -> Result<R>,
    no: impl FnOnce() -> Result<R>,
    source: Source,
) -> Result<R> {
    let yes = begin(&[], source, |_| yes())?;
    let no = begin(&[], source, |_| no())?;
    let mut texts = [String::new(), String::new()];
    yes.result.describe(&mut texts[0]);
    no.result.describe(&mut texts[1]);
    if texts[0] != texts[1] {
        let what = "the branches return differently nested results";
        return Err(bad_argument("cond", what, "return the same structure from both"));
    }
    // A variable that one branch writes leaves both: with its new value or with the one that it had.
    let variables = written(&[&yes, &no]);
    let mut finished = Vec::new();
    for part in [&yes, &no] {
        let mut outputs = leaves(&part.result);
        for variable in &variables {
            outputs.push(part.trace.read(variable)?);
        }
        finished.push(part.trace.finish(&outputs)?);
    }
    let joined = join(finished, 0);
    let mut inputs: SmallVec<[Input; 3]> = SmallVec::new();
    inputs.push(Input::Borrowed(condition));
    inputs.extend(joined.captured.iter().map(Input::Borrowed));
    for variable in &joined.variables {
        inputs.push(Input::Owned(variable.read()?));
    }
    let mark = Mark { source, kind: Kind::Activation };
    let attrs = Attrs::Stream(crate::make::next_key());
    let made = dispatch::apply_marked(&control::cond::COND, inputs, attrs, joined.graphs, mark)?;
    finish(yes.result, made, &variables)
}

/// Results where they belong, and variables written.
fn finish<R: Tree>(result: R, made: SmallVec<[Tensor; 1]>, variables: &[Variable]) -> Result<R> {
    let mut made = made.into_iter();
    let result = result.map(&mut |_| {
        made.next().ok_or_else(|| bad_argument("control flow", "a result is missing", "report it"))
    })?;
    for (variable, value) in variables.iter().zip(made) {
        variable.assign(&value)?;
    }
    Ok(result)
}

/// Runs a body again and again, as long as a condition holds. Carried values keep their dtype and shape.
///
/// The body is planned once and runs in the memory of one round, whatever the number of rounds.
///
/// ```
/// use tonnage::{Tensor, tensor, while_loop};
/// let start = (tensor(0i32)?, tensor(1.0f32)?);
/// let (_, x) = while_loop(
///     start,
///     |(i, _)| i.less(5),
///     |(i, x): (Tensor, Tensor)| Ok(((i + 1)?, (x * 2.0)?)),
/// )?;
/// assert_eq!(x.to_vec::<f32>()?, [32.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn while_loop<S: Tree>(
    start: S,
    condition: impl FnOnce(S) -> Result<Tensor>,
    body: impl FnOnce(S) -> Result<S>,
) -> Result<S> {
    let source = Source::here();
    run_loop(start, None, condition, body, source).map_err(|e| e.at(source))
}

/// The same, ended after at most `most` rounds.
#[track_caller]
pub fn while_loop_at_most<S: Tree>(
    start: S,
    most: u64,
    condition: impl FnOnce(S) -> Result<Tensor>,
    body: impl FnOnce(S) -> Result<S>,
) -> Result<S> {
    let source = Source::here();
    run_loop(start, Some(most), condition, body, source).map_err(|e| e.at(source))
}

fn run_loop<S: Tree>(
    start: S,
    most: Option<u64>,
    condition: impl FnOnce(S) -> Result<Tensor>,
    body: impl FnOnce(S) -> Result<S>,
    source: Source,
) -> Result<S> {
    let carried = leaves(&start);
    let types: Vec<TensorType> = carried.iter().map(Tensor::ty).collect();
    let nested = |symbols: Vec<Tensor>| {
        let mut symbols = symbols.into_iter();
        start.share().map(&mut |t| Ok(symbols.next().unwrap_or(t)))
    };
    let test = begin(&types, source, |symbols| condition(nested(symbols)?))?;
    let round = begin(&types, source, |symbols| body(nested(symbols)?))?;
    if !test.trace.written().is_empty() {
        let help = "write variables in the body";
        return Err(bad_argument("while_loop", "the condition writes a variable", help));
    }
    check_body(&start, &types, &round.result)?;
    // Variables that the body writes are carried too.
    let variables = written(&[&round]);
    let mut outputs = leaves(&round.result);
    for variable in &variables {
        outputs.push(round.trace.read(variable)?);
    }
    let finished = vec![test.trace.finish(&[test.result])?, round.trace.finish(&outputs)?];
    let mut joined = join(finished, types.len());
    let is_carried: BTreeSet<usize> = joined
        .variables
        .iter()
        .enumerate()
        .filter(|(_, v)| variables.iter().any(|w| w.same(v)))
        .map(|(i, _)| i)
        .collect();
    let first = types.len() + joined.captured.len();
    for graph in &mut joined.graphs {
        let mut moved = (**graph).clone();
        moved.inputs = reordered(
            &moved.inputs,
            types.len(),
            first,
            &variables,
            &joined.variables,
            &is_carried,
        );
        *graph = Arc::new(moved);
    }
    let mut inputs: Vec<Tensor> = carried;
    inputs.extend(joined.captured.iter().cloned());
    for variable in &joined.variables {
        inputs.push(variable.read()?);
    }
    let inputs = reordered(&inputs, types.len(), first, &variables, &joined.variables, &is_carried);
    drop(start);
    let attrs = Attrs::Loop { carried: types.len() + variables.len(), most };
    let mark = Mark { source, kind: Kind::Activation };
    let inputs = inputs.into_iter().map(Input::Owned).collect();
    let op = &control::while_loop::WHILE_LOOP;
    let made = dispatch::apply_marked(op, inputs, attrs, joined.graphs, mark)?;
    finish(round.result, made, &variables)
}

/// Arguments, written variables in their order, captures, other variables.
fn reordered<T: Clone>(
    all: &[T],
    arguments: usize,
    first: usize,
    written: &[Variable],
    variables: &[Variable],
    carried: &BTreeSet<usize>,
) -> Vec<T> {
    let mut out = all[..arguments].to_vec();
    for variable in written {
        if let Some(at) = variables.iter().position(|v| v.same(variable)) {
            out.push(all[first + at].clone());
        }
    }
    out.extend_from_slice(&all[arguments..first]);
    for at in 0..variables.len() {
        if !carried.contains(&at) {
            out.push(all[first + at].clone());
        }
    }
    out
}

fn check_body<S: Tree>(start: &S, types: &[TensorType], made: &S) -> Result<()> {
    let mut texts = [String::new(), String::new()];
    start.describe(&mut texts[0]);
    made.describe(&mut texts[1]);
    if texts[0] != texts[1] {
        let what = "the body returns differently nested values than it takes";
        return Err(bad_argument("while_loop", what, "return the carried values as they came"));
    }
    for (i, (before, after)) in types.iter().zip(leaves(made)).enumerate() {
        if *before != after.ty() {
            let what = format!("loop variable {i} enters as {before} and leaves as {}", after.ty());
            let help = "keep its dtype and shape the same in every round";
            return Err(bad_argument("while_loop", what, help));
        }
    }
    Ok(())
}
