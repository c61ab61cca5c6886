//! What a session fetches: the part of its graph that some values need, as a program, and what it is fed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tonnage_core::error::bad_argument;
use tonnage_core::graph::{Graph, ValueId};
use tonnage_core::heap::{Heap, Seen};
use tonnage_core::row::Mem;
use tonnage_core::{ErrorKind, Kind, Result, Symbol};

use super::{Placeholder, Session};
use crate::function::program::TracedProgram;
use crate::function::signature::Signature;
use crate::function::{CallKey, HasProgram, TraceCache, lock};
use crate::tensor::{Tensor, TensorRepr};
use crate::trace::InputOrigin;
use crate::tree::Tree;

/// A program for some fetches.
pub(super) struct FetchProgram {
    pub program: TracedProgram,
    /// The placeholders that it needs, in the order of its arguments.
    pub placeholders: Vec<Placeholder>,
}

/// Programs for fetches, cached.
type Fetches = Arc<Mutex<TraceCache<FetchProgram>>>;

impl HasProgram for FetchProgram {
    fn program(&self) -> &TracedProgram {
        &self.program
    }
}

impl Heap for FetchProgram {
    fn heap(&self, seen: &mut Seen) -> usize {
        let own = self.placeholders.capacity() * size_of::<Placeholder>();
        own + self.program.heap(seen)
            + self.placeholders.iter().map(|p| p.ty.heap(seen)).sum::<usize>()
    }
}

impl Session {
    /// What is fed, in the order of the fetch's arguments.
    pub(super) fn feeds(
        &self,
        fetch: &FetchProgram,
        feeds: Vec<(&str, Tensor)>,
    ) -> Result<Vec<Tensor>> {
        let known = self.graph.placeholders();
        let mut given: HashMap<&str, Tensor> = HashMap::new();
        for (name, tensor) in feeds {
            if !known.iter().any(|(known, _)| known == name) {
                let names: Vec<String> =
                    known.iter().map(|(name, _)| format!("`{name}`")).collect();
                let what = format!("there is no placeholder `{name}` to feed");
                let help = format!("the graph has {}", some(&names));
                return Err(bad_argument("session", what, help));
            }
            if given.insert(name, tensor).is_some() {
                let what = format!("`{name}` is fed twice");
                return Err(bad_argument("session", what, "feed each placeholder once"));
            }
        }
        let mut ordered = Vec::new();
        for placeholder in &fetch.placeholders {
            ordered.push(given.remove(&*placeholder.name).ok_or_else(|| {
                let Placeholder { name, ty, made } = placeholder;
                let what = format!("placeholder `{name}` ({ty}, made at {made}) is not fed");
                bad_argument("session", what, "pass a tensor under its name")
            })?);
        }
        let signature = &fetch.program.signature;
        let types = ordered.iter().map(Tensor::ty).collect();
        let fed = Signature::new(String::new(), types, signature.paths.clone());
        match signature.fits(&fed) {
            true => Ok(ordered),
            false => Err(signature.misfit("session", &fed, &|name, got, expected| {
                format!("placeholder `{name}` is {expected}, but was fed {got}")
            })),
        }
    }

    /// The program for these fetches, and where it is cached.
    pub(super) fn fetch<T: Tree>(
        &self,
        fetches: &T,
        updates: &[&Tensor],
    ) -> Result<(Arc<FetchProgram>, Fetches)> {
        let cache = match &*lock(&self.open) {
            Some(open) => open.cache.clone(),
            None => return Err(self.closed()),
        };
        let (mut ids, mut failed) = (Vec::new(), None);
        let mut wanted = |tensor: &Tensor| match self.value(tensor) {
            Ok(id) => ids.extend(id),
            Err(error) => failed = Some(error),
        };
        fetches.for_each(&mut wanted);
        updates.iter().for_each(|tensor| wanted(tensor));
        if let Some(error) = failed {
            return Err(error);
        }
        let mut results = 0;
        fetches.for_each(&mut |tensor| results += usize::from(tensor.is_symbolic()));
        let mut key = CallKey::default();
        key.words.push(results as u64);
        key.words.extend(ids.iter().map(|id| id.index() as u64));
        let found = lock(&cache).trace(&key);
        if let Some(found) = found {
            return Ok((found, cache));
        }
        let made = Arc::new(self.program(&ids, results)?);
        let cached = lock(&cache).insert_trace(key, made, false);
        Ok((cached, cache))
    }

    /// The graph's value of a tensor; none for one that has values already.
    fn value(&self, tensor: &Tensor) -> Result<Option<ValueId>> {
        match tensor.repr() {
            TensorRepr::Array(_) => Ok(None),
            TensorRepr::Symbolic(symbol) if symbol.trace.is(&self.graph.0.trace) => {
                Ok(symbol.value.id())
            }
            TensorRepr::Symbolic(_) => Err(ErrorKind::Escaped { op: "session" }.into()),
            TensorRepr::Spec(_) => Err(tensor.no_values("session")),
        }
    }

    /// The part of the graph that computes these values, the first `results` of which are results.
    fn program(&self, ids: &[ValueId], results: usize) -> Result<FetchProgram> {
        let (part, origins) = self.graph.0.trace.part(ids);
        let mut graph = part.graph;
        let (mut arguments, mut captures, mut reads) = (Vec::new(), Vec::new(), Vec::new());
        for (origin, id) in origins.into_iter().zip(&graph.inputs) {
            match origin {
                InputOrigin::Argument(at) => arguments.push((at, *id)),
                InputOrigin::Captured(tensor) if tensor.is_symbolic() => {
                    return Err(ErrorKind::Escaped { op: "session" }.into());
                }
                InputOrigin::Captured(tensor) => captures.push((tensor, *id)),
                InputOrigin::Variable(variable) => reads.push((variable, *id)),
            }
        }
        // The last update of each variable that is part of this is what it leaves with.
        let mut now: Vec<ValueId> = reads.iter().map(|(_, id)| *id).collect();
        for node in &mut graph.nodes {
            let Mem::Update(input) = node.op.mem else { continue };
            let of = node.inputs[input];
            let at = now.iter().position(|id| *id == of);
            // Updates that were built apart from each other, all of the value that came in, follow each other.
            let at = at.or_else(|| reads.iter().position(|(_, id)| *id == of));
            if let Some(at) = at {
                node.inputs[input] = now[at];
                now[at] = node.outputs[0];
            }
        }
        graph.outputs.truncate(results);
        let mut variables = Vec::new();
        for ((variable, input), now) in reads.iter().zip(&now) {
            let written = input != now;
            graph.outputs.extend(written.then_some(*now));
            variables.push((self.own(variable)?, written));
        }
        let known = lock(&self.graph.0.inputs).placeholders.clone();
        self::sizes(&mut graph, &known, &mut arguments);
        graph.inputs = (arguments.iter().map(|(_, id)| *id))
            .chain(captures.iter().map(|(_, id)| *id))
            .chain(reads.iter().map(|(_, id)| *id))
            .collect();
        let placeholders: Vec<Placeholder> =
            arguments.iter().map(|(at, _)| known[*at].clone()).collect();
        let types = placeholders.iter().map(|p| p.ty.clone()).collect();
        let paths = placeholders.iter().map(|p| p.name.to_string()).collect();
        let signature = Signature::new(String::new(), types, paths);
        signature.check()?;
        let captured = captures.into_iter().map(|(tensor, _)| tensor).collect();
        let program = TracedProgram::new(graph, signature, captured, variables, results)?;
        Ok(FetchProgram { program, placeholders })
    }
}

/// Adds placeholders that only a size is read off: an open dim must come from somewhere.
fn sizes(graph: &mut Graph, known: &[Placeholder], arguments: &mut Vec<(usize, ValueId)>) {
    let used: std::cell::RefCell<Vec<Symbol>> = Default::default();
    let note = |symbol: &Symbol| {
        if symbol.bound().is_none() && !used.borrow().contains(symbol) {
            used.borrow_mut().push(symbol.clone());
        }
        None
    };
    drop(graph.substitute(&note));
    for symbol in used.into_inner() {
        let says = |p: &Placeholder| p.ty.shape.iter().any(|dim| dim.as_symbol() == Some(&symbol));
        if arguments.iter().any(|(at, _)| says(&known[*at])) {
            continue;
        }
        if let Some(at) = known.iter().position(says) {
            let id = graph.add_unused_input(known[at].ty.clone(), Kind::Input);
            arguments.push((at, id));
        }
    }
}

/// A list in words.
fn some(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
